//! What footers know, as the engine's statistics.

use arrow_schema::{DataType, Field, Schema};
use datafusion_common::stats::{ColumnStatistics, Precision};
use datafusion_common::{DataFusionError, Result, ScalarValue, Statistics};
use datafusion_expr::Expr;
use datafusion_session::Session;
use plinth_encoding::expr::{Path, Scalar};
use plinth_encoding::sketch::Sketch;
use plinth_format::{Exactness, File};

use crate::error::from_format;
use crate::scalar::to_scalar_value;

/// Files of a table whose sketches are read to tell how many values differ in all of them.
const SKETCHED_FILES: usize = 32;

/// Statistics of a table over these files, for a plan that reads some columns: of those and of the ones that filters name,
/// unless the session collects none.
///
/// # Errors
/// If the table lacks a column that is read, or metadata can't be read.
pub(crate) fn of_scan(
    files: &[File],
    table: &Schema,
    columns: &[usize],
    filters: &[Expr],
    session: &dyn Session,
) -> Result<Statistics> {
    let width = table.fields().len();
    if let Some(beyond) = columns.iter().find(|&&column| column >= width) {
        return Err(DataFusionError::Internal(format!("column {beyond} of a table of {width}")));
    }
    let mut wanted = vec![false; width];
    if session.config_options().execution.collect_statistics {
        let filtered = filters.iter().flat_map(Expr::column_refs).filter_map(|c| table.index_of(&c.name).ok());
        for i in columns.iter().copied().chain(filtered) {
            wanted[i] = true;
        }
    }
    of_files(files, table, |i| wanted[i])
}

/// Statistics of a table over these files. Rows are always exact; a column's are looked up only if its index is `wanted`,
/// since each costs its metadata in every file.
pub(crate) fn of_files(files: &[File], table: &Schema, wanted: impl Fn(usize) -> bool) -> Result<Statistics> {
    let names: Vec<&str> =
        table.fields().iter().enumerate().filter(|(i, _)| wanted(*i)).map(|(_, field)| field.name().as_str()).collect();
    let _under_way: Vec<_> = files.iter().map(|file| file.prefetch_metadata(names.iter().copied())).collect();
    let rows: u64 = files.iter().map(File::num_rows).sum();
    let mut bytes = Some(0);
    let mut columns = Vec::with_capacity(table.fields().len());
    for (i, field) in table.fields().iter().enumerate() {
        if !wanted(i) {
            columns.push(ColumnStatistics::new_unknown());
            continue;
        }
        let column = of_column(files, field)?;
        bytes = bytes.zip(column.byte_size.get_value()).map(|(sum, &n): (usize, _)| sum.saturating_add(n));
        columns.push(column);
    }
    Ok(Statistics {
        num_rows: exact(rows),
        total_byte_size: bytes.map_or(Precision::Absent, Precision::Inexact),
        column_statistics: columns,
    })
}

/// One column over all files; where a file lacks it, it is null.
fn of_column(files: &[File], field: &Field) -> Result<ColumnStatistics> {
    let path = Path::column(field.name());
    let mut nulls = 0u64;
    let mut bytes = 0u64;
    let mut min = Bound::Nothing;
    let mut max = Bound::Nothing;
    let mut distinct = Distinct::default();
    let sketched = (2..=SKETCHED_FILES).contains(&files.len());
    for file in files {
        let Some((_, stored)) = file.schema().column_with_name(field.name()) else {
            nulls += file.num_rows();
            continue;
        };
        let (from, to) = (stored.data_type(), field.data_type());
        let wide = |bound: Option<(Scalar, Exactness)>| bound.and_then(|(v, exact)| Some((widen(v, from, to)?, exact)));
        let known = file.statistics(&path).map_err(from_format)?;
        nulls += known.null_count;
        bytes = bytes.saturating_add(known.value_bytes);
        // A file without values says nothing about the smallest and largest; one with values and no bounds spoils both.
        if known.null_count < file.num_rows() {
            min = min.meet(wide(known.min), less);
            max = max.meet(wide(known.max), |new, old| less(old, new));
        }
        // Zeros of both signs are one value, and stored as two.
        let about = |(count, _)| (count, Exactness::Bound);
        distinct.add(if field.data_type().is_floating() {
            known.distinct_count.map(about)
        } else {
            known.distinct_count
        });
        if sketched && from == to {
            distinct.merge(file.sketch(&path).map_err(from_format)?);
        }
    }
    let (min, max) = (min.value(field.data_type()), max.value(field.data_type()));
    // With NaN at either end the engine's comparisons and ours may not mean the same.
    let is_nan = |bound: &Precision<ScalarValue>| match bound.get_value() {
        Some(ScalarValue::Float16(Some(v))) => v.is_nan(),
        Some(ScalarValue::Float32(Some(v))) => v.is_nan(),
        Some(ScalarValue::Float64(Some(v))) => v.is_nan(),
        _ => false,
    };
    let (min, max) = if is_nan(&min) || is_nan(&max) { (Precision::Absent, Precision::Absent) } else { (min, max) };
    Ok(ColumnStatistics {
        null_count: exact(nulls),
        min_value: min,
        max_value: max,
        sum_value: Precision::Absent,
        distinct_count: distinct.value(),
        byte_size: Precision::Inexact(size(bytes)),
    })
}

/// The smallest or largest value seen so far.
enum Bound {
    /// No values yet.
    Nothing,
    /// This one.
    Known(Scalar, Exactness),
    /// There were values whose bound is not known.
    Unknown,
}

impl Bound {
    fn meet(self, new: Option<(Scalar, Exactness)>, beats: impl Fn(&Scalar, &Scalar) -> Option<bool>) -> Self {
        match (self, new) {
            (Self::Unknown, _) | (_, None) => Self::Unknown,
            (Self::Nothing, Some((value, exactness))) => Self::Known(value, exactness),
            (Self::Known(old, old_exactness), Some((new, exactness))) => {
                let both = if old_exactness == exactness { exactness } else { Exactness::Bound };
                match beats(&new, &old) {
                    Some(true) => Self::Known(new, both),
                    Some(false) => Self::Known(old, both),
                    None => Self::Unknown,
                }
            }
        }
    }

    fn value(self, column: &DataType) -> Precision<ScalarValue> {
        let Self::Known(value, exactness) = self else { return Precision::Absent };
        match (to_scalar_value(&value, column), exactness) {
            (Some(value), Exactness::Exact) => Precision::Exact(value),
            (Some(value), Exactness::Bound) => Precision::Inexact(value),
            (None, _) => Precision::Absent,
        }
    }
}

/// A bound in the terms of one file's type as one in those of the table's.
fn widen(value: Scalar, from: &DataType, to: &DataType) -> Option<Scalar> {
    if from == to {
        return Some(value);
    }
    match (value, to) {
        (Scalar::Int(v), DataType::Float16 | DataType::Float32 | DataType::Float64) => {
            // No wider integer meets a float.
            i32::try_from(v).map(f64::from).or_else(|_| u32::try_from(v).map(f64::from)).ok().map(Scalar::Float)
        }
        (Scalar::Int(v), _) => match (scale(from), scale(to)) {
            (None, None) => Some(Scalar::Int(v)),
            (Some(from), Some(to)) => {
                let digits = u32::try_from(i16::from(to) - i16::from(from)).ok()?;
                v.checked_mul(10i128.checked_pow(digits)?).map(Scalar::Int)
            }
            _ => None,
        },
        (value, _) => Some(value),
    }
}

fn scale(decimal: &DataType) -> Option<i8> {
    match decimal {
        DataType::Decimal32(_, scale)
        | DataType::Decimal64(_, scale)
        | DataType::Decimal128(_, scale)
        | DataType::Decimal256(_, scale) => Some(*scale),
        _ => None,
    }
}

fn less(a: &Scalar, b: &Scalar) -> Option<bool> {
    match (a, b) {
        (Scalar::Bool(a), Scalar::Bool(b)) => Some(a < b),
        (Scalar::Int(a), Scalar::Int(b)) => Some(a < b),
        (Scalar::Float(a), Scalar::Float(b)) => Some(a.total_cmp(b).is_lt()),
        (Scalar::Bytes(a), Scalar::Bytes(b)) => Some(a < b),
        _ => None,
    }
}

/// Distinct values: those of the only file; of several at least the most of any, and what their sketches make together.
#[derive(Default)]
struct Distinct {
    files: usize,
    most: Option<(u64, Exactness)>,
    unknown: bool,
    sketch: Option<Sketch>,
}

impl Distinct {
    fn add(&mut self, count: Option<(u64, Exactness)>) {
        self.files += 1;
        self.unknown |= count.is_none();
        if self.most.is_none_or(|(most, _)| count.is_some_and(|(count, _)| count > most)) {
            self.most = count;
        }
    }

    fn merge(&mut self, sketch: Option<&Sketch>) {
        match (&mut self.sketch, sketch) {
            (Some(all), Some(sketch)) => all.merge(sketch),
            (all, Some(sketch)) => *all = Some(sketch.clone()),
            (_, None) => {}
        }
    }

    fn value(&self) -> Precision<usize> {
        match (self.most, self.files, self.unknown) {
            (Some((count, Exactness::Exact)), 1, _) => exact(count),
            (Some((most, _)), _, false) => {
                Precision::Inexact(size(most.max(self.sketch.as_ref().map_or(0, Sketch::estimate))))
            }
            _ => Precision::Absent,
        }
    }
}

/// What metadata tells exactly of a column over whole files.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told {
    pub(crate) rows: u64,
    pub(crate) nulls: u64,
    /// Of integers and of unscaled decimals.
    pub(crate) sum: Option<i128>,
    /// What their values lie within, if there are any.
    pub(crate) bounds: Option<(i128, i128)>,
    /// Of decimals.
    pub(crate) scale: Option<i8>,
    /// Distinct values.
    pub(crate) distinct: Option<u64>,
}

impl Told {
    pub(crate) fn of(file: &File, path: &Path) -> Result<Self> {
        let known = file.statistics(path).map_err(from_format)?;
        let name = path.parts().first().map_or("", String::as_str);
        let field = file.schema().column_with_name(name).map(|(_, field)| field.data_type());
        let bounds = match (known.min, known.max) {
            (Some((Scalar::Int(min), _)), Some((Scalar::Int(max), _))) => Some((min, max)),
            _ => None,
        };
        // Zeros of both signs are one value, and stored as two.
        let distinct = known.distinct_count.filter(|_| field.is_some_and(|field| !field.is_floating()));
        Ok(Self {
            rows: file.num_rows(),
            nulls: known.null_count,
            sum: known.sum,
            bounds,
            scale: field.and_then(scale),
            distinct: distinct.and_then(|(count, exactness)| (exactness == Exactness::Exact).then_some(count)),
        })
    }

    /// Of these and other files, whose values are of the same type.
    pub(crate) fn with(&self, other: &Self) -> Self {
        let bounds = match (self.bounds, other.bounds) {
            (Some((min, max)), Some((least, greatest))) => Some((min.min(least), max.max(greatest))),
            (Some(bounds), None) if other.values() == 0 => Some(bounds),
            (None, Some(bounds)) if self.values() == 0 => Some(bounds),
            _ => None,
        };
        Self {
            rows: self.rows + other.rows,
            nulls: self.nulls + other.nulls,
            sum: self.sum.zip(other.sum).and_then(|(one, two)| one.checked_add(two)),
            bounds,
            scale: self.scale,
            distinct: None,
        }
    }

    /// Rows that are not null.
    pub(crate) fn values(&self) -> u64 {
        self.rows.saturating_sub(self.nulls)
    }
}

fn exact(n: u64) -> Precision<usize> {
    usize::try_from(n).map_or(Precision::Absent, Precision::Exact)
}

fn size(n: u64) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests;
