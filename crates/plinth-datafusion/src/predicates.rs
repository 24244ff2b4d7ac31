//! The predicates of a source, translated for its files.

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock};

use datafusion_common::Result;
use datafusion_common::config::ConfigOptions;
use datafusion_common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion_datasource::TableSchema;
use datafusion_datasource::file::FileSource;
use datafusion_physical_expr::conjunction_opt;
use datafusion_physical_expr::expressions::DynamicFilterPhysicalExpr;
use datafusion_physical_expr::scalar_subquery::ScalarSubqueryExpr;
use datafusion_physical_expr_common::physical_expr::PhysicalExpr;
use datafusion_physical_plan::filter_pushdown::{FilterPushdownPropagation, PushedDown};
use plinth_core::sync::lock;
use plinth_encoding::expr::Expr;
use plinth_format::{AdaptiveStats, PushdownMode};

use crate::columns::FileColumns;
use crate::config::pushdown_mode;
use crate::dynamic::{EngineFilter, is_dynamic};
use crate::predicate::{PredicateTranslator, can_own};

/// The conjuncts a source has taken.
///
/// Partitions share their translations: a file remembers what a function answered for the values of a dictionary, and
/// knows a function by its address.
#[derive(Debug, Default)]
pub(crate) struct Predicates {
    /// To be applied exactly.
    pub(crate) owned: Vec<Arc<dyn PhysicalExpr>>,
    /// That change while the query runs.
    pub(crate) dynamic: Vec<Arc<dyn PhysicalExpr>>,
    /// When to evaluate them.
    mode: PushdownMode,
    /// What the scans have learned of them, which they share.
    stats: OnceLock<Arc<AdaptiveStats>>,
    translated: Mutex<Vec<(FileColumns, Arc<Translated>)>>,
}

/// Predicates over the columns of one file, or of several that have the same ones.
#[derive(Debug)]
pub(crate) struct Translated {
    pub(crate) owned: Vec<Expr>,
    pub(crate) dynamic: Vec<Arc<EngineFilter>>,
}

impl Translated {
    /// The filters that tighten while a scan runs, unless it ends after some rows: which these are, such a filter must not change.
    pub(crate) fn dynamic_within(&self, limit: Option<usize>) -> &[Arc<EngineFilter>] {
        if limit.is_some() { &[] } else { &self.dynamic }
    }
}

/// Kinds of files whose translations are kept. Partition columns can make every file its own kind.
const KEPT: usize = 64;

impl Predicates {
    /// Conjuncts to be applied exactly, at the times that are said.
    pub(crate) fn owning(owned: Vec<Arc<dyn PhysicalExpr>>, mode: PushdownMode) -> Self {
        Self { owned, mode, ..Self::default() }
    }

    /// When to evaluate them.
    pub(crate) fn mode(&self) -> PushdownMode {
        self.mode
    }

    /// What scans before have learned.
    pub(crate) fn stats(&self) -> Option<Arc<AdaptiveStats>> {
        self.stats.get().cloned()
    }

    /// Shares what a scan learns: all others take the first one's.
    pub(crate) fn share_stats(&self, stats: &Arc<AdaptiveStats>) {
        let _ = self.stats.set(Arc::clone(stats));
    }

    pub(crate) fn len(&self) -> usize {
        self.owned.len() + self.dynamic.len()
    }

    /// Takes filters that are pushed down to a source: those that it can own in every file of its table. `with` makes the
    /// source that has all predicates then, if there are more.
    pub(crate) fn push_down(
        &self,
        filters: Vec<Arc<dyn PhysicalExpr>>,
        table: &TableSchema,
        config: &ConfigOptions,
        with: impl FnOnce(Arc<Self>) -> Arc<dyn FileSource>,
    ) -> Result<FilterPushdownPropagation<Arc<dyn FileSource>>> {
        let (answers, predicates) = self.take(filters, table);
        let propagation = FilterPushdownPropagation::with_parent_pushdown_result(answers);
        let Some(predicates) = predicates else { return Ok(propagation) };
        let predicates = Self { mode: pushdown_mode(config), ..predicates };
        Ok(propagation.with_updated_node(with(Arc::new(predicates))))
    }

    /// Takes the filters it can own in every file of a table: whether it took each, and all it has then, if that is more.
    fn take(&self, filters: Vec<Arc<dyn PhysicalExpr>>, table: &TableSchema) -> (Vec<PushedDown>, Option<Self>) {
        let (mut owned, mut dynamic) = (self.owned.clone(), self.dynamic.clone());
        let answers = filters
            .into_iter()
            .map(|filter| {
                if !can_own(&filter, table) {
                    return PushedDown::No;
                }
                if !is_dynamic(&filter) {
                    keep(&mut owned, filter);
                    return PushedDown::Yes;
                }
                // A predicate that is more than a dynamic filter may mean more than its owner promises to check again.
                let whole = filter.is::<DynamicFilterPhysicalExpr>();
                keep(&mut dynamic, filter);
                if whole { PushedDown::Yes } else { PushedDown::No }
            })
            .collect();
        let taken = Self { owned, dynamic, mode: self.mode, ..Self::default() };
        (answers, Some(taken).filter(|taken| taken.len() > self.len()))
    }

    /// All of them, in a stable order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<dyn PhysicalExpr>> {
        self.owned.iter().chain(&self.dynamic)
    }

    /// Translates them for a file with these columns.
    pub(crate) fn translate(&self, columns: &FileColumns) -> Result<Arc<Translated>> {
        let mut translated = lock(&self.translated);
        if let Some((_, known)) = translated.iter().find(|(known, _)| known == columns) {
            return Ok(Arc::clone(known));
        }
        let translator = PredicateTranslator::from_columns(columns.clone());
        let filter = |expr: &Arc<dyn PhysicalExpr>| Arc::new(EngineFilter::new(Arc::clone(expr), translator.clone()));
        let new = Arc::new(Translated {
            owned: self.owned.iter().map(|expr| translator.translate(expr)).collect::<Result<_>>()?,
            dynamic: self.dynamic.iter().map(filter).collect(),
        });
        if translated.len() < KEPT && !self.owned.iter().any(has_subquery) {
            translated.push((columns.clone(), Arc::clone(&new)));
        }
        Ok(new)
    }
}

/// The predicates, and of a query that ran how they fared.
impl fmt::Display for Predicates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(predicate) = conjunction_opt(self.iter().cloned()) else { return Ok(()) };
        write!(f, ", predicate={predicate}")?;
        let Some(stats) = self.stats() else { return Ok(()) };
        let mode = if self.mode == PushdownMode::Auto { stats.mode() } else { self.mode };
        let conjuncts: Vec<String> = stats.report().iter().map(ToString::to_string).collect();
        write!(f, ", arm={mode}, retained_peak={}, conjuncts=[{}]", stats.retained_peak(), conjuncts.join(" | "))
    }
}

fn keep(conjuncts: &mut Vec<Arc<dyn PhysicalExpr>>, conjunct: Arc<dyn PhysicalExpr>) {
    if !conjuncts.contains(&conjunct) {
        conjuncts.push(conjunct);
    }
}

/// Whether an expression holds the result of a subquery, which may be another one when the plan runs again.
fn has_subquery(expr: &Arc<dyn PhysicalExpr>) -> bool {
    let mut found = false;
    let walked = expr.apply(|node| {
        found |= node.is::<ScalarSubqueryExpr>();
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    found || walked.is_err()
}
