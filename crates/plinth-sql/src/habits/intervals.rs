//! Intervals of so many days, months or seconds as a value says.

use datafusion::common::{Result, plan_err};
use datafusion::sql::sqlparser::ast::{Expr, Interval, Value};

use super::equivalents::TEMPLATES;
use super::templates;

/// `INTERVAL (n) DAY`, whose number is no literal: a product.
///
/// # Errors
/// If there is no unit, or none of this name.
pub(super) fn computed(interval: &Interval) -> Result<Option<Expr>> {
    let number = match interval.value.as_ref() {
        Expr::Value(value) if !matches!(value.value, Value::Placeholder(_)) => return Ok(None),
        Expr::UnaryOp { expr, .. } if matches!(expr.as_ref(), Expr::Value(_)) => return Ok(None),
        Expr::Nested(inner) => inner.as_ref(),
        other => other,
    };
    let Some(unit) = &interval.leading_field else {
        return plan_err!("INTERVAL {number}: no unit that is known follows; write INTERVAL ({number}) DAY");
    };
    if interval.last_field.is_some() || interval.leading_precision.is_some() {
        return Ok(None);
    }
    let unit = unit.to_string().to_ascii_lowercase();
    let function = match unit.trim_end_matches('s') {
        "century" => "to_centuries".to_owned(),
        "millennium" | "millenium" => "to_millennia".to_owned(),
        one => format!("to_{one}s"),
    };
    let Some((_, _, product)) = TEMPLATES.iter().find(|(name, _, _)| *name == function) else {
        return plan_err!("INTERVAL ({number}) {unit}: takes years, months, weeks, days, hours, minutes or seconds");
    };
    let product = templates::expression(product, std::slice::from_ref(number))?;
    Ok(Some(Expr::Nested(Box::new(product))))
}
