//! Types by their names in SQL.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, StringArray};
use arrow_schema::{DataType, TimeUnit};
use datafusion_common::{Result, ScalarValue, exec_err};
use datafusion_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility};

/// The name that SQL has for a type.
pub fn sql_type_name(data_type: &DataType) -> String {
    let fixed = match data_type {
        DataType::Null => "NULL",
        DataType::Boolean => "BOOLEAN",
        DataType::Int8 => "TINYINT",
        DataType::Int16 => "SMALLINT",
        DataType::Int32 => "INTEGER",
        DataType::Int64 => "BIGINT",
        DataType::UInt8 => "UTINYINT",
        DataType::UInt16 => "USMALLINT",
        DataType::UInt32 => "UINTEGER",
        DataType::UInt64 => "UBIGINT",
        DataType::Float16 | DataType::Float32 => "FLOAT",
        DataType::Float64 => "DOUBLE",
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "VARCHAR",
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => "BLOB",
        DataType::Date32 | DataType::Date64 => "DATE",
        DataType::Time32(_) | DataType::Time64(_) => "TIME",
        DataType::Timestamp(_, Some(_)) => "TIMESTAMP WITH TIME ZONE",
        DataType::Timestamp(TimeUnit::Second, None) => "TIMESTAMP_S",
        DataType::Timestamp(TimeUnit::Millisecond, None) => "TIMESTAMP_MS",
        DataType::Timestamp(TimeUnit::Microsecond, None) => "TIMESTAMP",
        DataType::Timestamp(TimeUnit::Nanosecond, None) => "TIMESTAMP_NS",
        DataType::Interval(_) | DataType::Duration(_) => "INTERVAL",
        _ => "",
    };
    if !fixed.is_empty() {
        return fixed.to_owned();
    }
    match data_type {
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale) => format!("DECIMAL({precision},{scale})"),
        DataType::FixedSizeBinary(length) => format!("BLOB({length})"),
        DataType::List(item) | DataType::LargeList(item) | DataType::ListView(item) | DataType::LargeListView(item) => {
            format!("{}[]", sql_type_name(item.data_type()))
        }
        DataType::FixedSizeList(item, length) => format!("{}[{length}]", sql_type_name(item.data_type())),
        DataType::Struct(fields) => {
            let plain = |name: &str| {
                let mut letters = name.chars();
                letters.next().is_some_and(|first| first.is_ascii_lowercase() || first == '_')
                    && letters.all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_')
            };
            let name =
                |name: &str| if plain(name) { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) };
            let fields =
                fields.iter().map(|field| format!("{} {}", name(field.name()), sql_type_name(field.data_type())));
            format!("STRUCT({})", fields.collect::<Vec<_>>().join(", "))
        }
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(fields) => {
                let fields: Vec<String> = fields.iter().map(|field| sql_type_name(field.data_type())).collect();
                format!("MAP({})", fields.join(", "))
            }
            _ => "MAP".to_owned(),
        },
        DataType::Dictionary(_, value) => sql_type_name(value),
        DataType::RunEndEncoded(_, value) => sql_type_name(value.data_type()),
        other => other.to_string(),
    }
}

/// Types by the names that the engine has for them, as those of SQL. A name that says no type stays.
pub(super) fn type_names(args: &[ArrayRef]) -> Result<ArrayRef> {
    let [names] = args else { return exec_err!("names of types: takes one value") };
    let name = |name: &str| name.parse().map_or_else(|_| name.to_owned(), |of: DataType| sql_type_name(&of));
    let names: StringArray = names.as_string::<i32>().iter().map(|text| text.map(name)).collect();
    Ok(Arc::new(names))
}

/// `typeof(x)`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct TypeOf {
    signature: Signature,
}

impl Default for TypeOf {
    fn default() -> Self {
        Self { signature: Signature::any(1, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for TypeOf {
    fn name(&self) -> &'static str {
        "typeof"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let name = args.arg_fields.first().map(|field| sql_type_name(field.data_type())).unwrap_or_default();
        match args.args.first() {
            Some(ColumnarValue::Scalar(_)) | None => Ok(ColumnarValue::Scalar(ScalarValue::Utf8(Some(name)))),
            Some(ColumnarValue::Array(_)) => {
                let names: ArrayRef =
                    Arc::new(StringArray::from_iter_values(std::iter::repeat_n(name, args.number_rows)));
                Ok(ColumnarValue::Array(names))
            }
        }
    }
}
