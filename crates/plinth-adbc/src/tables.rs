//! Data as tables: the statements that a program with rows in hand runs, and what they answer.

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_schema::{DataType, SchemaRef, TimeUnit};
use plinth_sql::{ErrorKind, SqlError};

/// A name within a statement.
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Rows that a statement has changed, if it is one that says so.
pub fn changed(answer: &[RecordBatch]) -> Option<u64> {
    let batch = answer.first()?;
    let counts = batch.column_by_name("count")?.as_primitive_opt::<UInt64Type>()?;
    (batch.num_columns() == 1 && batch.num_rows() == 1).then(|| counts.value(0))
}

/// What is said of data with a column that its table does not have. None if it has all.
pub fn missing_column(table: &str, given: &SchemaRef, there: &SchemaRef) -> Option<String> {
    let field = given.fields().iter().find(|field| there.column_with_name(field.name()).is_none())?;
    let names: Vec<_> = there.fields().iter().map(|field| field.name().as_str()).collect();
    Some(format!("table {table:?} has no column {:?}; there are {}", field.name(), names.join(", ")))
}

/// The statement that adds rows with these columns, but for where they come from. The name is one that a statement has.
pub fn insertion(table: &str, schema: &SchemaRef) -> String {
    let columns: Vec<_> = schema.fields().iter().map(|field| quoted(field.name())).collect();
    format!("INSERT INTO {table} ({0}) SELECT {0} FROM", columns.join(", "))
}

/// The statement that makes a writable table of these columns. The name is one that a statement has.
///
/// # Errors
/// If no column of SQL holds values of one of the types.
pub fn creation(table: &str, schema: &SchemaRef) -> Result<String, SqlError> {
    let columns = schema
        .fields()
        .iter()
        .map(|field| Ok(format!("{} {}", quoted(field.name()), sql_type(field.name(), field.data_type())?)));
    Ok(format!("CREATE TABLE {table} ({})", columns.collect::<Result<Vec<_>, SqlError>>()?.join(", ")))
}

/// A type as SQL writes it.
fn sql_type(name: &str, data_type: &DataType) -> Result<String, SqlError> {
    let digits = |unit: &TimeUnit| match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 3,
        TimeUnit::Microsecond => 6,
        TimeUnit::Nanosecond => 9,
    };
    let word = match data_type {
        DataType::Boolean => "BOOLEAN",
        DataType::Int8 => "TINYINT",
        DataType::Int16 => "SMALLINT",
        DataType::Int32 => "INT",
        DataType::Int64 => "BIGINT",
        DataType::UInt8 => "TINYINT UNSIGNED",
        DataType::UInt16 => "SMALLINT UNSIGNED",
        DataType::UInt32 => "INT UNSIGNED",
        DataType::UInt64 => "BIGINT UNSIGNED",
        DataType::Float16 | DataType::Float32 => "REAL",
        DataType::Float64 => "DOUBLE",
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "VARCHAR",
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => "BYTEA",
        DataType::Date32 | DataType::Date64 => "DATE",
        DataType::Time32(_) | DataType::Time64(_) => "TIME",
        DataType::Timestamp(unit, None) => return Ok(format!("TIMESTAMP({})", digits(unit))),
        DataType::Timestamp(unit, Some(_)) => return Ok(format!("TIMESTAMP({}) WITH TIME ZONE", digits(unit))),
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale) => return Ok(format!("DECIMAL({precision}, {scale})")),
        DataType::Dictionary(_, values) => return sql_type(name, values),
        DataType::List(of) | DataType::LargeList(of) | DataType::FixedSizeList(of, _) => {
            return Ok(format!("{}[]", sql_type(name, of.data_type())?));
        }
        other => {
            let what = format!("column {name:?}: a table of a folder can't have values of type {other}; CAST them");
            return Err(SqlError::of(ErrorKind::NotSupported, what));
        }
    };
    Ok(word.to_owned())
}
