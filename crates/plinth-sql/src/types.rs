//! Types by the names that other databases give them.

use arrow_schema::{DataType, Field, FieldRef};
use datafusion::common::Result;
use datafusion::logical_expr::planner::TypePlanner;
use datafusion::sql::sqlparser::ast;
use std::sync::Arc;

pub use plinth_datafusion::sql_type_name as type_name;

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
            (DataType::Decimal128(12, 2), "DECIMAL(12,2)"),
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
