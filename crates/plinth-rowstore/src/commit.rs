//! What one commit changes, in memory and in the log.
//!
//! The payload of a frame is the number of its commits, and each as bytes with their length in front. A commit is whether all
//! rows before it go; the number of keys whose rows go, and these keys; the number of rows that come, and if there are some their blocks; the number of segments
//! that come, and these as a version file has them. A row replaces the one that has its key.

use std::sync::Arc;

use arrow_array::RecordBatch;
use plinth_format::RowCodec;

use crate::error::Result;
use crate::key::{KeyColumns, Keys};
use crate::manifest::SegmentEntry;
use crate::segment::Segment;
use crate::wire::{Reader, put_bytes, put_varint};

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
    pub(crate) record: Vec<u8>,
}

impl WriteSet {
    /// Encodes it for the log, on the thread of whoever commits.
    pub(crate) fn seal(mut self, codec: &RowCodec) -> Result<Self> {
        let mut out = vec![u8::from(self.all_go)];
        put_varint(self.deletes.len() as u64, &mut out);
        self.deletes.iter().for_each(|key| put_bytes(key, &mut out));
        let rows = self.rows.as_ref().filter(|rows| rows.num_rows() > 0);
        put_varint(rows.map_or(0, |rows| rows.num_rows() as u64), &mut out);
        if let Some(rows) = rows {
            let mut blocks = Vec::new();
            codec.encode(rows, &mut blocks)?;
            put_bytes(&blocks, &mut out);
        }
        put_varint(self.segments.len() as u64, &mut out);
        self.segments.iter().for_each(|segment| segment.entry.write(&mut out));
        self.record = out;
        Ok(self)
    }

    /// The keys that it writes, but for those of segments.
    pub(crate) fn written(&self) -> impl Iterator<Item = &[u8]> {
        self.keys.iter().chain(self.deletes.iter())
    }
}

/// The payload of a frame.
pub(crate) fn payload(sets: &[&WriteSet]) -> Vec<u8> {
    let mut out = Vec::new();
    put_varint(sets.len() as u64, &mut out);
    sets.iter().for_each(|set| put_bytes(&set.record, &mut out));
    out
}

/// Bytes that the payload of some commits takes at most.
pub(crate) fn most_payload(sets: &[WriteSet]) -> usize {
    const VARINT: usize = 10;
    sets.iter().fold(VARINT, |sum, set| sum.saturating_add(set.record.len() + VARINT))
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
    let wrong = || "the frame's payload is none".to_owned();
    let mut reader = Reader(payload);
    let count = reader.count().ok_or_else(wrong)?;
    let commits = (0..count).map(|_| read_one(reader.bytes().ok_or_else(wrong)?, codec, columns)).collect();
    reader.end().ok_or_else(wrong)?;
    commits
}

fn read_one(bytes: &[u8], codec: &RowCodec, columns: &KeyColumns) -> Result<Logged, String> {
    let wrong = || "a commit's bytes are none".to_owned();
    let mut reader = Reader(bytes);
    let all_go = match reader.take(1) {
        Some([0]) => false,
        Some([1]) => true,
        _ => return Err(wrong()),
    };
    let mut deletes = Keys::default();
    for _ in 0..reader.count().ok_or_else(wrong)? {
        deletes.push(reader.bytes().ok_or_else(wrong)?);
    }
    let rows = usize::try_from(reader.varint().ok_or_else(wrong)?).map_err(|_| wrong())?;
    let rows = if rows > 0 {
        let batch = codec.decode(reader.bytes().ok_or_else(wrong)?, rows).map_err(|e| e.to_string())?;
        let keys = columns.of(&batch).map_err(|e| e.to_string())?;
        Some((batch, keys))
    } else {
        None
    };
    let count = reader.count().ok_or_else(wrong)?;
    let segments = (0..count).map(|_| SegmentEntry::read(&mut reader).ok_or_else(wrong)).collect::<Result<_, _>>()?;
    reader.end().ok_or_else(wrong)?;
    Ok(Logged { all_go, deletes, rows, segments })
}
