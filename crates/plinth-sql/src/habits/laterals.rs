//! Lists as rows beside the table that they are of (`FROM t, unnest(t.l) AS u(x)`), and values computed there
//! (`FROM t, LATERAL (SELECT t.a + 1 AS b)`): both are columns more of the table.

use std::ops::ControlFlow;

use datafusion::common::{Result, plan_err};
use datafusion::sql::sqlparser::ast::{
    self, Expr, GroupByExpr, Ident, Join, JoinConstraint, JoinOperator, Select, SelectItem, SetExpr, TableAlias,
    TableFactor, TableWithJoins, Value, ValueWithSpan, VisitMut, VisitorMut,
};

use super::known::{Known, Stop, quoted};
use super::scope::Scope;
use super::{headings, joins, listed, simple_name, templates};
use crate::names::normal;

/// What a lateral table adds to each row.
struct Added {
    /// What its columns are qualified with.
    name: Option<String>,
    columns: Vec<(Expr, String)>,
    condition: Option<Expr>,
}

/// Rewrites the lateral tables of a SELECT that are about one table.
pub(super) fn rewrite(select: &mut Select, known: &Known, scope: &Scope) -> Result<(), Stop> {
    loop {
        let Some(added) = taken(select, known)? else { return Ok(()) };
        let Some(left) = select.from.first().map(|from| from.relation.clone()) else { return Ok(()) };
        let name = joins::name_of(&left)?;
        let alone = vec![TableWithJoins { relation: left.clone(), joins: Vec::new() }];
        let columns = scope.columns(&alone, known)?;
        for (_, added) in &added.columns {
            if columns.iter().any(|column| column.name() == added) {
                return Ok(plan_err!("{added}: is a column of {name}, too; give the other another name")?);
            }
        }
        let mut items = vec!["*".to_owned()];
        let mut values = Vec::new();
        for (value, column) in &added.columns {
            values.push(value.clone());
            items.push(format!("${} AS \"{}\"", values.len(), column.replace('"', "\"\"")));
        }
        let mut query = templates::query_with(&format!("SELECT {} FROM t", items.join(", ")), &values)?;
        templates::set_from(&mut query, alone);
        if let SetExpr::Select(inner) = query.body.as_mut() {
            inner.selection = added.condition;
        }
        let alias = Some(TableAlias { explicit: true, name: name.clone(), columns: Vec::new(), at: None });
        if let Some(first) = select.from.first_mut() {
            first.relation = TableFactor::Derived { lateral: false, subquery: query, alias, sample: None };
        }
        if let Some(from) = added.name {
            let names: Vec<String> = added.columns.into_iter().map(|(_, name)| name).collect();
            let _ = select.visit(&mut Moved { from: &from, to: &name, names: &names });
        }
    }
}

/// Takes the table out that follows the first, if it is lateral.
fn taken(select: &mut Select, known: &Known) -> Result<Option<Added>> {
    let Some(first) = select.from.first() else { return Ok(None) };
    if let Some(join) = first.joins.first() {
        let always = match &join.join_operator {
            JoinOperator::CrossJoin(JoinConstraint::None) => true,
            JoinOperator::Join(JoinConstraint::On(on)) | JoinOperator::Inner(JoinConstraint::On(on)) => {
                matches!(on, Expr::Value(ValueWithSpan { value: Value::Boolean(true), .. }))
            }
            _ => false,
        };
        let added = if always { added(&join.relation, known)? } else { None };
        if added.is_some() {
            select.from.first_mut().map(|first| -> Join { first.joins.remove(0) });
        }
        return Ok(added);
    }
    let Some(second) = select.from.get(1) else { return Ok(None) };
    let added = added(&second.relation, known)?;
    if added.is_some() {
        // What is joined with it is joined with both.
        let second = select.from.remove(1);
        if let Some(first) = select.from.first_mut() {
            first.joins.extend(second.joins);
        }
    }
    Ok(added)
}

/// Whether values are not of a row alone: aggregates and windows.
fn is_of_rows(items: &[SelectItem], known: &Known) -> bool {
    let visited = ast::visit_expressions(&items.to_vec(), |expr| match expr {
        Expr::Function(function)
            if function.over.is_some()
                || simple_name(&function.name).is_some_and(|name| known.aggregates.contains(&name)) =>
        {
            ControlFlow::Break(())
        }
        _ => ControlFlow::Continue(()),
    });
    visited.is_break()
}

/// What a table adds that is lateral and has no rows of its own.
fn added(table: &TableFactor, known: &Known) -> Result<Option<Added>> {
    match table {
        TableFactor::UNNEST { alias, array_exprs, with_offset: false, with_ordinality: false, .. } => {
            if !listed::has_names(array_exprs) {
                return Ok(None);
            }
            let given = alias.as_ref().map(|alias| alias.columns.as_slice()).unwrap_or_default();
            let mut columns = Vec::new();
            for (at, list) in array_exprs.iter().enumerate() {
                let name = given.get(at).map_or_else(|| "unnest".to_owned(), |column| normal(&column.name));
                columns.push((templates::expression("unnest($1)", std::slice::from_ref(list))?, name));
            }
            Ok(Some(Added { name: alias.as_ref().map(|alias| normal(&alias.name)), columns, condition: None }))
        }
        TableFactor::Derived { lateral: true, subquery, alias, .. } => {
            let SetExpr::Select(inner) = subquery.body.as_ref() else { return Ok(None) };
            let plain = inner.from.is_empty()
                && inner.having.is_none()
                && matches!(&inner.group_by, GroupByExpr::Expressions(exprs, _) if exprs.is_empty())
                && !is_of_rows(&inner.projection, known)
                && inner.distinct.is_none()
                && subquery.with.is_none()
                && subquery.limit_clause.is_none();
            if !plain {
                return Ok(None);
            }
            let given = alias.as_ref().map(|alias| alias.columns.as_slice()).unwrap_or_default();
            let mut columns = Vec::new();
            for (at, item) in inner.projection.iter().enumerate() {
                let (expr, name) = match item {
                    SelectItem::UnnamedExpr(expr) => (expr, headings::of(expr)),
                    SelectItem::ExprWithAlias { expr, alias } => (expr, normal(alias)),
                    _ => return Ok(None),
                };
                let name = given.get(at).map_or(name, |column| normal(&column.name));
                columns.push((expr.clone(), name));
            }
            let name = alias.as_ref().map(|alias| normal(&alias.name));
            Ok(Some(Added { name, columns, condition: inner.selection.clone() }))
        }
        _ => Ok(None),
    }
}

/// Columns of one table as those of another.
struct Moved<'a> {
    from: &'a str,
    to: &'a Ident,
    names: &'a [String],
}

impl VisitorMut for Moved<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::CompoundIdentifier(names) = expr
            && let [table, column] = names.as_mut_slice()
            && normal(table) == self.from
            && self.names.contains(&normal(column))
        {
            *table = self.to.clone();
            *column = quoted(&normal(column));
        }
        ControlFlow::Continue(())
    }
}
