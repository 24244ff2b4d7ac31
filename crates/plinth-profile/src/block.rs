//! What one thread records for one profiler: a tree of anchors, by the path that led to each.
//!
//! Only its thread writes to a block, so counters are atomic merely to be readable from elsewhere: a load and a store, no lock,
//! no bus traffic. A block outlives its thread.

use std::sync::atomic::{AtomicU32, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use std::sync::{Mutex, OnceLock};

use plinth_core::sync::lock;

use crate::anchor::{Anchor, Stage};
use crate::clock::Faults;
use crate::tally::Tally;

/// Nodes are made so many at a time.
const CHUNK: u32 = 64;

/// What has more paths is charged to where it branched off.
const CHUNKS: u32 = 64;

/// The node above all others, which no time is charged to. Nothing points to it, so it stands for "none" as well.
pub(crate) const ROOT: u32 = 0;

/// No span.
pub(crate) const NO_SPAN: u32 = u32::MAX;

/// An anchor below another one.
#[derive(Debug, Default)]
pub(crate) struct Node {
    anchor: OnceLock<(Anchor, u32)>,
    first_child: AtomicU32,
    sibling: AtomicU32,
    /// Outside of the nodes below.
    pub(crate) ticks: Tally,
    pub(crate) hits: Tally,
    pub(crate) rows: Tally,
    pub(crate) bytes: Tally,
    /// Only in detailed profiles, like the faults.
    pub(crate) cpu: Tally,
    pub(crate) minor: Tally,
    pub(crate) major: Tally,
}

impl Node {
    /// What it is, and the node above.
    #[inline]
    pub(crate) fn anchor(&self) -> (Anchor, u32) {
        // Nodes are counted after they are filled, and the root stands for itself.
        self.anchor.get().copied().unwrap_or((Stage::Other.into(), ROOT))
    }

    pub(crate) fn add_faults(&self, faults: Faults) {
        self.minor.add(faults.minor);
        self.major.add(faults.major);
    }
}

/// A scope as it was, for a trace, in ticks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) node: u32,
    pub(crate) start: u64,
    /// `None` while the scope is open.
    pub(crate) end: Option<u64>,
}

/// What one thread recorded.
#[derive(Debug)]
pub(crate) struct Block {
    /// The thread's name.
    pub(crate) thread: String,
    chunks: Vec<OnceLock<Box<[Node]>>>,
    len: AtomicU32,
    /// Processor time within scopes.
    pub(crate) cpu: Tally,
    /// Scopes for which there was no node left.
    pub(crate) folded: Tally,
    spans: Mutex<Vec<Span>>,
    /// Most spans that are kept.
    span_limit: usize,
    pub(crate) spans_lost: Tally,
    #[cfg(feature = "counters")]
    pub(crate) counters: crate::counters::Tallies,
}

impl Block {
    pub(crate) fn new(thread: String, span_limit: usize) -> Self {
        let block = Self {
            thread,
            chunks: (0..CHUNKS).map(|_| OnceLock::new()).collect(),
            len: AtomicU32::new(0),
            cpu: Tally::default(),
            folded: Tally::default(),
            spans: Mutex::default(),
            span_limit,
            spans_lost: Tally::default(),
            #[cfg(feature = "counters")]
            counters: crate::counters::Tallies::default(),
        };
        block.push(Stage::Other.into(), ROOT);
        block
    }

    /// Nodes there are, the root included.
    pub(crate) fn len(&self) -> u32 {
        self.len.load(Acquire)
    }

    #[inline]
    pub(crate) fn node(&self, at: u32) -> Option<&Node> {
        let chunk = self.chunks.get(usize::try_from(at / CHUNK).ok()?)?.get()?;
        chunk.get(usize::try_from(at % CHUNK).ok()?)
    }

    /// The node of an anchor below another one; `None` if there is no room for it.
    #[inline]
    pub(crate) fn child(&self, parent: u32, anchor: &Anchor) -> Option<u32> {
        let above = self.node(parent)?;
        let mut at = above.first_child.load(Relaxed);
        while at != ROOT {
            let node = self.node(at)?;
            if node.anchor.get().is_some_and(|(known, _)| known.is(anchor)) {
                return Some(at);
            }
            at = node.sibling.load(Relaxed);
        }
        let new = self.push(*anchor, parent)?;
        self.node(new)?.sibling.store(above.first_child.load(Relaxed), Relaxed);
        above.first_child.store(new, Relaxed);
        Some(new)
    }

    #[cold]
    fn push(&self, anchor: Anchor, parent: u32) -> Option<u32> {
        let at = self.len.load(Relaxed);
        let chunk = self.chunks.get(usize::try_from(at / CHUNK).ok()?)?;
        chunk.get_or_init(|| (0..CHUNK).map(|_| Node::default()).collect());
        self.node(at)?.anchor.get_or_init(|| (anchor, parent));
        self.len.store(at + 1, Release);
        Some(at)
    }

    /// Notes where a scope begins; says which span it is, or [`NO_SPAN`] if it is not kept.
    #[inline]
    pub(crate) fn begin_span(&self, node: u32, start: u64) -> u32 {
        if self.span_limit == 0 { NO_SPAN } else { self.keep_span(node, start) }
    }

    #[cold]
    fn keep_span(&self, node: u32, start: u64) -> u32 {
        let mut spans = lock(&self.spans);
        match u32::try_from(spans.len()) {
            Ok(at) if at < NO_SPAN && spans.len() < self.span_limit => {
                spans.push(Span { node, start, end: None });
                at
            }
            _ => {
                self.spans_lost.add(1);
                NO_SPAN
            }
        }
    }

    /// Notes where it ends.
    #[cold]
    pub(crate) fn end_span(&self, span: u32, end: u64) {
        let mut spans = lock(&self.spans);
        if let Some(span) = usize::try_from(span).ok().and_then(|span| spans.get_mut(span)) {
            span.end = Some(end);
        }
    }

    /// It was another node's after all.
    pub(crate) fn turn_span(&self, span: u32, node: u32) {
        if span == NO_SPAN {
            return;
        }
        let mut spans = lock(&self.spans);
        if let Some(span) = usize::try_from(span).ok().and_then(|span| spans.get_mut(span)) {
            span.node = node;
        }
    }

    pub(crate) fn spans(&self) -> Vec<Span> {
        lock(&self.spans).clone()
    }
}
