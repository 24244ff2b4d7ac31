//! What a session keeps for its statements beside tables: macros, variables and sequences.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use arrow_schema::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue, exec_err, plan_err};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility, lit,
};
use plinth_core::sync::lock;

use crate::grants::Grants;
use crate::habits::Macros;
use crate::sequences::Sequences;

/// What a session keeps for its statements.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) macros: Mutex<Arc<Macros>>,
    pub(crate) variables: Arc<Variables>,
    pub(crate) sequences: Arc<Sequences>,
    pub(crate) grants: Grants,
}

impl Kept {
    /// Nothing but the sequences of a session's folders.
    pub(crate) fn with(sequences: Arc<Sequences>, grants: Grants) -> Self {
        Self { macros: Mutex::default(), variables: Arc::default(), sequences, grants }
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
