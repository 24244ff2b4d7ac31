//! A table is opened: the manifest, its segments, and what the log says happened since.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use plinth_io::Storage;

use crate::cache::Blocks;
use crate::commit;
use crate::engine::Shared;
use crate::error::{Result, TableError};
use crate::index::{self, Indexes};
use crate::key::{KeyColumns, hash};
use crate::log::{self, Log, Replay};
use crate::manifest::{self, Manifest};
use crate::numbering::{MOST_NUMBER, file_number};
use crate::options::TableOptions;
use crate::segment::{self, Live, Segment};
use crate::version::Version;

/// A table as it was found.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) shared: Arc<Shared>,
    /// Where the log goes on.
    pub(crate) log: Replay,
    /// The number of the version file.
    pub(crate) version: u64,
}

/// Reads everything there is.
pub(crate) fn open(storage: &Arc<dyn Storage>, blocks: Arc<Blocks>, options: &TableOptions) -> Result<Opened> {
    let open = &options.open;
    let (manifest, version, known) = Manifest::load(&**storage)?.ok_or_else(|| manifest::missing(&**storage))?;
    let Manifest { codec, notes, key, numbered, mut next_row, next_file, log, segments, indexes } = manifest;
    let columns = KeyColumns::new(codec.schema(), &key)?;
    let indexes = Indexes::new(&columns, indexes, options.index_bytes, open.io.budget());
    let mut state = Version::new(log.sequence, open.io.budget(), &indexes);
    for entry in segments {
        let deletes = entry.deletes.clone();
        let segment = Arc::new(Segment::open(storage, entry, codec.schema(), &blocks, &indexes, open)?);
        state.segments.push(Live { segment, deletes });
    }
    let log = log::replay(&**storage, log, &known, |sequence, payload, place| {
        let damaged = |what: String| {
            let (file, offset) = place();
            TableError::corrupt(file, format!("offset {offset}: {what}"))
        };
        for logged in commit::read(payload, &codec, &columns).map_err(damaged)? {
            if logged.all_go {
                state.delete_all();
            }
            let rows = logged.rows.as_ref().map(|(_, keys)| keys);
            for key in logged.deletes.iter().chain(rows.into_iter().flat_map(|keys| keys.iter())) {
                if let Some(place) = state.find(&columns, key, hash(key))? {
                    state.delete(place);
                }
            }
            if let Some((batch, keys)) = &logged.rows {
                state.insert(batch, keys)?;
                if numbered {
                    let last = keys.iter().filter_map(row_number).max();
                    next_row = next_row.max(after(last).ok_or_else(|| damaged("a row's number is too large".into()))?);
                }
            }
            for entry in logged.segments {
                let segment = Segment::open(storage, entry, codec.schema(), &blocks, &indexes, open)?;
                if numbered {
                    let last = after(segment.last_number()?);
                    next_row = next_row.max(last.ok_or_else(|| damaged("a row's number is too large".into()))?);
                }
                segment.since.store(sequence + 1, Ordering::Relaxed);
                state.segments.push(Live { segment: Arc::new(segment), deletes: Default::default() });
            }
        }
        state.sequence = sequence + 1;
        Ok(())
    })?;
    let used = storage.list()?.iter().filter_map(|name| number(name)).max().map_or(0, |number| number + 1);
    let next = (next_row, next_file.max(used));
    let storage = Arc::clone(storage);
    let shared = Shared::new(storage, codec, notes, columns, numbered, blocks, indexes, open.clone(), state, next);
    Ok(Opened { shared: Arc::new(shared), log, version })
}

/// The number after the last one that rows have; none if there is none.
fn after(last: Option<u64>) -> Option<u64> {
    last.map_or(Some(0), |last| (last < MOST_NUMBER).then_some(last + 1))
}

/// The number of a row, which is its key's last part.
fn row_number(key: &[u8]) -> Option<u64> {
    key.last_chunk().copied().map(u64::from_be_bytes)
}

/// The number of a segment's or version's file.
fn number(name: &str) -> Option<u64> {
    segment::number(name).or_else(|| file_number(name.strip_prefix("_version-")?))
}

/// Goes on with the log, before the first commit: it is made durable as it was read, and both slots of the manifest say so.
pub(crate) fn go_on(opened: &Opened, step: u64) -> Result<Log> {
    let storage = &opened.shared.storage;
    for file in &opened.log.files {
        storage.open(file)?.sync()?;
    }
    Log::resume(storage, &opened.log, step)
}

/// Puts in order what a crash may have left, once both slots say the same: files that nothing names are removed.
pub(crate) fn tidy(opened: &Opened) -> Result<()> {
    let storage = &*opened.shared.storage;
    let first_log = opened.log.files.first().and_then(|name| log::number(name)).unwrap_or(0);
    let version = opened.shared.current();
    opened.shared.indexes.care().begin_to_write();
    let named = |number| version.segments.iter().any(|live| live.segment.entry.number == number);
    let known = opened.shared.indexes.all();
    for name in storage.list()? {
        let left = match (segment::number(&name), log::number(&name), index::numbers(&name)) {
            (Some(number), _, _) => !named(number),
            (_, Some(number), _) => number < first_log,
            (_, _, Some((segment, number))) => {
                !named(segment) || (number != index::KEY && !known.iter().any(|known| known.number == number))
            }
            _ => name.starts_with("_version-") && name != manifest::name(opened.version),
        };
        if left {
            storage.remove(&name)?;
        }
    }
    // A tree that is gone or damaged is built again.
    version.segments.iter().try_for_each(|live| opened.shared.indexes.complete(&opened.shared.storage, &live.segment))
}
