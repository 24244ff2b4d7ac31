//! What a file's statistics say of its row groups and pages.
//!
//! They may be missing, truncated, or of another order than the values', and a wrong one must never cost a row. Taken for
//! true is what the format defines: bounds under the column's defined order; the older fields, which were compared as signed
//! integers, only for such; of the bounds of floats only that no number lies outside of them, for NaNs are not counted; null
//! counts only where one is written.

use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, Field};
use datafusion_common::ScalarValue;
use parquet::arrow::arrow_reader::statistics::StatisticsConverter;
use parquet::basic::{ColumnOrder, Type};
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use parquet::file::page_index::column_index::ColumnIndexMetaData;
use plinth_encoding::expr::Scalar;
use plinth_encoding::{Bounds, ValueSet, ZoneMapResult};
use plinth_format::scan::source::ColumnPredicate;

use crate::scalar::to_plinth;

/// What is known of some rows of a leaf.
#[derive(Clone, Debug)]
pub(super) struct Zone {
    bounds: Option<Bounds>,
    nulls: Option<u64>,
    rows: u64,
}

/// What is known of a leaf's chunk.
#[derive(Debug)]
pub(super) struct Zones {
    whole: Zone,
    /// The first row of each page and its zone, if there is a page index.
    pages: Vec<(u64, Zone)>,
}

/// A leaf column, for its statistics.
#[derive(Debug)]
pub(super) struct StatisticsOf<'a> {
    pub(super) metadata: &'a ParquetMetaData,
    pub(super) group: usize,
    pub(super) leaf: usize,
    pub(super) data_type: &'a DataType,
    /// Whether it lies in structs: then writers differ about what counts as null.
    pub(super) in_struct: bool,
}

impl Zones {
    pub(super) fn new(of: &StatisticsOf<'_>) -> Self {
        let group = of.metadata.row_group(of.group);
        let rows = u64::try_from(group.num_rows()).unwrap_or(0);
        let unknown = Self { whole: Zone { bounds: None, nulls: None, rows }, pages: Vec::new() };
        let schema = of.metadata.file_metadata().schema_descr();
        let field = Field::new("", of.data_type.clone(), true);
        let Ok(converter) = StatisticsConverter::from_column_index(of.leaf, &field, schema) else { return unknown };
        let chunk = group.column(of.leaf);
        let mut zones = unknown;
        let kind = of.bounds_kind();
        if let Some(statistics) = chunk.statistics() {
            zones.whole.nulls = statistics.null_count_opt().filter(|&nulls| !of.in_struct && nulls <= rows);
            if kind.is_some_and(|kind| kind.trusts(statistics.is_min_max_deprecated())) {
                let one = || std::iter::once(group);
                zones.whole.bounds = converter
                    .row_group_mins(one())
                    .and_then(|mins| Ok((mins, converter.row_group_maxes(one())?)))
                    .ok()
                    .and_then(|(mins, maxes)| bounds_at(&mins, &maxes, 0, of.data_type));
            }
        }
        zones.pages = of.pages(&converter, group, kind).unwrap_or_default();
        zones
    }

    /// The answers that the whole chunk leaves a predicate.
    pub(super) fn of_chunk(&self, predicate: &ColumnPredicate) -> ZoneMapResult {
        self.whole.zone_map_result(predicate)
    }

    /// The answers that the pages leave it that hold rows of a block.
    pub(super) fn of_rows(&self, predicate: &ColumnPredicate, first: u64, rows: u64) -> ZoneMapResult {
        let end = first + rows;
        let from = self.pages.partition_point(|(start, zone)| start + zone.rows <= first);
        let mut all: Option<ZoneMapResult> = None;
        let mut covered = first;
        for (start, zone) in self.pages.get(from..).unwrap_or_default() {
            if *start >= end || *start > covered {
                break;
            }
            let here = zone.zone_map_result(predicate);
            covered = start + zone.rows;
            all = Some(all.map_or(here, |so_far| so_far.on_either(here)));
        }
        all.filter(|_| covered >= end).unwrap_or(ZoneMapResult::ANYTHING)
    }
}

impl Zone {
    /// The answers that it leaves a predicate.
    fn zone_map_result(&self, predicate: &ColumnPredicate) -> ZoneMapResult {
        match predicate {
            ColumnPredicate::IsNull => ZoneMapResult::of_is_null(self.nulls, self.rows),
            ColumnPredicate::In(set) => {
                let of_values = self.bounds.as_ref().map_or(ZoneMapResult::ANYTHING, |bounds| within(set, bounds));
                of_values.beside_nulls(self.nulls, self.rows)
            }
            ColumnPredicate::Function(_) => ZoneMapResult::ANYTHING,
        }
    }
}

/// The answers within bounds; those of floats say nothing of NaNs, which writers leave out, and nothing of the sign of a zero.
fn within(set: &ValueSet, bounds: &Bounds) -> ZoneMapResult {
    let (Scalar::Float(min), Scalar::Float(max)) = (&bounds.min, &bounds.max) else {
        return set.zone_map_result(bounds);
    };
    let min = if *min == 0.0 { -0.0 } else { *min };
    let max = if *max == 0.0 { 0.0 } else { *max };
    let numbers = set.zone_map_result(&Bounds { min: Scalar::Float(min), max: Scalar::Float(max) });
    let nan = |nan: f64| ZoneMapResult::of_literal(Some(set.holds_float(nan)));
    numbers.on_either(nan(f64::NAN)).on_either(nan(-f64::NAN))
}

/// Which bounds of a column mean something.
#[derive(Clone, Copy, Debug)]
enum BoundsKind {
    /// Signed integers: every writer compared them so, in every version of the format.
    Signed,
    /// Whose order the format had to define first.
    Defined,
}

impl BoundsKind {
    fn trusts(self, deprecated: bool) -> bool {
        matches!(self, Self::Signed) || !deprecated
    }
}

impl StatisticsOf<'_> {
    /// `None` if no bounds of this column are to be trusted.
    fn bounds_kind(&self) -> Option<BoundsKind> {
        let physical = self.metadata.file_metadata().schema_descr().column(self.leaf).physical_type();
        // The order of INT96 and of intervals is not defined, and both are read as binaries.
        let bent = matches!(self.data_type, DataType::Timestamp(..) | DataType::Interval(_));
        if bent && physical == Type::FIXED_LEN_BYTE_ARRAY {
            return None;
        }
        let signed = match self.data_type {
            DataType::Int8
            | DataType::Int16
            | DataType::Int32
            | DataType::Int64
            | DataType::Date32
            | DataType::Time32(_)
            | DataType::Time64(_)
            | DataType::Timestamp(..)
            | DataType::Duration(_)
            | DataType::Decimal32(..)
            | DataType::Decimal64(..)
            | DataType::Decimal128(..)
            | DataType::Decimal256(..) => matches!(physical, Type::INT32 | Type::INT64),
            _ => false,
        };
        if signed {
            return Some(BoundsKind::Signed);
        }
        let defined = matches!(
            self.metadata.file_metadata().column_order(self.leaf),
            ColumnOrder::TYPE_DEFINED_ORDER(order) if order != parquet::basic::SortOrder::UNDEFINED
        );
        defined.then_some(BoundsKind::Defined)
    }

    /// The zones of the pages, if an index knows all of them.
    fn pages(
        &self,
        converter: &StatisticsConverter<'_>,
        group: &RowGroupMetaData,
        kind: Option<BoundsKind>,
    ) -> Option<Vec<(u64, Zone)>> {
        let (column_index, offset_index) = (self.metadata.column_index()?, self.metadata.offset_index()?);
        let index = column_index.get(self.group)?.get(self.leaf)?;
        if matches!(index, ColumnIndexMetaData::NONE) {
            return None;
        }
        let locations = offset_index.get(self.group)?.get(self.leaf)?.page_locations();
        let only = [self.group];
        let mins = converter.data_page_mins(column_index, offset_index, only.iter()).ok()?;
        let maxes = converter.data_page_maxes(column_index, offset_index, only.iter()).ok()?;
        if mins.len() != locations.len() || maxes.len() != locations.len() {
            return None;
        }
        let rows = u64::try_from(group.num_rows()).ok()?;
        let mut pages = Vec::with_capacity(locations.len());
        for (i, location) in locations.iter().enumerate() {
            let first = u64::try_from(location.first_row_index).ok()?;
            let end = match locations.get(i + 1) {
                Some(next) => u64::try_from(next.first_row_index).ok()?,
                None => rows,
            };
            let rows = end.checked_sub(first)?;
            let nulls = index.null_count(i).and_then(|nulls| u64::try_from(nulls).ok());
            let nulls = if index.is_null_page(i) { Some(rows) } else { nulls };
            let nulls = nulls.filter(|&nulls| !self.in_struct && nulls <= rows);
            let bounds = kind.and_then(|_| bounds_at(&mins, &maxes, i, self.data_type));
            pages.push((first, Zone { bounds, nulls, rows }));
        }
        Some(pages)
    }
}

fn bounds_at(mins: &ArrayRef, maxes: &ArrayRef, at: usize, data_type: &DataType) -> Option<Bounds> {
    let scalar = |array: &ArrayRef| {
        if at >= array.len() || array.is_null(at) {
            return None;
        }
        to_plinth(&ScalarValue::try_from_array(array, at).ok()?, data_type)
    };
    let (min, max) = (scalar(mins)?, scalar(maxes)?);
    let in_order = match (&min, &max) {
        (Scalar::Float(min), Scalar::Float(max)) => min <= max,
        (Scalar::Int(min), Scalar::Int(max)) => min <= max,
        (Scalar::Bytes(min), Scalar::Bytes(max)) => min <= max,
        (Scalar::Bool(min), Scalar::Bool(max)) => min <= max,
        _ => false,
    };
    in_order.then_some(Bounds { min, max })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
