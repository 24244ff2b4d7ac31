//! ISO 8601 dates, times and timestamps, strictly.

use std::ops::Range;

/// A point in time as spelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    /// Seconds since 1970-01-01T00:00:00, local where there is no zone, else UTC.
    pub(crate) seconds: i64,
    pub(crate) nanos: u32,
    /// Whether a zone was given.
    pub(crate) zoned: bool,
}

impl Moment {
    /// In units of `per_second`, if it is a whole number of them and fits.
    pub(crate) fn in_units(self, per_second: i64) -> Option<i64> {
        let nanos_per_unit = 1_000_000_000 / per_second;
        let nanos = i64::from(self.nanos);
        if nanos % nanos_per_unit != 0 {
            return None;
        }
        let value = i128::from(self.seconds) * i128::from(per_second) + i128::from(nanos / nanos_per_unit);
        i64::try_from(value).ok()
    }
}

/// What is left of a text while it is taken apart.
struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    fn eat(&mut self, byte: u8) -> Option<()> {
        let (first, rest) = self.0.split_first()?;
        (*first == byte).then(|| self.0 = rest)
    }

    /// Exactly `count` digits.
    fn number(&mut self, count: usize) -> Option<i64> {
        let (digits, rest) = self.0.split_at_checked(count)?;
        let value = digits
            .iter()
            .try_fold(0i64, |value, d| d.is_ascii_digit().then(|| value * 10 + i64::from(d.wrapping_sub(b'0'))))?;
        self.0 = rest;
        Some(value)
    }

    /// `2024-02-29`; a year of more than four digits, or before 0, has a sign.
    fn date(&mut self) -> Option<i64> {
        let sign = match self.0.first()? {
            b'-' => Some(-1),
            b'+' => Some(1),
            _ => None,
        };
        if sign.is_some() {
            self.0 = self.0.get(1..)?;
        }
        let digits = self.0.iter().take_while(|b| b.is_ascii_digit()).count();
        if digits < 4 || digits > if sign.is_some() { 9 } else { 4 } {
            return None;
        }
        let year = self.number(digits)? * sign.unwrap_or(1);
        self.eat(b'-')?;
        let month = self.number(2)?;
        self.eat(b'-')?;
        let day = self.number(2)?;
        (1..=last_day(year, month)).contains(&day).then(|| days(year, month, day))
    }

    /// `12:34`, `12:34:56` or `12:34:56.789`: seconds and nanoseconds.
    fn time(&mut self) -> Option<(i64, u32)> {
        let hour = self.number(2)?;
        self.eat(b':')?;
        let minute = self.number(2)?;
        let (mut second, mut nanos) = (0, 0u32);
        if self.eat(b':').is_some() {
            second = self.number(2)?;
            if self.eat(b'.').is_some() {
                let digits = self.0.iter().take_while(|b| b.is_ascii_digit()).count();
                let (fraction, rest) = self.0.split_at_checked(digits)?;
                // What a nanosecond can't hold must be nothing.
                if fraction.is_empty() || fraction.iter().skip(9).any(|d| *d != b'0') {
                    return None;
                }
                nanos = (0..9)
                    .fold(0, |value, at| value * 10 + u32::from(fraction.get(at).map_or(0, |d| d.wrapping_sub(b'0'))));
                self.0 = rest;
            }
        }
        (hour < 24 && minute < 60 && second < 60).then_some((hour * 3600 + minute * 60 + second, nanos))
    }

    /// `Z`, `+02`, `+0200` or `+02:00`: seconds ahead of UTC.
    fn zone(&mut self) -> Option<i64> {
        if self.eat(b'Z').or_else(|| self.eat(b'z')).is_some() {
            return Some(0);
        }
        let sign = if self.eat(b'+').is_some() { 1 } else { self.eat(b'-').map(|()| -1)? };
        let hours = self.number(2)?;
        let mut minutes = 0;
        if !self.0.is_empty() {
            let _ = self.eat(b':');
            minutes = self.number(2)?;
        }
        (hours < 24 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
    }
}

/// The last day of a month; zero if there is no such month.
#[inline(always)]
fn last_day(year: i64, month: i64) -> i64 {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    }
}

/// Days from 1970-01-01 in the proleptic Gregorian calendar.
fn days(year: i64, month: i64, day: i64) -> i64 {
    // Years that start in March have the leap day at their end.
    let year = if month <= 2 { year - 1 } else { year };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + day_of_year - 719_468
}

/// A date as days since 1970-01-01.
pub(crate) fn date(text: &str) -> Option<i64> {
    let mut rest = Rest(text.as_bytes());
    let days = rest.date()?;
    rest.0.is_empty().then_some(days)
}

/// The date in a range, if it is spelled as most are, as days since 1970-01-01. `None` says nothing about it.
#[inline(always)]
pub(crate) fn usual_date(bytes: &[u8], range: &Range<usize>) -> Option<i32> {
    usual_day(bytes.get(range.clone())?.try_into().ok()?)
}

/// A date of just that form, as days since 1970-01-01.
#[inline(always)]
fn usual_day(text: &[u8; 10]) -> Option<i32> {
    let [a, b, c, d, dash, e, f, other_dash, g, h] = text.map(|byte| i64::from(byte.wrapping_sub(b'0')));
    let minus = i64::from(b'-'.wrapping_sub(b'0'));
    // All at once: which of them is wrong does not matter.
    if a.max(b).max(c).max(d).max(e).max(f).max(g).max(h) > 9 || dash != minus || other_dash != minus {
        return None;
    }
    let (year, month, day) = (a * 1_000 + b * 100 + c * 10 + d, e * 10 + f, g * 10 + h);
    if (1..=last_day(year, month)).contains(&day) { days(year, month, day).try_into().ok() } else { None }
}

/// A time of day as nanoseconds since midnight.
pub(crate) fn time(text: &str) -> Option<i64> {
    let mut rest = Rest(text.as_bytes());
    let (seconds, nanos) = rest.time()?;
    rest.0.is_empty().then_some(seconds * 1_000_000_000 + i64::from(nanos))
}

/// A date and a time of day, `T` or one space between them, with or without a zone.
#[inline]
pub(crate) fn moment(text: &str) -> Option<Moment> {
    usual_moment(text.as_bytes()).or_else(|| any_moment(text))
}

/// A moment that is spelled as most are: seconds, a fraction of at most nine digits, no zone or `Z`. `None` says nothing about it.
#[inline(always)]
fn usual_moment(text: &[u8]) -> Option<Moment> {
    let (date, rest) = text.split_first_chunk::<10>()?;
    let (clock, rest) = rest.split_first_chunk::<9>()?;
    let days = usual_day(date)?;
    let [between, a, b, colon, c, d, other_colon, e, f] = *clock;
    let digits = [a, b, c, d, e, f].map(|byte| byte.wrapping_sub(b'0'));
    let wrong = digits.iter().fold(0, |most, digit| (*digit).max(most)) > 9 || colon != b':' || other_colon != b':';
    if wrong || !matches!(between, b'T' | b' ') {
        return None;
    }
    let [a, b, c, d, e, f] = digits.map(i64::from);
    let (hour, minute, second) = (a * 10 + b, c * 10 + d, e * 10 + f);
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let (zoned, rest) = rest.strip_suffix(b"Z").map_or((false, rest), |rest| (true, rest));
    let mut nanos = 0;
    if let Some((point, fraction)) = rest.split_first() {
        if *point != b'.' || !(1..=9).contains(&fraction.len()) {
            return None;
        }
        for byte in fraction {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                return None;
            }
            nanos = nanos * 10 + u32::from(digit);
        }
        nanos *= 10_u32.pow(9 - u32::try_from(fraction.len()).ok()?);
    }
    Some(Moment { seconds: i64::from(days) * 86_400 + hour * 3_600 + minute * 60 + second, nanos, zoned })
}

/// A moment however it is spelled.
#[inline(never)]
fn any_moment(text: &str) -> Option<Moment> {
    let mut rest = Rest(text.as_bytes());
    let days = rest.date()?;
    rest.eat(b'T').or_else(|| rest.eat(b' '))?;
    let (seconds, nanos) = rest.time()?;
    let mut moment = Moment { seconds: days * 86_400 + seconds, nanos, zoned: false };
    if !rest.0.is_empty() {
        moment.seconds -= rest.zone()?;
        moment.zoned = true;
    }
    rest.0.is_empty().then_some(moment)
}

#[cfg(test)]
mod tests;
