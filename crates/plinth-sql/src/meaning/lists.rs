//! IN lists over the same operand, side by side.
//!
//! The engine puts two of them together: `x NOT IN (1) OR x NOT IN (2)` becomes TRUE, for no value is in both, and for a null,
//! too; `x IN (1, 2) AND x NOT IN (2, NULL)` becomes `x IN (1)`. Neither is so. Operands that are not written alike it leaves
//! alone, so all but the first are put into a function of their own, which gives back what it is given.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::expr::{Alias, Cast, InList, ScalarFunction, TryCast};
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, Operator, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility,
};

/// An expression in whose conditions of AND, OR and NOT no two IN lists have the same operand. Goes over it once.
pub(super) fn kept_apart(expr: Expr) -> Result<Transformed<Expr>> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { op: Operator::And | Operator::Or, .. }) => condition(expr, &mut HashMap::new()),
        other => other.map_children(kept_apart),
    }
}

/// A part of a condition, before which so many lists had these operands.
#[allow(clippy::mutable_key_type, reason = "what changes in an expression has no part in its hash")]
fn condition(expr: Expr, operands: &mut HashMap<Expr, usize>) -> Result<Transformed<Expr>> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { op: Operator::And | Operator::Or, .. }) | Expr::Not(_) => {
            expr.map_children(|part| condition(part, operands))
        }
        Expr::InList(list) => Expr::InList(list).map_children(kept_apart)?.transform_data(|list| {
            let Expr::InList(InList { expr, list, negated }) = list else { return Ok(Transformed::no(list)) };
            let operand = bare(*expr);
            let before = operands.entry(without_casts(&operand).clone()).or_default();
            let apart = if *before == 0 { operand } else { Itself::of(operand, *before) };
            *before += 1;
            let list = Expr::InList(InList { expr: Box::new(apart), list, negated });
            Ok(if *before > 1 { Transformed::yes(list) } else { Transformed::no(list) })
        }),
        other => kept_apart(other),
    }
}

/// An operand as it was written: a view's or a subquery's may have been looked at before.
fn bare(operand: Expr) -> Expr {
    match operand {
        Expr::ScalarFunction(mut function) if function.func.inner().is::<Itself>() && function.args.len() == 1 => {
            function.args.remove(0)
        }
        other => other,
    }
}

/// An operand as it is once the engine has moved casts to the values of the list.
fn without_casts(operand: &Expr) -> &Expr {
    match operand {
        Expr::Cast(Cast { expr, .. }) | Expr::TryCast(TryCast { expr, .. }) => without_casts(expr),
        Expr::Alias(Alias { expr, .. }) => without_casts(expr),
        other => other,
    }
}

/// The identity, which differs from that of another number.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Itself {
    number: usize,
    signature: Signature,
}

impl Itself {
    pub(super) fn of(operand: Expr, number: usize) -> Expr {
        Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(itself(number)), vec![operand]))
    }
}

pub(super) fn itself(number: usize) -> ScalarUDF {
    ScalarUDF::from(Itself { number, signature: Signature::any(1, Volatility::Immutable) })
}

/// Whether a function is an identity, of whatever number.
pub(super) fn is_itself(function: &ScalarUDF) -> bool {
    function.inner().is::<Itself>()
}

impl ScalarUDFImpl for Itself {
    fn name(&self) -> &'static str {
        "itself"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        let [one] = arguments else { return internal_err!("itself: of one value") };
        Ok(one.clone())
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let [one] = arguments.arg_fields else { return internal_err!("itself: of one value") };
        Ok(Arc::clone(one))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [value] = arguments.args.as_slice() else { return internal_err!("itself: of one value") };
        Ok(value.clone())
    }
}
