//! `haversine(lat1, lon1, lat2, lon2 [, radius])`: the distance between two points of a sphere.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod kernel;
#[cfg(test)]
mod reference;
#[cfg(test)]
mod tests;
mod vector;

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{Array, ArrayRef, Float64Array};
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;
use datafusion_common::{Result, ScalarValue, internal_err, plan_err};
use datafusion_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility};
use plinth_core::simd::Level;

/// The mean radius of the earth, in metres: (2a + b) / 3 of the ellipsoid WGS 84, to the decimetre.
const EARTH: f64 = 6_371_008.8;

/// Pairs that are loaded and stored together.
const BLOCK: usize = 4;

/// A coordinate of many pairs of points, or a radius.
#[derive(Clone, Copy, Debug)]
pub enum Coordinate<'a> {
    /// One a pair.
    Each(&'a [f64]),
    /// The same for all.
    All(f64),
}

impl Coordinate<'_> {
    /// Those of a few pairs; zeros where there are none any more.
    #[inline(always)]
    fn block(&self, from: usize) -> [f64; BLOCK] {
        match self {
            Self::All(value) => [*value; BLOCK],
            Self::Each(values) => {
                let rest = values.get(from..).unwrap_or_default();
                match rest.first_chunk() {
                    Some(block) => *block,
                    None => {
                        let mut block = [0.0; BLOCK];
                        block.iter_mut().zip(rest).for_each(|(to, value)| *to = *value);
                        block
                    }
                }
            }
        }
    }
}

/// The distances between pairs of points, in the unit of the radius: latitudes and longitudes of the first points and of the
/// second ones, in degrees, and the radius.
pub fn distances(level: Level, inputs: &[Coordinate<'_>; 5], out: &mut [f64]) {
    match level {
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 if Level::Avx2.available() => avx2::distances(inputs, out),
        _ => blocks(inputs, out, one_by_one),
    }
}

/// The distances of a block.
fn one_by_one([lat1, lon1, lat2, lon2, radius]: [&[f64; BLOCK]; 5]) -> [f64; BLOCK] {
    std::array::from_fn(|i| kernel::angle([lat1[i], lon1[i], lat2[i], lon2[i]]) * radius[i])
}

/// Goes through all pairs: `distances` makes of a block of each input a block of the output.
#[inline(always)]
fn blocks(inputs: &[Coordinate<'_>; 5], out: &mut [f64], distances: impl Fn([&[f64; BLOCK]; 5]) -> [f64; BLOCK]) {
    let [lat1, lon1, lat2, lon2, radius] = inputs;
    for (at, out) in out.chunks_mut(BLOCK).enumerate() {
        let at = at * BLOCK;
        let block = distances([&lat1.block(at), &lon1.block(at), &lat2.block(at), &lon2.block(at), &radius.block(at)]);
        // Of what is no number there are many, and which one comes out is the machine's affair.
        let block = block.map(|distance| if distance.is_nan() { f64::NAN } else { distance });
        out.iter_mut().zip(block).for_each(|(out, distance)| *out = distance);
    }
}

/// The function as the engine sees it.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Haversine {
    signature: Signature,
}

impl Default for Haversine {
    fn default() -> Self {
        Self { signature: Signature::user_defined(Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for Haversine {
    fn name(&self) -> &'static str {
        "haversine"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        if !matches!(types.len(), 4 | 5) {
            return plan_err!(
                "haversine takes lat1, lon1, lat2, lon2 in degrees, and maybe a radius; it was given {} arguments",
                types.len()
            );
        }
        match types.iter().find(|given| !given.is_numeric() && !given.is_null()) {
            Some(other) => plan_err!("haversine takes numbers, not {other}; CAST(x AS DOUBLE) makes one of text"),
            None => Ok(vec![DataType::Float64; types.len()]),
        }
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [lat1, lon1, lat2, lon2, radius @ ..] = args.args.as_slice() else {
            return internal_err!("haversine was given {} arguments", args.args.len());
        };
        let earth = ColumnarValue::Scalar(ScalarValue::Float64(Some(EARTH)));
        let values = [lat1, lon1, lat2, lon2, radius.first().unwrap_or(&earth)];
        let scalar = values.iter().all(|value| matches!(value, ColumnarValue::Scalar(_)));
        let rows = if scalar { 1 } else { args.number_rows };

        let mut inputs = [Coordinate::All(0.0); 5];
        let mut nulls: Option<NullBuffer> = None;
        for (input, value) in inputs.iter_mut().zip(values) {
            *input = match value {
                ColumnarValue::Scalar(ScalarValue::Float64(Some(value))) => Coordinate::All(*value),
                ColumnarValue::Scalar(value) if value.is_null() => {
                    return Ok(ColumnarValue::Scalar(ScalarValue::Float64(None)));
                }
                ColumnarValue::Array(array) => {
                    let Some(array) = array.as_primitive_opt::<Float64Type>().filter(|array| array.len() == rows)
                    else {
                        return internal_err!("haversine was given {} values of {}", array.len(), array.data_type());
                    };
                    nulls = NullBuffer::union(nulls.as_ref(), array.nulls());
                    Coordinate::Each(array.values())
                }
                ColumnarValue::Scalar(value) => return internal_err!("haversine was given {value:?}"),
            };
        }
        let mut out = vec![0.0; rows];
        distances(Level::best(), &inputs, &mut out);
        if let (true, Some(distance)) = (scalar, out.first()) {
            return Ok(ColumnarValue::Scalar(ScalarValue::Float64(Some(*distance))));
        }
        let out: ArrayRef = Arc::new(Float64Array::try_new(out.into(), nulls)?);
        Ok(ColumnarValue::Array(out))
    }
}
