//! Types by the names that other databases give them.

use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, SchemaRef, TimeUnit};
use datafusion::common::{Result, plan_datafusion_err, plan_err};
use datafusion::execution::SessionStateBuilder;
use datafusion::logical_expr::planner::TypePlanner;
use datafusion::logical_expr::{DdlStatement, LogicalPlan};
use datafusion::prelude::SessionConfig;
use datafusion::sql::parser::{CreateExternalTable, DFParserBuilder, Statement};
use datafusion::sql::sqlparser::ast::{self, TimezoneInfo};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::tokenizer::Tokenizer;
use futures::FutureExt;

use plinth_datafusion::CurrentSession;
pub use plinth_datafusion::sql_type_name as type_name;

use crate::current::Current;
use crate::structs;

/// Knows `HUGEINT`, `UINTEGER`, `BLOB` and such, and `TIMESTAMP` as DuckDB and PostgreSQL have it: in microseconds, of which 64 bits are
/// 290,000 years. The engine's own nanoseconds end in 2262, before the year 9999 of dates that have no end.
#[derive(Debug)]
pub(crate) struct Types(
    /// Whose time zone `TIMESTAMP WITH TIME ZONE` has; UTC without one.
    pub(crate) Option<Current>,
);

impl Types {
    fn zone(&self) -> Result<Option<Arc<str>>> {
        let zone = match &self.0 {
            Some(session) => session.current()?.config().options().execution.time_zone.clone(),
            None => Some("UTC".to_owned()),
        };
        Ok(zone.map(Into::into))
    }
}

impl TypePlanner for Types {
    fn plan_type_field(&self, sql_type: &ast::DataType) -> Result<Option<FieldRef>> {
        let known = match sql_type {
            ast::DataType::HugeInt => DataType::Decimal128(38, 0),
            ast::DataType::UTinyInt => DataType::UInt8,
            ast::DataType::USmallInt => DataType::UInt16,
            ast::DataType::UBigInt => DataType::UInt64,
            ast::DataType::Blob(None) => DataType::Binary,
            ast::DataType::Blob(Some(length)) => match i32::try_from(*length) {
                Ok(length) => DataType::FixedSizeBinary(length),
                Err(_) => return plan_err!("BLOB({length}): values can't be that long"),
            },
            ast::DataType::Map(keys, values) => map(keys, values)?,
            ast::DataType::Timestamp(digits, zone) => DataType::Timestamp(
                unit(*digits)?,
                match zone {
                    TimezoneInfo::Tz | TimezoneInfo::WithTimeZone => self.zone()?,
                    TimezoneInfo::None | TimezoneInfo::WithoutTimeZone => None,
                },
            ),
            ast::DataType::Datetime(digits) => DataType::Timestamp(unit(*digits)?, None),
            ast::DataType::Custom(name, words) if words.is_empty() => {
                match name.to_string().to_ascii_lowercase().as_str() {
                    "uinteger" => DataType::UInt32,
                    "timestamp_s" => DataType::Timestamp(TimeUnit::Second, None),
                    "timestamp_ms" => DataType::Timestamp(TimeUnit::Millisecond, None),
                    "timestamp_ns" => DataType::Timestamp(TimeUnit::Nanosecond, None),
                    _ => return Ok(None),
                }
            }
            _ => return Ok(None),
        };
        Ok(Some(Arc::new(Field::new("", known, true))))
    }
}

/// The unit of a time stamp with some digits of a second.
fn unit(digits: Option<u64>) -> Result<TimeUnit> {
    match digits {
        Some(0) => Ok(TimeUnit::Second),
        Some(1..=3) => Ok(TimeUnit::Millisecond),
        Some(4..=6) | None => Ok(TimeUnit::Microsecond),
        Some(7..=9) => Ok(TimeUnit::Nanosecond),
        Some(more) => plan_err!("TIMESTAMP({more}): a time stamp has up to nine digits of a second"),
    }
}

/// Maps of two types.
fn map(keys: &ast::DataType, values: &ast::DataType) -> Result<DataType> {
    let declared = declared(&format!("k {keys}, v {values}"))?;
    let [keys, values] = declared.fields().as_ref() else { return plan_err!("a map has keys and values") };
    let entry = [("key", keys, false), ("value", values, true)];
    let entry = entry.map(|(name, field, nullable)| Field::new(name, field.data_type().clone(), nullable));
    let entries = Field::new("entries", DataType::Struct(entry.to_vec().into()), false);
    Ok(DataType::Map(Arc::new(entries), false))
}

/// Columns and types as in CREATE TABLE, with NOT NULL and nothing else: files keep no keys and no defaults.
///
/// # Errors
/// If they are not columns and types.
pub(crate) fn declared(columns: &str) -> Result<SchemaRef> {
    let builder = SessionStateBuilder::new().with_config(SessionConfig::new()).with_default_features();
    let state = builder.with_type_planner(Arc::new(Types(None))).build();
    let text = format!("CREATE EXTERNAL TABLE t ({columns}\n) STORED AS CSV LOCATION 'none'");
    let tokens = Tokenizer::new(&GenericDialect {}, &text).tokenize_with_location();
    let mut tokens = tokens.map_err(|e| plan_datafusion_err!("{e}"))?;
    structs::in_angles(&mut tokens);
    let parsed = DFParserBuilder::new(tokens).with_dialect(&GenericDialect {}).build()?.parse_statements()?;
    let [statement] = <[Statement; 1]>::try_from(Vec::from(parsed)).map_err(|_| plan_datafusion_err!("not columns"))?;
    if let Statement::CreateExternalTable(table) = &statement {
        refuse_more(table)?;
    }
    // It looks no table up, so there is nothing to wait for.
    let plan = state.statement_to_plan(statement).now_or_never();
    match plan.ok_or_else(|| plan_datafusion_err!("not columns"))?? {
        LogicalPlan::Ddl(DdlStatement::CreateExternalTable(table)) => Ok(Arc::clone(table.schema.inner())),
        _ => plan_err!("not columns"),
    }
}

/// An error if more is said of columns than their types, which would be ignored.
fn refuse_more(table: &CreateExternalTable) -> Result<()> {
    for column in &table.columns {
        let plain = |option: &ast::ColumnOption| matches!(option, ast::ColumnOption::Null | ast::ColumnOption::NotNull);
        if let Some(more) = column.options.iter().find(|option| !plain(&option.option)) {
            return plan_err!("column {}: {} is kept by tables alone; leave it out here", column.name, more.option);
        }
    }
    match table.constraints.first() {
        Some(constraint) => plan_err!("{constraint} is kept by tables alone; leave it out here"),
        None => Ok(()),
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
    fn types_are_known_by_the_names_that_they_have() {
        let item = |data_type: DataType| Arc::new(Field::new("item", data_type, true));
        let pair = |a: DataType, b: DataType| {
            DataType::Struct(vec![Field::new("a", a, true), Field::new("B c", b, true)].into())
        };
        let entries = vec![Field::new("key", DataType::Utf8View, false), Field::new("value", DataType::UInt8, true)];
        let entries = Field::new("entries", DataType::Struct(entries.into()), false);
        for data_type in [
            DataType::Timestamp(TimeUnit::Microsecond, None),
            DataType::UInt8,
            DataType::UInt16,
            DataType::UInt32,
            DataType::UInt64,
            DataType::Binary,
            DataType::FixedSizeBinary(16),
            DataType::Decimal128(38, 0),
            DataType::Timestamp(TimeUnit::Second, None),
            DataType::Timestamp(TimeUnit::Millisecond, None),
            DataType::Timestamp(TimeUnit::Nanosecond, None),
            pair(DataType::Int32, DataType::Date32),
            pair(pair(DataType::Int64, DataType::Boolean), DataType::List(item(DataType::UInt16))),
            DataType::List(item(pair(DataType::Float64, DataType::Decimal128(10, 2)))),
            DataType::Map(Arc::new(entries), false),
        ] {
            let name = type_name(&data_type);
            let schema = declared(&format!("x {name} NOT NULL")).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert_eq!(type_name(schema.field(0).data_type()), name);
        }
    }

    #[test]
    fn a_schema_of_files_keeps_types_and_nothing_else() {
        for (columns, what) in [
            ("x INT UNIQUE", "column x: UNIQUE"),
            ("x INT PRIMARY KEY", "column x: PRIMARY KEY"),
            ("x INT DEFAULT 5", "column x: DEFAULT 5"),
            ("x INT CHECK (x > 1)", "column x: CHECK"),
            ("x INT, UNIQUE (x)", "UNIQUE (x)"),
        ] {
            let e = declared(columns).unwrap_err().to_string();
            assert!(e.contains(what) && e.contains("kept by tables"), "{columns}: {e}");
        }
        assert!(declared("x INT NULL, y INT NOT NULL").is_ok());
    }

    #[test]
    fn names_are_quoted_where_they_must_be() {
        assert_eq!(["id", "Id", "select", "a\"b"].map(written), ["id", "\"Id\"", "\"select\"", "\"a\"\"b\""]);
    }
}
