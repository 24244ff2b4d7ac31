//! Numbers in the rows of VALUES, and in the arms of UNION: beside decimals they are decimals, and decimals beside doubles are doubles.
//!
//! The engine makes decimals of 15 places of both, in which 1e-20 is 0 and 1e30 has no room.

use std::sync::Arc;

use arrow_schema::{DataType, Field};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::Cast;
use datafusion::logical_expr::type_coercion::binary::type_union_resolution;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, Projection, Union, Values};

use super::floats::{as_doubles, is_float, mixes};
use super::{Scope, cast, has_number};

/// VALUES.
pub(super) fn of_values(values: Values) -> Result<Transformed<LogicalPlan>> {
    let Values { schema, values: mut rows } = values;
    let empty = DFSchema::empty();
    let scope = Scope { schema: &empty, below: None };
    let mut fields: Vec<(Option<_>, Arc<Field>)> =
        schema.iter().map(|(qualifier, field)| (qualifier.cloned(), Arc::clone(field))).collect();
    let mut any = false;
    for (column, (_, field)) in fields.iter_mut().enumerate() {
        let Some(exprs) = column_of(&rows, column, field.data_type(), &scope) else { continue };
        let exact = exprs.iter().map(|expr| scope.exact(expr)).collect::<Option<Vec<_>>>();
        let exact = exact.and_then(|exprs| {
            let types: Vec<_> = exprs.iter().map(|expr| scope.type_of(expr)).collect();
            Some((exprs, type_union_resolution(&types)?))
        });
        let (exprs, data_type) = exact.unwrap_or_else(|| (as_doubles(exprs, &empty), DataType::Float64));
        for (row, expr) in rows.iter_mut().zip(exprs) {
            if let Some(place) = row.get_mut(column) {
                *place = if scope.type_of(&expr) == data_type { expr } else { cast(expr, data_type.clone()) };
            }
        }
        *field = Arc::new(field.as_ref().clone().with_data_type(data_type));
        any = true;
    }
    if !any {
        return Ok(Transformed::no(LogicalPlan::Values(Values { schema, values: rows })));
    }
    let schema = DFSchema::new_with_metadata(fields, schema.metadata().clone())?;
    Ok(Transformed::yes(LogicalPlan::Values(Values { schema: Arc::new(schema), values: rows })))
}

/// The values of a column before they were cast to a type that floats and decimals have in common, if they were.
fn column_of(rows: &[Vec<Expr>], column: usize, common: &DataType, scope: &Scope) -> Option<Vec<Expr>> {
    if !common.is_decimal() {
        return None;
    }
    let before = |expr: &Expr| match expr {
        Expr::Cast(Cast { expr, field }) if field.data_type() == common => expr.as_ref().clone(),
        Expr::Literal(value, _) if value.is_null() => Expr::Literal(ScalarValue::Null, None),
        other => other.clone(),
    };
    let exprs = rows.iter().map(|row| row.get(column).map(before)).collect::<Option<Vec<_>>>()?;
    let types: Vec<_> = exprs.iter().map(|expr| scope.type_of(expr)).collect();
    let met = types.iter().try_fold(DataType::Null, |met, next| match (&met, next) {
        (_, DataType::Null) => Some(met),
        (DataType::Null, _) => Some(next.clone()),
        _ => type_union_resolution(&[met, next.clone()]),
    });
    (mixes(&types) && met.as_ref() == Some(common)).then_some(exprs)
}

/// UNION.
pub(super) fn of_union(union: Union) -> Result<Transformed<LogicalPlan>> {
    let columns = union.schema.fields().len();
    let type_of = |arm: &LogicalPlan, column: usize| {
        arm.schema().fields().get(column).map_or(DataType::Null, |field| field.data_type().clone())
    };
    let mixed: Vec<usize> = (0..columns)
        .filter(|column| mixes(&union.inputs.iter().map(|arm| type_of(arm, *column)).collect::<Vec<_>>()))
        .collect();
    if mixed.is_empty() {
        return Ok(Transformed::no(LogicalPlan::Union(union)));
    }
    let mut arms: Vec<LogicalPlan> = union.inputs.iter().map(|arm| arm.as_ref().clone()).collect();
    for column in mixed {
        let exact = arms.iter().map(|arm| match is_float(&type_of(arm, column)) {
            true => with_exact(arm, column),
            false => Ok(Some(arm.clone())),
        });
        arms = match exact.collect::<Result<Option<Vec<_>>>>()? {
            Some(exact) => exact,
            None => arms.into_iter().map(|arm| with_doubles(arm, column)).collect::<Result<_>>()?,
        };
    }
    let union = Union::try_new_with_loose_types(arms.into_iter().map(Arc::new).collect())?;
    Ok(Transformed::yes(LogicalPlan::Union(union)))
}

/// An arm whose column is a number that is written, as a decimal; none if it is another double.
fn with_exact(arm: &LogicalPlan, column: usize) -> Result<Option<LogicalPlan>> {
    let LogicalPlan::Projection(Projection { expr, input, .. }) = arm else { return Ok(None) };
    let schema = merge_schema(&[input]);
    let scope = Scope { schema: &schema, below: None };
    let Some(exact) = expr.get(column).filter(|expr| has_number(expr)).and_then(|expr| scope.exact(expr)) else {
        return Ok(None);
    };
    let mut exprs = expr.clone();
    if let Some(place) = exprs.get_mut(column) {
        let (qualifier, name) = place.qualified_name();
        *place = exact.alias_qualified(qualifier, name);
    }
    Ok(Some(LogicalPlan::Projection(Projection::try_new(exprs, Arc::clone(input))?)))
}

/// An arm with a double in the place of a decimal.
fn with_doubles(arm: LogicalPlan, column: usize) -> Result<LogicalPlan> {
    let schema = Arc::clone(arm.schema());
    if !schema.fields().get(column).is_some_and(|field| field.data_type().is_decimal()) {
        return Ok(arm);
    }
    let exprs = schema.iter().enumerate().map(|(place, (qualifier, field))| {
        let expr = Expr::from((qualifier, field));
        if place == column {
            cast(expr, DataType::Float64).alias_qualified(qualifier.cloned(), field.name())
        } else {
            expr
        }
    });
    LogicalPlanBuilder::from(arm).project(exprs.collect::<Vec<_>>())?.build()
}
