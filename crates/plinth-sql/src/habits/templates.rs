//! SQL with places for expressions: `$1`, `$2`.

use std::ops::ControlFlow;

use datafusion::common::{Result, internal_datafusion_err};
use datafusion::sql::sqlparser::ast::{
    Expr, Ident, Query, Select, SelectItem, SetExpr, TableAlias, TableFactor, TableWithJoins, Value, ValueWithSpan,
    VisitMut, VisitorMut, WildcardAdditionalOptions,
};
use datafusion::sql::sqlparser::parser::Parser;

use crate::meaning::PlinthDialect;

/// An expression with others in its places.
pub(super) fn expression(template: &str, args: &[Expr]) -> Result<Expr> {
    let parsed = Parser::new(&PlinthDialect).try_with_sql(template).and_then(|mut parser| parser.parse_expr());
    let mut expr = parsed.map_err(|error| internal_datafusion_err!("{template}: {error}"))?;
    let _ = expr.visit(&mut Fill { args });
    Ok(expr)
}

/// A query with expressions in its places.
pub(super) fn query_with(text: &str, args: &[Expr]) -> Result<Box<Query>> {
    let mut query = query(text)?;
    let _ = query.visit(&mut Fill { args });
    Ok(query)
}

/// A query without places.
pub(crate) fn query(text: &str) -> Result<Box<Query>> {
    let parsed = Parser::new(&PlinthDialect).try_with_sql(text).and_then(|mut parser| parser.parse_query());
    parsed.map_err(|error| internal_datafusion_err!("{text}: {error}"))
}

/// Has a query select from tables.
pub(super) fn set_from(query: &mut Query, from: Vec<TableWithJoins>) {
    if let SetExpr::Select(select) = query.body.as_mut() {
        select.from = from;
    }
}

/// Has a query select from another.
pub(super) fn set_source(query: &mut Query, source: Query) {
    let alias = Some(TableAlias { explicit: true, name: Ident::new("t"), columns: Vec::new(), at: None });
    let derived = TableFactor::Derived { lateral: false, subquery: Box::new(source), alias, sample: None };
    set_from(query, vec![TableWithJoins { relation: derived, joins: Vec::new() }]);
}

/// Gives a query columns.
pub(crate) fn set_items(query: &mut Query, items: Vec<SelectItem>) {
    if let SetExpr::Select(select) = query.body.as_mut() {
        select.projection = items;
    }
}

/// Has a SELECT give what another query does.
pub(super) fn replace(select: &mut Select, query: Box<Query>) {
    let derived = TableFactor::Derived { lateral: false, subquery: query, alias: None, sample: None };
    select.from = vec![TableWithJoins { relation: derived, joins: Vec::new() }];
    select.projection = vec![SelectItem::Wildcard(WildcardAdditionalOptions::default())];
}

struct Fill<'a> {
    args: &'a [Expr],
}

impl VisitorMut for Fill<'_> {
    type Break = ();

    // What is put in has been visited then, so that a parameter of the user stays one.
    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Value(ValueWithSpan { value: Value::Placeholder(place), .. }) = expr
            && let Some(at) = place.strip_prefix('$').and_then(|at| at.parse::<usize>().ok())
            && let Some(arg) = at.checked_sub(1).and_then(|at| self.args.get(at))
        {
            // Its text is read by people alone, where it needs its parentheses.
            let alone = matches!(
                arg,
                Expr::Identifier(_)
                    | Expr::CompoundIdentifier(_)
                    | Expr::Value(_)
                    | Expr::Function(_)
                    | Expr::Nested(_)
            );
            *expr = if alone { arg.clone() } else { Expr::Nested(Box::new(arg.clone())) };
        }
        ControlFlow::Continue(())
    }
}
