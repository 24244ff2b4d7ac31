//! `nextval('s')` and `currval('s')`.

use std::sync::Arc;

use arrow_array::Int64Array;
use arrow_schema::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue, TableReference, exec_err, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::Sequences;

/// The function that hands out numbers.
pub(crate) const NEXTVAL: &str = "nextval";

/// The function that says which number came last.
const CURRVAL: &str = "currval";

/// Both functions, over the sequences of a session.
pub(crate) fn functions(sequences: &Arc<Sequences>) -> [ScalarUDF; 2] {
    [NEXTVAL, CURRVAL].map(|name| {
        let signature = Signature::exact(vec![DataType::Utf8], Volatility::Volatile);
        SequenceFunction { name, sequences: Arc::clone(sequences), signature }.into()
    })
}

#[derive(Debug)]
struct SequenceFunction {
    name: &'static str,
    sequences: Arc<Sequences>,
    signature: Signature,
}

impl PartialEq for SequenceFunction {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && Arc::ptr_eq(&self.sequences, &other.sequences)
    }
}

impl Eq for SequenceFunction {}

impl std::hash::Hash for SequenceFunction {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl ScalarUDFImpl for SequenceFunction {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        match args.scalar_arguments.first() {
            Some(Some(_)) => Ok(Arc::new(Field::new(self.name, DataType::Int64, false))),
            _ => plan_err!("{}: takes the name of a sequence as a text, as in {}('s')", self.name, self.name),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some(ColumnarValue::Scalar(name)) = args.args.first() else {
            return exec_err!("{}: takes the name of a sequence as a text", self.name);
        };
        let Some(Some(name)) = name.try_as_str() else {
            return exec_err!("{}: the name of the sequence is NULL", self.name);
        };
        let defaults = &args.config_options.catalog;
        let name = TableReference::parse_str(name).resolve(&defaults.default_catalog, &defaults.default_schema);
        Ok(match self.name {
            CURRVAL => ColumnarValue::Scalar(ScalarValue::Int64(Some(self.sequences.last(&name)?))),
            _ => {
                let numbers = self.sequences.next(&name, args.number_rows)?;
                ColumnarValue::Array(Arc::new(Int64Array::from(numbers)))
            }
        })
    }
}
