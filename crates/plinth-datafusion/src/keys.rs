//! Whether a value is among the keys of a join's other side.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch};
use arrow_buffer::BooleanBuffer;
use arrow_schema::{DataType, Schema};
use datafusion_common::{Result, internal_datafusion_err, internal_err};
use datafusion_expr::ColumnarValue;
use datafusion_physical_expr_common::physical_expr::PhysicalExpr;
use plinth_encoding::key_set::KeySet;
use plinth_exec::numbers::Numbers;

use crate::error::from_exec;

/// True of values that are in a set of keys, and perhaps of a few others; null of a null. It has no negation.
#[derive(Debug)]
pub(crate) struct InKeys {
    expr: Arc<dyn PhysicalExpr>,
    keys: Arc<KeySet>,
}

impl InKeys {
    pub(crate) fn new(expr: Arc<dyn PhysicalExpr>, keys: Arc<KeySet>) -> Self {
        Self { expr, keys }
    }

    /// Whether values of a type are numbers that are their integers, of at most 64 bits.
    pub(crate) fn can_be_of(data_type: &DataType) -> bool {
        match Numbers::of(data_type) {
            Some(Numbers::Signed(_)) => true,
            Some(Numbers::Unsigned(bytes)) => bytes < 8,
            _ => false,
        }
    }

    pub(crate) fn expr(&self) -> &Arc<dyn PhysicalExpr> {
        &self.expr
    }

    pub(crate) fn keys(&self) -> &Arc<KeySet> {
        &self.keys
    }
}

impl PartialEq for InKeys {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.keys, &other.keys) && self.expr.eq(&other.expr)
    }
}

impl Eq for InKeys {}

impl Hash for InKeys {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.keys).hash(state);
        self.expr.hash(state);
    }
}

impl fmt::Display for InKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (least, greatest) = self.keys.bounds();
        write!(f, "{} IN (keys from {least} to {greatest})", self.expr)
    }
}

impl PhysicalExpr for InKeys {
    fn data_type(&self, _: &Schema) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn nullable(&self, schema: &Schema) -> Result<bool> {
        self.expr.nullable(schema)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        let values: ArrayRef = self.expr.evaluate(batch)?.into_array(batch.num_rows())?;
        let numbers = Numbers::of(values.data_type())
            .filter(|_| Self::can_be_of(values.data_type()))
            .ok_or_else(|| internal_datafusion_err!("values of {} are no keys", values.data_type()))?;
        let mut read = [Vec::new()];
        numbers.read(values.as_ref(), &mut read).map_err(from_exec)?;
        let [read] = read;
        let found = BooleanBuffer::collect_bool(read.len(), |row| self.keys.contains(read[row]));
        Ok(ColumnarValue::Array(Arc::new(BooleanArray::new(found, values.logical_nulls()))))
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.expr]
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn PhysicalExpr>>) -> Result<Arc<dyn PhysicalExpr>> {
        match <[_; 1]>::try_from(children) {
            Ok([expr]) => Ok(Arc::new(Self::new(expr, Arc::clone(&self.keys)))),
            Err(children) => internal_err!("keys are looked for of one expression, not {}", children.len()),
        }
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}
