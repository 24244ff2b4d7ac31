//! Rivals of the optimistic latch: a mutex, and a reader-writer latch whose readers write its word.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use parking_lot::lock_api::{RawMutex as _, RawRwLock as _};
use parking_lot::{RawMutex, RawRwLock};
use plinth_index::latch::Latch;

/// One at a time.
pub struct Mutex(RawMutex);

// SAFETY: the mutex has one holder; readers are holders too. A free one is zero, which `zero_is_free` looks at.
unsafe impl Latch for Mutex {
    type Ticket = ();
    const IS_OPTIMISTIC: bool = false;

    fn read(&self) {
        self.0.lock();
    }
    fn read_shared(&self) {
        self.0.lock();
    }
    fn check(&self, (): ()) -> bool {
        true
    }
    fn release(&self, (): ()) {
        // SAFETY: the ticket's holder holds it.
        unsafe { self.0.unlock() }
    }
    fn upgrade(&self, (): ()) -> bool {
        true
    }
    fn lock(&self) {
        self.0.lock();
    }
    fn try_lock(&self) -> bool {
        self.0.try_lock()
    }
    fn unlock(&self) {
        // SAFETY: the caller holds it.
        unsafe { self.0.unlock() }
    }
    fn downgrade(&self) {}
}

/// Many readers or one writer. The version tells whether another thread wrote while a reader became the writer.
pub struct ReaderWriter {
    raw: RawRwLock,
    version: AtomicU64,
}

// SAFETY: an exclusive holder is the only one; readers are shared holders, so no thread writes until they release. A free one is
// zero, which `zero_is_free` looks at.
unsafe impl Latch for ReaderWriter {
    type Ticket = u64;
    const IS_OPTIMISTIC: bool = false;

    fn read(&self) -> u64 {
        self.raw.lock_shared();
        self.version.load(Relaxed)
    }
    fn read_shared(&self) -> u64 {
        self.read()
    }
    fn check(&self, _: u64) -> bool {
        true
    }
    fn release(&self, _: u64) {
        // SAFETY: the ticket's holder holds a share.
        unsafe { self.raw.unlock_shared() }
    }
    fn upgrade(&self, ticket: u64) -> bool {
        self.release(ticket);
        if !self.raw.try_lock_exclusive() {
            return false;
        }
        let same = self.version.load(Relaxed) == ticket;
        if !same {
            self.unlock();
        }
        same
    }
    fn lock(&self) {
        self.raw.lock_exclusive();
    }
    fn try_lock(&self) -> bool {
        self.raw.try_lock_exclusive()
    }
    fn unlock(&self) {
        self.version.fetch_add(1, Relaxed);
        // SAFETY: the caller holds it.
        unsafe { self.raw.unlock_exclusive() }
    }
    fn downgrade(&self) -> u64 {
        let version = self.version.fetch_add(1, Relaxed) + 1;
        self.unlock_to_share();
        version
    }
}

impl ReaderWriter {
    fn unlock_to_share(&self) {
        use parking_lot::lock_api::RawRwLockDowngrade as _;
        // SAFETY: the caller holds it exclusively.
        unsafe { self.raw.downgrade() }
    }
}

/// Whether free latches are all zero, as frames that were never used have them.
pub fn zero_is_free() -> bool {
    let zero = |bytes: &[u8]| bytes.iter().all(|b| *b == 0);
    // SAFETY: both are integers.
    let mutex: [u8; size_of::<RawMutex>()] = unsafe { std::mem::transmute(RawMutex::INIT) };
    // SAFETY: as above.
    let lock: [u8; size_of::<RawRwLock>()] = unsafe { std::mem::transmute(RawRwLock::INIT) };
    zero(&mutex) && zero(&lock)
}
