//! The protocol of latches under all interleavings that the memory model allows, few threads at a time.

#[path = "../../src/latch.rs"]
#[allow(dead_code)]
mod latch;

use std::sync::Arc;

use latch::{Hybrid, Latch};
use loom::sync::atomic::{AtomicU64, Ordering::Relaxed};
use loom::thread;

/// A page of two words, which are equal whenever no thread writes.
struct Page {
    latch: Hybrid,
    words: [AtomicU64; 2],
}

impl Page {
    fn new() -> Arc<Self> {
        Arc::new(Self { latch: Hybrid::new(), words: [AtomicU64::new(0), AtomicU64::new(0)] })
    }

    fn read(&self) -> (u64, u64) {
        (self.words[0].load(Relaxed), self.words[1].load(Relaxed))
    }

    /// Adds one; both words were equal, or two write at once.
    fn write(&self) {
        let (a, b) = self.read();
        assert_eq!(a, b, "two writers");
        self.words[0].store(a + 1, Relaxed);
        self.words[1].store(b + 1, Relaxed);
    }
}

fn check(bound: usize, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(bound);
    builder.check(model);
}

#[test]
fn what_was_validated_is_one_state() {
    check(3, || {
        let page = Page::new();
        let writer = thread::spawn({
            let page = Arc::clone(&page);
            move || {
                page.latch.lock();
                page.write();
                page.latch.unlock();
            }
        });
        let ticket = page.latch.read();
        let (a, b) = page.read();
        if page.latch.check(ticket) {
            assert_eq!(a, b);
        }
        writer.join().unwrap();
        assert_eq!(page.read(), (1, 1));
    });
}

#[test]
fn only_one_upgrades() {
    check(3, || {
        let page = Page::new();
        let upgrade = |page: &Page| {
            let ticket = page.latch.read();
            let (a, b) = page.read();
            if page.latch.upgrade(ticket) {
                assert_eq!((a, b), page.read());
                page.write();
                page.latch.unlock();
                1
            } else {
                0
            }
        };
        let other = thread::spawn({
            let page = Arc::clone(&page);
            move || upgrade(&page)
        });
        let written = upgrade(&page) + other.join().unwrap();
        assert!(written > 0);
        assert_eq!(page.read(), (written, written));
    });
}

#[test]
fn shared_holders_keep_writers_out() {
    check(3, || {
        let page = Page::new();
        let writer = thread::spawn({
            let page = Arc::clone(&page);
            move || {
                if page.latch.try_lock() {
                    page.write();
                    let ticket = page.latch.downgrade();
                    let (a, b) = page.read();
                    assert!(!page.latch.check(ticket) || a == b);
                }
            }
        });
        let ticket = page.latch.read_shared();
        let (a, b) = page.read();
        assert_eq!(a, b);
        assert!(page.latch.check(ticket));
        page.latch.release(ticket);
        writer.join().unwrap();
    });
}

#[test]
fn the_only_shared_holder_upgrades() {
    check(3, || {
        let page = Page::new();
        let upgrade = |page: &Page| {
            let ticket = page.latch.read_shared();
            let upgraded = page.latch.upgrade(ticket);
            if upgraded {
                page.write();
                page.latch.unlock();
            }
            u64::from(upgraded)
        };
        let other = thread::spawn({
            let page = Arc::clone(&page);
            move || upgrade(&page)
        });
        let written = upgrade(&page) + other.join().unwrap();
        page.latch.lock();
        assert_eq!(page.read(), (written, written));
        page.latch.unlock();
    });
}
