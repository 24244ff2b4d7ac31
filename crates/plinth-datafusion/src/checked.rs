//! Integers that leave their type are an error, where the engine's would wrap around.
//!
//! The engine plans `a + b`, `a - b`, `a * b` and `-a` as operators that wrap. Behind its optimizer, which knows them, those of integers
//! become functions that look; those of constants become so before, as the optimizer computes them.

mod total;

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, Datum, PrimitiveArray};
use arrow_schema::{ArrowError, DataType, Field, FieldRef};
use datafusion_common::arrow::compute::kernels::numeric;
use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_common::{DFSchema, Result, ScalarValue, internal_datafusion_err, internal_err};
use datafusion_expr::expr::{BinaryExpr, ScalarFunction};
use datafusion_expr::expr_rewriter::NamePreserver;
use datafusion_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion_expr::utils::merge_schema;
use datafusion_expr::{
    ColumnarValue, Expr, ExprSchemable, LogicalPlan, Operator, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility,
};
use datafusion_physical_expr::ScalarFunctionExpr;
use datafusion_physical_expr::expressions::BinaryExpr as PhysicalBinary;
use datafusion_physical_expr_common::physical_expr::PhysicalExpr;

pub use total::checked_sum;

/// What is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// What is known of constants alone.
    Constants,
    /// All.
    All,
}

/// A plan whose integers are looked at.
///
/// # Errors
/// If an expression has no type.
pub fn checked_arithmetic(plan: LogicalPlan, which: Which) -> Result<Transformed<LogicalPlan>> {
    with_operators(plan, &|expr| is_candidate(expr, which), &with_check)
}

/// A plan with some of its expressions rewritten, given what their columns are, and with the names that its columns had.
///
/// # Errors
/// If an expression has no type.
pub(crate) fn with_operators(
    plan: LogicalPlan,
    is_candidate: &dyn Fn(&Expr) -> bool,
    rewrite: &dyn Fn(Expr, &DFSchema) -> Result<Transformed<Expr>>,
) -> Result<Transformed<LogicalPlan>> {
    let mut any = false;
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            any = any || expr.exists(|expr| Ok(is_candidate(expr)))?;
            Ok(if any { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })
    })?;
    if !any {
        return Ok(Transformed::no(plan));
    }
    plan.transform_up_with_subqueries(|node| {
        let mut schema = merge_schema(&node.inputs());
        if let LogicalPlan::TableScan(scan) = &node {
            schema.merge(&DFSchema::try_from_qualified_schema(scan.table_name.clone(), &scan.source.schema())?);
        }
        let names = NamePreserver::new(&node);
        node.map_expressions(|expr| {
            let name = names.save(&expr);
            let one = |expr: Expr| if is_candidate(&expr) { rewrite(expr, &schema) } else { Ok(Transformed::no(expr)) };
            let rewritten = expr.transform_up(one)?;
            Ok(if rewritten.transformed { rewritten.update_data(|expr| name.restore(expr)) } else { rewritten })
        })
    })
}

fn is_candidate(expr: &Expr, which: Which) -> bool {
    let operator = match expr {
        Expr::BinaryExpr(BinaryExpr { op, .. }) => Arithmetic::of(*op).is_some(),
        Expr::Negative(_) => true,
        _ => false,
    };
    operator && (which == Which::All || is_constant(expr))
}

/// What the optimizer computes, as it computes a function of a list with the operators within its lambda.
fn is_constant(expr: &Expr) -> bool {
    let varies = |expr: &Expr| {
        matches!(
            expr,
            Expr::Column(_)
                | Expr::OuterReferenceColumn(..)
                | Expr::ScalarSubquery(_)
                | Expr::AggregateFunction(_)
                | Expr::WindowFunction(_)
                | Expr::Placeholder(_)
        )
    };
    !expr.is_volatile() && expr.exists(|expr| Ok(varies(expr))).is_ok_and(|varies| !varies)
}

fn with_check(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let is_integer = |expr: &Expr| expr.get_type(schema).is_ok_and(|data_type| data_type.is_integer());
    let (arithmetic, args) = match expr {
        Expr::Negative(inner) if is_integer(&inner) => (Arithmetic::negation(), vec![*inner]),
        Expr::BinaryExpr(BinaryExpr { left, op, right })
            if is_integer(&left) && left.get_type(schema).ok() == right.get_type(schema).ok() =>
        {
            match Arithmetic::of(op) {
                Some(arithmetic) => (arithmetic, vec![*left, *right]),
                None => return internal_err!("{op} is no arithmetic"),
            }
        }
        other => return Ok(Transformed::no(other)),
    };
    let func = Arc::new(ScalarUDF::from(arithmetic));
    Ok(Transformed::yes(Expr::ScalarFunction(ScalarFunction { func, args })))
}

/// An operator and its sides.
pub(crate) type Operands<'a> = (Operator, &'a Arc<dyn PhysicalExpr>, &'a Arc<dyn PhysicalExpr>);

/// What an expression adds, subtracts or multiplies, whether it looks or not.
pub(crate) fn operands(expr: &Arc<dyn PhysicalExpr>) -> Option<Operands<'_>> {
    if let Some(binary) = expr.downcast_ref::<PhysicalBinary>() {
        return Some((*binary.op(), binary.left(), binary.right()));
    }
    let function = expr.downcast_ref::<ScalarFunctionExpr>()?;
    let arithmetic: &Arithmetic = function.fun().inner().downcast_ref()?;
    match (arithmetic.op, function.args()) {
        (Some(op), [left, right]) => Some((op, left, right)),
        _ => None,
    }
}

/// An operation on integers of one type.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Arithmetic {
    /// None if it negates.
    op: Option<Operator>,
    signature: Signature,
}

impl Arithmetic {
    fn of(op: Operator) -> Option<Self> {
        let known = matches!(op, Operator::Plus | Operator::Minus | Operator::Multiply);
        known.then(|| Self { op: Some(op), signature: Signature::user_defined(Volatility::Immutable) })
    }

    fn negation() -> Self {
        Self { op: None, signature: Signature::user_defined(Volatility::Immutable) }
    }

    /// What it stands for.
    fn operator(&self, args: &[Expr]) -> Result<Expr> {
        match (self.op, args) {
            (Some(op), [left, right]) => {
                Ok(Expr::BinaryExpr(BinaryExpr::new(Box::new(left.clone()), op, Box::new(right.clone()))))
            }
            (None | Some(Operator::Minus), [inner]) => Ok(Expr::Negative(Box::new(inner.clone()))),
            _ => internal_err!("{} was given {} arguments", self.name(), args.len()),
        }
    }
}

/// All that look. The one that subtracts negates, too, where it is found by its name.
pub(crate) fn operators() -> Vec<ScalarUDF> {
    let all = [Operator::Plus, Operator::Minus, Operator::Multiply];
    all.into_iter().filter_map(Arithmetic::of).map(ScalarUDF::from).collect()
}

/// Whether a function is one of them.
pub(crate) fn is_operator(function: &ScalarUDF) -> bool {
    function.inner().downcast_ref::<Arithmetic>().is_some()
}

impl ScalarUDFImpl for Arithmetic {
    fn name(&self) -> &'static str {
        match self.op {
            Some(Operator::Plus) => "+",
            Some(Operator::Multiply) => "*",
            _ => "-",
        }
    }

    fn display_name(&self, args: &[Expr]) -> Result<String> {
        Ok(self.operator(args)?.to_string())
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        Ok(self.operator(args)?.schema_name().to_string())
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        Ok(types.to_vec())
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        types.first().cloned().ok_or_else(|| internal_datafusion_err!("{} was given nothing", self.name()))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let types: Vec<DataType> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let nullable = args.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Arc::new(Field::new(self.name(), self.return_type(&types)?, nullable)))
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties> {
        Ok(match (self.op, inputs) {
            (Some(Operator::Plus), [left, right]) => left.sort_properties.add(&right.sort_properties),
            (Some(Operator::Minus), [left, right]) => left.sort_properties.sub(&right.sort_properties),
            (None | Some(Operator::Minus), [inner]) => -inner.sort_properties,
            _ if inputs.iter().all(|input| input.sort_properties == SortProperties::Singleton) => {
                SortProperties::Singleton
            }
            _ => SortProperties::Unordered,
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let result = match (self.op, args.args.as_slice()) {
            (Some(op), [left, right]) => {
                let kernel = match op {
                    Operator::Plus => numeric::add,
                    Operator::Minus => numeric::sub,
                    _ => numeric::mul,
                };
                let both = matches!((left, right), (ColumnarValue::Scalar(_), ColumnarValue::Scalar(_)));
                (kernel(datum(left)?.as_ref(), datum(right)?.as_ref()), both)
            }
            (None | Some(Operator::Minus), [inner]) => {
                let is_scalar = matches!(inner, ColumnarValue::Scalar(_));
                (negated(&inner.to_array(if is_scalar { 1 } else { args.number_rows })?), is_scalar)
            }
            _ => return internal_err!("{} was given {} arguments", self.name(), args.args.len()),
        };
        match result {
            (Ok(array), false) => Ok(ColumnarValue::Array(array)),
            (Ok(array), true) => Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?)),
            (Err(error), _) => Err(error.into()),
        }
    }
}

fn datum(value: &ColumnarValue) -> Result<Box<dyn Datum>> {
    Ok(match value {
        ColumnarValue::Array(array) => Box::new(Arc::clone(array)),
        ColumnarValue::Scalar(scalar) => Box::new(scalar.to_scalar()?),
    })
}

/// The negative of each integer.
fn negated(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    macro_rules! of {
        ($($variant:ident $primitive:ident),*) => {
            match array.data_type() {
                $(DataType::$variant => negative(array.as_primitive::<$primitive>()),)*
                other => Err(ArrowError::ComputeError(format!("{other} has no negative"))),
            }
        };
    }
    of!(
        Int8 Int8Type, Int16 Int16Type, Int32 Int32Type, Int64 Int64Type, UInt8 UInt8Type, UInt16 UInt16Type,
        UInt32 UInt32Type, UInt64 UInt64Type
    )
}

fn negative<T: ArrowPrimitiveType>(values: &PrimitiveArray<T>) -> Result<ArrayRef, ArrowError>
where
    T::Native: arrow_array::ArrowNativeTypeOp,
{
    use arrow_array::ArrowNativeTypeOp;
    // Of nulls nothing is asked.
    let checked = values.try_unary::<_, T, ArrowError>(|value| T::Native::ZERO.sub_checked(value));
    match checked {
        Ok(negative) => Ok(Arc::new(negative)),
        Err(error) => Err(error),
    }
}
