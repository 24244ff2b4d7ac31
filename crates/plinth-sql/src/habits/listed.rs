//! `unnest` among tables in forms that the engine does not know: of a list of the row around a query, `LATERAL unnest(t.l)`, and WITH
//! ORDINALITY.

use std::ops::ControlFlow;

use datafusion::common::Result;
use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, Ident, Select, TableAlias, TableFactor, VisitMut, VisitorMut,
};

use super::known::quoted;
use super::{simple_name, templates};
use crate::names::normal;

/// Rewrites those of a SELECT.
pub(super) fn rewrite(select: &mut Select) -> Result<()> {
    let mut first = true;
    for from in &mut select.from {
        of_table(&mut from.relation, first)?;
        first = false;
        for join in &mut from.joins {
            of_table(&mut join.relation, false)?;
        }
    }
    Ok(())
}

fn of_table(table: &mut TableFactor, first: bool) -> Result<()> {
    if let TableFactor::Function { lateral: true, name, args, with_ordinality, alias } = table
        && simple_name(name).is_some_and(|name| name == "unnest")
        && let Some(array_exprs) = args.iter().map(value_of).collect::<Option<Vec<_>>>()
    {
        *table = TableFactor::UNNEST {
            alias: alias.take(),
            array_exprs,
            with_offset: false,
            with_offset_alias: None,
            with_ordinality: *with_ordinality,
        };
    }
    let TableFactor::UNNEST { alias, array_exprs, with_offset: false, with_ordinality, .. } = table else {
        return Ok(());
    };
    let of_rows = has_names(array_exprs);
    // Of a list that is written out, or of a table before it, the engine has it.
    let is_own = if *with_ordinality { array_exprs.len() == 1 } else { first && of_rows };
    if !is_own {
        return Ok(());
    }
    let given = alias.as_ref().map(|alias| alias.columns.as_slice()).unwrap_or_default();
    let name = |at: usize, otherwise: &str| {
        let name = given.get(at).map_or_else(|| otherwise.to_owned(), |column| normal(&column.name));
        quoted(&name)
    };
    let mut items: Vec<String> =
        (0..array_exprs.len()).map(|at| format!("unnest(${}) AS {}", at + 1, name(at, "unnest"))).collect();
    if *with_ordinality {
        items.push(format!("unnest(range(1, CAST(array_length($1) AS BIGINT) + 1)) AS {}", name(1, "ordinality")));
    }
    let subquery = templates::query_with(&format!("SELECT {}", items.join(", ")), array_exprs)?;
    let name = alias.take().map_or_else(|| Ident::new("unnest"), |alias| alias.name);
    let alias = Some(TableAlias { explicit: true, name, columns: Vec::new(), at: None });
    *table = TableFactor::Derived { lateral: of_rows && !first, subquery, alias, sample: None };
    Ok(())
}

fn value_of(arg: &FunctionArg) -> Option<Expr> {
    match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => Some(value.clone()),
        _ => None,
    }
}

/// Whether there are names of columns in expressions.
pub(super) fn has_names(exprs: &[Expr]) -> bool {
    let mut names = Names(false);
    let _ = exprs.to_vec().visit(&mut names);
    names.0
}

struct Names(bool);

impl VisitorMut for Names {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        self.0 |= matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_));
        ControlFlow::Continue(())
    }
}
