//! Numbers: their grammar, and doubles and integers straight from the bytes, exactly as the standard library reads them.
//!
//! A double is its digits as an integer times a power of ten. Where both are doubles themselves, one operation rounds
//! correctly (Clinger); where not, the product with a 128-bit power of five decides (Lemire, "Number Parsing at a Gigabyte
//! per Second", 2021), for the powers that are worth a table; what is left goes to the standard library.

use super::Flaw;

/// Checks the number that starts at `start` and says where it ends.
pub(crate) fn number_end(bytes: &[u8], start: usize) -> Result<usize, Flaw> {
    let digits = |at: usize| -> Result<usize, Flaw> {
        let count = bytes.get(at..).unwrap_or_default().iter().take_while(|b| b.is_ascii_digit()).count();
        if count == 0 { Err(Flaw { at, what: "expected a digit" }) } else { Ok(at + count) }
    };
    let mut at = start + usize::from(bytes.get(start) == Some(&b'-'));
    let zero = bytes.get(at) == Some(&b'0');
    let end = digits(at)?;
    if zero && end > at + 1 {
        return Err(Flaw { at, what: "a number with a leading zero" });
    }
    at = end;
    if bytes.get(at) == Some(&b'.') {
        at = digits(at + 1)?;
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        at = digits(at + 1 + usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-'))))?;
    }
    Ok(at)
}

/// The integer that starts at `start`, and where it ends; `None` for what has to be looked at again: other numbers, minus
/// zero, integers of more than 18 digits.
#[inline(always)]
pub(crate) fn integer(bytes: &[u8], start: usize) -> Option<(i64, usize)> {
    let negative = bytes.get(start) == Some(&b'-');
    let first = start + usize::from(negative);
    let (mut at, mut value) = (first, 0_i64);
    while let Some(digit) = digit(bytes, at) {
        // Nineteen digits may be wrong here; they are not taken below.
        value = value.wrapping_mul(10).wrapping_add(i64::from(digit));
        at += 1;
    }
    let count = at - first;
    let plain = !matches!(bytes.get(at), Some(b'.' | b'e' | b'E'));
    let zero = bytes.get(first) == Some(&b'0');
    if !plain || count == 0 || count > 18 || (zero && (count > 1 || negative)) {
        return None;
    }
    Some((if negative { -value } else { value }, at))
}

const POWERS: [u64; 8] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000];

/// How many of eight bytes, the first of which is the lowest, are digits before the first that is none.
#[inline(always)]
pub(crate) fn leading_digits(word: u64) -> usize {
    // Digits are 0 to 9 now, and with 118 added still below 128. What is carried goes to later bytes only.
    let folded = word ^ 0x3030_3030_3030_3030;
    let others = (folded | folded.wrapping_add(0x7676_7676_7676_7676)) & 0x8080_8080_8080_8080;
    others.trailing_zeros() as usize / 8
}

/// The value of eight digits; bytes of zero count as the digit.
#[inline(always)]
pub(crate) fn value_of(word: u64) -> u64 {
    // Pairs, then pairs of pairs, then the two halves.
    let pairs = (word & 0x0f0f_0f0f_0f0f_0f0f).wrapping_mul((10 << 8) + 1) >> 8;
    let fours = (pairs & 0x00ff_00ff_00ff_00ff).wrapping_mul((100 << 16) + 1) >> 16;
    (fours & 0x0000_ffff_0000_ffff).wrapping_mul((10_000 << 32) + 1) >> 32
}

/// Bytes that the usual numbers take, and what follows them.
const USUAL: usize = 40;

/// The double that starts at `start` and where it ends, if it is spelled as most are: up to seven digits before the point,
/// no more than nineteen in all, no exponent. `None` says nothing about it.
///
/// How many digits there are on each side of the point is counted, not branched on: it can't be predicted.
#[inline(always)]
#[allow(clippy::cast_precision_loss, reason = "numbers of up to seven digits are doubles")]
pub(crate) fn usual_float(bytes: &[u8], start: usize) -> Option<(f64, usize)> {
    // Checked once, so that nothing below needs to be; masks say so to the compiler.
    let window: &[u8; USUAL] = bytes.get(start..)?.first_chunk()?;
    let word = |at: usize| {
        window.get(at & 31..).and_then(|rest| rest.first_chunk()).map_or(0, |word| u64::from_le_bytes(*word))
    };
    let negative = window.first() == Some(&b'-');
    let first = usize::from(negative);
    let whole = word(first);
    let count = leading_digits(whole);
    let leading_zero = (count > 1) & (whole & 0xff == u64::from(b'0'));
    if (count == 0) | (count == 8) | leading_zero {
        return None;
    }
    let mut digits = value_of(whole << (64 - 8 * count));
    let mut at = first + count;
    let mut fraction = 0;
    if word(at) & 0xff == u64::from(b'.') {
        let point = at + 1;
        at = point;
        loop {
            let part = word(at);
            let count = leading_digits(part);
            if count == 8 {
                digits = digits.wrapping_mul(100_000_000).wrapping_add(value_of(part));
                at += 8;
                if at > point + 16 {
                    return None;
                }
                continue;
            }
            if count != 0 {
                let power = POWERS.get(count & 7).copied().unwrap_or(1);
                digits = digits.wrapping_mul(power).wrapping_add(value_of(part << (64 - 8 * count)));
                at += count;
            }
            break;
        }
        fraction = at - point;
    }
    // A point without digits behind it is none of the usual, nor is an exponent.
    if (at - first > 20) | matches!(word(at) & 0xff, 0x65 | 0x45) | ((fraction == 0) & (at - first != count)) {
        return None;
    }
    let value = if fraction == 0 {
        let value = digits as f64;
        if negative { -value } else { value }
    } else {
        exact(digits, -i64::try_from(fraction).ok()?, negative)?
    };
    Some((value, start + at))
}

/// A number as a double, and what it is made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Float {
    pub(crate) value: f64,
    /// The first byte after it.
    pub(crate) end: usize,
    /// Whether it has neither a point nor an exponent and more digits than a double holds for sure.
    pub(crate) long_integer: bool,
}

/// The double nearest to the number that starts at `start`.
#[inline(always)]
pub(crate) fn float(text: &str, start: usize) -> Result<Float, Flaw> {
    let bytes = text.as_bytes();
    let negative = bytes.get(start) == Some(&b'-');
    let first = start + usize::from(negative);
    let (mut at, mut digits) = (first, 0_u64);
    run_of_digits(bytes, &mut at, &mut digits);
    let whole = at - first;
    let zero = bytes.get(first) == Some(&b'0');
    if (whole == 0) | ((whole > 1) & zero) {
        return number_end(bytes, start).and(Err(Flaw { at: first, what: "expected a digit" }));
    }
    let (mut count, mut exponent) = (whole, 0_i64);
    let mut plain = true;
    if bytes.get(at) == Some(&b'.') {
        plain = false;
        at += 1;
        let point = at;
        run_of_digits(bytes, &mut at, &mut digits);
        let fraction = at - point;
        if fraction == 0 {
            return Err(Flaw { at, what: "expected a digit" });
        }
        count += fraction;
        exponent = -i64::try_from(fraction).unwrap_or(i64::MAX);
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        plain = false;
        let end = number_end(bytes, start)?;
        let power = text.get(at + 1..end).map(str::parse::<i32>);
        exponent += power.and_then(Result::ok).map_or(i64::from(i32::MAX), i64::from);
        at = end;
    }
    let value = if count <= 19 { exact(digits, exponent, negative) } else { None };
    let value = match value {
        Some(value) => value,
        None => slow(text, start, at)?,
    };
    Ok(Float { value, end: at, long_integer: plain && digits_beyond_double(digits, count) })
}

/// Takes the digits at `at`, if there are any.
#[inline(always)]
fn run_of_digits(bytes: &[u8], at: &mut usize, digits: &mut u64) {
    while let Some(word) = bytes.get(*at..).and_then(|rest| rest.first_chunk()).map(|word| u64::from_le_bytes(*word))
        && leading_digits(word) == 8
    {
        *digits = digits.wrapping_mul(100_000_000).wrapping_add(value_of(word));
        *at += 8;
    }
    while let Some(digit) = digit(bytes, *at) {
        *digits = digits.wrapping_mul(10).wrapping_add(u64::from(digit));
        *at += 1;
    }
}

#[inline(always)]
fn digits_beyond_double(digits: u64, count: usize) -> bool {
    count > 19 || digits > 1 << 53
}

#[cold]
#[inline(never)]
fn slow(text: &str, start: usize, end: usize) -> Result<f64, Flaw> {
    let number = text.get(start..end).and_then(|number| number.parse().ok());
    number.ok_or(Flaw { at: start, what: "expected a number" })
}

#[inline(always)]
fn digit(bytes: &[u8], at: usize) -> Option<u8> {
    let digit = bytes.get(at)?.wrapping_sub(b'0');
    (digit < 10).then_some(digit)
}

/// Powers of ten that are doubles.
const TENS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20,
    1e21, 1e22,
];

/// The exponents of [`FIVES`].
const SMALLEST: i64 = -27;
const LARGEST: i64 = 55;

/// Powers of five, shifted so that their top bit is bit 127: exact where the exponent is not negative, else rounded up.
static FIVES: [u128; 83] = fives();

const fn fives() -> [u128; 83] {
    let mut table = [0; 83];
    let (mut power, mut at) = (1_u128, 0);
    while at <= 55 {
        table[27 + at] = power << power.leading_zeros();
        // The last one is not needed, and 5^55 has 128 bits.
        if at < 55 {
            power *= 5;
        }
        at += 1;
    }
    let (mut power, mut at) = (5_u128, 1);
    while at <= 27 {
        // 2^(127 + bits) / power by long division, one bit at a time.
        let bits = 128 - power.leading_zeros();
        let (mut quotient, mut rest, mut step) = (0_u128, 1_u128, 0);
        while step < 127 + bits {
            rest <<= 1;
            quotient <<= 1;
            if rest >= power {
                rest -= power;
                quotient |= 1;
            }
            step += 1;
        }
        table[27 - at] = quotient + 1;
        power *= 5;
        at += 1;
    }
    table
}

/// `digits * 10^exponent`, rounded to the nearest double, ties to even; `None` where another way has to be taken.
#[inline(always)]
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "as explained")]
pub(super) fn exact(digits: u64, exponent: i64, negative: bool) -> Option<f64> {
    let sign = u64::from(negative) << 63;
    if digits <= 1 << 53 && (-22..=22).contains(&exponent) {
        // Both are doubles, so the one operation is the one rounding.
        let tens = *TENS.get(usize::try_from(exponent.unsigned_abs()).ok()?)?;
        let digits = digits as f64;
        let value = if exponent < 0 { digits / tens } else { digits * tens };
        return Some(f64::from_bits(value.to_bits() | sign));
    }
    if digits == 0 || !(SMALLEST..=LARGEST).contains(&exponent) {
        return None;
    }
    let five = *FIVES.get(usize::try_from(exponent - SMALLEST).ok()?)?;
    let zeros = digits.leading_zeros();
    let digits = u128::from(digits << zeros);
    // The top 128 of 192 bits; the lower half of the power counts only where the bits below the double's are all ones.
    let mut product = digits * (five >> 64);
    if (product >> 64) & 0x1ff == 0x1ff {
        product += (digits * (five & u128::from(u64::MAX))) >> 64;
    }
    let (high, low) = ((product >> 64) as u64, product as u64);
    let top = (high >> 63) as u32;
    // 53 bits and one to round by.
    let shift = top + 64 - 52 - 3;
    let mut mantissa = high >> shift;
    // log2(10) as 217,706 / 65,536: exact enough for these exponents.
    let binary = ((217_706 * exponent) >> 16) + 63 + i64::from(top) - i64::from(zeros) + 1023;
    // Half way between two doubles only where the product is exact: then to the even one.
    if low <= 1 && (-4..=23).contains(&exponent) && mantissa & 3 == 1 && mantissa << shift == high {
        mantissa &= !1;
    }
    mantissa = (mantissa + (mantissa & 1)) >> 1;
    let carried = mantissa >> 53;
    let binary = binary + i64::from(carried as u32);
    // No exponent of the table comes near the ends of the range.
    let bits = (binary as u64) << 52 | (mantissa >> carried) & ((1 << 52) - 1);
    Some(f64::from_bits(bits | sign))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic, clippy::cast_precision_loss)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn same(text: &str) {
        let parsed = float(text, 0).unwrap();
        let expected: f64 = text.parse().unwrap();
        assert_eq!((parsed.value.to_bits(), parsed.end), (expected.to_bits(), text.len()), "{text}");
        assert_eq!(number_end(text.as_bytes(), 0).unwrap(), text.len());
        for after in [",", "}", ".", "5"] {
            let padded = format!(" {text}{after}{}", "7".repeat(USUAL));
            if let Some((value, end)) = usual_float(padded.as_bytes(), 1)
                && end == text.len() + 1
            {
                assert_eq!(value.to_bits(), expected.to_bits(), "{text}");
            }
        }
    }

    #[test]
    fn doubles_that_are_hard() {
        for text in [
            "0",
            "-0",
            "0.0",
            "-0.0",
            "1",
            "0.1",
            "1e23",
            "9007199254740993",
            "9007199254740992.5",
            "9007199254740993.0",
            "102.1633205722960440",
            "-24.9977499718717624",
            "1.7976931348623157e308",
            "4.9e-324",
            "2.2250738585072011e-308",
            "8.5e15",
            "1e22",
            "1e-22",
            "123456789012345678e-27",
            "9999999999999999999",
            "9223372036854775808e55",
            "0.000000000000000000000000001",
            "1e-400",
            "0e999999999999999999999",
            "1e999",
            "18014398509481986",
            "18014398509481990",
            "36028797018963970e1",
            "1125899906842624.125",
            "1125899906842901.875",
            "5e-1",
            "7e55",
            "3e-27",
            "12345678901234567890123",
            "0.12345678901234567890123",
        ] {
            same(text);
        }
        assert!(
            float("9007199254740993", 0).unwrap().long_integer && !float("9007199254740992", 0).unwrap().long_integer
        );
        assert!(
            !float("9007199254740993.5", 0).unwrap().long_integer && float(&"9".repeat(30), 0).unwrap().long_integer
        );
    }

    #[test]
    fn ties_go_to_the_even() {
        // Numbers half way between two doubles, and their neighbours, at every power where there are such.
        for power in 0..=23_u32 {
            let five = 5_u128.pow(power);
            for odd in [(1_u128 << 53) + 1, (1 << 53) + 3, (1 << 54) - 1, (1 << 54) - 3] {
                for near in [odd * five - 1, odd * five, odd * five + 1] {
                    // Times ten to the minus power: odd over a power of two.
                    if power <= 4 {
                        same(&format!("{near}e-{power}"));
                    }
                }
                if odd % five == 0 {
                    same(&format!("{}e{power}", odd / five));
                }
            }
        }
        for odd in ((1_u64 << 53) + 1..(1 << 53) + 4_000).step_by(2) {
            for power in 1..=3_u32 {
                let five = 5_u64.pow(power);
                if odd % five == 0 {
                    same(&format!("{}e{power}", odd / five));
                }
                same(&format!("{}e-{power}", u128::from(odd) * u128::from(five)));
            }
        }
    }

    #[test]
    fn usual_doubles_are_taken_at_once_and_others_left() {
        let taken = |text: &str| usual_float(format!("{text}{}", " ".repeat(USUAL)).as_bytes(), 0).map(|(_, end)| end);
        for usual in [
            "0",
            "-0",
            "7",
            "1234567",
            "-0.5",
            "0.25",
            "179.1234567890123456",
            "0.12345678901234567",
            "1.123456789012345678",
        ] {
            assert_eq!(taken(usual), Some(usual.len()), "{usual}");
        }
        for other in [
            "12345678",
            "1.",
            "-",
            "",
            "01",
            "-01.5",
            "00",
            "1e5",
            "1.5E5",
            "1.1234567890123456789",
            "12.1234567890123456789",
            ".5",
            "x",
        ] {
            assert_eq!(taken(other), None, "{other}");
        }
        assert_eq!(usual_float(b"1.5", 0), None);
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for text in ["", "-", ".5", "01", "-01", "1.", "1.e5", "1e", "1e+", "00", "+1", "-a", "Infinity", "NaN"] {
            assert!(float(text, 0).is_err() && number_end(text.as_bytes(), 0).is_err(), "{text}");
            assert_eq!(integer(text.as_bytes(), 0).filter(|(_, end)| *end == text.len()), None, "{text}");
        }
        let integers = [("7", 7), ("-12", -12), ("0", 0), ("999999999999999999", 999_999_999_999_999_999)];
        for (text, value) in integers {
            assert_eq!(integer(text.as_bytes(), 0), Some((value, text.len())));
        }
        for text in ["1.5", "1e2", "-0", "1234567890123456789"] {
            assert_eq!(integer(text.as_bytes(), 0), None);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 4_096, ..ProptestConfig::default() })]

        #[test]
        fn doubles_are_those_of_the_standard_library(
            text in "-?(0|[1-9][0-9]{0,20})(\\.[0-9]{1,25})?([eE][+-]?[0-9]{1,3})?", bits: u64, digits: u64, power in -30_i32..60,
        ) {
            same(&text);
            same(&format!("{digits}e{power}"));
            let value = f64::from_bits(bits);
            if value.is_finite() {
                same(&format!("{value:e}"));
                if value.abs() < 1e20 {
                    same(&format!("{value:.16}"));
                    same(&format!("{value:.17e}"));
                }
            }
        }
    }
}
