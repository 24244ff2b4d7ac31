//! What an interner says it takes is what it takes. Tables of 2 MiB and more are not the allocator's: of these, only what
//! they say.
#![allow(unsafe_code, reason = "the allocator that watches")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

use plinth_encoding::Physical;
use plinth_encoding::dictionary::Interner;

use crate::{TEXT, column};

struct Watching;

/// The largest allocation anybody asked for.
pub(crate) static LARGEST: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// Bytes this thread allocated less those it freed, and the most that was since it was last asked.
    static HELD: Cell<(isize, isize)> = const { Cell::new((0, 0)) };
}

fn count(bytes: isize) {
    // A thread that ends has nowhere to count.
    let _ = HELD.try_with(|held| {
        let (now, most) = held.get();
        held.set((now + bytes, most.max(now + bytes)));
    });
}

// SAFETY: every call is passed on to the system's allocator as it is.
unsafe impl GlobalAlloc for Watching {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LARGEST.fetch_max(layout.size(), Ordering::Relaxed);
        count(layout.size() as isize);
        // SAFETY: as promised to us.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: as promised to us.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Watching = Watching;

/// What `run` gives, the bytes that are held on top after it, and the most that were meanwhile.
fn watch<T>(run: impl FnOnce() -> T) -> (T, usize, usize) {
    let (before, _) = HELD.get();
    HELD.set((before, before));
    let done = run();
    let (now, most) = HELD.get();
    (done, (now - before).max(0).cast_unsigned(), (most - before).cast_unsigned())
}

/// Bytes of buffers that are needed while values are looked at, and of what little else there is.
const SLACK: usize = 64 << 10;

fn values(kind: usize, from: usize, to: usize) -> Vec<Option<Vec<u8>>> {
    let value = |i: usize| match kind {
        0 => format!("{i:x}").into_bytes(),
        1 => format!("a value too long for a view, number {i}, {}", "x".repeat(i % 97)).into_bytes(),
        2 if i.is_multiple_of(50) => format!("rarely a long one {i}").into_bytes(),
        2 => format!("{i}").into_bytes(),
        3 => (i as u32).wrapping_mul(0x9e37_79b9).to_le_bytes().to_vec(),
        4 => (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes().to_vec(),
        _ => (i as u16).to_le_bytes().to_vec(),
    };
    (from..to).map(|i| Some(value(i))).collect()
}

fn physical(kind: usize) -> Physical {
    match kind {
        0..=2 => TEXT,
        3 => Physical::Int { width: 4, signed: false },
        4 => Physical::Float { width: 8 },
        _ => Physical::Int { width: 2, signed: true },
    }
}

#[test]
fn no_more_is_held_than_was_said() {
    for kind in 0..6 {
        let columns: Vec<_> =
            (0..16).map(|i| (1 << i) / 2..1 << i).map(|new| values(kind, new.start, new.end)).collect();
        let columns: Vec<_> = columns.iter().map(|values| column(physical(kind), values)).collect();
        let (mut interner, mut held, _) = watch(|| Interner::new(physical(kind)).unwrap());
        for (i, column) in columns.iter().enumerate() {
            // As many again as there were, so that a table grows once at most.
            let (before, footprint, keys) = (interner.memory(), interner.footprint(), interner.key_bytes());
            let (codes, more, most) = watch(|| {
                let mut codes = Vec::with_capacity(column.len);
                interner.intern(column, &mut codes).unwrap();
                codes
            });
            assert_eq!(interner.len(), 1 << i);
            held = held + more - 4 * codes.capacity();
            let said = interner.memory();
            assert!(said.abs_diff(held) < SLACK / 8, "kind {kind}, {} values: {said} of {held}", interner.len());
            let room = footprint + 2 * (interner.key_bytes() - keys) + 4 * codes.capacity() + SLACK;
            assert!(before + most <= room, "kind {kind}, {} values: {before} + {most} of {footprint}", interner.len());
        }
        let (said, footprint) = (interner.memory(), interner.footprint());
        let (sorted, _, most) = watch(|| interner.sort());
        assert_eq!(sorted.len(), 1 << 15);
        assert!(said + most <= footprint + SLACK, "kind {kind}: {said} + {most} of {footprint}");
    }
}

#[test]
fn what_is_held_is_told_by_the_values_alone() {
    for kind in [0, 1, 4] {
        let all = values(kind, 0, 200_000);
        let mut at_once = Interner::new(physical(kind)).unwrap();
        at_once.intern(&column(physical(kind), &all), &mut Vec::new()).unwrap();
        let mut bit_by_bit = Interner::new(physical(kind)).unwrap();
        for part in all.chunks(777) {
            let (part, mut codes) = (column(physical(kind), part), Vec::new());
            let missing = bit_by_bit.find(&part, &mut codes).unwrap();
            bit_by_bit.intern_rows(&part, &missing, &mut codes).unwrap();
        }
        let of = |interner: &Interner| (interner.len(), interner.memory(), interner.footprint());
        assert_eq!(of(&at_once), of(&bit_by_bit));
        // A key and its code, at least; and the larger table it would take next.
        assert!(at_once.memory() > 200_000 * 12 && at_once.footprint() > 2 * 200_000 * 12);
    }
}
