//! The one that changes the table: it applies commits, logs them, and publishes versions.
//!
//! Commits come in groups. Each is checked against the rows as the ones before it left them; those that may be are one frame of
//! the log; once that is durable, the version with them is published. After a write or a sync has failed it is unknown what
//! the log says, so no further commit is taken.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, RwLock};

use plinth_core::sync::{lock, read, write};
use plinth_format::{OpenOptions, RowCodec};
use plinth_io::Storage;

use crate::cache::Blocks;
use crate::commit::{WriteSet, most_payload, put_payload};
use crate::delta::Delta;
use crate::error::{Result, TableError};
use crate::index::{Definition, Indexes, file_name};
use crate::key::{KeyColumns, hash};
use crate::log::{Log, MOST_PAYLOAD};
use crate::position::Position;
use crate::segment::{Live, Segment};
use crate::version::{Place, Version};

/// What readers and the writer share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) codec: RowCodec,
    notes: RwLock<Arc<BTreeMap<String, String>>>,
    pub(crate) columns: KeyColumns,
    /// Whether the last column is hidden: the number of each row, which is its key.
    pub(crate) numbered: bool,
    pub(crate) blocks: Arc<Blocks>,
    pub(crate) indexes: Arc<Indexes>,
    pub(crate) open: OpenOptions,
    current: RwLock<Arc<Version>>,
    /// The versions that open transactions began at, and how many each.
    active: Mutex<BTreeMap<u64, usize>>,
    /// The next row number, and the next file number.
    pub(crate) next_row: AtomicU64,
    pub(crate) next_file: AtomicU64,
}

impl Shared {
    #[allow(clippy::too_many_arguments, reason = "it is built once, when a table is opened")]
    pub(crate) fn new(
        storage: Arc<dyn Storage>,
        codec: RowCodec,
        notes: BTreeMap<String, String>,
        columns: KeyColumns,
        numbered: bool,
        blocks: Arc<Blocks>,
        indexes: Arc<Indexes>,
        open: OpenOptions,
        version: Version,
        next: (u64, u64),
    ) -> Self {
        Self {
            storage,
            codec,
            notes: RwLock::new(Arc::new(notes)),
            columns,
            numbered,
            blocks,
            indexes,
            open,
            current: RwLock::new(Arc::new(version)),
            active: Mutex::default(),
            next_row: AtomicU64::new(next.0),
            next_file: AtomicU64::new(next.1),
        }
    }

    /// The newest version.
    pub(crate) fn current(&self) -> Arc<Version> {
        Arc::clone(&read(&self.current))
    }

    pub(crate) fn replace(&self, version: Version) {
        *write(&self.current) = Arc::new(version);
    }

    /// The texts beside the columns.
    pub(crate) fn notes(&self) -> Arc<BTreeMap<String, String>> {
        Arc::clone(&read(&self.notes))
    }

    pub(crate) fn set_notes(&self, notes: Arc<BTreeMap<String, String>>) {
        *write(&self.notes) = notes;
    }

    fn active(&self) -> MutexGuard<'_, BTreeMap<u64, usize>> {
        lock(&self.active)
    }

    /// The newest version, for a transaction that begins.
    pub(crate) fn begin(&self) -> Arc<Version> {
        let mut active = self.active();
        let version = self.current();
        *active.entry(version.sequence).or_default() += 1;
        version
    }

    /// A transaction that began there has ended.
    pub(crate) fn end(&self, sequence: u64) {
        let mut active = self.active();
        if let Some(count) = active.get_mut(&sequence) {
            *count -= 1;
            if *count == 0 {
                active.remove(&sequence);
            }
        }
    }

    /// A number for a new file.
    pub(crate) fn new_file(&self) -> u64 {
        self.next_file.fetch_add(1, Ordering::Relaxed)
    }
}

/// What a commit did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Committed {
    /// Rows that came.
    pub inserted: u64,
    /// Rows that went, be it because others came in their place.
    pub deleted: u64,
}

/// The table as it was when a log file began, of which rows in memory are to be merged.
#[derive(Clone, Debug)]
pub(crate) struct Frozen {
    pub(crate) version: Arc<Version>,
    pub(crate) log: Position,
}

/// A segment's rows, or those in memory, in a merge: where each of them went.
#[derive(Debug, Default)]
pub(crate) struct Moved {
    /// For each row its number in the new segment; [`GONE`] for one that had been deleted.
    pub(crate) rows: Vec<u32>,
}

/// A row that did not go anywhere.
pub(crate) const GONE: u32 = u32::MAX;

/// The writer.
#[derive(Debug)]
pub(crate) struct Engine {
    shared: Arc<Shared>,
    log: Log,
    /// The version that the next commit changes.
    working: Version,
    /// The keys that commits have written since the oldest open transaction began, and the version that each came with.
    recent: HashMap<Box<[u8]>, u64>,
    /// The version that all rows before went with, last time.
    emptied: u64,
    frozen: Option<Frozen>,
    stopped: Option<TableError>,
}

impl Engine {
    pub(crate) fn new(shared: Arc<Shared>, log: Log) -> Self {
        let working = Version::clone(&shared.current());
        Self { shared, log, working, recent: HashMap::new(), emptied: 0, frozen: None, stopped: None }
    }

    /// Why no commits are taken any more, if so.
    pub(crate) fn check(&self) -> Result<()> {
        match &self.stopped {
            Some(reason) => Err(TableError::Stopped { reason: Box::new(reason.clone()) }),
            None => Ok(()),
        }
    }

    /// Takes no further commits.
    pub(crate) fn stop(&mut self, reason: TableError) -> TableError {
        self.stopped.get_or_insert(reason.clone());
        reason
    }

    /// Bytes of the log since the manifest.
    pub(crate) fn log_bytes(&self) -> u64 {
        self.log.bytes()
    }

    /// Applies some commits, logs those that may be as one frame, durably if told so, and publishes them.
    pub(crate) fn commit(&mut self, sets: &[WriteSet], sync: bool) -> Vec<Result<Committed>> {
        if let Err(stopped) = self.check() {
            return sets.iter().map(|_| Err(stopped.clone())).collect();
        }
        let most = most_payload(sets);
        if most > MOST_PAYLOAD && sets.len() > 1 {
            let (first, second) = sets.split_at(sets.len() / 2);
            return [first, second].into_iter().flat_map(|sets| self.commit(sets, sync)).collect();
        }
        // A device that is full says so before anything has changed.
        if let Err(error) = self.log.make_room(most) {
            return sets.iter().map(|_| Err(error.clone())).collect();
        }
        let transactional = sets.iter().any(|set| set.snapshot.is_some());
        let mut written: HashSet<&[u8]> = HashSet::new();
        let (mut results, mut applied) = (Vec::with_capacity(sets.len()), Vec::new());
        for set in sets {
            let result = match self.check_conflicts(set, &written) {
                Ok(()) => self.apply(set),
                Err(conflict) => Err(conflict),
            };
            if result.is_ok() {
                applied.push(set);
                if transactional {
                    written.extend(set.written());
                }
            }
            results.push(result);
        }
        if let Err(stopped) = self.check() {
            return sets.iter().map(|_| Err(stopped.clone())).collect();
        }
        if applied.is_empty() {
            return results;
        }
        if let Err(error) =
            self.log.append(most_payload(applied.iter().copied()), |out| put_payload(&applied, out), sync)
        {
            self.stop(error);
            let stopped = self.check();
            return sets.iter().map(|_| stopped.clone().map(|()| Committed::default())).collect();
        }
        self.working.sequence += 1;
        self.publish(&applied);
        results
    }

    /// First committer wins.
    fn check_conflicts(&self, set: &WriteSet, written: &HashSet<&[u8]>) -> Result<()> {
        let Some(snapshot) = set.snapshot else { return Ok(()) };
        if self.emptied > snapshot {
            return Err(TableError::Conflict { key: "of all rows".into() });
        }
        let columns = &self.shared.columns;
        let conflict = |key: &[u8]| Err(TableError::Conflict { key: columns.show(key) });
        for key in set.written() {
            if written.contains(key) || self.recent.get(key).is_some_and(|&changed| changed > snapshot) {
                return conflict(key);
            }
            for live in &self.working.segments {
                let came = live.segment.since.load(Ordering::Relaxed);
                if came > snapshot && live.segment.find(columns, key, hash(key))?.is_some() {
                    return conflict(key);
                }
            }
        }
        // A segment's keys are many: it is asked for those that others wrote.
        for segment in &set.segments {
            let newer = self.recent.iter().filter(|(_, changed)| **changed > snapshot).map(|(key, _)| &**key);
            for key in newer.chain(written.iter().copied()) {
                if segment.find(columns, key, hash(key))?.is_some() {
                    return conflict(key);
                }
            }
            if self.working.segments.iter().any(|live| live.segment.since.load(Ordering::Relaxed) > snapshot) {
                return Err(TableError::Conflict { key: "of another import".into() });
            }
        }
        Ok(())
    }

    /// Changes the working version, or finds out that it can't.
    fn apply(&mut self, set: &WriteSet) -> Result<Committed> {
        let columns = &self.shared.columns;
        let mut places: Vec<Place> = Vec::new();
        for key in set.keys.iter() {
            if let Some(place) = self.working.find(columns, key, hash(key))? {
                if set.must_be_new {
                    return Err(TableError::Duplicate { key: columns.show(key) });
                }
                places.push(place);
            }
        }
        for key in set.deletes.iter() {
            places.extend(self.working.find(columns, key, hash(key))?);
        }
        let indexes = self.shared.indexes.all();
        if !indexes.is_empty() {
            for segment in &set.segments {
                self.shared.indexes.complete(&self.shared.storage, segment)?;
            }
            let going: HashSet<Place> = places.iter().copied().collect();
            let schema = self.shared.codec.schema();
            indexes.iter().try_for_each(|index| index.check(&self.working, schema, set, &going))?;
        }
        let mut deleted = places.len() as u64;
        if set.all_go {
            deleted = self.working.rows();
            self.working.delete_all();
            self.emptied = self.working.sequence + 1;
        }
        places.iter().for_each(|&place| self.working.delete(place));
        let mut inserted = 0;
        if let Some(rows) = &set.rows {
            inserted = rows.num_rows() as u64;
            if let Err(error) = self.working.insert(rows, &set.keys) {
                // Half of it may be there.
                return Err(self.stop(error));
            }
        }
        for segment in &set.segments {
            segment.since.store(self.working.sequence + 1, Ordering::Relaxed);
            inserted += segment.entry.rows;
            self.working.segments.push(Live { segment: Arc::clone(segment), deletes: Default::default() });
        }
        Ok(Committed { inserted, deleted })
    }

    fn publish(&mut self, applied: &[&WriteSet]) {
        // Under the lock that transactions begin under: each either sees this version, or has its keys remembered.
        let active = self.shared.active();
        self.shared.replace(self.working.clone());
        match active.keys().next() {
            None => self.recent.clear(),
            Some(&oldest) => {
                self.recent.retain(|_, changed| *changed > oldest);
                let now = self.working.sequence;
                let keys = applied.iter().flat_map(|set| set.written());
                self.recent.extend(keys.map(|key| (Box::from(key), now)));
            }
        }
    }

    /// Makes all commits durable.
    pub(crate) fn sync(&mut self) -> Result<()> {
        self.check()?;
        match self.log.sync() {
            Ok(()) => Ok(()),
            Err(error) => Err(self.stop(error)),
        }
    }

    /// Whether there are commits that are not durable.
    pub(crate) fn is_unsynced(&self) -> bool {
        self.stopped.is_none() && self.log.is_unsynced()
    }

    /// Nothing will be committed any more.
    pub(crate) fn close(&mut self) -> Result<()> {
        self.check()?;
        match self.log.close() {
            Ok(()) => Ok(()),
            Err(error) => Err(self.stop(error)),
        }
    }

    /// Gives all parts of the table a tree of a new index, which commits are checked against from here on.
    pub(crate) fn add_index(&mut self, index: &Arc<Definition>) -> Result<Arc<Version>> {
        self.check()?;
        let indexes = &self.shared.indexes;
        let ensure = |live: &Live| indexes.ensure(&self.shared.storage, &live.segment, index);
        self.working.segments.iter().try_for_each(ensure)?;
        self.working.frozen.iter().chain([&self.working.delta]).try_for_each(|delta| delta.add_index(index))?;
        // Who finds it there asks trees that are whole.
        indexes.add(index);
        Ok(Arc::new(self.working.clone()))
    }

    /// Takes an index away, its trees and its files.
    pub(crate) fn remove_index(&mut self, index: u64) {
        self.shared.indexes.remove(index);
        for live in &self.working.segments {
            live.segment.trees.remove(index);
            // What can't be removed now, the next to open the table removes.
            let _ = self.shared.storage.remove(&file_name(live.segment.entry.number, index));
        }
        self.working.frozen.iter().chain([&self.working.delta]).for_each(|delta| delta.trees.remove(index));
    }

    /// The table at a moment at which a log file begins, its rows in memory set apart; one that was not merged yet stays so.
    pub(crate) fn freeze(&mut self) -> Result<Frozen> {
        self.check()?;
        if let Some(frozen) = &self.frozen {
            return Ok(frozen.clone());
        }
        let log = match self.log.rotate() {
            Ok(log) => log,
            // No file was created, and nothing else was done.
            Err(error) if error.is_full() => return Err(error),
            Err(error) => return Err(self.stop(error)),
        };
        let empty = Delta::new(self.shared.open.io.budget(), &self.shared.indexes);
        self.working.frozen = Some(std::mem::replace(&mut self.working.delta, empty));
        self.shared.replace(self.working.clone());
        let frozen = Frozen { version: Arc::new(self.working.clone()), log };
        self.frozen = Some(frozen.clone());
        Ok(frozen)
    }

    /// Puts a new segment, if any row was left, in the place of segments and of the frozen rows. What was deleted meanwhile is
    /// deleted in it. `moved` has the replaced segments, and last the frozen rows.
    pub(crate) fn install(&mut self, replaced: &[u64], new: Option<Arc<Segment>>, moved: &[Moved]) {
        let Some(Frozen { version, .. }) = self.frozen.take() else { return };
        let mut deletes = crate::deletes::Deletes::default();
        let mut carry = |moved: Option<&Moved>, rows: &mut dyn Iterator<Item = u32>| {
            for row in rows {
                let to = moved.and_then(|moved| moved.rows.get(row as usize)).copied();
                if let Some(to) = to.filter(|&to| to != GONE) {
                    deletes.insert(to);
                }
            }
        };
        for (number, moved) in replaced.iter().zip(moved) {
            let of = |version: &Version| {
                let live = version.segments.iter().find(|live| live.segment.entry.number == *number);
                live.map(|live| live.deletes.clone()).unwrap_or_default()
            };
            let (now, then) = (of(&self.working), of(&version));
            carry(Some(moved), &mut now.since(&then));
        }
        if let (Some(now), Some(then)) = (&self.working.frozen, &version.frozen) {
            carry(moved.get(replaced.len()), &mut now.deletes.since(&then.deletes));
        }
        self.working.frozen = None;
        let (old, kept) = std::mem::take(&mut self.working.segments)
            .into_iter()
            .partition::<Vec<_>, _>(|live| replaced.contains(&live.segment.entry.number));
        self.working.segments = kept;
        if let Some(segment) = new {
            let since = old.iter().map(|live| live.segment.since.load(Ordering::Relaxed)).max().unwrap_or(0);
            segment.since.store(since, Ordering::Relaxed);
            self.working.segments.push(Live { segment, deletes });
        }
        self.log.forget();
        self.shared.replace(self.working.clone());
        old.iter().for_each(|live| live.segment.make_obsolete());
    }
}
