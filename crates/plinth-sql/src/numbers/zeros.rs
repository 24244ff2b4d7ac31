//! Zeros of floats in conditions: `=` takes the two for one, the engine's planner tells them apart by their bits.
//!
//! Its lists find one of them alone, and `x = -0.0 AND x = 0.0` is FALSE to it, for no value is equal to two. So a list that has one
//! zero gets the other, and a value is compared with the one without a sign.

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::expr::{BinaryExpr, InList};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Expr, LogicalPlan, lit};
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
            if !expr.exists(|expr| Ok(matches!(expr, Expr::InList(_)) || unsigned(expr).is_some()))? {
                return Ok(Transformed::no(expr));
            }
            let name = names.save(&expr);
            let rewritten = expr.transform_up(|expr| Ok(with_both_zeros(expr)))?;
            Ok(rewritten.update_data(|expr| name.restore(expr)))
        })
    }
}

fn with_both_zeros(expr: Expr) -> Transformed<Expr> {
    match expr {
        Expr::InList(mut list) => {
            let has_other = list_with_other(&mut list);
            Transformed::new_transformed(Expr::InList(list), has_other)
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

/// The zero without a sign, of one with.
fn unsigned(expr: &Expr) -> Option<Expr> {
    match expr {
        Expr::Literal(ScalarValue::Float64(Some(zero)), _) if *zero == 0.0 && zero.is_sign_negative() => {
            Some(lit(0.0_f64))
        }
        Expr::Literal(ScalarValue::Float32(Some(zero)), _) if *zero == 0.0 && zero.is_sign_negative() => {
            Some(lit(0.0_f32))
        }
        _ => None,
    }
}

/// The zero that a zero is not.
fn other_zero(expr: &Expr) -> Option<Expr> {
    match expr {
        Expr::Literal(ScalarValue::Float64(Some(zero)), _) if *zero == 0.0 => Some(lit(-zero)),
        Expr::Literal(ScalarValue::Float32(Some(zero)), _) if *zero == 0.0 => Some(lit(-zero)),
        _ => None,
    }
}
