//! Text to decimals, exactly.

use arrow_buffer::i256;

use super::number::Why;

/// Digits that 64 bits hold, whichever they are.
const SHORT: usize = 18;

/// A decimal as most are spelled, times ten to the scale: digits, few enough that 64 bits hold the result, with a point or
/// without. `None` says nothing about it.
#[inline(always)]
fn usual_decimal(text: &str, precision: u8, scale: i8) -> Option<i64> {
    let bytes = text.as_bytes();
    let unsigned = bytes.strip_prefix(b"-").unwrap_or(bytes);
    let scale = usize::try_from(scale).ok()?;
    let (mut value, mut digits, mut fraction) = (0_i64, 0, None);
    if unsigned.len() > SHORT {
        return None;
    }
    for byte in unsigned {
        let digit = byte.wrapping_sub(b'0');
        if digit <= 9 {
            value = value * 10 + i64::from(digit);
            digits += 1;
        } else if *byte == b'.' && fraction.is_none() {
            fraction = Some(digits);
        } else {
            return None;
        }
    }
    let zeros = scale.checked_sub(fraction.map_or(0, |before| digits - before))?;
    // Leading zeros count as digits here, so that nothing is taken that has too many.
    if digits == 0 || digits + zeros > SHORT.min(usize::from(precision)) {
        return None;
    }
    let value = value * 10_i64.pow(u32::try_from(zeros).ok()?);
    Some(if unsigned.len() < bytes.len() { -value } else { value })
}

/// A decimal number times ten to the scale, exactly.
pub(crate) fn decimal(text: &str, precision: u8, scale: i8) -> Result<i256, Why> {
    match usual_decimal(text, precision, scale) {
        Some(value) => Ok(i256::from_i128(value.into())),
        None => any_decimal(text, precision, scale),
    }
}

/// The same however it is spelled.
#[inline(never)]
fn any_decimal(text: &str, precision: u8, scale: i8) -> Result<i256, Why> {
    let not_a_number = || Why::from("not a decimal number");
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i16>().map_err(|_| not_a_number())?),
        None => (unsigned, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let mut digits = [whole, fraction].concat();
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(not_a_number());
    }
    if digits.bytes().all(|b| b == b'0') {
        return Ok(i256::ZERO);
    }
    let fraction = i64::try_from(fraction.len()).map_err(|_| not_a_number())?;
    let shift = i64::from(scale) + i64::from(exponent) - fraction;
    let zeros = usize::try_from(shift.unsigned_abs()).unwrap_or(usize::MAX);
    if shift < 0 {
        let kept = digits.len().saturating_sub(zeros);
        if digits.bytes().skip(kept).any(|b| b != b'0') {
            return Err(format!("more than {scale} digits after the point").into());
        }
        digits.truncate(kept);
    }
    let too_long = || Why::from(format!("more than {precision} digits"));
    let significant = digits.trim_start_matches('0');
    let appended = if shift > 0 { zeros } else { 0 };
    if significant.len().saturating_add(appended) > usize::from(precision) {
        return Err(too_long());
    }
    let sign = if text.starts_with('-') { "-" } else { "" };
    i256::from_string(&format!("{sign}{significant}{}", "0".repeat(appended))).ok_or_else(too_long)
}

#[cfg(test)]
mod tests;
