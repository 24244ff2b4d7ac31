//! Functions of one value that take the place of what the engine would do.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, Int64Type};
use arrow_array::{ArrayRef, Float32Array, Float64Array};
use arrow_cast::cast;
use arrow_schema::DataType;
use datafusion::common::{Result, ScalarValue, internal_datafusion_err, internal_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

/// `round(x, places)` of floats: the engine multiplies by a power of ten, which can leave the range of floats.
pub(super) fn rounded(args: Vec<Expr>) -> Expr {
    call("round", |types| types.first().cloned(), round, args)
}

/// A function that gives its first argument, and differs by the second.
pub(crate) const APART: &str = "plinth_apart";

/// That function.
pub(super) fn apart() -> ScalarUDF {
    let run: Run = |args| args.first().cloned().ok_or_else(|| internal_datafusion_err!("{APART} was given nothing"));
    let signature = Signature::any(2, Volatility::Immutable);
    OfValues { name: APART, signature, returns: |types| types.first().cloned(), run }.into()
}

/// Whether an expression is one of these already: of a view, or a statement that is analyzed twice.
pub(super) fn is_own(expr: &Expr) -> bool {
    matches!(expr, Expr::ScalarFunction(function) if function.func.inner().is::<OfValues>())
}

type Returns = fn(&[DataType]) -> Option<DataType>;
type Run = fn(&[ArrayRef]) -> Result<ArrayRef>;

fn call(name: &'static str, returns: Returns, run: Run, args: Vec<Expr>) -> Expr {
    let signature = Signature::any(args.len(), Volatility::Immutable);
    let function = ScalarUDF::from(OfValues { name, signature, returns, run });
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(function), args))
}

#[derive(Debug)]
struct OfValues {
    name: &'static str,
    signature: Signature,
    returns: Returns,
    run: Run,
}

impl PartialEq for OfValues {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && std::ptr::fn_addr_eq(self.run, other.run)
    }
}

impl Eq for OfValues {}

impl std::hash::Hash for OfValues {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl ScalarUDFImpl for OfValues {
    fn name(&self) -> &'static str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match (self.returns)(types) {
            Some(data_type) => Ok(data_type),
            None => internal_err!("{} was given nothing", self.name),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let constant = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if constant { 1 } else { args.number_rows };
        let arrays = args.args.into_iter().map(|arg| arg.into_array(rows)).collect::<Result<Vec<_>>>()?;
        let result = (self.run)(&arrays)?;
        Ok(match constant {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&result, 0)?),
            false => ColumnarValue::Array(result),
        })
    }
}

fn round(args: &[ArrayRef]) -> Result<ArrayRef> {
    let [values, places] = args else { return internal_err!("round: of a value, to some places") };
    let places = cast(places, &DataType::Int64)?;
    let places = places.as_primitive::<Int64Type>().iter();
    Ok(match values.data_type() {
        DataType::Float32 => {
            let values = values.as_primitive::<Float32Type>().iter().zip(places);
            // Of a float of 32 bits the places are those of its own shortest form.
            #[allow(clippy::cast_possible_truncation, reason = "rounding leaves no more digits than there were")]
            let rounded = values.map(|(value, places)| Some(nearest(f64::from(value?), places?) as f32));
            Arc::new(rounded.collect::<Float32Array>())
        }
        _ => {
            let values = values.as_primitive::<Float64Type>().iter().zip(places);
            Arc::new(values.map(|(value, places)| Some(nearest(value?, places?))).collect::<Float64Array>())
        }
    })
}

/// Places that floats do not reach, on either side of the point.
const FAR: i64 = 400;

/// The nearest number of so many places behind the point; before it, if they are negative.
fn nearest(value: f64, places: i64) -> f64 {
    let places = i32::try_from(places.clamp(-FAR, FAR)).unwrap_or(0);
    if places >= 0 {
        let factor = 10_f64.powi(places);
        let rounded = (value * factor).round() / factor;
        // It has no such places then.
        if rounded.is_finite() { rounded } else { value }
    } else {
        let factor = 10_f64.powi(-places);
        if !value.is_finite() {
            value
        } else if factor.is_finite() {
            (value / factor).round() * factor
        } else {
            0.0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_as_far_as_they_reach() {
        for (value, places, expected) in [
            (2.5, 0, 3.0),
            (-2.5, 0, -3.0),
            (1.2345, 2, 1.23),
            (1234.5, -2, 1200.0),
            (1.5e300, 20, 1.5e300),
            (2.5, 1000, 2.5),
            (1e300, i64::MIN, 0.0),
            (1.25, i64::MAX, 1.25),
            (f64::INFINITY, -2, f64::INFINITY),
            (f64::INFINITY, 2, f64::INFINITY),
        ] {
            assert_eq!(nearest(value, places).to_bits(), f64::to_bits(expected), "{value} to {places}");
        }
        assert!(nearest(f64::NAN, 2).is_nan());
    }
}
