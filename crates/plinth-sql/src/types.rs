//! Types by the names that other databases give them.

use arrow_schema::{DataType, Field, FieldRef};
use datafusion::common::Result;
use datafusion::logical_expr::planner::TypePlanner;
use datafusion::sql::sqlparser::ast;
use std::sync::Arc;

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
