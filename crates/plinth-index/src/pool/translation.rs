//! From the word that a parent holds to the frame that its child is in.

use crate::page::Swip;

/// How children in memory are found. The pool is generic over it, so that ways can be compared.
///
/// All calls for one word are ordered by the latch of the page that holds it, but [`Translation::find`], which may be asked
/// with any word at any time; what it answers is checked by the caller.
pub trait Translation: Send + Sync + Sized + 'static {
    /// Whether parents hold frames; else they hold where children are on storage, also while these are in memory.
    const SWIZZLES: bool;

    /// For a pool of at most so many pages.
    fn new(pages: usize) -> Self;

    /// The frame that a child may be in, to be looked at before it is searched for. It counts if the frame says that it holds that child.
    #[inline]
    fn guess(&self, _word: Swip) -> Option<Swip> {
        None
    }

    /// The frame of the child that a word names, if it is in memory.
    fn find(&self, word: Swip) -> Option<Swip>;

    /// A child comes into a frame: the word its parent is to hold.
    fn enter(&self, home: Swip, frame: Swip) -> Swip;

    /// A child that its parent knows by this word leaves its frame.
    fn leave(&self, word: Swip);
}

/// Pointer swizzling: a parent holds the frames of the children that are in memory.
/// (Graefe et al., "In-Memory Performance for Big Data", VLDB 2014; Leis et al., "LeanStore", ICDE 2018.)
#[derive(Debug)]
pub struct Swizzled;

impl Translation for Swizzled {
    const SWIZZLES: bool = true;

    fn new(_: usize) -> Self {
        Self
    }

    #[inline]
    fn find(&self, word: Swip) -> Option<Swip> {
        word.is_frame().then_some(word)
    }

    #[inline]
    fn enter(&self, _: Swip, frame: Swip) -> Swip {
        frame
    }

    #[inline]
    fn leave(&self, _: Swip) {}
}
