//! What people write from habit with other databases, as the statements that the engine knows.
//!
//! Each habit is a rewriting of the parsed statement: what it means is said in SQL that was there before. What can't be said so
//! is refused, never read past.

mod about;
mod aggregates;
mod chance;
mod clauses;
mod columns;
mod equivalents;
mod files;
mod forms;
mod functions;
mod headings;
mod information;
mod intervals;
mod joins;
mod known;
mod lambdas;
mod laterals;
mod listed;
mod macros;
mod names;
mod parquet;
mod pivots;
mod same_tables;
mod samples;
mod scope;
mod shadows;
pub(crate) mod syntax;
mod templates;
mod unnest;
mod using;

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::arrow::array::timezone::Tz;
use datafusion::common::{Result, plan_err};
use datafusion::sql::parser::{CopyToSource, Statement};
use datafusion::sql::sqlparser::ast::{
    self, Expr, Function, Ident, JoinOperator, LimitClause, ObjectName, OrderBy, OrderByExpr, OrderByKind,
    OrderByOptions, Query, Select, SelectFlavor, SelectItem, SetExpr, TableFactor, Value, ValueWithSpan, Visit,
    VisitMut, VisitorMut, WildcardAdditionalOptions,
};

pub(crate) use known::{Answer, Column, Known, Question, Stop};
pub(crate) use macros::Macros;
use scope::Scope;
pub(crate) use templates::{query, set_items};

use crate::meaning::AT_ZONE;
use crate::names::normal;

/// Rewrites the habits of a statement, with what is known of its tables.
///
/// # Errors
/// If one asks for what can't be done, or if more has to be known: then the statement is to be rewritten anew.
pub(crate) fn rewrite(statement: &mut Statement, known: &Known) -> std::result::Result<(), Stop> {
    let mut habits = Habits {
        known,
        scope: Scope::default(),
        tables: Vec::new(),
        shared: Vec::new(),
        selects: Vec::new(),
        with: Vec::new(),
        renamed: 0,
        calls: 0,
    };
    let visited = match statement {
        // Kept as it is written.
        Statement::Statement(inner) if matches!(**inner, ast::Statement::CreateMacro { .. }) => {
            ControlFlow::Continue(())
        }
        Statement::Statement(inner) => inner.visit(&mut habits),
        Statement::Explain(explain) => return rewrite(&mut explain.statement, known),
        Statement::CopyTo(copy) => match &mut copy.source {
            CopyToSource::Query(query) => query.visit(&mut habits),
            CopyToSource::Relation(_) => ControlFlow::Continue(()),
        },
        _ => ControlFlow::Continue(()),
    };
    match visited {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(stop) => Err(*stop),
    }
}

struct Habits<'a> {
    known: &'a Known,
    scope: Scope,
    /// The tables of the queries that are open.
    tables: Vec<same_tables::Names>,
    /// The columns that are those of several tables, of the last SELECT of each.
    shared: Vec<using::Shared>,
    /// The SELECTs that are open.
    selects: Vec<Open>,
    /// The names of WITH of the queries that are open, and how many got another.
    with: Vec<Vec<String>>,
    renamed: usize,
    /// Calls of macros so far.
    calls: usize,
}

/// A SELECT as it was written.
struct Open {
    /// The columns without a name.
    headings: Vec<Option<String>>,
    items: Vec<SelectItem>,
}

impl VisitorMut for Habits<'_> {
    type Break = Box<Stop>;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Box<Stop>> {
        let read =
            order_by_all(query).and_then(|()| drawn_once(query, self.known)).and_then(|()| clauses::fetch(query));
        if let Err(error) = read {
            return stop(Err(Stop::Error(error)));
        }
        shadows::renamed(query, &self.with, &mut self.renamed);
        self.with.push(shadows::names(query));
        self.scope.enter(query);
        self.shared.push(using::Shared::default());
        order_by_items(query);
        order_by_once(query);
        match same_tables::tell_apart(query, &self.tables) {
            Ok(tables) => {
                self.tables.push(tables);
                ControlFlow::Continue(())
            }
            Err(error) => stop(Err(Stop::Error(error))),
        }
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Box<Stop>> {
        let percent = part_of_rows(query, self.known, &self.scope);
        let ordered = percent.and_then(|()| order_by_columns(query, self.known, &self.scope));
        let named = ordered.and_then(|()| match self.known.lenient {
            true => names::of_order(query, self.known, &self.scope),
            false => Ok(()),
        });
        let shared = self.shared.pop().unwrap_or_default();
        let named = named.and_then(|()| shared.order(query, self.known, &self.scope));
        let named = named.and_then(|()| Ok(names::of_input(query)?));
        self.scope.leave(query);
        self.with.pop();
        self.tables.pop();
        stop(named)
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Box<Stop>> {
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
        for item in &mut select.projection {
            // a: 1
            if let SelectItem::UnnamedExpr(Expr::Named { expr, name }) = item {
                *item = SelectItem::ExprWithAlias { expr: (**expr).clone(), alias: name.clone() };
            }
        }
        let grouped = clauses::grouping_sets(select).and_then(|()| clauses::numbers_by_name(select));
        let grouped = grouped.and_then(|()| clauses::distinct_on(select));
        let read = grouped.and_then(|()| {
            let conditions = [&mut select.selection, &mut select.having, &mut select.qualify];
            conditions.into_iter().flatten().try_for_each(clauses::rows_in_condition)
        });
        if let Err(error) = read {
            return stop(Err(Stop::Error(error)));
        }
        let headings = select.projection.iter().map(headings::heading).collect();
        self.selects.push(Open { headings, items: select.projection.clone() });
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<Box<Stop>> {
        let Some(open) = self.selects.pop() else { return ControlFlow::Continue(()) };
        let rewritten = self.select(select, open);
        self.scope.rewritten(select);
        stop(rewritten)
    }

    fn pre_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<Box<Stop>> {
        stop(self.table(table))
    }

    fn post_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<Box<Stop>> {
        stop(
            information::of_table(table)
                .map_err(Stop::Error)
                .and_then(|()| pivots::of_table(table, self.known, &self.scope)),
        )
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Box<Stop>> {
        functions::signed_powers(expr);
        let read = match expr {
            Expr::Like { pattern, escape_char, .. } | Expr::ILike { pattern, escape_char, .. } => {
                clauses::escaped(pattern, escape_char).map(|()| None)
            }
            Expr::Function(function) => {
                clauses::constant_orders(function);
                clauses::list_of_rows(function)
            }
            _ => clauses::row_in(expr),
        };
        match read {
            Ok(Some(other)) => *expr = other,
            Ok(None) => {}
            Err(error) => return stop(Err(error.into())),
        }
        while let Expr::Function(function) = expr {
            match self.known.macros.expression(function) {
                Ok(Some(meaning)) if self.calls < macros::MOST_CALLS => {
                    self.calls += 1;
                    *expr = match meaning {
                        // Its definition may be a call itself.
                        Expr::Nested(inner) if matches!(*inner, Expr::Function(_)) => *inner,
                        other => other,
                    };
                }
                Ok(Some(_)) => return stop(plan_err!("{}: the macro calls itself", function.name).map_err(Stop::from)),
                Ok(None) => break,
                Err(error) => return stop(Err(error.into())),
            }
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Box<Stop>> {
        stop(at_zone(expr).and_then(|()| functions::rewrite(expr)).map_err(Stop::from))
    }
}

impl Habits<'_> {
    /// A SELECT whose parts have been rewritten.
    fn select(&mut self, select: &mut Select, open: Open) -> std::result::Result<(), Stop> {
        let Open { mut headings, items } = open;
        if headings.len() != select.projection.len() {
            headings = vec![None; select.projection.len()];
        }
        if about::statement(select, self.known, &self.scope)? || pivots::statement(select, self.known, &self.scope)? {
            return Ok(());
        }
        chance::apart(select, self.known)?;
        listed::rewrite(select)?;
        laterals::rewrite(select, self.known, &self.scope)?;
        joins::rewrite(select, self.known, &self.scope)?;
        if self.known.lenient {
            names::of_select(select, self.known, &self.scope)?;
        }
        if select.projection.len() == headings.len() {
            let fields: Vec<_> = select.projection.iter().map(|item| columns::field_name(item, select)).collect();
            for (heading, field) in headings.iter_mut().zip(fields) {
                *heading = heading.take().or(field);
            }
            for ((heading, written), now) in headings.iter_mut().zip(&items).zip(&select.projection) {
                // An alias that stands for its expression.
                if let (SelectItem::UnnamedExpr(Expr::Identifier(name)), SelectItem::UnnamedExpr(Expr::Nested(_))) =
                    (written, now)
                {
                    *heading = Some(normal(name));
                }
            }
        } else {
            headings = vec![None; select.projection.len()];
        }
        columns::expand(select, &mut headings, &items, self.known, &self.scope)?;
        unnest::expand(select, &mut headings, self.known, &self.scope)?;
        headings::apart(&select.projection, &mut headings);
        for (item, heading) in select.projection.iter_mut().zip(headings) {
            headings::name(item, heading);
        }
        let shared = using::rewrite(select, self.known, &self.scope)?;
        if let Some(of_query) = self.shared.last_mut() {
            *of_query = shared;
        }
        Ok(())
    }

    fn table(&mut self, table: &mut TableFactor) -> std::result::Result<(), Stop> {
        samples::sampled(table)?;
        while let Some(query) = self.known.macros.table(table)? {
            self.calls += 1;
            if self.calls > macros::MOST_CALLS {
                return Ok(plan_err!("a macro of a table calls itself")?);
            }
            let alias = match table {
                TableFactor::Table { alias, name, .. } => alias.take().or_else(|| samples::alias_of(name)),
                _ => None,
            };
            *table = TableFactor::Derived { lateral: false, subquery: query, alias, sample: None };
        }
        files::rewrite(table, self.known, &self.scope)
    }
}

/// `LIMIT 10%` as a number of rows.
fn part_of_rows(query: &mut Query, known: &Known, scope: &Scope) -> std::result::Result<(), Stop> {
    let Some(LimitClause::LimitOffset { limit: Some(limit), offset, .. }) = &query.limit_clause else { return Ok(()) };
    let Expr::Function(function) = limit else { return Ok(()) };
    if simple_name(&function.name).as_deref() != Some("plinth_percent") {
        return Ok(());
    }
    let percent = functions::arguments(function).and_then(|args| match args.as_slice() {
        [Expr::Value(ValueWithSpan { value: Value::Number(text, _), .. })] => text.parse::<f64>().ok(),
        _ => None,
    });
    let Some(percent) = percent.filter(|percent| (0.0..=100.0).contains(percent)) else {
        return Ok(plan_err!("LIMIT {limit}: takes 0 to 100 percent")?);
    };
    if offset.is_some() {
        return Ok(plan_err!("LIMIT of percents with OFFSET: not supported; write numbers of rows")?);
    }
    let inner = Query { limit_clause: None, order_by: None, with: None, ..query.clone() };
    let mut counting = templates::query("SELECT count(*) AS n FROM (SELECT 1) AS t")?;
    templates::set_source(&mut counting, inner);
    counting.with = scope.with(query.with.as_ref());
    let rows = known.rows(*counting, 1)?;
    let count = rows.iter().find_map(|batch| about::number_at(batch, 0, 0)).unwrap_or(0);
    let rows = about::share(count, percent);
    let mut limited = query.limit_clause.take();
    if let Some(LimitClause::LimitOffset { limit, .. }) = &mut limited {
        *limit = Some(Expr::Value(Value::Number(rows.to_string(), false).into()));
    }
    query.limit_clause = limited;
    Ok(())
}

/// `ORDER BY sum(a)` by the number of the column that is the same: it may get a name.
fn order_by_items(query: &mut Query) {
    let SetExpr::Select(select) = query.body.as_ref() else { return };
    let Some(order) = &mut query.order_by else { return };
    let OrderByKind::Expressions(by) = &mut order.kind else { return };
    if !select.projection.iter().all(is_one) {
        return;
    }
    for OrderByExpr { expr, .. } in by {
        if matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Value(_)) {
            continue;
        }
        let same = |item: &SelectItem| matches!(item, SelectItem::UnnamedExpr(other) | SelectItem::ExprWithAlias { expr: other, .. } if other == expr);
        if let Some(at) = select.projection.iter().position(same) {
            *expr = Expr::Value(Value::Number((at + 1).to_string(), false).into());
        }
    }
}

/// AT TIME ZONE with what it is of beside it, for that says what it gives. An error if it names no zone: a time stamp that has one would get
/// any other without a look at it.
fn at_zone(expr: &mut Expr) -> Result<()> {
    let Expr::AtTimeZone { time_zone, timestamp } = expr else { return Ok(()) };
    if let Some(zone) = text_of(time_zone)
        && zone.parse::<Tz>().is_err()
    {
        return plan_err!("there is no time zone {zone:?}: write one as 'Europe/Berlin' or '+01:00'");
    }
    let of = timestamp.as_ref().clone();
    *expr = templates::expression(
        &format!("{AT_ZONE}($1, $2, CAST(NULL AS TIMESTAMP WITH TIME ZONE))"),
        &[expr.clone(), of],
    )?;
    Ok(())
}

/// Leaves out of ORDER BY what stands there before: of DISTINCT ON the engine can't have it twice.
fn order_by_once(query: &mut Query) {
    let Some(OrderBy { kind: OrderByKind::Expressions(by), .. }) = &mut query.order_by else { return };
    let mut at = 0;
    while at < by.len() {
        let seen = by.get(at).is_some_and(|this| by.iter().take(at).any(|other| other.expr == this.expr));
        if seen && by.get(at).is_some_and(|this| this.with_fill.is_none()) {
            by.remove(at);
        } else {
            at += 1;
        }
    }
}

/// An error if a query of WITH draws by chance and is asked more than once: the engine would draw for each.
fn drawn_once(query: &Query, known: &Known) -> Result<()> {
    for cte in query.with.iter().flat_map(|with| &with.cte_tables) {
        if !draws(&cte.query, &known.volatile) {
            continue;
        }
        let (name, mut times) = (normal(&cte.alias.name), 0);
        let _ = ast::visit_relations(query, |relation| {
            times += usize::from(
                matches!(relation.0.as_slice(), [part] if part.as_ident().map(normal).as_ref() == Some(&name)),
            );
            ControlFlow::<()>::Continue(())
        });
        if times > 1 {
            return plan_err!(
                "WITH {name}: draws by chance and is asked {times} times, each of which would draw anew; write CREATE TEMP TABLE {name} AS its query"
            );
        }
    }
    Ok(())
}

/// Whether something calls a function that gives another value with each call.
pub(crate) fn draws(of: &impl Visit, volatile: &HashSet<String>) -> bool {
    let is_volatile = |function: &Function| simple_name(&function.name).is_some_and(|name| volatile.contains(&name));
    ast::visit_expressions(of, |expr| match expr {
        Expr::Function(function) if is_volatile(function) => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    })
    .is_break()
}

fn stop(result: std::result::Result<(), Stop>) -> ControlFlow<Box<Stop>> {
    match result {
        Ok(()) => ControlFlow::Continue(()),
        Err(stop) => ControlFlow::Break(Box::new(stop)),
    }
}

/// `ORDER BY ALL` over a query of several parts: the engine takes columns of tables alone.
fn order_by_all(query: &mut Query) -> Result<()> {
    if !matches!(&query.order_by, Some(OrderBy { kind: OrderByKind::All(_), .. })) {
        return Ok(());
    }
    match query.body.as_ref() {
        // Its columns are counted when there are all of them.
        SetExpr::Select(_) | SetExpr::Table(_) => {}
        _ => {
            let (mut inner, mut outer) = (templates::query("SELECT 1")?, templates::query("SELECT * FROM t")?);
            inner.body = query.body.clone();
            templates::set_source(&mut outer, *inner);
            query.body = outer.body;
        }
    }
    Ok(())
}

/// `ORDER BY ALL` by the numbers of the columns, those of patterns among them: the engine does not heed the case of names.
fn order_by_columns(query: &mut Query, known: &Known, scope: &Scope) -> std::result::Result<(), Stop> {
    let Some(OrderBy { kind: OrderByKind::All(options), .. }) = &query.order_by else { return Ok(()) };
    let SetExpr::Select(select) = query.body.as_ref() else { return Ok(()) };
    if matches!(select.projection.as_slice(), [SelectItem::Wildcard(_)]) {
        let columns = scope.columns(&select.from, known)?.len();
        query.order_by = Some(by_numbers(columns, *options));
    } else if select.projection.iter().all(is_one) {
        query.order_by = Some(by_numbers(select.projection.len(), *options));
    }
    Ok(())
}

/// Whether an item of a SELECT is one column.
fn is_one(item: &SelectItem) -> bool {
    matches!(item, SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. })
}

fn by_numbers(columns: usize, options: OrderByOptions) -> OrderBy {
    let by = |at: usize| OrderByExpr {
        expr: Expr::Value(Value::Number(at.to_string(), false).into()),
        options,
        with_fill: None,
    };
    OrderBy { kind: OrderByKind::Expressions((1..=columns).map(by).collect()), interpolate: None }
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
