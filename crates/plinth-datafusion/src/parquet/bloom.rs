//! Bloom filters of row groups: which values a chunk has not.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::DataType;
use parquet::basic::Type;
use parquet::bloom_filter::Sbbf;
use plinth_encoding::expr::Scalar;
use plinth_format::ScanMetrics;
use plinth_format::scan::source::{ColumnPredicate, Leaf};

use super::arrays::guarded;
use super::chunk_bytes::ChunkBytes;
use super::file::ParquetFile;
use super::predicate::LeafState;
use super::resolved::Resolved;

/// Larger filters are not read.
const MOST_BYTES: i32 = 16 << 20;

/// A row group and a leaf.
type Chunk = (usize, usize);

/// The filters of one file, read when they are first asked.
#[derive(Debug)]
pub(super) struct Blooms {
    /// `None` if they are not to be read.
    file: Option<ParquetFile>,
    metrics: Arc<ScanMetrics>,
    known: RefCell<HashMap<Chunk, Option<Arc<Sbbf>>>>,
    /// By predicate and row group.
    answers: RefCell<HashMap<(usize, usize), bool>>,
}

impl Blooms {
    pub(super) fn new(file: ParquetFile, metrics: Arc<ScanMetrics>) -> Self {
        Self { file: Some(file), metrics, known: RefCell::default(), answers: RefCell::default() }
    }

    pub(super) fn disable(&mut self) {
        self.file = None;
    }

    /// Drops what is held of row groups before one.
    pub(super) fn forget(&mut self, first: usize) {
        self.known.get_mut().retain(|(group, _), _| *group >= first);
        self.answers.get_mut().retain(|(_, group), _| *group >= first);
    }

    /// Whether no row of a row group can pass a predicate. A filter that can't be read rules nothing out.
    pub(super) fn rule_out(&self, predicate: &Leaf<LeafState>, column: &Resolved, group: usize) -> bool {
        let (Some(file), ColumnPredicate::In(set)) = (&self.file, &predicate.predicate) else { return false };
        let id = predicate.state.id;
        if let Some(&known) = self.answers.borrow().get(&(id, group)) {
            return known;
        }
        let leaf = column.leaf();
        // Neither is a list of values made nor a filter read where the other is missing.
        let chunk = file.metadata.row_group(group).column(leaf);
        let Some(needles) = chunk.bloom_filter_offset().and_then(|_| set.members()) else { return false };
        let filter = self
            .known
            .borrow_mut()
            .entry((group, leaf))
            .or_insert_with(|| read(file, &self.metrics, group, leaf))
            .clone();
        let physical = file.metadata.file_metadata().schema_descr().column(leaf).physical_type();
        let answer = filter.is_some_and(|filter| {
            needles.iter().all(|needle| may_hold(&filter, needle, physical, &column.data_type) == Some(false))
        });
        self.answers.borrow_mut().insert((id, group), answer);
        answer
    }
}

fn read(file: &ParquetFile, metrics: &Arc<ScanMetrics>, group: usize, leaf: usize) -> Option<Arc<Sbbf>> {
    let chunk = file.metadata.row_group(group).column(leaf);
    let is_large = chunk.bloom_filter_length().is_some_and(|len| len > MOST_BYTES);
    if is_large || chunk.bloom_filter_offset().is_none() {
        return None;
    }
    let bytes = ChunkBytes::new(Arc::clone(&file.source), Arc::clone(metrics), 0..file.source.byte_len());
    guarded(|| Sbbf::read_from_column_chunk(chunk, &bytes)).ok().flatten().map(Arc::new)
}

/// Whether a filter may hold a value; `None` if it can't be asked.
fn may_hold(filter: &Sbbf, value: &Scalar, physical: Type, data_type: &DataType) -> Option<bool> {
    Some(match (physical, data_type, value) {
        (
            Type::INT32,
            DataType::Int8
            | DataType::Int16
            | DataType::Int32
            | DataType::UInt8
            | DataType::UInt16
            | DataType::UInt32
            | DataType::Date32
            | DataType::Time32(_),
            Scalar::Int(value),
        ) => match (i32::try_from(*value), u32::try_from(*value)) {
            (Ok(value), _) => filter.check(&value),
            (_, Ok(value)) => filter.check(&value.cast_signed()),
            // No such value is stored in so few bits.
            _ => false,
        },
        (
            Type::INT64,
            DataType::Int64 | DataType::UInt64 | DataType::Time64(_) | DataType::Timestamp(..) | DataType::Duration(_),
            Scalar::Int(value),
        ) => match (i64::try_from(*value), u64::try_from(*value)) {
            (Ok(value), _) => filter.check(&value),
            (_, Ok(value)) => filter.check(&value.cast_signed()),
            _ => false,
        },
        (Type::DOUBLE, DataType::Float64, Scalar::Float(value)) => filter.check(value),
        (
            Type::BYTE_ARRAY,
            DataType::Utf8
            | DataType::LargeUtf8
            | DataType::Utf8View
            | DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView,
            Scalar::Bytes(value),
        ) => filter.check(&**value),
        (Type::FIXED_LEN_BYTE_ARRAY, DataType::FixedSizeBinary(_), Scalar::Bytes(value)) => filter.check(&**value),
        _ => return None,
    })
}
