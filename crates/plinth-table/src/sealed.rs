//! Lines with a checksum behind them: a name that was damaged would be another's.

use plinth_core::wire;

/// Bytes of the last line.
const SEAL: usize = "checksum 0123456789abcdef\n".len();

fn seal(lines: &str) -> String {
    format!("checksum {:016x}\n", wire::checksum(lines.as_bytes()))
}

/// Lines, with the one that tells whether they are whole.
pub(crate) fn sealed(mut lines: String) -> String {
    let seal = seal(&lines);
    lines.push_str(&seal);
    lines
}

/// The lines of what [`sealed`] gave, without the last; None if they are damaged.
pub(crate) fn unsealed(text: &str) -> Option<&str> {
    let (lines, last) = text.split_at_checked(text.len().checked_sub(SEAL)?)?;
    (last == seal(lines)).then(|| lines.strip_suffix('\n')).flatten()
}
