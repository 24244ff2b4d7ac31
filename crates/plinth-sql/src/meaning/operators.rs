//! `//`, `<<` and `>>` of integers of all widths.
//!
//! The engine has no `//`, which is `/` of its integers; of wider ones, decimals without places to it, that gives a fraction. It
//! shifts by as many bits as are left of the number of bits modulo 64, whatever is shifted, and drops those that leave the type.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Int64Type};
use arrow_array::{ArrayRef, Decimal128Array};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{ArrowError, DECIMAL128_MAX_PRECISION, DataType};
use datafusion::arrow::compute::try_binary;
use datafusion::common::{DFSchema, Result, ScalarValue, internal_err, plan_err};
use datafusion::logical_expr::expr::{Cast, ScalarFunction};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::type_coercion::binary::BinaryTypeCoercer;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::sql::sqlparser::ast::BinaryOperator;
use plinth_datafusion::sql_type_name;

/// An integer of 128 bits.
const WIDE: DataType = DataType::Decimal128(DECIMAL128_MAX_PRECISION, 0);

/// Plans these operators.
#[derive(Debug)]
pub(super) struct OfIntegers;

impl ExprPlanner for OfIntegers {
    fn plan_binary_op(&self, expr: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        let action = match expr.op {
            BinaryOperator::DuckIntegerDivide => Action::Divide,
            BinaryOperator::PGBitwiseShiftLeft => Action::Left,
            BinaryOperator::PGBitwiseShiftRight => Action::Right,
            _ => return Ok(PlannerResult::Original(expr)),
        };
        // Of a parameter nothing is known before it has a value.
        let types = (expr.left.get_type(schema), expr.right.get_type(schema));
        let RawBinaryExpr { op, left, right } = expr;
        let known = match (action, types) {
            (Action::Divide, (Ok(dividend), Ok(divisor))) => quotient(&dividend, &divisor),
            (_, (Ok(value), Ok(bits))) => shifted(action, &value, &bits)?,
            _ => None,
        };
        let Some(to) = known else {
            // Of numbers with fractions it is a quotient with one.
            let op = if action == Action::Divide { BinaryOperator::Divide } else { op };
            return Ok(PlannerResult::Original(RawBinaryExpr { op, left, right }));
        };
        let of = if action == Action::Divide { WIDE } else { DataType::Int64 };
        let args = vec![cast_to(left, WIDE), cast_to(right, of)];
        let function = ScalarUDF::from(Whole { action, to, signature: Signature::any(2, Volatility::Immutable) });
        Ok(PlannerResult::Planned(Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(function), args))))
    }
}

fn cast_to(expr: Expr, to: DataType) -> Expr {
    Expr::Cast(Cast::new(Box::new(expr), to))
}

/// Whether a type is one of integers that the engine has as decimals: HUGEINT, and numbers beyond 64 bits.
fn is_wide(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Decimal128(DECIMAL128_MAX_PRECISION | 20, 0))
}

/// The type of a whole quotient that the engine's division would not give.
fn quotient(dividend: &DataType, divisor: &DataType) -> Option<DataType> {
    let is_whole = |of: &DataType| of.is_integer() || is_wide(of);
    if !is_whole(dividend) || !is_whole(divisor) {
        return None;
    }
    // An unsigned integer of 64 bits beside others is a decimal to the engine.
    let is_unsigned = |of: &DataType| matches!(of, DataType::UInt64);
    let meets = is_unsigned(dividend) == is_unsigned(divisor);
    if dividend.is_integer() && divisor.is_integer() && meets { None } else { Some(WIDE) }
}

/// The type of what is shifted; none if the engine is to say what is wrong.
fn shifted(action: Action, value: &DataType, bits: &DataType) -> Result<Option<DataType>> {
    if value.is_integer() && bits.is_integer() {
        return Ok(BinaryTypeCoercer::new(value, &Operator::BitwiseShiftLeft, bits).get_result_type().ok());
    }
    if is_wide(value) && bits.is_integer() {
        return Ok(Some(WIDE));
    }
    if [value, bits].into_iter().any(|of| of.is_decimal() || of.is_floating()) {
        let (value, bits) = (sql_type_name(value), sql_type_name(bits));
        return plan_err!("{value} {} {bits}: integers alone have bits; cast to BIGINT or HUGEINT", action.sign());
    }
    Ok(None)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Action {
    Divide,
    Left,
    Right,
}

impl Action {
    fn sign(self) -> &'static str {
        match self {
            Self::Divide => "//",
            Self::Left => "<<",
            Self::Right => ">>",
        }
    }

    fn of(self, left: i128, right: i128) -> Result<i128, ArrowError> {
        let error = |what: &str| ArrowError::ComputeError(format!("{left} {} {right}: {what}", self.sign()));
        match self {
            Self::Divide if right == 0 => Err(ArrowError::DivideByZero),
            Self::Divide => left.checked_div(right).ok_or_else(|| error("the result is out of range")),
            _ if right < 0 => Err(error("by how many bits is never negative")),
            Self::Left if left == 0 => Ok(0),
            Self::Left => {
                let factor = u32::try_from(right).ok().filter(|bits| *bits < 127).map(|bits| 1_i128 << bits);
                factor.and_then(|factor| left.checked_mul(factor)).ok_or_else(|| error("the result is out of range"))
            }
            Self::Right => Ok(left >> u32::try_from(right.min(127)).unwrap_or(127)),
        }
    }
}

/// An operation on integers of 128 bits whose result is of a type.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Whole {
    action: Action,
    to: DataType,
    signature: Signature,
}

impl ScalarUDFImpl for Whole {
    fn name(&self) -> &'static str {
        self.action.sign()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.to.clone())
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let constant = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if constant { 1 } else { args.number_rows };
        let arrays = args.args.into_iter().map(|arg| arg.into_array(rows)).collect::<Result<Vec<_>>>()?;
        let [left, right] = arrays.as_slice() else { return internal_err!("an operator has two sides") };
        let left = left.as_primitive::<Decimal128Type>();
        let most = most(&self.to);
        let in_range = |left: i128, right: i128| {
            let result = self.action.of(left, right)?;
            match most.is_none_or(|(least, most)| (least..=most).contains(&result)) {
                true => Ok(result),
                false => Err(ArrowError::ComputeError(format!(
                    "{left} {} {right}: the result is no {}; cast to HUGEINT",
                    self.action.sign(),
                    sql_type_name(&self.to)
                ))),
            }
        };
        let results: Decimal128Array = match right.data_type() {
            DataType::Int64 => {
                try_binary(left, right.as_primitive::<Int64Type>(), |left, right| in_range(left, right.into()))?
            }
            _ => try_binary(left, right.as_primitive::<Decimal128Type>(), in_range)?,
        };
        let results: ArrayRef = Arc::new(results.with_data_type(WIDE));
        let options = CastOptions { safe: false, ..CastOptions::default() };
        let results = cast_with_options(&results, &self.to, &options)?;
        Ok(match constant {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&results, 0)?),
            false => ColumnarValue::Array(results),
        })
    }
}

/// The least and the greatest integer of a type that has fewer than 128 bits.
fn most(to: &DataType) -> Option<(i128, i128)> {
    Some(match to {
        DataType::Int8 => (i8::MIN.into(), i8::MAX.into()),
        DataType::Int16 => (i16::MIN.into(), i16::MAX.into()),
        DataType::Int32 => (i32::MIN.into(), i32::MAX.into()),
        DataType::Int64 => (i64::MIN.into(), i64::MAX.into()),
        DataType::UInt8 => (0, u8::MAX.into()),
        DataType::UInt16 => (0, u16::MAX.into()),
        DataType::UInt32 => (0, u32::MAX.into()),
        DataType::UInt64 => (0, u64::MAX.into()),
        _ => return None,
    })
}
