//! Arithmetic of decimals in the engine's expressions, as [`Decimals`].

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Decimal128Type;
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Schema};
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::Operator;
use datafusion_physical_expr::expressions::{BinaryExpr, CastExpr, Column, Literal};
use datafusion_physical_expr_common::physical_expr::PhysicalExpr;
use plinth_exec::decimal::{Decimals, Numbers, Operation, Scratch};
use plinth_exec::vector::{Narrow, Vector};

/// An expression of decimals, and the type of its results.
#[derive(Clone, Debug)]
pub(crate) struct Arithmetic {
    numbers: Decimals,
    precision: u8,
    scale: i8,
}

impl Arithmetic {
    /// An expression over columns of a schema, if it is arithmetic of decimals alone.
    pub(crate) fn of(expr: &Arc<dyn PhysicalExpr>, schema: &Schema) -> Result<Option<Self>> {
        if !expr.is::<BinaryExpr>() {
            return Ok(None);
        }
        let DataType::Decimal128(precision, scale) = expr.data_type(schema)? else { return Ok(None) };
        Ok(numbers(expr, schema)?.map(|numbers| Self { numbers, precision, scale }))
    }

    /// The results of so many rows, if they fit.
    pub(crate) fn evaluate(&self, columns: &[&Vector], rows: usize) -> Option<Vector> {
        let numbers = columns.iter().map(|column| numbers_of(column)).collect::<Option<Vec<_>>>()?;
        let values = self.numbers.evaluate(&numbers, rows, &mut Scratch::default())?;
        let nulls = columns.iter().fold(None, |all, column| NullBuffer::union(all.as_ref(), column.nulls().as_ref()));
        Some(Vector::Narrow(Narrow { values: values.into(), nulls, precision: self.precision, scale: self.scale }))
    }
}

fn numbers_of(column: &Vector) -> Option<Numbers<'_>> {
    match column {
        Vector::Narrow(decimals) => Some(Numbers::Narrow(&decimals.values)),
        Vector::Array(array) => Some(Numbers::Wide(array.as_primitive_opt::<Decimal128Type>()?.values())),
        Vector::Codes { .. } => None,
    }
}

fn scale_of(expr: &Arc<dyn PhysicalExpr>, schema: &Schema) -> Result<Option<(u8, i8)>> {
    Ok(match expr.data_type(schema)? {
        DataType::Decimal128(precision, scale) => Some((precision, scale)),
        _ => None,
    })
}

fn numbers(expr: &Arc<dyn PhysicalExpr>, schema: &Schema) -> Result<Option<Decimals>> {
    let Some((precision, scale)) = scale_of(expr, schema)? else { return Ok(None) };
    if let Some(column) = expr.downcast_ref::<Column>() {
        return Ok(Some(Decimals::Column(column.index())));
    }
    if let Some(literal) = expr.downcast_ref::<Literal>() {
        let ScalarValue::Decimal128(Some(value), ..) = literal.value() else { return Ok(None) };
        return Ok(i64::try_from(*value).ok().map(Decimals::Value));
    }
    if let Some(cast) = expr.downcast_ref::<CastExpr>() {
        // To a type that has room for all values of the other.
        let Some((from_precision, from_scale)) = scale_of(cast.expr(), schema)? else { return Ok(None) };
        let digits = |precision: u8, scale: i8| i16::from(precision) - i16::from(scale);
        if scale < from_scale || digits(precision, scale) < digits(from_precision, from_scale) {
            return Ok(None);
        }
        let below = numbers(cast.expr(), schema)?;
        return Ok(below.and_then(|below| raised(below, from_scale, scale)));
    }
    let Some(binary) = expr.downcast_ref::<BinaryExpr>() else { return Ok(None) };
    let (left, right) = (binary.left(), binary.right());
    let (Some((_, left_scale)), Some((_, right_scale))) = (scale_of(left, schema)?, scale_of(right, schema)?) else {
        return Ok(None);
    };
    let operation = match binary.op() {
        Operator::Plus => Operation::Add,
        Operator::Minus => Operation::Subtract,
        Operator::Multiply => Operation::Multiply,
        _ => return Ok(None),
    };
    let (Some(left), Some(right)) = (numbers(left, schema)?, numbers(right, schema)?) else { return Ok(None) };
    let sides = if operation == Operation::Multiply {
        (left_scale.checked_add(right_scale) == Some(scale)).then_some((left, right))
    } else {
        (scale == left_scale.max(right_scale))
            .then(|| raised(left, left_scale, scale).zip(raised(right, right_scale, scale)))
            .flatten()
    };
    Ok(sides.map(|(left, right)| Decimals::Of(operation, Box::new(left), Box::new(right))))
}

/// Numbers of one scale as those of a larger one.
fn raised(numbers: Decimals, from: i8, to: i8) -> Option<Decimals> {
    let factor = 10_i64.checked_pow(u32::try_from(to.checked_sub(from)?).ok()?)?;
    Some(match numbers {
        numbers if factor == 1 => numbers,
        Decimals::Value(value) => Decimals::Value(value.checked_mul(factor)?),
        numbers => Decimals::Raised(Box::new(numbers), factor),
    })
}
