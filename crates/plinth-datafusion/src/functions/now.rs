//! `now()` in the unit of a TIMESTAMP, microseconds: beside the engine's nanoseconds no time after 2262 could be looked at, as the year
//! 9999 of rows that hold until further notice.

use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, TimeUnit};
use datafusion_common::config::ConfigOptions;
use datafusion_common::{Result, ScalarValue, internal_err};
use datafusion_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

/// The time at which a statement began.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Now {
    signature: Signature,
    aliases: Vec<String>,
    zone: Option<Arc<str>>,
}

impl Now {
    pub(super) fn new(zone: Option<&str>) -> Self {
        let aliases = ["current_timestamp", "get_current_timestamp", "transaction_timestamp"].map(str::to_owned);
        Self {
            signature: Signature::nullary(Volatility::Stable),
            aliases: aliases.to_vec(),
            zone: zone.map(Into::into),
        }
    }
}

impl ScalarUDFImpl for Now {
    fn name(&self) -> &'static str {
        "now"
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn with_updated_config(&self, config: &ConfigOptions) -> Option<ScalarUDF> {
        Some(Self::new(config.execution.time_zone.as_deref()).into())
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Timestamp(TimeUnit::Microsecond, self.zone.clone()))
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        Ok(Arc::new(Field::new(self.name(), self.return_type(&[])?, false)))
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        internal_err!("now() is a constant of its statement")
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        let Some(now) = info.query_execution_start_time() else { return Ok(ExprSimplifyResult::Original(args)) };
        let now = ScalarValue::TimestampMicrosecond(Some(now.timestamp_micros()), self.zone.clone());
        Ok(ExprSimplifyResult::Simplified(Expr::Literal(now, None)))
    }
}
