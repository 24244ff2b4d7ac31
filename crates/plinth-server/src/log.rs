//! What happened, a line an event: who and what kind of statement, never its text, its values or a token.

use std::fmt;
use std::io::Write;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// Where events are written to: by default to standard error.
#[derive(Clone)]
pub struct Log(Arc<dyn Fn(&str) + Send + Sync>);

impl Default for Log {
    fn default() -> Self {
        Self::to(|line| {
            // A log that can't be written is no reason to stop.
            let _ = writeln!(std::io::stderr().lock(), "{line}");
        })
    }
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Log")
    }
}

impl Log {
    /// To a function, a line at a time.
    pub fn to(write: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(write))
    }

    /// Writes an event: words and numbers of this program, names of users, addresses.
    pub(crate) fn event(&self, what: fmt::Arguments<'_>) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let line = plinth_sql::one_line(&what.to_string());
        (self.0)(&format!("{} {line}", Moment(now)));
    }
}

/// Seconds since 1970 as a date and a time of day in UTC.
struct Moment(u64);

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Days to dates as in H. Hinnant's "chrono-compatible low-level date algorithms".
        let (days, second) = (self.0 / 86_400 + 719_468, self.0 % 86_400);
        let (era, of_era) = (days / 146_097, days % 146_097);
        let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted = (5 * of_year + 2) / 153;
        let (day, month) =
            (of_year - (153 * shifted + 2) / 5 + 1, if shifted < 10 { shifted + 3 } else { shifted - 9 });
        let year = year_of_era + 400 * era + u64::from(month <= 2);
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_dates() {
        for (seconds, written) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_164_799, "2024-02-28T23:59:59Z"),
            (1_795_694_400, "2026-11-26T12:00:00Z"),
            (4_107_542_399, "2100-02-28T23:59:59Z"),
        ] {
            assert_eq!(Moment(seconds).to_string(), written);
        }
    }
}
