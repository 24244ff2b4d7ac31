//! Aggregates that DuckDB has in more forms than the engine: of several parts at once, and over windows.

use datafusion::common::{Result, plan_err};
use datafusion::sql::sqlparser::ast::{self, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments};

use super::{templates, text_of};
use crate::meaning::of_aggregates;

/// Functions that take a part, and which of their arguments it is.
const OF_PARTS: [(&str, usize); 6] = [
    ("quantile_cont", 1),
    ("quantile_disc", 1),
    ("quantile", 1),
    ("approx_quantile", 1),
    ("percentile_cont", 0),
    ("percentile_disc", 0),
];

/// The calls of `quantile_cont(x, [0.25, 0.5])`, one for each of the list.
///
/// # Errors
/// If the list is empty.
pub(super) fn of_each_part(name: &str, function: &Function) -> Result<Option<Vec<Function>>> {
    let Some((_, at)) = OF_PARTS.iter().find(|(known, _)| *known == name) else { return Ok(None) };
    let FunctionArguments::List(list) = &function.args else { return Ok(None) };
    let Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Array(parts)))) = list.args.get(*at) else {
        return Ok(None);
    };
    if parts.elem.is_empty() {
        return plan_err!("{name}: takes at least one part: {name}(x, [0.25, 0.5])");
    }
    let call = |part: &Expr| {
        let mut call = function.clone();
        if let FunctionArguments::List(list) = &mut call.args
            && let Some(arg) = list.args.get_mut(*at)
        {
            *arg = FunctionArg::Unnamed(FunctionArgExpr::Expr(part.clone()));
        }
        call
    };
    Ok(Some(parts.elem.iter().map(call).collect()))
}

/// A list of aggregates, which is NULL where there is nothing to aggregate.
pub(super) fn listed(parts: Vec<Expr>) -> Result<Option<Expr>> {
    let Some(first) = parts.first().cloned() else { return Ok(None) };
    let list = Expr::Array(ast::Array { elem: parts, named: false });
    templates::expression("CASE WHEN $1 IS NOT NULL THEN $2 END", &[first, list]).map(Some)
}

/// What takes the place of an aggregate with FILTER or OVER, if that is one aggregate, which has them then.
pub(super) fn with_clauses(function: &Function, template: &str, args: &[Expr]) -> Result<Option<Expr>> {
    const OF_ONE: [&str; 3] = ["count(", "sum_exact(", "avg_exact("];
    let bare = Function { filter: None, over: None, ..function.clone() };
    let has_clauses = function.filter.is_some() || function.over.is_some();
    let is_one = OF_ONE.iter().any(|beginning| template.starts_with(beginning));
    if !has_clauses || !is_one || of_aggregates(&bare).is_some() {
        return Ok(None);
    }
    match templates::expression(template, args)? {
        Expr::Function(aggregate) => {
            let (filter, over) = (function.filter.clone(), function.over.clone());
            Ok(Some(Expr::Function(Function { filter, over, ..aggregate })))
        }
        _ => Ok(None),
    }
}

/// `list_aggregate(l, 'sum')`, which is `list_sum(l)`.
pub(super) fn of_list(name: &str, args: &[Expr]) -> Result<Option<Expr>> {
    if !matches!(name, "list_aggregate" | "list_aggr" | "array_aggregate" | "array_aggr") {
        return Ok(None);
    }
    let [list, aggregate] = args else { return plan_err!("{name}: write {name}(list, 'sum')") };
    let template = match text_of(aggregate).map(str::to_ascii_lowercase).as_deref() {
        Some(known @ ("sum" | "avg" | "min" | "max")) => format!("list_{known}($1)"),
        Some("count") => "len(array_compact($1))".to_owned(),
        _ => return plan_err!("{name}: {aggregate}: takes 'sum', 'avg', 'min', 'max' or 'count'"),
    };
    templates::expression(&template, std::slice::from_ref(list)).map(Some)
}
