//! What limits a query, and how near it came.

use std::time::Duration;

use crate::anchor::Stage;

/// What a query can be limited by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Resource {
    /// Reading from the device.
    Device,
    /// Writing to it.
    DeviceWrite,
    /// Reading from object stores.
    Store,
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
            Self::Store => "object stores",
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
    /// The limit of a resource, if something was moved against it.
    pub fn limit(&self, resource: Resource) -> Option<&Limit> {
        self.limits.iter().find(|limit| limit.resource == resource)
    }
}

/// Who measured a ceiling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// A probe, earlier, thoroughly.
    Probe,
    /// This program, just now, in a second or two.
    Now,
    /// No measurement: a second has a second.
    Clock,
}

/// What bounds a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bound {
    /// Nothing was recorded that would tell.
    Unknown,
    /// The device reads, or writes, as fast as it can.
    Device,
    /// Memory is as busy as it can be.
    Memory,
    /// Threads are busy, most of all with this.
    Stage(Stage),
    /// Threads wait for storage, which is not at its limit.
    Latency,
    /// Threads wait for an object store.
    Store,
    /// Threads have nothing to do.
    Parallelism,
    /// Others have the processors that threads are ready for.
    Crowded,
}
