//! The files of a table of Parquet: where they are, and what is known of their values in the table's terms.

use std::path::Path;

use arrow_schema::Schema;
use datafusion_common::stats::Precision;
use datafusion_common::{ColumnStatistics, DataFusionError, Result, ScalarValue, Statistics};
use datafusion_datasource::{PartitionedFile, TableSchema};
use datafusion_execution::object_store::ObjectStoreUrl;
use datafusion_physical_expr::LexOrdering;
use object_store::ObjectMeta;
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

/// What is known of a file's values, told of the columns of its table.
pub(super) fn statistics(known: Statistics, file: &Schema, table: &TableSchema, values: &[ScalarValue]) -> Statistics {
    let rows = known.num_rows;
    let of_file = table.file_schema().fields().iter().map(|field| {
        let found = file.index_of(field.name()).ok().and_then(|at| known.column_statistics.get(at));
        let Some(found) = found else {
            return ColumnStatistics { null_count: rows, ..ColumnStatistics::new_unknown() };
        };
        // No value at all says nothing of the values of other files.
        let bound =
            |bound: &Precision<ScalarValue>| match bound.get_value().map(|value| value.cast_to(field.data_type())) {
                Some(Ok(value)) if !value.is_null() => match bound {
                    Precision::Exact(_) => Precision::Exact(value),
                    _ => Precision::Inexact(value),
                },
                _ => Precision::Absent,
            };
        ColumnStatistics { min_value: bound(&found.min_value), max_value: bound(&found.max_value), ..found.clone() }
    });
    let of_folders = values.iter().map(|value| {
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
    });
    let column_statistics = of_file.chain(of_folders).collect();
    Statistics { num_rows: rows, total_byte_size: known.total_byte_size, column_statistics }
}

/// The order that the rows of each of some files are in.
pub(super) fn common_ordering(files: &[PartitionedFile]) -> Option<LexOrdering> {
    let (first, others) = files.split_first()?;
    let mut common: Vec<_> = first.ordering.as_ref()?.iter().cloned().collect();
    for file in others {
        let same = file.ordering.as_ref()?.iter().zip(&common).take_while(|(a, b)| a == b).count();
        common.truncate(same);
    }
    LexOrdering::new(common)
}
