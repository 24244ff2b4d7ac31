//! Floats as keys of partitions and in CASE and NULLIF: zero with and without a sign is one value, and so is each NaN, as in GROUP BY
//! and `=`.
//!
//! The engine tells them apart by bits.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::functions::expr_fn::nanvl;
use datafusion::logical_expr::expr::{Case, ScalarFunction, WindowFunction};
use datafusion::logical_expr::{Expr, ExprSchemable, lit, when};

/// A window whose partitions are told apart by values.
pub(super) fn partitioned(mut window: Box<WindowFunction>, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let mut transformed = false;
    let keys = std::mem::take(&mut window.params.partition_by).into_iter().map(|key| {
        let key = alike(key, schema)?;
        transformed |= key.transformed;
        Ok(key.data)
    });
    window.params.partition_by = keys.collect::<Result<_>>()?;
    Ok(Transformed::new_transformed(Expr::WindowFunction(window), transformed))
}

/// `CASE x WHEN 0.0 THEN ...`, which finds what `x = 0.0` holds for.
pub(super) fn found(mut case: Case, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let Some(operand) = case.expr.take() else { return Ok(Transformed::no(Expr::Case(case))) };
    let operand = alike(*operand, schema)?;
    case.expr = Some(Box::new(operand.data));
    if operand.transformed {
        for (value, _) in &mut case.when_then_expr {
            let alike = alike(std::mem::take(value.as_mut()), schema)?;
            **value = alike.data;
        }
    }
    Ok(Transformed::new_transformed(Expr::Case(case), operand.transformed))
}

/// `nullif(x, 0.0)`, which is NULL where `x = 0.0` holds.
pub(super) fn nullif(function: ScalarFunction, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let [value, other] = function.args.as_slice() else { return Ok(Transformed::no(Expr::ScalarFunction(function))) };
    let data_type = value.get_type(schema)?;
    if !data_type.is_floating() || value.is_volatile() {
        return Ok(Transformed::no(Expr::ScalarFunction(function)));
    }
    let null = lit(ScalarValue::try_from(&data_type)?);
    let equal = value.clone().eq(other.clone());
    Ok(Transformed::yes(when(equal, null).otherwise(value.clone())?))
}

/// An expression of which values that are equal have the same bits.
pub(super) fn alike(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    if matches!(&expr, Expr::ScalarFunction(ScalarFunction { func, .. }) if func.name() == "nanvl") {
        return Ok(Transformed::no(expr));
    }
    Ok(match expr.get_type(schema)? {
        // Of zeros with two signs the sum is the one without.
        DataType::Float64 => Transformed::yes(nanvl(expr + lit(0.0_f64), lit(f64::NAN))),
        DataType::Float32 => Transformed::yes(nanvl(expr + lit(0.0_f32), lit(f32::NAN))),
        _ => Transformed::no(expr),
    })
}
