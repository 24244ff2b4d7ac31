//! What columns without a name are called: what was written, with the parentheses that it means.

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Expr, Ident, SelectItem, Value, VisitMut, VisitorMut};

use crate::names::normal;

/// What a column is called, before its expression is rewritten. None if the engine calls it so itself.
pub(super) fn heading(item: &SelectItem) -> Option<String> {
    match item {
        SelectItem::UnnamedExpr(Expr::Identifier(_) | Expr::CompoundIdentifier(_)) => None,
        SelectItem::UnnamedExpr(expr) => Some(of(expr)),
        _ => None,
    }
}

/// An expression as a heading.
pub(super) fn of(expr: &Expr) -> String {
    match expr {
        Expr::Nested(inner) => of(inner),
        // '1'::INT
        Expr::Value(value) if matches!(value.value, Value::Null) => "NULL".to_owned(),
        Expr::Value(_) | Expr::Identifier(_) | Expr::CompoundIdentifier(_) => expr.to_string(),
        _ => {
            let mut expr = expr.clone();
            let _ = expr.visit(&mut Parentheses);
            match &expr {
                Expr::Nested(inner) if !matches!(**inner, Expr::BinaryOp { .. }) => inner.to_string(),
                other => other.to_string(),
            }
        }
    }
}

/// Gives a column its heading.
pub(super) fn name(item: &mut SelectItem, heading: Option<String>) {
    if let (SelectItem::UnnamedExpr(expr), Some(heading)) = (&mut *item, heading)
        && heading != "count(*)"
    {
        let expr = std::mem::replace(expr, Expr::Value(Value::Null.into()));
        *item = SelectItem::ExprWithAlias { expr, alias: Ident::with_quote('"', heading) };
    }
}

/// Gives columns without a name other headings where several have one: `a`, `a_1`.
pub(super) fn apart(items: &[SelectItem], headings: &mut [Option<String>]) {
    let name_of = |(item, heading): (&SelectItem, &Option<String>)| match (item, heading) {
        (_, Some(heading)) => Some(heading.clone()),
        (SelectItem::UnnamedExpr(Expr::Identifier(name)), _) => Some(normal(name)),
        (SelectItem::UnnamedExpr(Expr::CompoundIdentifier(names)), _) => names.last().map(normal),
        (SelectItem::ExprWithAlias { alias, .. }, _) => Some(normal(alias)),
        _ => None,
    };
    let names: Vec<Option<String>> = items.iter().zip(headings.iter()).map(name_of).collect();
    let mut taken: HashSet<String> = names.iter().flatten().cloned().collect();
    let mut seen = HashSet::new();
    for ((item, heading), name) in items.iter().zip(headings).zip(names) {
        let Some(name) = name else { continue };
        if seen.insert(name.clone()) || !matches!(item, SelectItem::UnnamedExpr(_)) {
            continue;
        }
        if let Some(further) = (1..).map(|at| format!("{name}_{at}")).find(|other| !taken.contains(other)) {
            taken.insert(further.clone());
            *heading = Some(further);
        }
    }
}

/// Puts each operation in parentheses, and takes off others.
struct Parentheses;

impl VisitorMut for Parentheses {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let null = || Expr::Value(Value::Null.into());
        match expr {
            Expr::BinaryOp { .. } => {
                let inner = std::mem::replace(expr, null());
                *expr = Expr::Nested(Box::new(inner));
            }
            // What needs parentheses within has got them.
            Expr::Nested(inner) => {
                let inner = std::mem::replace(inner.as_mut(), null());
                *expr = inner;
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}
