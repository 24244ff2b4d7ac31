//! The two lengths that front coding keeps of each key, in a byte and, where one does not fit, varints.

use crate::dictionary::wire::low_byte;
use crate::wire::wide;
use plinth_core::wire::{Reader, put_varint};

/// A nibble that says: a varint follows, to be added.
const MORE: usize = 15;

/// What a key shares with the one it is coded against, and how long the rest of it is, as a byte; what does not fit goes
/// to `more`.
pub(super) fn put(shared: usize, piece: usize, bytes: &mut Vec<u8>, more: &mut Vec<u8>) {
    bytes.push(low_byte(shared.min(MORE) | piece.min(MORE) << 4));
    for length in [shared, piece] {
        if let Some(rest) = length.checked_sub(MORE) {
            put_varint(more, wide(rest));
        }
    }
}

/// The shared length and the piece's that `byte` stands for, with what `more` has of them.
#[inline]
pub(super) fn take(byte: u8, more: &mut Reader<'_>) -> Option<(usize, usize)> {
    let (mut shared, mut piece) = (usize::from(byte) & MORE, usize::from(byte) >> 4);
    if shared == MORE {
        shared = shared.checked_add(more.length().ok()?)?;
    }
    if piece == MORE {
        piece = piece.checked_add(more.length().ok()?)?;
    }
    Some((shared, piece))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests;
