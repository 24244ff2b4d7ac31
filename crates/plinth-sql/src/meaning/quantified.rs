//! `IN (subquery)`, `ANY` and `ALL` with the logic of three values, wherever they stand.
//!
//! The engine knows true and not true where such a comparison is part of a larger condition, so that `NOT IN` beside OR, or
//! `IS NULL` of it, tells wrong rows; and knows none outside of WHERE and HAVING. Here each becomes up to three marks of the rows below
//! (whether a value fits, whether there is a NULL, whether there is any value at all), and a CASE of these.
//!
//! What the engine does right, and fast, is left to it: `IN` and `EXISTS` that WHERE demands, and `NOT IN` of a column there. What it does
//! not of subqueries that depend on the row around them, as values, marks or rows beside a table, is done here, too.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Column, Result, ScalarValue, internal_err, plan_err};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::expr::{Case, Exists, InSubquery, SetComparison, SetQuantifier};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::{conjunction, split_conjunction, split_conjunction_owned};
use datafusion::logical_expr::{
    BinaryExpr, Expr, ExprSchemable, Filter, Join, JoinType, LogicalPlan, LogicalPlanBuilder, Operator, Subquery, lit,
};
use datafusion::optimizer::AnalyzerRule;

use super::marks::{Marks, columns_of, depends};
use super::unnesting::{Answer, Kind, is_one_row, is_plain};

/// The rule.
#[derive(Debug)]
pub(super) struct Quantified;

impl AnalyzerRule for Quantified {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let mut names = 0;
        let mended = plan.transform_up_with_subqueries(|node| mend(node, &mut names))?;
        if !mended.transformed {
            return Ok(mended.data);
        }
        // What may be NULL now.
        mended.data.transform_up_with_subqueries(|node| node.recompute_schema().map(Transformed::yes)).data()
    }

    fn name(&self) -> &'static str {
        "three_valued_subqueries"
    }
}

/// Which subqueries of an expression are to be marks.
fn is_quantified(expr: &Expr, with_exists: bool) -> bool {
    let is = |expr: &Expr| match expr {
        Expr::InSubquery(_) | Expr::SetComparison(_) => true,
        Expr::Exists(Exists { subquery, .. }) => with_exists || !is_plain(&subquery.subquery, Kind::Exists),
        Expr::ScalarSubquery(subquery) => !is_plain(&subquery.subquery, Kind::Value),
        _ => false,
    };
    expr.exists(|expr| Ok(is(expr))).unwrap_or(true)
}

fn mend(node: LogicalPlan, names: &mut usize) -> Result<Transformed<LogicalPlan>> {
    if let LogicalPlan::Join(join) = &node
        && let Some(lateral) = lateral_of(&join.right)
        && !(join.join_type == JoinType::Inner && is_plain(&lateral.subquery, Kind::Rows))
    {
        return beside(join, lateral, names).map(Transformed::yes);
    }
    let with_exists = !matches!(node, LogicalPlan::Filter(_));
    let mut found = false;
    node.apply_expressions(|expr| {
        found |= is_quantified(expr, with_exists);
        Ok(datafusion::common::tree_node::TreeNodeRecursion::Continue)
    })?;
    if !found {
        return Ok(Transformed::no(node));
    }
    match node {
        LogicalPlan::Filter(filter) => filtered(filter, names),
        LogicalPlan::Join(join) => joined(join, names).map(Transformed::yes),
        LogicalPlan::Projection(_) | LogicalPlan::Aggregate(_) | LogicalPlan::Window(_) | LogicalPlan::Sort(_) => {
            of_one_input(node, names).map(Transformed::yes)
        }
        other => plan_err!(
            "IN, ANY, ALL or EXISTS of a subquery in {}: not supported; write it in WHERE, or select it below",
            other.display()
        ),
    }
}

/// The subquery of LATERAL.
fn lateral_of(plan: &LogicalPlan) -> Option<&Subquery> {
    match plan {
        LogicalPlan::SubqueryAlias(alias) => lateral_of(&alias.input),
        LogicalPlan::Subquery(subquery) => depends(&subquery.subquery).then_some(subquery),
        _ => None,
    }
}

/// Rows with those of a subquery that depends on each.
fn beside(join: &Join, lateral: &Subquery, names: &mut usize) -> Result<LogicalPlan> {
    if !matches!(join.join_type, JoinType::Inner | JoinType::Left) {
        return plan_err!("{} JOIN LATERAL: not supported; write LEFT JOIN LATERAL, or JOIN LATERAL", join.join_type);
    }
    let mut subquery = LogicalPlanBuilder::from(lateral.subquery.as_ref().clone());
    let mut of_right = join.right.as_ref();
    let mut aliases = Vec::new();
    while let LogicalPlan::SubqueryAlias(alias) = of_right {
        aliases.push(alias.alias.clone());
        of_right = &alias.input;
    }
    for alias in aliases.into_iter().rev() {
        subquery = subquery.alias(alias)?;
    }
    let answer = Answer::of(&subquery.build()?, &join.left, names)?;
    let mut on = answer.conditions(None);
    on.extend(join.on.iter().map(|(left, right)| left.clone().eq(right.clone())));
    on.extend(join.filter.iter().flat_map(split_conjunction).filter(|term| **term != lit(true)).cloned());
    let rows = LogicalPlanBuilder::from(join.left.as_ref().clone()).join_on(answer.plan, join.join_type, on)?;
    rows.project(join.schema.columns().into_iter().map(Expr::Column))?.build()
}

/// A node as it was, seen from above: without the columns that it needed.
fn without_marks(node: LogicalPlan, columns: Vec<Expr>) -> Result<LogicalPlan> {
    if node.schema().fields().len() == columns.len() {
        return Ok(node);
    }
    LogicalPlanBuilder::from(node).project(columns)?.build()
}

fn filtered(filter: Filter, names: &mut usize) -> Result<Transformed<LogicalPlan>> {
    let Filter { predicate, input, .. } = filter;
    let conditions = split_conjunction_owned(predicate);
    if conditions.iter().all(is_right) {
        let predicate = conjunction(conditions).unwrap_or_else(|| lit(true));
        return Ok(Transformed::no(LogicalPlan::Filter(Filter::try_new(predicate, input)?)));
    }
    let columns = columns_of(&input);
    let mut marks = Marks::new(input, names);
    let conditions = conditions.into_iter().map(|condition| {
        if is_right(&condition) { Ok(condition) } else { rewritten(condition, Place::demanded(false), &mut marks) }
    });
    let conditions = conditions.collect::<Result<Vec<_>>>()?;
    let predicate = conjunction(conditions).unwrap_or_else(|| lit(true));
    let node = LogicalPlan::Filter(Filter::try_new(predicate, Arc::new(marks.plan))?);
    Ok(Transformed::yes(without_marks(node, columns)?))
}

/// Whether the engine does a condition of WHERE right.
fn is_right(condition: &Expr) -> bool {
    match condition {
        Expr::InSubquery(InSubquery { expr, subquery, negated }) => {
            let depends = depends(&subquery.subquery);
            // A column alone: of others it can't tell whether they may be NULL, and a constant it asks of the subquery alone.
            let is_alone = !depends && matches!(expr.as_ref(), Expr::Column(_));
            let is_right = if *negated { is_alone } else { !depends || is_column_of_rows(&subquery.subquery) };
            is_right && is_plain(&subquery.subquery, Kind::Values) && !is_quantified(expr, false)
        }
        other => !is_quantified(other, false),
    }
}

fn joined(join: Join, names: &mut usize) -> Result<LogicalPlan> {
    if join.on.iter().any(|(left, right)| is_quantified(left, true) || is_quantified(right, true)) {
        return plan_err!("JOIN ... ON with a subquery on a side of =: not supported; select it below");
    }
    let (with, without): (Vec<_>, Vec<_>) =
        join.filter.map(split_conjunction_owned).unwrap_or_default().into_iter().partition(|c| is_quantified(c, true));
    let columns: Vec<Expr> = join.schema.columns().into_iter().map(Expr::Column).collect();
    let (mut left, mut right) = (join.left, join.right);
    let (mut filter, mut above) = (without, Vec::new());
    for condition in with {
        if join.join_type == JoinType::Inner {
            above.push(condition);
            continue;
        }
        // What a row of one side is asked is known before they meet.
        let side = [&mut left, &mut right].into_iter().find(|side| is_of(&condition, side));
        let Some(side) = side else {
            return plan_err!(
                "an outer JOIN ... ON with a subquery that depends on both sides: not supported; select it below one side"
            );
        };
        let mut marks = Marks::new(Arc::clone(side), names);
        filter.push(rewritten(condition, Place::demanded(true), &mut marks)?);
        *side = Arc::new(marks.plan);
    }
    let join = Join::try_new(
        left,
        right,
        join.on,
        conjunction(filter),
        join.join_type,
        join.join_constraint,
        join.null_equality,
        join.null_aware,
    )?;
    let node = LogicalPlan::Join(join);
    match conjunction(above) {
        None => without_marks(node, columns),
        Some(condition) => Ok(filtered(Filter::try_new(condition, Arc::new(node))?, names)?.data),
    }
}

/// Whether all columns that a condition and its subqueries need of rows around them are those of a plan.
fn is_of(condition: &Expr, plan: &LogicalPlan) -> bool {
    let known = |column: &Column| plan.schema().has_column(column);
    let of_plan = |expr: &Expr| match expr {
        Expr::Column(column) => known(column),
        Expr::InSubquery(InSubquery { subquery, .. })
        | Expr::SetComparison(SetComparison { subquery, .. })
        | Expr::Exists(Exists { subquery, .. })
        | Expr::ScalarSubquery(subquery) => subquery
            .subquery
            .all_out_ref_exprs()
            .iter()
            .all(|outer| matches!(outer, Expr::OuterReferenceColumn(_, column) if known(column))),
        _ => true,
    };
    !condition.exists(|expr| Ok(!of_plan(expr))).unwrap_or(true)
}

fn of_one_input(node: LogicalPlan, names: &mut usize) -> Result<LogicalPlan> {
    let columns: Vec<Expr> = columns_of(&node);
    let input = match node.inputs().as_slice() {
        [input] => Arc::new((*input).clone()),
        inputs => return internal_err!("{}: has {} inputs", node.display(), inputs.len()),
    };
    let (saved, mut marks) = (NamePreserver::new(&node), Marks::new(input, names));
    let is_sort = matches!(node, LogicalPlan::Sort(_));
    let node = node.map_expressions(|expr| {
        if !is_quantified(&expr, true) {
            return Ok(Transformed::no(expr));
        }
        if matches!(expr, Expr::GroupingSet(_)) {
            return plan_err!("GROUPING SETS, ROLLUP or CUBE of a subquery: not supported; select it below");
        }
        let name = saved.save(&expr);
        let expr = rewritten(expr, Place::anywhere(), &mut marks)?;
        Ok(Transformed::yes(if is_sort { expr } else { name.restore(expr) }))
    })?;
    let node = node.data;
    let exprs = node.expressions();
    let node = match node {
        LogicalPlan::Sort(mut sort) => {
            sort.input = Arc::new(marks.plan);
            LogicalPlan::Sort(sort)
        }
        node => node.with_new_exprs(exprs, vec![marks.plan])?,
    };
    without_marks(node, columns)
}

/// Where an expression stands.
#[derive(Clone, Copy)]
struct Place {
    /// NULL is as good as false there.
    loose: bool,
    /// EXISTS has to be a mark.
    exists: bool,
}

impl Place {
    fn anywhere() -> Self {
        Self { loose: false, exists: true }
    }

    fn demanded(exists: bool) -> Self {
        Self { loose: true, exists }
    }

    fn exact(self) -> Self {
        Self { loose: false, ..self }
    }
}

/// An expression of marks in the places of its subqueries.
fn rewritten(expr: Expr, place: Place, marks: &mut Marks) -> Result<Expr> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::And | Operator::Or), right }) => {
            let (left, right) = (rewritten(*left, place, marks)?, rewritten(*right, place, marks)?);
            Ok(Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right))))
        }
        Expr::Not(inner) => match *inner {
            Expr::InSubquery(InSubquery { expr, subquery, negated }) => {
                rewritten(Expr::InSubquery(InSubquery { expr, subquery, negated: !negated }), place, marks)
            }
            inner => Ok(Expr::Not(Box::new(rewritten(inner, place.exact(), marks)?))),
        },
        Expr::InSubquery(InSubquery { expr, subquery, negated: false }) => {
            any(*expr, Operator::Eq, &subquery, place, marks)
        }
        Expr::InSubquery(InSubquery { expr, subquery, negated: true }) => {
            Ok(Expr::Not(Box::new(any(*expr, Operator::Eq, &subquery, place.exact(), marks)?)))
        }
        Expr::SetComparison(SetComparison { expr, subquery, op, quantifier: SetQuantifier::Any }) => {
            any(*expr, op, &subquery, place, marks)
        }
        Expr::SetComparison(SetComparison { expr, subquery, op, quantifier: SetQuantifier::All }) => {
            let Some(op) = op.negate() else { return plan_err!("{op} ALL (subquery): not supported") };
            Ok(Expr::Not(Box::new(any(*expr, op, &subquery, place.exact(), marks)?)))
        }
        Expr::ScalarSubquery(subquery) if !is_plain(&subquery.subquery, Kind::Value) => marks.value(&subquery.subquery),
        Expr::Exists(Exists { subquery, negated }) if place.exists || !is_plain(&subquery.subquery, Kind::Exists) => {
            let mark = exists(&subquery.subquery, marks)?;
            Ok(if negated { Expr::Not(Box::new(mark)) } else { mark })
        }
        other => other.map_children(|expr| rewritten(expr, place.exact(), marks).map(Transformed::yes)).data(),
    }
}

fn exists(subquery: &LogicalPlan, marks: &mut Marks) -> Result<Expr> {
    if depends(subquery) {
        return marks.mark(subquery, Kind::Exists, |_| None);
    }
    let one = LogicalPlanBuilder::from(subquery.clone()).limit(0, Some(1))?.project([lit(true).alias(VALUE)])?;
    marks.mark(&one.build()?, Kind::Exists, |_| None)
}

/// The name of a subquery's column.
const VALUE: &str = "__value";

/// `x op ANY (subquery)`, of which `x IN (subquery)` is one.
fn any(x: Expr, op: Operator, subquery: &Subquery, place: Place, marks: &mut Marks) -> Result<Expr> {
    if x.contains_outer() {
        return plan_err!(
            "IN, ANY or ALL within a subquery, of a value of the query around it: not supported here; write a join"
        );
    }
    let x = rewritten(x, place.exact(), marks)?;
    let plan = subquery.subquery.as_ref();
    let depends = depends(plan);
    if depends && is_one_row(plan) {
        // One value in any case, which is NULL of no rows.
        let value = match is_plain(plan, Kind::Value) {
            true => marks.column(Expr::ScalarSubquery(subquery.clone()))?,
            false => marks.value(plan)?,
        };
        return Ok(Expr::BinaryExpr(BinaryExpr::new(Box::new(x), op, Box::new(value))));
    }
    let x = marks.column(x)?;
    let values = values_of(plan)?;
    let fits = marks.mark(&values, Kind::Values, |value| {
        Some(Expr::BinaryExpr(BinaryExpr::new(Box::new(x.clone()), op, Box::new(Expr::Column(value)))))
    })?;
    if place.loose {
        return Ok(fits);
    }
    // Of all rows one is enough.
    let limited = |plan: LogicalPlan| {
        if depends { Ok(plan) } else { LogicalPlanBuilder::from(plan).limit(0, Some(1))?.build() }
    };
    let mut unknown = Vec::new();
    if values.schema().field(0).is_nullable() {
        let value = Expr::Column(Column::from(values.schema().qualified_field(0)));
        let nulls = LogicalPlanBuilder::from(values.clone()).filter(value.is_null())?.build()?;
        unknown.push(marks.mark(&limited(nulls)?, Kind::Values, |_| None)?);
    }
    if x.nullable(marks.plan.schema())? {
        let there = marks.mark(&limited(values)?, Kind::Values, |_| None)?;
        unknown.push(x.is_null().and(there));
    }
    let Some(unknown) = unknown.into_iter().reduce(Expr::or) else { return Ok(fits) };
    let arm = |when: Expr, then: Expr| (Box::new(when), Box::new(then));
    let null = Expr::Literal(ScalarValue::Boolean(None), None);
    Ok(Expr::Case(Case::new(None, vec![arm(fits, lit(true)), arm(unknown, null)], Some(Box::new(lit(false))))))
}

/// A subquery with a name for its column that no other has.
fn values_of(plan: &LogicalPlan) -> Result<LogicalPlan> {
    let (value, input) = match plan {
        // What it computes has a name already, which may be that of a column below that is needed beside it.
        LogicalPlan::Projection(projection) if projection.expr.len() == 1 => {
            (projection.expr.first().cloned().map(Expr::unalias), projection.input.as_ref())
        }
        plan => (None, plan),
    };
    let value = value.unwrap_or_else(|| Expr::Column(Column::from(plan.schema().qualified_field(0))));
    LogicalPlanBuilder::from(input.clone()).project([value.alias(VALUE)])?.build()
}

/// Whether the column of a subquery is one of those below, of as many rows as there are: of others the engine can't relate the
/// rows to those around.
fn is_column_of_rows(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(projection) => {
            projection.expr.iter().all(|expr| matches!(expr, Expr::Column(_))) && !is_one_row(plan)
        }
        _ => false,
    }
}
