//! One profiler for one query or import, handed along with it.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, Weak};
use std::time::SystemTime;

use plinth_core::sync::lock;

use crate::anchor::{Anchor, Stage};
use crate::clock::Clock;
use crate::merge;
use crate::profile::Profile;
use crate::scope::{self, Scope};
use crate::shared::{RUNNING, Shared};

/// What to record.
#[derive(Clone, Debug)]
pub struct ProfilerOptions {
    /// What is profiled, in the words of the user: a statement, a command.
    pub title: String,
    /// Threads that work for it when they can: what is idle is told from that. The machine's, unless told otherwise.
    pub threads: usize,
    /// Processor time and page faults of each stage by themselves, read at both ends of each scope (a microsecond). Without,
    /// stages get their share of what each thread had, and faults are those of the process.
    pub detailed: bool,
    /// Scopes of each thread that are kept one by one, for a trace; later ones only count. 24 bytes each.
    pub spans: usize,
    /// Where times come from.
    pub clock: Clock,
}

impl Default for ProfilerOptions {
    fn default() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Self { title: String::new(), threads, detailed: false, spans: 0, clock: Clock::Machine }
    }
}

/// Records where the time of one query or import goes, on any number of threads.
///
/// It is a handle: clones record into the same profile. A profiler that is [`off`](Profiler::off) records nothing, so code
/// that carries one needs not ask. Several may run side by side; a thread works for one at a time, the one whose
/// [`scope`](Profiler::scope) it is in.
///
/// ```
/// use plinth_profile::{Profiler, ProfilerOptions, Stage, scope};
///
/// let profiler = Profiler::start(ProfilerOptions { title: "SELECT sum(x)".into(), ..Default::default() });
/// std::thread::scope(|threads| {
///     threads.spawn(|| {
///         let operator = profiler.scope(Stage::Operator.nth(0)); // this thread works for the profiler now
///         let values: Vec<u64> = {
///             let decode = scope(Stage::Decode.of("bit-packed")); // for the profiler it works for
///             decode.rows(8192);
///             decode.bytes(8 * 8192);
///             (0..8192).collect()
///         };
///         operator.rows(1);
///         assert_eq!(values.iter().sum::<u64>(), 33_550_336);
///     });
/// });
/// profiler.label(Stage::Operator.nth(0), "sum(x)");
/// let profile = profiler.finish();
/// assert_eq!(profile.rows[0].name, "sum(x)");
/// assert_eq!((profile.rows[1].name.as_str(), profile.rows[1].rows), ("decode bit-packed", 8192));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Profiler(Option<Arc<Shared>>);

impl Profiler {
    /// Starts to record.
    pub fn start(options: ProfilerOptions) -> Self {
        let ProfilerOptions { title, threads, detailed, spans, clock } = options;
        clock.warm_up();
        RUNNING.fetch_add(1, Relaxed);
        Self(Some(Arc::new(Shared {
            title,
            threads,
            detailed,
            spans,
            started_at: SystemTime::now(),
            cpu: clock.process_cpu(),
            faults: clock.process_faults(),
            claimed: clock.claimed().load(Relaxed),
            started: clock.ticks(),
            clock,
            paused: AtomicU64::new(0),
            blocks: Mutex::default(),
            held: Mutex::default(),
            names: Mutex::default(),
            over: AtomicBool::new(false),
        })))
    }

    /// A profiler that records nothing.
    pub const fn off() -> Self {
        Self(None)
    }

    pub(crate) fn of(shared: Option<Arc<Shared>>) -> Self {
        Self(shared)
    }

    /// Whether it records.
    pub fn is_recording(&self) -> bool {
        self.0.as_ref().is_some_and(|shared| !shared.over.load(Relaxed))
    }

    /// Opens a scope, and makes this thread work for the profiler until the scope ends. Scopes opened within it by
    /// [`scope`](crate::scope) are the profiler's.
    ///
    /// It takes about half a microsecond more than those, unless the thread works for the profiler already: the outermost scope
    /// of a thread is where processor time is read.
    #[inline]
    pub fn scope(&self, anchor: impl Into<Anchor>) -> Scope {
        match &self.0 {
            Some(shared) if !shared.over.load(Relaxed) => scope::scope_for(shared, anchor.into()),
            _ => Scope::none(anchor.into()),
        }
    }

    /// Begins to count the time a task is suspended because storage is not done. Unlike a scope, it may go where the task goes.
    pub fn pause(&self) -> Pause {
        Pause(self.0.as_ref().map(|shared| (shared.clone(), shared.clock.ticks())))
    }

    /// Says what a numbered anchor is, for people. Numbers of one's own may meet those of [`Profiler::anchor`].
    pub fn label(&self, anchor: Anchor, label: impl Into<String>) {
        if let Some(shared) = &self.0 {
            shared.lock_names().labels.insert(anchor, label.into());
        }
    }

    /// A part of a stage that its label tells from the others: the same for the same label.
    pub fn anchor(&self, stage: Stage, label: &str) -> Anchor {
        let Some(shared) = &self.0 else { return stage.nth(0) };
        let mut names = shared.lock_names();
        if let Some(known) = names.known.get(&(stage, label.to_owned())) {
            return *known;
        }
        let new = names.number(stage, label);
        names.known.insert((stage, label.to_owned()), new);
        new
    }

    /// One more part of a stage, whatever others are called.
    pub fn another(&self, stage: Stage, label: &str) -> Anchor {
        self.0.as_ref().map_or(stage.nth(0), |shared| shared.lock_names().number(stage, label))
    }

    /// Says what an anchor is part of, or that it is part of nothing: there the tree shows it, whatever scopes it was opened within,
    /// on whichever thread.
    pub fn part_of(&self, anchor: Anchor, above: Option<Anchor>) {
        if let Some(shared) = &self.0 {
            shared.lock_names().parts.insert(anchor, above);
        }
    }

    /// Opens a scope around each poll of a future.
    pub fn around<F: Future>(&self, anchor: impl Into<Anchor>, future: F) -> impl Future<Output = F::Output> {
        let (profiler, anchor, mut future) = (self.clone(), anchor.into(), Box::pin(future));
        poll_fn(move |context| {
            let _scope = profiler.scope(anchor);
            future.as_mut().poll(context)
        })
    }

    /// What was recorded so far, on all threads, those that have ended included. What a scope that is open on another thread did
    /// since its last boundary, the beginning or end of a scope, is not in it. The profile of a profiler that is off is empty.
    pub fn snapshot(&self) -> Profile {
        let Some(shared) = &self.0 else { return Profile::default() };
        scope::flush(shared);
        let blocks = lock(&shared.blocks).clone();
        merge::merge(shared, &blocks)
    }

    /// Ends the recording, for all clones: a last [`snapshot`](Profiler::snapshot).
    pub fn finish(&self) -> Profile {
        let profile = self.snapshot();
        if let Some(shared) = &self.0 {
            shared.end();
        }
        profile
    }
}

/// Counts, until it is dropped, the time a task is suspended because storage is not done: see [`Profiler::pause`].
#[derive(Debug)]
#[must_use = "a pause ends when it is dropped"]
pub struct Pause(Option<(Arc<Shared>, u64)>);

impl Drop for Pause {
    fn drop(&mut self) {
        if let Some((shared, since)) = self.0.take() {
            shared.paused.fetch_add(shared.clock.ticks().saturating_sub(since), Relaxed);
        }
    }
}

impl Profiler {
    /// The profiler this thread works for: to be taken along to another thread. Without one, a profiler that records nothing.
    pub fn current() -> Self {
        Self::of(scope::current().map(|(shared, _)| shared))
    }
}

/// What memory is counted for: the part of a statement that asked for it, as long as its profiler is there.
#[derive(Clone, Debug, Default)]
pub struct Holder(Option<(Weak<Shared>, Anchor)>);

impl Holder {
    /// What this thread works on; nothing, if it works for no profiler.
    pub fn current() -> Self {
        Self(scope::current().map(|(shared, anchor)| (Arc::downgrade(&shared), anchor)))
    }

    /// Counts bytes that are held from now on.
    pub fn hold(&self, bytes: u64) {
        self.change(|(now, most)| {
            *now = now.saturating_add(bytes);
            *most = (*most).max(*now);
        });
    }

    /// Counts bytes that are given back.
    pub fn give_back(&self, bytes: u64) {
        self.change(|(now, _)| *now = now.saturating_sub(bytes));
    }

    fn change(&self, change: impl FnOnce(&mut (u64, u64))) {
        let Some((shared, anchor)) = &self.0 else { return };
        if let Some(shared) = shared.upgrade() {
            change(lock(&shared.held).entry(*anchor).or_default());
        }
    }
}

/// Where a thread is: for which profiler it works, and on what. To be taken along by work that others do in its stead.
///
/// ```
/// use plinth_profile::{Place, Profiler, ProfilerOptions, Stage};
///
/// let profiler = Profiler::start(ProfilerOptions::default());
/// let operator = profiler.scope(Stage::Operator.nth(3));
/// let place = Place::current();
/// std::thread::spawn(move || {
///     let _operator = place.scope(); // the same, on another thread
/// })
/// .join()
/// .unwrap();
/// drop(operator);
/// assert_eq!(profiler.finish().rows[0].hits, 2);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Place(Option<(Profiler, Anchor)>);

impl Place {
    /// Where this thread is; nowhere, if it works for no profiler.
    pub fn current() -> Self {
        Self(scope::current().map(|(shared, anchor)| (Profiler::of(Some(shared)), anchor)))
    }

    /// What the thread worked on, if it did for a profiler.
    pub fn anchor(&self) -> Option<Anchor> {
        self.0.as_ref().map(|(_, anchor)| *anchor)
    }

    /// Opens a scope for the same work.
    pub fn scope(&self) -> Scope {
        match &self.0 {
            Some((profiler, anchor)) => profiler.scope(*anchor),
            None => Scope::none(Stage::Other.into()),
        }
    }
}
