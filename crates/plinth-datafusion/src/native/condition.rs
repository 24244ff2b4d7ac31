//! What scans of one side of a join ask of their rows: whether their keys are among those of the other side.

use std::sync::Arc;

use arrow_schema::{DataType, Schema};
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::Operator;
use datafusion_physical_expr::conjunction;
use datafusion_physical_expr::expressions::{BinaryExpr, InListExpr, Literal, lit};
use datafusion_physical_expr_common::physical_expr::PhysicalExpr;
use plinth_encoding::key_set::KeySet;
use plinth_exec::join::Table;
use plinth_exec::numbers::Numbers;
use plinth_io::Reservation;

use crate::keys::InKeys;

/// Keys that are listed: an index or postings can be asked for each of them.
const LISTED: usize = 150;

/// A condition that holds for the keys of a table, given the columns of these and the expressions that they are compared with.
pub(super) fn of_keys<'a>(
    table: &Table,
    exprs: impl IntoIterator<Item = (usize, &'a Arc<dyn PhysicalExpr>)>,
    types: &[DataType],
    schema: &Schema,
    memory: &mut Reservation,
) -> Result<Arc<dyn PhysicalExpr>> {
    if table.keys() == 0 {
        return Ok(lit(false));
    }
    let mut all = Vec::new();
    for (at, expr) in exprs {
        // Other nulls are equal to a null, which no list has.
        let (Some(numbers), Some(data_type)) = (table.integers(at), types.get(at)) else { continue };
        all.push(of_numbers(expr, data_type, numbers, schema, memory)?);
    }
    Ok(if all.is_empty() { lit(true) } else { conjunction(all) })
}

fn of_numbers(
    expr: &Arc<dyn PhysicalExpr>,
    data_type: &DataType,
    mut numbers: Vec<i64>,
    schema: &Schema,
    memory: &mut Reservation,
) -> Result<Arc<dyn PhysicalExpr>> {
    let (Some(&least), Some(&greatest)) = (numbers.iter().min(), numbers.iter().max()) else { return Ok(lit(false)) };
    let literal = |number: i64| value(data_type, number).map(|value| Arc::new(Literal::new(value)) as _);
    if numbers.len() <= LISTED {
        numbers.sort_unstable();
        numbers.dedup();
        let list = numbers.into_iter().map(literal).collect::<Result<Vec<Arc<dyn PhysicalExpr>>>>()?;
        return Ok(Arc::new(InListExpr::try_new(Arc::clone(expr), list, false, schema)?));
    }
    let most = KeySet::most_bytes(numbers.len());
    if InKeys::can_be_of(data_type)
        && memory.try_grow(most).is_ok()
        && let Some(keys) = KeySet::of(&numbers)
    {
        return Ok(Arc::new(InKeys::new(Arc::clone(expr), Arc::new(keys))));
    }
    let compare = |op, bound| Arc::new(BinaryExpr::new(Arc::clone(expr), op, bound)) as Arc<dyn PhysicalExpr>;
    Ok(conjunction(vec![compare(Operator::GtEq, literal(least)?), compare(Operator::LtEq, literal(greatest)?)]))
}

/// The value that a number is.
fn value(data_type: &DataType, number: i64) -> Result<ScalarValue> {
    let numbers = Numbers::of(data_type)
        .ok_or_else(|| datafusion_common::internal_datafusion_err!("values of {data_type} are no numbers"))?;
    let array = numbers.write(data_type, &[vec![number]], None).map_err(crate::error::from_exec)?;
    ScalarValue::try_from_array(&array, 0)
}
