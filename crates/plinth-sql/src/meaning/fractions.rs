//! Fractions of months, weeks, days and years in the text of an interval, as PostgreSQL has them: those of years are whole months, to the
//! nearest, those of months and weeks are days and what is left of a day.
//!
//! The engine drops what is no whole day of a month, makes hours of weeks, and cuts years off at whole months.

const SECOND: i128 = 1_000_000_000;
const DAY: i128 = 24 * 3600 * SECOND;

/// The text of an interval without such fractions, if it has any.
pub(crate) fn whole(text: &str) -> Option<String> {
    if !text.contains(['.', ':']) {
        return None;
    }
    let mut sum = Sum::default();
    for (amount, unit) in parts(text)? {
        sum.add(&amount, Unit::of(unit)?)?;
    }
    // Each is named once: the parser of intervals takes no unit twice.
    (sum.fractions || text.contains(':'))
        .then(|| format!("{} months {} days {} nanoseconds", sum.months, sum.days, sum.nanos))
}

/// Amounts and their units: `1.5 weeks 3h`.
fn parts(text: &str) -> Option<Vec<(Amount, &str)>> {
    let mut parts = Vec::new();
    let mut words = text.split_whitespace();
    while let Some(word) = words.next() {
        if word.contains(':') {
            parts.push((clock(word)?, "nanosecond"));
            continue;
        }
        let is_amount = |letter: char| letter.is_ascii_digit() || matches!(letter, '.' | '-' | '+');
        let (amount, unit) = match word.find(|letter| !is_amount(letter)) {
            Some(at) => word.split_at(at),
            None => (word, words.next()?),
        };
        parts.push((Amount::of(amount)?, unit));
    }
    Some(parts)
}

/// `-12:30:15.5`, hours and minutes at least, as nanoseconds.
fn clock(text: &str) -> Option<Amount> {
    let (sign, text) = match text.strip_prefix('-') {
        Some(text) => (-1, text),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let mut parts = text.split(':');
    let (hours, minutes, seconds) = (parts.next()?, parts.next()?, parts.next().unwrap_or("0"));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let whole = |text: &str| if is_number(text) { text.parse::<i128>().ok() } else { None };
    let (hours, minutes) = (whole(hours)?, whole(minutes).filter(|minutes| *minutes < 60)?);
    let nanos = Amount::of(seconds.strip_prefix(['-', '+']).map_or(Some(seconds), |_| None)?)?.nearest(SECOND)?;
    if parts.next().is_some() || nanos >= 60 * SECOND {
        return None;
    }
    Some(Amount { digits: sign * ((hours * 3600 + minutes * 60).checked_mul(SECOND)? + nanos), places: 0 })
}

/// A number of digits, of which so many stand behind the point.
struct Amount {
    digits: i128,
    places: u32,
}

impl Amount {
    fn of(text: &str) -> Option<Self> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let fraction = fraction.trim_end_matches('0');
        // Further ones are less than a nanosecond.
        let fraction = fraction.get(..fraction.len().min(15))?;
        if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let digits = format!("{whole}{fraction}");
        Some(Self { digits: digits.parse().ok()?, places: u32::try_from(fraction.len()).ok()? })
    }

    /// How often the amount has a number: whole, and what is left in parts of as many places.
    fn times(&self, factor: i128) -> Option<(i128, i128)> {
        let (all, one) = (self.digits.checked_mul(factor)?, 10_i128.pow(self.places));
        Some((all / one, all % one))
    }

    /// The nearest whole number to a multiple, the even one of two.
    fn nearest(&self, factor: i128) -> Option<i128> {
        let (whole, rest) = self.times(factor)?;
        let (twice, one) = (rest.abs() * 2, 10_i128.pow(self.places));
        let further = twice > one || (twice == one && whole % 2 != 0);
        Some(if further { whole + rest.signum() } else { whole })
    }
}

#[derive(Clone, Copy)]
enum Unit {
    /// So many months, of which no fraction is kept.
    Years(i128),
    Month,
    /// So many days.
    Days(i128),
    Nanos(i128),
}

impl Unit {
    fn of(name: &str) -> Option<Self> {
        Some(match name.to_ascii_lowercase().as_str() {
            "c" | "cent" | "cents" | "century" | "centuries" => Self::Years(1200),
            "dec" | "decs" | "decade" | "decades" => Self::Years(120),
            "y" | "yr" | "yrs" | "year" | "years" => Self::Years(12),
            "mon" | "mons" | "month" | "months" => Self::Month,
            "w" | "week" | "weeks" => Self::Days(7),
            "d" | "day" | "days" => Self::Days(1),
            "h" | "hr" | "hrs" | "hour" | "hours" => Self::Nanos(3600 * SECOND),
            "m" | "min" | "mins" | "minute" | "minutes" => Self::Nanos(60 * SECOND),
            "s" | "sec" | "secs" | "second" | "seconds" => Self::Nanos(SECOND),
            "ms" | "msec" | "msecs" | "msecond" | "mseconds" | "millisecond" | "milliseconds" => Self::Nanos(1_000_000),
            "us" | "usec" | "usecs" | "usecond" | "useconds" | "microsecond" | "microseconds" => Self::Nanos(1000),
            "nanosecond" | "nanoseconds" => Self::Nanos(1),
            _ => return None,
        })
    }
}

/// An interval on its way.
#[derive(Default)]
struct Sum {
    months: i128,
    days: i128,
    nanos: i128,
    /// Whether there was a fraction of what is longer than an hour.
    fractions: bool,
}

impl Sum {
    fn add(&mut self, amount: &Amount, unit: Unit) -> Option<()> {
        match unit {
            Unit::Years(months) => {
                self.months += amount.nearest(months)?;
                self.fractions |= amount.places > 0;
            }
            Unit::Month => {
                let (months, rest) = amount.times(1)?;
                self.months += months;
                self.add_days(&Amount { digits: rest, places: amount.places }, 30)?;
            }
            Unit::Days(days) => self.add_days(amount, days)?,
            Unit::Nanos(nanos) => self.nanos += amount.nearest(nanos)?,
        }
        Some(())
    }

    fn add_days(&mut self, amount: &Amount, days: i128) -> Option<()> {
        let (days, rest) = amount.times(days)?;
        self.days += days;
        self.nanos += Amount { digits: rest, places: amount.places }.nearest(DAY)?;
        self.fractions |= amount.places > 0;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_go_to_what_is_shorter() {
        let hours = |hours: f64| format!("{:.0}", hours * 3.6e12);
        for (text, months, days, nanos) in [
            ("0.05 month", 0, 1, hours(12.0)),
            ("1.5 weeks", 0, 10, hours(12.0)),
            ("-1.55 months", -1, -16, hours(-12.0)),
            ("1 month 1.5 week 2.25 days", 1, 12, hours(18.0)),
            ("0.05 years", 1, 0, hours(0.0)),
            ("0.04y", 0, 0, hours(0.0)),
            ("0.125 years 1 nanosecond", 2, 0, "1".to_owned()),
            ("1 day 02:03:04", 0, 1, "7384000000000".to_owned()),
            ("2 months -00:00:01.5", 2, 0, "-1500000000".to_owned()),
            ("12:30", 0, 0, hours(12.5)),
            ("1.03 decades", 12 * 10 + 4, 0, hours(0.0)),
            ("0.123456 months", 0, 3, "60797952000000".to_owned()),
        ] {
            assert_eq!(whole(text), Some(format!("{months} months {days} days {nanos} nanoseconds")), "{text}");
        }
        for text in [
            "1 day",
            "1.5 hours",
            "2 months",
            "1.5 foos",
            "1.5",
            "1.5.5 days",
            ". days",
            "x1.5 days",
            "1:60",
            "1:2:60",
            "1:",
            "1:2:3:4",
            "1:-2",
        ] {
            assert_eq!(whole(text), None, "{text}");
        }
    }
}
