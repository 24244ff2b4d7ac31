//! Intervals as keys: of groups, of what is distinct, of joins, windows and orders within aggregates, by how long they are.
//!
//! To the engine 30 days and a month are two values, and to SQL one. Keys become lengths here, and the columns of groups the first
//! interval of each. Of lists and structs in an order, NULLS FIRST and NULLS LAST speak of NULL alone; to the engine also of NULL within.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, Result, plan_err};
use datafusion::config::ConfigOptions;
use datafusion::functions_aggregate::first_last::first_value_udaf;
use datafusion::logical_expr::expr::{
    AggregateFunction, InSubquery, ScalarFunction, SetComparison, Sort, WindowFunction,
};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    Aggregate, Distinct, DistinctOn, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Subquery,
};
use datafusion::optimizer::AnalyzerRule;

use super::intervals::length_of;
use super::nested;

/// Makes lengths of such keys. Before types are made to meet, as windows have no ranges of intervals; and of what rules made after it.
#[derive(Debug)]
pub(super) struct ByLength;

impl AnalyzerRule for ByLength {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(|node| with_keys(node)?.transform_data(with_parts)).data()
    }

    fn name(&self) -> &'static str {
        "intervals_by_length"
    }
}

fn is_interval(expr: &Expr, schema: &DFSchema) -> bool {
    matches!(expr.get_type(schema), Ok(DataType::Interval(_)))
}

/// A node with lengths in the place of the intervals that it compares.
fn with_keys(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    match node {
        LogicalPlan::Aggregate(aggregate) => {
            let schema = Arc::clone(aggregate.input.schema());
            let is_key = |expr: &Expr| is_interval(expr, &schema);
            for expr in &aggregate.group_expr {
                if let Expr::GroupingSet(sets) = expr
                    && sets.distinct_expr().into_iter().any(is_key)
                {
                    return plan_err!(
                        "GROUPING SETS, ROLLUP or CUBE of an interval: not supported; group by epoch(interval)"
                    );
                }
            }
            if !aggregate.group_expr.iter().any(is_key) {
                return Ok(Transformed::no(LogicalPlan::Aggregate(aggregate)));
            }
            let Aggregate { input, group_expr, aggr_expr, schema, .. } = aggregate;
            grouped(input, group_expr, aggr_expr, &schema).map(Transformed::yes)
        }
        LogicalPlan::Distinct(Distinct::All(input)) => {
            if !input.schema().fields().iter().any(|field| matches!(field.data_type(), DataType::Interval(_))) {
                return Ok(Transformed::no(LogicalPlan::Distinct(Distinct::All(input))));
            }
            let columns = input.schema().columns().into_iter().map(Expr::Column).collect::<Vec<_>>();
            let schema = Arc::clone(input.schema());
            grouped(input, columns, Vec::new(), &schema).map(Transformed::yes)
        }
        LogicalPlan::Distinct(Distinct::On(DistinctOn { on_expr, select_expr, sort_expr, input, schema })) => {
            let mut any = false;
            let of = Arc::clone(input.schema());
            let on_expr = on_expr.into_iter().map(|expr| key(expr, &of, &mut any)).collect();
            // They begin with what is distinct.
            let mut same = |sort: Sort| Sort { expr: key(sort.expr, &of, &mut any), ..sort };
            let sort_expr = sort_expr.map(|keys| keys.into_iter().map(&mut same).collect());
            let on = DistinctOn { on_expr, select_expr, sort_expr, input, schema };
            let node = LogicalPlan::Distinct(Distinct::On(on));
            Ok(if any { Transformed::yes(node) } else { Transformed::no(node) })
        }
        LogicalPlan::Sort(mut sort) => {
            let mut any = false;
            sort.expr = sorted(sort.expr, sort.input.schema(), &mut any);
            let node = LogicalPlan::Sort(sort);
            Ok(if any { Transformed::yes(node) } else { Transformed::no(node) })
        }
        LogicalPlan::Join(mut join) => {
            let mut any = false;
            let (left, right) = (Arc::clone(join.left.schema()), Arc::clone(join.right.schema()));
            let sides = |(one, other)| (key(one, &left, &mut any), key(other, &right, &mut any));
            join.on = join.on.into_iter().map(sides).collect();
            let node = LogicalPlan::Join(join);
            Ok(if any { Transformed::yes(node) } else { Transformed::no(node) })
        }
        other => Ok(Transformed::no(other)),
    }
}

/// A key, of intervals their length.
fn key(expr: Expr, schema: &DFSchema, any: &mut bool) -> Expr {
    if !is_interval(&expr, schema) {
        return expr;
    }
    *any = true;
    length_of(expr)
}

fn sorted(keys: Vec<Sort>, schema: &DFSchema, any: &mut bool) -> Vec<Sort> {
    let mut all = Vec::with_capacity(keys.len());
    for Sort { expr, asc, nulls_first } in keys {
        if asc == nulls_first && expr.get_type(schema).is_ok_and(|of| nested::has_order(&of)) {
            *any = true;
            all.push(Sort { expr: expr.clone().is_null(), asc: !nulls_first, nulls_first: false });
            all.push(Sort { expr, asc, nulls_first: !asc });
        } else {
            all.push(Sort { expr: key(expr, schema, any), asc, nulls_first });
        }
    }
    all
}

/// Groups by the lengths of intervals, with the columns that the groups had.
fn grouped(input: Arc<LogicalPlan>, keys: Vec<Expr>, aggregates: Vec<Expr>, columns: &DFSchema) -> Result<LogicalPlan> {
    let of = Arc::clone(input.schema());
    let count = keys.len();
    let (mut places, mut values) = ((0..count + aggregates.len()).collect::<Vec<_>>(), aggregates);
    for (at, key) in keys.iter().enumerate().filter(|(_, key)| is_interval(key, &of)) {
        let first =
            AggregateFunction::new_udf(first_value_udaf(), vec![key.clone().unalias()], false, None, Vec::new(), None);
        let first = Expr::AggregateFunction(first);
        let found = values.iter().position(|value| *value == first);
        let place = found.unwrap_or_else(|| {
            values.push(first);
            values.len() - 1
        });
        if let Some(slot) = places.get_mut(at) {
            *slot = count + place;
        }
    }
    let mut any = false;
    let keys = keys.into_iter().map(|expr| key(expr.unalias(), &of, &mut any)).collect();
    let groups = LogicalPlan::Aggregate(Aggregate::try_new(input, keys, values)?);
    let column = |((qualifier, field), place): ((Option<&_>, &Arc<_>), usize)| {
        let column = Column::from(groups.schema().qualified_field(place));
        let field: &datafusion::arrow::datatypes::Field = field;
        let same = column.relation.as_ref() == qualifier && column.name == *field.name();
        let column = Expr::Column(column);
        if same { column } else { column.alias_qualified(qualifier.cloned(), field.name()) }
    };
    let columns = columns.iter().zip(places).map(column).collect::<Vec<_>>();
    LogicalPlanBuilder::from(groups).project(columns)?.build()
}

/// A node whose expressions have lengths where they compare intervals.
fn with_parts(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let mut any = false;
    node.apply_expressions(|expr| {
        any = any || expr.exists(|expr| Ok(may_compare(expr)))?;
        Ok(if any { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    if !any {
        return Ok(Transformed::no(node));
    }
    let (names, schema) = (NamePreserver::new(&node), merge_schema(&node.inputs()));
    node.map_expressions(|expr| {
        let name = names.save(&expr);
        let mended = expr.transform_up(|expr| part(expr, &schema))?;
        Ok(if mended.transformed { mended.update_data(|expr| name.restore(expr)) } else { mended })
    })
}

/// Whether an expression is one of those that compare what they are given.
fn may_compare(expr: &Expr) -> bool {
    match expr {
        Expr::WindowFunction(_) | Expr::AggregateFunction(_) | Expr::InSubquery(_) | Expr::SetComparison(_) => true,
        Expr::ScalarFunction(function) => matches!(function.name(), "greatest" | "least"),
        _ => false,
    }
}

fn part(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let mut any = false;
    let expr = match expr {
        Expr::WindowFunction(mut function) => {
            let WindowFunction { params, .. } = function.as_mut();
            params.order_by = sorted(std::mem::take(&mut params.order_by), schema, &mut any);
            let keys = std::mem::take(&mut params.partition_by).into_iter();
            params.partition_by = keys.map(|expr| key(expr, schema, &mut any)).collect();
            Expr::WindowFunction(function)
        }
        Expr::AggregateFunction(AggregateFunction { func, mut params }) => {
            let of_intervals = params.args.iter().any(|arg| is_interval(arg, schema));
            let name = func.name();
            let counts = matches!(name, "mode" | "histogram" | "approx_distinct");
            let extreme = matches!(name, "min" | "max" | "first_value" | "last_value" | "any_value");
            if of_intervals && (counts || (params.distinct && name != "count" && !extreme)) {
                let distinct = if params.distinct { "DISTINCT " } else { "" };
                return plan_err!("{name}({distinct}interval): not supported; take epoch(interval), its seconds");
            }
            params.order_by = sorted(params.order_by, schema, &mut any);
            if params.distinct && name == "count" {
                params.args = params.args.into_iter().map(|arg| key(arg, schema, &mut any)).collect();
            }
            Expr::AggregateFunction(AggregateFunction { func, params })
        }
        Expr::InSubquery(InSubquery { expr, subquery, negated }) if is_interval(&expr, schema) => {
            any = true;
            let subquery = lengths_of(subquery)?;
            Expr::InSubquery(InSubquery { expr: Box::new(length_of(*expr)), subquery, negated })
        }
        Expr::SetComparison(SetComparison { expr, subquery, op, quantifier }) if is_interval(&expr, schema) => {
            any = true;
            let subquery = lengths_of(subquery)?;
            Expr::SetComparison(SetComparison { expr: Box::new(length_of(*expr)), subquery, op, quantifier })
        }
        Expr::ScalarFunction(ScalarFunction { func, args }) => {
            let greatest = match func.name() {
                "greatest" => true,
                "least" => false,
                _ => return Ok(Transformed::no(Expr::ScalarFunction(ScalarFunction { func, args }))),
            };
            let has_own_order = |arg: &Expr| {
                arg.get_type(schema).is_ok_and(|of| matches!(of, DataType::Interval(_)) || nested::has_order(&of))
            };
            if nested::is_own(&func) || !args.iter().any(has_own_order) {
                return Ok(Transformed::no(Expr::ScalarFunction(ScalarFunction { func, args })));
            }
            any = true;
            nested::extreme(func, args, greatest)
        }
        other => other,
    };
    Ok(if any { Transformed::yes(expr) } else { Transformed::no(expr) })
}

/// A subquery of lengths in the place of one of intervals.
fn lengths_of(subquery: Subquery) -> Result<Subquery> {
    let Some(column) = subquery.subquery.schema().columns().into_iter().next() else { return Ok(subquery) };
    let column = Expr::Column(column);
    if !is_interval(&column, subquery.subquery.schema()) {
        return Ok(subquery);
    }
    let lengths = LogicalPlanBuilder::from(Arc::clone(&subquery.subquery)).project([length_of(column)])?.build()?;
    Ok(subquery.with_plan(Arc::new(lengths)))
}
