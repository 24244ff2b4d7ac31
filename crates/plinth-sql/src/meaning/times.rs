//! Times of the day in different units are compared in the finer one.

use arrow_schema::{DataType, TimeUnit};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{ExprSchemable, cast};
use datafusion::sql::sqlparser::ast::BinaryOperator;

/// Plans comparisons of times, which the engine makes for times of one unit alone: a literal has nanoseconds, a column of a file that
/// others wrote has most often microseconds.
#[derive(Debug)]
pub(super) struct TimesOfUnits;

impl ExprPlanner for TimesOfUnits {
    fn plan_binary_op(&self, expr: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        let compares = matches!(
            expr.op,
            BinaryOperator::Eq
                | BinaryOperator::NotEq
                | BinaryOperator::Lt
                | BinaryOperator::LtEq
                | BinaryOperator::Gt
                | BinaryOperator::GtEq
        );
        if !compares {
            return Ok(PlannerResult::Original(expr));
        }
        let RawBinaryExpr { op, mut left, mut right } = expr;
        // Of a parameter nothing is known before it has a value.
        if let (Ok(a), Ok(b)) = (left.get_type(schema), right.get_type(schema))
            && let (Some(first), Some(second)) = (fineness(&a), fineness(&b))
        {
            match first.cmp(&second) {
                std::cmp::Ordering::Less => left = cast(left, b),
                std::cmp::Ordering::Greater => right = cast(right, a),
                std::cmp::Ordering::Equal => {}
            }
        }
        Ok(PlannerResult::Original(RawBinaryExpr { op, left, right }))
    }
}

/// How fine the unit of a type of times is; none if it is another type.
fn fineness(of: &DataType) -> Option<TimeUnit> {
    match of {
        DataType::Time32(unit) | DataType::Time64(unit) => Some(*unit),
        _ => None,
    }
}
