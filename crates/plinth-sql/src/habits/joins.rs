//! ASOF JOIN and POSITIONAL JOIN, as joins that the engine has.
//!
//! The parser hands an ASOF JOIN over as a GLOBAL one, and a POSITIONAL JOIN as CROSS APPLY ([`super::syntax`]).

use std::ops::ControlFlow;
use std::sync::atomic::Ordering;

use datafusion::common::{Result, plan_err};
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Ident, JoinConstraint, JoinOperator, Query, Select, SelectItem,
    SelectItemQualifiedWildcardKind, TableAlias, TableFactor, TableWithJoins, VisitMut, VisitorMut,
};

use super::known::{Column, Known, Stop, quoted};
use super::scope::{HIDDEN, Scope};
use super::{columns, samples, templates};
use crate::names::normal;

/// Rewrites the joins of a SELECT.
pub(super) fn rewrite(select: &mut Select, known: &Known, scope: &Scope) -> Result<(), Stop> {
    let special = |operator: &JoinOperator, global: bool| global || matches!(operator, JoinOperator::CrossApply);
    let joins = || select.from.iter().flat_map(|from| &from.joins);
    if !joins().any(|join| special(&join.join_operator, join.global)) {
        return Ok(());
    }
    let mut number = 0;
    for from in &mut select.from {
        let mut left = vec![from.relation.clone()];
        let mut joins = std::mem::take(&mut from.joins);
        for join in &mut joins {
            let right = join.relation.clone();
            if matches!(join.join_operator, JoinOperator::CrossApply) {
                let [only] = left.as_slice() else {
                    return Ok(plan_err!("POSITIONAL JOIN of more than two tables: join two in a subquery")?);
                };
                from.relation = numbered(only)?;
                join.relation = numbered(&right)?;
                let condition = format!("{0}.{HIDDEN}row = {1}.{HIDDEN}row", name_of(only)?, name_of(&right)?);
                join.join_operator =
                    JoinOperator::FullOuter(JoinConstraint::On(templates::expression(&condition, &[])?));
                known.in_order.store(true, Ordering::Relaxed);
            } else if join.global {
                number += 1;
                let tables = |tables: &[TableFactor]| -> Vec<TableWithJoins> {
                    tables.iter().map(|table| TableWithJoins { relation: table.clone(), joins: Vec::new() }).collect()
                };
                let ours = scope.columns(&tables(&left), known)?;
                let theirs = scope.columns(&tables(std::slice::from_ref(&right)), known)?;
                let sides = Sides { ours: &ours, theirs: &theirs, left: &left, name: name_of(&right)? };
                let (relation, condition) = nearest(&right, &join.join_operator, &sides, number)?;
                join.relation = relation;
                join.global = false;
                join.join_operator = match &join.join_operator {
                    JoinOperator::Left(_) | JoinOperator::LeftOuter(_) => {
                        JoinOperator::LeftOuter(JoinConstraint::On(condition))
                    }
                    JoinOperator::Join(_) | JoinOperator::Inner(_) => {
                        JoinOperator::Inner(JoinConstraint::On(condition))
                    }
                    _ => return Ok(plan_err!("ASOF: only ASOF JOIN and ASOF LEFT JOIN are supported")?),
                };
            }
            left.push(join.relation.clone());
        }
        from.joins = joins;
    }
    hide(select, known, scope)
}

/// Puts the columns that may be seen into the places of `*`.
fn hide(select: &mut Select, known: &Known, scope: &Scope) -> Result<(), Stop> {
    let wild = |item: &SelectItem| matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..));
    if !select.projection.iter().any(wild) {
        return Ok(());
    }
    let seen = scope.columns(&select.from, known)?;
    let mut items = Vec::new();
    for item in std::mem::take(&mut select.projection) {
        match &item {
            SelectItem::Wildcard(options) => {
                items.extend(columns::renamed(options, &seen, None)?.into_iter().map(|(item, _)| item));
            }
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), options) => {
                let table = columns::last_of(name);
                items.extend(columns::renamed(options, &seen, table.as_deref())?.into_iter().map(|(item, _)| item));
            }
            _ => items.push(item),
        }
    }
    select.projection = items;
    Ok(())
}

/// What columns of a table are qualified with.
pub(super) fn name_of(table: &TableFactor) -> Result<Ident> {
    let name = match table {
        TableFactor::Table { alias: Some(alias), .. } | TableFactor::Derived { alias: Some(alias), .. } => {
            Some(alias.name.clone())
        }
        TableFactor::Table { name, .. } => samples::alias_of(name).map(|alias| alias.name),
        _ => None,
    };
    match name {
        Some(name) => Ok(quoted(&normal(&name))),
        None => plan_err!("{table}: give the joined query a name: AS t"),
    }
}

/// A table with the numbers of its rows.
fn numbered(table: &TableFactor) -> Result<TableFactor> {
    derived(table, &format!("SELECT *, row_number() OVER () AS {HIDDEN}row FROM t"), &[])
}

/// A query of a table in its place, under its name.
fn derived(table: &TableFactor, text: &str, args: &[Expr]) -> Result<TableFactor> {
    let name = name_of(table)?;
    let mut query = templates::query_with(text, args)?;
    templates::set_from(&mut query, vec![TableWithJoins { relation: table.clone(), joins: Vec::new() }]);
    let alias = Some(TableAlias { explicit: true, name, columns: Vec::new(), at: None });
    Ok(TableFactor::Derived { lateral: false, subquery: query, alias, sample: None })
}

/// The tables of a join.
struct Sides<'a> {
    ours: &'a [Column],
    theirs: &'a [Column],
    left: &'a [TableFactor],
    /// What the right table is called.
    name: Ident,
}

impl Sides<'_> {
    /// Whether an expression is of the right table; none if it is of both or of none.
    fn is_theirs(&self, expr: &Expr) -> Option<bool> {
        let mut names = Names::default();
        let _ = expr.clone().visit(&mut names);
        let has = |columns: &[Column], name: &str| columns.iter().any(|column| column.name() == name);
        let mut found = None;
        for (table, name) in names.found {
            let theirs = match table {
                Some(table) => table == self.name.value,
                None if has(self.theirs, &name) != has(self.ours, &name) => has(self.theirs, &name),
                None => return None,
            };
            if found.is_some_and(|before| before != theirs) {
                return None;
            }
            found = Some(theirs);
        }
        found
    }
}

#[derive(Default)]
struct Names {
    found: Vec<(Option<String>, String)>,
}

impl VisitorMut for Names {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match expr {
            Expr::Identifier(name) => self.found.push((None, normal(name))),
            Expr::CompoundIdentifier(names) => {
                if let [.., table, name] = names.as_slice() {
                    self.found.push((Some(normal(table)), normal(name)));
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        // Of two tables at once, whatever it is.
        self.found.push((None, String::new()));
        ControlFlow::Continue(())
    }
}

/// The right table with where each of its rows ends, and the condition by which at most one fits.
fn nearest(
    right: &TableFactor,
    operator: &JoinOperator,
    sides: &Sides<'_>,
    number: usize,
) -> Result<(TableFactor, Expr)> {
    let constraint = match operator {
        JoinOperator::Join(constraint)
        | JoinOperator::Inner(constraint)
        | JoinOperator::Left(constraint)
        | JoinOperator::LeftOuter(constraint) => constraint,
        _ => return plan_err!("ASOF: only ASOF JOIN and ASOF LEFT JOIN are supported"),
    };
    let form = "ASOF JOIN takes ON with equalities and one of >=, >, <= and <: ON a.id = b.id AND a.ts >= b.ts";
    let (mut equal, mut order) = (Vec::new(), None);
    let mut hidden = Vec::new();
    match constraint {
        JoinConstraint::On(condition) => {
            let mut waiting = vec![condition.clone()];
            while let Some(condition) = waiting.pop() {
                let Expr::BinaryOp { left, op, right } = condition else {
                    match condition {
                        Expr::Nested(inner) => {
                            waiting.push(*inner);
                            continue;
                        }
                        other => return plan_err!("{other}: {form}"),
                    }
                };
                if op == BinaryOperator::And {
                    waiting.extend([*left, *right]);
                    continue;
                }
                let (ours, op, theirs) = match (sides.is_theirs(&left), sides.is_theirs(&right)) {
                    (Some(false), Some(true)) => (*left, op, *right),
                    (Some(true), Some(false)) => (*right, turned(op), *left),
                    _ => return plan_err!("{left} {op} {right}: each side is to be of one table; {form}"),
                };
                use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq};
                match (op, &order) {
                    (Eq, _) => equal.push((ours, theirs)),
                    (op @ (GtEq | Gt | LtEq | Lt), None) => order = Some((ours, op, theirs)),
                    _ => return plan_err!("{form}"),
                }
            }
        }
        JoinConstraint::Using(names) => {
            let [only] = sides.left else { return plan_err!("ASOF JOIN ... USING of more than two tables: write ON") };
            let left = name_of(only)?;
            let of = |table: &Ident, name: &Ident| Expr::CompoundIdentifier(vec![table.clone(), name.clone()]);
            for (at, name) in names.iter().enumerate() {
                let Some(name) = name.0.last().and_then(|part| part.as_ident()) else { return plan_err!("{form}") };
                let pair = (of(&left, name), of(&sides.name, name));
                if at + 1 == names.len() {
                    order = Some((pair.0, BinaryOperator::GtEq, pair.1));
                } else {
                    equal.push(pair);
                }
                hidden.push(name.clone());
            }
        }
        _ => return plan_err!("{form}"),
    }
    let Some((ours, op, theirs)) = order else { return plan_err!("{form}") };
    let backwards = matches!(op, BinaryOperator::LtEq | BinaryOperator::Lt);
    let end = format!("{HIDDEN}end_{number}");
    let direction = if backwards { "DESC" } else { "ASC" };
    let mut args: Vec<Expr> = vec![theirs.clone()];
    args.extend(equal.iter().map(|(_, theirs)| theirs.clone()));
    let keys: Vec<String> = (2..=args.len()).map(|at| format!("${at}")).collect();
    let partition = if keys.is_empty() { String::new() } else { format!("PARTITION BY {}", keys.join(", ")) };
    let mut items = vec!["*".to_owned()];
    if !hidden.is_empty() {
        // USING leaves the left one of each column.
        let names: Vec<String> = hidden.iter().map(ToString::to_string).collect();
        items = vec![format!("* EXCLUDE ({})", names.join(", "))];
        let as_hidden = |(at, name): (usize, &Ident)| format!("{name} AS {HIDDEN}key_{number}_{at}");
        items.extend(hidden.iter().enumerate().map(as_hidden));
    }
    items.push(format!("lead($1) OVER ({partition} ORDER BY $1 {direction}) AS {end}"));
    let table = derived(right, &format!("SELECT {} FROM t WHERE $1 IS NOT NULL", items.join(", ")), &args)?;
    let renamed = |expr: &Expr| {
        let mut expr = expr.clone();
        if let Expr::CompoundIdentifier(names) = &mut expr
            && let Some(last) = names.last_mut()
            && let Some(at) = hidden.iter().position(|name| name == last)
        {
            *last = quoted(&format!("{HIDDEN}key_{number}_{at}"));
        }
        expr
    };
    let (first, last) = match op {
        BinaryOperator::GtEq => (">=", "<"),
        BinaryOperator::Gt => (">", "<="),
        BinaryOperator::LtEq => ("<=", ">"),
        _ => ("<", ">="),
    };
    let mut places = vec![ours, renamed(&theirs)];
    let mut text = format!("$1 {first} $2 AND ({end} IS NULL OR $1 {last} {end})");
    for (ours, theirs) in &equal {
        places.extend([ours.clone(), renamed(theirs)]);
        text = format!("${} = ${} AND {text}", places.len() - 1, places.len());
    }
    Ok((table, templates::expression(&text, &places)?))
}

/// The comparison with its sides exchanged.
fn turned(op: BinaryOperator) -> BinaryOperator {
    match op {
        BinaryOperator::GtEq => BinaryOperator::LtEq,
        BinaryOperator::LtEq => BinaryOperator::GtEq,
        BinaryOperator::Gt => BinaryOperator::Lt,
        BinaryOperator::Lt => BinaryOperator::Gt,
        other => other,
    }
}
