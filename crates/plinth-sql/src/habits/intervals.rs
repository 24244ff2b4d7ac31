//! Intervals of so many days, months or seconds as a value says.

use datafusion::common::{Result, plan_err};
use datafusion::sql::sqlparser::ast::{Expr, Interval};

use super::equivalents::TEMPLATES;
use super::templates;

/// `INTERVAL (n) DAY`, whose number is no literal: a product.
///
/// # Errors
/// If there is no such unit.
pub(super) fn computed(interval: &Interval) -> Result<Option<Expr>> {
    let number = match interval.value.as_ref() {
        Expr::Value(_) => return Ok(None),
        Expr::UnaryOp { expr, .. } if matches!(expr.as_ref(), Expr::Value(_)) => return Ok(None),
        Expr::Nested(inner) => inner.as_ref(),
        other => other,
    };
    let (Some(unit), None, None) = (&interval.leading_field, &interval.last_field, interval.leading_precision) else {
        return Ok(None);
    };
    let unit = unit.to_string().to_ascii_lowercase();
    let function = match unit.trim_end_matches('s') {
        "century" | "centurie" => "to_centuries".to_owned(),
        "millennium" | "millenium" | "millennia" => "to_millennia".to_owned(),
        one => format!("to_{one}s"),
    };
    let Some((_, _, product)) = TEMPLATES.iter().find(|(name, _, _)| *name == function) else {
        return plan_err!("INTERVAL ({number}) {unit}: takes years, months, weeks, days, hours, minutes or seconds");
    };
    let product = templates::expression(product, std::slice::from_ref(number))?;
    Ok(Some(Expr::Nested(Box::new(product))))
}
