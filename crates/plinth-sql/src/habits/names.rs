//! Names that no column has: aliases of the same SELECT, and columns whose letters differ in case alone.
//!
//! A statement comes here only after it failed, so that a name which means something keeps its meaning.

use std::ops::ControlFlow;

use datafusion::common::{Result, plan_err};
use datafusion::sql::sqlparser::ast::{
    self, Expr, GroupByExpr, Ident, JoinConstraint, JoinOperator, OrderByKind, Query, Select, SelectItem, SetExpr,
    TableWithJoins, VisitMut, VisitorMut,
};

use super::known::{Column, Known, Stop, quoted};
use super::lambdas::Lambdas;
use super::scope::Scope;
use super::templates;
use crate::names::normal;

/// Functions that give another value with each look.
const VOLATILE: [&str; 5] = ["random", "rand", "uuid", "gen_random_uuid", "nextval"];

/// Resolves the names of a SELECT.
pub(super) fn of_select(select: &mut Select, known: &Known, scope: &Scope) -> Result<(), Stop> {
    if select.from.is_empty() && select.projection.len() < 2 {
        return Ok(());
    }
    let columns = columns_of(&select.from, known, scope)?;
    for join in select.from.iter_mut().flat_map(|from| &mut from.joins) {
        let _ = join.join_operator.visit(&mut Cases::of(&columns));
        using(&mut join.join_operator, &columns);
    }
    let mut cases = Cases::of(&columns);
    for item in &mut select.projection {
        let _ = item.visit(&mut cases);
    }
    let _ = select.selection.visit(&mut cases);
    let _ = select.having.visit(&mut cases);
    let _ = select.qualify.visit(&mut cases);
    let _ = select.group_by.visit(&mut cases);
    let _ = select.distinct.visit(&mut cases);
    // Each alias for the items behind it, and for all clauses.
    let mut aliases: Vec<(String, Expr)> = Vec::new();
    for item in &mut select.projection {
        let mut within = Aliases::new(&aliases, &columns, true);
        let _ = item.visit(&mut within);
        within.end()?;
        if let SelectItem::ExprWithAlias { expr, alias } = item {
            let name = normal(alias);
            aliases.retain(|(known, _)| *known != name);
            aliases.push((name, expr.clone()));
        }
    }
    let clauses = [&mut select.selection, &mut select.having, &mut select.qualify];
    for (at, clause) in clauses.into_iter().enumerate() {
        let mut within = Aliases::new(&aliases, &columns, at == 2);
        let _ = clause.visit(&mut within);
        within.end()?;
    }
    if let GroupByExpr::Expressions(exprs, _) = &mut select.group_by {
        for expr in exprs {
            let mut within = Aliases::new(&aliases, &columns, false);
            let _ = expr.visit(&mut within);
            within.end()?;
        }
    }
    Ok(())
}

/// Resolves the names of ORDER BY.
pub(super) fn of_order(query: &mut Query, known: &Known, scope: &Scope) -> Result<(), Stop> {
    let SetExpr::Select(select) = query.body.as_ref() else { return Ok(()) };
    let Some(order) = &mut query.order_by else { return Ok(()) };
    let OrderByKind::Expressions(exprs) = &mut order.kind else { return Ok(()) };
    let columns = columns_of(&select.from, known, scope)?;
    let aliased = |name: &str| {
        select
            .projection
            .iter()
            .any(|item| matches!(item, SelectItem::ExprWithAlias { alias, .. } if normal(alias) == name))
    };
    for by in exprs {
        if matches!(&by.expr, Expr::Identifier(name) if aliased(&normal(name))) {
            continue;
        }
        let _ = by.expr.visit(&mut Cases::of(&columns));
    }
    Ok(())
}

/// An ORDER BY with an expression of columns whose names are aliases, too, `SELECT -x AS x FROM t ORDER BY x + 1`: an alias is meant by
/// itself alone. What is sorted by becomes columns of a query within, which the query around does not give.
pub(super) fn of_input(query: &mut Query) -> Result<()> {
    let SetExpr::Select(select) = query.body.as_mut() else { return Ok(()) };
    let Some(order) = &mut query.order_by else { return Ok(()) };
    let OrderByKind::Expressions(exprs) = &mut order.kind else { return Ok(()) };
    let of_rows = matches!(&select.group_by, GroupByExpr::Expressions(exprs, _) if exprs.is_empty());
    let mut names = Vec::with_capacity(select.projection.len());
    let mut hiding = Vec::new();
    for item in &select.projection {
        let (expr, alias) = match item {
            SelectItem::ExprWithAlias { expr, alias } => (expr, Some(alias)),
            SelectItem::UnnamedExpr(expr) => (expr, None),
            _ => return Ok(()),
        };
        let column = match expr {
            Expr::Identifier(name) => Some(normal(name)),
            Expr::CompoundIdentifier(parts) => parts.last().map(normal),
            _ => None,
        };
        let Some(name) = alias.map(normal).or_else(|| column.clone()) else { return Ok(()) };
        if column.as_ref() != Some(&name) {
            hiding.push(name.clone());
        }
        names.push(name);
    }
    let is_hidden = |expr: &Expr| match expr {
        Expr::Identifier(name) => hiding.contains(&normal(name)),
        Expr::CompoundIdentifier(parts) => parts.last().is_some_and(|name| hiding.contains(&normal(name))),
        _ => false,
    };
    let is_output = |expr: &Expr| matches!(expr, Expr::Identifier(name) if names.contains(&normal(name)));
    let by_columns = |expr: &Expr| {
        !is_output(expr)
            && ast::visit_expressions(expr, |expr| match is_hidden(expr) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            })
            .is_break()
    };
    let twice = names.iter().enumerate().any(|(at, name)| names.iter().take(at).any(|other| other == name));
    if !of_rows || twice || select.distinct.is_some() || !exprs.iter().any(|by| by_columns(&by.expr)) {
        return Ok(());
    }
    for (at, by) in exprs.iter_mut().enumerate() {
        if is_output(&by.expr) || matches!(by.expr, Expr::Value(_)) {
            continue;
        }
        let alias = quoted(&format!("plinth_order_{at}"));
        let expr = std::mem::replace(&mut by.expr, Expr::Identifier(alias.clone()));
        select.projection.push(SelectItem::ExprWithAlias { expr, alias });
    }
    let mut outer = templates::query("SELECT * FROM t")?;
    let inner = Query { body: query.body.clone(), ..*templates::query("SELECT 1")? };
    templates::set_source(&mut outer, inner);
    let items = names.iter().map(|name| SelectItem::UnnamedExpr(Expr::Identifier(quoted(name))));
    templates::set_items(&mut outer, items.collect());
    query.body = outer.body;
    Ok(())
}

/// The columns of tables, whatever they are joined on.
fn columns_of(from: &[TableWithJoins], known: &Known, scope: &Scope) -> Result<Vec<Column>, Stop> {
    if from.is_empty() {
        return Ok(Vec::new());
    }
    let mut from = from.to_vec();
    for join in from.iter_mut().flat_map(|from| &mut from.joins) {
        // Those of a semi join are not seen, but may be named in its condition.
        join.join_operator = JoinOperator::CrossJoin(JoinConstraint::None);
        join.global = false;
    }
    Ok(scope.columns(&from, known)?.to_vec())
}

/// The column that a name means, if none has it and one alone differs from it in case.
fn but_for_case<'a>(name: &Ident, table: Option<&Ident>, columns: &'a [Column]) -> Option<&'a str> {
    if name.quote_style.is_some() {
        return None;
    }
    let wanted = normal(name);
    let mut fitting = columns.iter().filter(|column| {
        column.name().to_lowercase() == wanted
            && table.is_none_or(|table| column.table.last().is_some_and(|its| its.to_lowercase() == normal(table)))
    });
    let first = fitting.next()?.name();
    (first != wanted && fitting.all(|other| other.name() == first)).then_some(first)
}

fn using(operator: &mut JoinOperator, columns: &[Column]) {
    use JoinOperator as J;
    let (J::Join(constraint)
    | J::Inner(constraint)
    | J::Left(constraint)
    | J::LeftOuter(constraint)
    | J::Right(constraint)
    | J::RightOuter(constraint)
    | J::FullOuter(constraint)
    | J::LeftSemi(constraint)
    | J::LeftAnti(constraint)) = operator
    else {
        return;
    };
    let JoinConstraint::Using(names) = constraint else { return };
    for name in names {
        if let [part] = name.0.as_slice()
            && let Some(ident) = part.as_ident()
            && let Some(found) = but_for_case(ident, None, columns)
        {
            *name = vec![quoted(found)].into();
        }
    }
}

/// Names with the letters of their columns.
struct Cases<'a> {
    columns: &'a [Column],
    /// Subqueries that are open: their names are theirs.
    depth: usize,
    lambdas: Lambdas,
}

impl<'a> Cases<'a> {
    fn of(columns: &'a [Column]) -> Self {
        Self { columns, depth: 0, lambdas: Lambdas::default() }
    }
}

impl VisitorMut for Cases<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        self.lambdas.enter(expr);
        if self.depth > 0 {
            return ControlFlow::Continue(());
        }
        match expr {
            Expr::Identifier(name) if !self.lambdas.has(&normal(name)) => {
                if let Some(found) = but_for_case(name, None, self.columns) {
                    *name = Ident { value: found.to_owned(), quote_style: Some('"'), span: name.span };
                }
            }
            Expr::CompoundIdentifier(names) => {
                if let [.., table, name] = names.as_mut_slice()
                    && let Some(found) = but_for_case(name, Some(table), self.columns)
                {
                    *name = Ident { value: found.to_owned(), quote_style: Some('"'), span: name.span };
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        self.lambdas.leave(expr);
        ControlFlow::Continue(())
    }
}

/// Names with the expressions that they are aliases of.
struct Aliases<'a> {
    aliases: &'a [(String, Expr)],
    columns: &'a [Column],
    depth: usize,
    /// Whether windows can be named here.
    windows: bool,
    lambdas: Lambdas,
    error: Option<String>,
}

impl<'a> Aliases<'a> {
    fn new(aliases: &'a [(String, Expr)], columns: &'a [Column], windows: bool) -> Self {
        Self { aliases, columns, depth: 0, windows, lambdas: Lambdas::default(), error: None }
    }

    fn end(self) -> Result<(), Stop> {
        match self.error {
            Some(error) => Ok(plan_err!("{error}")?),
            None => Ok(()),
        }
    }
}

impl VisitorMut for Aliases<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        self.lambdas.enter(expr);
        ControlFlow::Continue(())
    }

    // What is put in is not looked at again.
    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        self.lambdas.leave(expr);
        let Expr::Identifier(name) = expr else { return ControlFlow::Continue(()) };
        let wanted = normal(name);
        let is_column = self.columns.iter().any(|column| column.name() == wanted);
        if self.depth > 0 || is_column || self.lambdas.has(&wanted) {
            return ControlFlow::Continue(());
        }
        if let Some((_, meaning)) = self.aliases.iter().rev().find(|(alias, _)| *alias == wanted) {
            let mut looked = Looked::default();
            let _ = meaning.clone().visit(&mut looked);
            if looked.volatile {
                self.error = Some(format!(
                    "{wanted} stands for {meaning}, which is another with each look: name it in a subquery"
                ));
            } else if looked.window && !self.windows {
                self.error =
                    Some(format!("{wanted} stands for a window, which this clause is before: name it in a subquery"));
            } else if let Some(taken) = self.lambdas.taken(meaning) {
                self.error = Some(format!(
                    "{wanted} stands for {meaning}, where {taken} is no parameter of a lambda: call that another name"
                ));
            } else {
                *expr = Expr::Nested(Box::new(meaning.clone()));
            }
        }
        ControlFlow::Continue(())
    }
}

#[derive(Default)]
struct Looked {
    volatile: bool,
    window: bool,
}

impl VisitorMut for Looked {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Function(function) = expr {
            let name = super::simple_name(&function.name).unwrap_or_default();
            self.volatile |= VOLATILE.contains(&name.as_str());
            self.window |= function.over.is_some();
        }
        ControlFlow::Continue(())
    }
}
