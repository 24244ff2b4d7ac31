//! Digits to numbers straight from the bytes, exactly as the standard library reads them.
//!
//! A double is its digits as an integer times a power of ten. Where both are doubles themselves, one operation rounds
//! correctly (Clinger); where not, the product with a 128-bit power of five decides (Lemire, "Number Parsing at a Gigabyte
//! per Second", 2021), for the powers that are worth a table; what is left goes to the standard library.

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
pub(crate) const USUAL: usize = 40;

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
pub(crate) fn exact(digits: u64, exponent: i64, negative: bool) -> Option<f64> {
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
mod tests;
