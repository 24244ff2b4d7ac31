//! The pieces of a scan in the order in which an order's first rows are best looked for: those first that can have the best.

use std::collections::VecDeque;
use std::ops::Range;

use datafusion_common::{Result, ScalarValue};
use datafusion_datasource::PartitionedFile;
use datafusion_datasource::file_groups::FileGroup;
use datafusion_datasource::file_scan_config::FileScanConfig;
use plinth_exec::top::{Key, OrderColumn, Ranking};
use plinth_format::{File, RowGroupBound};
use plinth_rowstore::SegmentRows;

use crate::error::from_exec;
use crate::opener::row_groups;
use crate::scalar::to_scalar_value;
use crate::source::PlinthSource;
use crate::split::in_order;

/// Row groups to be scanned together.
#[derive(Debug)]
pub(super) struct Piece {
    /// Which of the parts they are of.
    pub(super) part: usize,
    /// Which they are; all that start in the part if there is none.
    pub(super) groups: Option<Range<usize>>,
    /// No row's key is below it.
    pub(super) bound: Option<Key>,
}

/// The parts of a scan.
pub(super) fn parts(config: &FileScanConfig) -> Vec<PartitionedFile> {
    in_order(config.file_groups.iter().flat_map(FileGroup::iter).cloned().collect())
}

/// Divides parts into pieces by what zone maps say of the first column of an order, which is the first that the source gives.
pub(super) fn pieces(
    parts: &[PartitionedFile],
    source: &PlinthSource,
    ranking: &Ranking,
    first: &OrderColumn,
) -> Result<VecDeque<Piece>> {
    let looks_up = source.looks_up();
    let mut pieces: Vec<Piece> = Vec::new();
    let mut before: Option<(&PartitionedFile, Option<Bounds>)> = None;
    for (at, part) in parts.iter().enumerate() {
        if !before.as_ref().is_some_and(|(other, _)| is_same_file(other, part)) {
            let indexed = part.extension::<SegmentRows>().is_some_and(SegmentRows::is_indexed);
            let bounds = if looks_up || indexed { None } else { bounds(part, source, ranking, first)? };
            before = Some((part, bounds));
        }
        let Some((_, Some((file, bounds)))) = &before else {
            pieces.push(Piece { part: at, groups: None, bound: None });
            continue;
        };
        for group in row_groups(part, file) {
            let bound = bounds.get(group).cloned().flatten();
            match pieces.last_mut().filter(|last| last.part == at && last.bound == bound) {
                Some(Piece { groups: Some(before), .. }) => before.end = group + 1,
                _ => pieces.push(Piece { part: at, groups: Some(group..group + 1), bound }),
            }
        }
    }
    pieces.sort_by(|one, other| (one.bound.is_none(), &one.bound).cmp(&(other.bound.is_none(), &other.bound)));
    Ok(pieces.into())
}

/// Whether parts have their rows of one file, as one table sees it.
pub(super) fn is_same_file(one: &PartitionedFile, other: &PartitionedFile) -> bool {
    one.object_meta.location == other.object_meta.location && one.partition_values == other.partition_values
}

/// A file and, for each of its row groups, the key that no row's is below, if it is known.
type Bounds = (File, Vec<Option<Key>>);

fn bounds(
    part: &PartitionedFile,
    source: &PlinthSource,
    ranking: &Ranking,
    first: &OrderColumn,
) -> Result<Option<Bounds>> {
    let Some((file, bounds)) = source.row_group_bounds(part, 0, first.options.descending)? else { return Ok(None) };
    let none = ScalarValue::try_from(&first.data_type)?;
    let values = bounds.iter().map(|bound| bound.as_ref().and_then(|bound| best_of(bound, first, &none)));
    let values: Vec<Option<ScalarValue>> = values.collect();
    let known: Vec<ScalarValue> = values.iter().flatten().cloned().collect();
    if known.is_empty() {
        return Ok(None);
    }
    let mut keys = ranking.bounds(ScalarValue::iter_to_array(known)?).map_err(from_exec)?.into_iter();
    let keys = values.into_iter().map(|value| value.and_then(|_| keys.next())).collect();
    Ok(Some((file, keys)))
}

/// The best value that a row group can have, if it is known; `none` is NULL.
fn best_of(bound: &RowGroupBound, column: &OrderColumn, none: &ScalarValue) -> Option<ScalarValue> {
    let value = match &bound.value {
        Some(value) if !(bound.has_nulls && column.options.nulls_first) => value,
        _ => return Some(none.clone()),
    };
    let value = to_scalar_value(value, &column.data_type)?;
    // Of several NaN the bound is any.
    let is_nan = match value {
        ScalarValue::Float16(Some(value)) => value.is_nan(),
        ScalarValue::Float32(Some(value)) => value.is_nan(),
        ScalarValue::Float64(Some(value)) => value.is_nan(),
        _ => false,
    };
    (!is_nan).then_some(value)
}
