//! Numbers as people read them: decimal units, three digits.

use std::time::Duration;

const BYTES: [&str; 7] = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];

/// `1.23 MB`.
pub(crate) fn bytes(bytes: u64) -> String {
    scaled(to_f64(bytes), &BYTES)
}

/// `1.23 GB/s`.
pub(crate) fn speed(bytes_per_second: f64) -> String {
    format!("{}/s", scaled(bytes_per_second, &BYTES))
}

/// `6.00 M`; small counts as they are.
pub(crate) fn count(n: u64) -> String {
    scaled(to_f64(n), &["", "k", "M", "G", "T", "P", "E"]).trim_end().to_owned()
}

/// `850 ns`, `83.2 us`, `12.3 ms`, `4.56 s`.
pub(crate) fn time(time: Duration) -> String {
    scaled(time.as_secs_f64() * 1e9, &["ns", "us", "ms", "s"])
}

/// `12.3 %`.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// A count as a float, for ratios; beyond 2^53 the last digits are lost.
#[allow(clippy::cast_precision_loss, reason = "shown with three digits")]
pub(crate) fn to_f64(n: u64) -> f64 {
    n as f64
}

/// A length as a count.
pub(crate) fn count_of(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}

/// Nanoseconds, as many as 64 bits hold.
pub(crate) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn scaled(mut value: f64, units: &[&str]) -> String {
    let mut units = units.iter();
    let mut unit = units.next().copied().unwrap_or_default();
    let smallest = unit;
    while value >= 999.5 {
        let Some(next) = units.next() else { break };
        value /= 1000.0;
        unit = next;
    }
    let decimals = match value {
        _ if unit == smallest => 0,
        value if value >= 99.95 => 0,
        value if value >= 9.995 => 1,
        _ => 2,
    };
    format!("{value:.decimals$} {unit}")
}
