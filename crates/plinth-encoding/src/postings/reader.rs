//! Asking postings: the rows of codes, and how many there are.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, Weak};

use arrow_buffer::Buffer;
use plinth_core::sync::lock;
use plinth_io::{MemoryBudget, Reclaim, Reservation};

use super::directory::{Directory, Place};
use super::group::Group;
use super::{Codes, MOST_ROWS, corrupt};
use crate::error::Result;

/// Whom reports and errors name.
const CONSUMER: &str = "postings";

/// Groups read at a time.
const BATCH: usize = 64;

/// What a question reads at most to be kept: others are not asked twice.
const KEPT_GROUPS: usize = 8;

/// Lists of at most so many rows are decoded while their group is held.
const SHORT: u64 = 1 << 10;

/// The source of the bytes of groups: the file layer implements it.
pub trait GroupSource: Send + Sync {
    /// The bytes of some groups, in order, read and verified. Groups that follow each other are best read as one.
    ///
    /// # Errors
    /// If they can't be had.
    fn read(&self, groups: &[Place]) -> Result<Vec<Buffer>>;
}

/// The lists of a column's codes. Threads share it; groups that were asked for lately are kept, if there is room.
pub struct Postings {
    codes: u32,
    column_rows: u64,
    directory: Directory,
    source: Box<dyn GroupSource>,
    /// `None` if memory is not counted.
    budget: Option<Arc<MemoryBudget>>,
    kept: Vec<Mutex<Option<Kept>>>,
}

struct Kept {
    group: Group,
    held: Option<Reservation>,
}

impl fmt::Debug for Postings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Postings").field("codes", &self.codes).field("rows", &self.rows()).finish_non_exhaustive()
    }
}

impl Postings {
    /// The lists of so many codes of a column of so many rows from their directory and a source of the groups. Reads none.
    ///
    /// # Errors
    /// If the directory is damaged.
    pub fn open(codes: u32, column_rows: u64, directory: &Buffer, source: Box<dyn GroupSource>) -> Result<Self> {
        if column_rows > MOST_ROWS {
            return Err(corrupt("a column of more rows than postings can have"));
        }
        let directory = Directory::read(directory, codes, column_rows)?;
        let kept = (0..directory.len()).map(|_| Mutex::default()).collect();
        Ok(Self { codes, column_rows, directory, source, budget: None, kept })
    }

    /// Counts what is kept against a budget; what it refuses is read again when it is needed, and what is kept is given back
    /// when others need it.
    #[must_use]
    pub fn within(mut self, budget: &Arc<MemoryBudget>) -> Arc<Self> {
        self.budget = Some(Arc::clone(budget));
        let postings = Arc::new(self);
        let weak: Weak<Self> = Arc::downgrade(&postings);
        budget.register(weak);
        postings
    }

    /// Where the groups are.
    pub fn directory(&self) -> &Directory {
        &self.directory
    }

    /// Rows in all lists.
    pub fn rows(&self) -> u64 {
        self.directory.rows()
    }

    /// How many rows codes have. Reads the groups at the ends of runs, unless these begin or end with the group.
    ///
    /// # Errors
    /// If a group can't be had or is damaged.
    pub fn count(&self, codes: &Codes) -> Result<u64> {
        let (mut count, mut ends) = (0, Vec::new());
        for run in codes.runs() {
            for at in self.directory.groups(run) {
                if self.directory.first(at) >= run.start && self.end(at) <= run.end {
                    count += self.directory.group_rows(at);
                } else if ends.last() != Some(&at) {
                    ends.push(at);
                }
            }
        }
        self.visit(&ends, codes, |group, i, _| {
            count += group.list_rows(i);
            Ok(())
        })?;
        Ok(count)
    }

    /// Where the codes of a group end.
    fn end(&self, group: usize) -> u32 {
        self.directory.first(group) + self.directory.group_codes(group, self.codes)
    }

    /// About how many rows codes have, the bytes of their groups and how many reads these take; without reading.
    pub fn cost(&self, codes: &Codes) -> Cost {
        let (mut cost, mut done) = (Cost::default(), 0);
        for run in codes.runs() {
            let groups = self.directory.groups(run);
            for at in groups.clone() {
                let (first, end) = (self.directory.first(at), self.end(at));
                let here = u64::from(run.end.min(end).saturating_sub(run.start.max(first)));
                // As if the codes of a group had as many rows each.
                cost.rows += (self.directory.group_rows(at) * here).div_ceil(u64::from(end - first));
            }
            let fresh = groups.start.max(done)..groups.end;
            if !fresh.is_empty() {
                cost.reads += u64::from(fresh.start != done || done == 0);
                let (first, last) = (self.directory.place(fresh.start), self.directory.place(fresh.end - 1));
                cost.bytes += last.offset + u64::from(last.len) - first.offset;
                done = fresh.end;
            }
        }
        cost
    }

    /// Appends the rows of codes, list after list; those of one code increase.
    ///
    /// # Errors
    /// If a group can't be had or is damaged.
    pub fn read(&self, codes: &Codes, out: &mut Vec<u64>) -> Result<()> {
        self.visit(&self.groups_of(codes), codes, |group, i, _| group.rows(i, out))
    }

    /// Calls `each` with every code of a set and its rows, or those that one of several groups has.
    ///
    /// # Errors
    /// If a group can't be had or is damaged, or `each` fails.
    pub fn for_each(&self, codes: &Codes, mut each: impl FnMut(u32, &[u64]) -> Result<()>) -> Result<()> {
        let mut rows = Vec::new();
        self.visit(&self.groups_of(codes), codes, |group, i, code| {
            rows.clear();
            group.rows(i, &mut rows)?;
            each(code, &rows)
        })
    }

    /// The groups that have some of the codes, each once.
    fn groups_of(&self, codes: &Codes) -> Vec<usize> {
        let mut wanted: Vec<usize> = Vec::new();
        for run in codes.runs() {
            let groups = self.directory.groups(run);
            let from = wanted.last().map_or(groups.start, |&last| groups.start.max(last + 1));
            wanted.extend(from..groups.end);
        }
        wanted
    }

    /// Calls `each` with every code of a set that one of some groups has, which are in order, and which list it is.
    fn visit(
        &self,
        groups: &[usize],
        codes: &Codes,
        mut each: impl FnMut(&Group, usize, u32) -> Result<()>,
    ) -> Result<()> {
        let mut runs = codes.runs();
        for batch in groups.chunks(BATCH) {
            for (&at, group) in batch.iter().zip(self.groups(batch, groups.len() <= KEPT_GROUPS)?) {
                let (first, end) = (self.directory.first(at), self.end(at));
                runs = &runs[runs.partition_point(|run| run.end <= first)..];
                for run in runs.iter().take_while(|run| run.start < end) {
                    for code in run.start.max(first)..run.end.min(end) {
                        each(&group, (code - first) as usize, code)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// The rows of one code, part by part: so many groups, and the rows of each.
    pub fn parts(&self, code: u32) -> Range<usize> {
        self.directory.parts(code)
    }

    /// Appends the rows that a group has of a code.
    ///
    /// # Errors
    /// If the group can't be had or is damaged.
    #[inline]
    pub fn read_part(&self, code: u32, group: usize, out: &mut Vec<u64>) -> Result<()> {
        let i =
            code.checked_sub(self.directory.first(group)).ok_or_else(|| corrupt("a code of another group"))? as usize;
        let slot = self.kept.get(group).ok_or_else(|| corrupt("a group that is none"))?;
        let slot_now = lock(slot);
        if let Some(Kept { group, .. }) = &*slot_now {
            // A short list is there sooner than the group is handed out.
            if group.list_rows(i) <= SHORT {
                return group.rows(i, out);
            }
            let group = group.clone();
            drop(slot_now);
            return group.rows(i, out);
        }
        drop(slot_now);
        let mut groups = self.groups(&[group], true)?;
        groups.pop().ok_or_else(|| corrupt("a group that was not read"))?.rows(i, out)
    }

    #[inline]
    fn kept(&self, at: usize) -> Option<Group> {
        lock(self.kept.get(at)?).as_ref().map(|kept| kept.group.clone())
    }

    /// Some groups, which are in order: those kept, and the others in one read.
    fn groups(&self, wanted: &[usize], keep: bool) -> Result<Vec<Group>> {
        let kept: Vec<_> = wanted.iter().map(|&at| self.kept(at)).collect();
        let missing = wanted.iter().zip(&kept).filter(|(_, kept)| kept.is_none());
        let missing: Vec<Place> = missing.map(|(&at, _)| self.directory.place(at)).collect();
        let mut read = if missing.is_empty() { Vec::new() } else { self.source.read(&missing)? }.into_iter();
        wanted
            .iter()
            .zip(kept)
            .map(|(&at, kept)| {
                if let Some(group) = kept {
                    return Ok(group);
                }
                let bytes = read.next().ok_or_else(|| corrupt("a group that was not read"))?;
                let codes = self.directory.group_codes(at, self.codes) as usize;
                let group = Group::open(&bytes, codes, self.directory.group_rows(at), self.column_rows)?;
                if keep {
                    self.keep(at, &group);
                }
                Ok(group)
            })
            .collect()
    }

    /// Keeps a group if there is room.
    fn keep(&self, at: usize, group: &Group) {
        let held = self.budget.as_ref().map(|budget| budget.reserve(CONSUMER, group.memory() as u64)).transpose();
        if let (Some(slot), Ok(held)) = (self.kept.get(at), held) {
            *lock(slot) = Some(Kept { group: group.clone(), held });
        }
    }

    /// Bytes held: the directory, and the groups that were kept.
    pub fn memory(&self) -> usize {
        let kept = self.kept.iter().filter_map(|slot| lock(slot).as_ref().map(|kept| kept.group.memory()));
        self.directory.memory() + self.kept.capacity() * size_of::<Mutex<Option<Kept>>>() + kept.sum::<usize>()
    }
}

/// What reading lists costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Rows in the lists, estimated.
    pub rows: u64,
    /// Bytes of the groups.
    pub bytes: u64,
    /// Runs of groups that follow each other.
    pub reads: u64,
}

impl std::ops::Add for Cost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { rows: self.rows + other.rows, bytes: self.bytes + other.bytes, reads: self.reads + other.reads }
    }
}

impl Reclaim for Postings {
    fn reclaim(&self, bytes: u64) -> u64 {
        let mut given = 0;
        for slot in &self.kept {
            if given >= bytes {
                break;
            }
            if let Ok(mut slot) = slot.try_lock()
                && slot.as_ref().is_some_and(|kept| kept.group.is_only())
            {
                given += slot.take().and_then(|kept| kept.held).map_or(0, |held| held.bytes());
            }
        }
        given
    }
}
