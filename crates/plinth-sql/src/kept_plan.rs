//! What is kept of statements that run again and again.

use std::sync::{Arc, Mutex};

use datafusion::catalog::TableProvider;
use datafusion::common::TableReference;
use datafusion::common::config::ConfigOptions;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::sqlparser::ast;

use crate::values::Values;

/// What a statement that runs again and again keeps from one run to the next ([`Params::keeping`](crate::Params::keeping)): its plan.
#[derive(Debug, Default)]
pub struct KeptPlan(pub(crate) Mutex<Known>);

/// What is known of a statement.
#[derive(Clone, Debug, Default)]
pub(crate) enum Known {
    /// It has not run.
    #[default]
    Nothing,
    /// It is planned each time: it asks for the time of day, or reads what is no file.
    Unfit,
    Plan(Arc<Plan>),
}

/// A plan, and what it was made of.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) made_of: MadeOf,
    /// Whether rows have to come in the order of their tables.
    pub(crate) in_order: bool,
    /// With places for values.
    pub(crate) places: Arc<LogicalPlan>,
    /// With these values, as the optimizer leaves it.
    pub(crate) bound: Values,
    pub(crate) optimized: LogicalPlan,
}

/// What a plan is made of beside its statement.
#[derive(Clone, Debug)]
pub(crate) struct MadeOf {
    /// The values of an EXECUTE that are part of the statement.
    pub(crate) written: Vec<ast::Expr>,
    pub(crate) settings: Arc<ConfigOptions>,
    /// Statements of the session that were no queries.
    pub(crate) changes: u64,
    pub(crate) tables: Vec<(TableReference, Option<Arc<dyn TableProvider>>)>,
}

/// A statement that PREPARE has named.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// The PREPARE.
    pub(crate) statement: ast::Statement,
    pub(crate) plan: Arc<KeptPlan>,
}

impl Prepared {
    pub(crate) fn new(statement: ast::Statement) -> Self {
        Self { statement, plan: Arc::default() }
    }
}

impl MadeOf {
    /// Whether a plan of the same statement would be made of the same.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.written == other.written
            && self.changes == other.changes
            && Arc::ptr_eq(&self.settings, &other.settings)
            && self.tables.len() == other.tables.len()
            && self.tables.iter().zip(&other.tables).all(|(one, other)| one.0 == other.0 && is_same(&one.1, &other.1))
    }
}

/// A name that is no table may be one within the statement.
fn is_same(one: &Option<Arc<dyn TableProvider>>, other: &Option<Arc<dyn TableProvider>>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => Arc::ptr_eq(one, other),
        (None, None) => true,
        _ => false,
    }
}
