//! One schema for many files: columns are united by name.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use arrow_schema::{DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType, Field, FieldRef, Schema};

use crate::error::{IngestError, Result};

/// The smallest type that holds every value of both, where there is an obvious one.
pub(crate) fn common_type(a: &DataType, b: &DataType) -> Option<DataType> {
    use DataType::{
        Decimal128, Decimal256, FixedSizeList, Float16, Float32, Float64, Int8, Int16, Int32, Int64, LargeList, List,
        Map, Null, Struct, UInt8, UInt16, UInt32, UInt64,
    };
    if a == b {
        return Some(a.clone());
    }
    let both = |x: &FieldRef, y: &FieldRef| -> Option<FieldRef> {
        let data_type = common_type(x.data_type(), y.data_type())?;
        Some(Arc::new(Field::new(x.name(), data_type, x.is_nullable() || y.is_nullable())))
    };
    // Widths: an unsigned type fits the next wider signed one.
    let signed = |t: &DataType| match t {
        Int8 => Some(8),
        Int16 | UInt8 => Some(16),
        Int32 | UInt16 => Some(32),
        Int64 | UInt32 => Some(64),
        _ => None,
    };
    let unsigned = |t: &DataType| match t {
        UInt8 => Some(8),
        UInt16 => Some(16),
        UInt32 => Some(32),
        UInt64 => Some(64),
        _ => None,
    };
    let float = |t: &DataType| match t {
        Float16 => Some(16),
        Float32 => Some(32),
        Float64 => Some(64),
        _ => None,
    };
    if let (Some(x), Some(y)) = (unsigned(a), unsigned(b)) {
        return Some(if x > y { a.clone() } else { b.clone() });
    }
    if let (Some(x), Some(y)) = (signed(a), signed(b)) {
        return Some(match std::cmp::max(x, y) {
            16 => Int16,
            32 => Int32,
            _ => Int64,
        });
    }
    if let (Some(x), Some(y)) = (float(a), float(b)) {
        return Some(if x > y { a.clone() } else { b.clone() });
    }
    match (a, b) {
        (Null, other) | (other, Null) => Some(other.clone()),
        (Decimal128(p, s) | Decimal256(p, s), Decimal128(q, t) | Decimal256(q, t)) => {
            // Room for the digits before the point of one, and for those behind it of the other.
            let scale = *s.max(t);
            let whole = |precision: u8, scale: i8| i16::from(precision) - i16::from(scale);
            let precision = u8::try_from(whole(*p, *s).max(whole(*q, *t)) + i16::from(scale)).ok()?;
            match (a, b) {
                (Decimal128(..), Decimal128(..)) if precision <= DECIMAL128_MAX_PRECISION => {
                    Some(Decimal128(precision, scale))
                }
                _ if precision <= DECIMAL256_MAX_PRECISION => Some(Decimal256(precision, scale)),
                _ => None,
            }
        }
        (List(x), List(y)) => Some(List(both(x, y)?)),
        (LargeList(x), LargeList(y)) => Some(LargeList(both(x, y)?)),
        (FixedSizeList(x, n), FixedSizeList(y, m)) if n == m => Some(FixedSizeList(both(x, y)?, *n)),
        (Map(x, sorted), Map(y, also)) => Some(Map(both(x, y)?, *sorted && *also)),
        (Struct(x), Struct(y)) if x.len() == y.len() && x.iter().zip(y).all(|(x, y)| x.name() == y.name()) => {
            Some(Struct(x.iter().zip(y).map(|(x, y)| both(x, y)).collect::<Option<_>>()?))
        }
        _ => None,
    }
}

/// Checks that each column of a file has its own name.
///
/// # Errors
/// If two have the same.
pub fn check_names(file: &Path, schema: &Schema) -> Result<()> {
    Union::default().add(file, schema)
}

/// Collects the columns of file after file.
#[derive(Debug, Default)]
pub(crate) struct Union {
    columns: Vec<UnitedColumn>,
    by_name: HashMap<String, usize>,
    files: usize,
}

#[derive(Debug)]
struct UnitedColumn {
    name: String,
    data_type: DataType,
    nullable: bool,
    /// The file that decided the type, for messages.
    file: String,
    /// The last file that has it, counted from one.
    last_seen: usize,
    /// How many files have it.
    present: usize,
}

impl Union {
    /// Adds the columns of one file, in value types.
    pub(crate) fn add(&mut self, path: &Path, schema: &Schema) -> Result<()> {
        self.files += 1;
        let file = || path.display().to_string();
        for field in schema.fields() {
            let Some(column) = self.by_name.get(field.name()).and_then(|at| self.columns.get_mut(*at)) else {
                self.by_name.insert(field.name().clone(), self.columns.len());
                self.columns.push(UnitedColumn {
                    name: field.name().clone(),
                    data_type: field.data_type().clone(),
                    nullable: field.is_nullable(),
                    file: file(),
                    last_seen: self.files,
                    present: 1,
                });
                continue;
            };
            if column.last_seen == self.files {
                return Err(IngestError::DuplicateColumn { path: file(), column: column.name.clone(), advice: "" });
            }
            column.last_seen = self.files;
            column.present += 1;
            column.nullable |= field.is_nullable();
            if &column.data_type == field.data_type() {
                continue;
            }
            let Some(common) = common_type(&column.data_type, field.data_type()) else {
                return Err(IngestError::Conflict {
                    column: column.name.clone(),
                    first_type: column.data_type.to_string(),
                    first: column.file.clone(),
                    second_type: field.data_type().to_string(),
                    second: file(),
                });
            };
            if common != column.data_type {
                column.data_type = common;
                column.file = file();
            }
        }
        Ok(())
    }

    /// The united schema. A column that some file lacks is nullable.
    pub(crate) fn finish(self) -> Schema {
        let files = self.files;
        let fields = self
            .columns
            .into_iter()
            .map(|column| Field::new(column.name, column.data_type, column.nullable || column.present < files));
        Schema::new(fields.collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests;
