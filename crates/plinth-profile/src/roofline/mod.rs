//! How far a query was from what the machine can do: the time that each limit alone would have asked for, beside the time it took.
//!
//! The idea is the roofline's (Williams, Waterman, Patterson, 2009), with the limits of a scan: a device feeds bytes, threads
//! decode them to values, memory holds what is brought together.

mod ceilings;
mod measure;
mod verdict;

use std::time::Duration;

use crate::anchor::{Moves, Part, Stage};
use crate::profile::Profile;
use plinth_core::units::{count_of, to_f64};

pub use ceilings::{Ceiling, Ceilings, Origin};
pub use verdict::Bound;

/// What a query can be limited by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Resource {
    /// Reading from the device.
    Device,
    /// Writing to it.
    DeviceWrite,
    /// Copying from the page cache.
    PageCache,
    /// Reading and writing memory.
    Memory,
    /// Verifying checksums.
    Checksum,
    /// Decoding, by encoding.
    Decode,
    /// The threads' processor time, whatever it was spent on.
    Processor,
}

impl Resource {
    /// What people call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Device => "device",
            Self::DeviceWrite => "device, writing",
            Self::PageCache => "page cache",
            Self::Memory => "memory",
            Self::Checksum => "checksum",
            Self::Decode => "decode",
            Self::Processor => "processor",
        }
    }
}

/// One limit, and how near the query came.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    /// Of what.
    pub resource: Resource,
    /// Bytes moved; of decoding, bytes of decoded values; of the processor, nanoseconds of its time.
    pub moved: u64,
    /// The most of them a second, by all threads.
    pub ceiling: Option<f64>,
    /// Who measured that.
    pub origin: Option<Origin>,
    /// The time they would take if nothing else were to do.
    pub alone: Option<Duration>,
    /// That time's share of the time it took: 1 is all the machine can do.
    pub reached: Option<f64>,
    /// Bytes that no ceiling is known for, beyond `moved`.
    pub unmeasured: u64,
}

/// What a query moved, limit by limit.
#[derive(Clone, Debug, PartialEq)]
pub struct Roofline {
    /// The limits that something was moved against, the processor last.
    pub limits: Vec<Limit>,
    /// What bounds the query.
    pub bound: Bound,
    /// The same in one line: what bounds it, and what would help.
    pub verdict: String,
    /// Where the ceilings come from.
    pub note: Option<String>,
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
        let mut limits = vec![
            limit(Resource::Device, moved(Moves::FromDevice), ceilings.device_read),
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

    /// The limit of a resource, if something was moved against it.
    pub fn limit(&self, resource: Resource) -> Option<&Limit> {
        self.limits.iter().find(|limit| limit.resource == resource)
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
