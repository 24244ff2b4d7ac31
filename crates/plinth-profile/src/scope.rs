//! Scopes, and what a thread knows of the one it is in.
//!
//! A thread charges the time since the last boundary, the beginning or the end of a scope, to the scope that was the innermost
//! meanwhile. So every moment is charged once, however scopes nest or recurse, and times with children are sums.

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::num::{NonZeroU32, NonZeroU64};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};

use crate::anchor::Anchor;
use crate::block::{Block, NO_SPAN, ROOT};
use crate::clock::{Clock, Faults};
use crate::shared::{RUNNING, Shared};

/// A thread that comes back so soon had the processor all the while: its clock need not be read once more.
const SOON: u64 = 20_000;

/// Profilers a thread remembers its block of, so that alternating between queries is cheap.
const KNOWN: usize = 16;

thread_local! {
    static THREAD: RefCell<Thread> = const { RefCell::new(Thread { bindings: Vec::new(), known: Vec::new(), left: None, serial: NonZeroU32::MIN }) };
}

/// What a thread knows.
struct Thread {
    /// The profiler it works for, above those whose work that interrupted.
    bindings: Vec<Binding>,
    /// Its blocks, until their profilers are over.
    known: Vec<(Weak<Shared>, Arc<Block>)>,
    /// Ticks and processor time when it last left a profiler of the machine's clock.
    left: Option<(u64, u64)>,
    /// The last binding's.
    serial: NonZeroU32,
}

/// A thread at work for a profiler.
struct Binding {
    serial: NonZeroU32,
    shared: Arc<Shared>,
    block: Arc<Block>,
    /// The innermost scope's.
    node: u32,
    /// Scopes that are open.
    depth: u16,
    /// Ticks at the last boundary.
    last: u64,
    cpu: u64,
    faults: Faults,
}

/// What a scope must know to end.
struct Opened {
    binding: NonZeroU32,
    node: u32,
    /// Where it is kept for a trace, or [`NO_SPAN`].
    span: u32,
    depth: u16,
    /// Whether there was a node left for it.
    own: bool,
}

/// The same in two words, so that it travels in registers: that is a third of what a scope costs.
struct Open(NonZeroU64, u64);

impl Opened {
    #[inline]
    fn pack(self) -> Open {
        let first = NonZeroU64::from(self.binding).get() | u64::from(self.node) << 32;
        let second = u64::from(self.span) | u64::from(self.depth) << 32 | u64::from(self.own) << 48;
        // A binding's number is not zero, so neither is the word.
        Open(NonZeroU64::new(first).unwrap_or(NonZeroU64::MAX), second)
    }
}

impl Open {
    #[inline]
    fn unpack(&self) -> Opened {
        let ([b0, b1, b2, b3, n0, n1, n2, n3], [s0, s1, s2, s3, d0, d1, own, _]) =
            (self.0.get().to_le_bytes(), self.1.to_le_bytes());
        Opened {
            binding: NonZeroU32::new(u32::from_le_bytes([b0, b1, b2, b3])).unwrap_or(NonZeroU32::MAX),
            node: u32::from_le_bytes([n0, n1, n2, n3]),
            span: u32::from_le_bytes([s0, s1, s2, s3]),
            depth: u16::from_le_bytes([d0, d1]),
            own: own != 0,
        }
    }
}

/// A stretch of work of one thread: what is done until it is dropped is charged to its anchor, save what is done within
/// scopes that are opened meanwhile.
///
/// It can't be sent to another thread, so a future that holds one across an `await` can't be spawned:
///
/// ```compile_fail
/// async fn read() {}
/// async fn wrong() {
///     let _scope = plinth_profile::scope(plinth_profile::Stage::Output);
///     read().await;
/// }
/// fn spawn(_: impl Future + Send) {}
/// spawn(wrong());
/// ```
///
/// Scopes are for blocks and batches: the crate's rules say what they cost.
#[must_use = "a scope ends when it is dropped"]
pub struct Scope {
    open: Option<Open>,
    rows: Cell<u64>,
    bytes: Cell<u64>,
    #[cfg(feature = "tracing")]
    span: Option<tracing::span::EnteredSpan>,
    /// It belongs to its thread.
    thread: PhantomData<*const ()>,
}

/// Opens a scope for whatever profiler this thread works for at the moment; without one, nothing is recorded.
#[inline]
pub fn scope(anchor: impl Into<Anchor>) -> Scope {
    let anchor = anchor.into();
    let open = if RUNNING.load(Relaxed) == 0 { None } else { nested(&anchor) };
    Scope::new(open, anchor)
}

#[inline(never)]
fn nested(anchor: &Anchor) -> Option<Open> {
    THREAD.try_with(|thread| thread.try_borrow_mut().ok()?.bindings.last_mut()?.open(anchor)).ok()?
}

/// Opens a scope for one profiler, and makes the thread work for it until the scope ends.
pub(crate) fn scope_for(shared: &Arc<Shared>, anchor: Anchor) -> Scope {
    let open = THREAD.try_with(|thread| {
        let mut thread = thread.try_borrow_mut().ok()?;
        thread.bind(shared);
        thread.bindings.last_mut()?.open(&anchor)
    });
    Scope::new(open.ok().flatten(), anchor)
}

/// The profiler this thread works for, and the innermost scope's anchor.
pub(crate) fn current() -> Option<(Arc<Shared>, Anchor)> {
    if RUNNING.load(Relaxed) == 0 {
        return None;
    }
    let current = THREAD.try_with(|thread| {
        let thread = thread.try_borrow().ok()?;
        let binding = thread.bindings.last()?;
        Some((binding.shared.clone(), binding.block.node(binding.node)?.anchor().0))
    });
    current.ok().flatten()
}

/// Charges this thread's time up to now, if it works for this profiler.
pub(crate) fn flush(shared: &Arc<Shared>) {
    let _ = THREAD.try_with(|thread| {
        let mut thread = thread.try_borrow_mut().ok()?;
        let binding = thread.bindings.last_mut().filter(|binding| Arc::ptr_eq(&binding.shared, shared))?;
        binding.boundary();
        binding.charge_cpu();
        Some(())
    });
}

impl Thread {
    /// Makes the profiler the one this thread works for.
    fn bind(&mut self, shared: &Arc<Shared>) {
        if self.bindings.last().is_some_and(|binding| Arc::ptr_eq(&binding.shared, shared)) {
            return;
        }
        let block = self.block(shared);
        // Work for another profiler is interrupted, not counted twice.
        if let Some(binding) = self.bindings.last_mut() {
            binding.boundary();
            binding.charge_cpu();
            #[cfg(feature = "counters")]
            binding.block.counters.add();
        }
        #[cfg(feature = "counters")]
        crate::counters::skip();
        let (clock, ticks) = (&shared.clock, shared.clock.ticks());
        let left = self.left.take().filter(|_| matches!(clock, Clock::Machine)).and_then(|(left, cpu)| {
            let gap = clock.nanoseconds(ticks.saturating_sub(left));
            (gap < SOON).then(|| cpu.saturating_add(gap))
        });
        let cpu = left.or_else(|| clock.thread_cpu()).unwrap_or(0);
        let faults = if shared.detailed { clock.thread_faults() } else { Faults::default() };
        self.serial = self.serial.checked_add(1).unwrap_or(NonZeroU32::MIN);
        self.bindings.push(Binding {
            serial: self.serial,
            shared: shared.clone(),
            block,
            node: ROOT,
            depth: 0,
            last: ticks,
            cpu,
            faults,
        });
    }

    /// This thread's block of a profiler.
    fn block(&mut self, shared: &Arc<Shared>) -> Arc<Block> {
        if let Some((_, block)) = self.known.iter().find(|(known, _)| known.as_ptr() == Arc::as_ptr(shared)) {
            return block.clone();
        }
        self.known.retain(|(known, _)| known.strong_count() > 0);
        if self.known.len() >= KNOWN {
            self.known.remove(0);
        }
        let block = shared.add_block();
        self.known.push((Arc::downgrade(shared), block.clone()));
        block
    }

    /// Ends a scope, and those within it that were not ended.
    fn close(&mut self, open: &Opened, rows: u64, bytes: u64) {
        if !self.bindings.iter().rev().any(|binding| binding.serial == open.binding) {
            return;
        }
        // What interrupted this scope and was not ended is over.
        while self.bindings.last().is_some_and(|binding| binding.serial != open.binding) {
            self.unbind();
        }
        let Some(binding) = self.bindings.last_mut() else { return };
        if binding.depth <= open.depth {
            return;
        }
        let now = binding.boundary();
        binding.node = open.node;
        if let (true, Some(node)) = (open.own, binding.block.node(open.node)) {
            node.hits.add(1);
            node.rows.add(rows);
            node.bytes.add(bytes);
            binding.node = node.anchor().1;
        }
        binding.depth = open.depth;
        if open.span != NO_SPAN {
            binding.block.end_span(open.span, now);
        }
        if binding.depth == 0 {
            self.unbind();
        }
    }

    /// Goes back to what was interrupted.
    fn unbind(&mut self) {
        let Some(mut binding) = self.bindings.pop() else { return };
        if binding.depth > 0 {
            binding.boundary();
        }
        let cpu = binding.charge_cpu();
        #[cfg(feature = "counters")]
        binding.block.counters.add();
        let clock = &binding.shared.clock;
        self.left = matches!(clock, Clock::Machine).then(|| (clock.ticks(), cpu));
        if let Some(below) = self.bindings.last_mut() {
            below.resume();
        }
    }
}

impl Binding {
    /// What happened since it was interrupted was not its doing.
    fn resume(&mut self) {
        let clock = &self.shared.clock;
        self.last = clock.ticks();
        self.cpu = clock.thread_cpu().unwrap_or(0);
        if self.shared.detailed {
            self.faults = clock.thread_faults();
        }
    }

    /// Charges the time since the last boundary to the innermost scope.
    #[inline]
    fn boundary(&mut self) -> u64 {
        let clock = &self.shared.clock;
        let now = clock.ticks();
        if let Some(node) = self.block.node(self.node) {
            // Counters of two cores may differ a little: time doesn't run backwards for that.
            node.ticks.add(now.saturating_sub(self.last));
        }
        if self.shared.detailed {
            self.charge_details();
        }
        self.last = now;
        now
    }

    /// Charges processor time and faults to the innermost scope.
    #[cold]
    fn charge_details(&mut self) {
        let clock = &self.shared.clock;
        let (cpu, faults) = (clock.thread_cpu().unwrap_or(0), clock.thread_faults());
        let spent = cpu.saturating_sub(self.cpu);
        if let Some(node) = self.block.node(self.node) {
            node.cpu.add(spent);
            node.add_faults(faults.since(self.faults));
        }
        self.block.cpu.add(spent);
        clock.claimed().fetch_add(spent, Relaxed);
        (self.cpu, self.faults) = (cpu, faults);
    }

    /// Charges processor time to the thread's block; detailed profiles have done so. Says how much the thread had until now.
    fn charge_cpu(&mut self) -> u64 {
        if !self.shared.detailed {
            let clock = &self.shared.clock;
            let cpu = clock.thread_cpu().unwrap_or(0);
            let spent = cpu.saturating_sub(self.cpu);
            self.block.cpu.add(spent);
            clock.claimed().fetch_add(spent, Relaxed);
            self.cpu = self.cpu.max(cpu);
        }
        self.cpu
    }

    #[inline]
    fn open(&mut self, anchor: &Anchor) -> Option<Open> {
        let (depth, deeper) = (self.depth, self.depth.checked_add(1)?);
        let now = if depth == 0 { self.last } else { self.boundary() };
        let child = self.block.child(self.node, anchor);
        if child.is_none() {
            self.block.folded.add(1);
        }
        self.depth = deeper;
        self.node = child.unwrap_or(self.node);
        let span = self.block.begin_span(self.node, now);
        Some(Opened { binding: self.serial, node: self.node, span, depth, own: child.is_some() }.pack())
    }
}

impl Scope {
    #[inline]
    fn new(open: Option<Open>, anchor: Anchor) -> Self {
        #[cfg(not(feature = "tracing"))]
        let _ = anchor;
        Self {
            open,
            rows: Cell::new(0),
            bytes: Cell::new(0),
            #[cfg(feature = "tracing")]
            span: crate::spans::enter(anchor),
            thread: PhantomData,
        }
    }

    /// A scope that records nothing.
    pub(crate) fn none(anchor: Anchor) -> Self {
        Self::new(None, anchor)
    }

    /// Adds rows, or values.
    #[inline]
    pub fn rows(&self, rows: u64) {
        self.rows.set(self.rows.get().saturating_add(rows));
    }

    /// Adds bytes; [`Stage::moves`](crate::Stage::moves) says which ones.
    #[inline]
    pub fn bytes(&self, bytes: u64) {
        self.bytes.set(self.bytes.get().saturating_add(bytes));
    }

    /// Charges what was done since the scope began, or since the last one within it ended, and what is done from now on, to another
    /// part: which one it is may be known only afterwards, such as the encoding that was chosen.
    #[inline]
    pub fn turns_out(&mut self, anchor: impl Into<Anchor>) {
        if let Some(open) = &self.open {
            self.open = turn(open, &anchor.into());
        }
    }

    /// Whether anything is recorded: where finding out how many rows or bytes there are costs something, ask first.
    #[inline]
    pub fn is_recording(&self) -> bool {
        self.open.is_some()
    }
}

impl Drop for Scope {
    #[inline]
    fn drop(&mut self) {
        #[cfg(feature = "tracing")]
        crate::spans::exit(self.span.take(), self.rows.get(), self.bytes.get());
        if let Some(open) = self.open.take() {
            end(&open, self.rows.get(), self.bytes.get());
        }
    }
}

#[inline(never)]
fn turn(open: &Open, anchor: &Anchor) -> Option<Open> {
    let opened = open.unpack();
    let turned = THREAD.try_with(|thread| {
        let mut thread = thread.try_borrow_mut().ok()?;
        let binding = thread.bindings.last_mut().filter(|binding| binding.serial == opened.binding)?;
        let innermost = opened.own && Some(binding.depth) == opened.depth.checked_add(1);
        let parent = binding.block.node(opened.node).filter(|_| innermost)?.anchor().1;
        binding.node = binding.block.child(parent, anchor)?;
        binding.block.turn_span(opened.span, binding.node);
        Some(binding.node)
    });
    let node = turned.ok().flatten().unwrap_or(opened.node);
    Some(Opened { node, ..opened }.pack())
}

#[inline(never)]
fn end(open: &Open, rows: u64, bytes: u64) {
    let _ = THREAD.try_with(|thread| {
        thread.try_borrow_mut().ok()?.close(&open.unpack(), rows, bytes);
        Some(())
    });
}

impl std::fmt::Debug for Scope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scope").field("recording", &self.is_recording()).finish_non_exhaustive()
    }
}
