//! Requests by threads that wait for one each.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use plinth_core::random::Random;
use plinth_core::units;
use plinth_io::{Extent, Result};

use crate::backend::{Backend, Window};
use crate::cell::{Cell, Order, Row};
use crate::fio;
use crate::histogram::Histogram;
use crate::target::{Target, noise, pieces, stamp};

/// A thread for each request in flight, each reading or writing at positions: past the page cache or through it.
#[derive(Clone, Copy, Debug)]
pub struct Threads {
    /// Whether to pass by the page cache.
    pub direct: bool,
}

impl Backend for Threads {
    fn name(&self) -> &str {
        if self.direct { "direct" } else { "cached" }
    }

    fn run(&self, cell: &Cell, target: &Target, window: Window, stop: &AtomicBool) -> Result<Row> {
        let file = target.open_direct(self.direct)?;
        let offsets = Offsets::new(cell, target);
        let buffers = buffers(cell).map_err(|e| target.failed("get memory to measure", e))?;
        let clock = Clock::start(window);
        let counted = std::thread::scope(|scope| {
            let mut workers = Vec::new();
            for (i, buffer) in buffers.into_iter().enumerate() {
                let random = Random(window.seed.wrapping_add(i as u64));
                let (file, offsets, clock) = (&file, &offsets, &clock);
                let work = move || worker(file, offsets, random, buffer, clock, stop);
                workers.push(std::thread::Builder::new().stack_size(128 << 10).spawn_scoped(scope, work));
            }
            let mut tally = Tally::default();
            let mut failure = None;
            for worker in workers {
                let worker = worker.inspect_err(|_| stop_all(&clock));
                let died = || std::io::Error::other("a thread of the probe ended early");
                match worker.and_then(|worker| worker.join().unwrap_or_else(|_| Err(died()))) {
                    Ok(part) => tally.merge(&part),
                    Err(e) => failure = Some(e),
                }
            }
            failure.map_or(Ok(tally), Err)
        });
        let tally = counted.map_err(|e| target.failed(&format!("measure {cell}"), e))?;
        Ok(tally.row(*cell, self.name(), &clock, fio::command_line(cell, target, self.direct, window)))
    }
}

/// Memory for every request in flight; noise if any writes.
pub(crate) fn buffers(cell: &Cell) -> std::io::Result<Vec<Extent>> {
    let size = usize::try_from(cell.size).map_err(|_| std::io::Error::from(std::io::ErrorKind::OutOfMemory))?;
    if cell.reads < 100 { noise(size, cell.depth) } else { pieces(size, cell.depth) }
}

fn stop_all(clock: &Clock) {
    clock.cancelled.store(true, Ordering::Relaxed);
}

fn worker(
    file: &File,
    offsets: &Offsets,
    mut random: Random,
    mut buffer: Extent,
    clock: &Clock,
    stop: &AtomicBool,
) -> std::io::Result<Tally> {
    let mut tally = Tally::default();
    loop {
        let begun = Instant::now();
        let over = begun >= clock.end && !tally.is_empty();
        if over || stop.load(Ordering::Relaxed) || clock.cancelled.load(Ordering::Relaxed) {
            return Ok(tally);
        }
        let (offset, read) = offsets.next(&mut random);
        // What is written is made before the clock of the request runs.
        let begun = if read {
            begun
        } else {
            stamp(&mut buffer, &mut random);
            Instant::now()
        };
        let moved = if read { file.read_at(&mut buffer, offset) } else { file.write_at(&buffer, offset) };
        match moved {
            Ok(n) => tally.record(clock, begun, Instant::now(), n as u64),
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => {
                stop_all(clock);
                return Err(e);
            }
        }
    }
}

/// Where the next request goes, and whether it reads.
pub(crate) struct Offsets {
    cell: Cell,
    blocks: u64,
    position: AtomicU64,
}

impl Offsets {
    pub(crate) fn new(cell: &Cell, target: &Target) -> Self {
        Self { cell: *cell, blocks: (target.byte_len() / cell.size).max(1), position: AtomicU64::new(0) }
    }

    pub(crate) fn next(&self, random: &mut Random) -> (u64, bool) {
        let block = match self.cell.order {
            Order::Sequential => self.position.fetch_add(1, Ordering::Relaxed) % self.blocks,
            Order::Random => random.below(self.blocks),
        };
        (block * self.cell.size, random.below(100) < u64::from(self.cell.reads))
    }
}

/// When counting begins and ends.
pub(crate) struct Clock {
    from: Instant,
    pub(crate) end: Instant,
    cancelled: AtomicBool,
}

impl Clock {
    pub(crate) fn start(window: Window) -> Self {
        let from = Instant::now() + window.warm_up;
        Self { from, end: from + window.measured, cancelled: AtomicBool::new(false) }
    }
}

/// What completed. Requests that were begun before the window and completed within count, those that complete after it
/// don't: at any depth as many are gained as lost. Only where none completed in time do those after it count, over the
/// time they took.
#[derive(Default)]
pub(crate) struct Tally {
    within: Histogram,
    bytes: u64,
    late: Histogram,
    late_bytes: u64,
    last: Option<Instant>,
}

impl Tally {
    pub(crate) fn record(&mut self, clock: &Clock, begun: Instant, done: Instant, bytes: u64) {
        let took = units::nanoseconds(done.saturating_duration_since(begun));
        if done < clock.from {
            return;
        }
        if done < clock.end {
            self.within.record(took);
            self.bytes += bytes;
        } else {
            self.late.record(took);
            self.late_bytes += bytes;
        }
        self.last = self.last.max(Some(done));
    }

    /// Whether nothing completed yet, not even late.
    pub(crate) fn is_empty(&self) -> bool {
        self.last.is_none()
    }

    fn merge(&mut self, other: &Self) {
        self.within.merge(&other.within);
        self.late.merge(&other.late);
        self.bytes += other.bytes;
        self.late_bytes += other.late_bytes;
        self.last = self.last.max(other.last);
    }

    pub(crate) fn row(self, cell: Cell, engine: &str, clock: &Clock, command: String) -> Row {
        let until = if self.within.count() > 0 { Some(clock.end) } else { self.last };
        // Stopped early: until the last that was done.
        let until = until.map(|until| self.last.map_or(until, |last| until.min(last.max(clock.from))));
        let elapsed = until.map_or(Duration::ZERO, |until| until.saturating_duration_since(clock.from));
        let (counted, bytes) =
            if self.within.count() > 0 { (self.within, self.bytes) } else { (self.late, self.late_bytes) };
        let seconds = elapsed.as_secs_f64().max(1e-9);
        Row {
            cell,
            engine: engine.to_owned(),
            command,
            operations: counted.count(),
            iops: units::to_f64(counted.count()) / seconds,
            bandwidth: units::to_f64(bytes) / seconds,
            latency: counted.latency(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sanity;

    #[test]
    fn threads_measure_every_mix_within_the_file_and_keep_the_law_of_bandwidth() {
        let dir = tempfile::tempdir().unwrap();
        let target = Target::fill(dir.path(), 16 << 20, Duration::ZERO).unwrap();
        let (warm_up, measured) = (Duration::from_millis(5), Duration::from_millis(40));
        let before = std::fs::read(target.path()).unwrap();
        let changed = |reads| {
            for direct in [target.is_direct(), false] {
                for (order, size) in [(Order::Random, 4 << 10), (Order::Sequential, 1 << 20)] {
                    let cell = Cell { order, reads, size, depth: 4 };
                    let window = Window { warm_up, measured, seed: 1 };
                    let row = Threads { direct }.run(&cell, &target, window, &AtomicBool::new(false)).unwrap();
                    assert!(row.operations > 0, "{cell}");
                    assert!(row.latency.p50 <= row.latency.p99 && row.latency.p99 <= row.latency.p999);
                    assert!(
                        !sanity::broken(&row).iter().any(|law| matches!(law, sanity::Law::Bandwidth(_))),
                        "{row:?}"
                    );
                }
            }
            std::fs::read(target.path()).unwrap() != before
        };
        assert!(!changed(100), "reads leave the file alone");
        assert!(changed(50), "writes don't");
        assert_eq!(std::fs::metadata(target.path()).unwrap().len(), 16 << 20);
    }

    #[test]
    fn a_window_counts_what_completes_within_it() {
        let window = Window { warm_up: Duration::from_millis(100), measured: Duration::from_millis(100), seed: 0 };
        let clock = Clock::start(window);
        let at = |ms| clock.from + Duration::from_millis(ms) - Duration::from_millis(100);
        let mut tally = Tally::default();
        for (begun, done) in [(0, 50), (50, 150), (100, 150), (150, 199), (150, 250)] {
            tally.record(&clock, at(begun), at(done), 4096);
        }
        let row = tally.row(Cell::LONE_READ, "model", &clock, String::new());
        assert_eq!(row.operations, 3);
        assert!((row.iops - 30.0).abs() < 0.1, "{}", row.iops);
        assert!((row.bandwidth / row.iops - 4096.0).abs() < 1e-6);
        let mut slow = Tally::default();
        slow.record(&clock, at(0), at(600), 4096);
        let row = slow.row(Cell::LONE_READ, "model", &clock, String::new());
        assert_eq!(row.operations, 1, "too slow for the window, and told all the same");
        assert!((row.iops - 2.0).abs() < 0.01, "{}", row.iops);
        assert_eq!(Tally::default().row(Cell::LONE_READ, "model", &clock, String::new()).operations, 0);
    }

    #[test]
    fn a_stopped_cell_ends_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let target = Target::fill(dir.path(), 16 << 20, Duration::ZERO).unwrap();
        let window = Window { warm_up: Duration::ZERO, measured: Duration::from_secs(3_600), seed: 1 };
        let row = Threads { direct: false }.run(&Cell::KEY, &target, window, &AtomicBool::new(true)).unwrap();
        assert_eq!(row.operations, 0);
    }
}
