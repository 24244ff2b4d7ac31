//! Where more stops helping.

use crate::cell::{Cell, Order, Row};

/// The points from which on a larger request, or more of them in flight, cost latency and bring little.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Knees {
    /// Most bytes a second that random reads reached.
    pub peak: f64,
    /// Bytes a request, of the cheapest cell that reaches 90 % of the peak.
    pub size: u64,
    /// Its requests in flight.
    pub depth: u32,
    /// Its bytes a second.
    pub bandwidth: f64,
    /// The smallest depth at which the p99 latency of random 4 KiB reads is twice that of one at a time; none if that
    /// was not reached.
    pub p99_doubles: Option<u32>,
}

const ENOUGH: f64 = 0.9;

/// Finds the knees among random reads; none if there are no such rows.
///
/// Cheapest is fewest bytes in flight, which is how long a request waits behind others; of equals the larger requests,
/// which cost less CPU a byte.
pub fn knees(rows: &[Row]) -> Option<Knees> {
    let reads = || rows.iter().filter(|row| row.cell.order == Order::Random && row.cell.reads == 100);
    let peak = reads().map(|row| row.bandwidth).max_by(f64::total_cmp).filter(|peak| *peak > 0.0)?;
    let in_flight = |cell: &Cell| cell.size * u64::from(cell.depth);
    let knee = reads()
        .filter(|row| row.bandwidth >= ENOUGH * peak)
        .min_by_key(|row| (in_flight(&row.cell), row.cell.depth))?;
    let lone = reads().find(|row| row.cell == Cell::LONE_READ).map(|row| row.latency.p99);
    let p99_doubles = lone.and_then(|lone| {
        let small = reads().filter(|row| row.cell.size == Cell::LONE_READ.size && row.cell.depth > 1);
        small.filter(|row| row.latency.p99 >= 2 * lone).map(|row| row.cell.depth).min()
    });
    Some(Knees { peak, size: knee.cell.size, depth: knee.cell.depth, bandwidth: knee.bandwidth, p99_doubles })
}

#[cfg(test)]
mod tests {
    use plinth_core::units;

    use super::*;
    use crate::cell::{DEPTHS, SIZES};
    use crate::sanity::tests::lawful;

    /// A device that takes 100 us for any request, transfers 2 GB/s and works on 16 requests at once.
    fn model() -> Vec<Row> {
        let mut rows = Vec::new();
        for size in SIZES {
            for depth in DEPTHS {
                let cell = Cell { order: Order::Random, reads: 100, size, depth };
                let iops = f64::from(depth.min(16)) / 100e-6;
                rows.push(lawful(cell, iops.min(2e9 / units::to_f64(size))));
            }
        }
        rows
    }

    #[test]
    fn the_knee_is_the_cheapest_cell_near_the_peak() {
        let mut rows = model();
        // Neither writes nor sequential reads count, however fast.
        rows.push(lawful(Cell { size: 4096, ..Cell::SEQUENTIAL_READ }, 9e9));
        rows.push(lawful(Cell { reads: 0, ..Cell::KEY }, 9e9));
        let knees = knees(&rows).unwrap();
        assert!((knees.peak / 2e9 - 1.0).abs() < 1e-9);
        // 256 KiB in flight reach the peak: 64 KiB x 4 (and 16 KiB x 16), or 256 KiB x 1, which is larger.
        assert_eq!((knees.size, knees.depth), (256 << 10, 1));
        assert_eq!(knees.p99_doubles, Some(64), "16 at once are served in parallel");
    }

    #[test]
    fn without_reads_there_is_no_knee_and_flat_latency_never_doubles() {
        assert_eq!(knees(&[]), None);
        assert_eq!(knees(&[lawful(Cell::SEQUENTIAL_WRITE, 10.0)]), None);
        let mut still = lawful(Cell::DEEP_READ, 10.0);
        (still.iops, still.bandwidth) = (0.0, 0.0);
        assert_eq!(knees(&[still]), None);
        let flat: Vec<_> = model().into_iter().filter(|row| row.cell.depth <= 16).collect();
        assert_eq!(knees(&flat).unwrap().p99_doubles, None);
    }
}
