//! The order of lists and structs: NULL within one is larger than any value, as ORDER BY has it, and PostgreSQL.
//!
//! The engine's comparisons take it for the smallest.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray};
use arrow_cast::cast;
use arrow_schema::{DataType, SortOptions};
use datafusion::arrow::array::make_comparator;
use datafusion::arrow::buffer::{BooleanBuffer, NullBuffer};
use datafusion::arrow::compute::kernels::cmp;
use datafusion::arrow::compute::kernels::zip::zip;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, ScalarValue, internal_err};
use datafusion::logical_expr::expr::{Between, BinaryExpr, ScalarFunction};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::intervals::lengths;

/// A comparison of lists or structs by their order.
pub(super) fn compared(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let is_nested = |expr: &Expr| expr.get_type(schema).is_ok_and(|data_type| has_order(&data_type));
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if orders(op) && is_nested(&left) && is_nested(&right) => {
            Transformed::yes(call(*left, op, *right))
        }
        Expr::Between(Between { expr, negated, low, high })
            if [&expr, &low, &high].into_iter().all(|expr| is_nested(expr)) =>
        {
            let above = call((*expr).clone(), Operator::GtEq, *low);
            let within = above.and(call(*expr, Operator::LtEq, *high));
            Transformed::yes(if negated { Expr::Not(Box::new(within)) } else { within })
        }
        other => Transformed::no(other),
    }
}

fn orders(op: Operator) -> bool {
    matches!(op, Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq)
}

/// Whether values of a type have an order that is that of the values within them.
pub(super) fn has_order(data_type: &DataType) -> bool {
    use DataType::{FixedSizeList, LargeList, List, Struct};
    matches!(data_type, List(_) | LargeList(_) | FixedSizeList(..) | Struct(_))
}

fn call(left: Expr, op: Operator, right: Expr) -> Expr {
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(comparison(op)), vec![left, right]))
}

fn comparison(op: Operator) -> ScalarUDF {
    ScalarUDF::from(Ordered { op, signature: Signature::any(2, Volatility::Immutable) })
}

pub(super) fn comparisons() -> impl Iterator<Item = ScalarUDF> {
    [Operator::Lt, Operator::LtEq, Operator::Gt, Operator::GtEq].into_iter().map(comparison)
}

/// One of `<`, `<=`, `>` and `>=`.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Ordered {
    op: Operator,
    signature: Signature,
}

impl ScalarUDFImpl for Ordered {
    fn name(&self) -> &'static str {
        match self.op {
            Operator::Lt => "comes_before",
            Operator::LtEq => "comes_not_behind",
            Operator::Gt => "comes_behind",
            _ => "comes_not_before",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let constant = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if constant { 1 } else { args.number_rows };
        let arrays = args.args.into_iter().map(|arg| arg.into_array(rows)).collect::<Result<Vec<_>>>()?;
        let [left, right] = arrays.as_slice() else { return internal_err!("an order has two sides") };
        let result = compare(self.op, left, right)?;
        Ok(match constant {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&result, 0)?),
            false => ColumnarValue::Array(Arc::new(result)),
        })
    }
}

/// Compares values row by row; NULL where a side is NULL.
pub(super) fn compare(op: Operator, left: &ArrayRef, right: &ArrayRef) -> Result<BooleanArray> {
    if !left.data_type().is_nested() {
        return match op {
            Operator::Eq => Ok(cmp::eq(left, right)?),
            Operator::NotEq => Ok(cmp::neq(left, right)?),
            Operator::Lt => Ok(cmp::lt(left, right)?),
            Operator::LtEq => Ok(cmp::lt_eq(left, right)?),
            Operator::Gt => Ok(cmp::gt(left, right)?),
            Operator::GtEq => Ok(cmp::gt_eq(left, right)?),
            _ => internal_err!("{op} compares nothing"),
        };
    }
    let right = if left.data_type() == right.data_type() { Arc::clone(right) } else { cast(right, left.data_type())? };
    let order = make_comparator(left, &right, SortOptions { descending: false, nulls_first: false })?;
    let fits = |row: usize| {
        let order = order(row, row);
        match op {
            Operator::Eq => order.is_eq(),
            Operator::NotEq => order.is_ne(),
            Operator::Lt => order.is_lt(),
            Operator::LtEq => order.is_le(),
            Operator::Gt => order.is_gt(),
            _ => order.is_ge(),
        }
    };
    let values = BooleanBuffer::collect_bool(left.len(), fits);
    Ok(BooleanArray::new(values, NullBuffer::union(left.nulls(), right.nulls())))
}

/// `greatest` or `least` of values in whose order the engine errs.
pub(super) fn extreme(inner: Arc<ScalarUDF>, args: Vec<Expr>, greatest: bool) -> Expr {
    let function = ScalarUDF::from(Extreme { inner, greatest });
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(function), args))
}

/// Whether a function is one of these.
pub(super) fn is_own(function: &ScalarUDF) -> bool {
    function.inner().is::<Extreme>()
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Extreme {
    inner: Arc<ScalarUDF>,
    greatest: bool,
}

impl ScalarUDFImpl for Extreme {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(types)
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(types)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let constant = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if constant { 1 } else { args.number_rows };
        let mut arrays = args.args.into_iter().map(|arg| arg.into_array(rows));
        let Some(first) = arrays.next() else { return internal_err!("{} of nothing", self.name()) };
        let mut best = first?;
        let op = if self.greatest { Operator::Gt } else { Operator::Lt };
        for next in arrays {
            let next = next?;
            let better = match next.data_type() {
                DataType::Interval(_) => compare(op, &lengths(&next)?, &lengths(&best)?)?,
                _ => compare(op, &next, &best)?,
            };
            // NULL is none of them.
            let is_better = |row: usize| best.is_null(row) || (better.is_valid(row) && better.value(row));
            let better = BooleanArray::new(BooleanBuffer::collect_bool(rows, is_better), None);
            best = zip(&better, &next, &best)?;
        }
        Ok(match constant {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&best, 0)?),
            false => ColumnarValue::Array(best),
        })
    }
}
