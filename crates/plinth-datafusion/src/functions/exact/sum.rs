//! Sums of floats that lose nothing.
//!
//! A sum is a whole number of the smallest steps a double can take, 2^-1074, in digits of 32 bits, each in a word of 64 with
//! room for what is to be carried. A double touches two digits; carrying is put off for a thousand of them. (The idea is that
//! of Radford Neal's small superaccumulator: "Fast exact summation using small and large superaccumulators", 2015.)
//!
//! All digits there may be take 560 bytes. Most sums need but a few, which are kept in place.

/// Digits of the largest sum: 2^1024 times 2^64, and more.
const DIGITS: usize = 70;

/// Digits kept in place. A double reaches over two, and carries go to the next: there is room for values 2^64 apart.
const IN_PLACE: usize = 5;

/// Doubles that may be added before digits are carried: each adds less than 2^53 to one, which holds 2^63.
const BEFORE_CARRY: u16 = 1_000;

/// Digits below the last of a sum that a mean is computed to: of 128 bits, 64 are left whatever the count.
const FRACTIONS: usize = 4;
const FRACTION_BITS: i32 = 128;

/// The exponent of the lowest bit of the lowest digit.
const LOWEST: i32 = -1_074;

/// Bits of a double's fraction.
const FRACTION: u32 = 52;

/// A sum of doubles.
#[derive(Clone, Debug, Default)]
pub(super) struct ExactSum {
    digits: Digits,
    /// Doubles added since digits were carried.
    pending: u16,
    specials: Specials,
}

/// What was added that is no number or not finite.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Specials(u8);

impl Specials {
    const NAN: u8 = 1;
    const PLUS: u8 = 2;
    const MINUS: u8 = 4;

    #[cold]
    fn add(&mut self, value: f64) {
        self.0 |= match value {
            f64::INFINITY => Self::PLUS,
            f64::NEG_INFINITY => Self::MINUS,
            _ => Self::NAN,
        };
    }

    /// The sum, if these decide it.
    fn sum(self) -> Option<f64> {
        match self.0 {
            0 => None,
            Self::PLUS => Some(f64::INFINITY),
            Self::MINUS => Some(f64::NEG_INFINITY),
            _ => Some(f64::NAN),
        }
    }
}

/// Signed digits to the base of 2^32, lowest first.
#[derive(Clone, Debug)]
enum Digits {
    /// A few, from one on.
    InPlace(u8, [i64; IN_PLACE]),
    All(Box<[i64; DIGITS]>),
}

impl Default for Digits {
    fn default() -> Self {
        Self::InPlace(0, [0; IN_PLACE])
    }
}

impl Digits {
    /// The lowest of those that are kept, and they.
    fn parts(&self) -> (usize, &[i64]) {
        match self {
            Self::InPlace(from, digits) => (usize::from(*from), digits),
            Self::All(digits) => (0, digits.as_slice()),
        }
    }

    fn parts_mut(&mut self) -> (usize, &mut [i64]) {
        match self {
            Self::InPlace(from, digits) => (usize::from(*from), digits),
            Self::All(digits) => (0, digits.as_mut_slice()),
        }
    }

    /// Carries: all digits but the highest are from -2^31 to 2^31 - 1 then. The highest has room for more than can come.
    fn carry(&mut self) {
        let (_, digits) = self.parts_mut();
        let mut carry = 0;
        if let Some((highest, others)) = digits.split_last_mut() {
            for digit in others {
                let whole = *digit + carry;
                carry = (whole + (1 << 31)) >> 32;
                *digit = whole - (carry << 32);
            }
            *highest += carry;
        }
    }

    /// Keeps other digits, so that some further ones and a carry from them find room. To be called once all are carried.
    #[cold]
    fn make_room(&mut self, lowest: usize, highest: usize) {
        let (from, digits) = self.parts();
        let used = |(_, digit): &(usize, &i64)| **digit != 0;
        let first = digits.iter().enumerate().find(used).map_or(lowest, |(at, _)| lowest.min(from + at));
        let last = digits.iter().enumerate().rfind(used).map_or(highest, |(at, _)| highest.max(from + at));
        let small = digits.iter().all(|digit| i32::try_from(*digit).is_ok());
        let moved = if small && last + 2 - first <= IN_PLACE {
            // What is to spare is better below: smaller values are to come as likely as larger ones, which have a carry's room.
            let to = first.saturating_sub((IN_PLACE - (last + 2 - first)) / 2);
            u8::try_from(to).ok().map(|to| Self::InPlace(to, [0; IN_PLACE]))
        } else {
            None
        };
        let mut moved = moved.unwrap_or_else(|| Self::All(Box::new([0; DIGITS])));
        let (to, room) = moved.parts_mut();
        for (at, digit) in digits.iter().enumerate().filter(used) {
            if let Some(place) = (from + at).checked_sub(to).and_then(|at| room.get_mut(at)) {
                *place = *digit;
            }
        }
        *self = moved;
    }

    /// Two neighbouring digits with room for a carry above.
    #[inline]
    fn pair(&mut self, at: usize) -> Option<&mut [i64; 2]> {
        let (from, digits) = self.parts_mut();
        let (_for_the_carry, others) = digits.get_mut(at.checked_sub(from)?..)?.split_last_mut()?;
        others.first_chunk_mut()
    }
}

impl ExactSum {
    /// Adds a value.
    #[inline]
    pub(super) fn add(&mut self, value: f64) {
        let bits = value.to_bits();
        let exponent = (bits >> FRACTION) & 0x7ff;
        let fraction = bits & ((1 << FRACTION) - 1);
        if exponent == 0x7ff {
            self.specials.add(value);
            return;
        }
        // In steps of 2^-1074: a whole number, and how far it is to be moved.
        let (whole, left) = match exponent {
            0 => (fraction, 0),
            _ => (fraction | 1 << FRACTION, exponent - 1),
        };
        if whole == 0 {
            return;
        }
        let (at, left) = ((left / 32) as usize, left % 32);
        // The lower 32 bits of it, and less than 2^53.
        let (low, high) = ((whole << left) & 0xffff_ffff, whole >> (32 - left));
        let sign = if value.is_sign_negative() { -1 } else { 1 };
        let (low, high) = (sign * low.cast_signed(), sign * high.cast_signed());
        if self.pending >= BEFORE_CARRY {
            self.carry();
        }
        self.pending += 1;
        if let Some([a, b]) = self.digits.pair(at) {
            *a += low;
            *b += high;
            return;
        }
        self.digits.carry();
        self.digits.make_room(at, at + 1);
        if let Some([a, b]) = self.digits.pair(at) {
            *a += low;
            *b += high;
        }
        self.pending = 1;
    }

    fn carry(&mut self) {
        self.digits.carry();
        self.pending = 0;
    }

    /// Adds digits that are carried.
    fn add_digits(&mut self, from: usize, digits: &[i64]) {
        self.carry();
        for (at, digit) in digits.iter().enumerate().filter(|(_, digit)| **digit != 0) {
            // In halves, so that each is small however much the highest digit holds.
            let high = (*digit + (1 << 31)) >> 32;
            let low = *digit - (high << 32);
            if self.digits.pair(from + at).is_none() {
                self.digits.carry();
                self.digits.make_room(from + at, from + at + usize::from(high != 0));
            }
            match self.digits.pair(from + at) {
                Some([a, b]) => {
                    *a += low;
                    *b += high;
                }
                None => self.add_highest(from + at, *digit),
            }
        }
        self.carry();
    }

    /// Adds to the highest digit of all, above which there is nothing.
    fn add_highest(&mut self, at: usize, digit: i64) {
        let (from, digits) = self.digits.parts_mut();
        if let Some(place) = at.checked_sub(from).and_then(|at| digits.get_mut(at)) {
            *place += digit;
        }
    }

    /// The sum, rounded once.
    pub(super) fn sum(&self) -> f64 {
        self.mean(1)
    }

    /// The sum divided by a number of values, rounded once; no number if that is 0.
    pub(super) fn mean(&self, count: u64) -> f64 {
        if let Some(special) = self.specials.sum() {
            return special;
        }
        if count == 0 {
            return f64::NAN;
        }
        let mut carried = self.digits.clone();
        carried.carry();
        let (from, digits) = carried.parts();
        // The sign is that of the highest digit: those below don't add up to one of it.
        let negative = digits.iter().rev().find(|digit| **digit != 0).is_some_and(|digit| *digit < 0);
        // The magnitude in digits from 0 to 2^32 - 1, with room below for a quotient, and above for what the highest holds.
        let mut magnitude = vec![0; FRACTIONS + digits.len() + 2];
        let mut carry = 0i64;
        let padded = digits.iter().copied().chain([0, 0]);
        for (to, digit) in magnitude.iter_mut().skip(FRACTIONS).zip(padded) {
            let whole = if negative { carry - digit } else { carry + digit };
            *to = (whole & 0xffff_ffff).cast_unsigned();
            carry = whole >> 32;
        }
        // Long division.
        let mut rest = 0u128;
        for digit in magnitude.iter_mut().rev() {
            let whole = rest << 32 | u128::from(*digit);
            *digit = u64::try_from(whole / u128::from(count)).unwrap_or(u64::MAX);
            rest = whole % u128::from(count);
        }
        let lowest = i32::try_from(from).map_or(0, |from| LOWEST + 32 * from) - FRACTION_BITS;
        let rounded = round(&magnitude, lowest, rest != 0);
        if negative { -rounded } else { rounded }
    }

    /// The bytes by which sums travel: the specials, the number of the lowest digit, and the digits, eight bytes each.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut carried = self.digits.clone();
        carried.carry();
        let (from, digits) = carried.parts();
        let end = digits.iter().rposition(|digit| *digit != 0).map_or(0, |at| at + 1);
        let start = digits.iter().position(|digit| *digit != 0).unwrap_or(end);
        let mut bytes = vec![self.specials.0, u8::try_from(from + start).unwrap_or(u8::MAX)];
        for digit in digits.get(start..end).unwrap_or_default() {
            bytes.extend(digit.to_le_bytes());
        }
        bytes
    }

    /// Adds the sum that travelled as these bytes; false if they are none.
    pub(super) fn unite_bytes(&mut self, bytes: &[u8]) -> bool {
        let [specials, from, digits @ ..] = bytes else { return false };
        let (digits, rest) = digits.as_chunks();
        let from = usize::from(*from);
        let known = Specials::NAN | Specials::PLUS | Specials::MINUS;
        if !rest.is_empty() || specials & !known != 0 || from + digits.len() > DIGITS {
            return false;
        }
        let digits: Vec<i64> = digits.iter().map(|bytes| i64::from_le_bytes(*bytes)).collect();
        // As carrying leaves them; the highest has room for 2^64 of the largest doubles.
        if digits.iter().any(|digit| digit.unsigned_abs() > 1 << 62) {
            return false;
        }
        self.specials.0 |= specials;
        self.add_digits(from, &digits);
        true
    }

    /// Bytes beyond its own.
    pub(super) fn heap_size(&self) -> usize {
        match self.digits {
            Digits::InPlace(..) => 0,
            Digits::All(_) => size_of::<[i64; DIGITS]>(),
        }
    }
}

/// The double nearest to a number whose lowest bit has an exponent of less than [`LOWEST`], to even where two are; `more` says
/// that there is something below its lowest bit. Infinite where it is beyond the largest.
fn round(digits: &[u64], lowest: i32, more: bool) -> f64 {
    let digit = |at: usize| digits.get(at).copied().unwrap_or(0);
    let Some(top) = digits.iter().rposition(|digit| *digit != 0) else { return 0.0 };
    let highest_bit = 32 * top + (digit(top).ilog2() as usize);
    let exponent = lowest + i32::try_from(highest_bit).unwrap_or(i32::MAX / 64);
    if exponent > 1_023 {
        return f64::INFINITY;
    }
    // The exponent of the last bit that is kept, and its place.
    let last = (exponent - FRACTION.cast_signed()).max(LOWEST);
    let place = usize::try_from(last - lowest).unwrap_or(0);
    let bit = |place: usize| digit(place / 32) >> (place % 32) & 1;
    let mut kept = 0u64;
    for place in (place..=highest_bit).rev() {
        kept = kept << 1 | bit(place);
    }
    let half = place.checked_sub(1).is_some_and(|below| bit(below) == 1);
    let below_half = || {
        let below = place.saturating_sub(1);
        let partly = digit(below / 32) & ((1 << (below % 32)) - 1) != 0;
        more || partly || digits.iter().take(below / 32).any(|digit| *digit != 0)
    };
    let up = half && (kept & 1 == 1 || below_half());
    // The fraction's highest bit counts for one more of the exponent, and so does a carry out of it.
    let biased = u64::try_from(last - LOWEST).unwrap_or(0);
    f64::from_bits((biased << FRACTION) + kept + u64::from(up))
}
