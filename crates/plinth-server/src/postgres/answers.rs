//! What clients are told: rows, how many were changed, and errors.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Int64Type};
use arrow_array::{Array, RecordBatch};
use arrow_cast::cast;
use arrow_pg::datatypes::arrow_schema_to_pg_fields;
use arrow_pg::encoder::encode_value;
use arrow_schema::{ArrowError, DataType, FieldRef, Schema, SchemaRef, TimeUnit};
use datafusion::sql::sqlparser::ast;
use futures::future::Either;
use futures::{Stream, StreamExt, stream};
use pgwire::api::Type;
use pgwire::api::portal::Format;
use pgwire::api::results::{DataRowEncoder, FieldInfo, QueryResponse, Tag};
use pgwire::error::{ErrorInfo, PgWireError, PgWireResult};
use pgwire::messages::data::DataRow;
use plinth_sql::Statement as Parsed;
use postgres_types::Kind as KindOfType;
use tonic::Status;

use super::states;
use crate::failure::arrow;

/// The version of PostgreSQL that clients are told, by which they choose what they ask.
pub(super) const VERSION: &str = concat!("16.0 (Plinth ", env!("CARGO_PKG_VERSION"), ")");

/// What the metadata of columns have whose texts are told as those of vectors, PostgreSQL's lists of short numbers.
pub(super) const VECTOR: &str = "plinth.vector";

/// The days of 0001-01-01 and 9999-12-31, of which 1970-01-01 is 0.
const FIRST_DAY: i64 = -719_162;
const LAST_DAY: i64 = 2_932_896;

/// An error that ends the connection.
pub(super) fn fatal(code: &str, what: &str) -> PgWireError {
    told("FATAL", code, what)
}

/// An error of a statement.
pub(super) fn error(code: &str, what: &str) -> PgWireError {
    told("ERROR", code, what)
}

fn told(severity: &str, code: &str, what: &str) -> PgWireError {
    PgWireError::UserError(Box::new(ErrorInfo::new(severity.to_owned(), code.to_owned(), what.to_owned())))
}

/// A failure with a code of PostgreSQL's.
pub(super) fn of_status(status: &Status) -> PgWireError {
    error(states::of(status), status.message())
}

/// What a statement does, by which its end is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Begin,
    Commit,
    Rollback,
    /// Goes back to a savepoint.
    Back,
    /// Changes rows.
    Changes(&'static str),
    /// Has rows, or nothing to tell but its words.
    Other(String),
}

impl Kind {
    pub(super) fn of(statement: &Parsed) -> Self {
        let Parsed::Statement(inner) = statement else {
            return Self::Other(words(&statement.to_string()));
        };
        match inner.as_ref() {
            ast::Statement::StartTransaction { .. } => Self::Begin,
            ast::Statement::Commit { .. } => Self::Commit,
            ast::Statement::Rollback { savepoint: Some(_), .. } => Self::Back,
            ast::Statement::Rollback { .. } => Self::Rollback,
            // The number of an object stood before the rows once.
            ast::Statement::Insert(_) => Self::Changes("INSERT 0"),
            ast::Statement::Update(_) => Self::Changes("UPDATE"),
            ast::Statement::Delete(_) => Self::Changes("DELETE"),
            ast::Statement::Merge(_) => Self::Changes("MERGE"),
            ast::Statement::Query(_) => Self::Other("SELECT".to_owned()),
            other => Self::Other(words(&other.to_string())),
        }
    }

    /// How the end of a statement without rows is told.
    pub(super) fn tag(&self, rows: Option<u64>) -> Tag {
        match self {
            Self::Begin => Tag::new("BEGIN"),
            Self::Commit => Tag::new("COMMIT"),
            Self::Rollback | Self::Back => Tag::new("ROLLBACK"),
            Self::Changes(words) => {
                Tag::new(words).with_rows(usize::try_from(rows.unwrap_or_default()).unwrap_or(usize::MAX))
            }
            Self::Other(words) => Tag::new(words),
        }
    }
}

/// The first words of a statement: `CREATE TABLE`.
fn words(text: &str) -> String {
    let two = ["CREATE", "DROP", "ALTER"];
    let mut words = text.split_whitespace().filter(|word| !matches!(*word, "OR" | "REPLACE" | "TEMPORARY" | "UNIQUE"));
    let first = words.next().unwrap_or_default().to_uppercase();
    match words.next() {
        Some(second) if two.contains(&first.as_str()) => format!("{first} {}", second.to_uppercase()),
        _ => first,
    }
}

/// The columns of rows as clients are told them.
pub(super) fn columns(schema: &Schema, format: &Format) -> PgWireResult<Vec<FieldInfo>> {
    if let Format::Individual(formats) = format
        && formats.len() != schema.fields().len()
    {
        let what = format!("{} formats for {} columns", formats.len(), schema.fields().len());
        return Err(error("08P01", &what));
    }
    let told = schema.fields().iter().map(|field| match field.data_type() {
        DataType::Null => Arc::new(field.as_ref().clone().with_data_type(DataType::Utf8)),
        _ => Arc::clone(field),
    });
    let told = Schema::new(told.collect::<Vec<_>>());
    let fields = arrow_schema_to_pg_fields(&told, format, None).map(|fields| {
        let vectors = schema.fields().iter().map(|field| field.metadata().contains_key(VECTOR));
        let told = fields.into_iter().zip(vectors).map(|(told, is_vector)| match is_vector {
            true => FieldInfo::new(told.name().to_owned(), None, None, vectors_type(), told.format()),
            false => told,
        });
        told.collect()
    });
    fields.map_err(|_| {
        let types: Vec<String> =
            schema.fields().iter().map(|field| format!("{} {}", field.name(), field.data_type())).collect();
        error(
            "0A000",
            &format!(
                "{}: a column has a type that PostgreSQL has none for; of a map take map_keys and map_values",
                types.join(", ")
            ),
        )
    })
}

/// The type of vectors. As a list, which it is to PostgreSQL, its texts would be quoted.
fn vectors_type() -> Type {
    let list = Type::INT2_VECTOR;
    Type::new(list.name().to_owned(), list.oid(), KindOfType::Simple, list.schema().to_owned())
}

/// Rows whose dates and time stamps have years of four digits: others would be written as NULL, or as no driver reads them.
fn within_years(batch: RecordBatch) -> Result<RecordBatch, Status> {
    for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
        if !all_leaves(column.as_ref(), &has_years).map_err(arrow)? {
            return Err(Status::invalid_argument(format!(
                "{}: has a date before the year 1 or behind 9999, which this protocol's drivers do not read; cast it to TEXT",
                field.name()
            )));
        }
    }
    Ok(batch)
}

/// Whether all values say yes that are no lists and structs themselves.
fn all_leaves(column: &dyn Array, says: &dyn Fn(&dyn Array) -> Result<bool, ArrowError>) -> Result<bool, ArrowError> {
    match column.data_type() {
        DataType::List(_) => all_leaves(column.as_list::<i32>().values(), says),
        DataType::LargeList(_) => all_leaves(column.as_list::<i64>().values(), says),
        DataType::FixedSizeList(..) => all_leaves(column.as_fixed_size_list().values(), says),
        DataType::Struct(_) => {
            let within = column.as_struct().columns().iter().map(|column| all_leaves(column.as_ref(), says));
            Ok(within.collect::<Result<Vec<_>, _>>()?.into_iter().all(|within| within))
        }
        _ => says(column),
    }
}

fn has_years(column: &dyn Array) -> Result<bool, ArrowError> {
    let day = match column.data_type() {
        DataType::Date32 => 1,
        DataType::Date64 | DataType::Timestamp(TimeUnit::Millisecond, _) => 86_400_000,
        DataType::Timestamp(TimeUnit::Second, _) => 86_400,
        DataType::Timestamp(TimeUnit::Microsecond, _) => 86_400_000_000,
        // Nanoseconds of 64 bits are some centuries.
        _ => return Ok(true),
    };
    let numbers = cast(column, &DataType::Int64)?;
    let within = (FIRST_DAY * day)..(LAST_DAY * day + day);
    Ok(numbers.as_primitive::<Int64Type>().iter().flatten().all(|number| within.contains(&number)))
}

/// Rows whose lists and structs have decimals that the encoder knows: it gives up at those of more than 96 bits or 28 places.
fn within_digits(batch: RecordBatch) -> Result<RecordBatch, Status> {
    for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
        let is_fine = |column: &dyn Array| Ok(has_digits(column));
        if column.data_type().is_nested() && !all_leaves(column.as_ref(), &is_fine).map_err(arrow)? {
            return Err(Status::invalid_argument(format!(
                "{}: a decimal within a list or struct has more than 28 digits here; unnest it, or cast it to DOUBLE or TEXT",
                field.name()
            )));
        }
    }
    Ok(batch)
}

fn has_digits(column: &dyn Array) -> bool {
    match column.data_type() {
        DataType::Decimal128(_, scale) => {
            let values = column.as_primitive::<Decimal128Type>();
            (0..=28).contains(scale) && values.iter().flatten().all(|value| value.unsigned_abs() < 1 << 96)
        }
        DataType::Decimal256(..) => false,
        _ => true,
    }
}

/// Values in the types as which they are told: PostgreSQL has no numbers of a byte, nor floats of two, nor bytes of one length.
fn as_told(batch: RecordBatch) -> Result<RecordBatch, Status> {
    let types: Vec<_> = batch.columns().iter().map(|column| told_type(column.data_type())).collect();
    if types.iter().all(Option::is_none) {
        return Ok(batch);
    }
    let columns = batch.columns().iter().zip(&types).map(|(column, told)| match told {
        Some(told) => cast(column, told),
        None => Ok(Arc::clone(column)),
    });
    let columns = columns.collect::<Result<Vec<_>, _>>().map_err(arrow)?;
    let schema = batch.schema();
    let fields = schema.fields().iter().zip(&columns);
    let fields = fields.map(|(field, column)| field.as_ref().clone().with_data_type(column.data_type().clone()));
    RecordBatch::try_new(Arc::new(Schema::new(fields.collect::<Vec<_>>())), columns).map_err(arrow)
}

fn told_type(of: &DataType) -> Option<DataType> {
    let item = |item: &FieldRef| {
        let told = told_type(item.data_type())?;
        Some(Arc::new(item.as_ref().clone().with_data_type(told)))
    };
    match of {
        DataType::Int8 => Some(DataType::Int16),
        DataType::Float16 => Some(DataType::Float32),
        DataType::FixedSizeBinary(_) => Some(DataType::Binary),
        // As PostgreSQL has it of what has no type.
        DataType::Null => Some(DataType::Utf8),
        DataType::List(of) => item(of).map(DataType::List),
        DataType::LargeList(of) => item(of).map(DataType::LargeList),
        DataType::FixedSizeList(of, size) => Some(DataType::FixedSizeList(item(of)?, *size)),
        _ => None,
    }
}

/// Rows of a batch as they are sent. What is NULL is looked at here: the encoder takes an interval without one for no time at all.
fn encoded(fields: Arc<Vec<FieldInfo>>, batch: RecordBatch) -> impl Iterator<Item = PgWireResult<DataRow>> {
    let mut encoder = DataRowEncoder::new(Arc::clone(&fields));
    (0..batch.num_rows()).map(move |row| {
        let schema = batch.schema_ref();
        for ((column, field), told) in batch.columns().iter().zip(schema.fields()).zip(fields.iter()) {
            match column.is_null(row) {
                true => encoder.encode_field(&None::<i8>)?,
                false => encode_value(&mut encoder, column, row, field, told)?,
            }
        }
        Ok(encoder.take_row())
    })
}

/// Rows as they are taken.
pub(super) fn rows(
    schema: &SchemaRef,
    format: &Format,
    batches: impl Stream<Item = Result<RecordBatch, Status>> + Send + 'static,
) -> PgWireResult<QueryResponse> {
    let fields = Arc::new(columns(schema, format)?);
    let of = Arc::clone(&fields);
    let rows =
        batches.flat_map(move |batch| match batch.and_then(within_years).and_then(within_digits).and_then(as_told) {
            Ok(batch) => Either::Left(stream::iter(encoded(Arc::clone(&of), batch))),
            Err(status) => Either::Right(stream::iter(std::iter::once(Err(of_status(&status))))),
        });
    Ok(QueryResponse::new(fields, rows))
}
