//! What a table does by itself: rows in memory become segments, segments become fewer, logs become durable and go.

use std::collections::BTreeMap;
use std::fs::File;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use plinth_core::sync::lock;

use crate::committer::Committer;
use crate::engine::{Engine, Shared};
use crate::error::{Result, TableError};
use crate::index::Definition;
use crate::key::KeyColumns;
use crate::log;
use crate::manifest::{self, Manifest, SegmentEntry};
use crate::merge::{self, Output, choose};
use crate::options::TableOptions;
use crate::position::Known;

/// An open table, for those who use it and for its threads.
#[derive(Debug)]
pub(super) struct Inner {
    pub(super) shared: Arc<Shared>,
    pub(super) options: TableOptions,
    /// None of a table that is open for reading only.
    pub(super) writer: Option<Writer>,
    signal: Mutex<Signal>,
    changed: Condvar,
}

/// What only the one that writes has.
#[derive(Debug)]
pub(super) struct Writer {
    pub(super) committer: Committer,
    pub(super) engine: Mutex<Engine>,
    pub(super) merging: Mutex<Merging>,
    /// Dropped last, when nothing is written any more.
    pub(super) _lock: Option<File>,
}

/// What the manifest is.
#[derive(Debug)]
pub(super) struct Merging {
    pub(super) version: u64,
    pub(super) first_log: u64,
}

/// What the threads are told.
#[derive(Debug, Default)]
struct Signal {
    merge: bool,
    closing: bool,
    /// Why the last merge failed.
    failed: Option<TableError>,
}

impl Inner {
    pub(super) fn new(shared: Arc<Shared>, options: TableOptions, writer: Option<Writer>) -> Self {
        Self { shared, options, writer, signal: Mutex::default(), changed: Condvar::new() }
    }

    /// Tells the threads to end.
    pub(super) fn end(&self) {
        lock(&self.signal).closing = true;
        self.changed.notify_all();
    }

    pub(super) fn output(&self) -> Output {
        let filter_bytes = self.options.filter_bytes.min(self.options.open.io.budget().limit() / 16);
        Output { writer: self.options.writer.clone(), pace: self.options.merge_pace, filter_bytes }
    }

    fn memory_is_full(&self, times: u32) -> bool {
        let version = self.shared.current();
        // Rows in memory are counted in the budget, and leave most of it to others.
        let share = self.options.open.io.budget().limit() / 8;
        let (rows, bytes) = (self.options.merge_rows.max(1), self.options.merge_bytes.min(share).max(1));
        let full = version.delta.rows / times >= rows || version.delta.bytes / u64::from(times) >= bytes;
        full || (version.delta.rows > 0 && self.log_bytes() / u64::from(times) >= bytes)
    }

    fn log_bytes(&self) -> u64 {
        let engine = self.writer.as_ref().and_then(|writer| writer.engine.try_lock().ok());
        engine.map_or(0, |engine| engine.log_bytes())
    }

    /// Tells the thread that merges if there is something for it to do.
    pub(super) fn look_for_work(&self) {
        if self.options.background && (self.memory_is_full(1) || self.shared.indexes.care().is_lost()) {
            let mut signal = lock(&self.signal);
            if !signal.merge {
                signal.merge = true;
                self.changed.notify_all();
            }
        }
    }

    /// Waits while rows come faster than they are merged.
    pub(super) fn wait_for_room(&self) -> Result<()> {
        if !self.options.background {
            return Ok(());
        }
        while self.memory_is_full(4) {
            let mut signal = lock(&self.signal);
            if let Some(failed) = &signal.failed {
                return Err(failed.clone());
            }
            signal.merge = true;
            self.changed.notify_all();
            drop(self.changed.wait_timeout(signal, Duration::from_millis(20)));
        }
        Ok(())
    }

    pub(super) fn merge_when_told(&self) {
        loop {
            let signal = lock(&self.signal);
            let idle = |signal: &mut Signal| !signal.merge && !signal.closing;
            let mut signal = self.changed.wait_while(signal, idle).unwrap_or_else(PoisonError::into_inner);
            if signal.closing {
                return;
            }
            signal.merge = false;
            drop(signal);
            let merged = self.merge(false);
            let mut signal = lock(&self.signal);
            signal.failed = merged.err();
            self.changed.notify_all();
            if signal.failed.is_some() {
                // A full device is not asked again at once.
                drop(self.changed.wait_timeout_while(signal, Duration::from_secs(1), |signal| !signal.closing));
            }
        }
    }

    pub(super) fn sync_every(&self, bound: Duration) {
        let mut signal = lock(&self.signal);
        while !signal.closing {
            signal = self.changed.wait_timeout(signal, bound).unwrap_or_else(PoisonError::into_inner).0;
            drop(signal);
            if let Some(writer) = &self.writer {
                let mut engine = lock(&writer.engine);
                if engine.is_unsynced() {
                    // The next commit tells.
                    let _ = engine.sync();
                }
            }
            signal = lock(&self.signal);
        }
    }

    /// Merges what is due, or all rows to one segment.
    pub(super) fn merge(&self, all: bool) -> Result<()> {
        let Some(writer) = &self.writer else { return Err(TableError::ReadOnly) };
        let mut merging = lock(&writer.merging);
        // That a tree can't be built, because its rows are damaged, keeps none from being merged.
        let healed = self.heal();
        self.merge_rows(writer, &mut merging, all)?;
        healed
    }

    /// Builds those trees again that were found damaged.
    fn heal(&self) -> Result<()> {
        let indexes = &self.shared.indexes;
        if !indexes.care().take_lost() {
            return Ok(());
        }
        let version = self.shared.current();
        version.segments.iter().try_for_each(|live| indexes.complete(&self.shared.storage, &live.segment))
    }

    fn merge_rows(&self, writer: &Writer, merging: &mut Merging, all: bool) -> Result<()> {
        let now = self.shared.current();
        let nothing_new = now.delta.rows == 0 && now.frozen.is_none();
        let tidy = if all {
            now.segments.len() <= 1 && now.segments.iter().all(|live| live.deletes.count() == 0)
        } else {
            choose(&now, self.options.segment_rows).is_empty()
        };
        if nothing_new && tidy {
            return Ok(());
        }
        drop(now);
        let frozen = lock(&writer.engine).freeze()?;
        let version = &frozen.version;
        let replaced = if all {
            version.segments.iter().map(|live| live.segment.entry.number).collect()
        } else {
            choose(version, self.options.segment_rows)
        };
        let (new, moved) = merge::merge(&self.shared, version, &replaced, &self.output())?;
        let kept = version.segments.iter().filter(|live| !replaced.contains(&live.segment.entry.number));
        let kept = kept.map(|live| SegmentEntry { deletes: live.deletes.clone(), ..live.segment.entry.clone() });
        let number = self.shared.new_file();
        let manifest = Manifest {
            codec: self.shared.codec.clone(),
            notes: self.shared.notes().as_ref().clone(),
            key: self.shared.columns.positions().collect(),
            numbered: self.shared.numbered,
            next_row: self.shared.next_row.load(Ordering::Relaxed),
            next_file: number + 1,
            log: frozen.log,
            segments: kept.chain(new.iter().map(|segment| segment.entry.clone())).collect(),
            indexes: self.shared.indexes.definitions(),
        };
        let storage = &*self.shared.storage;
        // Until a slot is written all is as it was.
        let named = manifest
            .prepare(storage, number)
            .inspect_err(|_| new.iter().for_each(|segment| segment.make_obsolete()))?;
        if let Err(error) = named.publish(storage, Known::beginning(frozen.log)) {
            // Which of the two versions is there, only who reads it again finds out.
            return Err(lock(&writer.engine).stop(error));
        }
        lock(&writer.engine).install(&replaced, new, &moved);
        // What can't be removed now, the next to open the table removes.
        let _ = storage.remove(&manifest::name(merging.version));
        for file in merging.first_log..frozen.log.file {
            let _ = storage.remove(&log::name(file));
        }
        *merging = Merging { version: number, first_log: frozen.log.file };
        self.changed.notify_all();
        Ok(())
    }

    /// Creates an index over some columns. Others commit and read meanwhile, but for the moment in which rows in memory are
    /// indexed.
    pub(super) fn create_index(&self, name: &str, columns: &[usize], unique: bool) -> Result<()> {
        let Some(writer) = &self.writer else { return Err(TableError::ReadOnly) };
        // No merge begins or ends meanwhile.
        let mut merging = lock(&writer.merging);
        if self.shared.indexes.named(name).is_ok() {
            return Err(TableError::invalid(format!("there is an index {name:?} already")));
        }
        if columns.iter().enumerate().any(|(i, column)| columns.iter().take(i).any(|other| other == column)) {
            return Err(TableError::invalid(format!("the index {name:?} names a column twice")));
        }
        let (schema, number) = (self.shared.codec.schema(), self.shared.new_file());
        let columns = KeyColumns::of_index(schema, columns)?;
        let index = Arc::new(Definition { number, name: name.to_owned(), unique, columns });
        let created = self
            .shared
            .current()
            .segments
            .iter()
            .try_for_each(|live| self.shared.indexes.build(&self.shared.storage, &live.segment, &index));
        let created = created.and_then(|()| lock(&writer.engine).add_index(&index));
        let created = created.and_then(|version| if unique { index.check_all(&version, schema) } else { Ok(()) });
        if let Err(error) =
            created.and_then(|()| self.store_definitions(writer, &mut merging, self.shared.indexes.definitions()))
        {
            lock(&writer.engine).remove_index(number);
            return Err(error);
        }
        Ok(())
    }

    /// Takes an index away.
    pub(super) fn drop_index(&self, name: &str) -> Result<()> {
        let Some(writer) = &self.writer else { return Err(TableError::ReadOnly) };
        let mut merging = lock(&writer.merging);
        let index = self.shared.indexes.named(name)?;
        lock(&writer.engine).check()?;
        // Until that is stored commits keep it as it is.
        let mut others = self.shared.indexes.definitions();
        others.retain(|other| other.number != index.number);
        self.store_definitions(writer, &mut merging, others)?;
        lock(&writer.engine).remove_index(index.number);
        Ok(())
    }

    /// Puts other texts beside the columns.
    pub(crate) fn set_notes(&self, seen: &BTreeMap<String, String>, notes: BTreeMap<String, String>) -> Result<()> {
        let Some(writer) = &self.writer else { return Err(TableError::ReadOnly) };
        let mut merging = lock(&writer.merging);
        lock(&writer.engine).check()?;
        let before = self.shared.notes();
        if *before != *seen {
            return Err(TableError::invalid("the table's definition was changed meanwhile; try again"));
        }
        self.shared.set_notes(Arc::new(notes));
        let indexes = self.shared.indexes.definitions();
        self.store_definitions(writer, &mut merging, indexes).inspect_err(|_| self.shared.set_notes(before))
    }

    /// Writes the manifest again, with these indexes and the notes as they are now.
    fn store_definitions(&self, writer: &Writer, merging: &mut Merging, indexes: Vec<Definition>) -> Result<()> {
        let storage = &*self.shared.storage;
        let (last, _, known) = Manifest::load(storage)?.ok_or_else(|| manifest::missing(storage))?;
        let number = self.shared.new_file();
        let notes = self.shared.notes().as_ref().clone();
        let manifest = Manifest { next_file: number + 1, indexes, notes, ..last };
        if let Err(error) = manifest.prepare(storage, number)?.publish(storage, known) {
            return Err(lock(&writer.engine).stop(error));
        }
        let _ = storage.remove(&manifest::name(merging.version));
        merging.version = number;
        Ok(())
    }
}
