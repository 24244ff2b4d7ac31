//! Predicates that tighten while a query runs.

use std::sync::{Arc, Mutex};

use arrow_schema::DataType;
use datafusion_common::tree_node::TreeNode;
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::Operator;
use datafusion_physical_expr::expressions::{BinaryExpr, Column, InListExpr, Literal, lit};
use datafusion_physical_expr::{DynamicFilterTracking, ScalarFunctionExpr};
use datafusion_physical_expr_common::physical_expr::{
    PhysicalExpr, fmt_sql, snapshot_generation, snapshot_physical_expr,
};
use plinth_core::sync::lock;
use plinth_encoding::expr::Expr;
use plinth_format::DynamicFilter;

use crate::predicate::PredicateTranslator;

/// Whether a predicate holds anything that its owner (TopK, hash join, MIN/MAX) may still change.
pub(crate) fn is_dynamic(expr: &Arc<dyn PhysicalExpr>) -> bool {
    DynamicFilterTracking::classify(expr).contains_dynamic_filter()
}

/// A dynamic filter of the engine for one file. Any version of it may be applied: each only drops rows that its owner
/// would drop, and a version that can't be translated is one that drops none.
///
/// All scans of files with the same columns share it: a version is translated once, and what a file remembers of its
/// functions serves them all.
pub(crate) struct EngineFilter {
    expr: Arc<dyn PhysicalExpr>,
    translator: PredicateTranslator,
    /// The newest version translated.
    current: Mutex<Option<(u64, Expr)>>,
}

impl EngineFilter {
    pub(crate) fn new(expr: Arc<dyn PhysicalExpr>, translator: PredicateTranslator) -> Self {
        Self { expr, translator, current: Mutex::new(None) }
    }
}

impl DynamicFilter for EngineFilter {
    fn newer_than(&self, seen: u64) -> Option<(u64, Expr)> {
        // Read before the snapshot: an update in between is then seen again, never missed.
        let generation = snapshot_generation(&self.expr);
        if generation <= seen {
            return None;
        }
        let mut current = lock(&self.current);
        if let Some((version, predicate)) = &*current
            && *version >= generation
        {
            return Some((*version, predicate.clone()));
        }
        let snapshot = snapshot_physical_expr(Arc::clone(&self.expr));
        let predicate = snapshot.and_then(certain).and_then(|expr| self.translator.translate(&expr));
        let predicate = predicate.unwrap_or(Expr::Literal(Some(true)));
        *current = Some((generation, predicate.clone()));
        Some((generation, predicate))
    }
}

/// A filter without the conditions that do not hold for all rows that its owner keeps: those are true. The parts of AND and OR are looked
/// at by themselves.
fn certain(expr: Arc<dyn PhysicalExpr>) -> Result<Arc<dyn PhysicalExpr>> {
    if let Some(both) = expr.downcast_ref::<BinaryExpr>()
        && matches!(both.op(), Operator::And | Operator::Or)
    {
        let (left, right) = (certain(Arc::clone(both.left()))?, certain(Arc::clone(both.right()))?);
        return Ok(Arc::new(BinaryExpr::new(left, *both.op(), right)));
    }
    Ok(if expr.exists(|part| Ok(differs(part)))? { lit(true) } else { expr })
}

/// Whether a condition compares values that joins and sorts compare otherwise: lists and structs, which may have nulls within, and
/// floats that are made of columns, of which the engine tells zeros apart (those of columns the scan does not).
fn differs(expr: &Arc<dyn PhysicalExpr>) -> bool {
    if let Some(list) = expr.downcast_ref::<InListExpr>() {
        // Its values are of one type.
        return list.list().first().and_then(value_of).is_none_or(|value| is_uncertain(list.expr(), value));
    }
    match expr.downcast_ref::<BinaryExpr>() {
        Some(compared) if compared.op().supports_propagation() => {
            let sides = [(compared.left(), compared.right()), (compared.right(), compared.left())];
            sides.into_iter().any(|(of, to)| value_of(to).is_some_and(|value| is_uncertain(of, value)))
        }
        _ => false,
    }
}

fn value_of(expr: &Arc<dyn PhysicalExpr>) -> Option<&ScalarValue> {
    expr.downcast_ref::<Literal>().map(Literal::value)
}

fn is_uncertain(of: &Arc<dyn PhysicalExpr>, value: &ScalarValue) -> bool {
    let keys = of.downcast_ref::<ScalarFunctionExpr>().filter(|function| function.name() == "struct");
    match value.data_type() {
        // The keys of a join, of which a null matches none.
        DataType::Struct(fields) if keys.is_some() => {
            fields.iter().any(|field| field.data_type().is_nested() || field.data_type().is_floating())
        }
        other => other.is_nested() || (other.is_floating() && !of.is::<Column>()),
    }
}

impl std::fmt::Debug for EngineFilter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "EngineFilter({})", fmt_sql(self.expr.as_ref()))
    }
}
