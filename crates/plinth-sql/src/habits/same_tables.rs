//! Tables of one name from several schemas: `FROM t JOIN s.t ON t.id = s.t.id`.
//!
//! The engine takes `t` and `s.t` for the same where it looks for a column. So each of them gets an alias of its own.

use std::ops::ControlFlow;

use datafusion::common::{Result, plan_err};
use datafusion::sql::sqlparser::ast::{
    self, Expr, Ident, ObjectName, ObjectNamePart, Query, Select, SelectItem, SelectItemQualifiedWildcardKind, SetExpr,
    TableAlias, TableFactor, TableWithJoins,
};

use crate::names::normal;

/// A table, by the parts of its name, and its alias.
struct Told {
    parts: Vec<String>,
    alias: Ident,
}

/// The names of the tables of a query that have no aliases, by their parts.
pub(super) type Names = Vec<Vec<String>>;

/// Gives aliases to tables of a query whose names differ from one another, or from those of the queries around it, in their schemas
/// only. Answers the names that the query has.
pub(super) fn tell_apart(query: &mut Query, around: &[Names]) -> Result<Names> {
    let mut all = Names::new();
    let mut selects = Vec::new();
    selects_of(query.body.as_mut(), &mut selects);
    let alone = selects.len() == 1;
    for select in selects {
        let mut names = Names::new();
        each_table(&mut select.from, &mut |name, _| names.extend(parts_of(name)));
        all.extend(names.iter().cloned());
        let around = || around.iter().flatten();
        let same = |parts: &[String]| {
            names.iter().chain(around()).any(|other| other.last() == parts.last() && *other != parts)
        };
        if !names.iter().any(|parts| same(parts)) {
            continue;
        }
        let mut told: Vec<Told> = Vec::new();
        each_table(&mut select.from, &mut |name, alias| {
            let Some(parts) = parts_of(name).filter(|parts| same(parts)) else { return };
            let mut given = parts.join("_");
            while names.iter().chain(around()).any(|other| other.last() == Some(&given))
                || told.iter().any(|one| one.alias.value == given)
            {
                given.push('_');
            }
            let given = Ident::with_quote('"', given);
            *alias = Some(TableAlias { explicit: true, name: given.clone(), columns: Vec::new(), at: None });
            told.push(Told { parts, alias: given });
        });
        rename(select, &told)?;
        if alone {
            of(ast::visit_expressions_mut(&mut query.order_by, |expr| renamed(expr, &told)))?;
        }
    }
    Ok(all)
}

/// The SELECTs of a query, also those of UNION and its like.
fn selects_of<'q>(body: &'q mut SetExpr, selects: &mut Vec<&'q mut Select>) {
    match body {
        SetExpr::Select(select) => selects.push(select),
        SetExpr::SetOperation { left, right, .. } => {
            selects_of(left, selects);
            selects_of(right, selects);
        }
        _ => {}
    }
}

/// Each table of a FROM that has no alias: its name, and the place of one.
fn each_table(from: &mut [TableWithJoins], visit: &mut impl FnMut(&ObjectName, &mut Option<TableAlias>)) {
    for TableWithJoins { relation, joins } in from {
        let joined = joins.iter_mut().map(|join| &mut join.relation);
        for table in std::iter::once(relation).chain(joined) {
            match table {
                TableFactor::Table { name, alias, args: None, .. } if alias.is_none() => visit(name, alias),
                TableFactor::NestedJoin { table_with_joins, alias: None } => {
                    each_table(std::slice::from_mut(table_with_joins.as_mut()), visit);
                }
                _ => {}
            }
        }
    }
}

/// The parts of a name, unless it is a path.
fn parts_of(name: &ObjectName) -> Option<Vec<String>> {
    let part = |part: &ObjectNamePart| match part {
        ObjectNamePart::Identifier(part) if part.quote_style != Some('\'') => Some(normal(part)),
        _ => None,
    };
    name.0.iter().map(part).collect()
}

fn rename(select: &mut Select, told: &[Told]) -> Result<()> {
    for item in &mut select.projection {
        if let SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) = item
            && let Some(parts) = parts_of(name)
            && let Some(alias) = alias_of(&parts, told)?
        {
            *name = ObjectName::from(vec![alias.clone()]);
        }
    }
    of(ast::visit_expressions_mut(select, |expr| renamed(expr, told)))
}

fn renamed(expr: &mut Expr, told: &[Told]) -> ControlFlow<datafusion::common::DataFusionError> {
    let Expr::CompoundIdentifier(names) = expr else { return ControlFlow::Continue(()) };
    let Some((_, table)) = names.split_last() else { return ControlFlow::Continue(()) };
    let parts: Vec<String> = table.iter().map(normal).collect();
    match alias_of(&parts, told) {
        Ok(Some(alias)) => {
            names.splice(..parts.len(), [alias.clone()]);
            ControlFlow::Continue(())
        }
        Ok(None) => ControlFlow::Continue(()),
        Err(error) => ControlFlow::Break(error),
    }
}

fn of(visited: ControlFlow<datafusion::common::DataFusionError>) -> Result<()> {
    match visited {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

/// The alias of the table that a column's qualifier names: of all its parts, else of as many as are written.
fn alias_of<'t>(parts: &[String], told: &'t [Told]) -> Result<Option<&'t Ident>> {
    if let Some(one) = told.iter().find(|one| one.parts == parts) {
        return Ok(Some(&one.alias));
    }
    let fits = |one: &&Told| one.parts.ends_with(parts);
    let mut fitting = told.iter().filter(fits);
    match (fitting.next(), fitting.next()) {
        (None, _) => Ok(None),
        (Some(one), None) => Ok(Some(&one.alias)),
        (Some(one), Some(other)) => plan_err!(
            "{} may be {} or {}: give them aliases, as in FROM {} AS a",
            parts.join("."),
            one.parts.join("."),
            other.parts.join("."),
            other.parts.join(".")
        ),
    }
}
