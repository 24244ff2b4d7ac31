//! How far a query was from what the machine can do: the time that each limit alone would have asked for, beside the time it took.
//!
//! The idea is the roofline's (Williams, Waterman, Patterson, 2009), with the limits of a scan: a device feeds bytes, threads
//! decode them to values, memory holds what is brought together.

mod ceilings;
mod measure;
mod verdict;

use std::time::Duration;

use crate::anchor::{Moves, Part, Stage};
use crate::limits::{Limit, Origin, Resource, Roofline};
use crate::profile::Profile;
use plinth_core::units::{count_of, to_f64};

pub use ceilings::{Ceiling, Ceilings};

impl Profile {
    /// Compares what was moved with what the machine can do; [`Profile::to_text`] and the others show it, too.
    pub fn compare(&mut self, ceilings: &Ceilings) -> &Roofline {
        self.roofline.insert(Roofline::of(self, ceilings))
    }
}

impl Roofline {
    /// Compares what a profile moved with what the machine can do.
    pub fn of(profile: &Profile, ceilings: &Ceilings) -> Self {
        let wall = profile.wall.as_secs_f64();
        let threads = to_f64(count_of(profile.threads.max(1)));
        let limit = |resource, moved, ceiling: Option<Ceiling>| {
            let per_second = ceiling.map(|ceiling| ceiling.by_threads(threads)).filter(|ceiling| *ceiling > 0.0);
            let alone = per_second.map(|ceiling| seconds(to_f64(moved) / ceiling));
            let reached = alone.filter(|_| wall > 0.0).map(|alone| alone.as_secs_f64() / wall);
            let origin = per_second.and(ceiling).map(|ceiling| ceiling.origin);
            Limit { resource, moved, ceiling: per_second, origin, alone, reached, unmeasured: 0 }
        };
        let moved = |kind: Moves| sum(profile, |stage| stage.moves() == kind);
        // What is read of stores comes the way of what is read of a device.
        let far = profile.stores.map_or(0, |stores| stores.bytes);
        let mut limits = vec![
            limit(Resource::Device, moved(Moves::FromDevice).saturating_sub(far), ceilings.device_read),
            limit(Resource::Store, far, None),
            limit(Resource::DeviceWrite, moved(Moves::ToDevice), ceilings.device_write),
            limit(Resource::PageCache, moved(Moves::FromPageCache), ceilings.page_cache),
            limit(Resource::Checksum, moved(Moves::Checksum), ceilings.checksum),
        ];
        let (decode, unmeasured) = decode(profile, ceilings);
        let decoded = moved(Moves::Decoded);
        limits.push(Limit { unmeasured, ..limit(Resource::Decode, decoded.saturating_sub(unmeasured), decode) });
        // Decoded values are written, what is copied is, too.
        let memory = [Moves::Memory, Moves::Decoded, Moves::FromPageCache];
        let memory = sum(profile, |stage| memory.contains(&stage.moves()));
        limits.push(limit(Resource::Memory, memory, ceilings.memory));
        limits.retain(|limit| limit.moved > 0 || limit.unmeasured > 0);
        if let Some(cpu) = profile.cpu {
            let processor = Ceiling { per_second: 1e9, by_thread: true, origin: Origin::Clock };
            limits.push(limit(Resource::Processor, plinth_core::units::nanoseconds(cpu), Some(processor)));
        }
        let (bound, verdict) = verdict::verdict(profile, &limits);
        Self { limits, bound, verdict, note: ceilings.note.clone() }
    }
}

/// Bytes of all rows of some stages.
fn sum(profile: &Profile, of: impl Fn(Stage) -> bool) -> u64 {
    let rows = profile.rows.iter().filter(|row| of(row.anchor.stage));
    rows.fold(0, |sum, row| sum.saturating_add(row.bytes))
}

/// The ceiling of a query's own mix of encodings, and the bytes of those that none is known for.
fn decode(profile: &Profile, ceilings: &Ceilings) -> (Option<Ceiling>, u64) {
    let (mut bytes, mut time, mut unmeasured, mut origin) = (0, 0.0, 0, Origin::Probe);
    for row in profile.rows.iter().filter(|row| row.anchor.stage.moves() == Moves::Decoded && row.bytes > 0) {
        let name = match row.anchor.part {
            Part::Name(name) => name,
            Part::Whole | Part::Index(_) => "",
        };
        match ceilings.decode(name).filter(|ceiling| ceiling.per_second > 0.0) {
            None => unmeasured += row.bytes,
            Some(ceiling) => {
                bytes += row.bytes;
                time += to_f64(row.bytes) / ceiling.by_threads(1.0);
                if ceiling.origin == Origin::Now {
                    origin = Origin::Now;
                }
            }
        }
    }
    let ceiling = (bytes > 0).then(|| Ceiling { per_second: to_f64(bytes) / time, by_thread: true, origin });
    (ceiling, unmeasured)
}

/// A duration that is none if the number isn't.
fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}
