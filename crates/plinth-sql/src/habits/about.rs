//! What tables and queries are: DESCRIBE, SUMMARIZE, PRAGMA table_info, SHOW ALL TABLES.

use arrow_array::{Array, Int64Array, RecordBatch};
use arrow_schema::DataType;
use datafusion::common::{Result, plan_err};
use datafusion::sql::sqlparser::ast::{Expr, Query, Select, SelectItem};

use super::known::{Column, Known, Stop};
use super::scope::Scope;
use super::{simple_name, templates};
use crate::types::type_name;

/// A number in a batch.
pub(super) fn number_at(batch: &RecordBatch, column: usize, row: usize) -> Option<u64> {
    let numbers = batch.columns().get(column)?.as_any().downcast_ref::<Int64Array>()?;
    (row < numbers.len() && numbers.is_valid(row)).then(|| u64::try_from(numbers.value(row)).ok()).flatten()
}

/// So many percent of a number of rows, rounded down.
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "of 0 to 100 percent, and rows of tables are fewer than a double tells apart"
)]
pub(super) fn share(count: u64, percent: f64) -> u64 {
    (count as f64 * percent / 100.0) as u64
}

/// `SELECT plinth_describe() FROM ...` and its like: whether it is one.
pub(super) fn statement(select: &mut Select, known: &Known, scope: &Scope) -> Result<bool, Stop> {
    let [SelectItem::UnnamedExpr(Expr::Function(function))] = select.projection.as_slice() else { return Ok(false) };
    let name = simple_name(&function.name).unwrap_or_default();
    let query = match name.as_str() {
        "plinth_describe" => described(&scope.columns(&select.from, known)?)?,
        "plinth_table_info" => table_info(&scope.columns(&select.from, known)?)?,
        "plinth_summarize" => summarized(select, &scope.columns(&select.from, known)?)?,
        "plinth_all_tables" => templates::query(
            "SELECT table_catalog AS database, table_schema AS schema, table_name AS name, \
             array_agg(column_name ORDER BY ordinal_position) AS column_names, \
             array_agg(plinth_type_name(data_type) ORDER BY ordinal_position) AS column_types, false AS temporary \
             FROM information_schema.columns WHERE table_schema NOT IN ('information_schema', 'plinth_statement') \
             GROUP BY table_catalog, table_schema, table_name ORDER BY 1, 2, 3",
        )?,
        _ => return Ok(false),
    };
    templates::replace(select, query);
    select.selection = None;
    Ok(true)
}

fn text(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn described(columns: &[Column]) -> Result<Box<Query>> {
    let row = |column: &Column| {
        let nulls = if column.field.is_nullable() { "YES" } else { "NO" };
        format!("({}, {}, '{nulls}')", text(column.name()), text(&type_name(column.field.data_type())))
    };
    values(columns.iter().map(row), "column_name, data_type, is_nullable")
}

fn table_info(columns: &[Column]) -> Result<Box<Query>> {
    let row = |(at, column): (usize, &Column)| {
        let kind = text(&type_name(column.field.data_type()));
        format!("({at}, {}, {kind}, {})", text(column.name()), !column.field.is_nullable())
    };
    values(columns.iter().enumerate().map(row), "cid, name, type, \"notnull\"")
}

fn values(rows: impl Iterator<Item = String>, names: &str) -> Result<Box<Query>> {
    let rows: Vec<String> = rows.collect();
    if rows.is_empty() {
        return plan_err!("there are no columns");
    }
    templates::query(&format!("SELECT * FROM (VALUES {}) AS t({names})", rows.join(", ")))
}

/// A row for each column with its extremes, mean, quartiles and nulls, from one pass over the rows.
fn summarized(select: &Select, columns: &[Column]) -> Result<Box<Query>> {
    let mut lists: Vec<(&str, Vec<String>)> = Vec::new();
    let mut put = |name: &'static str, value: String| match lists.iter_mut().find(|(known, _)| *known == name) {
        Some((_, values)) => values.push(value),
        None => lists.push((name, vec![value])),
    };
    for column in columns {
        let kind = column.field.data_type();
        let name = format!("\"{}\"", column.name().replace('"', "\"\""));
        let null = || "CAST(NULL AS VARCHAR)".to_owned();
        let as_text = |value: String| format!("CAST({value} AS VARCHAR)");
        let number = kind.is_numeric();
        let ordered = !kind.is_nested() && !matches!(kind, DataType::Null);
        put("column_name", text(column.name()));
        put("column_type", text(&type_name(kind)));
        put("min", if ordered { as_text(format!("min({name})")) } else { null() });
        put("max", if ordered { as_text(format!("max({name})")) } else { null() });
        let sketched =
            kind.is_integer() || kind.is_string() || matches!(kind, DataType::Date32 | DataType::Timestamp(..));
        let exact = !sketched;
        put(
            "approx_unique",
            match exact {
                true => format!("count(DISTINCT {name})"),
                false => format!("CAST(approx_distinct({name}) AS BIGINT)"),
            },
        );
        let double = format!("CAST({name} AS DOUBLE)");
        put("avg", if number { as_text(format!("avg({double})")) } else { null() });
        put("std", if number { as_text(format!("stddev({double})")) } else { null() });
        for (label, part) in [("q25", "0.25"), ("q50", "0.5"), ("q75", "0.75")] {
            put(label, if number { as_text(format!("approx_percentile_cont({double}, {part})")) } else { null() });
        }
        put("count", "count(*)".to_owned());
        put(
            "null_percentage",
            format!(
                "CASE WHEN count(*) = 0 THEN CAST(NULL AS DOUBLE) ELSE round(100.0 * (count(*) - count({name})) / count(*), 2) END"
            ),
        );
    }
    let names: Vec<&str> = lists.iter().map(|(name, _)| *name).collect();
    let inner: Vec<String> =
        lists.iter().map(|(name, values)| format!("[{}] AS \"{name}\"", values.join(", "))).collect();
    let outer: Vec<String> = names.iter().map(|name| format!("unnest(\"{name}\") AS \"{name}\"")).collect();
    let mut query =
        templates::query(&format!("SELECT {} FROM (SELECT {} FROM t) AS s", outer.join(", "), inner.join(", ")))?;
    if let datafusion::sql::sqlparser::ast::SetExpr::Select(outer) = query.body.as_mut()
        && let Some(datafusion::sql::sqlparser::ast::TableFactor::Derived { subquery, .. }) =
            outer.from.first_mut().map(|from| &mut from.relation)
    {
        templates::set_from(subquery, select.from.clone());
    }
    Ok(query)
}
