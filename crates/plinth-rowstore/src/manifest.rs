//! What the table consists of: a version file, and two slots that name it.
//!
//! `_manifest` has two slots of 4,096 bytes. Each has the magic, a sequence, the number, length and checksum of a version file,
//! what is [known](Known) of the log beside it, zeros, and in its last eight bytes the checksum of all before. The valid slot of
//! the higher sequence counts. What changes goes to the slot that does not count, then, once that is durable, to the other; only
//! then is removed what none but older versions needed. So either slot alone is enough, but in the moment between.
//!
//! `_version-NNNNNN` is written once and never changed; [`Manifest::write`] says what is in it.

use std::collections::BTreeMap;

use arrow_schema::Schema;
use plinth_core::wire::{Reader, checksum, put_bytes, put_varint};
use plinth_format::RowCodec;
use plinth_io::{Append, Output, Storage};

use crate::deletes::Deletes;
use crate::error::{Result, TableError};
use crate::index::Definition;
use crate::key::KeyColumns;
use crate::numbering::MOST_NUMBER;
use crate::position::{Known, Position};

/// The file of the slots.
pub(crate) const NAME: &str = "_manifest";

pub(crate) const SLOT: usize = 4096;

const MAGIC: &[u8; 8] = b"PLINTHT\n";

/// Of the layout of a version file and of all that it names. Tables are read for ever from this version on; those before were
/// of releases that promised nothing.
const VERSION: u32 = 5;

/// The name of a version file.
pub(crate) fn name(number: u64) -> String {
    format!("_version-{number:06}")
}

/// A segment and which of its rows are gone.
#[derive(Clone, Debug)]
pub(crate) struct SegmentEntry {
    /// In its files' names.
    pub(crate) number: u64,
    pub(crate) rows: u64,
    /// Bytes of the file of rows, and the checksum of its tail, which seals the footer, which seals all else.
    pub(crate) len: u64,
    pub(crate) seal: u64,
    /// Bytes of the file of keys, and its checksum.
    pub(crate) keys_len: u64,
    pub(crate) keys_seal: u64,
    pub(crate) deletes: Deletes,
}

/// A version of the table as it was when a log file began.
#[derive(Clone, Debug)]
pub(crate) struct Manifest {
    pub(crate) codec: RowCodec,
    /// Texts by name.
    pub(crate) notes: BTreeMap<String, String>,
    /// The columns of the key; of a table without one its hidden last column.
    pub(crate) key: Vec<usize>,
    /// Whether the key is hidden: numbers that rows were given.
    pub(crate) numbered: bool,
    /// The next row number to be given, and the next file number.
    pub(crate) next_row: u64,
    pub(crate) next_file: u64,
    /// Where the log begins.
    pub(crate) log: Position,
    pub(crate) segments: Vec<SegmentEntry>,
    pub(crate) indexes: Vec<Definition>,
}

/// A version file that a slot can name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Named {
    version: u64,
    len: u64,
    seal: u64,
}

/// What a slot says.
#[derive(Clone, Copy, Debug)]
struct Slot {
    /// One more than that of the slot before.
    sequence: u64,
    named: Named,
    known: Known,
}

impl Slot {
    fn write(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        let Self { sequence, named: Named { version, len, seal }, known: Known { begin, end } } = *self;
        let log = [begin.file, begin.sequence, begin.previous, end.sequence, end.previous];
        for field in [sequence, version, len, seal].into_iter().chain(log) {
            bytes.extend_from_slice(&field.to_le_bytes());
        }
        bytes.resize(SLOT - 8, 0);
        bytes.extend_from_slice(&checksum(&bytes).to_le_bytes());
        bytes
    }

    /// `Ok(None)` if there is no valid one.
    fn read(bytes: &[u8], file: &str) -> Result<Option<Self>> {
        let parse = || {
            let (body, seal) = bytes.split_at_checked(SLOT - 8)?;
            let mut reader = Reader::new(body);
            let sealed = Reader::new(seal).u64().ok()? == checksum(body) && reader.take(8).ok()? == MAGIC;
            sealed.then_some(reader)
        };
        let Some(mut reader) = parse() else { return Ok(None) };
        let version = reader.u32().unwrap_or(0);
        if version != VERSION {
            let what = if version > VERSION {
                format!(
                    "a table of version {version}, written by a newer Plinth (this one reads {VERSION}); update Plinth"
                )
            } else {
                let what = "a table written by a Plinth from before version 1 of the format";
                format!("{what}; export it to Parquet with the Plinth that wrote it, and import that")
            };
            return Err(plinth_format::FormatError::Version { file: file.to_owned(), what }.into());
        }
        Ok(Self::fields(reader))
    }

    fn fields(mut reader: Reader<'_>) -> Option<Self> {
        let mut field = || reader.u64().ok();
        let sequence = field()?;
        let named = Named { version: field()?, len: field()?, seal: field()? };
        let begin = Position { file: field()?, sequence: field()?, previous: field()? };
        let end = Position { file: begin.file, sequence: field()?, previous: field()? };
        let least = |number: u64| number < MOST_NUMBER;
        let fine = [sequence, named.version, begin.file, end.sequence].into_iter().all(least);
        (fine && begin.sequence <= end.sequence).then_some(Self { sequence, named, known: Known { begin, end } })
    }

    /// Writes both slots, durably, the one that counts last. One of them is valid at any time.
    fn put(&self, storage: &dyn Storage, newest: usize) -> Result<()> {
        let slots = storage.open(NAME)?;
        for half in [1 - newest, newest] {
            slots.write_at((half * SLOT) as u64, &self.write())?;
            slots.sync()?;
        }
        Ok(())
    }
}

impl Named {
    /// Makes the version the one that counts, with what is known of the log. If that fails, either this one or the one before
    /// does: only reading tells.
    pub(crate) fn publish(self, storage: &dyn Storage, known: Known) -> Result<()> {
        let found = newest_slot(storage)?;
        if found.is_none() {
            match storage.open(NAME) {
                Err(e) if e.is_not_found() => drop(storage.create(NAME)?),
                other => drop(other?),
            }
            storage.sync_names()?;
        }
        let (newest, sequence) = found.map_or((1, 0), |(newest, slot)| (newest, slot.sequence));
        Slot { sequence: sequence + 1, named: self, known }.put(storage, newest)
    }
}

/// Makes the manifest know, durably, what is there of the log.
pub(crate) fn note(storage: &dyn Storage, known: Known) -> Result<()> {
    let Some((newest, slot)) = newest_slot(storage)? else { return Err(missing(storage)) };
    Slot { sequence: slot.sequence + 1, known, ..slot }.put(storage, newest)
}

/// There is no manifest.
pub(crate) fn missing(storage: &dyn Storage) -> TableError {
    TableError::invalid(format!("{}: is not there, or empty: this is no writable table", storage.path_of(NAME)))
}

impl Manifest {
    fn write(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_bytes(&mut out, &noted(&self.codec, &self.notes).schema_bytes());
        put_varint(&mut out, self.key.len() as u64);
        self.key.iter().for_each(|&column| put_varint(&mut out, column as u64));
        out.push(u8::from(self.numbered));
        for number in [self.next_row, self.next_file, self.log.file, self.log.sequence] {
            put_varint(&mut out, number);
        }
        out.extend_from_slice(&self.log.previous.to_le_bytes());
        put_varint(&mut out, self.segments.len() as u64);
        self.segments.iter().for_each(|segment| segment.write(&mut out));
        put_varint(&mut out, self.indexes.len() as u64);
        self.indexes.iter().for_each(|index| index.write(&mut out));
        out
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        let (codec, notes) = without_notes(&RowCodec::from_schema_bytes(reader.bytes().ok()?).ok()?);
        let key =
            (0..reader.count(1).ok()?).map(|_| usize::try_from(reader.varint().ok()?).ok()).collect::<Option<_>>()?;
        let numbered = reader.u8().ok()? == 1;
        let (next_row, next_file) = (reader.varint().ok()?, reader.varint().ok()?);
        let (file, sequence) = (reader.varint().ok()?, reader.varint().ok()?);
        let log = Position { file, sequence, previous: reader.u64().ok()? };
        let segments = (0..reader.count(1).ok()?).map(|_| SegmentEntry::read(&mut reader)).collect::<Option<_>>()?;
        let indexes =
            (0..reader.count(1).ok()?).map(|_| Definition::read(&mut reader, codec.schema())).collect::<Option<_>>()?;
        reader.finish().ok()?;
        let least = |number: u64| number < MOST_NUMBER;
        [next_row, next_file, file, sequence].into_iter().all(least).then_some(())?;
        Some(Self { codec, notes, key, numbered, next_row, next_file, log, segments, indexes })
    }

    /// Writes the version file, durably. Nothing names it yet, so if that fails nothing has changed.
    pub(crate) fn prepare(&self, storage: &dyn Storage, version: u64) -> Result<Named> {
        let name = name(version);
        let bytes = self.write();
        let write = || {
            let mut file = Append::new(storage.create(&name)?);
            file.write_all(&bytes)?;
            file.finish()?;
            Ok(storage.sync_names()?)
        };
        // What can't be removed now, the next to open the table removes.
        write().inspect_err(|_: &TableError| drop(storage.remove(&name)))?;
        Ok(Named { version, len: bytes.len() as u64, seal: checksum(&bytes) })
    }

    /// The newest version, its file's number, and what is known of the log; `None` if the folder has no table.
    pub(crate) fn load(storage: &dyn Storage) -> Result<Option<(Self, u64, Known)>> {
        let Some((_, Slot { named, known, .. })) = newest_slot(storage)? else { return Ok(None) };
        let name = name(named.version);
        let damaged = |what: &str| TableError::corrupt(storage.path_of(&name), what);
        let source = storage.source(&name).map_err(|e| {
            if e.is_not_found() { damaged("is missing, but the manifest names it; restore it") } else { e.into() }
        })?;
        if source.byte_len() != named.len {
            return Err(damaged("has another length than the manifest says; restore it"));
        }
        let bytes = source.read(std::slice::from_ref(&(0..named.len)))?.pop().unwrap_or_default();
        if checksum(&bytes) != named.seal {
            return Err(damaged("the checksum does not match: the file is damaged; restore it"));
        }
        let manifest = Self::read(&bytes).ok_or_else(|| damaged("is no version of a table"))?;
        let starts = |at: &Position| manifest.log.file <= at.file && manifest.log.sequence <= at.sequence;
        if !starts(&known.begin) {
            return Err(damaged("begins with a log that the manifest does not know; restore both files"));
        }
        Ok(Some((manifest, named.version, known)))
    }
}

/// What the names of notes begin with among the metadata of the table.
const NOTE: &str = "plinth.note.";

/// Columns with notes in their metadata, which rows are not to carry.
fn noted(codec: &RowCodec, notes: &BTreeMap<String, String>) -> RowCodec {
    let mut metadata = codec.schema().metadata().clone();
    metadata.extend(notes.iter().map(|(name, text)| (format!("{NOTE}{name}"), text.clone())));
    codec.with_metadata(&metadata)
}

/// Columns without notes, and these.
fn without_notes(codec: &RowCodec) -> (RowCodec, BTreeMap<String, String>) {
    let (mut notes, mut metadata) = (BTreeMap::new(), codec.schema().metadata().clone());
    metadata.retain(|name, text| {
        let note = name.strip_prefix(NOTE);
        if let Some(name) = note {
            notes.insert(name.to_owned(), std::mem::take(text));
        }
        note.is_none()
    });
    (codec.with_metadata(&metadata), notes)
}

/// Both slots as they are, or what there is of them.
pub(crate) fn bytes(storage: &dyn Storage) -> Result<Vec<u8>> {
    let source = storage.source(NAME)?;
    let len = source.byte_len().min(2 * SLOT as u64);
    Ok(source.read(std::slice::from_ref(&(0..len)))?.pop().unwrap_or_default().to_vec())
}

/// Whether each slot is valid.
pub(crate) fn slots(storage: &dyn Storage) -> Result<[bool; 2]> {
    let (file, bytes) = (storage.path_of(NAME), bytes(storage)?);
    let valid = |half: usize| Slot::read(bytes.get(half * SLOT..(half + 1) * SLOT).unwrap_or_default(), &file);
    Ok([valid(0)?.is_some(), valid(1)?.is_some()])
}

/// The valid slot of the highest sequence, and which of the two it is.
fn newest_slot(storage: &dyn Storage) -> Result<Option<(usize, Slot)>> {
    let bytes = match bytes(storage) {
        Err(TableError::Format(plinth_format::FormatError::Io(e))) if e.is_not_found() => return Ok(None),
        other => other?,
    };
    let file = storage.path_of(NAME);
    let slot = |half: usize| Slot::read(bytes.get(half * SLOT..(half + 1) * SLOT).unwrap_or_default(), &file);
    let newest = match (slot(0)?, slot(1)?) {
        (Some(a), Some(b)) if a.sequence >= b.sequence => (0, a),
        (_, Some(b)) => (1, b),
        (Some(a), None) => (0, a),
        (None, None) if bytes.iter().all(|&byte| byte == 0) => return Ok(None),
        (None, None) => return Err(TableError::corrupt(file, "both slots are damaged; restore the file")),
    };
    Ok(Some(newest))
}

impl Definition {
    fn write(&self, out: &mut Vec<u8>) {
        put_varint(out, self.number);
        put_bytes(out, self.name.as_bytes());
        out.push(u8::from(self.unique));
        put_varint(out, self.columns.positions().count() as u64);
        self.columns.positions().for_each(|column| put_varint(out, column as u64));
    }

    fn read(reader: &mut Reader<'_>, schema: &Schema) -> Option<Self> {
        let number = reader.varint().ok()?;
        let name = std::str::from_utf8(reader.bytes().ok()?).ok()?.to_owned();
        let unique = reader.u8().ok()? == 1;
        let columns: Vec<usize> =
            (0..reader.count(1).ok()?).map(|_| usize::try_from(reader.varint().ok()?).ok()).collect::<Option<_>>()?;
        Some(Self { number, name, unique, columns: KeyColumns::of_index(schema, &columns).ok()? })
    }
}

impl SegmentEntry {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        for number in [self.number, self.rows, self.len, self.keys_len] {
            put_varint(out, number);
        }
        out.extend_from_slice(&self.seal.to_le_bytes());
        out.extend_from_slice(&self.keys_seal.to_le_bytes());
        put_varint(out, self.deletes.count());
        let mut next = 0;
        for row in self.deletes.rows() {
            put_varint(out, u64::from(row - next));
            next = row + 1;
        }
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let (number, rows) = (reader.varint().ok()?, reader.varint().ok()?);
        let (len, keys_len) = (reader.varint().ok()?, reader.varint().ok()?);
        let (seal, keys_seal) = (reader.u64().ok()?, reader.u64().ok()?);
        let mut deletes = Deletes::default();
        let mut next = 0_u64;
        for _ in 0..reader.count(1).ok()? {
            let row = next.checked_add(reader.varint().ok()?).filter(|&row| row < rows)?;
            deletes.insert(u32::try_from(row).ok()?);
            next = row + 1;
        }
        Some(Self { number, rows, len, seal, keys_len, keys_seal, deletes })
    }
}
