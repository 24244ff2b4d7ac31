//! A study of the device under a folder: what it can do, and how far the answer is to be trusted.
//!
//! [`run`] fills a file in the folder and measures it for a bounded time: cells of request size x depth x share of reads
//! ([`Cell`]) by an engine ([`Backend`]: fio, or the ways in which Plinth itself reads), what durability costs, whether a
//! cache answers instead of the device, which [capabilities](climb) of io_uring the kernel grants, and how fast memory, page
//! cache and checksums are. What a [`Report`] boils down to is a [`DeviceProfile`], a small file that readers consult.
//!
//! The shape of the profile, and that it is read back by the engine, follow Scylla's iotune; the sanity rules are what
//! its issue tracker teaches. The summary of four lines is KDiskMark's idea, the table of sync costs pg_test_fsync's.
//!
//! [`Findings`] are a report and how fast blocks are decoded, shown as JSON, CSV or a page.

mod profile;

#[cfg(target_os = "linux")]
mod backend;
#[cfg(target_os = "linux")]
mod cache;
#[cfg(target_os = "linux")]
mod capabilities;
#[cfg(target_os = "linux")]
mod cell;
#[cfg(target_os = "linux")]
mod decode;
#[cfg(target_os = "linux")]
mod export;
#[cfg(target_os = "linux")]
mod findings;
#[cfg(target_os = "linux")]
mod fio;
#[cfg(target_os = "linux")]
mod histogram;
#[cfg(target_os = "linux")]
mod html;
#[cfg(target_os = "linux")]
mod knee_points;
#[cfg(target_os = "linux")]
mod memory;
#[cfg(target_os = "linux")]
mod plot;
#[cfg(target_os = "linux")]
mod run;
#[cfg(target_os = "linux")]
mod sanity;
#[cfg(target_os = "linux")]
pub mod summary;
#[cfg(target_os = "linux")]
mod sync;
#[cfg(target_os = "linux")]
mod system;
#[cfg(target_os = "linux")]
mod target;
#[cfg(target_os = "linux")]
mod threads;
#[cfg(target_os = "linux")]
mod trust;
#[cfg(target_os = "linux")]
mod uring;

pub use profile::{DeviceProfile, Grade, PROFILE_NAME, ProfileError};

#[cfg(target_os = "linux")]
pub use {
    backend::{Backend, Window},
    cache::CacheTest,
    capabilities::{Step, climb},
    cell::{Cell, DEPTHS, Latency, Order, Row, SIZES, grid},
    decode::{DecodeSpeed, decode_speeds},
    findings::Findings,
    fio::Fio,
    histogram::Histogram,
    knee_points::{Knees, knees},
    memory::MemorySpeeds,
    run::{Engine, Plan, Report, run},
    sanity::{Law, broken},
    sync::{SyncCost, cheapest},
    system::{BlockDevice, Environment, Load},
    target::Target,
    threads::Threads,
    trust::Trust,
    uring::Uring,
};
