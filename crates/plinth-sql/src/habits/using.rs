//! Joins by `USING (k)` and `NATURAL`, in which a column of each side are one column: as joins by `ON l.k = r.k`, with the value of
//! `k` where it is named.
//!
//! The engine shows the column whose table comes first in the alphabet, though an outer join may have filled that one up with
//! NULL, and finds `k` ambiguous behind a second join. `*` has the columns of both sides in the place of the left one, as in DuckDB.

use std::cell::Cell;
use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::common::{Column as Name, DataFusionError, Result, SchemaError, plan_err};
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Ident, Join, JoinConstraint, JoinOperator, ObjectName, OrderByKind, Query, Select,
    SelectItem, SetExpr, TableAlias, TableFactor, TableWithJoins, Value, VisitMut, VisitorMut, With,
};

use super::known::{Known, Stop, quoted};
use super::lambdas::Lambdas;
use super::scope::Scope;
use super::{columns, templates};
use crate::names::normal;

/// A column that can be named behind joins.
#[derive(Clone)]
struct Seen {
    name: String,
    value: Expr,
    /// Whether it is that of several tables.
    is_shared: bool,
}

/// The columns that are those of several tables, with their values.
#[derive(Default)]
pub(super) struct Shared(Vec<(String, Expr)>);

/// Rewrites the joins of a SELECT whose columns are one. Its ORDER BY waits for [`Shared::order`].
pub(super) fn rewrite(select: &mut Select, known: &Known, scope: &Scope) -> Result<Shared, Stop> {
    if !select.from.iter().any(has_shared) {
        return Ok(Shared::default());
    }
    let tables = Tables::new(known, scope);
    let mut seen = Vec::new();
    for at in 0..select.from.len() {
        let (before, from) = select.from.split_at_mut(at);
        if let Some(from) = from.first_mut() {
            seen.extend(tables.of(from, before)?);
        }
    }
    let shared = Shared::of(&seen);
    let mut items = Vec::with_capacity(select.projection.len());
    for item in std::mem::take(&mut select.projection) {
        match &item {
            SelectItem::Wildcard(options) => {
                let left_out = columns::excluded(options);
                if let Some(name) = left_out.iter().find(|name| seen.iter().all(|column| column.name != **name)) {
                    return Ok(plan_err!("EXCLUDE: there is no column {name}")?);
                }
                items.extend(all(seen.iter().filter(|column| !left_out.contains(&column.name))));
            }
            SelectItem::UnnamedExpr(Expr::Identifier(name)) => {
                let value = shared.value(&normal(name)).cloned();
                items.push(value.map_or(item.clone(), |value| named(value, &normal(name))));
            }
            _ => items.push(item),
        }
    }
    select.projection = items;
    let mut put = Put::new(&shared, &tables);
    let visited = [
        select.projection.visit(&mut put),
        select.selection.visit(&mut put),
        select.group_by.visit(&mut put),
        select.having.visit(&mut put),
        select.qualify.visit(&mut put),
        select.named_window.visit(&mut put),
        select.distinct.visit(&mut put),
    ];
    for visited in visited {
        ended(visited)?;
    }
    Ok(shared)
}

impl Shared {
    fn of(seen: &[Seen]) -> Self {
        let alone = |column: &&Seen| seen.iter().filter(|other| other.name == column.name).count() == 1;
        let shared = seen.iter().filter(|column| column.is_shared).filter(alone);
        Self(shared.map(|column| (column.name.clone(), column.value.clone())).collect())
    }

    fn value(&self, name: &str) -> Option<&Expr> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// Rewrites the ORDER BY of a query whose SELECT was rewritten. The names of its columns come first.
    pub(super) fn order(&self, query: &mut Query, known: &Known, scope: &Scope) -> Result<(), Stop> {
        let SetExpr::Select(select) = query.body.as_ref() else { return Ok(()) };
        let Some(order) = query.order_by.as_mut().filter(|_| !self.0.is_empty()) else { return Ok(()) };
        let OrderByKind::Expressions(by) = &mut order.kind else { return Ok(()) };
        let is_named = |wanted: &str| {
            select.projection.iter().any(|item| match item {
                SelectItem::ExprWithAlias { alias, .. } => normal(alias) == wanted,
                SelectItem::UnnamedExpr(Expr::CompoundIdentifier(names)) => {
                    names.last().is_some_and(|name| normal(name) == wanted)
                }
                _ => false,
            })
        };
        let tables = Tables::new(known, scope);
        for by in by {
            if !matches!(&by.expr, Expr::Identifier(name) if is_named(&normal(name))) {
                ended(by.expr.visit(&mut Put::new(self, &tables)))?;
            }
        }
        Ok(())
    }
}

/// Columns of a SELECT. A name that a computed one has is no other's, for it has no table that would tell it apart: `k`, `k_1`.
fn all<'s>(seen: impl Iterator<Item = &'s Seen> + Clone) -> Vec<SelectItem> {
    let is_computed = |column: &Seen| !matches!(column.value, Expr::Identifier(_) | Expr::CompoundIdentifier(_));
    let computed: HashSet<&str> =
        seen.clone().filter(|column| is_computed(column)).map(|column| &*column.name).collect();
    let mut taken: HashSet<String> = seen.clone().map(|column| column.name.clone()).collect();
    let mut first = HashSet::new();
    let item = |column: &Seen| {
        let value = column.value.clone();
        if !computed.contains(&*column.name) || first.insert(column.name.clone()) {
            return named(value, &column.name);
        }
        let further = (1_u64..).map(|at| format!("{}_{at}", column.name)).find(|name| taken.insert(name.clone()));
        SelectItem::ExprWithAlias { expr: value, alias: quoted(&further.unwrap_or_default()) }
    };
    seen.map(item).collect()
}

/// A column of a SELECT under a name, which the last part of the name of a table's column is already.
fn named(value: Expr, name: &str) -> SelectItem {
    match &value {
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) => SelectItem::UnnamedExpr(value),
        _ => SelectItem::ExprWithAlias { expr: value, alias: quoted(name) },
    }
}

/// Whether tables are joined so that columns are one.
fn has_shared(from: &TableWithJoins) -> bool {
    let nested = |table: &TableFactor| match table {
        TableFactor::NestedJoin { table_with_joins, .. } => has_shared(table_with_joins),
        _ => false,
    };
    nested(&from.relation)
        || from.joins.iter().any(|join| {
            let shares = |on: &JoinConstraint| matches!(on, JoinConstraint::Using(_) | JoinConstraint::Natural);
            nested(&join.relation) || !join.global && constraint(&join.join_operator).is_some_and(shares)
        })
}

/// Which columns a join has, and which of two that are one it shows.
#[derive(Clone, Copy, PartialEq)]
enum Keeps {
    Left,
    Right,
    Either,
    LeftAlone,
    RightAlone,
}

/// What a join is on, if it is one of [`sides`].
fn constraint(operator: &JoinOperator) -> Option<&JoinConstraint> {
    use JoinOperator as J;
    match operator {
        J::Join(on) | J::Inner(on) | J::Left(on) | J::LeftOuter(on) | J::Right(on) | J::RightOuter(on) => Some(on),
        J::FullOuter(on) | J::Semi(on) | J::LeftSemi(on) | J::Anti(on) | J::LeftAnti(on) => Some(on),
        J::RightSemi(on) | J::RightAnti(on) => Some(on),
        _ => None,
    }
}

fn sides(operator: &mut JoinOperator) -> Option<(&mut JoinConstraint, Keeps)> {
    use JoinOperator as J;
    match operator {
        J::Join(on) | J::Inner(on) | J::Left(on) | J::LeftOuter(on) => Some((on, Keeps::Left)),
        J::Right(on) | J::RightOuter(on) => Some((on, Keeps::Right)),
        J::FullOuter(on) => Some((on, Keeps::Either)),
        J::Semi(on) | J::LeftSemi(on) | J::Anti(on) | J::LeftAnti(on) => Some((on, Keeps::LeftAlone)),
        J::RightSemi(on) | J::RightAnti(on) => Some((on, Keeps::RightAlone)),
        _ => None,
    }
}

/// Looks tables up.
struct Tables<'a> {
    known: &'a Known,
    scope: &'a Scope,
    /// How many queries without a name have got one.
    unnamed: Cell<usize>,
}

impl<'a> Tables<'a> {
    fn new(known: &'a Known, scope: &'a Scope) -> Self {
        Self { known, scope, unnamed: Cell::new(1) }
    }

    /// Rewrites the joins of tables, behind others.
    fn of(&self, from: &mut TableWithJoins, before: &[TableWithJoins]) -> Result<Vec<Seen>, Stop> {
        let mut seen = self.table(&mut from.relation, before)?;
        for at in 0..from.joins.len() {
            let (done, rest) = from.joins.split_at_mut(at);
            let Some(join) = rest.first_mut() else { continue };
            let mut around = before.to_vec();
            if is_lateral(&join.relation) {
                around.push(TableWithJoins { relation: from.relation.clone(), joins: done.to_vec() });
            }
            let theirs = self.table(&mut join.relation, &around)?;
            seen = self.joined(seen, theirs, join)?;
        }
        Ok(seen)
    }

    /// The columns of a table, which may see those before it.
    fn table(&self, table: &mut TableFactor, before: &[TableWithJoins]) -> Result<Vec<Seen>, Stop> {
        if let TableFactor::NestedJoin { table_with_joins, alias } = table {
            let seen = self.of(table_with_joins, before)?;
            let Some(alias) = alias.take() else { return Ok(seen) };
            let mut query = templates::query("SELECT 1")?;
            templates::set_items(&mut query, all(seen.iter()));
            templates::set_from(&mut query, vec![table_with_joins.as_ref().clone()]);
            *table = TableFactor::Derived { lateral: false, subquery: query, alias: Some(alias), sample: None };
        }
        if let TableFactor::Derived { alias: alias @ None, .. } = table {
            // Its columns are to be told from those of other tables.
            let name = format!("unnamed_{}", self.unnamed.replace(self.unnamed.get() + 1));
            *alias = Some(TableAlias { explicit: true, name: quoted(&name), columns: Vec::new(), at: None });
        }
        let alone = |table: TableFactor| TableWithJoins { relation: table, joins: Vec::new() };
        if is_lateral(table) {
            let all: Vec<TableWithJoins> = before.iter().cloned().chain([alone(table.clone())]).collect();
            let others = if before.is_empty() { 0 } else { self.scope.columns(before, self.known)?.len() };
            let all = self.scope.columns(&all, self.known)?;
            return Ok(all.iter().skip(others).map(|column| seen(&column.table, column.name())).collect());
        }
        // Of a table under several names it is asked once.
        let mut asked = table.clone();
        let mut qualifier = None;
        if let TableFactor::Table { alias, .. } = &mut asked
            && alias.as_ref().is_some_and(|alias| alias.columns.is_empty())
        {
            qualifier = alias.take().map(|alias| vec![normal(&alias.name)]);
        }
        let columns = self.scope.columns(&[alone(asked)], self.known)?;
        let of = |parts: &Vec<String>| qualifier.clone().unwrap_or_else(|| parts.clone());
        Ok(columns.iter().map(|column| seen(&of(&column.table), column.name())).collect())
    }

    /// Rewrites a join of columns with others.
    fn joined(&self, ours: Vec<Seen>, theirs: Vec<Seen>, join: &mut Join) -> Result<Vec<Seen>, Stop> {
        let concatenated = |ours: Vec<Seen>, theirs: Vec<Seen>| ours.into_iter().chain(theirs).collect::<Vec<Seen>>();
        let global = join.global;
        let Some((constraint, keeps)) = sides(&mut join.join_operator) else { return Ok(concatenated(ours, theirs)) };
        let names = match &mut *constraint {
            JoinConstraint::Using(names) => {
                let simple: Option<Vec<String>> = names.iter().map(|name| simple(name).map(normal)).collect();
                let Some(simple) = simple else {
                    return Ok(plan_err!("USING takes names of columns, without their tables")?);
                };
                simple
            }
            JoinConstraint::Natural => {
                let shared = ours.iter().filter(|column| theirs.iter().any(|other| other.name == column.name));
                shared.map(|column| column.name.clone()).collect()
            }
            JoinConstraint::On(condition) => {
                let shared = Shared::of(&concatenated(ours.clone(), theirs.clone()));
                ended(condition.visit(&mut Put::new(&shared, self)))?;
                return Ok(match keeps {
                    Keeps::LeftAlone => ours,
                    Keeps::RightAlone => theirs,
                    _ => concatenated(ours, theirs),
                });
            }
            JoinConstraint::None => return Ok(concatenated(ours, theirs)),
        };
        let without = |columns: Vec<Seen>| columns.into_iter().filter(|column| !names.contains(&column.name));
        if global {
            // ASOF JOIN shows the left one.
            return Ok(ours.into_iter().chain(without(theirs)).collect());
        }
        let mut conditions = Vec::with_capacity(names.len());
        let mut shown = Vec::with_capacity(names.len());
        for name in &names {
            let (left, right) = (one(&ours, name, "left")?.value.clone(), one(&theirs, name, "right")?.value.clone());
            let (one, other) = (Box::new(left.clone()), Box::new(right.clone()));
            conditions.push(Expr::BinaryOp { left: one, op: BinaryOperator::Eq, right: other });
            let value = match keeps {
                Keeps::Left | Keeps::LeftAlone => left,
                Keeps::Right | Keeps::RightAlone => right,
                Keeps::Either => templates::expression("coalesce($1, $2)", &[left, right])?,
            };
            shown.push(Seen { name: name.clone(), value, is_shared: true });
        }
        let both = |one, other| Expr::BinaryOp { left: Box::new(one), op: BinaryOperator::And, right: Box::new(other) };
        let condition = conditions.into_iter().reduce(both);
        *constraint = JoinConstraint::On(condition.unwrap_or_else(|| Expr::Value(Value::Boolean(true).into())));
        let in_place = |column: Seen| match shown.iter().find(|shown| shown.name == column.name) {
            Some(shown) => shown.clone(),
            None => column,
        };
        Ok(match keeps {
            Keeps::LeftAlone => ours.into_iter().map(in_place).collect(),
            Keeps::RightAlone => theirs.into_iter().map(in_place).collect(),
            _ => ours.into_iter().map(in_place).chain(without(theirs)).collect(),
        })
    }
}

/// Whether a table may name columns of those before it.
fn is_lateral(table: &TableFactor) -> bool {
    matches!(table, TableFactor::Derived { lateral: true, .. } | TableFactor::UNNEST { .. })
}

fn seen(table: &[String], name: &str) -> Seen {
    let parts: Vec<Ident> = table.iter().map(String::as_str).chain([name]).map(quoted).collect();
    let value = if table.is_empty() { Expr::Identifier(quoted(name)) } else { Expr::CompoundIdentifier(parts) };
    Seen { name: name.to_owned(), value, is_shared: false }
}

/// A name without a table.
fn simple(name: &ObjectName) -> Option<&Ident> {
    match name.0.as_slice() {
        [part] => part.as_ident(),
        _ => None,
    }
}

/// The column of one side of a join that has a name.
fn one<'s>(columns: &'s [Seen], name: &str, side: &str) -> Result<&'s Seen> {
    let mut found = columns.iter().filter(|column| column.name == name);
    match (found.next(), found.next()) {
        (Some(one), None) => Ok(one),
        (Some(_), Some(_)) => {
            plan_err!("USING ({name}): several tables on the {side} have a column {name}; write ON with their names")
        }
        (None, _) => {
            let valid_fields = columns.iter().map(|column| Name::new_unqualified(&column.name)).collect();
            let error = SchemaError::FieldNotFound { field: Box::new(Name::new_unqualified(name)), valid_fields };
            Err(DataFusionError::SchemaError(Box::new(error), Box::new(None)))
        }
    }
}

fn ended(visited: ControlFlow<Box<Stop>>) -> Result<(), Stop> {
    match visited {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(stop) => Err(*stop),
    }
}

/// Puts values into the places of names, but where a subquery or a lambda means something else by them.
struct Put<'a> {
    shared: &'a Shared,
    tables: &'a Tables<'a>,
    /// WITH and the aliases of the queries that are open.
    queries: Vec<(Option<With>, Vec<String>)>,
    /// FROM of the SELECTs that are open.
    selects: Vec<Vec<TableWithJoins>>,
    lambdas: Lambdas,
}

impl<'a> Put<'a> {
    fn new(shared: &'a Shared, tables: &'a Tables<'a>) -> Self {
        Self { shared, tables, queries: Vec::new(), selects: Vec::new(), lambdas: Lambdas::default() }
    }

    /// Whether a name means something within a subquery.
    fn is_inner(&self, name: &str) -> Result<bool, Stop> {
        if self.queries.iter().any(|(_, aliases)| aliases.iter().any(|alias| alias == name)) {
            return Ok(true);
        }
        for from in self.selects.iter().rev().filter(|from| !from.is_empty()) {
            let mut query = templates::query("SELECT * FROM t")?;
            templates::set_from(&mut query, from.clone());
            let mut with: Option<With> = None;
            for further in self.queries.iter().filter_map(|(with, _)| with.as_ref()) {
                match &mut with {
                    Some(with) => with.cte_tables.extend(further.cte_tables.iter().cloned()),
                    None => with = Some(further.clone()),
                }
            }
            query.with = self.tables.scope.with(with.as_ref());
            if self.tables.known.columns(*query)?.iter().any(|column| column.name() == name) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl VisitorMut for Put<'_> {
    type Break = Box<Stop>;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Box<Stop>> {
        let items = match query.body.as_ref() {
            SetExpr::Select(select) => select.projection.as_slice(),
            _ => &[],
        };
        let alias = |item: &SelectItem| match item {
            SelectItem::ExprWithAlias { alias, .. } => Some(normal(alias)),
            _ => None,
        };
        self.queries.push((query.with.clone(), items.iter().filter_map(alias).collect()));
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Box<Stop>> {
        self.queries.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Box<Stop>> {
        self.selects.push(select.from.clone());
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, _: &mut Select) -> ControlFlow<Box<Stop>> {
        self.selects.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Box<Stop>> {
        self.lambdas.enter(expr);
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Box<Stop>> {
        self.lambdas.leave(expr);
        if let Expr::Identifier(name) = expr {
            let name = normal(name);
            let Some(value) = self.shared.value(&name) else { return ControlFlow::Continue(()) };
            match self.is_inner(&name) {
                _ if self.lambdas.has(&name) => {}
                Ok(true) => {}
                Ok(false) => *expr = value.clone(),
                Err(stop) => return ControlFlow::Break(Box::new(stop)),
            }
        }
        ControlFlow::Continue(())
    }
}
