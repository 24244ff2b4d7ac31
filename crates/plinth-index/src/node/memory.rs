//! Moving words within pages.

use crate::page::Page;

/// Moves words `[from, to)` by `by` words up. Readers may see any mixture meanwhile.
#[inline]
pub(crate) fn move_up(page: Page<'_>, from: usize, to: usize, by: usize) {
    for at in (from..to.min(page.len())).rev() {
        page.set(at + by, page.get(at));
    }
}

/// Moves words `[from, to)` by `by` words down.
#[inline]
pub(crate) fn move_down(page: Page<'_>, from: usize, to: usize, by: usize) {
    for at in from..to.min(page.len()) {
        page.set(at - by, page.get(at));
    }
}

/// Copies words to another page.
#[inline]
pub(crate) fn copy(from: Page<'_>, at: usize, to: Page<'_>, to_at: usize, len: usize) {
    for word in 0..len.min(from.len()) {
        to.set(to_at + word, from.get(at + word));
    }
}
