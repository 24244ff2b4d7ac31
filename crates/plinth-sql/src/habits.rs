//! What people write from habit with other databases, as the statements that the engine knows.
//!
//! Each habit is a rewriting of the parsed statement: what it means is said in SQL that was there before. What can't be said so
//! is refused, never read past.

mod functions;
mod samples;
mod templates;

use std::ops::ControlFlow;

use datafusion::arrow::array::timezone::Tz;
use datafusion::common::{DataFusionError, Result, plan_err};
use datafusion::sql::parser::{CopyToSource, Statement};
use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, Ident, JoinOperator, ObjectName, OrderByExpr, OrderByKind, Query, Select,
    SelectFlavor, SelectItem, SetExpr, TableFactor, Value, ValueWithSpan, VisitMut, VisitorMut,
    WildcardAdditionalOptions,
};
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

/// Takes the underscores out of numbers: `1_000_000`.
pub(crate) fn plain_numbers(tokens: &mut [TokenWithSpan]) {
    for token in tokens {
        if let Token::Number(text, _) = &mut token.token
            && text.contains('_')
        {
            text.retain(|letter| letter != '_');
        }
    }
}

/// Rewrites the habits of a statement.
///
/// # Errors
/// If one asks for what can't be done.
pub(crate) fn rewrite(statement: &mut Statement) -> Result<()> {
    let mut habits = Habits { headings: Vec::new() };
    let visited = match statement {
        Statement::Statement(inner) => inner.visit(&mut habits),
        Statement::Explain(explain) => return rewrite(&mut explain.statement),
        Statement::CopyTo(copy) => match &mut copy.source {
            CopyToSource::Query(query) => query.visit(&mut habits),
            CopyToSource::Relation(_) => ControlFlow::Continue(()),
        },
        _ => ControlFlow::Continue(()),
    };
    match visited {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

struct Habits {
    /// For each SELECT that is open the columns without a name, as they were written.
    headings: Vec<Vec<Option<String>>>,
}

impl VisitorMut for Habits {
    type Break = DataFusionError;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<DataFusionError> {
        order_by_all(query);
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<DataFusionError> {
        if select.flavor == SelectFlavor::FromFirstNoSelect && select.projection.is_empty() {
            select.projection.push(SelectItem::Wildcard(WildcardAdditionalOptions::default()));
            select.flavor = SelectFlavor::Standard;
        }
        for join in select.from.iter_mut().flat_map(|from| &mut from.joins) {
            join.join_operator = match join.join_operator.clone() {
                JoinOperator::Semi(on) => JoinOperator::LeftSemi(on),
                JoinOperator::Anti(on) => JoinOperator::LeftAnti(on),
                other => other,
            };
        }
        self.headings.push(select.projection.iter().map(heading).collect());
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<DataFusionError> {
        for (item, heading) in select.projection.iter_mut().zip(self.headings.pop().unwrap_or_default()) {
            if let (SelectItem::UnnamedExpr(expr), Some(heading)) = (&mut *item, heading)
                && expr.to_string() != heading
            {
                let expr = std::mem::replace(expr, Expr::Value(Value::Null.into()));
                *item = SelectItem::ExprWithAlias { expr, alias: Ident::with_quote('"', heading) };
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<DataFusionError> {
        stop(samples::sampled(table).and_then(|()| parquet_files(table)))
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<DataFusionError> {
        stop(known_zone(expr).and_then(|()| functions::rewrite(expr)))
    }
}

/// An error if AT TIME ZONE names none: a time stamp that has a zone would get any other without a look at it.
fn known_zone(expr: &Expr) -> Result<()> {
    let Expr::AtTimeZone { time_zone, .. } = expr else { return Ok(()) };
    let Some(zone) = text_of(time_zone) else { return Ok(()) };
    match zone.parse::<Tz>() {
        Ok(_) => Ok(()),
        Err(_) => plan_err!("there is no time zone {zone:?}: write one as 'Europe/Berlin' or '+01:00'"),
    }
}

fn stop(result: Result<()>) -> ControlFlow<DataFusionError> {
    match result {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => ControlFlow::Break(error),
    }
}

/// `ORDER BY ALL` by the numbers of the columns: the engine takes columns of tables alone.
fn order_by_all(query: &mut Query) {
    let Some(order) = &mut query.order_by else { return };
    let (OrderByKind::All(options), SetExpr::Select(select)) = (&order.kind, query.body.as_ref()) else { return };
    let is_one = |item: &SelectItem| matches!(item, SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. });
    if select.projection.iter().all(is_one) {
        let by = |at: usize| OrderByExpr {
            expr: Expr::Value(Value::Number(at.to_string(), false).into()),
            options: *options,
            with_fill: None,
        };
        order.kind = OrderByKind::Expressions((1..=select.projection.len()).map(by).collect());
    }
}

/// What a column is called after that may be rewritten.
fn heading(item: &SelectItem) -> Option<String> {
    match item {
        SelectItem::UnnamedExpr(Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Value(_)) => None,
        SelectItem::UnnamedExpr(expr) => Some(expr.to_string()),
        _ => None,
    }
}

/// `read_parquet('x')` as the file itself.
fn parquet_files(table: &mut TableFactor) -> Result<()> {
    let TableFactor::Table { name, args: called, .. } = table else { return Ok(()) };
    let Some(args) = called else { return Ok(()) };
    if !matches!(simple_name(name).as_deref(), Some("read_parquet" | "parquet_scan")) {
        return Ok(());
    }
    let mut path = None;
    for arg in &args.args {
        match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => match (text_of(value), option(value), &path) {
                (Some(text), _, None) => path = Some(text.to_owned()),
                (_, Some(given), _) => parquet_option(given)?,
                _ => return plan_err!("read_parquet: {value}: takes one file, folder or pattern as text"),
            },
            FunctionArg::Named { name, arg: FunctionArgExpr::Expr(value), .. } => parquet_option((name, value))?,
            other => return plan_err!("read_parquet: {other}: takes one file, folder or pattern as text"),
        }
    }
    let Some(path) = path else {
        return plan_err!("read_parquet takes a file, a folder or a pattern: read_parquet('x')");
    };
    *name = ObjectName::from(vec![Ident::with_quote('\'', path)]);
    *called = None;
    Ok(())
}

/// Options that say how it is anyway.
fn parquet_option((name, value): (&Ident, &Expr)) -> Result<()> {
    let is_true = matches!(value, Expr::Value(ValueWithSpan { value: Value::Boolean(true), .. }));
    match name.value.to_ascii_lowercase().as_str() {
        "hive_partitioning" | "union_by_name" if is_true => Ok(()),
        _ => plan_err!("read_parquet: {name} = {value}: is not supported"),
    }
}

/// `name = value` among the arguments of a function of tables.
pub(crate) fn option(value: &Expr) -> Option<(&Ident, &Expr)> {
    use datafusion::sql::sqlparser::ast::BinaryOperator::Eq;
    match value {
        Expr::BinaryOp { left, op: Eq, right } => match left.as_ref() {
            Expr::Identifier(name) => Some((name, right)),
            _ => None,
        },
        _ => None,
    }
}

/// A name of one part, in lower case.
fn simple_name(name: &ObjectName) -> Option<String> {
    match name.0.as_slice() {
        [part] => part.as_ident().map(|ident| ident.value.to_ascii_lowercase()),
        _ => None,
    }
}

fn text_of(value: &Expr) -> Option<&str> {
    match value {
        Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(text), .. }) => Some(text),
        _ => None,
    }
}
