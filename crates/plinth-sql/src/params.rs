//! Values for the parameters of statements: `$1`, `$name`.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use arrow_schema::DataType;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{ParamValues, ScalarValue, exec_datafusion_err, exec_err};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::expr::Placeholder;
use datafusion::logical_expr::{Expr, LogicalPlan, Statement};

use crate::kept_plan::KeptPlan;
use crate::values::{Given, Values};

/// Values by the names of parameters, without the `$`.
#[derive(Clone, Debug, Default)]
pub struct Params {
    given: Values,
    origin: Origin,
    /// Where the plan of the statement is kept.
    kept: Option<Arc<KeptPlan>>,
}

/// Where values come from.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Origin {
    #[default]
    User,
    Program,
    /// They were part of a statement, and mean what they would there.
    Statement,
}

impl Params {
    /// The values of `NAME=VALUE`s.
    pub fn new(given: impl IntoIterator<Item = (String, String)>) -> Self {
        let given = given.into_iter().map(|(name, text)| (name, Given::Text(text))).collect();
        Self { given, origin: Origin::User, kept: None }
    }

    /// Values that have types, by their names.
    pub fn of_values(given: impl IntoIterator<Item = (String, ScalarValue)>) -> Self {
        let given = given.into_iter().map(|(name, value)| (name, Given::Value(value))).collect();
        Self { given, origin: Origin::Program, kept: None }
    }

    /// Values that a statement would have in their places, which keep their types.
    pub(crate) fn as_written(given: impl IntoIterator<Item = (String, ScalarValue)>) -> Self {
        Self { origin: Origin::Statement, ..Self::of_values(given) }
    }

    /// The same values for a query over files that runs again and again: its plan stays where it is kept, for the next run. Other statements
    /// are planned each time.
    #[must_use]
    pub fn keeping(self, plan: &Arc<KeptPlan>) -> Self {
        Self { kept: Some(Arc::clone(plan)), ..self }
    }

    pub(crate) fn kept(&self) -> Option<&Arc<KeptPlan>> {
        self.kept.as_ref()
    }

    pub(crate) fn values(&self) -> &Values {
        &self.given
    }

    /// Gives a parameter a value.
    pub fn set(&mut self, name: String, value: String) {
        self.given.insert(name, Given::Text(value));
    }

    /// Takes a value away; false if there was none.
    pub fn unset(&mut self, name: &str) -> bool {
        self.given.remove(name).is_some()
    }

    /// All texts by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.given.iter().filter_map(|(name, given)| match given {
            Given::Text(text) => Some((name.as_str(), text.as_str())),
            Given::Value(_) => None,
        })
    }

    /// The value of a parameter as one of a type, if it has one that says the same.
    pub(crate) fn plain(&self, id: &str, data_type: &DataType) -> Option<ScalarValue> {
        match self.given.get(id.strip_prefix('$').unwrap_or(id))? {
            Given::Text(text) => convert(id, text, Some(data_type)).ok(),
            Given::Value(value) => {
                let given = value.data_type();
                let alike = given == *data_type
                    || (given.is_string() && data_type.is_string())
                    || (given.is_integer() && data_type.is_integer());
                if alike { fitting(value, data_type) } else { None }
            }
        }
    }

    /// Puts the values in the places of a plan. A text becomes what its place asks for, and stays text where a place asks
    /// for nothing. A value becomes it if nothing is lost, and otherwise keeps its type, which the engine compares with the other.
    ///
    /// # Errors
    /// If a parameter has no value, or one that does not fit its type.
    pub(crate) fn bind(&self, plan: LogicalPlan) -> Result<LogicalPlan, DataFusionError> {
        // A statement that is prepared gets its values when it is executed.
        if matches!(plan, LogicalPlan::Statement(Statement::Prepare(_))) {
            return Ok(plan);
        }
        let types = types_of(&plan)?;
        if types.is_empty() {
            return Ok(plan);
        }
        let stored = stored(&plan)?;
        let mut values = HashMap::with_capacity(types.len());
        for (id, data_type) in types {
            let name = id.strip_prefix('$').unwrap_or(&id);
            let value = match self.given.get(name) {
                Some(Given::Text(text)) => convert(&id, text, data_type.as_ref())?,
                Some(Given::Value(value)) if self.origin == Origin::Statement => value.clone(),
                Some(Given::Value(value)) => match data_type.as_ref().map(|to| fitting(value, to)) {
                    Some(Some(fitting)) => fitting,
                    // What is compared may be of another type, but what is stored may not.
                    Some(None) if stored.contains(&id) => {
                        let to = data_type.as_ref().unwrap_or(&DataType::Null);
                        match rounded(value, to) {
                            Some(rounded) => rounded,
                            None => return exec_err!("{id} is {value}, which is no {to}"),
                        }
                    }
                    Some(None) | None => value.clone(),
                },
                None if self.origin != Origin::User => return exec_err!("no value for {id}"),
                None => {
                    return exec_err!(
                        "no value for {id}: --param {name}=VALUE gives one, in the shell \\set {name} VALUE"
                    );
                }
            };
            values.insert(name.to_owned(), value);
        }
        plan.with_param_values(ParamValues::from(values))
    }
}

/// The parameters of a plan and the types their places ask for.
pub(crate) fn types_of(plan: &LogicalPlan) -> Result<BTreeMap<String, Option<DataType>>, DataFusionError> {
    let mut types: BTreeMap<String, Option<DataType>> = plan.get_parameter_types()?.into_iter().collect();
    // Of these the planner says nothing.
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::Limit(limit) = node {
            for place in limit.skip.iter().chain(&limit.fetch) {
                if let Expr::Placeholder(Placeholder { id, .. }) = place.as_ref() {
                    types.insert(id.clone(), Some(DataType::Int64));
                }
            }
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(types)
}

/// The parameters that are values of rows themselves.
fn stored(plan: &LogicalPlan) -> Result<BTreeSet<String>, DataFusionError> {
    let mut stored = BTreeSet::new();
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::Values(values) = node {
            for value in values.values.iter().flatten() {
                if let Expr::Placeholder(Placeholder { id, .. }) = value {
                    stored.insert(id.clone());
                }
            }
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(stored)
}

/// A value as one of another type, if that says the same.
pub(crate) fn fitting(value: &ScalarValue, to: &DataType) -> Option<ScalarValue> {
    let from = value.data_type();
    let converted = value.cast_to(to).ok()?;
    if value.is_null() || from == *to {
        return Some(converted);
    }
    if converted.is_null() {
        return None;
    }
    // Text says what it means, and no number is exact as a binary fraction.
    let same = from.is_string() || to.is_floating() || converted.cast_to(&from).is_ok_and(|back| back == *value);
    same.then_some(converted)
}

/// A decimal with more places than a column has, as it is stored when it is written out.
fn rounded(value: &ScalarValue, to: &DataType) -> Option<ScalarValue> {
    let are_decimals = value.data_type().is_decimal() && to.is_decimal();
    are_decimals.then(|| value.cast_to(to).ok()).flatten().filter(|rounded| !rounded.is_null())
}

fn convert(id: &str, text: &str, data_type: Option<&DataType>) -> Result<ScalarValue, DataFusionError> {
    let value = ScalarValue::Utf8(Some(text.to_owned()));
    match data_type {
        None | Some(DataType::Null) => Ok(value),
        Some(to) => {
            let failed = || exec_datafusion_err!("{id} is {text:?}, which is no {to}");
            let converted = value.cast_to(to).map_err(|_| failed())?;
            if converted.is_null() { Err(failed()) } else { Ok(converted) }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn values_become_what_says_the_same() {
        let int = |n| ScalarValue::Int64(Some(n));
        let float = |n| ScalarValue::Float64(Some(n));
        let text = |t: &str| ScalarValue::Utf8(Some(t.to_owned()));
        let fits = |value: &ScalarValue, to| fitting(value, &to);
        assert_eq!(fits(&int(5), DataType::Int16), Some(ScalarValue::Int16(Some(5))));
        assert_eq!(fits(&int(70_000), DataType::Int16), None);
        assert_eq!(fits(&float(7.0), DataType::Int64), Some(int(7)));
        assert_eq!(fits(&float(7.5), DataType::Int64), None);
        assert_eq!(fits(&float(0.1), DataType::Float32), Some(ScalarValue::Float32(Some(0.1))));
        assert_eq!(fits(&text("x"), DataType::Utf8View), Some(ScalarValue::Utf8View(Some("x".to_owned()))));
        assert_eq!(fits(&text("2024-01-01"), DataType::Date32), Some(ScalarValue::Date32(Some(19_723))));
        assert_eq!(fits(&text("x"), DataType::Date32), None);
        let price = ScalarValue::Decimal128(Some(15), 2, 1);
        assert_eq!(fits(&price, DataType::Decimal128(6, 2)), Some(ScalarValue::Decimal128(Some(150), 6, 2)));
        assert_eq!(fits(&ScalarValue::Decimal128(Some(15), 3, 3), DataType::Decimal128(6, 2)), None);
        assert!(fits(&ScalarValue::Null, DataType::Int8).unwrap().is_null());
    }
}
