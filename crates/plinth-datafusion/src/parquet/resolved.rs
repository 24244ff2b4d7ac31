//! The columns of a Parquet file that a scan reads, found by path.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_schema::{DataType, FieldRef, Fields, Schema};
use parquet::arrow::{FieldLevels, ProjectionMask, parquet_to_arrow_field_levels};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ParquetMetaData;
use parquet::file::page_index::offset_index::PageLocation;
use plinth_encoding::expr::Path;

/// A column, or a field inside struct columns, and the leaves of the file that hold it.
#[derive(Debug)]
pub(super) struct Resolved {
    pub(super) path: Path,
    pub(super) field: FieldRef,
    pub(super) data_type: DataType,
    /// Its leaves in the file, at least one.
    leaves: Vec<usize>,
    /// Whether it is one leaf with one value a row.
    pub(super) is_flat: bool,
    /// The definition level of a value, if it is flat.
    pub(super) level: i16,
    /// Whether intervals may be negative.
    signed: bool,
    /// How the leaves are read: as a batch of the column's root, with these leaves alone.
    pub(super) levels: FieldLevels,
}

impl Resolved {
    /// Finds a path in a file whose columns are read as `schema` says.
    pub(super) fn find(metadata: &ParquetMetaData, schema: &Schema, path: &Path) -> Result<Self> {
        let missing = || ParquetError::General(format!("there is no column {path}"));
        let (root, below) = path.parts().split_first().ok_or_else(missing)?;
        let (index, found) = schema.column_with_name(root).ok_or_else(missing)?;
        let mut field = schema.fields().get(index).cloned().ok_or_else(missing)?;
        let mut nullable = found.is_nullable();
        for name in below {
            let DataType::Struct(fields) = field.data_type() else { return Err(missing()) };
            let child = named(fields, name).ok_or_else(missing)?;
            nullable |= child.is_nullable();
            field = child;
        }
        let descriptor = metadata.file_metadata().schema_descr();
        let is_part = |leaf: &usize| {
            let parts = descriptor.column(*leaf).path().parts().to_vec();
            descriptor.get_column_root_idx(*leaf) == index
                && parts.len() > below.len()
                && parts.iter().skip(1).zip(below).all(|(part, name)| part == name)
        };
        let leaves: Vec<usize> = (0..descriptor.num_columns()).filter(is_part).collect();
        let mask = ProjectionMask::leaves(descriptor, leaves.iter().copied());
        let levels = parquet_to_arrow_field_levels(descriptor, mask, Some(schema.fields()))?;
        let first = descriptor.column(*leaves.first().ok_or_else(missing)?);
        let is_flat = leaves.len() == 1 && first.max_rep_level() == 0 && !field.data_type().is_nested();
        let field = Arc::new(field.as_ref().clone().with_nullable(nullable));
        let data_type = field.data_type().clone();
        Ok(Self {
            path: path.clone(),
            field,
            data_type,
            leaves,
            is_flat,
            level: first.max_def_level(),
            signed: plinth_ingest::has_arrow_schema(metadata),
            levels,
        })
    }

    /// Values as the decoders give them, as what they mean.
    pub(super) fn meant(&self, array: &ArrayRef) -> Result<ArrayRef> {
        plinth_ingest::as_meant(array, &self.data_type, self.signed).map_err(ParquetError::General)
    }

    pub(super) fn leaves(&self) -> &[usize] {
        &self.leaves
    }

    /// The first leaf.
    pub(super) fn leaf(&self) -> usize {
        self.leaves.first().copied().unwrap_or(0)
    }

    /// The fields to descend into from the root.
    pub(super) fn fields(&self) -> &[String] {
        self.path.parts().get(1..).unwrap_or_default()
    }
}

fn named(fields: &Fields, name: &str) -> Option<FieldRef> {
    fields.iter().find(|field| field.name() == name).cloned()
}

/// Where the pages of a chunk are, if an index says so and makes sense: pages in order inside of the chunk.
pub(super) fn page_locations(metadata: &ParquetMetaData, group: usize, leaf: usize) -> Option<&[PageLocation]> {
    let locations = metadata.offset_index()?.get(group)?.get(leaf)?.page_locations().as_slice();
    let group = metadata.row_group(group);
    let (start, len) = group.column(leaf).byte_range();
    let (mut at, mut row) = (start, None);
    for location in locations {
        let offset = u64::try_from(location.offset).ok()?;
        let end = offset.checked_add(u64::try_from(location.compressed_page_size).ok()?)?;
        let in_order = row.map_or(location.first_row_index == 0, |row| location.first_row_index > row);
        if offset < at || end > start.checked_add(len)? || !in_order || location.first_row_index >= group.num_rows() {
            return None;
        }
        (at, row) = (end, Some(location.first_row_index));
    }
    (!locations.is_empty()).then_some(locations)
}
