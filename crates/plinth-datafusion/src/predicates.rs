//! The predicates of a source, translated for its files.

use std::sync::{Arc, Mutex, PoisonError};

use datafusion_common::Result;
use datafusion_common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion_physical_expr::scalar_subquery::ScalarSubqueryExpr;
use datafusion_physical_expr_common::physical_expr::PhysicalExpr;
use plinth_encoding::expr::Expr;

use crate::columns::FileColumns;
use crate::dynamic::EngineFilter;
use crate::predicate::PredicateTranslator;

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
    translated: Mutex<Vec<(FileColumns, Arc<Translated>)>>,
}

/// Predicates over the columns of one file, or of several that have the same ones.
#[derive(Debug)]
pub(crate) struct Translated {
    pub(crate) owned: Vec<Expr>,
    pub(crate) dynamic: Vec<Arc<EngineFilter>>,
}

/// Kinds of files whose translations are kept. Partition columns can make every file its own kind.
const KEPT: usize = 64;

impl Predicates {
    pub(crate) fn new(owned: Vec<Arc<dyn PhysicalExpr>>, dynamic: Vec<Arc<dyn PhysicalExpr>>) -> Self {
        Self { owned, dynamic, translated: Mutex::default() }
    }

    pub(crate) fn len(&self) -> usize {
        self.owned.len() + self.dynamic.len()
    }

    /// All of them, in a stable order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<dyn PhysicalExpr>> {
        self.owned.iter().chain(&self.dynamic)
    }

    /// Translates them for a file with these columns.
    pub(crate) fn translate(&self, columns: &FileColumns) -> Result<Arc<Translated>> {
        let mut translated = self.translated.lock().unwrap_or_else(PoisonError::into_inner);
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

/// Whether an expression holds the result of a subquery, which may be another one when the plan runs again.
fn has_subquery(expr: &Arc<dyn PhysicalExpr>) -> bool {
    let mut found = false;
    let walked = expr.apply(|node| {
        found |= node.is::<ScalarSubqueryExpr>();
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    found || walked.is_err()
}
