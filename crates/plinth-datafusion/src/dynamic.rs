//! Predicates that tighten while a query runs.

use std::sync::Arc;

use datafusion_physical_expr::DynamicFilterTracking;
use datafusion_physical_expr_common::physical_expr::{
    PhysicalExpr, fmt_sql, snapshot_generation, snapshot_physical_expr,
};
use plinth_encoding::expr::Expr;
use plinth_format::DynamicFilter;

use crate::predicate::PredicateTranslator;

/// Whether a predicate holds anything that its owner (TopK, hash join, MIN/MAX) may still change.
pub(crate) fn is_dynamic(expr: &Arc<dyn PhysicalExpr>) -> bool {
    DynamicFilterTracking::classify(expr).contains_dynamic_filter()
}

/// A dynamic filter of the engine for one file. Any version of it may be applied: each only drops rows that its owner
/// would drop, and a version that can't be translated is one that drops none.
pub(crate) struct EngineFilter {
    expr: Arc<dyn PhysicalExpr>,
    translator: PredicateTranslator,
}

impl EngineFilter {
    pub(crate) fn new(expr: Arc<dyn PhysicalExpr>, translator: PredicateTranslator) -> Self {
        Self { expr, translator }
    }
}

impl DynamicFilter for EngineFilter {
    fn newer_than(&self, seen: u64) -> Option<(u64, Expr)> {
        // Read before the snapshot: an update in between is then seen again, never missed.
        let generation = snapshot_generation(&self.expr);
        if generation <= seen {
            return None;
        }
        let current = snapshot_physical_expr(Arc::clone(&self.expr));
        let predicate = current.and_then(|expr| self.translator.translate(&expr));
        Some((generation, predicate.unwrap_or(Expr::Literal(Some(true)))))
    }
}

impl std::fmt::Debug for EngineFilter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "EngineFilter({})", fmt_sql(self.expr.as_ref()))
    }
}
