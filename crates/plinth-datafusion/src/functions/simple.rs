//! Functions of values that need no more than their arguments: a name, types, and what is done to arrays.

use std::hash::{Hash, Hasher};

use arrow_array::ArrayRef;
use arrow_schema::DataType;
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature};

/// A function of values.
#[derive(Clone)]
pub(super) struct Simple {
    pub(super) name: &'static str,
    pub(super) aliases: Vec<String>,
    pub(super) signature: Signature,
    pub(super) returns: fn(&[DataType]) -> Result<DataType>,
    pub(super) run: fn(&[ArrayRef]) -> Result<ArrayRef>,
}

impl Simple {
    pub(super) fn new(
        name: &'static str,
        signature: Signature,
        returns: fn(&[DataType]) -> Result<DataType>,
        run: fn(&[ArrayRef]) -> Result<ArrayRef>,
    ) -> Self {
        Self { name, aliases: Vec::new(), signature, returns, run }
    }

    pub(super) fn or(mut self, alias: &str) -> Self {
        self.aliases.push(alias.to_owned());
        self
    }

    pub(super) fn udf(self) -> ScalarUDF {
        self.into()
    }
}

impl std::fmt::Debug for Simple {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Simple").field(&self.name).finish()
    }
}

impl PartialEq for Simple {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Simple {}

impl Hash for Simple {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl ScalarUDFImpl for Simple {
    fn name(&self) -> &str {
        self.name
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        (self.returns)(arguments)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let constant = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let arrays = if constant {
            ColumnarValue::values_to_arrays(&args.args)?
        } else {
            args.args.into_iter().map(|arg| arg.into_array(args.number_rows)).collect::<Result<Vec<_>>>()?
        };
        let result = (self.run)(&arrays)?;
        if constant && !arrays.is_empty() {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&result, 0)?));
        }
        Ok(ColumnarValue::Array(result))
    }
}
