//! `OVER (w ORDER BY x)`: the engine forgets what the window `w` is.

use std::ops::ControlFlow;

use datafusion::common::{DataFusionError, Result, plan_datafusion_err, plan_err};
use datafusion::sql::parser::{CopyToSource, Statement};
use datafusion::sql::sqlparser::ast::{
    Expr, Ident, NamedWindowDefinition, NamedWindowExpr, Query, Select, SetExpr, VisitMut, VisitorMut, WindowSpec,
    WindowType, visit_expressions_mut,
};

use crate::names::normal;

/// Puts the windows that have names in the places of their names.
pub(crate) fn resolve_windows(statement: &mut Statement) -> Result<()> {
    let resolved = match statement {
        Statement::Statement(statement) => statement.visit(&mut Windows),
        Statement::CopyTo(copy) => match &mut copy.source {
            CopyToSource::Query(query) => query.visit(&mut Windows),
            CopyToSource::Relation(_) => ControlFlow::Continue(()),
        },
        Statement::Explain(explain) => return resolve_windows(&mut explain.statement),
        Statement::CreateExternalTable(_) | Statement::Reset(_) => ControlFlow::Continue(()),
    };
    as_result(resolved)
}

struct Windows;

impl VisitorMut for Windows {
    type Break = Box<DataFusionError>;

    // Names within subqueries are resolved by then: those that are left are of this one's windows.
    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<Self::Break> {
        let windows = select.named_window.clone();
        replace(select, &windows)
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Self::Break> {
        let windows = match query.body.as_ref() {
            SetExpr::Select(select) => select.named_window.clone(),
            _ => Vec::new(),
        };
        query.order_by.as_mut().map_or(ControlFlow::Continue(()), |order| replace(order, &windows))
    }
}

fn replace(within: &mut impl VisitMut, windows: &[NamedWindowDefinition]) -> ControlFlow<Box<DataFusionError>> {
    visit_expressions_mut(within, |expr| {
        let Expr::Function(function) = expr else { return ControlFlow::Continue(()) };
        let spec = match &function.over {
            Some(WindowType::NamedWindow(name)) => named(name, windows),
            Some(WindowType::WindowSpec(spec)) if spec.window_name.is_some() => refined(spec, windows),
            _ => return ControlFlow::Continue(()),
        };
        match spec {
            Ok(spec) => {
                function.over = Some(WindowType::WindowSpec(spec));
                ControlFlow::Continue(())
            }
            Err(error) => ControlFlow::Break(Box::new(error)),
        }
    })
}

/// The window with a name. One may refer to those before it.
fn named(name: &Ident, windows: &[NamedWindowDefinition]) -> Result<WindowSpec> {
    let wanted = normal(name);
    let at = windows.iter().rposition(|NamedWindowDefinition(name, _)| normal(name) == wanted);
    let (before, found) = at
        .and_then(|at| Some((windows.get(..at)?, windows.get(at)?)))
        .ok_or_else(|| plan_datafusion_err!("window {wanted:?}: there is none of this name in the WINDOW clause"))?;
    match &found.1 {
        NamedWindowExpr::NamedWindow(other) => named(other, before),
        NamedWindowExpr::WindowSpec(spec) => refined(spec, before),
    }
}

/// A window that takes over what another says, and adds to it.
fn refined(spec: &WindowSpec, windows: &[NamedWindowDefinition]) -> Result<WindowSpec> {
    let Some(name) = &spec.window_name else { return Ok(spec.clone()) };
    let base = named(name, windows)?;
    if !spec.partition_by.is_empty() {
        return plan_err!("window {name}: PARTITION BY can't be added to it; write the window out");
    }
    if base.window_frame.is_some() {
        return plan_err!("window {name}: has a frame, so that nothing can be added to it; write the window out");
    }
    if !base.order_by.is_empty() && !spec.order_by.is_empty() {
        return plan_err!("window {name}: has an ORDER BY, so that none can be added to it; write the window out");
    }
    let order_by = if spec.order_by.is_empty() { base.order_by } else { spec.order_by.clone() };
    let (partition_by, window_frame) = (base.partition_by, spec.window_frame.clone());
    Ok(WindowSpec { window_name: None, partition_by, order_by, window_frame })
}

fn as_result(flow: ControlFlow<Box<DataFusionError>>) -> Result<()> {
    match flow {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(*error),
    }
}
