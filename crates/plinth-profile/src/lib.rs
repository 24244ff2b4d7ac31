//! Where the time and the bytes of a query or an import go, and how far that is from what the machine can do.
//!
//! A [`Profiler`] is handed along with a query. Code that does a block's or a batch's worth of work opens a [`scope`] for it, charged to an
//! [`Anchor`]: a [`Stage`] of the read or write path, or a part of one. Each thread charges the time between two boundaries to
//! the innermost scope, so nothing is counted twice; what threads recorded is merged at the end to a [`Profile`], a plain struct
//! that is shown as a tree, as JSON, as a trace, or as a page with a flame graph. Compared with the [`Ceilings`] of the machine it
//! says what bounds the query ([`Roofline`]).
//!
//! ```
//! use std::time::Duration;
//! use plinth_profile::{Ceiling, Ceilings, Profiler, ProfilerOptions, Stage, scope};
//!
//! /// Somewhere deep: the profiler that the thread works for is charged. While no profiler runs, this costs half a nanosecond.
//! fn decode(packed: &[u8]) -> Vec<u64> {
//!     let scope = scope(Stage::Decode.of("plain"));
//!     let values: Vec<u64> = packed.iter().map(|byte| u64::from(*byte)).collect();
//!     scope.rows(values.len() as u64);
//!     scope.bytes(values.len() as u64 * 8); // of values, as large as they are decoded
//!     values
//! }
//!
//! let profiler = Profiler::start(ProfilerOptions { title: "SELECT max(x) FROM t".into(), ..Default::default() });
//! profiler.label(Stage::Operator.nth(0), "AggregateExec: max(x)");
//! let block = vec![7; 1 << 20];
//! std::thread::scope(|threads| {
//!     for block in block.chunks(1 << 18) {
//!         let profiler = profiler.clone();
//!         threads.spawn(move || {
//!             // From here on, until the scope ends, this thread works for the profiler.
//!             let _operator = profiler.scope(Stage::Operator.nth(0));
//!             assert_eq!(decode(block).into_iter().max(), Some(7));
//!         });
//!     }
//! });
//! let mut profile = profiler.finish();
//!
//! // From the file a probe wrote, as far as there is one; what it lacks can be measured on the spot.
//! let probed = Ceilings { device_read: Some(Ceiling::shared(1.7e9)), ..Ceilings::default() };
//! profile.compare(&probed.or(&Ceilings::measure(profile.threads, Duration::from_millis(20))));
//! print!("{}", profile.to_text());
//! assert_eq!(profile.rows[0].name, "AggregateExec: max(x)");
//! assert_eq!((profile.rows[1].rows, profile.rows[1].bytes), (1 << 20, 8 << 20));
//! assert!(profile.named <= profile.cpu.unwrap_or(Duration::MAX));
//! ```
//!
//! # Rules for scopes
//!
//! - Around blocks, windows and batches, not around values: a scope takes some 35 ns while a profiler runs, the outermost of a thread 300.
//! - Not across an `await`: the guard can't be sent, so the compiler says so where futures are. Around each `poll` instead.
//! - A task's outermost scope is opened by the profiler it carries ([`Profiler::scope`]); what is called from there uses [`scope`]. Work
//!   handed to other threads takes [`Profiler::current`] along, or [`Place::current`].
//! - A thread that waits for others does so in [`Stage::Join`], else its sleep would look like work.
//! - Each byte once: those asked of a device at [`Stage::Submit`], none at [`Stage::Wait`]; decoded ones at [`Stage::Decode`].
//!   [`Stage::moves`] says which limit a stage's bytes go against.
//! - Time that a task is suspended for storage is no thread's: [`Profiler::pause`].
//!
//! # Features
//!
//! `tracing` makes scopes spans of the `tracing` crate, too. `counters` has the processor count cycles, instructions and cache misses
//! (`perf-event2`), where the kernel allows it.

mod anchor;
mod block;
mod clock;
#[cfg(feature = "counters")]
mod counters;
mod limits;
mod merge;
mod profile;
mod profiler;
mod render;
mod roofline;
mod scope;
mod shared;
#[cfg(feature = "tracing")]
mod spans;
mod stores;
mod tally;

pub use anchor::{Anchor, Moves, Part, Sleeps, Stage};
pub use clock::{Clock, Faults, ManualClock};
pub use limits::{Bound, Limit, Origin, Resource, Roofline};
pub use profile::{Hardware, Profile, Row, Span, Worker};
pub use profiler::{Holder, Pause, Place, Profiler, ProfilerOptions};
pub use roofline::{Ceiling, Ceilings};
pub use scope::{Scope, scope};
pub use stores::StoreTraffic;
