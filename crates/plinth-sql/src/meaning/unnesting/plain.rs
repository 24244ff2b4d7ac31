//! Which subqueries the engine relates to the rows around them as SQL has it.

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{BinaryExpr, Distinct, Expr, FetchType, Join, JoinType, LogicalPlan, Operator};

use super::depends;

/// What a subquery is asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::meaning) enum Kind {
    /// One value.
    Value,
    /// Its values.
    Values,
    /// Whether there is a row.
    Exists,
    /// Its rows, beside those of a table.
    Rows,
}

/// Whether the engine does a subquery right.
pub(in crate::meaning) fn is_plain(subquery: &LogicalPlan, kind: Kind) -> bool {
    !depends(subquery)
        || match kind {
            Kind::Value => is_one_row(subquery) && plain(subquery, kind, false),
            Kind::Values | Kind::Exists | Kind::Rows => plain(subquery, kind, false),
        }
}

/// Whether a subquery is an aggregate of all its rows: it has one row then, always.
pub(in crate::meaning) fn is_one_row(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(projection) => is_one_row(&projection.input),
        LogicalPlan::SubqueryAlias(alias) => is_one_row(&alias.input),
        LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.is_empty(),
        _ => false,
    }
}

/// Whether a subquery has no more rows than one, whatever rows there are.
pub(in crate::meaning) fn has_one_row_at_most(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(columns) => has_one_row_at_most(&columns.input),
        LogicalPlan::SubqueryAlias(alias) => has_one_row_at_most(&alias.input),
        LogicalPlan::Filter(filter) => has_one_row_at_most(&filter.input),
        LogicalPlan::Sort(sort) => has_one_row_at_most(&sort.input),
        LogicalPlan::Limit(limit) => matches!(limit.get_fetch_type(), Ok(FetchType::Literal(Some(0 | 1)))),
        LogicalPlan::EmptyRelation(_) => true,
        other => is_one_row(other),
    }
}

/// Whether a plan in a subquery is plain, which may have groups above it.
///
/// One under a name is not: the engine lifts its conditions with the names that they have within, which others may have without.
fn plain(plan: &LogicalPlan, kind: Kind, grouped: bool) -> bool {
    if !depends(plan) {
        return true;
    }
    let of_all_rows = |input: &LogicalPlan| {
        matches!(input, LogicalPlan::Aggregate(groups) if groups.group_expr.is_empty()) && depends(input)
    };
    match plan {
        LogicalPlan::Filter(filter) => {
            !of_all_rows(&filter.input)
                && (!grouped
                    || split_conjunction(&filter.predicate).into_iter().all(|term| is_inner(term) || is_equality(term)))
                && plain(&filter.input, kind, grouped)
        }
        LogicalPlan::Projection(columns) => {
            let is_constant = |expr: &Expr| expr.column_refs().is_empty();
            is_of_inner(plan)
                && !(of_all_rows(&columns.input) && columns.expr.iter().any(is_constant))
                && plain(&columns.input, kind, grouped)
        }
        LogicalPlan::Aggregate(groups) => {
            let fits = kind != Kind::Rows && !(grouped && groups.group_expr.is_empty());
            fits && is_of_inner(plan) && plain(&groups.input, kind, true)
        }
        LogicalPlan::Distinct(Distinct::All(input)) => !grouped && kind != Kind::Rows && plain(input, kind, true),
        LogicalPlan::Sort(sort) => is_of_inner(plan) && plain(&sort.input, kind, grouped),
        // Whether there is a row, no limit changes.
        LogicalPlan::Limit(limit) => {
            let counts = matches!(limit.get_fetch_type(), Ok(FetchType::Literal(fetch)) if fetch != Some(0));
            let sorted = matches!(limit.input.as_ref(), LogicalPlan::Sort(_));
            kind == Kind::Exists && limit.skip.is_none() && counts && !sorted && plain(&limit.input, kind, grouped)
        }
        LogicalPlan::Join(join) => {
            is_of_inner(plan)
                && !is_filled(join)
                && plain(&join.left, kind, grouped)
                && plain(&join.right, kind, grouped)
        }
        LogicalPlan::Subquery(_) => true,
        _ => false,
    }
}

/// Whether a side of an outer join depends on the row around whose rows are filled up with NULL.
fn is_filled(join: &Join) -> bool {
    let (left, right) = (depends(&join.left), depends(&join.right));
    match join.join_type {
        JoinType::Left => right,
        JoinType::Right => left,
        JoinType::Full => left || right,
        _ => false,
    }
}

/// Whether the expressions of a node name no row around.
fn is_of_inner(node: &LogicalPlan) -> bool {
    let mut inner = true;
    let visited = node.apply_expressions(|expr| {
        inner &= is_inner(expr);
        Ok(TreeNodeRecursion::Continue)
    });
    inner && visited.is_ok()
}

fn is_inner(expr: &Expr) -> bool {
    !expr.contains_outer()
}

/// Whether a condition says that something of a row is equal to something of the row around.
fn is_equality(condition: &Expr) -> bool {
    let is_outer = |expr: &Expr| is_all(expr, |leaf| !matches!(leaf, Expr::Column(_)));
    match condition {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) => {
            (is_inner(left) && is_outer(right)) || (is_inner(right) && is_outer(left))
        }
        _ => false,
    }
}

fn is_all(expr: &Expr, is: impl Fn(&Expr) -> bool) -> bool {
    !expr.exists(|expr| Ok(!is(expr))).unwrap_or(true)
}
