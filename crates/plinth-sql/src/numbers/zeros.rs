//! Zeros of floats in conditions: `=` takes the two for one, the engine's planner tells them apart by their bits.
//!
//! Its lists find one of them alone, and `x = -0.0 AND x = 0.0` is FALSE to it, for no value is equal to two. So a list that has one
//! zero gets the other, and a value is compared with the one without a sign.

use arrow_schema::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{BinaryExpr, InList};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, Operator, lit};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

use super::compares;

/// Makes lists and comparisons of both zeros those of one. Before the rule that puts comparisons of a column together.
#[derive(Debug)]
pub(crate) struct BothZeros;

impl OptimizerRule for BothZeros {
    fn name(&self) -> &str {
        "both_zeros"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(&self, plan: LogicalPlan, _: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let names = NamePreserver::new(&plan);
        plan.map_expressions(|expr| {
            if !expr.exists(|expr| Ok(has_zero(expr)))? {
                return Ok(Transformed::no(expr));
            }
            let name = names.save(&expr);
            let rewritten = expr.transform_up(|expr| Ok(with_both_zeros(expr)))?;
            Ok(rewritten.update_data(|expr| name.restore(expr)))
        })
    }
}

/// Whether this is a list, or a comparison in which a zero may have a sign.
fn has_zero(expr: &Expr) -> bool {
    match expr {
        Expr::InList(_) => true,
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if compares(*op) => {
            unsigned(left).is_some() || unsigned(right).is_some()
        }
        _ => false,
    }
}

fn with_both_zeros(expr: Expr) -> Transformed<Expr> {
    match expr {
        Expr::InList(mut list) => {
            let mut computed = false;
            for item in list.list.iter_mut().filter(|item| !matches!(item, Expr::Literal(..))) {
                if let Some(without) = unsigned(item) {
                    *item = without;
                    computed = true;
                }
            }
            let has_other = list_with_other(&mut list);
            Transformed::new_transformed(Expr::InList(list), computed || has_other)
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if compares(op) => {
            let sides = [unsigned(&left), unsigned(&right)];
            let signed = sides.iter().any(Option::is_some);
            let [zero_left, zero_right] = sides;
            let (left, right) = (zero_left.map_or(left, Box::new), zero_right.map_or(right, Box::new));
            Transformed::new_transformed(Expr::BinaryExpr(BinaryExpr { left, op, right }), signed)
        }
        other => Transformed::no(other),
    }
}

/// Puts the zero that a list lacks into it, if it has the other. Whether it did.
fn list_with_other(list: &mut InList) -> bool {
    let missing = list.list.iter().filter_map(other_zero).find(|other| !list.list.contains(other));
    let lacked = missing.is_some();
    list.list.extend(missing);
    lacked
}

/// The zero without a sign, of one with. What is yet to be computed from constants loses its sign, if it becomes zero, with 0 added.
fn unsigned(expr: &Expr) -> Option<Expr> {
    match expr {
        Expr::Literal(ScalarValue::Float64(Some(zero)), _) if *zero == 0.0 && zero.is_sign_negative() => {
            Some(lit(0.0_f64))
        }
        Expr::Literal(ScalarValue::Float32(Some(zero)), _) if *zero == 0.0 && zero.is_sign_negative() => {
            Some(lit(0.0_f32))
        }
        Expr::Literal(..) => None,
        constant if !constant.any_column_refs() && !constant.is_volatile() && !has_rows(constant) => {
            let zero = match constant.get_type(&DFSchema::empty()).ok()? {
                DataType::Float64 => lit(0.0_f64),
                DataType::Float32 => lit(0.0_f32),
                _ => return None,
            };
            let is_added = matches!(constant, Expr::BinaryExpr(sum) if sum.op == Operator::Plus && *sum.right == zero);
            (!is_added).then(|| constant.clone() + zero)
        }
        _ => None,
    }
}

/// Whether an expression has the value of a query, or of other rows.
fn has_rows(expr: &Expr) -> bool {
    let of_rows = |expr: &Expr| {
        matches!(
            expr,
            Expr::ScalarSubquery(_)
                | Expr::OuterReferenceColumn(..)
                | Expr::AggregateFunction(_)
                | Expr::WindowFunction(_)
                | Expr::Placeholder(_)
        )
    };
    expr.exists(|expr| Ok(of_rows(expr))).unwrap_or(true)
}

/// The zero that a zero is not.
fn other_zero(expr: &Expr) -> Option<Expr> {
    match expr {
        Expr::Literal(ScalarValue::Float64(Some(zero)), _) if *zero == 0.0 => Some(lit(-zero)),
        Expr::Literal(ScalarValue::Float32(Some(zero)), _) if *zero == 0.0 => Some(lit(-zero)),
        _ => None,
    }
}
