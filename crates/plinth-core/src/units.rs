//! Numbers as people read and write them: decimal units (1 MB is 1,000,000 bytes), three digits.

use std::time::Duration;

const BYTES: [&str; 7] = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];

/// Bytes: `512 B`, `1.23 MB`, `45.6 GB`.
pub fn bytes(bytes: u64) -> String {
    scaled(to_f64(bytes), &BYTES)
}

/// Bytes a second: `1.23 GB/s`.
pub fn rate(bytes_done: u64, elapsed: Duration) -> String {
    format!("{}/s", scaled(per_second(bytes_done, elapsed), &BYTES))
}

/// Bytes a second, given as such: `1.23 GB/s`.
pub fn speed(bytes_per_second: f64) -> String {
    format!("{}/s", scaled(bytes_per_second, &BYTES))
}

/// How often: `61.2 k/s`.
pub fn frequency(per_second: f64) -> String {
    format!("{}/s", scaled(per_second, &["", "k", "M", "G"]))
}

/// A short time: `850 ns`, `83.2 us`, `12.3 ms`, `4.56 s`.
pub fn latency(nanoseconds: u64) -> String {
    scaled(to_f64(nanoseconds), &["ns", "us", "ms", "s"])
}

/// A time of any length in three digits: `850 ns`, `83.2 us`, `12.3 ms`, `4560 s`.
pub fn time(time: Duration) -> String {
    latency(nanoseconds(time))
}

/// A power of two: `4 KiB`, `1 MiB`.
pub fn binary(bytes: u64) -> String {
    if bytes >= 1 << 20 { format!("{} MiB", bytes >> 20) } else { format!("{} KiB", bytes >> 10) }
}

/// Rows a second: `1.23 M rows/s`.
pub fn row_rate(rows: u64, elapsed: Duration) -> String {
    format!("{} rows/s", scaled(per_second(rows, elapsed), &["", "k", "M", "G", "T"]).trim_end())
}

/// A count with thousands separated: `1,234,567`.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A count in three digits: `6.00 M`; small ones as they are.
pub fn short_count(n: u64) -> String {
    scaled(to_f64(n), &["", "k", "M", "G", "T", "P", "E"]).trim_end().to_owned()
}

/// A share of one: `12.3 %`.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// A length as a count.
pub fn count_of(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}

/// Nanoseconds, as many as 64 bits hold.
pub fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// A count with its noun: `1 file`, `1,234 files`.
pub fn counted(n: u64, noun: &str) -> String {
    format!("{} {noun}{}", count(n), if n == 1 { "" } else { "s" })
}

/// A duration: `850 us`, `12.3 ms`, `4.56 s`, `2 min 05 s`.
pub fn duration(elapsed: Duration) -> String {
    let seconds = elapsed.as_secs_f64();
    if seconds < 0.001 {
        format!("{} us", elapsed.as_micros())
    } else if seconds < 1.0 {
        format!("{} ms", three_digits(seconds * 1e3))
    } else if seconds < 100.0 {
        format!("{} s", three_digits(seconds))
    } else {
        let whole = elapsed.as_secs();
        match (whole / 3600, whole / 60 % 60, whole % 60) {
            (0, minutes, seconds) => format!("{minutes} min {seconds:02} s"),
            (hours, minutes, _) => format!("{hours} h {minutes:02} min"),
        }
    }
}

/// How much smaller or faster: `2.35x`; nothing to compare with is `-`.
pub fn ratio(larger: f64, smaller: f64) -> String {
    if larger > 0.0 && smaller > 0.0 { format!("{}x", three_digits(larger / smaller)) } else { "-".to_owned() }
}

/// A share of a whole: `12.3 %`.
pub fn percent_of(part: u64, whole: u64) -> String {
    if whole == 0 { "-".to_owned() } else { percent(to_f64(part) / to_f64(whole)) }
}

/// A count as a float, for ratios; beyond 2^53 the last digits are lost.
#[allow(clippy::cast_precision_loss, reason = "shown with three digits")]
pub fn to_f64(n: u64) -> f64 {
    n as f64
}

/// A float as the nearest count.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates")]
pub fn whole(x: f64) -> u64 {
    x.round() as u64
}

/// Parses a size: `512MB`, `2GiB`, `1.5g`, `4096`. MB is 10^6 bytes, MiB 2^20; a bare letter means the binary unit.
///
/// # Errors
/// A sentence that says what sizes look like, or that at least 1 MiB is needed.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is no size; sizes look like 512MB, 2GiB or 1g");
    let trimmed = text.trim();
    let split = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(split);
    let factor: u64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "t" | "tib" => 1 << 40,
        _ => return Err(wrong()),
    };
    let bytes = if let Ok(whole) = number.parse::<u64>() {
        whole.checked_mul(factor).ok_or_else(wrong)?
    } else {
        let value = number.parse::<f64>().map_err(|_| wrong())? * to_f64(factor);
        if !(0.0..1e18).contains(&value) {
            return Err(wrong());
        }
        whole(value.floor())
    };
    if bytes < 1 << 20 {
        return Err(format!("{text:?} is too small: at least 1MiB is needed"));
    }
    Ok(bytes)
}

/// How many a second.
pub fn per_second(n: u64, elapsed: Duration) -> f64 {
    to_f64(n) / elapsed.as_secs_f64().max(1e-9)
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
    if unit == smallest { format!("{value:.0} {unit}") } else { format!("{} {unit}", three_digits(value)) }
}

fn three_digits(value: f64) -> String {
    let decimals = if value >= 99.95 {
        0
    } else if value >= 9.995 {
        1
    } else {
        2
    };
    format!("{value:.decimals$}")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_three_digits() {
        for (n, text) in [
            (0, "0 B"),
            (999, "999 B"),
            (1_000, "1.00 kB"),
            (12_345, "12.3 kB"),
            (999_499, "999 kB"),
            (999_500, "1.00 MB"),
            (u64::MAX, "18.4 EB"),
        ] {
            assert_eq!(bytes(n), text);
        }
        assert_eq!(count(0), "0");
        assert_eq!(count(123), "123");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(counted(1, "row"), "1 row");
        assert_eq!(counted(2_000, "row"), "2,000 rows");
        assert_eq!(rate(3_000_000, Duration::from_millis(1_500)), "2.00 MB/s");
        assert_eq!(
            (speed(1.5e9), frequency(61_234.0), frequency(85.0)),
            ("1.50 GB/s".into(), "61.2 k/s".into(), "85 /s".into())
        );
        assert_eq!(
            (latency(850), latency(83_210), latency(4_560_000_000)),
            ("850 ns".into(), "83.2 us".into(), "4.56 s".into())
        );
        assert_eq!(
            (binary(4096), binary(1 << 20), binary(2 << 30)),
            ("4 KiB".into(), "1 MiB".into(), "2048 MiB".into())
        );
        assert_eq!(row_rate(500, Duration::from_secs(1)), "500 rows/s");
        assert_eq!(row_rate(5_500_000, Duration::from_secs(1)), "5.50 M rows/s");
        assert_eq!((short_count(999), short_count(6_000_000)), ("999".into(), "6.00 M".into()));
        assert_eq!((percent_of(1, 8), percent(0.125)), ("12.5 %".into(), "12.5 %".into()));
        assert_eq!(ratio(5.0, 2.0), "2.50x");
        assert_eq!(ratio(5.0, 0.0), "-");
    }

    #[test]
    fn durations_fit_their_size() {
        for (micros, text) in [
            (850, "850 us"),
            (12_340, "12.3 ms"),
            (4_560_000, "4.56 s"),
            (125_000_000, "2 min 05 s"),
            (7_260_000_000, "2 h 01 min"),
        ] {
            assert_eq!(duration(Duration::from_micros(micros)), text);
        }
    }

    #[test]
    fn sizes_are_parsed() {
        for (text, n) in [
            ("512MB", 512_000_000),
            ("2GiB", 2 << 30),
            ("1g", 1 << 30),
            ("1.5 GB", 1_500_000_000),
            ("1048576", 1 << 20),
            ("3t", 3 << 40),
        ] {
            assert_eq!(parse_bytes(text).unwrap(), n);
        }
        for text in
            ["", "MB", "1 XB", "-1MB", "1e30GB", "99999999999999999999", "1..5MB", "0", "5kB", "NaN", "99999999T"]
        {
            assert!(parse_bytes(text).is_err(), "{text}");
        }
    }
}
