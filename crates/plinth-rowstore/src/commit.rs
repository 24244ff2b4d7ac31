//! What one commit changes, in memory and in the log.
//!
//! The payload of a frame is the number of its commits, and each as bytes with their length in front. A commit is whether all
//! rows before it go; the number of keys whose rows go, and these keys; the number of rows that come, and if there are some their blocks; the number of segments
//! that come, and these as a version file has them. A row replaces the one that has its key.

use std::sync::Arc;

use arrow_array::RecordBatch;
use plinth_core::wire::{Reader, WireError, put_bytes, put_varint};
use plinth_format::RowCodec;

use crate::error::Result;
use crate::key::{KeyColumns, Keys};
use crate::manifest::SegmentEntry;
use crate::segment::Segment;

/// The bytes of a commit, in pieces that are put together in the frame alone: the blocks of its rows are most of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Record {
    start: Vec<u8>,
    blocks: Vec<u8>,
    end: Vec<u8>,
}

impl Record {
    fn len(&self) -> usize {
        self.start.len() + self.blocks.len() + self.end.len()
    }

    fn put(&self, out: &mut Vec<u8>) {
        put_varint(out, self.len() as u64);
        [&self.start, &self.blocks, &self.end].iter().for_each(|piece| out.extend_from_slice(piece));
    }
}

/// What a commit changes.
#[derive(Clone, Debug, Default)]
pub(crate) struct WriteSet {
    /// The version that the writer saw: of whatever changed since, it must write nothing. None of a single change, which is
    /// made to the rows as it finds them.
    pub(crate) snapshot: Option<u64>,
    /// Rows that come, each with another key.
    pub(crate) rows: Option<RecordBatch>,
    pub(crate) keys: Keys,
    /// Whether none of these keys may be there already.
    pub(crate) must_be_new: bool,
    /// Whether all rows that there are go first.
    pub(crate) all_go: bool,
    /// Keys whose rows go: others than those that come.
    pub(crate) deletes: Keys,
    /// Segments that come.
    pub(crate) segments: Vec<Arc<Segment>>,
    /// What the log says of it.
    pub(crate) record: Record,
}

impl WriteSet {
    /// Encodes it for the log, on the committing thread.
    pub(crate) fn seal(mut self, codec: &RowCodec) -> Result<Self> {
        let mut start = vec![u8::from(self.all_go)];
        put_varint(&mut start, self.deletes.len() as u64);
        self.deletes.iter().for_each(|key| put_bytes(&mut start, key));
        let rows = self.rows.as_ref().filter(|rows| rows.num_rows() > 0);
        put_varint(&mut start, rows.map_or(0, |rows| rows.num_rows() as u64));
        let mut blocks = Vec::new();
        if let Some(rows) = rows {
            codec.encode(rows, &mut blocks)?;
            put_varint(&mut start, blocks.len() as u64);
        }
        let mut end = Vec::new();
        put_varint(&mut end, self.segments.len() as u64);
        self.segments.iter().for_each(|segment| segment.entry.write(&mut end));
        self.record = Record { start, blocks, end };
        Ok(self)
    }

    /// The keys that it writes, but for those of segments.
    pub(crate) fn written(&self) -> impl Iterator<Item = &[u8]> {
        self.keys.iter().chain(self.deletes.iter())
    }
}

/// Appends the payload of a frame.
pub(crate) fn put_payload(sets: &[&WriteSet], out: &mut Vec<u8>) {
    put_varint(out, sets.len() as u64);
    sets.iter().for_each(|set| set.record.put(out));
}

/// Bytes that the payload of some commits takes at most.
pub(crate) fn most_payload<'a>(sets: impl IntoIterator<Item = &'a WriteSet>) -> usize {
    const VARINT: usize = 10;
    sets.into_iter().fold(VARINT, |sum, set| sum.saturating_add(set.record.len() + VARINT))
}

/// A commit as a log has it.
#[derive(Debug)]
pub(crate) struct Logged {
    pub(crate) all_go: bool,
    pub(crate) deletes: Keys,
    pub(crate) rows: Option<(RecordBatch, Keys)>,
    pub(crate) segments: Vec<SegmentEntry>,
}

/// The commits of a frame, or what is wrong with them.
pub(crate) fn read(payload: &[u8], codec: &RowCodec, columns: &KeyColumns) -> Result<Vec<Logged>, String> {
    let wrong = |e: WireError| format!("the frame holds no list of commits: {e}");
    let mut reader = Reader::new(payload);
    let count = reader.count(1).map_err(wrong)?;
    let commits = (0..count).map(|_| read_one(reader.bytes().map_err(wrong)?, codec, columns)).collect();
    reader.finish().map_err(wrong)?;
    commits
}

fn read_one(bytes: &[u8], codec: &RowCodec, columns: &KeyColumns) -> Result<Logged, String> {
    let wrong = |e: WireError| format!("a commit can't be read: {e}");
    let mut reader = Reader::new(bytes);
    let all_go = match reader.u8().map_err(wrong)? {
        0 => false,
        1 => true,
        other => return Err(format!("a commit begins with {other}, which is neither 0 nor 1")),
    };
    let mut deletes = Keys::default();
    for _ in 0..reader.count(1).map_err(wrong)? {
        deletes.push(reader.bytes().map_err(wrong)?);
    }
    let rows = reader.length().map_err(wrong)?;
    let rows = if rows > 0 {
        let batch = codec.decode(reader.bytes().map_err(wrong)?, rows).map_err(|e| e.to_string())?;
        let keys = columns.of(&batch).map_err(|e| e.to_string())?;
        Some((batch, keys))
    } else {
        None
    };
    let count = reader.count(1).map_err(wrong)?;
    let segments = (0..count)
        .map(|_| {
            SegmentEntry::read(&mut reader).ok_or_else(|| "a commit's entry of a segment can't be read".to_owned())
        })
        .collect::<Result<_, _>>()?;
    reader.finish().map_err(wrong)?;
    Ok(Logged { all_go, deletes, rows, segments })
}
