//! Types by the names that other databases give them.

use arrow_schema::{DataType, Field, FieldRef};
use datafusion::common::Result;
use datafusion::logical_expr::planner::TypePlanner;
use datafusion::sql::sqlparser::ast;
use std::sync::Arc;

pub(crate) use plinth_datafusion::sql_type_name as sql_name;

/// Knows `HUGEINT`, `UINTEGER`, `BLOB` and such.
#[derive(Debug)]
pub(crate) struct Types;

impl TypePlanner for Types {
    fn plan_type_field(&self, sql_type: &ast::DataType) -> Result<Option<FieldRef>> {
        let known = match sql_type {
            ast::DataType::HugeInt => DataType::Decimal128(38, 0),
            ast::DataType::UTinyInt => DataType::UInt8,
            ast::DataType::USmallInt => DataType::UInt16,
            ast::DataType::UBigInt => DataType::UInt64,
            ast::DataType::Blob(None) => DataType::Binary,
            ast::DataType::Custom(name, words) if words.is_empty() => {
                match name.to_string().to_ascii_lowercase().as_str() {
                    "uinteger" => DataType::UInt32,
                    _ => return Ok(None),
                }
            }
            _ => return Ok(None),
        };
        Ok(Some(Arc::new(Field::new("", known, true))))
    }
}

/// A type by its name in SQL: `BIGINT`, `DECIMAL(12, 2)`, `VARCHAR[]`.
pub fn type_name(data_type: &DataType) -> String {
    let simple = match data_type {
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
        DataType::Float16 => "FLOAT2",
        DataType::Float32 => "REAL",
        DataType::Float64 => "DOUBLE",
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "VARCHAR",
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => "BLOB",
        DataType::Date32 | DataType::Date64 => "DATE",
        DataType::Time32(_) | DataType::Time64(_) => "TIME",
        DataType::Timestamp(_, None) => "TIMESTAMP",
        DataType::Timestamp(_, Some(_)) => "TIMESTAMP WITH TIME ZONE",
        DataType::Interval(_) | DataType::Duration(_) => "INTERVAL",
        DataType::FixedSizeBinary(16) => "UUID",
        DataType::FixedSizeBinary(bytes) => return format!("BINARY({bytes})"),
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale) => return format!("DECIMAL({precision}, {scale})"),
        DataType::Dictionary(_, values) => return type_name(values),
        DataType::RunEndEncoded(_, values) => return type_name(values.data_type()),
        DataType::List(item) | DataType::LargeList(item) | DataType::ListView(item) | DataType::LargeListView(item) => {
            return format!("{}[]", type_name(item.data_type()));
        }
        DataType::FixedSizeList(item, len) => return format!("{}[{len}]", type_name(item.data_type())),
        DataType::Struct(fields) => {
            let field = |field: &FieldRef| format!("{} {}", written(field.name()), type_name(field.data_type()));
            return format!("STRUCT({})", fields.iter().map(field).collect::<Vec<_>>().join(", "));
        }
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(fields) => {
                let types: Vec<_> = fields.iter().map(|field| type_name(field.data_type())).collect();
                return format!("MAP({})", types.join(", "));
            }
            _ => "MAP",
        },
        DataType::Union(..) => "UNION",
    };
    simple.to_owned()
}

/// A name as a statement has it: in quotes where it needs them.
pub fn written(name: &str) -> String {
    let first = name.chars().next().is_some_and(|c| c.is_ascii_lowercase() || c == '_');
    let rest = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if first && rest && !is_reserved(name) { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

/// Whether a word has a meaning of its own where a name could stand.
fn is_reserved(word: &str) -> bool {
    use datafusion::sql::sqlparser::keywords::{
        ALL_KEYWORDS, ALL_KEYWORDS_INDEX, Keyword, RESERVED_FOR_COLUMN_ALIAS, RESERVED_FOR_TABLE_ALIAS,
    };
    const MORE: [Keyword; 9] = [
        Keyword::ALL,
        Keyword::AND,
        Keyword::CASE,
        Keyword::CAST,
        Keyword::DISTINCT,
        Keyword::NOT,
        Keyword::NULL,
        Keyword::OR,
        Keyword::TABLE,
    ];
    let at = ALL_KEYWORDS.binary_search(&word.to_ascii_uppercase().as_str());
    let keyword = at.ok().and_then(|at| ALL_KEYWORDS_INDEX.get(at));
    keyword.is_some_and(|keyword| {
        [&MORE[..], RESERVED_FOR_COLUMN_ALIAS, RESERVED_FOR_TABLE_ALIAS].iter().any(|words| words.contains(keyword))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_have_names_in_sql() {
        let item = |data_type: DataType| Arc::new(Field::new("item", data_type, true));
        for (data_type, name) in [
            (DataType::Decimal128(12, 2), "DECIMAL(12, 2)"),
            (DataType::List(item(DataType::Utf8View)), "VARCHAR[]"),
            (
                DataType::Struct(
                    vec![Field::new("a", DataType::Int64, true), Field::new("B c", DataType::Utf8, true)].into(),
                ),
                "STRUCT(a BIGINT, \"B c\" VARCHAR)",
            ),
            (DataType::Timestamp(arrow_schema::TimeUnit::Nanosecond, Some("UTC".into())), "TIMESTAMP WITH TIME ZONE"),
        ] {
            assert_eq!(type_name(&data_type), name);
        }
    }

    #[test]
    fn names_are_quoted_where_they_must_be() {
        assert_eq!(["id", "Id", "select", "a\"b"].map(written), ["id", "\"Id\"", "\"select\"", "\"a\"\"b\""]);
    }
}
