//! What was recorded, as plain data.

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use crate::anchor::{Anchor, Part, Stage};
use crate::clock::Faults;
use crate::limits::Roofline;
use crate::stores::StoreTraffic;
use plinth_core::units::to_f64;

/// Where the time and the bytes of a query or an import went.
///
/// Times of threads are added up, so they may exceed the wall's. Every moment that a thread spent in scopes is in exactly one row's
/// `time`; processor time is `named` and `other`, and what threads could have had beyond it is `idle`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Profile {
    /// What was profiled.
    pub title: String,
    /// When it began.
    pub started_at: Option<SystemTime>,
    /// How long it took.
    pub wall: Duration,
    /// Threads that could have worked for it.
    pub threads: usize,
    /// Processor time of the process meanwhile, without what other profilers claimed; `None` where the system doesn't say.
    pub cpu: Option<Duration>,
    /// Processor time in scopes.
    pub named: Duration,
    /// Processor time of the process that no scope covered.
    pub other: Duration,
    /// What `threads` had left: wall x threads - cpu, and nothing if more threads than that were at work.
    pub idle: Duration,
    /// Time in which threads slept in stages that wait for storage.
    pub waited: Duration,
    /// Time in which tasks, rather than threads, waited for storage.
    pub paused: Duration,
    /// Page faults of the process meanwhile.
    pub faults: Faults,
    /// Whether processor time and faults of rows were measured, rather than shared out.
    pub detailed: bool,
    /// Stages by the path that led to them, each before those within it, which stand in the order of their time.
    pub rows: Vec<Row>,
    /// Threads that recorded something.
    pub workers: Vec<Worker>,
    /// Scopes one by one, if they were asked for, in the order of their beginnings by thread.
    pub spans: Vec<Span>,
    /// Scopes that there was no room for in `spans`.
    pub spans_lost: u64,
    /// Scopes that were charged to the one around them, because there were too many different paths.
    pub folded: u64,
    /// The most bytes of memory that were held at once, by what asked for them.
    pub memory: HashMap<Anchor, u64>,
    /// What the processor counted, if it was asked and allowed.
    pub hardware: Hardware,
    /// What went to object stores and came from them, if anything did.
    pub stores: Option<StoreTraffic>,
    /// How far that was from what the machine can do, once [`Profile::compare`] was told what that is.
    pub roofline: Option<Roofline>,
}

/// A stage, or a part of one, within the stages above it.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The row above it in the tree.
    pub parent: Option<usize>,
    /// How many are above it.
    pub depth: usize,
    /// The stage and its part.
    pub anchor: Anchor,
    /// What to call it.
    pub name: String,
    /// How often it was entered.
    pub hits: u64,
    /// Rows, or values, it dealt with.
    pub rows: u64,
    /// Bytes it dealt with.
    pub bytes: u64,
    /// Time of threads in it, outside of the rows below.
    pub time: Duration,
    /// Time of threads in it and in the rows below.
    pub total: Duration,
    /// Processor time in it, outside of the rows below.
    pub cpu: Duration,
    /// Page faults in it, outside of the rows below, in detailed profiles.
    pub faults: Faults,
    /// Its time as a share of all there is (all rows' and `other`), 0 to 1.
    pub share: f64,
    /// The same with the rows below.
    pub total_share: f64,
}

impl Row {
    /// Bytes a second of the time with the rows below, for a thread.
    pub fn bytes_per_second(&self) -> Option<f64> {
        (self.bytes > 0 && !self.total.is_zero()).then(|| to_f64(self.bytes) / self.total.as_secs_f64())
    }

    pub(crate) fn computed(stage: Stage, time: Duration, whole: f64) -> Self {
        let share = if whole > 0.0 { time.as_secs_f64() / whole } else { 0.0 };
        Self {
            parent: None,
            depth: 0,
            anchor: stage.into(),
            name: stage.name().to_owned(),
            hits: 0,
            rows: 0,
            bytes: 0,
            time,
            total: time,
            cpu: if stage == Stage::Other { time } else { Duration::ZERO },
            faults: Faults::default(),
            share,
            total_share: share,
        }
    }
}

/// What one thread did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worker {
    /// The thread's name.
    pub name: String,
    /// Its time in scopes.
    pub time: Duration,
    /// Its processor time in scopes.
    pub cpu: Duration,
}

/// A scope as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Which of the workers.
    pub worker: usize,
    /// Which of the rows.
    pub row: usize,
    /// When it began, after the profiler did.
    pub start: Duration,
    /// How long it took; of one that was not over, how long until the profiler was.
    pub time: Duration,
}

/// What the processor counted in user mode within scopes, added up over threads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Hardware {
    /// It was not asked: this build has not the feature `counters`.
    #[default]
    NotAsked,
    /// It, or the kernel, refused.
    Refused(String),
    /// It counted.
    Counted {
        /// Processor cycles.
        cycles: u64,
        /// Instructions.
        instructions: u64,
        /// Misses of the last cache.
        cache_misses: u64,
    },
}

impl Profile {
    /// The rows, and `other` and `idle` as the last two: what a table of them shows.
    pub fn table(&self) -> Vec<Row> {
        let mut rows = self.rows.clone();
        let whole = self.whole().as_secs_f64();
        rows.push(Row::computed(Stage::Other, self.other, whole));
        rows.push(Row { share: 0.0, total_share: 0.0, ..Row::computed(Stage::Idle, self.idle, whole) });
        rows
    }

    /// What shares are shares of: the time of all rows, and `other`.
    pub fn whole(&self) -> Duration {
        self.rows.iter().map(|row| row.time).sum::<Duration>() + self.other
    }

    /// The share of the processor time that rows account for, 0 to 1.
    pub fn coverage(&self) -> Option<f64> {
        let cpu = self.cpu?.as_secs_f64();
        (cpu > 0.0).then(|| self.named.as_secs_f64() / cpu)
    }

    /// Rows by anchor, whatever led to them, those with the most time first. A row within one of the same anchor (a recursion) does
    /// not count once more towards the time with what is below. Parents and depths mean nothing here.
    pub fn flat(&self) -> Vec<Row> {
        let mut places: HashMap<Anchor, usize> = HashMap::new();
        let mut flat: Vec<Row> = Vec::new();
        for row in &self.rows {
            let again = self.above(row).any(|above| above.anchor == row.anchor);
            let total = if again { Duration::ZERO } else { row.total };
            let place = *places.entry(row.anchor).or_insert(flat.len());
            let Some(known) = flat.get_mut(place) else {
                flat.push(Row { parent: None, depth: 0, ..row.clone() });
                continue;
            };
            known.hits += row.hits;
            known.rows = known.rows.saturating_add(row.rows);
            known.bytes = known.bytes.saturating_add(row.bytes);
            known.time += row.time;
            known.total += total;
            known.cpu += row.cpu;
            known.faults.minor += row.faults.minor;
            known.faults.major += row.faults.major;
            known.share += row.share;
            known.total_share += if again { 0.0 } else { row.total_share };
        }
        flat.sort_by(|a, b| b.time.cmp(&a.time).then_with(|| a.name.cmp(&b.name)));
        flat
    }

    /// The rows above one, from the nearest on.
    pub fn above<'a>(&'a self, row: &'a Row) -> impl Iterator<Item = &'a Row> {
        // A parent stands before its children, so this ends.
        std::iter::successors(row.parent.and_then(|at| self.rows.get(at)), |row| {
            row.parent.and_then(|at| self.rows.get(at))
        })
    }

    pub(crate) fn name_of(anchor: Anchor, labels: &HashMap<Anchor, String>) -> String {
        match (labels.get(&anchor), anchor.part) {
            (None, _) => anchor.to_string(),
            // An operator's label says that it is one.
            (Some(label), Part::Index(_)) if anchor.stage == Stage::Operator => label.clone(),
            (Some(label), _) => format!("{} {label}", anchor.stage),
        }
    }
}
