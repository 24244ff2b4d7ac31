//! The ring that Plinth reads through, as a backend.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use plinth_core::random::Random;
use plinth_io::{Direction, Result, Ring, Transfer};

use crate::backend::{Backend, Window};
use crate::cell::{Cell, Row};
use crate::fio;
use crate::target::{Target, stamp};
use crate::threads::{Clock, Offsets, Tally, buffers};

/// One thread and one ring with registered huge pages, past the page cache where the file system allows it.
#[derive(Clone, Copy, Debug)]
pub struct Uring;

impl Backend for Uring {
    fn name(&self) -> &str {
        "uring"
    }

    fn run(&self, cell: &Cell, target: &Target, window: Window, stop: &AtomicBool) -> Result<Row> {
        let direct = target.is_direct();
        let file = Arc::new(target.open_direct(direct)?);
        let failed = |e| target.failed(&format!("measure {cell}"), e);
        let size = usize::try_from(cell.size).unwrap_or(0);
        let mut free = buffers(cell).map_err(failed)?;
        let mut ring = Ring::new(size).map_err(failed)?;
        if let Some(extent) = free.first() {
            // Where memory can't be pinned, each request pins its own.
            let _ = ring.register(extent.slab());
        }
        let (offsets, mut random) = (Offsets::new(cell, target), Random(window.seed));
        let (mut tally, mut failure) = (Tally::default(), None);
        let clock = Clock::start(window);
        loop {
            let over = Instant::now() >= clock.end && !tally.is_empty();
            let over = over || failure.is_some() || stop.load(Ordering::Relaxed);
            if over && ring.transfers() == 0 {
                break;
            }
            if over {
                free.clear();
            }
            for mut extent in free.drain(..) {
                let (offset, read) = offsets.next(&mut random);
                let direction = if read { Direction::Read } else { Direction::Write };
                if !read {
                    stamp(&mut extent, &mut random);
                }
                let token = Instant::now();
                ring.start(Transfer { file: Arc::clone(&file), offset, extent, len: size, direction, token });
            }
            let done = |transfer: Transfer<Instant>, result: std::io::Result<usize>| {
                match result {
                    Ok(n) => tally.record(&clock, transfer.token, Instant::now(), n as u64),
                    Err(e) => failure = Some(e),
                }
                free.push(transfer.extent);
            };
            ring.turn(true, done).map_err(failed)?;
        }
        match failure {
            Some(e) => Err(failed(e)),
            None => Ok(tally.row(*cell, self.name(), &clock, fio::command_line(cell, target, direct, window))),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::cell::Order;
    use crate::sanity::{Law, broken};

    #[test]
    fn a_ring_measures_every_mix_and_fills_its_depth() {
        let dir = tempfile::tempdir().unwrap();
        let target = Target::fill(dir.path(), 16 << 20, Duration::ZERO).unwrap();
        if let Err(e) = Ring::<()>::new(4096) {
            eprintln!("skipped: no ring here: {e}");
            return;
        }
        let before = std::fs::read(target.path()).unwrap();
        let (warm_up, measured) = (Duration::from_millis(5), Duration::from_millis(40));
        for (order, reads, size, depth) in
            [(Order::Random, 100, 4 << 10, 64), (Order::Sequential, 100, 1 << 20, 4), (Order::Random, 50, 64 << 10, 16)]
        {
            let unchanged = reads == 100;
            let cell = Cell { order, reads, size, depth };
            let window = Window { warm_up, measured, seed: 1 };
            let row = Uring.run(&cell, &target, window, &AtomicBool::new(false)).unwrap();
            assert!(row.operations > 0 && row.latency.p50 > 0, "{row:?}");
            assert!(!broken(&row).iter().any(|law| matches!(law, Law::Bandwidth(_))), "{row:?}");
            assert_eq!(std::fs::read(target.path()).unwrap() == before, unchanged, "{cell}");
        }
        assert_eq!(std::fs::metadata(target.path()).unwrap().len(), 16 << 20);
        let window = Window { warm_up, measured: Duration::from_secs(3_600), seed: 1 };
        assert_eq!(Uring.run(&Cell::KEY, &target, window, &AtomicBool::new(true)).unwrap().operations, 0);
    }
}
