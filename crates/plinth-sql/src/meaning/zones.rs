//! `ts AT TIME ZONE z`: of a point in time the clock there, without a zone; of what a clock shows the point in time.
//!
//! The engine has a point in time in both cases, shown by another clock: taken for a timestamp without a zone it would be that of UTC.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DFSchema, Result, internal_err};
use datafusion::functions::datetime::to_local_time;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, cast,
};

/// What `x AT TIME ZONE z` is called with `x` beside it, and a point in time of the session's zone.
pub(crate) const AT_ZONE: &str = "plinth_at_zone";

/// The function, which no plan keeps.
pub(super) fn function() -> ScalarUDF {
    ScalarUDF::from(AtZone { signature: Signature::any(3, Volatility::Immutable) })
}

/// What stands for a call.
pub(super) fn clock(call: ScalarFunction, schema: &DFSchema) -> Result<Expr> {
    let Ok([moved, of, session]) = <[Expr; 3]>::try_from(call.args) else {
        return internal_err!("{AT_ZONE}: of three values");
    };
    Ok(match (of.get_type(schema)?, moved.get_type(schema)?, session.get_type(schema)?) {
        (DataType::Timestamp(_, Some(_)), ..) => local(moved),
        // Its days and hours are those of the session's zone, not of the one in which the clock was.
        (_, DataType::Timestamp(unit, Some(_)), DataType::Timestamp(_, zone)) => {
            cast(moved, DataType::Timestamp(unit, zone))
        }
        _ => moved,
    })
}

/// Whether a cast takes the zone from a point in time that has one other than UTC, in which it is the same.
pub(super) fn loses_zone(of: &Expr, to: &DataType, schema: &DFSchema) -> bool {
    let is_clock = matches!(to, DataType::Timestamp(_, None) | DataType::Date32 | DataType::Time64(_));
    is_clock && matches!(of.get_type(schema), Ok(DataType::Timestamp(_, Some(zone))) if !is_utc(&zone))
}

/// Whether a zone is one in which clocks show UTC.
pub(super) fn is_utc(zone: &str) -> bool {
    matches!(zone, "UTC" | "+00:00" | "Z" | "Etc/UTC")
}

/// What a clock shows at a point in time, in its zone.
pub(super) fn local(moment: Expr) -> Expr {
    Expr::ScalarFunction(ScalarFunction::new_udf(to_local_time(), vec![moment]))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct AtZone {
    signature: Signature,
}

impl ScalarUDFImpl for AtZone {
    fn name(&self) -> &'static str {
        AT_ZONE
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(match types {
            [DataType::Timestamp(unit, _), DataType::Timestamp(_, Some(_)), _] => DataType::Timestamp(*unit, None),
            [DataType::Timestamp(unit, _), _, DataType::Timestamp(_, zone)] => DataType::Timestamp(*unit, zone.clone()),
            [moved, ..] => moved.clone(),
            [] => return internal_err!("{AT_ZONE}: of three values"),
        })
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        internal_err!("{AT_ZONE} was left in a plan")
    }
}
