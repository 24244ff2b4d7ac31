//! IN lists over the same operand, side by side.
//!
//! The engine puts two of them together: `x NOT IN (1) OR x NOT IN (2)` becomes TRUE, for no value is in both, and for a null,
//! too; `x IN (1, 2) AND x NOT IN (2, NULL)` becomes `x IN (1)`. Neither is so. Of `x = 1 OR x = 2` it makes such a list, too.
//! Operands that are not written alike it leaves alone, so all but the first are put into a function of their own, which gives back
//! what it is given.

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

/// An expression in whose conditions of AND, OR and NOT no two lists have the same operand. Goes over it once.
pub(super) fn kept_apart(expr: Expr) -> Result<Transformed<Expr>> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { op: Operator::And | Operator::Or, .. }) => condition(expr, &mut HashMap::new()),
        other => other.map_children(kept_apart),
    }
}

/// A part of a condition, before which so many lists had these operands.
#[allow(clippy::mutable_key_type, reason = "what changes in an expression has no part in its hash")]
fn condition(expr: Expr, operands: &mut HashMap<Expr, usize>) -> Result<Transformed<Expr>> {
    if let Some(operand) = operand_of(&expr) {
        let before = operands.entry(operand.clone()).or_default();
        let number = *before;
        *before += 1;
        return numbered(expr, number);
    }
    match expr {
        Expr::BinaryExpr(BinaryExpr { op: Operator::And | Operator::Or, .. }) | Expr::Not(_) => {
            expr.map_children(|part| condition(part, operands))
        }
        other => kept_apart(other),
    }
}

/// The operand of a list, or of `x = 1 OR x = 2`, of which the engine makes one.
fn operand_of(expr: &Expr) -> Option<&Expr> {
    let (mut pending, mut common) = match expr {
        Expr::InList(list) => return Some(written(&list.expr)),
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => (vec![left.as_ref(), right.as_ref()], None),
        _ => return None,
    };
    while let Some(next) = pending.pop() {
        let operand = match next {
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => {
                pending.extend([left.as_ref(), right.as_ref()]);
                continue;
            }
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) => match compared(left, right)? {
                Side::Left => written(left),
                Side::Right => written(right),
            },
            Expr::InList(InList { expr, negated: false, .. }) => written(expr),
            _ => return None,
        };
        if *common.get_or_insert(operand) != operand {
            return None;
        }
    }
    common
}

enum Side {
    Left,
    Right,
}

/// The side of an equality that is a column, if the other is a constant.
fn compared(left: &Expr, right: &Expr) -> Option<Side> {
    let is_column = |side: &Expr| matches!(written(side), Expr::Column(_));
    match (is_column(left) && !right.any_column_refs(), is_column(right) && !left.any_column_refs()) {
        (true, _) => Some(Side::Left),
        (_, true) => Some(Side::Right),
        _ => None,
    }
}

/// A list, or alternatives that become one, before which so many had its operand.
fn numbered(expr: Expr, number: usize) -> Result<Transformed<Expr>> {
    let apart = |operand: Expr| {
        let operand = bare(operand);
        if number == 0 { operand } else { Itself::of(operand, number) }
    };
    let numbered = match expr {
        Expr::BinaryExpr(BinaryExpr { op: Operator::Or, .. }) => {
            return expr.map_children(|part| numbered(part, number));
        }
        Expr::BinaryExpr(BinaryExpr { left, op: op @ Operator::Eq, right }) => {
            let (left, right) = match compared(&left, &right) {
                Some(Side::Left) => (Box::new(apart(*left)), right),
                Some(Side::Right) => (left, Box::new(apart(*right))),
                None => (left, right),
            };
            Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right }))
        }
        list @ Expr::InList(_) => list.map_children(kept_apart)?.update_data(|list| match list {
            Expr::InList(InList { expr, list, negated }) => {
                Expr::InList(InList { expr: Box::new(apart(*expr)), list, negated })
            }
            other => other,
        }),
        other => return kept_apart(other),
    };
    Ok(Transformed { transformed: numbered.transformed || number > 0, ..numbered })
}

/// An operand without the function that it was put into: a view's or a subquery's may have been looked at before.
fn bare(operand: Expr) -> Expr {
    match operand {
        Expr::ScalarFunction(mut function) if is_itself(&function.func) && function.args.len() == 1 => {
            function.args.remove(0)
        }
        other => other,
    }
}

/// An operand as it is once the engine has moved casts to the values of the list.
fn written(operand: &Expr) -> &Expr {
    match operand {
        Expr::Cast(Cast { expr, .. }) | Expr::TryCast(TryCast { expr, .. }) => written(expr),
        Expr::Alias(Alias { expr, .. }) => written(expr),
        Expr::ScalarFunction(function) if is_itself(&function.func) => match function.args.as_slice() {
            [operand] => written(operand),
            _ => operand,
        },
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
