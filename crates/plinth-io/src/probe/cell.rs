//! What is measured: cells of size x depth x share of reads, most telling first, and what came out of each.

use std::fmt;

/// Request sizes in bytes.
pub const SIZES: [u64; 6] = [4 << 10, 16 << 10, 64 << 10, 256 << 10, 512 << 10, 1 << 20];
/// Requests in flight.
pub const DEPTHS: [u32; 4] = [1, 4, 16, 64];
/// Percent of requests that read.
const SHARES: [u8; 4] = [100, 70, 50, 0];

/// Where requests go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Order {
    /// Each begins where the one before ended.
    Sequential,
    /// Each begins at a random multiple of its size.
    Random,
}

/// One way to use a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Cell {
    /// Where requests go.
    pub order: Order,
    /// Percent of requests that read; the others write.
    pub reads: u8,
    /// Bytes a request.
    pub size: u64,
    /// Requests in flight.
    pub depth: u32,
}

impl Cell {
    /// Sequential reads of 1 MiB, 4 in flight.
    pub const SEQUENTIAL_READ: Self = Self { order: Order::Sequential, reads: 100, size: 1 << 20, depth: 4 };
    /// Sequential writes of 1 MiB, 4 in flight.
    pub const SEQUENTIAL_WRITE: Self = Self { order: Order::Sequential, reads: 0, size: 1 << 20, depth: 4 };
    /// Random reads of 4 KiB, 64 in flight: what the device can do at once.
    pub const DEEP_READ: Self = Self { order: Order::Random, reads: 100, size: 4 << 10, depth: 64 };
    /// Random reads of 4 KiB, one at a time: its latency.
    pub const LONE_READ: Self = Self { order: Order::Random, reads: 100, size: 4 << 10, depth: 1 };
    /// Random reads of 256 KiB, 4 in flight, about what a scan does: repeated to see drift and noise.
    pub const KEY: Self = Self { order: Order::Random, reads: 100, size: 256 << 10, depth: 4 };
    /// The four a person wants first.
    pub const HEADLINES: [Self; 4] = [Self::SEQUENTIAL_READ, Self::SEQUENTIAL_WRITE, Self::DEEP_READ, Self::LONE_READ];

    /// What is done: `random read`, `random 70:30`.
    pub fn mix(&self) -> String {
        let order = match self.order {
            Order::Sequential => "sequential",
            Order::Random => "random",
        };
        match self.reads {
            100 => format!("{order} read"),
            0 => format!("{order} write"),
            reads => format!("{order} {reads}:{}", 100 - reads.min(100)),
        }
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} KiB x {}", self.mix(), self.size >> 10, self.depth)
    }
}

/// All cells, most telling first: time may be short.
///
/// After the four headlines come random reads, from which the knees are taken; then the corners and the middle of every
/// other mix; then the rest.
pub fn grid() -> Vec<Cell> {
    let mixes = SHARES.map(|reads| (Order::Random, reads)).into_iter();
    let mixes: Vec<_> = mixes.chain([(Order::Sequential, 100), (Order::Sequential, 0)]).collect();
    let mut cells = Cell::HEADLINES.to_vec();
    for few in [true, false] {
        for &(order, reads) in &mixes {
            let all = (order, reads) == (Order::Random, 100);
            for &size in &SIZES {
                for &depth in &DEPTHS {
                    let cell = Cell { order, reads, size, depth };
                    let telling = matches!(size >> 10, 4 | 64 | 1024) && matches!(depth, 1 | 16);
                    if (!few || all || telling) && !cells.contains(&cell) {
                        cells.push(cell);
                    }
                }
            }
        }
    }
    cells
}

/// Latencies in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Latency {
    pub mean: u64,
    pub p50: u64,
    pub p90: u64,
    pub p99: u64,
    pub p999: u64,
}

/// What a cell came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The cell.
    pub cell: Cell,
    /// Who measured it.
    pub engine: String,
    /// The command of fio that measures the same.
    pub command: String,
    /// Requests that completed.
    pub operations: u64,
    /// Requests a second.
    pub iops: f64,
    /// Bytes a second.
    pub bandwidth: f64,
    /// From a request's submission to its completion.
    pub latency: Latency,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grid_has_every_cell_once_and_begins_with_the_headlines() {
        let cells = grid();
        assert_eq!(cells.len(), SIZES.len() * DEPTHS.len() * (SHARES.len() + 2));
        let distinct: std::collections::HashSet<_> = cells.iter().collect();
        assert_eq!(distinct.len(), cells.len());
        assert_eq!(cells[..4], Cell::HEADLINES);
        // Random reads are complete before anything else but headlines is begun.
        assert!(cells[4..26].iter().all(|c| (c.order, c.reads) == (Order::Random, 100)));
        assert!(cells.contains(&Cell::KEY));
        assert_eq!(Cell::DEEP_READ.to_string(), "random read 4 KiB x 64");
        assert_eq!(Cell { reads: 70, ..Cell::KEY }.mix(), "random 70:30");
    }
}
