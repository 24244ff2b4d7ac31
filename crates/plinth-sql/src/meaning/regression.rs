//! `regr_r2` of a horizontal line is 1, as in PostgreSQL and DuckDB. The engine's is NULL.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_schema::{DataType, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::functions_aggregate::regr::regr_r2_udaf;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Documentation, Signature};

/// The function, to take the place of the engine's.
pub(super) fn function() -> AggregateUDF {
    Fit { inner: regr_r2_udaf() }.into()
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Fit {
    inner: Arc<AggregateUDF>,
}

impl AggregateUDFImpl for Fit {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(types)
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(OfPoints(self.inner.accumulator(args)?)))
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        self.inner.state_fields(args)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }
}

#[derive(Debug)]
struct OfPoints(Box<dyn Accumulator>);

impl Accumulator for OfPoints {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.0.update_batch(values)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        // How many points, their means, and the sums of squares of their distances from these, of x and y.
        let is_level = match self.0.state()?.as_slice() {
            [_, _, _, ScalarValue::Float64(Some(x)), ScalarValue::Float64(Some(y)), ..] => *x > 0.0 && *y == 0.0,
            _ => false,
        };
        if is_level { Ok(ScalarValue::from(1.0)) } else { self.0.evaluate() }
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.0.size()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.0.state()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.0.merge_batch(states)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.0.retract_batch(values)
    }

    fn supports_retract_batch(&self) -> bool {
        self.0.supports_retract_batch()
    }
}
