//! Numbers of a table's rows and files.

/// All numbers that are given one by one are less, so that one more is never too large.
pub(crate) const MOST_NUMBER: u64 = 1 << 62;

/// The number in a file's name: six digits or more, as they are written.
pub(crate) fn file_number(digits: &str) -> Option<u64> {
    let number = digits.parse().ok().filter(|&number| number < MOST_NUMBER)?;
    (format!("{number:06}") == digits).then_some(number)
}
