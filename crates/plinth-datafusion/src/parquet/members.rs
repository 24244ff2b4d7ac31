//! The files of a table of Parquet: where they are, and what is known of their values in the table's terms.

use std::path::Path;

use arrow_schema::{DataType, Schema};
use datafusion_common::stats::Precision;
use datafusion_common::{ColumnStatistics, DataFusionError, Result, ScalarValue, Statistics};
use datafusion_datasource::{PartitionedFile, TableSchema};
use datafusion_execution::object_store::ObjectStoreUrl;
use datafusion_physical_expr::expressions::Column;
use datafusion_physical_expr::{LexOrdering, PhysicalSortExpr};
use object_store::ObjectMeta;
use parquet::file::metadata::ParquetMetaData;
use plinth_ingest::Listing;
use plinth_io::Object;
use plinth_objects::ObjectUrl;

use crate::location;

/// The store of files, and where they are in it.
pub(super) fn located(listing: &Listing) -> Result<(ObjectStoreUrl, Vec<(&Path, ObjectMeta)>)> {
    let mut store = None;
    let mut members = Vec::new();
    for (path, object, _) in listing.files() {
        let meta = match object {
            None => of_file(path)?,
            Some(object) => {
                let url = ObjectUrl::parse(&object.url).map_err(|e| DataFusionError::External(Box::new(e)))?;
                if store.is_none() {
                    store = Some(ObjectStoreUrl::parse(&url.base)?);
                }
                of_object(object, &url)?
            }
        };
        members.push((path, meta));
    }
    Ok((store.unwrap_or_else(ObjectStoreUrl::local_filesystem), members))
}

fn of_file(path: &Path) -> Result<ObjectMeta> {
    let metadata = std::fs::metadata(path)
        .and_then(|metadata| Ok((metadata.len(), metadata.modified()?)))
        .map_err(|e| DataFusionError::Plan(format!("{}: cannot be opened: {e}", path.display())));
    let (size, modified) = metadata?;
    let location = location::from_path(path);
    Ok(ObjectMeta { location, last_modified: modified.into(), size, e_tag: None, version: None })
}

fn of_object(object: &Object, url: &ObjectUrl) -> Result<ObjectMeta> {
    let location = url.location().map_err(|e| DataFusionError::External(Box::new(e)))?;
    Ok(ObjectMeta {
        location,
        last_modified: object.identity.modified().map(Into::into).unwrap_or_default(),
        size: object.identity.len,
        e_tag: object.tag.clone(),
        version: None,
    })
}

/// What a file's footer says of its values.
pub(super) struct Told<'a> {
    /// As the engine reads it.
    pub(super) known: Statistics,
    pub(super) metadata: &'a ParquetMetaData,
}

impl Told<'_> {
    /// What is known of the values, told of the columns of the file's table; `values` are those of its folders.
    pub(super) fn statistics(&self, file: &Schema, table: &TableSchema, values: &[ScalarValue]) -> Statistics {
        let known = &self.known;
        let rows = known.num_rows;
        let of_file = table.file_schema().fields().iter().map(|field| {
            let found = file.index_of(field.name()).ok().and_then(|at| known.column_statistics.get(at));
            let Some(found) = found else {
                return ColumnStatistics { null_count: rows, ..ColumnStatistics::new_unknown() };
            };
            let (min_value, max_value) = match self.has_bounds(field.name()) {
                true => (bound(&found.min_value, field.data_type()), bound(&found.max_value, field.data_type())),
                false => (Precision::Absent, Precision::Absent),
            };
            ColumnStatistics { min_value, max_value, ..found.clone() }
        });
        let of_folders = values.iter().map(|value| of_folder(value, rows));
        let column_statistics = of_file.chain(of_folders).collect();
        Statistics { num_rows: rows, total_byte_size: known.total_byte_size, column_statistics }
    }

    /// Whether all row groups that have values of a column tell of bounds, in the order that its type has: those of old writers may
    /// be in another.
    fn has_bounds(&self, column: &str) -> bool {
        let leaves = self.metadata.file_metadata().schema_descr();
        let Some(leaf) = leaves.columns().iter().position(|leaf| leaf.path().parts() == [column]) else { return true };
        self.metadata.row_groups().iter().all(|group| {
            let chunk = group.column(leaf);
            match chunk.statistics() {
                _ if group.num_rows() == 0 => true,
                None => false,
                Some(told) if told.null_count_opt() == u64::try_from(chunk.num_values()).ok() => true,
                Some(told) => {
                    told.min_bytes_opt().is_some() && told.max_bytes_opt().is_some() && !told.is_min_max_deprecated()
                }
            }
        })
    }
}

/// A bound in the type of a table's column. No value at all says nothing of the values of other files, and that of doubles nothing of NaN.
fn bound(bound: &Precision<ScalarValue>, data_type: &DataType) -> Precision<ScalarValue> {
    match bound.get_value().map(|value| value.cast_to(data_type)) {
        Some(Ok(value)) if !value.is_null() => match bound {
            Precision::Exact(_) if !data_type.is_floating() => Precision::Exact(value),
            _ => Precision::Inexact(value),
        },
        _ => Precision::Absent,
    }
}

/// What is known of a column whose value a folder's name says.
fn of_folder(value: &ScalarValue, rows: Precision<usize>) -> ColumnStatistics {
    let (nulls, bound) = match value.is_null() {
        true => (rows, Precision::Absent),
        false => (Precision::Exact(0), Precision::Exact(value.clone())),
    };
    ColumnStatistics {
        null_count: nulls,
        min_value: bound.clone(),
        max_value: bound,
        distinct_count: Precision::Exact(usize::from(!value.is_null())),
        ..ColumnStatistics::new_unknown()
    }
}

/// Whether the order that a file tells of is that of all its rows: it is said of each row group, and by the names of leaves.
pub(super) fn is_ordered_whole(metadata: &ParquetMetaData) -> bool {
    let leaves = metadata.file_metadata().schema_descr();
    metadata.num_row_groups() < 2 && leaves.columns().iter().all(|leaf| leaf.path().parts().len() == 1)
}

/// The order that the rows of each of some files are in, as far as that of several, one behind the other, is told by their bounds: these
/// leave out NULL and NaN.
pub(super) fn common_ordering(files: &[PartitionedFile]) -> Option<LexOrdering> {
    let (first, others) = files.split_first()?;
    let mut common: Vec<_> = first.ordering.as_ref()?.iter().cloned().collect();
    for file in others {
        let same = file.ordering.as_ref()?.iter().zip(&common).take_while(|(a, b)| a == b).count();
        common.truncate(same);
    }
    let is_bounded = |by: &PhysicalSortExpr| {
        let Some(column) = by.expr.downcast_ref::<Column>().map(Column::index) else { return false };
        files.iter().all(|file| {
            let known = file.statistics.as_ref().and_then(|known| known.column_statistics.get(column));
            known.is_some_and(|known| {
                let has_nan = known.min_value.get_value().is_none_or(|value| value.data_type().is_floating());
                known.null_count == Precision::Exact(0) && !has_nan
            })
        })
    };
    if !others.is_empty() {
        let bounded = common.iter().take_while(|by| is_bounded(by)).count();
        common.truncate(bounded);
    }
    LexOrdering::new(common)
}
