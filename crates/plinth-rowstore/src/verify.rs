//! Checking all of a table: every byte of its files, and what they promise of each other.

use std::path::Path;
use std::sync::Arc;

use plinth_io::{Folder, Storage};

use crate::cache::Blocks;
use crate::error::{Result, TableError};
use crate::index;
use crate::key::hash;
use crate::manifest::{self, Manifest};
use crate::open::{self, Opened};
use crate::options::TableOptions;
use crate::segment::{Live, rows_name};
use crate::table::{ATTEMPTS, Table};
use crate::version::Version;

/// What there is, and what is wrong with it.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Verified {
    /// Rows that are there.
    pub rows: u64,
    /// Segments, all of whose values were decoded.
    pub segments: usize,
    /// Groups of commits in the log.
    pub commits: u64,
    /// Trees of indexes, which hold what their segments do.
    pub trees: usize,
    /// Bytes of the segments, of their keys and of the log.
    pub bytes: u64,
    /// Damage, each naming its file and place; none of a table that is whole. Where a segment's values can't be read, its keys
    /// are not looked at.
    pub problems: Vec<TableError>,
}

impl Table {
    /// Reads all of a table's files, also while another process writes to it: both slots of the manifest, each frame of the log, all values of
    /// every segment (by so many threads); whether its keys are sorted, each there once, and found by what finds keys; whether each
    /// tree of an index holds what the segment does, and nothing else.
    ///
    /// # Errors
    /// If a file can't be read, or there is no table. Damage is no error but among the [`Verified::problems`].
    pub fn verify(path: impl AsRef<Path>, threads: usize, options: &TableOptions) -> Result<Verified> {
        let storage: Arc<dyn Storage> = Arc::new(Folder::new(path.as_ref(), &options.open.io));
        let mut attempt = 0;
        loop {
            let before = manifest::bytes(&*storage);
            let found = verify(&storage, Self::open_reading(&storage, options), threads);
            // What is missing then may be what the writer had no more need for.
            let changed = attempt < ATTEMPTS && manifest::bytes(&*storage).ok() != before.ok();
            if !changed || found.as_ref().is_ok_and(|found| found.problems.is_empty()) {
                return found;
            }
            attempt += 1;
        }
    }

    /// As [`Table::verify`], on any storage, which does not change meanwhile, by one thread.
    ///
    /// # Errors
    /// As [`Table::verify`].
    pub fn verify_in(storage: &Arc<dyn Storage>, options: &TableOptions) -> Result<Verified> {
        let blocks = Blocks::new(options.cache_bytes, options.open.io.budget());
        verify(storage, open::open(storage, blocks, options), 1)
    }
}

fn is_damage(error: &TableError) -> bool {
    use plinth_format::FormatError::{Corrupt, Version};
    index::is_damage(error)
        || matches!(error, TableError::Format(Corrupt { .. } | Version { .. }) | TableError::Duplicate { .. })
}

fn verify(storage: &Arc<dyn Storage>, opened: Result<Opened>, threads: usize) -> Result<Verified> {
    let mut found = Verified::default();
    let mut note = |result: Result<()>| match result {
        Err(error) if is_damage(&error) => {
            found.problems.push(error);
            Ok(())
        }
        other => other,
    };
    note(Manifest::check_slots(&**storage))?;
    let opened = match opened {
        Ok(opened) => opened,
        Err(error) => {
            note(Err(error))?;
            return Ok(found);
        }
    };
    let version = opened.shared.current();
    let mut trees = 0;
    for (i, live) in version.segments.iter().enumerate() {
        let whole = live.segment.file.verify(threads, &|_| ());
        let readable = whole.is_ok();
        note(whole.map(drop).map_err(TableError::from))?;
        if readable {
            note(check_keys(&opened, &version, i, live))?;
            for tree in opened.shared.indexes.verify(&opened.shared.storage, &live.segment) {
                note(tree)?;
                trees += 1;
            }
        }
        found.bytes += live.segment.entry.len + live.segment.entry.keys_len;
    }
    found.segments = version.segments.len();
    found.trees = trees;
    found.rows = version.rows();
    found.commits = opened.log.next.sequence - opened.log.first;
    found.bytes += opened.log.bytes;
    Ok(found)
}

/// The keys of a segment are in order, are found, and no newer row has one of them.
fn check_keys(opened: &Opened, version: &Version, i: usize, live: &Live) -> Result<()> {
    let (shared, segment) = (&opened.shared, &live.segment);
    let file = shared.storage.path_of(&rows_name(segment.entry.number));
    let fields = shared.codec.schema().fields();
    let names: Vec<&str> =
        shared.columns.positions().filter_map(|at| fields.get(at)).map(|field| field.name().as_str()).collect();
    let mut last: Vec<u8> = Vec::new();
    let mut row = 0;
    for batch in segment.file.scan().select(names).batches()? {
        let batch = batch?;
        let arrays: Vec<_> = batch.columns().iter().collect();
        for key in shared.columns.of_arrays(&arrays)?.iter() {
            let wrong = |what: &str| {
                let what = format!("row {row}: the key {} {what}; restore the file", shared.columns.show(key));
                Err(TableError::corrupt(file.clone(), what))
            };
            if row > 0 && key <= last.as_slice() {
                return wrong("is not greater than the one before");
            }
            let hash = hash(key);
            if !segment.promises(row, key, hash) {
                return wrong("is not found by its file of keys");
            }
            if !live.deletes.contains(row) && version.has_newer(i, &shared.columns, key, hash)? {
                return wrong("is that of a newer row, too");
            }
            last.clear();
            last.extend_from_slice(key);
            row += 1;
        }
    }
    Ok(())
}

impl Manifest {
    /// Each slot is whole.
    fn check_slots(storage: &dyn Storage) -> Result<()> {
        for (half, whole) in manifest::slots(storage)?.into_iter().enumerate() {
            if !whole {
                let what = format!(
                    "offset {}: this slot is damaged; opening the table to write mends it",
                    half * manifest::SLOT
                );
                return Err(TableError::corrupt(storage.path_of(manifest::NAME), what));
            }
        }
        Ok(())
    }
}
