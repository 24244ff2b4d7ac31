//! What it costs until a write is durable.

use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use plinth_core::random::Random;
use plinth_core::units;
use plinth_io::{PAGE, Result};
use rustix::fs::OFlags;

use crate::cell::Latency;
use crate::histogram::Histogram;
use crate::target::{Target, noise, stamp};

/// A way to make 4 KiB durable, and what it takes, write and sync together.
#[derive(Clone, Debug, PartialEq)]
pub struct SyncCost {
    /// The way.
    pub method: &'static str,
    /// How often it was done.
    pub operations: u64,
    /// How often a second.
    pub rate: f64,
    /// How long it takes.
    pub latency: Latency,
}

impl SyncCost {
    /// Measures every way for its share of `time`: 4 KiB that exist are written again, one after the other.
    ///
    /// # Errors
    /// If a write or a sync fails. None is repeated: after a failed sync it is unknown what is durable.
    pub fn measure(target: &Target, time: Duration) -> Result<Vec<Self>> {
        let direct = if target.is_direct() { OFlags::DIRECT } else { OFlags::empty() };
        let ways: [(&str, OFlags, Option<bool>); 5] = [
            ("no sync", direct, None),
            ("fsync", direct, Some(true)),
            ("fdatasync", direct, Some(false)),
            ("O_DSYNC", direct | OFlags::DSYNC, None),
            ("cached + fdatasync", OFlags::empty(), Some(false)),
        ];
        let share = time / u32::try_from(ways.len()).unwrap_or(1);
        ways.into_iter().map(|(method, flags, whole)| cost(target, method, flags, whole, share)).collect()
    }
}

fn cost(target: &Target, method: &'static str, flags: OFlags, whole: Option<bool>, time: Duration) -> Result<SyncCost> {
    let failed = |e| target.failed(&format!("measure {method}"), e);
    let file = target.open(flags).map_err(failed)?;
    let (mut buffers, mut random) = (noise(PAGE, 1).map_err(failed)?, Random(9));
    let pages = (target.byte_len() / PAGE as u64).max(1);
    let mut histogram = Histogram::default();
    let started = Instant::now();
    for page in 0.. {
        for bytes in &mut buffers {
            stamp(bytes, &mut random);
            let begun = Instant::now();
            file.write_all_at(bytes, page % pages * PAGE as u64).map_err(failed)?;
            match whole {
                Some(true) => file.sync_all().map_err(failed)?,
                Some(false) => file.sync_data().map_err(failed)?,
                None => {}
            }
            histogram.record(units::nanoseconds(begun.elapsed()));
        }
        if started.elapsed() >= time {
            break;
        }
    }
    let rate = 1e9 / histogram.mean().max(1.0);
    Ok(SyncCost { method, operations: histogram.count(), rate, latency: histogram.latency() })
}

/// The cheapest way among those that make durable.
pub fn cheapest(costs: &[SyncCost]) -> Option<&SyncCost> {
    costs.iter().filter(|cost| cost.method != "no sync").min_by_key(|cost| (cost.latency.p50, cost.latency.mean))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_is_tried_and_the_cheapest_that_is_durable_found() {
        let dir = tempfile::tempdir().unwrap();
        let target = Target::fill(dir.path(), 16 << 20, Duration::ZERO).unwrap();
        let costs = SyncCost::measure(&target, Duration::ZERO).unwrap();
        assert_eq!(costs.len(), 5);
        assert!(costs.iter().all(|cost| cost.operations > 0 && cost.rate > 0.0 && cost.latency.p50 > 0), "{costs:?}");
        let cost =
            |method, p50| SyncCost { method, operations: 1, rate: 1.0, latency: Latency { p50, ..Latency::default() } };
        let costs = [cost("no sync", 1), cost("fsync", 9), cost("fdatasync", 7)];
        assert_eq!(cheapest(&costs).map(|cost| cost.method), Some("fdatasync"));
        assert_eq!(cheapest(&costs[..1]), None);
    }
}
