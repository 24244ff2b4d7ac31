//! Decimals beside floats: both are doubles, as in PostgreSQL and DuckDB.
//!
//! The engine makes decimals of 15 places of both: 1e-20 is equal to 0, 1e30 has no room, and a join finds rows whose values differ.
//! Operations (`+` and the like) it has in doubles.

use std::sync::Arc;

use arrow_schema::{DataType, Field};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, Result};
use datafusion::logical_expr::expr::{
    Between, BinaryExpr, Case, Cast, InList, InSubquery, ScalarFunction, SetComparison, TryCast,
};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Subquery};
use datafusion::optimizer::AnalyzerRule;

use super::{CHOOSE, binary, cast, compares, nearest_double, rows};

/// Makes doubles of decimals that stand beside floats.
#[derive(Debug)]
pub(crate) struct DecimalsBesideFloats;

impl AnalyzerRule for DecimalsBesideFloats {
    fn name(&self) -> &str {
        "decimals_beside_floats"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let mut any = false;
        plan.apply_with_subqueries(|node| {
            any = any || node.schema().fields().iter().any(|field| holds_decimal(field.data_type()));
            if !any {
                node.apply_expressions(|expr| {
                    any = any || expr.exists(|expr| Ok(is_decimal(expr)))?;
                    Ok(if any { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
                })?;
            }
            Ok(if any { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })?;
        if any { Ok(plan.transform_up_with_subqueries(with_doubles)?.data) } else { Ok(plan) }
    }
}

/// Whether an expression makes a decimal of what is none.
fn is_decimal(expr: &Expr) -> bool {
    match expr {
        Expr::Cast(Cast { field, .. }) | Expr::TryCast(TryCast { field, .. }) => holds_decimal(field.data_type()),
        Expr::Literal(value, _) => holds_decimal(&value.data_type()),
        other => nearest_double(other).is_some(),
    }
}

/// The type of values, or of the items of lists.
fn item_of(of: &DataType) -> &DataType {
    match of {
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            item_of(item.data_type())
        }
        other => other,
    }
}

fn holds_decimal(of: &DataType) -> bool {
    item_of(of).is_decimal()
}

pub(super) fn is_float(of: &DataType) -> bool {
    item_of(of).is_floating()
}

/// Whether there are floats and decimals among types.
pub(super) fn mixes(types: &[DataType]) -> bool {
    types.iter().any(is_float) && types.iter().any(holds_decimal)
}

/// A type of lists with doubles in it.
fn with_double(of: &DataType) -> DataType {
    let item = |item: &Arc<Field>| Arc::new(item.as_ref().clone().with_data_type(with_double(item.data_type())));
    match of {
        DataType::List(of) => DataType::List(item(of)),
        DataType::LargeList(of) => DataType::LargeList(item(of)),
        DataType::FixedSizeList(of, size) => DataType::FixedSizeList(item(of), *size),
        _ => DataType::Float64,
    }
}

/// An expression as a double, if it is a decimal.
fn as_double(expr: Expr, schema: &DFSchema) -> Expr {
    match expr.get_type(schema) {
        Ok(of) if holds_decimal(&of) => nearest_double(&expr).unwrap_or_else(|| cast(expr, with_double(&of))),
        _ => expr,
    }
}

pub(super) fn as_doubles(exprs: Vec<Expr>, schema: &DFSchema) -> Vec<Expr> {
    exprs.into_iter().map(|expr| as_double(expr, schema)).collect()
}

/// Expressions as doubles, if there are floats and decimals among them.
fn met(exprs: Vec<Expr>, schema: &DFSchema) -> (Vec<Expr>, bool) {
    let types: Vec<_> = exprs.iter().map(|expr| expr.get_type(schema).unwrap_or(DataType::Null)).collect();
    if mixes(&types) { (as_doubles(exprs, schema), true) } else { (exprs, false) }
}

fn with_doubles(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let plan = match plan {
        LogicalPlan::Values(values) => rows::of_values(values)?.data,
        LogicalPlan::Union(union) => return rows::of_union(union),
        LogicalPlan::Join(mut join) => {
            let (left, right) = (Arc::clone(join.left.schema()), Arc::clone(join.right.schema()));
            let pair = |(one, other): (Expr, Expr)| {
                let types = [one.get_type(&left), other.get_type(&right)];
                match types.into_iter().collect::<Result<Vec<_>>>() {
                    Ok(types) if mixes(&types) => (as_double(one, &left), as_double(other, &right)),
                    _ => (one, other),
                }
            };
            join.on = join.on.into_iter().map(pair).collect();
            LogicalPlan::Join(join)
        }
        other => other,
    };
    let mut schema = merge_schema(&plan.inputs());
    if let LogicalPlan::TableScan(scan) = &plan {
        schema.merge(&DFSchema::try_from_qualified_schema(scan.table_name.clone(), &scan.source.schema())?);
    }
    let names = NamePreserver::new(&plan);
    let rewritten = plan.map_expressions(|expr| {
        let name = names.save(&expr);
        let rewritten = expr.transform_up(|expr| rewrite(expr, &schema))?;
        Ok(if rewritten.transformed { rewritten.update_data(|expr| name.restore(expr)) } else { rewritten })
    })?;
    rewritten.map_data(LogicalPlan::recompute_schema)
}

fn rewrite(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let no = |expr| Ok(Transformed::no(expr));
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if compares(op) => {
            let (sides, any) = met(vec![*left, *right], schema);
            let Ok(sides) = <[Expr; 2]>::try_from(sides) else { return datafusion::common::internal_err!("two sides") };
            Ok(transformed(binary(sides, op), any))
        }
        Expr::Between(Between { expr, negated, low, high }) => {
            let (sides, any) = met(vec![*expr, *low, *high], schema);
            let Ok([expr, low, high]) = <[Expr; 3]>::try_from(sides) else {
                return datafusion::common::internal_err!("a value and two bounds");
            };
            Ok(transformed(Expr::Between(Between::new(Box::new(expr), negated, Box::new(low), Box::new(high))), any))
        }
        Expr::InList(InList { expr, list, negated }) => {
            let (mut all, any) = met(std::iter::once(*expr).chain(list).collect(), schema);
            let expr = Box::new(all.remove(0));
            Ok(transformed(Expr::InList(InList { expr, list: all, negated }), any))
        }
        Expr::Case(case) => {
            let (case, any) = of_case(case, schema);
            Ok(transformed(Expr::Case(case), any))
        }
        Expr::ScalarFunction(ScalarFunction { func, args })
            if CHOOSE.contains(&func.name()) || func.name().starts_with("array_") =>
        {
            let (args, any) = met(args, schema);
            Ok(transformed(Expr::ScalarFunction(ScalarFunction { func, args }), any))
        }
        Expr::InSubquery(InSubquery { expr, subquery, negated }) => {
            let (expr, subquery, any) = of_subquery(*expr, subquery, schema)?;
            Ok(transformed(Expr::InSubquery(InSubquery { expr: Box::new(expr), subquery, negated }), any))
        }
        Expr::SetComparison(SetComparison { expr, subquery, op, quantifier }) => {
            let (expr, subquery, any) = of_subquery(*expr, subquery, schema)?;
            let expr = Box::new(expr);
            Ok(transformed(Expr::SetComparison(SetComparison { expr, subquery, op, quantifier }), any))
        }
        other => no(other),
    }
}

fn transformed(expr: Expr, any: bool) -> Transformed<Expr> {
    if any { Transformed::yes(expr) } else { Transformed::no(expr) }
}

fn of_case(mut case: Case, schema: &DFSchema) -> (Case, bool) {
    let (mut whens, mut thens): (Vec<Expr>, Vec<Expr>) =
        case.when_then_expr.iter().map(|(when, then)| (when.as_ref().clone(), then.as_ref().clone())).unzip();
    let mut any = false;
    if let Some(of) = case.expr.take() {
        (whens, any) = met(std::iter::once(*of).chain(whens).collect(), schema);
        case.expr = Some(Box::new(whens.remove(0)));
    }
    let otherwise = case.else_expr.take();
    let has_otherwise = otherwise.is_some();
    thens.extend(otherwise.map(|otherwise| *otherwise));
    let (mut thens, more) = met(thens, schema);
    any |= more;
    case.else_expr = if has_otherwise { thens.pop().map(Box::new) } else { None };
    case.when_then_expr = whens.into_iter().map(Box::new).zip(thens.into_iter().map(Box::new)).collect();
    (case, any)
}

/// A value and the column of a subquery that it is looked for in.
fn of_subquery(expr: Expr, subquery: Subquery, schema: &DFSchema) -> Result<(Expr, Subquery, bool)> {
    let Some((qualifier, field)) = subquery.subquery.schema().iter().next() else { return Ok((expr, subquery, false)) };
    let types = [expr.get_type(schema).unwrap_or(DataType::Null), field.data_type().clone()];
    if !mixes(&types) {
        return Ok((expr, subquery, false));
    }
    if holds_decimal(&types[0]) {
        return Ok((as_double(expr, schema), subquery, true));
    }
    let column = Expr::Column(Column::from((qualifier, field)));
    let column = cast(column, DataType::Float64).alias(field.name());
    let plan = LogicalPlanBuilder::from(Arc::clone(&subquery.subquery)).project([column])?.build()?;
    Ok((expr, subquery.with_plan(Arc::new(plan)), true))
}
