//! Statements that define macros and variables.

use std::sync::Arc;

use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{self, ObjectNamePart, Set};
use plinth_core::sync::lock;

use crate::names::normal;
use crate::{Session, habits};

impl Session {
    /// Runs a statement that changes what is kept for others; whether it is one.
    pub(crate) async fn keep(&self, statement: &Statement) -> Result<bool> {
        let Statement::Statement(inner) = statement else { return Ok(false) };
        match inner.as_ref() {
            ast::Statement::CreateMacro { or_replace, temporary: _, name, args, definition } => {
                let mut macros = lock(&self.kept.macros);
                let args = args.clone().unwrap_or_default();
                Arc::make_mut(&mut macros).create(name, *or_replace, args, definition.clone())?;
                Ok(true)
            }
            ast::Statement::DropFunction(drop) => {
                let mut macros = lock(&self.kept.macros);
                for function in &drop.func_desc {
                    if !Arc::make_mut(&mut macros).remove(&function.name) && !drop.if_exists {
                        return plan_err!("DROP FUNCTION {}: there is no macro of this name", function.name);
                    }
                }
                Ok(true)
            }
            ast::Statement::Set(Set::SingleAssignment { variable, values, .. }) => {
                let [ObjectNamePart::Identifier(kind), ObjectNamePart::Identifier(name)] = variable.0.as_slice() else {
                    return Ok(false);
                };
                let [value] = values.as_slice() else { return Ok(false) };
                if normal(kind) != "plinth_variable" {
                    return Ok(false);
                }
                let mut query = habits::query("SELECT 1 AS value")?;
                habits::set_items(&mut query, vec![ast::SelectItem::UnnamedExpr(value.clone())]);
                let rows = self.rewriter().rows_of(*query, 1).await?;
                let value = rows.iter().find(|batch| batch.num_rows() > 0).and_then(|batch| batch.columns().first());
                let value = match value {
                    Some(value) => ScalarValue::try_from_array(value, 0)?,
                    None => ScalarValue::Null,
                };
                self.kept.variables.set(normal(name), value);
                Ok(true)
            }
            _ => Ok(false),
        }
    }
}
