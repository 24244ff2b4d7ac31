//! Clauses that the engine leaves out without a word: they are written as it knows them, or refused.

use std::ops::ControlFlow;

use datafusion::common::{DataFusionError, Result, plan_datafusion_err, plan_err};
use datafusion::sql::parser::{CopyToSource, Statement};
use datafusion::sql::sqlparser::ast::{
    Cte, DuplicateTreatment, Expr, Function, FunctionArgumentClause, FunctionArguments, GroupByExpr, Ident,
    ObjectNamePart, OrderByExpr, Query, Select, SetExpr, TableFactor, Visit, VisitMut, VisitorMut, With,
    visit_relations,
};
use datafusion::sql::sqlparser::parser::Parser;

use super::PlinthDialect;
use crate::names::normal;

/// `GROUP BY (a, b)` groups by both, an aggregate's order has each key once; `SELECT INTO`, locks, and what only aggregates and windows
/// have at functions of one row are refused.
pub(crate) fn keep_clauses(statement: &mut Statement, is_scalar: &dyn Fn(&str) -> bool) -> Result<()> {
    let mut clauses = Clauses { is_scalar };
    let kept = match statement {
        Statement::Statement(statement) => statement.visit(&mut clauses),
        Statement::CopyTo(copy) => match &mut copy.source {
            CopyToSource::Query(query) => query.visit(&mut clauses),
            CopyToSource::Relation(_) => ControlFlow::Continue(()),
        },
        Statement::Explain(explain) => return keep_clauses(&mut explain.statement, is_scalar),
        Statement::CreateExternalTable(_) | Statement::Reset(_) => ControlFlow::Continue(()),
    };
    match kept {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(*error),
    }
}

struct Clauses<'a> {
    is_scalar: &'a dyn Fn(&str) -> bool,
}

/// The clause of a call that only aggregates and windows have: `FILTER` of `upper(x) FILTER (WHERE y)`.
pub(crate) fn of_aggregates(function: &Function) -> Option<&'static str> {
    let within = match &function.args {
        FunctionArguments::List(list) if list.duplicate_treatment == Some(DuplicateTreatment::Distinct) => {
            Some("DISTINCT")
        }
        FunctionArguments::List(list) => list.clauses.first().map(|clause| match clause {
            FunctionArgumentClause::OrderBy(_) => "ORDER BY",
            _ => "clause behind its arguments",
        }),
        _ => None,
    };
    let behind = [
        (function.filter.is_some(), "FILTER"),
        (function.over.is_some(), "OVER"),
        (!function.within_group.is_empty(), "WITHIN GROUP"),
        (function.null_treatment.is_some(), "IGNORE NULLS"),
    ];
    within.or_else(|| behind.into_iter().find(|(is_there, _)| *is_there).map(|(_, name)| name))
}

fn refused(error: DataFusionError) -> ControlFlow<Box<DataFusionError>> {
    ControlFlow::Break(Box::new(error))
}

impl VisitorMut for Clauses<'_> {
    type Break = Box<DataFusionError>;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Self::Break> {
        if let Some(with) = query.with.as_mut().filter(|with| with.recursive)
            && let Err(error) = with.cte_tables.iter_mut().try_for_each(keep_around_union)
        {
            return refused(error);
        }
        match query.locks.first() {
            None => ControlFlow::Continue(()),
            Some(lock) => refused(plan_datafusion_err!(
                "{lock}: rows are not locked; a transaction reads one version of all tables, and its COMMIT fails if another changed its rows meanwhile"
            )),
        }
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        let Expr::Function(function) = expr else { return ControlFlow::Continue(()) };
        if let Some(clause) = of_aggregates(function)
            && let [ObjectNamePart::Identifier(name)] = function.name.0.as_slice()
            && (self.is_scalar)(&normal(name))
        {
            return refused(plan_datafusion_err!("{name}: takes no {clause}: it is no aggregate"));
        }
        if let FunctionArguments::List(list) = &mut function.args {
            for clause in &mut list.clauses {
                if let FunctionArgumentClause::OrderBy(order) = clause {
                    once(order);
                }
            }
        }
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<Self::Break> {
        if let Some(into) = &select.into {
            return refused(plan_datafusion_err!(
                "SELECT {into} is not supported; write CREATE TABLE {} AS SELECT ...",
                into.name
            ));
        }
        if let GroupByExpr::Expressions(exprs, _) = &mut select.group_by
            && exprs.iter().any(|expr| matches!(expr, Expr::Tuple(_)))
        {
            *exprs = std::mem::take(exprs).into_iter().flat_map(members).collect();
        }
        ControlFlow::Continue(())
    }
}

/// Of what is behind WITH RECURSIVE the engine plans the sides of a UNION alone: its own WITH, and what orders and limits it,
/// goes one query further out. Of a recursion, WITH goes into the sides.
fn keep_around_union(table: &mut Cte) -> Result<()> {
    let query = table.query.as_mut();
    let is_ordered = query.order_by.is_some() || query.limit_clause.is_some();
    if !matches!(query.body.as_ref(), SetExpr::SetOperation { .. }) || (query.with.is_none() && !is_ordered) {
        return Ok(());
    }
    if names(query, &table.alias.name) {
        if is_ordered {
            return plan_err!(
                "WITH RECURSIVE {}: ORDER BY and LIMIT of a recursive query are not supported; write them where it is selected from",
                table.alias.name
            );
        }
        return with_in_sides(query);
    }
    let mut outer = any_query()?;
    if let SetExpr::Select(select) = outer.body.as_mut()
        && let Some(TableFactor::Derived { subquery, .. }) = select.from.first_mut().map(|from| &mut from.relation)
    {
        std::mem::swap(subquery.as_mut(), query);
        *query = *outer;
    }
    Ok(())
}

fn any_query() -> Result<Box<Query>> {
    Ok(Parser::new(&PlinthDialect).try_with_sql("SELECT * FROM (SELECT 1) AS t")?.parse_query()?)
}

/// Gives each side of a UNION the names of the query's WITH that it uses.
fn with_in_sides(query: &mut Query) -> Result<()> {
    let (Some(with), SetExpr::SetOperation { left, right, .. }) = (query.with.take(), query.body.as_mut()) else {
        return Ok(());
    };
    for side in [left, right] {
        let mut used: Vec<Cte> = Vec::new();
        for name in with.cte_tables.iter().rev() {
            let name_of = &name.alias.name;
            if names(&**side, name_of) || used.iter().any(|user| names(user, name_of)) {
                used.insert(0, name.clone());
            }
        }
        if !used.is_empty() {
            let mut inner = any_query()?;
            std::mem::swap(&mut inner.body, side);
            inner.with = Some(With { cte_tables: used, ..with.clone() });
            **side = SetExpr::Query(inner);
        }
    }
    Ok(())
}

/// Whether a part of a query names a table.
fn names(query: &impl Visit, table: &Ident) -> bool {
    let found = visit_relations(query, |name| match name.0.as_slice() {
        [ObjectNamePart::Identifier(name)] if normal(name) == normal(table) => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    });
    found.is_break()
}

/// Leaves out what an order of rows has already: the engine counts it once, and is at a loss with the rest.
fn once(order: &mut Vec<OrderByExpr>) {
    let mut seen = Vec::new();
    order.retain(|key| {
        let new = !seen.contains(&key.expr);
        if new {
            seen.push(key.expr.clone());
        }
        new
    });
}

/// What a list of expressions to group by has.
fn members(expr: Expr) -> Vec<Expr> {
    match expr {
        Expr::Tuple(members) => members,
        other => vec![other],
    }
}
