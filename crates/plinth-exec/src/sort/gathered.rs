//! Rows in memory, as they came, and their places in order.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_data::ArrayData;
use arrow_row::Rows;
use arrow_schema::DataType;
use arrow_select::interleave::interleave;
use plinth_encoding::text::{compact, compact_batch};

use super::{Keys, Sort};
use crate::error::{ExecError, Result};

/// Bytes that a row takes beside its values and its key: its place while places are sorted, where its key begins, and what the rows
/// that are picked are named by.
const PLACE: usize = size_of::<Place>() + size_of::<usize>();

/// Text is copied where what is held is more than so many times what it needs.
const WASTE: usize = 2;

/// What tells buffers from others: where they begin.
pub(super) type Buffers = HashSet<usize>;

/// A batch and its keys.
pub(super) struct Part {
    batch: RecordBatch,
    keys: Rows,
    /// Bytes of buffers that no batch before it has.
    own: usize,
    /// Bytes of its values, however they lie.
    values: usize,
    buffers: Buffers,
}

impl Part {
    pub(super) fn new(batch: RecordBatch, keys: &Keys, known: &Buffers) -> Result<Self> {
        let keys = keys.make(&batch)?;
        Ok(Self::of(batch, keys, known))
    }

    fn of(batch: RecordBatch, keys: Rows, known: &Buffers) -> Self {
        let (mut buffers, mut own) = (Buffers::new(), 0);
        for column in batch.columns() {
            own += count(&column.to_data(), known, &mut buffers);
        }
        let values = bytes_of(&batch);
        Self { batch, keys, own, values, buffers }
    }

    /// With text of its own, where no other batch has its buffers any more.
    pub(super) fn alone(self) -> Result<Self> {
        Ok(Self::of(compacted(&self.batch)?, self.keys, &Buffers::new()))
    }

    /// What it takes.
    pub(super) fn bytes(&self) -> usize {
        self.own + self.needed() - self.values
    }

    /// What it would take if it kept nothing but its rows.
    fn needed(&self) -> usize {
        self.values + self.keys.size() + self.batch.num_rows() * PLACE
    }
}

/// A batch whose text is in buffers of its own.
fn compacted(batch: &RecordBatch) -> Result<RecordBatch> {
    compact_batch(batch, compact).map_err(ExecError::source)
}

/// Adds the buffers of an array that are not known, and says what they take.
fn count(data: &ArrayData, known: &Buffers, new: &mut Buffers) -> usize {
    let nulls = data.nulls().map(|nulls| nulls.buffer());
    let mut bytes = 0;
    for buffer in data.buffers().iter().chain(nulls) {
        let address = buffer.data_ptr().as_ptr().addr();
        if !known.contains(&address) && new.insert(address) {
            bytes += buffer.capacity();
        }
    }
    bytes + data.child_data().iter().map(|child| count(child, known, new)).sum::<usize>()
}

/// Bytes of a batch's values, without what they share.
pub(super) fn bytes_of(batch: &RecordBatch) -> usize {
    let bytes = |column: &ArrayRef| match column.data_type() {
        DataType::Utf8View | DataType::BinaryView => {
            let text = column.as_any().downcast_ref::<arrow_array::StringViewArray>();
            let binary = column.as_any().downcast_ref::<arrow_array::BinaryViewArray>();
            let used = text.map(arrow_array::StringViewArray::total_buffer_bytes_used);
            let used = used.or_else(|| binary.map(arrow_array::BinaryViewArray::total_buffer_bytes_used));
            used.unwrap_or(0) + column.len() * size_of::<u128>()
        }
        _ => column.to_data().get_slice_memory_size().unwrap_or_else(|_| column.get_array_memory_size()),
    };
    batch.columns().iter().map(bytes).sum()
}

/// Rows as they came.
#[derive(Default)]
pub(super) struct Gathered {
    batches: Vec<RecordBatch>,
    keys: Vec<Rows>,
    rows: usize,
    bytes: usize,
    /// What it would be if batches kept nothing but their rows.
    needed: usize,
    values: usize,
    buffers: Buffers,
}

/// Where a row is, and the beginning of its key.
#[derive(Clone, Copy)]
struct Place {
    prefix: u64,
    batch: u32,
    row: u32,
}

impl Gathered {
    pub(super) fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// What it takes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn buffers(&self) -> &Buffers {
        &self.buffers
    }

    /// Copies text together if most of what is held is not of these rows; says whether it was.
    pub(super) fn compact(&mut self) -> Result<bool> {
        if self.bytes <= self.needed.saturating_mul(WASTE) {
            return Ok(false);
        }
        let (batches, keys) = (std::mem::take(&mut self.batches), std::mem::take(&mut self.keys));
        *self = Self::default();
        for (batch, keys) in batches.into_iter().zip(keys) {
            let part = Part::of(compacted(&batch)?, keys, &self.buffers);
            self.push(part)?;
        }
        // What else is wasted can't be helped, and is not to be tried again.
        self.needed = self.needed.max(self.bytes / WASTE);
        Ok(true)
    }

    pub(super) fn push(&mut self, part: Part) -> Result<()> {
        if u32::try_from(self.batches.len()).is_err() || u32::try_from(part.batch.num_rows()).is_err() {
            return Err(ExecError::internal("more batches or rows than places"));
        }
        self.bytes += part.bytes();
        self.needed += part.needed();
        self.rows += part.batch.num_rows();
        self.values += part.values;
        self.buffers.extend(part.buffers);
        self.batches.push(part.batch);
        self.keys.push(part.keys);
        Ok(())
    }

    /// The places of its rows in order, of rows alike as they came.
    #[allow(clippy::cast_possible_truncation, reason = "`push` looked at the numbers")]
    pub(super) fn sorted(self, sort: &Sort) -> Result<Places> {
        sort.check()?;
        let shared = self.shared();
        let keys = &self.keys;
        let key =
            |place: &Place| keys.get(place.batch as usize).map_or(&[][..], |rows| rows.row(place.row as usize).data());
        let mut places = Vec::with_capacity(self.rows);
        for (batch, rows) in keys.iter().enumerate() {
            let place = |(row, key): (usize, arrow_row::Row<'_>)| Place {
                prefix: prefix(key.data(), shared),
                batch: batch as u32,
                row: row as u32,
            };
            places.extend(rows.iter().enumerate().map(place));
        }
        sort.check()?;
        places.sort_unstable_by(|a, b| {
            let by_key = a.prefix.cmp(&b.prefix).then_with(|| key(a).cmp(key(b)));
            by_key.then_with(|| (a.batch, a.row).cmp(&(b.batch, b.row)))
        });
        let row = self.values.div_ceil(self.rows.max(1)).max(1);
        let rows = (sort.piece / row).clamp(1, sort.rows.max(1));
        let key = self.keys.iter().map(Rows::size).sum::<usize>() / self.rows.max(1);
        Ok(Places { batches: self.batches, places, next: 0, rows, key })
    }

    /// Bytes at the start of all keys that are the same.
    fn shared(&self) -> usize {
        let mut keys = self.keys.iter().flat_map(Rows::iter);
        let Some(first) = keys.next().map(|key| key.data()) else { return 0 };
        keys.fold(first.len(), |shared, key| {
            let same = |(a, b): &(&u8, &u8)| a == b;
            first.iter().zip(key.data()).take(shared).take_while(same).count()
        })
    }
}

/// The first eight bytes of a key behind some that all keys share: of two keys where they differ, the lesser has the lesser ones.
pub(super) fn prefix(key: &[u8], from: usize) -> u64 {
    let rest = key.get(from..).unwrap_or_default();
    if let Some(bytes) = rest.first_chunk::<8>() {
        return u64::from_be_bytes(*bytes);
    }
    let mut bytes = [0; 8];
    for (to, from) in bytes.iter_mut().zip(rest) {
        *to = *from;
    }
    u64::from_be_bytes(bytes)
}

/// Rows in order, in memory.
pub(super) struct Places {
    batches: Vec<RecordBatch>,
    places: Vec<Place>,
    next: usize,
    /// Rows of a batch.
    rows: usize,
    key: usize,
}

impl Places {
    /// Bytes of a key, on average.
    pub(super) fn key(&self) -> usize {
        self.key
    }

    pub(super) fn next(&mut self, sort: &Sort) -> Result<Option<RecordBatch>> {
        let end = self.places.len().min(self.next + self.rows);
        let picked = self.places.get(self.next..end).unwrap_or_default();
        if picked.is_empty() {
            return Ok(None);
        }
        let picked: Vec<_> = picked.iter().map(|place| (place.batch as usize, place.row as usize)).collect();
        self.next = end;
        pick(sort, &self.batches, &picked).map(Some)
    }
}

/// Some rows of batches, together; of text what they have, no more.
pub(super) fn pick(sort: &Sort, batches: &[RecordBatch], rows: &[(usize, usize)]) -> Result<RecordBatch> {
    let column = |at: usize| -> Result<ArrayRef> {
        let column = |batch: &RecordBatch| batch.columns().get(at).map(Arc::clone);
        let columns: Option<Vec<ArrayRef>> = batches.iter().map(column).collect();
        let columns = columns.ok_or_else(|| ExecError::internal(format!("rows without column {at}")))?;
        let columns: Vec<&dyn Array> = columns.iter().map(AsRef::as_ref).collect();
        Ok(compact(&interleave(&columns, rows)?))
    };
    let columns = (0..sort.schema.fields().len()).map(column).collect::<Result<_>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    Ok(RecordBatch::try_new_with_options(Arc::clone(&sort.schema), columns, &options)?)
}
