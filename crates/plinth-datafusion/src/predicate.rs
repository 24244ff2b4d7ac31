//! The engine's predicates as Plinth's.

use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, Schema};
use datafusion_common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion_common::{DataFusionError, Result, ScalarValue};
use datafusion_datasource::TableSchema;
use datafusion_expr::{ColumnarValue, Operator};
use datafusion_physical_expr::async_scalar_function::AsyncFuncExpr;
use datafusion_physical_expr::expressions::{
    BinaryExpr, CastExpr, Column, InListExpr, IsNotNullExpr, IsNullExpr, LikeExpr, Literal, NotExpr, TryCastExpr,
    UnKnownColumn,
};
use datafusion_physical_expr::{HigherOrderFunctionExpr, expressions::LambdaExpr};
use datafusion_physical_expr_common::physical_expr::{PhysicalExpr, is_volatile};
use plinth_encoding::expr::{CompareOp, Expr, Function, Path, Scalar};

use crate::columns::{FileColumns, Leaf};
use crate::function::EngineFunction;
use crate::keys::InKeys;
use crate::pattern;
use crate::scalar::to_plinth;

/// Whether a scan can take a conjunct and answer for it in every file of the table, whatever is missing there: it must be
/// boolean, give equal answers for equal rows, and be evaluated row by row from the table's columns.
pub fn can_own(expr: &Arc<dyn PhysicalExpr>, table: &TableSchema) -> bool {
    let schema = table.schema_without_virtual_columns();
    let columns = schema.fields().len();
    if is_volatile(expr) {
        return false;
    }
    let mut known = true;
    let walked = expr.apply(|node| {
        known &= match node.downcast_ref::<Column>() {
            Some(column) => column.index() < columns,
            None => {
                !(node.is::<UnKnownColumn>()
                    || node.is::<AsyncFuncExpr>()
                    || node.is::<HigherOrderFunctionExpr>()
                    || node.is::<LambdaExpr>())
            }
        };
        Ok(if known { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
    });
    walked.is_ok() && known && matches!(expr.data_type(schema), Ok(DataType::Boolean))
}

/// Translates predicates over a table's columns into predicates over one file's.
///
/// Comparisons, IN lists, null tests, prefix patterns and boolean logic over stored columns and struct fields become
/// expressions the scan evaluates on encoded data. Columns the file lacks are null there, and fold away. Whatever else a
/// predicate holds becomes an opaque [`Function`] of the columns it reads. Nothing is ever dropped.
#[derive(Clone, Debug)]
pub struct PredicateTranslator {
    columns: FileColumns,
}

impl PredicateTranslator {
    /// For one file of a table: its own schema, and its values of the table's partition columns, if the table has any.
    ///
    /// # Errors
    /// If a partition column has no value.
    pub fn try_new(table: &TableSchema, file: &Schema, partition_values: &[ScalarValue]) -> Result<Self> {
        Ok(Self { columns: FileColumns::new(table, file, partition_values)? })
    }

    pub(crate) fn from_columns(columns: FileColumns) -> Self {
        Self { columns }
    }

    /// Translates a predicate.
    ///
    /// # Errors
    /// If it reads none of the file's columns and can't be evaluated, or mentions columns the table does not have.
    pub fn translate(&self, expr: &Arc<dyn PhysicalExpr>) -> Result<Expr> {
        if let Some(value) = self.constant(expr)? {
            return truth_of(&value).map(Expr::Literal);
        }
        Ok(match self.known(expr)? {
            Some(translated) => translated,
            None => self.opaque(expr)?,
        })
    }

    /// The translation of a shape we know how to evaluate, or `None`.
    fn known(&self, expr: &Arc<dyn PhysicalExpr>) -> Result<Option<Expr>> {
        if let Some(leaf) = self.columns.leaf(expr) {
            return Ok((leaf.field.data_type() == &DataType::Boolean)
                .then(|| compare(leaf.path, CompareOp::Eq, Scalar::Bool(true))));
        }
        if let Some(binary) = expr.downcast_ref::<BinaryExpr>() {
            return match binary.op() {
                Operator::And => self.all(expr, Operator::And).map(|parts| Some(Expr::And(parts))),
                Operator::Or => self.all(expr, Operator::Or).map(|parts| Some(Expr::Or(parts))),
                op => self.comparison(binary.left(), *op, binary.right()),
            };
        }
        if let Some(not) = expr.downcast_ref::<NotExpr>() {
            return self.translate(not.arg()).map(|inner| Some(negate(inner)));
        }
        if let Some(test) = expr.downcast_ref::<IsNullExpr>() {
            return Ok(self.columns.leaf(test.arg()).map(|leaf| Expr::IsNull(leaf.path)));
        }
        if let Some(test) = expr.downcast_ref::<IsNotNullExpr>() {
            return Ok(self.columns.leaf(test.arg()).map(|leaf| negate(Expr::IsNull(leaf.path))));
        }
        if let Some(list) = expr.downcast_ref::<InListExpr>() {
            return self.in_list(list);
        }
        if let Some(like) = expr.downcast_ref::<LikeExpr>() {
            return self.like(like);
        }
        if let Some(among) = expr.downcast_ref::<InKeys>() {
            return Ok(self.comparable(among.expr()).and_then(|leaf| {
                // Only where what is stored is the number itself.
                let same = leaf.stored == *leaf.field.data_type() || leaf.stored.is_integer();
                let keys = Arc::clone(among.keys());
                (same && InKeys::can_be_of(&leaf.stored)).then_some(Expr::Keys { column: leaf.path, keys })
            }));
        }
        Ok(None)
    }

    /// The translated operands of a chain of ANDs or ORs, however deep the engine nested them.
    fn all(&self, expr: &Arc<dyn PhysicalExpr>, op: Operator) -> Result<Vec<Expr>> {
        let mut parts = Vec::new();
        let mut pending = vec![expr];
        while let Some(next) = pending.pop() {
            match next.downcast_ref::<BinaryExpr>().filter(|binary| *binary.op() == op) {
                Some(binary) => pending.extend([binary.right(), binary.left()]),
                None => parts.push(self.translate(next)?),
            }
        }
        Ok(parts)
    }

    fn comparison(
        &self,
        left: &Arc<dyn PhysicalExpr>,
        op: Operator,
        right: &Arc<dyn PhysicalExpr>,
    ) -> Result<Option<Expr>> {
        let (leaf, op, value) = match (self.comparable(left), self.comparable(right)) {
            (Some(leaf), None) => (leaf, op, self.constant(right)?),
            (None, Some(leaf)) => match op.swap() {
                Some(op) => (leaf, op, self.constant(left)?),
                None => return Ok(None),
            },
            _ => return Ok(None),
        };
        let Some(value) = value else { return Ok(None) };
        let path = leaf.path;
        if value.is_null() {
            return Ok(match op {
                Operator::IsDistinctFrom => Some(negate(Expr::IsNull(path))),
                Operator::IsNotDistinctFrom => Some(Expr::IsNull(path)),
                _ if compare_op(op).is_some() => Some(Expr::Literal(None)),
                _ => None,
            });
        }
        // In the terms of the file's own type; where that needs a conversion, the column is converted instead.
        let Some(value) = to_plinth(&value, &leaf.stored) else { return Ok(None) };
        Ok(match (compare_op(op), op) {
            (Some(op), _) => Some(compare(path, op, value)),
            (None, Operator::IsDistinctFrom) => {
                Some(Expr::Or(vec![Expr::IsNull(path.clone()), compare(path, CompareOp::NotEq, value)]))
            }
            (None, Operator::IsNotDistinctFrom) => {
                Some(Expr::And(vec![negate(Expr::IsNull(path.clone())), compare(path, CompareOp::Eq, value)]))
            }
            _ => None,
        })
    }

    fn in_list(&self, list: &InListExpr) -> Result<Option<Expr>> {
        let Some(leaf) = self.comparable(list.expr()) else { return Ok(None) };
        if list.is_empty() {
            return Ok(None);
        }
        let mut values = Vec::with_capacity(list.len());
        let mut has_null = false;
        for item in list.list() {
            let value = match item.downcast_ref::<Literal>() {
                Some(literal) => literal.value().clone(),
                None => match self.constant(item)? {
                    Some(value) => value,
                    None => return Ok(None),
                },
            };
            if value.is_null() {
                has_null = true;
                continue;
            }
            match to_plinth(&value, &leaf.stored) {
                // The engine takes both zeros of floats for one.
                Some(Scalar::Float(0.0)) => values.extend([Scalar::Float(-0.0), Scalar::Float(0.0)]),
                Some(value) => values.push(value),
                None => return Ok(None),
            }
        }
        let member = match (values.is_empty(), has_null) {
            (true, _) => Expr::Literal(None),
            (false, false) => Expr::In { column: leaf.path, values },
            (false, true) => Expr::Or(vec![Expr::In { column: leaf.path, values }, Expr::Literal(None)]),
        };
        Ok(Some(if list.negated() { negate(member) } else { member }))
    }

    fn like(&self, like: &LikeExpr) -> Result<Option<Expr>> {
        if like.case_insensitive() {
            return Ok(None);
        }
        let Some(leaf) = self.comparable(like.expr()) else { return Ok(None) };
        if !is_text(leaf.field.data_type()) {
            return Ok(None);
        }
        Ok(match self.constant(like.pattern())? {
            Some(ScalarValue::Utf8(text) | ScalarValue::LargeUtf8(text) | ScalarValue::Utf8View(text)) => match text {
                Some(text) => {
                    let like_expr = pattern::like(&leaf.path, &text);
                    if like.negated() { like_expr.map(negate) } else { like_expr }
                }
                None => Some(Expr::Literal(None)),
            },
            _ => None,
        })
    }

    /// A stored column or struct field, perhaps under casts that change neither its values nor their order.
    fn comparable(&self, expr: &Arc<dyn PhysicalExpr>) -> Option<Leaf> {
        if let Some(leaf) = self.columns.leaf(expr) {
            return Some(leaf);
        }
        let (inner, to) = match (expr.downcast_ref::<CastExpr>(), expr.downcast_ref::<TryCastExpr>()) {
            (Some(cast), _) => (cast.expr(), cast.cast_type()),
            (_, Some(cast)) => (cast.expr(), cast.cast_type()),
            _ => return None,
        };
        let leaf = self.columns.leaf(inner)?;
        is_lossless(leaf.field.data_type(), to).then_some(leaf)
    }

    /// The one value an expression has in this file, if it reads nothing that is stored there.
    fn constant(&self, expr: &Arc<dyn PhysicalExpr>) -> Result<Option<ScalarValue>> {
        if let Some(literal) = expr.downcast_ref::<Literal>() {
            return Ok(Some(literal.value().clone()));
        }
        if !self.columns.is_constant(expr)? {
            return Ok(None);
        }
        let bound = self.columns.bind(std::slice::from_ref(expr))?;
        let options = RecordBatchOptions::new().with_row_count(Some(1));
        let row = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), Vec::new(), &options)?;
        let Some(expr) = bound.exprs.first() else { return Ok(None) };
        Ok(Some(match expr.evaluate(&row)? {
            ColumnarValue::Scalar(value) => value,
            ColumnarValue::Array(array) => ScalarValue::try_from_array(&array, 0)?,
        }))
    }

    fn opaque(&self, expr: &Arc<dyn PhysicalExpr>) -> Result<Expr> {
        let bound = self.columns.bind(std::slice::from_ref(expr))?;
        let schema = Arc::new(bound.schema());
        let columns = bound.leaves.iter().map(|leaf| leaf.path.clone()).collect();
        let Some(expr) = bound.exprs.into_iter().next() else {
            return Err(DataFusionError::Internal("a predicate vanished while it was bound to a file".to_owned()));
        };
        Ok(Expr::Function(Function { columns, function: Arc::new(EngineFunction::new(expr, schema)) }))
    }
}

/// A comparison as the engine means it. It takes the two zeros of floats for one, where Plinth's total order has `-0.0`
/// before `0.0`, so a comparison with zero takes the zero that makes it hold, or fail, for both.
fn compare(column: Path, op: CompareOp, value: Scalar) -> Expr {
    // A float pattern takes both zeros for one, too.
    let value = match (value, op) {
        (Scalar::Float(0.0), CompareOp::Eq | CompareOp::NotEq) => {
            let zeros = Expr::In { column, values: vec![Scalar::Float(-0.0), Scalar::Float(0.0)] };
            return if op == CompareOp::Eq { zeros } else { negate(zeros) };
        }
        (Scalar::Float(0.0), CompareOp::Lt | CompareOp::GtEq) => Scalar::Float(-0.0),
        (Scalar::Float(0.0), CompareOp::LtEq | CompareOp::Gt) => Scalar::Float(0.0),
        (value, _) => value,
    };
    Expr::Compare { column, op, value }
}

fn negate(expr: Expr) -> Expr {
    match expr {
        Expr::Not(inner) => *inner,
        Expr::Literal(value) => Expr::Literal(value.map(|value| !value)),
        other => Expr::Not(Box::new(other)),
    }
}

fn truth_of(value: &ScalarValue) -> Result<Option<bool>> {
    match value {
        ScalarValue::Boolean(truth) => Ok(*truth),
        ScalarValue::Null => Ok(None),
        other => Err(DataFusionError::Internal(format!("a predicate is the constant {other}, which is not boolean"))),
    }
}

fn compare_op(op: Operator) -> Option<CompareOp> {
    Some(match op {
        Operator::Eq => CompareOp::Eq,
        Operator::NotEq => CompareOp::NotEq,
        Operator::Lt => CompareOp::Lt,
        Operator::LtEq => CompareOp::LtEq,
        Operator::Gt => CompareOp::Gt,
        Operator::GtEq => CompareOp::GtEq,
        _ => return None,
    })
}

fn is_text(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

/// Whether every value of `from` is the same value, in the same order, as a `to`.
fn is_lossless(from: &DataType, to: &DataType) -> bool {
    use DataType::{
        Binary, BinaryView, Float16, Float32, Float64, Int8, Int16, Int32, Int64, LargeBinary, UInt8, UInt16, UInt32,
        UInt64,
    };
    if from == to || (is_text(from) && is_text(to)) {
        return true;
    }
    matches!(
        (from, to),
        (Int8, Int16 | Int32 | Int64)
            | (Int16, Int32 | Int64)
            | (Int32, Int64)
            | (UInt8, UInt16 | UInt32 | UInt64 | Int16 | Int32 | Int64)
            | (UInt16, UInt32 | UInt64 | Int32 | Int64)
            | (UInt32, UInt64 | Int64)
            | (Float16, Float32 | Float64)
            | (Float32, Float64)
            | (Binary | LargeBinary | BinaryView, Binary | LargeBinary | BinaryView)
    )
}
