//! Values for the parameters of statements: `$1`, `$name`.

use std::collections::{BTreeMap, HashMap};

use arrow_schema::DataType;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{ParamValues, ScalarValue, exec_datafusion_err, exec_err};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::expr::Placeholder;
use datafusion::logical_expr::{Expr, LogicalPlan, Statement};

/// Texts by the names of parameters, without the `$`.
#[derive(Clone, Debug, Default)]
pub struct Params(BTreeMap<String, String>);

impl Params {
    /// The values of `NAME=VALUE`s.
    pub fn new(given: impl IntoIterator<Item = (String, String)>) -> Self {
        Self(given.into_iter().collect())
    }

    /// Gives a parameter a value.
    pub fn set(&mut self, name: String, value: String) {
        self.0.insert(name, value);
    }

    /// Takes a value away; false if there was none.
    pub fn unset(&mut self, name: &str) -> bool {
        self.0.remove(name).is_some()
    }

    /// All values by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Puts the values in the places of a plan. A text becomes what its place asks for, and stays text where a place asks
    /// for nothing.
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
        let mut values = HashMap::with_capacity(types.len());
        for (id, data_type) in types {
            let name = id.strip_prefix('$').unwrap_or(&id);
            let Some(text) = self.0.get(name) else {
                return exec_err!("no value for {id}: --param {name}=VALUE gives one, in the shell \\set {name} VALUE");
            };
            values.insert(name.to_owned(), convert(&id, text, data_type.as_ref())?);
        }
        plan.with_param_values(ParamValues::from(values))
    }
}

/// The parameters of a plan and the types their places ask for.
fn types_of(plan: &LogicalPlan) -> Result<BTreeMap<String, Option<DataType>>, DataFusionError> {
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
