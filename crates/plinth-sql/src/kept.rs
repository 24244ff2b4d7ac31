//! What a session keeps for its statements beside tables: macros and variables.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use arrow_schema::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue, exec_err, plan_err};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility, lit,
};
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{self, ObjectNamePart, Set};
use plinth_core::sync::lock;

use crate::Session;
use crate::habits::{self, Macros};
use crate::names::normal;

/// What a session keeps for its statements.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    pub(crate) macros: Mutex<Arc<Macros>>,
    pub(crate) variables: Arc<Variables>,
}

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

/// Values by the names that SET VARIABLE gave them.
#[derive(Debug, Default)]
pub(crate) struct Variables(Mutex<HashMap<String, ScalarValue>>);

impl Variables {
    pub(crate) fn set(&self, name: String, value: ScalarValue) {
        lock(&self.0).insert(name, value);
    }
}

/// `plinth_variable('x')`: the value that SET VARIABLE gave, NULL if there is none.
#[derive(Debug)]
pub(crate) struct Variable {
    variables: Arc<Variables>,
    signature: Signature,
}

impl Variable {
    pub(crate) fn new(variables: &Arc<Variables>) -> Self {
        let signature = Signature::exact(vec![DataType::Utf8], Volatility::Stable);
        Self { variables: Arc::clone(variables), signature }
    }

    fn value(&self, name: &ScalarValue) -> Result<ScalarValue> {
        match name.try_as_str() {
            Some(Some(name)) => {
                Ok(lock(&self.variables.0).get(&name.to_lowercase()).cloned().unwrap_or(ScalarValue::Null))
            }
            _ => plan_err!("getvariable: takes a name as text"),
        }
    }
}

impl PartialEq for Variable {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.variables, &other.variables)
    }
}

impl Eq for Variable {}

impl std::hash::Hash for Variable {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.variables).hash(state);
    }
}

impl ScalarUDFImpl for Variable {
    fn name(&self) -> &'static str {
        "plinth_variable"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Null)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let Some(Some(name)) = args.scalar_arguments.first() else {
            return plan_err!("getvariable: takes a name as text");
        };
        Ok(Arc::new(Field::new(self.name(), self.value(name)?.data_type(), true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match args.args.first() {
            Some(ColumnarValue::Scalar(name)) => Ok(ColumnarValue::Scalar(self.value(name)?)),
            _ => exec_err!("getvariable: takes a name as text"),
        }
    }

    fn simplify(&self, args: Vec<Expr>, _: &SimplifyContext) -> Result<ExprSimplifyResult> {
        match args.first() {
            Some(Expr::Literal(name, _)) => Ok(ExprSimplifyResult::Simplified(lit(self.value(name)?))),
            _ => Ok(ExprSimplifyResult::Original(args)),
        }
    }
}
