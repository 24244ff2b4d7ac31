//! Aggregates and windows over chance: each call that is written draws for itself, where the engine computes equal calls once.

use std::collections::HashMap;
use std::ops::ControlFlow;

use datafusion::common::Result;
use datafusion::sql::sqlparser::ast::{
    self, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Select, Visit, VisitMut,
};

use super::known::Known;
use super::{simple_name, templates};
use crate::meaning::APART;

/// Tells equal calls of a SELECT apart. Those of ORDER BY are the column's that is the same.
pub(super) fn apart(select: &mut Select, known: &Known) -> Result<()> {
    if !has_chance(&select.projection, known) && !has_chance(&select.having, known) {
        return Ok(());
    }
    let mut seen = HashMap::new();
    numbered(&mut select.projection, known, &mut seen)?;
    numbered(&mut select.having, known, &mut seen)
}

fn numbered(part: &mut impl VisitMut, known: &Known, seen: &mut HashMap<String, usize>) -> Result<()> {
    let visited = ast::visit_expressions_mut(part, |expr| {
        let Expr::Function(function) = expr else { return ControlFlow::Continue(()) };
        let aggregates = simple_name(&function.name).is_some_and(|name| known.aggregates.contains(&name));
        let draws = has_chance(&function.args, known) || has_chance(&function.filter, known);
        if !draws || (!aggregates && function.over.is_none()) {
            return ControlFlow::Continue(());
        }
        let before = seen.entry(function.to_string()).or_default();
        *before += 1;
        match number(function, *before) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    });
    match visited {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

fn has_chance(part: &impl Visit, known: &Known) -> bool {
    ast::visit_expressions(part, |expr| match expr {
        Expr::Function(function) if simple_name(&function.name).is_some_and(|name| known.volatile.contains(&name)) => {
            ControlFlow::Break(())
        }
        _ => ControlFlow::Continue(()),
    })
    .is_break()
}

/// Has the how-manieth call of its kind differ from those before it.
fn number(function: &mut Function, number: usize) -> Result<()> {
    if number == 1 {
        return Ok(());
    }
    let first = match &mut function.args {
        FunctionArguments::List(list) => list.args.iter_mut().find_map(|arg| match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => Some(value),
            _ => None,
        }),
        _ => None,
    };
    if let Some(value) = first.or(function.filter.as_deref_mut()) {
        *value = templates::expression(&format!("{APART}($1, {number})"), std::slice::from_ref(value))?;
    }
    Ok(())
}
