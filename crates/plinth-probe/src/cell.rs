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
        let (size, unit) = if self.size < 1 << 20 { (self.size >> 10, "KiB") } else { (self.size >> 20, "MiB") };
        write!(f, "{} {size} {unit} x {}", self.mix(), self.depth)
    }
}

/// All cells, most telling first: time may be short.
///
/// After the four headlines come the random reads that show the knees, then three cells of every other mix, then the rest
/// of the random reads, then all else.
pub fn grid() -> Vec<Cell> {
    let mixes = SHARES.map(|reads| (Order::Random, reads)).into_iter();
    let mixes = mixes.chain([(Order::Sequential, 100), (Order::Sequential, 0)]);
    let mut rest: Vec<Cell> = Vec::new();
    for (order, reads) in mixes {
        for size in SIZES {
            rest.extend(DEPTHS.map(|depth| Cell { order, reads, size, depth }));
        }
    }
    rest.retain(|cell| !Cell::HEADLINES.contains(cell));
    rest.sort_by_key(rank);
    Cell::HEADLINES.into_iter().chain(rest).collect()
}

fn rank(cell: &Cell) -> u8 {
    let (kib, reads) = (cell.size >> 10, (cell.order, cell.reads) == (Order::Random, 100));
    let shows_knees = matches!(kib, 4 | 64 | 256 | 1024) && cell.depth <= 16;
    let corner = matches!((kib, cell.depth), (4, 1 | 64) | (256, 4));
    match (reads, shows_knees, corner) {
        (true, true, _) => 0,
        (false, _, true) => 1,
        (true, false, _) => 2,
        (false, _, false) => 3,
    }
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
        // What shows the knees comes first, then something of every mix.
        assert!(cells[4..15].iter().all(|c| (c.order, c.reads) == (Order::Random, 100)));
        assert!(cells[4..15].contains(&Cell::KEY));
        let mixes: std::collections::HashSet<_> = cells[..30].iter().map(Cell::mix).collect();
        assert_eq!(mixes.len(), 6);
        assert_eq!(Cell::SEQUENTIAL_READ.to_string(), "sequential read 1 MiB x 4");
        assert_eq!(Cell::DEEP_READ.to_string(), "random read 4 KiB x 64");
        assert_eq!(Cell { reads: 70, ..Cell::KEY }.mix(), "random 70:30");
    }
}
