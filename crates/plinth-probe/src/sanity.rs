//! Two laws that no measurement may break: bandwidth = IOPS x size, and Little's, depth = IOPS x latency.

use std::fmt;

use plinth_core::units;

use crate::cell::Row;

/// A law that a row breaks, and by how much.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Law {
    /// Bandwidth = IOPS x size: requests were shorter, or counted twice. The factor between both sides.
    Bandwidth(f64),
    /// Depth = IOPS x mean latency (Little 1961): fewer requests were in flight than said, because the thread that issued them had
    /// no time, or more. The depth that there was.
    Little(f64),
}

/// Requests are all of one size: what differs are roundings of the engine.
const BANDWIDTH_TOLERANCE: f64 = 0.02;
/// Time between completion and the next submission belongs to no request.
const LITTLE_TOLERANCE: f64 = 0.2;

impl fmt::Display for Law {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bandwidth(factor) => write!(f, "bandwidth is {factor:.2} x IOPS x size"),
            Self::Little(depth) => write!(f, "{depth:.1} in flight"),
        }
    }
}

/// The laws that a row breaks. One in which nothing completed breaks none.
pub fn broken(row: &Row) -> Vec<Law> {
    if row.operations == 0 {
        return Vec::new();
    }
    let factor = row.bandwidth / (row.iops * units::to_f64(row.cell.size)).max(f64::MIN_POSITIVE);
    let depth = row.iops * units::to_f64(row.latency.mean) / 1e9;
    let mut laws = Vec::new();
    if (factor - 1.0).abs() > BANDWIDTH_TOLERANCE {
        laws.push(Law::Bandwidth(factor));
    }
    if (depth / f64::from(row.cell.depth) - 1.0).abs() > LITTLE_TOLERANCE {
        laws.push(Law::Little(depth));
    }
    laws
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::cell::{Cell, Latency};

    /// A row that breaks no law.
    pub(crate) fn lawful(cell: Cell, iops: f64) -> Row {
        let mean = units::whole(f64::from(cell.depth) / iops * 1e9);
        let latency = Latency { mean, p50: mean, p90: mean, p99: mean * 2, p999: mean * 3 };
        let (engine, command) = ("model".to_owned(), String::new());
        Row { cell, engine, command, operations: 1_000, iops, bandwidth: iops * units::to_f64(cell.size), latency }
    }

    #[test]
    fn each_law_is_noticed_when_broken_and_only_then() {
        let row = lawful(Cell::DEEP_READ, 60_000.0);
        assert!(broken(&row).is_empty());
        let half = Row { bandwidth: row.bandwidth / 2.0, ..row.clone() };
        assert_eq!(broken(&half), [Law::Bandwidth(0.5)]);
        let starved = Row { latency: Latency { mean: row.latency.mean / 2, ..row.latency }, ..row.clone() };
        assert!(matches!(broken(&starved)[..], [Law::Little(depth)] if (depth - 32.0).abs() < 0.1));
        assert_eq!(broken(&starved)[0].to_string(), "32.0 in flight");
        let near = Row { iops: row.iops * 1.01, ..row.clone() };
        assert!(broken(&near).is_empty());
        assert!(broken(&Row { operations: 0, iops: 0.0, ..row }).is_empty());
    }
}
