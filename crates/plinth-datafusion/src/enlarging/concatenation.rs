//! The operator `||` of text as a function, so that its result is asked for: one that doubles a text in each round of a recursion
//! soon makes more than there is.

use std::sync::Arc;

use arrow_array::Array;
use arrow_schema::{DataType, Field, FieldRef};
use datafusion_common::arrow::compute::kernels::concat_elements::concat_elements_dyn;
use datafusion_common::tree_node::Transformed;
use datafusion_common::{DFSchema, Result, ScalarValue, internal_datafusion_err, internal_err};
use datafusion_expr::expr::{BinaryExpr, ScalarFunction};
use datafusion_expr::{
    ColumnarValue, Expr, ExprSchemable, LogicalPlan, Operator, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility,
};
use plinth_io::MemoryBudget;

use super::{Bounded, Growth};
use crate::checked::with_operators;

/// A plan whose `||` of text is held to a budget; after the optimizer, which knows the operator.
///
/// # Errors
/// If an expression has no type.
pub fn bounded_concatenation(plan: LogicalPlan, budget: &Arc<MemoryBudget>) -> Result<LogicalPlan> {
    let is_candidate = |expr: &Expr| matches!(expr, Expr::BinaryExpr(binary) if binary.op == Operator::StringConcat);
    let rewrite = |expr: Expr, schema: &DFSchema| with_function(expr, schema, budget);
    Ok(with_operators(plan, &is_candidate, &rewrite)?.data)
}

fn with_function(expr: Expr, schema: &DFSchema, budget: &Arc<MemoryBudget>) -> Result<Transformed<Expr>> {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = expr else {
        return internal_err!("{expr} joins no text");
    };
    let types = (left.get_type(schema)?, right.get_type(schema)?);
    let is_text = matches!(types.0, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View) && types.0 == types.1;
    if !is_text {
        return Ok(Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })));
    }
    let func = Arc::new(concatenation(budget));
    Ok(Transformed::yes(Expr::ScalarFunction(ScalarFunction { func, args: vec![*left, *right] })))
}

/// The function, held to a budget.
pub(crate) fn concatenation(budget: &Arc<MemoryBudget>) -> ScalarUDF {
    let inner = Arc::new(ScalarUDF::from(Concatenation::default()));
    Bounded { inner, growth: Growth::Joined, budget: Arc::clone(budget) }.into()
}

/// Whether a function is that one.
pub(crate) fn is_concatenation(function: &ScalarUDF) -> bool {
    let bounded = function.inner().downcast_ref::<Bounded>();
    bounded.is_some_and(|bounded| bounded.inner.inner().downcast_ref::<Concatenation>().is_some())
}

/// Two texts in a row.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Concatenation {
    signature: Signature,
}

impl Default for Concatenation {
    fn default() -> Self {
        Self { signature: Signature::user_defined(Volatility::Immutable) }
    }
}

/// What the function stands for.
fn operator(args: &[Expr]) -> Result<Expr> {
    let [left, right] = args else { return internal_err!("|| was given {} arguments", args.len()) };
    let (left, right) = (Box::new(left.clone()), Box::new(right.clone()));
    Ok(Expr::BinaryExpr(BinaryExpr::new(left, Operator::StringConcat, right)))
}

impl ScalarUDFImpl for Concatenation {
    fn name(&self) -> &'static str {
        "||"
    }

    fn display_name(&self, args: &[Expr]) -> Result<String> {
        Ok(operator(args)?.to_string())
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        Ok(operator(args)?.schema_name().to_string())
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        Ok(types.to_vec())
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        types.first().cloned().ok_or_else(|| internal_datafusion_err!("|| was given nothing"))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let types: Vec<DataType> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let nullable = args.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Arc::new(Field::new(self.name(), self.return_type(&types)?, nullable)))
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [left, right] = args.args.as_slice() else {
            return internal_err!("|| was given {} arguments", args.args.len());
        };
        let one = matches!((left, right), (ColumnarValue::Scalar(_), ColumnarValue::Scalar(_)));
        let rows = if one { 1 } else { args.number_rows };
        let (left, right) = (left.to_array(rows)?, right.to_array(rows)?);
        let joined = concat_elements_dyn(&left as &dyn Array, &right as &dyn Array)?;
        Ok(if one {
            ColumnarValue::Scalar(ScalarValue::try_from_array(&joined, 0)?)
        } else {
            ColumnarValue::Array(joined)
        })
    }
}
