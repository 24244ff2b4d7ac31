//! One line: what bounds a query, and what would help.

use std::time::Duration;

use crate::anchor::{Sleeps, Stage};
use crate::limits::{Bound, Limit, Origin, Resource};
use crate::profile::Profile;
use crate::stores::StoreTraffic;
use plinth_core::units::{count_of, counted, percent, rate, to_f64};

/// A limit so near is what bounds the query.
const NEAR: f64 = 0.75;

/// Beyond, the limit was measured wrongly, or something else than the device answered.
const BEYOND: f64 = 1.05;

/// Threads are busy that are at work so much of the time.
const BUSY: f64 = 0.6;

pub(super) fn verdict(profile: &Profile, limits: &[Limit]) -> (Bound, String) {
    let reached = |resource| limits.iter().find(|limit| limit.resource == resource).and_then(|limit| limit.reached);
    let near = |resource| reached(resource).filter(|reached| *reached >= NEAR);
    if profile.wall.is_zero() || profile.rows.is_empty() {
        return (Bound::Unknown, "nothing was recorded that would tell".to_owned());
    }
    let device = near(Resource::Device).map(|reached| (reached, "reads"));
    if let Some((reached, verb)) = device.or(near(Resource::DeviceWrite).map(|reached| (reached, "writes"))) {
        let help = match verb {
            _ if reached > BEYOND => "more than was measured: measure the device again, or a cache answered",
            "reads" => "read less (fewer columns, filters on sorted columns, --compact) or keep the data in memory",
            _ => "write less (--compact) or to a faster device",
        };
        return (
            Bound::Device,
            format!("device-bound: {verb} at {} of what the device can do; {help}", percent(reached)),
        );
    }
    if let Some(reached) = near(Resource::Memory) {
        let help = "move fewer bytes: fewer or narrower columns, filters before what copies";
        return (Bound::Memory, format!("memory-bound: {} of what memory can do; {help}", percent(reached)));
    }
    let threads = to_f64(count_of(profile.threads.max(1)));
    let busy = reached(Resource::Processor).unwrap_or(1.0);
    let waiting = (profile.waited + profile.paused).as_secs_f64() / (profile.wall.as_secs_f64() * threads);
    if busy >= BUSY {
        // What was measured on the spot stands for no encoding in particular.
        let decode =
            limits.iter().find(|limit| limit.resource == Resource::Decode && limit.origin == Some(Origin::Probe));
        return busiest(profile, decode.and_then(|limit| limit.reached));
    }
    let far = profile.stores.filter(|stores| stores.requests > 0);
    // Of the time that threads did not work.
    if waiting >= (1.0 - busy) / 2.0 {
        if let Some(stores) = far {
            return (Bound::Store, store(stores, profile.wall));
        }
        let at =
            reached(Resource::Device).map_or(String::new(), |reached| format!(" at {} of its speed", percent(reached)));
        let help =
            "more or larger requests in flight (plinth probe finds how many), more threads, or data in the page cache";
        return (Bound::Latency, format!("latency-bound: threads wait for storage that works{at}; {help}"));
    }
    let ready = profile.rows.iter().filter(|row| row.anchor.stage.sleeps() == Sleeps::Never);
    let ready: Duration = ready.map(|row| row.time.saturating_sub(row.cpu)).sum();
    let ready = ready.as_secs_f64() / (profile.wall.as_secs_f64() * threads);
    if ready >= (1.0 - busy) / 2.0 {
        let help = "a quiet machine: the times above are not the query's alone";
        return (
            Bound::Crowded,
            format!(
                "crowded: others had the processors {} of the time that threads were ready; {help}",
                percent(ready)
            ),
        );
    }
    if let Some(stores) = far {
        return (Bound::Store, store(stores, profile.wall));
    }
    let idle = percent(1.0 - busy);
    let help = "more row groups to share out, or fewer steps that one thread must do alone";
    (Bound::Parallelism, format!("not busy: threads have nothing to do {idle} of the time; {help}"))
}

/// What is said of a query that waits for object stores.
fn store(stores: StoreTraffic, wall: Duration) -> String {
    let (requests, speed) = (counted(stores.requests, "request"), rate(stores.bytes, wall));
    let help = match stores.drive_hits {
        0 => "fewer columns or files, or the same question again: what is read twice stays on the drive",
        _ => "fewer columns or files; the rest came from the drive",
    };
    format!("store-bound: threads wait for an object store: {requests}, {speed}; {help}")
}

/// The stage that has most of the processor time, all its parts taken together.
fn busiest(profile: &Profile, decode: Option<f64>) -> (Bound, String) {
    let of = |stage: Stage| -> Duration {
        match stage {
            Stage::Other => profile.other,
            _ => profile.rows.iter().filter(|row| row.anchor.stage == stage).map(|row| row.cpu).sum(),
        }
    };
    let stage = Stage::ALL.iter().copied().rev().max_by_key(|stage| of(*stage)).unwrap_or(Stage::Other);
    let whole = (profile.named + profile.other).as_secs_f64();
    let share = percent(if whole > 0.0 { of(stage).as_secs_f64() / whole } else { 0.0 });
    // Which part, where one stands out.
    let rows = profile.flat();
    let parts = rows.iter().filter(|row| row.anchor.stage == stage);
    let part = parts.max_by_key(|row| row.cpu).map_or_else(String::new, |row| row.name.clone());
    let text = match stage {
        Stage::Decode => {
            let reached =
                decode.map_or(String::new(), |reached| format!(", {} of what all threads could", percent(reached)));
            format!(
                "decode-bound: {share} of the processor time decodes, mostly {part}{reached}; fewer columns, filters that leave fewer blocks, or --fast"
            )
        }
        Stage::Filter => {
            format!("filter-bound: {share} of the processor time, mostly {part}; sort by that column, or use postings")
        }
        Stage::Operator => {
            format!(
                "operator-bound: {share} of the processor time is the engine's, mostly {part}; fewer rows or columns that reach it"
            )
        }
        Stage::Structure | Stage::Parse | Stage::Decompress => {
            format!(
                "parsing-bound: {share} of the processor time is {stage}; more threads, or input that is parsed already"
            )
        }
        Stage::Encode | Stage::Intern | Stage::Sort => {
            format!("encoding-bound: {share} of the processor time is {stage}, mostly {part}; more threads, or --fast")
        }
        Stage::Other => {
            format!("processor-bound: {share} of the processor time is in no stage; perf record shows what it is")
        }
        _ => format!("processor-bound: {share} of the processor time is {stage}; more threads, or less of it"),
    };
    (Bound::Stage(stage), text)
}
