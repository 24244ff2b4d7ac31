//! Guards of conditions that may fail: `CASE WHEN b <> 0 THEN a / b > 1 END` divides where `b` is not zero, and nowhere else.
//!
//! The engine makes AND and OR of a CASE whose results are boolean, and evaluates their operands for all rows. Of `CASE true WHEN ...`,
//! which means the same, it does not.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::{Case, Cast};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator, lit};

/// A CASE whose parts are evaluated for those rows alone that come to them.
pub(super) fn kept(mut case: Case, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let boolean = |case: &Case| match case.when_then_expr.first() {
        Some((_, then)) => Ok::<_, datafusion::error::DataFusionError>(then.get_type(schema)? == DataType::Boolean),
        None => Ok(false),
    };
    if case.expr.is_some() || !boolean(&case)? || !guarded(&case).any(|part| may_fail(part, schema)) {
        return Ok(Transformed::no(Expr::Case(case)));
    }
    case.expr = Some(Box::new(lit(true)));
    Ok(Transformed::yes(Expr::Case(case)))
}

/// The parts that not every row comes to.
fn guarded(case: &Case) -> impl Iterator<Item = &Expr> {
    let later = case.when_then_expr.iter().skip(1).map(|(when, _)| when.as_ref());
    let results = case.when_then_expr.iter().map(|(_, then)| then.as_ref());
    later.chain(results).chain(case.else_expr.as_deref())
}

/// Whether an expression may have no value. A subquery's are found before, whatever guards it.
fn may_fail(expr: &Expr, schema: &DFSchema) -> bool {
    expr.exists(|part| Ok(!is_safe(part, schema))).unwrap_or(true)
}

fn is_safe(expr: &Expr, schema: &DFSchema) -> bool {
    match expr {
        Expr::Alias(_)
        | Expr::Column(_)
        | Expr::OuterReferenceColumn(..)
        | Expr::Literal(..)
        | Expr::Placeholder(_)
        | Expr::Not(_)
        | Expr::IsNotNull(_)
        | Expr::IsNull(_)
        | Expr::IsTrue(_)
        | Expr::IsFalse(_)
        | Expr::IsUnknown(_)
        | Expr::IsNotTrue(_)
        | Expr::IsNotFalse(_)
        | Expr::IsNotUnknown(_)
        | Expr::Between(_)
        | Expr::InList(_)
        | Expr::Case(_)
        | Expr::TryCast(_)
        | Expr::Exists(_)
        | Expr::InSubquery(_)
        | Expr::SetComparison(_)
        | Expr::ScalarSubquery(_) => true,
        Expr::BinaryExpr(BinaryExpr { op, .. }) => {
            use Operator::{And, Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq, Or, StringConcat};
            matches!(
                op,
                And | Or | Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom | StringConcat
            )
        }
        Expr::Cast(Cast { expr, field }) => {
            let of_number = expr.get_type(schema).is_ok_and(|from| from.is_numeric());
            of_number && (field.data_type() == &DataType::Float64 || field.data_type().is_string())
        }
        _ => false,
    }
}
