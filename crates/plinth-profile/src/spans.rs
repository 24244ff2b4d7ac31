//! Scopes as spans of the `tracing` crate, for programs that have a subscriber: one call site, `stage`, at level TRACE, with the
//! stage, its part, and the rows and bytes once they are known. They are there whether a profiler runs or not.

use tracing::field::Empty;
use tracing::span::EnteredSpan;

use crate::anchor::{Anchor, Part};

/// The span of a scope that begins; `None` without a subscriber.
#[inline]
pub(crate) fn enter(anchor: Anchor) -> Option<EnteredSpan> {
    tracing::enabled!(target: "plinth", tracing::Level::TRACE).then(|| open(anchor)).filter(|span| !span.is_disabled())
}

#[cold]
fn open(anchor: Anchor) -> EnteredSpan {
    let stage = anchor.stage.name();
    let span = tracing::trace_span!(target: "plinth", "stage", stage, part = Empty, rows = Empty, bytes = Empty);
    match anchor.part {
        Part::Whole => {}
        Part::Name(name) => drop(span.record("part", name)),
        Part::Index(index) => drop(span.record("part", index)),
    }
    span.entered()
}

/// Ends it.
#[inline]
pub(crate) fn exit(span: Option<EnteredSpan>, rows: u64, bytes: u64) {
    if let Some(span) = span {
        if rows > 0 {
            span.record("rows", rows);
        }
        if bytes > 0 {
            span.record("bytes", bytes);
        }
    }
}
