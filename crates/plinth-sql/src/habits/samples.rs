//! `TABLESAMPLE`: each row with a probability, or so many rows.

use datafusion::common::{Result, plan_err};
use datafusion::sql::sqlparser::ast::{
    Expr, Ident, ObjectName, ObjectNamePart, SetExpr, TableAlias, TableFactor, TableSample, TableSampleKind,
    TableSampleUnit, Value, ValueWithSpan,
};

use super::templates;

/// Puts a query of a sample into the place of a table with TABLESAMPLE, which the engine reads past.
pub(super) fn sampled(table: &mut TableFactor) -> Result<()> {
    let (sample, alias) = match table {
        TableFactor::Table { sample, alias, name, .. } => {
            let Some(sample) = sample.take() else { return Ok(()) };
            (sample, alias.take().or_else(|| alias_of(name)))
        }
        TableFactor::Derived { sample, alias, .. } => {
            let Some(sample) = sample.take() else { return Ok(()) };
            (sample, alias.take())
        }
        _ => return Ok(()),
    };
    let (TableSampleKind::BeforeTableAlias(sample) | TableSampleKind::AfterTableAlias(sample)) = sample;
    let mut query = templates::query(&query_of(&sample)?)?;
    let inner = match query.body.as_mut() {
        SetExpr::Select(select) => select.from.first_mut(),
        _ => None,
    };
    let Some(inner) = inner else { return plan_err!("{sample}: is not supported") };
    let nothing = TableFactor::Table {
        name: ObjectName(Vec::new()),
        alias: None,
        args: None,
        with_hints: Vec::new(),
        version: None,
        with_ordinality: false,
        partitions: Vec::new(),
        json_path: None,
        sample: None,
        index_hints: Vec::new(),
    };
    inner.relation = std::mem::replace(table, nothing);
    *table = TableFactor::Derived { lateral: false, subquery: query, alias, sample: None };
    Ok(())
}

/// The rows of a sample of some table.
fn query_of(sample: &TableSample) -> Result<String> {
    let TableSample { modifier: _, name, quantity, seed, bucket, offset } = sample;
    let plain = seed.is_none() && bucket.is_none() && offset.is_none();
    let Some(quantity) = quantity.as_ref().filter(|_| plain) else {
        return plan_err!("{sample}: is not supported; TABLESAMPLE takes (10 PERCENT) or (100 ROWS)");
    };
    let number = match &quantity.value {
        Expr::Value(ValueWithSpan { value: Value::Number(text, _), .. }) => text.parse::<f64>().ok(),
        _ => None,
    };
    match (&quantity.unit, name, number) {
        (Some(TableSampleUnit::Percent), _, Some(percent)) | (None, Some(_), Some(percent))
            if (0.0..=100.0).contains(&percent) =>
        {
            Ok(format!("SELECT * FROM t WHERE random() * 100 < {}", quantity.value))
        }
        (Some(TableSampleUnit::Rows), None, Some(rows)) if rows.fract() == 0.0 => {
            Ok(format!("SELECT * FROM t ORDER BY random() LIMIT {}", quantity.value))
        }
        _ => plan_err!("{sample}: is not supported; TABLESAMPLE takes (10 PERCENT) or (100 ROWS)"),
    }
}

/// What columns of a table are qualified with that has no other name.
pub(super) fn alias_of(name: &ObjectName) -> Option<TableAlias> {
    let last = name.0.last().and_then(ObjectNamePart::as_ident)?;
    let quote = last.quote_style.map(|_| '"');
    let name = Ident { quote_style: quote, ..last.clone() };
    Some(TableAlias { explicit: true, name, columns: Vec::new(), at: None })
}
