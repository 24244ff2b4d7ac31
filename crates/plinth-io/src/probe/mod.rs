//! What can the device under a folder do, and how far is the answer to be trusted?
//!
//! [`run`] fills a file in the folder and measures it for a bounded time: cells of request size x depth x share of reads
//! ([`Cell`]) by an engine ([`Backend`]: fio, or the ways in which Plinth itself reads), what durability costs, whether a
//! cache answers instead of the device, which steps of the io_uring ladder the kernel grants, and how fast memory, page
//! cache and checksums are. What a [`Report`] boils down to is a [`DeviceProfile`], a small file that readers consult.
//!
//! The shape of the profile, and that it is read back by the engine, follow Scylla's iotune; the sanity rules are what
//! its issue tracker teaches. The summary of four lines is KDiskMark's idea, the table of sync costs pg_test_fsync's.

mod profile;

#[cfg(target_os = "linux")]
mod backend;
#[cfg(target_os = "linux")]
mod cache;
#[cfg(target_os = "linux")]
mod cell;
#[cfg(target_os = "linux")]
mod fio;
#[cfg(target_os = "linux")]
mod histogram;
#[cfg(target_os = "linux")]
mod knees;
#[cfg(target_os = "linux")]
mod ladder;
#[cfg(target_os = "linux")]
mod laws;
#[cfg(target_os = "linux")]
mod memory;
#[cfg(target_os = "linux")]
#[cfg(target_os = "linux")]
mod run;
#[cfg(target_os = "linux")]
mod sync;
#[cfg(target_os = "linux")]
mod system;
#[cfg(target_os = "linux")]
mod target;
#[cfg(target_os = "linux")]
mod trust;
#[cfg(target_os = "linux")]
mod uring;

pub use profile::{DeviceProfile, Grade, PROFILE_NAME, ProfileError};

#[cfg(target_os = "linux")]
pub use {
    backend::{Backend, Threads, Window},
    cache::CacheTest,
    cell::{Cell, DEPTHS, Latency, Order, Row, SIZES, grid},
    fio::Fio,
    histogram::Histogram,
    knees::{Knees, knees},
    ladder::{Step, climb},
    laws::{Law, broken},
    memory::MemorySpeeds,
    run::{Engine, Plan, Report, run},
    sync::{SyncCost, cheapest},
    system::{BlockDevice, Environment, Load},
    target::Target,
    trust::Trust,
    uring::Uring,
};

/// A count as a float: beyond 2^53 the last digits are lost.
#[cfg(target_os = "linux")]
#[allow(clippy::cast_precision_loss, reason = "for ratios and rates")]
fn float(n: u64) -> f64 {
    n as f64
}

/// A float as the nearest count; what is negative or no number becomes zero.
#[cfg(target_os = "linux")]
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates")]
fn whole(x: f64) -> u64 {
    x.round() as u64
}

/// A duration in nanoseconds, which fit for 584 years.
#[cfg(target_os = "linux")]
fn nanoseconds(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// How many a second.
#[cfg(target_os = "linux")]
fn rate(n: u64, elapsed: std::time::Duration) -> f64 {
    float(n) / elapsed.as_secs_f64().max(1e-9)
}
