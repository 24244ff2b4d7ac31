//! Days as years, months and days, and back: the proleptic Gregorian calendar of both Arrow and Python.

/// Days from 0000-03-01 to 1970-01-01.
const EPOCH: i64 = 719_468;
/// Days of 400 years.
const ERA: i64 = 146_097;

/// The year, month and day of a number of days since 1970-01-01. Howard Hinnant's `civil_from_days`.
pub(crate) fn date_of(days: i64) -> Option<(i32, u8, u8)> {
    let days = days.checked_add(EPOCH)?;
    let (era, day) = (days.div_euclid(ERA), days.rem_euclid(ERA));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    // Months from March on.
    let month = (5 * day + 2) / 153;
    let date = (day - (153 * month + 2) / 5 + 1, if month < 10 { month + 3 } else { month - 9 });
    let year = year + era * 400 + i64::from(date.1 <= 2);
    let year = i32::try_from(year).ok().filter(|year| (1..=9999).contains(year))?;
    Some((year, u8::try_from(date.1).ok()?, u8::try_from(date.0).ok()?))
}

/// The days since 1970-01-01 of a date. Howard Hinnant's `days_from_civil`.
pub(crate) fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let month = if month > 2 { month - 3 } else { month + 9 };
    let day = (153 * month + 2) / 5 + day - 1;
    era * ERA + of_era * 365 + of_era / 4 - of_era / 100 + day - EPOCH
}
