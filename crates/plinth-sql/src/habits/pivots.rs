//! PIVOT: the values of columns as columns; UNPIVOT: columns as rows.

use std::ops::ControlFlow;

use arrow_array::RecordBatch;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::common::{DataFusionError, Result, plan_err};
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, ExprWithAlias, FunctionArguments, GroupByExpr, Ident, NullInclusion, PivotValueSource, Query,
    Select, SelectItem, SetExpr, TableFactor, TableWithJoins, Value, VisitMut, VisitorMut,
};

use super::known::{Column, Known, Stop, quoted, reference};
use super::scope::Scope;
use super::templates::{replace, set_from, set_items, set_source};
use super::{columns, functions, headings, simple_name, templates, text_of};
use crate::names::normal;

/// Most values that become columns.
const MOST_VALUES: usize = 1000;

/// What a PIVOT is on: an expression, and of its values those that are wanted with their names.
type On = (Expr, Option<Vec<(Expr, String)>>);

/// What is to be said of a PIVOT.
struct Pivot {
    from: Vec<TableWithJoins>,
    /// Expressions whose values become columns, and these if they are given.
    on: Vec<On>,
    using: Vec<(Expr, Option<String>)>,
    /// What rows are put together by; without, all columns that are not mentioned.
    group: Option<Vec<Expr>>,
}

/// `SELECT plinth_pivot(...)` and `SELECT plinth_unpivot(...)`: whether it is one.
pub(super) fn statement(select: &mut Select, known: &Known, scope: &Scope) -> Result<bool, Stop> {
    let [SelectItem::UnnamedExpr(Expr::Function(function))] = select.projection.as_slice() else { return Ok(false) };
    let name = simple_name(&function.name).unwrap_or_default();
    let args = functions::arguments(function).unwrap_or_default();
    match (name.as_str(), args.as_slice()) {
        ("plinth_pivot", [on, using, group @ ..]) => {
            let listed = |expr: &Expr| match expr {
                Expr::Function(list) => functions::arguments(list).unwrap_or_default(),
                _ => Vec::new(),
            };
            let columns = scope.columns(&select.from, known)?;
            let mut columns_on = Vec::new();
            for expr in each(listed(on), &columns, known)? {
                columns_on.push(given(expr)?);
            }
            let using = listed(using).into_iter().map(named).collect();
            let group = match group.first() {
                Some(group) => Some(each(listed(group), &columns, known)?),
                None => None,
            };
            let pivot = Pivot { from: std::mem::take(&mut select.from), on: columns_on, using, group };
            replace(select, pivot.query(known, scope)?);
            Ok(true)
        }
        ("plinth_unpivot", [name, value, exprs @ ..]) => {
            let columns = scope.columns(&select.from, known)?;
            let (name, value) = (text_of(name).unwrap_or("name"), text_of(value).unwrap_or("value"));
            let exprs = each(exprs.to_vec(), &columns, known)?.into_iter().map(named).collect();
            let query = unpivoted(select.from.clone(), &columns, exprs, name, value, false)?;
            replace(select, query);
            Ok(true)
        }
        _ => Ok(false),
    }
}

/// `t PIVOT (...)` and `t UNPIVOT (...)`.
pub(super) fn of_table(table: &mut TableFactor, known: &Known, scope: &Scope) -> Result<(), Stop> {
    let alone = |table: &TableFactor| vec![TableWithJoins { relation: table.clone(), joins: Vec::new() }];
    let (query, alias) = match &*table {
        TableFactor::Pivot {
            table: source,
            aggregate_functions,
            value_column,
            value_source,
            default_on_null,
            alias,
        } => {
            if default_on_null.is_some() {
                return Ok(plan_err!("PIVOT ... DEFAULT ON NULL: not supported; write coalesce around its columns")?);
            }
            let [column] = value_column.as_slice() else {
                return Ok(plan_err!("PIVOT ... FOR of several columns: not supported; name one")?);
            };
            let values = match value_source {
                PivotValueSource::List(values) => {
                    let name = |value: &ExprWithAlias| match &value.alias {
                        Some(alias) => normal(alias),
                        None => label(&value.expr),
                    };
                    Some(values.iter().map(|value| (value.expr.clone(), name(value))).collect())
                }
                PivotValueSource::Any(_) => None,
                PivotValueSource::Subquery(_) => {
                    return Ok(plan_err!("PIVOT ... IN (SELECT ...): not supported; IN (ANY) takes all values")?);
                }
            };
            let using = aggregate_functions.iter().map(|of| (of.expr.clone(), of.alias.as_ref().map(normal))).collect();
            let pivot = Pivot { from: alone(source), on: vec![(column.clone(), values)], using, group: None };
            (pivot.query(known, scope)?, alias.clone())
        }
        TableFactor::Unpivot { table: source, value, name, columns, null_inclusion, alias } => {
            let Expr::Identifier(value) = value else {
                return Ok(plan_err!("UNPIVOT of several values at once: not supported; one is")?);
            };
            let from = alone(source);
            let all = scope.columns(&from, known)?;
            let mut exprs = Vec::new();
            for ExprWithAlias { expr, alias } in columns {
                let each = each(vec![expr.clone()], &all, known)?;
                exprs.extend(each.into_iter().map(|expr| (expr, alias.as_ref().map(normal))));
            }
            let nulls = matches!(null_inclusion, Some(NullInclusion::IncludeNulls));
            (unpivoted(from, &all, exprs, &normal(name), &normal(value), nulls)?, alias.clone())
        }
        _ => return Ok(()),
    };
    *table = TableFactor::Derived { lateral: false, subquery: query, alias, sample: None };
    Ok(())
}

/// Expressions with columns in the places of patterns.
fn each(exprs: Vec<Expr>, columns: &[Column], known: &Known) -> Result<Vec<Expr>, Stop> {
    let mut out = Vec::new();
    for expr in exprs {
        if columns::is_pattern(&expr) {
            let chosen = columns::chosen(&expr, columns, known)?;
            out.extend(chosen.iter().map(|column| columns::with_column(&expr, column, columns)));
        } else {
            out.push(expr);
        }
    }
    Ok(out)
}

/// `plinth_named('name', expr)`.
fn named(expr: Expr) -> (Expr, Option<String>) {
    if let Expr::Function(function) = &expr
        && simple_name(&function.name).as_deref() == Some("plinth_named")
        && let Some([name, value]) = functions::arguments(function).as_deref()
    {
        return (value.clone(), text_of(name).map(str::to_owned));
    }
    (expr, None)
}

/// `expr IN (values)`, or an expression with all of its values.
fn given(expr: Expr) -> Result<On> {
    match expr {
        Expr::InList { expr, list, negated: false } => {
            let values = list.into_iter().map(|value| (value.clone(), label(&value))).collect();
            Ok((*expr, Some(values)))
        }
        Expr::InSubquery { .. } => {
            plan_err!("PIVOT ... IN (SELECT ...): not supported; without IN all values are taken")
        }
        other => Ok((other, None)),
    }
}

/// What a column of a value is called.
fn label(value: &Expr) -> String {
    text_of(value).map_or_else(|| headings::of(value), str::to_owned)
}

impl Pivot {
    fn query(self, known: &Known, scope: &Scope) -> Result<Box<Query>, Stop> {
        let Self { from, on, mut using, group } = self;
        if using.is_empty() {
            using.push((templates::expression("count(*)", &[])?, None));
        }
        // Each expression's conditions and names.
        let mut choices: Vec<Vec<(Expr, String)>> = Vec::new();
        for (expr, values) in &on {
            choices.push(match values {
                Some(values) => {
                    let mut conditions = Vec::new();
                    for (value, name) in values {
                        let is_null = matches!(value, Expr::Value(value) if value.value == Value::Null);
                        let condition = if is_null { "$1 IS NULL" } else { "$1 = $2" };
                        let condition = templates::expression(condition, &[expr.clone(), value.clone()])?;
                        conditions.push((condition, name.clone()));
                    }
                    conditions
                }
                None => values_of(expr, &from, known, scope)?,
            });
        }
        let mut combined: Vec<(Vec<Expr>, String)> = vec![(Vec::new(), String::new())];
        for choice in &choices {
            let mut next = Vec::new();
            for (conditions, name) in &combined {
                for (condition, its) in choice {
                    let conditions = conditions.iter().cloned().chain([condition.clone()]).collect();
                    next.push((conditions, if name.is_empty() { its.clone() } else { format!("{name}_{its}") }));
                }
            }
            if next.len() > MOST_VALUES {
                return Ok(plan_err!("PIVOT: more than {MOST_VALUES} columns; name fewer values with IN")?);
            }
            combined = next;
        }
        let group = match group {
            Some(group) => group,
            None => {
                let columns = scope.columns(&from, known)?;
                let used = mentioned(on.iter().map(|(expr, _)| expr).chain(using.iter().map(|(expr, _)| expr)));
                let free = columns.iter().filter(|column| !used.iter().any(|name| name == column.name()));
                free.map(|column| reference(column, &columns)).collect()
            }
        };
        let mut items: Vec<SelectItem> = group.iter().cloned().map(SelectItem::UnnamedExpr).collect();
        for (conditions, name) in &combined {
            for (aggregate, alias) in &using {
                let name = match alias {
                    Some(alias) => format!("{name}_{alias}"),
                    None if using.len() > 1 => format!("{name}_{}", headings::of(aggregate)),
                    None => name.clone(),
                };
                let both = |one: Expr, other: Expr| Expr::BinaryOp {
                    left: Box::new(Expr::Nested(Box::new(one))),
                    op: BinaryOperator::And,
                    right: Box::new(Expr::Nested(Box::new(other))),
                };
                let Some(condition) = conditions.iter().cloned().reduce(both) else { continue };
                let mut expr = aggregate.clone();
                let mut filter = Filter { condition: &condition, known, found: false };
                let _ = expr.visit(&mut filter);
                if !filter.found {
                    return Ok(plan_err!("PIVOT ... USING {aggregate}: is no aggregate, such as sum(x)")?);
                }
                items.push(SelectItem::ExprWithAlias { expr, alias: quoted(&name) });
            }
        }
        let mut query = templates::query("SELECT 1")?;
        if let SetExpr::Select(select) = query.body.as_mut() {
            select.from = from;
            select.projection = items;
            select.group_by = GroupByExpr::Expressions(group, Vec::new());
        }
        Ok(query)
    }
}

/// The values of an expression as conditions, with their texts.
fn values_of(expr: &Expr, from: &[TableWithJoins], known: &Known, scope: &Scope) -> Result<Vec<(Expr, String)>, Stop> {
    let mut query = templates::query(
        "SELECT CAST(w AS VARCHAR) AS v FROM (SELECT DISTINCT 1 AS w) AS t WHERE w IS NOT NULL ORDER BY w",
    )?;
    if let SetExpr::Select(select) = query.body.as_mut()
        && let Some(TableFactor::Derived { subquery, .. }) = select.from.first_mut().map(|from| &mut from.relation)
    {
        set_from(subquery, from.to_vec());
        set_items(subquery, vec![SelectItem::ExprWithAlias { expr: expr.clone(), alias: quoted("w") }]);
    }
    query.with = scope.with(None);
    let mut values = Vec::new();
    for batch in known.rows(*query, MOST_VALUES)? {
        for text in texts(batch).map_err(Stop::from)? {
            let value = Expr::Value(Value::SingleQuotedString(text.clone()).into());
            let condition = templates::expression("CAST($1 AS VARCHAR) = $2", &[expr.clone(), value])?;
            values.push((condition, text));
        }
    }
    Ok(values)
}

fn texts(batch: &RecordBatch) -> Result<Vec<String>> {
    let Some(column) = batch.columns().first() else { return Ok(Vec::new()) };
    let options = FormatOptions::default();
    let formatter = ArrayFormatter::try_new(column.as_ref(), &options)?;
    (0..batch.num_rows()).map(|row| formatter.value(row).try_to_string().map_err(DataFusionError::from)).collect()
}

/// Names of columns within expressions.
fn mentioned<'a>(exprs: impl Iterator<Item = &'a Expr>) -> Vec<String> {
    struct Names(Vec<String>);
    impl VisitorMut for Names {
        type Break = ();
        fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
            match expr {
                Expr::Identifier(name) => self.0.push(normal(name)),
                Expr::CompoundIdentifier(names) => self.0.extend(names.iter().map(normal)),
                _ => {}
            }
            ControlFlow::Continue(())
        }
    }
    let mut names = Names(Vec::new());
    for expr in exprs {
        let _ = expr.clone().visit(&mut names);
    }
    names.0
}

/// Has aggregates take rows that fit a condition alone.
struct Filter<'a> {
    condition: &'a Expr,
    known: &'a Known,
    found: bool,
}

impl VisitorMut for Filter<'_> {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Function(function) = expr
            && function.over.is_none()
            && !matches!(function.args, FunctionArguments::Subquery(_))
            && simple_name(&function.name).is_some_and(|name| self.known.aggregates.contains(&name))
        {
            self.found = true;
            let condition = Box::new(self.condition.clone());
            function.filter = Some(match function.filter.take() {
                None => condition,
                Some(filter) => Box::new(Expr::BinaryOp {
                    left: Box::new(Expr::Nested(filter)),
                    op: BinaryOperator::And,
                    right: Box::new(Expr::Nested(condition)),
                }),
            });
        }
        ControlFlow::Continue(())
    }
}

/// A row for each of some columns of a row.
fn unpivoted(
    from: Vec<TableWithJoins>,
    columns: &[Column],
    exprs: Vec<(Expr, Option<String>)>,
    name: &str,
    value: &str,
    nulls: bool,
) -> Result<Box<Query>, Stop> {
    if exprs.is_empty() {
        return Ok(plan_err!("UNPIVOT: no column fits")?);
    }
    let used = mentioned(exprs.iter().map(|(expr, _)| expr));
    let free: Vec<&Column> = columns.iter().filter(|column| !used.iter().any(|name| name == column.name())).collect();
    let text = |text: &str| format!("'{}'", text.replace('\'', "''"));
    let name_of = |(expr, alias): &(Expr, Option<String>)| match (alias, expr) {
        (Some(alias), _) => alias.clone(),
        (None, Expr::Identifier(name)) => normal(name),
        (None, other) => headings::of(other),
    };
    let names: Vec<String> = exprs.iter().map(|of| text(&name_of(of))).collect();
    let places: Vec<String> = (1..=exprs.len()).map(|at| format!("${at}")).collect();
    let values: Vec<Expr> = exprs.into_iter().map(|(expr, _)| expr).collect();
    let mut items: Vec<SelectItem> =
        free.iter().map(|column| SelectItem::UnnamedExpr(reference(column, columns))).collect();
    let as_rows = |list: String, values: &[Expr], alias: &str| -> Result<SelectItem> {
        let expr = templates::expression(&format!("unnest([{list}])"), values)?;
        Ok(SelectItem::ExprWithAlias { expr, alias: Ident::with_quote('"', alias) })
    };
    items.push(as_rows(names.join(", "), &[], name)?);
    items.push(as_rows(places.join(", "), &values, value)?);
    let mut inner = templates::query("SELECT 1 FROM t")?;
    set_from(&mut inner, from);
    set_items(&mut inner, items);
    if nulls {
        return Ok(inner);
    }
    let mut query = templates::query(&format!(
        "SELECT * FROM (SELECT 1) AS t WHERE \"{}\" IS NOT NULL",
        value.replace('"', "\"\"")
    ))?;
    set_source(&mut query, *inner);
    Ok(query)
}
