//! Clauses of standard SQL that the engine does not know: FETCH FIRST, LIKE ... ESCAPE, rows IN (SELECT ...), ARRAY(SELECT ...), and ROLLUP
//! among GROUPING SETS.

use datafusion::common::{Result, plan_err};
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Distinct, Expr, Function, FunctionArgumentClause, FunctionArguments, GroupByExpr, Ident,
    LimitClause, OrderByExpr, OrderByKind, Query, Select, SelectItem, SetExpr, TableFactor, UnaryOperator, Value,
    ValueWithSpan,
};

use plinth_datafusion::like_pattern;

use super::{is_one, simple_name, templates, text_of};
use crate::names::normal;

/// `FETCH FIRST n ROWS ONLY` as a limit.
pub(super) fn fetch(query: &mut Query) -> Result<()> {
    let Some(fetch) = query.fetch.take() else { return Ok(()) };
    if fetch.with_ties {
        return plan_err!("FETCH ... WITH TIES: not supported; compare rank() OVER (ORDER BY ...) in QUALIFY");
    }
    let one = || Expr::Value(Value::Number("1".to_owned(), false).into());
    let mut rows = fetch.quantity.unwrap_or_else(one);
    if fetch.percent {
        rows = templates::expression("plinth_percent($1)", &[rows])?;
    }
    match &mut query.limit_clause {
        None => {
            query.limit_clause =
                Some(LimitClause::LimitOffset { limit: Some(rows), offset: None, limit_by: Vec::new() });
        }
        Some(LimitClause::LimitOffset { limit: limit @ None, .. }) => *limit = Some(rows),
        Some(_) => return plan_err!("FETCH beside LIMIT: say once how many rows are wanted"),
    }
    Ok(())
}

/// A pattern of LIKE with the escape that the engine knows, `\`.
pub(super) fn escaped(pattern: &mut Expr, escape: &mut Option<ValueWithSpan>) -> Result<()> {
    let Some(sign) = escape.take() else { return Ok(()) };
    let letters = match &sign.value {
        Value::SingleQuotedString(letters) => letters.chars().collect::<Vec<_>>(),
        other => return plan_err!("ESCAPE {other}: takes a letter as text"),
    };
    let [letter] = letters.as_slice() else {
        return match letters.is_empty() {
            true => rewritten(pattern, None),
            false => plan_err!("ESCAPE {sign}: takes one letter, or none"),
        };
    };
    if *letter == '\\' { Ok(()) } else { rewritten(pattern, Some(*letter)) }
}

fn rewritten(pattern: &mut Expr, escape: Option<char>) -> Result<()> {
    *pattern = match text_of(pattern) {
        Some(text) => Expr::Value(Value::SingleQuotedString(like_pattern(text, escape)?).into()),
        None => {
            let escape = escape.map(String::from).unwrap_or_default();
            let escape = Expr::Value(Value::SingleQuotedString(escape).into());
            templates::expression("plinth_like_pattern($1, $2)", &[pattern.clone(), escape])?
        }
    };
    Ok(())
}

/// `(a, b) IN (SELECT ...)` in a condition that rows have to fulfil, of which NULL is none.
pub(super) fn rows_in_condition(condition: &mut Expr) -> Result<()> {
    match condition {
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
            rows_in_condition(left)?;
            rows_in_condition(right)
        }
        Expr::Nested(inner) => rows_in_condition(inner),
        Expr::InSubquery { expr, subquery, negated } => {
            if let Expr::Tuple(row) = expr.as_ref() {
                *condition = match negated {
                    false => exists(row, subquery, Fit::Equal)?,
                    true => templates::expression("NOT $1", &[exists(row, subquery, Fit::Maybe)?])?,
                };
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// `(a, b) IN (SELECT ...)` as a value: NULL where a NULL keeps it open whether rows are equal.
pub(super) fn row_in(expr: &Expr) -> Result<Option<Expr>> {
    let Expr::InSubquery { expr, subquery, negated } = expr else { return Ok(None) };
    let Expr::Tuple(row) = expr.as_ref() else { return Ok(None) };
    let (equal, maybe) = (exists(row, subquery, Fit::Equal)?, exists(row, subquery, Fit::Maybe)?);
    let value = templates::expression("CASE WHEN $1 THEN TRUE WHEN $2 THEN NULL ELSE FALSE END", &[equal, maybe])?;
    Ok(Some(if *negated { templates::expression("NOT $1", &[value])? } else { value }))
}

/// How a row fits one of a subquery.
#[derive(Clone, Copy)]
enum Fit {
    Equal,
    /// Equal, or with a NULL on a side.
    Maybe,
}

/// Whether a subquery has a row that fits.
fn exists(row: &[Expr], subquery: &Query, fit: Fit) -> Result<Expr> {
    let column = |at: usize| format!("__in.__{at}");
    let condition = |at: usize| {
        let (column, value) = (column(at), format!("${}", at + 1));
        match fit {
            Fit::Equal => format!("{column} = {value}"),
            Fit::Maybe => format!("({column} = {value} OR {column} IS NULL OR {value} IS NULL)"),
        }
    };
    let conditions: Vec<String> = (0..row.len()).map(condition).collect();
    let columns: Vec<String> = (0..row.len()).map(|at| format!("__{at}")).collect();
    let text =
        format!("EXISTS (SELECT 1 FROM (SELECT 1) AS __in({}) WHERE {})", columns.join(", "), conditions.join(" AND "));
    let mut found = templates::expression(&text, row)?;
    if let Expr::Exists { subquery: around, .. } = &mut found {
        select_from(around, subquery.clone());
    }
    Ok(found)
}

/// Puts a query in the place of the one in parentheses that another selects from.
fn select_from(around: &mut Query, rows: Query) {
    if let SetExpr::Select(select) = around.body.as_mut()
        && let Some(from) = select.from.first_mut()
        && let TableFactor::Derived { subquery, .. } = &mut from.relation
    {
        **subquery = rows;
    }
}

/// `ARRAY(SELECT ...)`: the rows of a subquery as a list, in its order.
pub(super) fn list_of_rows(function: &Function) -> Result<Option<Expr>> {
    if simple_name(&function.name).as_deref() != Some("array") {
        return Ok(None);
    }
    let FunctionArguments::Subquery(subquery) = &function.args else { return Ok(None) };
    let mut rows = subquery.as_ref().clone();
    let mut order = "";
    if let Some(by) = &rows.order_by {
        let OrderByKind::Expressions(by) = &by.kind else {
            return plan_err!("ARRAY(SELECT ... ORDER BY ALL): not supported; name the column");
        };
        let SetExpr::Select(select) = rows.body.as_mut() else {
            return plan_err!("ARRAY(...) of UNION with ORDER BY: not supported; write array_agg(x ORDER BY x)");
        };
        if select.distinct.is_some() {
            return plan_err!(
                "ARRAY(SELECT DISTINCT ... ORDER BY ...): not supported; write array_agg(DISTINCT x ORDER BY x)"
            );
        }
        let is_number =
            |by: &OrderByExpr| matches!(&by.expr, Expr::Value(ValueWithSpan { value: Value::Number(..), .. }));
        if by.iter().any(is_number) && !select.projection.iter().all(is_one) {
            return plan_err!("ARRAY(SELECT * ... ORDER BY 1): not supported; name the column");
        }
        let by: Vec<String> = by.iter().map(|by| of_item(by, &select.projection).to_string()).collect();
        let number = templates::expression(&format!("row_number() OVER (ORDER BY {})", by.join(", ")), &[])?;
        select.projection.push(SelectItem::UnnamedExpr(number));
        order = " ORDER BY __t.__at";
    }
    let columns = if order.is_empty() { "__x" } else { "__x, __at" };
    let text = format!("(SELECT array_agg(__t.__x{order}) FROM (SELECT 1) AS __t({columns}))");
    let mut list = templates::expression(&text, &[])?;
    if let Expr::Subquery(around) = &mut list {
        select_from(around, rows);
    }
    // Of no rows an empty one.
    templates::expression("coalesce($1, make_array())", &[list]).map(Some)
}

/// A term of ORDER BY without the names and numbers of a SELECT's columns, which windows do not know.
fn of_item(by: &OrderByExpr, items: &[SelectItem]) -> OrderByExpr {
    let named = |name: &Ident| {
        items.iter().find_map(|item| match item {
            SelectItem::ExprWithAlias { expr, alias } if normal(alias) == normal(name) => Some(expr),
            _ => None,
        })
    };
    let numbered = |number: &str| match number.parse::<usize>().ok().and_then(|at| items.get(at.checked_sub(1)?)) {
        Some(SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) => Some(expr),
        _ => None,
    };
    let expr = match &by.expr {
        Expr::Identifier(name) => named(name),
        Expr::Value(ValueWithSpan { value: Value::Number(number, _), .. }) => numbered(number),
        _ => None,
    };
    OrderByExpr { expr: expr.unwrap_or(&by.expr).clone(), ..by.clone() }
}

/// `SELECT 3 AS x ... GROUP BY x`: the engine takes the number in the place of its name for that of a column.
pub(super) fn numbers_by_name(select: &mut Select) -> Result<()> {
    let GroupByExpr::Expressions(groups, _) = &select.group_by else { return Ok(()) };
    let is_group = |name: &Ident| groups.iter().any(|group| matches!(group, Expr::Identifier(other) if other == name));
    for item in &mut select.projection {
        let SelectItem::ExprWithAlias { expr, alias } = item else { continue };
        let whole = |number: &Expr| matches!(number, Expr::Value(ValueWithSpan { value: Value::Number(number, _), .. }) if number.parse::<i64>().is_ok());
        let is_whole = match &*expr {
            Expr::UnaryOp { op: UnaryOperator::Minus, expr } => whole(expr),
            other => whole(other),
        };
        if is_whole && is_group(alias) {
            *expr = templates::expression("CAST($1 AS BIGINT)", std::slice::from_ref(expr))?;
        }
    }
    Ok(())
}

/// `DISTINCT ON (1)` by the column that it numbers: the engine takes a number for a value that all rows share.
pub(super) fn distinct_on(select: &mut Select) -> Result<()> {
    let Some(Distinct::On(keys)) = &mut select.distinct else { return Ok(()) };
    for key in keys {
        let Expr::Value(ValueWithSpan { value, .. }) = &*key else { continue };
        let at = match value {
            Value::Placeholder(_) => continue,
            Value::Number(number, _) => number.parse::<usize>().ok().and_then(|number| number.checked_sub(1)),
            _ => None,
        };
        let are_named = |at: &usize| select.projection.iter().take(at + 1).all(is_one);
        *key = match at.filter(are_named).and_then(|at| select.projection.get(at)) {
            Some(SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) => expr.clone(),
            _ => {
                return plan_err!(
                    "DISTINCT ON ({key}): takes columns, or the numbers of those that are listed after it"
                );
            }
        };
    }
    Ok(())
}

/// `string_agg(x, ',' ORDER BY 1)`: a constant orders nothing. The engine takes it for the number of an argument.
pub(super) fn constant_orders(function: &mut Function) {
    let FunctionArguments::List(list) = &mut function.args else { return };
    list.clauses.retain_mut(|clause| match clause {
        FunctionArgumentClause::OrderBy(by) => {
            by.retain(|by| !matches!(by.expr, Expr::Value(ValueWithSpan { value: Value::Number(..), .. })));
            !by.is_empty()
        }
        _ => true,
    });
}

/// ROLLUP and CUBE among GROUPING SETS, by the sets that they stand for.
pub(super) fn grouping_sets(select: &mut Select) -> Result<()> {
    let GroupByExpr::Expressions(groups, _) = &mut select.group_by else { return Ok(()) };
    for group in groups {
        let Expr::GroupingSets(sets) = group else { continue };
        let mut all = Vec::with_capacity(sets.len());
        for set in std::mem::take(sets) {
            match set.as_slice() {
                [Expr::Function(function)] => match stands_for(function)? {
                    Some(further) => all.extend(further),
                    None => all.push(set),
                },
                _ => all.push(set),
            }
        }
        *sets = all;
    }
    Ok(())
}

fn stands_for(function: &Function) -> Result<Option<Vec<Vec<Expr>>>> {
    /// More sets than that are a mistake.
    const MOST: usize = 12;
    let name = simple_name(&function.name).unwrap_or_default();
    if !matches!(name.as_str(), "rollup" | "cube") {
        return Ok(None);
    }
    let Some(args) = super::functions::arguments(function) else { return Ok(None) };
    // `(a, b)` is one of them.
    let parts: Vec<Vec<Expr>> = args
        .into_iter()
        .map(|arg| match arg {
            Expr::Tuple(row) => row.clone(),
            other => vec![other.clone()],
        })
        .collect();
    if parts.len() > MOST {
        return plan_err!("{} of {} columns: not supported, at most {MOST} are", name.to_uppercase(), parts.len());
    }
    let of = |picked: &dyn Fn(usize) -> bool| -> Vec<Expr> {
        parts.iter().enumerate().filter(|(at, _)| picked(*at)).flat_map(|(_, part)| part.clone()).collect()
    };
    Ok(Some(match name.as_str() {
        "rollup" => (0..=parts.len()).rev().map(|first| of(&|at| at < first)).collect(),
        _ => (0..1_usize << parts.len()).rev().map(|mask| of(&|at| mask >> (parts.len() - 1 - at) & 1 == 1)).collect(),
    }))
}
