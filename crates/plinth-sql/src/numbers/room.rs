//! Operations on numbers that are written whose exact result has no room: they are of doubles, as DuckDB and PostgreSQL would have more
//! digits, or an error.

use arrow_schema::DataType;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator};
use datafusion::sql::sqlparser::ast::BinaryOperator;

use super::{double, nearest_double};

/// Plans them.
#[derive(Debug)]
pub(crate) struct Room;

impl ExprPlanner for Room {
    fn plan_binary_op(&self, expr: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        let op = match expr.op {
            BinaryOperator::Plus => Operator::Plus,
            BinaryOperator::Minus => Operator::Minus,
            BinaryOperator::Multiply => Operator::Multiply,
            BinaryOperator::Divide => Operator::Divide,
            BinaryOperator::Modulo => Operator::Modulo,
            _ => return Ok(PlannerResult::Original(expr)),
        };
        if nearest_double(&expr.left).is_none() && nearest_double(&expr.right).is_none() {
            return Ok(PlannerResult::Original(expr));
        }
        let sides = (Box::new(expr.left.clone()), Box::new(expr.right.clone()));
        let is_number = |side: &Expr| side.get_type(schema).is_ok_and(|of: DataType| of.is_numeric());
        let exact = Expr::BinaryExpr(BinaryExpr::new(sides.0, op, sides.1));
        if !is_number(&expr.left) || !is_number(&expr.right) || exact.get_type(schema).is_ok() {
            return Ok(PlannerResult::Original(expr));
        }
        Ok(match double(&expr.left, op, &expr.right) {
            Some(by_doubles) => PlannerResult::Planned(by_doubles),
            None => PlannerResult::Original(expr),
        })
    }
}
