//! Predicates that tighten while a query runs.

use std::sync::{Arc, Mutex};

use datafusion_physical_expr::DynamicFilterTracking;
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
        let predicate = snapshot.and_then(|expr| self.translator.translate(&expr)).unwrap_or(Expr::Literal(Some(true)));
        *current = Some((generation, predicate.clone()));
        Some((generation, predicate))
    }
}

impl std::fmt::Debug for EngineFilter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "EngineFilter({})", fmt_sql(self.expr.as_ref()))
    }
}
