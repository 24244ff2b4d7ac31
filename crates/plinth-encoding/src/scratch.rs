//! Values that are decoded on the way to others: each thread keeps the memory of those that are gone, so that it need not be
//! cleared again.

use std::cell::RefCell;
use std::mem;
use std::ops::{Deref, DerefMut};
use std::thread::LocalKey;

use crate::error::{EncodingError, Result};

/// What a thread keeps of each type.
type Kept<T> = LocalKey<RefCell<Vec<Vec<T>>>>;

/// What values can be decoded to on the way.
pub trait Kind: Copy + Default + 'static {
    /// What this thread keeps.
    fn kept() -> &'static Kept<Self>;
}

macro_rules! kind {
    ($($type:ty),*) => {$(
        impl Kind for $type {
            fn kept() -> &'static Kept<Self> {
                thread_local! {
                    static KEPT: RefCell<Vec<Vec<$type>>> = const { RefCell::new(Vec::new()) };
                }
                &KEPT
            }
        }
    )*};
}

kind!(u8, u16, u32, u64);

/// Of each type a thread keeps so many at most: as deep as nodes nest.
const MOST: usize = 3;

/// Larger ones are not kept: a block of the usual size takes an eighth of it.
const MOST_BYTES: usize = 1 << 19;

/// Values that are soon gone. They hold anything at first.
#[derive(Debug)]
pub(crate) struct Scratch<T: Kind> {
    /// Never shorter than `len`, and longer if it was used for more.
    values: Vec<T>,
    len: usize,
}

impl<T: Kind> Scratch<T> {
    pub(crate) fn new(len: usize) -> Result<Self> {
        let mut values = T::kept().try_with(|kept| kept.borrow_mut().pop()).ok().flatten().unwrap_or_default();
        let more = len.saturating_sub(values.len());
        if values.try_reserve_exact(more).is_err() {
            return Err(EncodingError::corrupt(format!("no memory for {len} values")));
        }
        if more > 0 {
            values.resize(len, T::default());
        }
        Ok(Self { values, len })
    }
}

impl<T: Kind> Deref for Scratch<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        &self.values[..self.len]
    }
}

impl<T: Kind> DerefMut for Scratch<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.values[..self.len]
    }
}

impl<T: Kind> Drop for Scratch<T> {
    fn drop(&mut self) {
        if self.values.capacity().saturating_mul(size_of::<T>()) > MOST_BYTES {
            return;
        }
        let values = mem::take(&mut self.values);
        // A thread that ends keeps nothing.
        let _ = T::kept().try_with(|kept| {
            let mut kept = kept.borrow_mut();
            if kept.len() < MOST {
                kept.push(values);
            }
        });
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn what_is_gone_is_used_again_and_of_the_length_asked_for() {
        let mut first = Scratch::<u32>::new(1000).unwrap();
        first.fill(7);
        let place = first.as_ptr();
        drop(first);
        let second = Scratch::<u32>::new(10).unwrap();
        assert_eq!((second.as_ptr(), &*second), (place, &[7; 10][..]));
        let third = Scratch::<u32>::new(10).unwrap();
        assert_ne!(third.as_ptr(), place);
        drop((second, third));
        assert_eq!(Scratch::<u32>::new(2000).unwrap().len(), 2000);
    }

    #[test]
    fn large_ones_are_not_kept_and_no_more_than_some() {
        drop(Scratch::<u64>::new(MOST_BYTES / 8 + 1).unwrap());
        assert_eq!(u64::kept().with_borrow(Vec::len), 0);
        let many: Vec<_> = (0..9).map(|_| Scratch::<u64>::new(5).unwrap()).collect();
        drop(many);
        assert_eq!(u64::kept().with_borrow(Vec::len), MOST);
    }
}
