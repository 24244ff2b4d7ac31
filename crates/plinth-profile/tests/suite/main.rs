//! What holds of every profile.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs, reason = "tests")]

mod accounting;
mod browser;
mod machine;
mod render;
mod roofline;
mod sample;
#[cfg(feature = "tracing")]
mod spans;
mod threads;

use std::sync::Arc;
use std::time::Duration;

use plinth_profile::{Clock, ManualClock, Profile, Profiler, ProfilerOptions, Row};

/// A profiler of one thread whose clock stands still.
fn manual() -> (Arc<ManualClock>, Profiler) {
    let clock = Arc::new(ManualClock::default());
    let profiler = on(&clock, |_| {});
    (clock, profiler)
}

fn on(clock: &Arc<ManualClock>, change: impl FnOnce(&mut ProfilerOptions)) -> Profiler {
    let mut options = ProfilerOptions {
        title: "test".into(),
        threads: 1,
        clock: Clock::Manual(clock.clone()),
        ..ProfilerOptions::default()
    };
    change(&mut options);
    Profiler::start(options)
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap()
}

/// Names by depth, with the time outside of and with what is below.
fn tree(profile: &Profile) -> Vec<(usize, &str, u64, u64)> {
    profile.rows.iter().map(|row| (row.depth, row.name.as_str(), nanos(row.time), nanos(row.total))).collect()
}

fn row<'a>(rows: &'a [Row], name: &str) -> &'a Row {
    rows.iter().find(|row| row.name == name).unwrap_or_else(|| panic!("no {name} in {rows:?}"))
}

/// What must be true whatever was recorded.
fn check(profile: &Profile) {
    for (at, row) in profile.rows.iter().enumerate() {
        let children = || profile.rows.iter().filter(|child| child.parent == Some(at));
        assert_eq!(row.total, row.time + children().map(|child| child.total).sum::<Duration>(), "{row:?}");
        assert!(row.parent.is_none_or(|parent| parent < at), "{row:?}");
        assert_eq!(row.depth, profile.above(row).count());
        assert!((0.0..=1.0).contains(&row.share) && row.share <= row.total_share && row.total_share <= 1.0 + 1e-9);
        let siblings = profile.rows.iter().filter(|other| other.parent == row.parent && other.anchor == row.anchor);
        assert_eq!(siblings.count(), 1, "{row:?} stands twice");
    }
    let sum: Duration = profile.rows.iter().map(|row| row.time).sum();
    assert_eq!(sum, profile.workers.iter().map(|worker| worker.time).sum::<Duration>());
    assert_eq!(profile.named, profile.rows.iter().map(|row| row.cpu).sum::<Duration>());
    assert_eq!(profile.named, profile.workers.iter().map(|worker| worker.cpu).sum::<Duration>());
    if let Some(cpu) = profile.cpu {
        assert_eq!(cpu, profile.named + profile.other);
        let most = profile.wall * u32::try_from(profile.threads).unwrap();
        assert_eq!(profile.idle, most.saturating_sub(cpu));
    }
    if !profile.rows.is_empty() {
        let shares: f64 = profile.table().iter().map(|row| row.share).sum();
        assert!((shares - 1.0).abs() < 1e-9 || profile.whole().is_zero(), "{shares}");
    }
    let flat = profile.flat();
    assert_eq!(flat.iter().map(|row| row.time).sum::<Duration>(), sum);
    assert!(flat.iter().all(|row| row.time <= row.total && row.total <= sum));
}
