//! Plans of statements that are prepared, kept from one run to the next.
//!
//! What is kept is the plan as the optimizer leaves it. Operators are made of it anew each time: they hold what a run has found, as filters that
//! tighten while it goes on. The plan is used again as long as nothing that it was made of has changed: the files of its
//! tables, settings, and what statements of the session define.

use std::any::Any;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, TableReference};
use datafusion::datasource::source_as_provider;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{Expr, LogicalPlan, Volatility};
use datafusion::sql::parser::Statement;
use datafusion::sql::planner::object_name_to_table_reference;
use datafusion::sql::sqlparser::ast::{self, TableFactor, Visit, Visitor, visit_relations};
use plinth_core::sync::lock;
use plinth_datafusion::PlinthTable;

use crate::kept_plan::{KeptPlan, Known, MadeOf, Plan};
use crate::planning::{self, Physical};
use crate::spread::Spreads;
use crate::{Params, Session};

/// A statement that is run, and where its plan is kept.
pub(crate) struct Keeping {
    pub(crate) kept: Arc<KeptPlan>,
    /// The values of an EXECUTE that are part of the statement, with places for the others.
    pub(crate) written: Vec<ast::Expr>,
}

impl Session {
    /// Whether plans are kept: those that are spread over processes are made there.
    pub(crate) fn keeps_plans(&self) -> bool {
        self.context.state_ref().read().config().get_extension::<Spreads>().is_none()
    }

    /// The operators of a plan that is kept, if it still says what the statement means.
    pub(crate) async fn kept_plan(&self, keeping: &Keeping, params: &Params) -> Result<Option<Physical>> {
        let Known::Plan(known) = lock(&keeping.kept.0).clone() else { return Ok(None) };
        if known.made_of.written != keeping.written {
            return Ok(None);
        }
        let references = known.made_of.tables.iter().map(|(reference, _)| reference.clone());
        if !known.made_of.is(&self.made_of(references.collect(), &keeping.written).await) {
            return Ok(None);
        }
        self.kept.grants.plan(&known.places, self.threads)?;
        let mut state = self.rewriter().state_in(known.in_order);
        if known.bound == *params.values() {
            return Ok(Some(planning::operators(state, &known.optimized).await?));
        }
        let bound = params.bind(known.places.as_ref().clone())?;
        let optimized = planning::optimized(&mut state, bound)?;
        let physical = planning::operators(state, &optimized).await?;
        let (made_of, places, in_order) = (known.made_of.clone(), Arc::clone(&known.places), known.in_order);
        let plan = Plan { made_of, in_order, places, bound: params.values().clone(), optimized };
        *lock(&keeping.kept.0) = Known::Plan(Arc::new(plan));
        Ok(Some(physical))
    }

    /// What a plan of a query would be made of now; none if it is not worth keeping. Before it is planned, so that what changes meanwhile is noticed.
    pub(crate) async fn to_be_kept(&self, keeping: &Keeping, statement: &Statement) -> Option<MadeOf> {
        let Statement::Statement(statement) = statement else { return None };
        if !matches!(**statement, ast::Statement::Query(_)) || matches!(*lock(&keeping.kept.0), Known::Unfit) {
            return None;
        }
        // What a function of tables gives may be rows by then: those of `glob` are files that are there now.
        if calls_for_rows(statement) {
            return None;
        }
        let mut references = Vec::new();
        let _ = visit_relations(statement, |name| {
            references.extend(object_name_to_table_reference(name.clone(), true).ok());
            ControlFlow::<()>::Continue(())
        });
        Some(self.made_of(references, &keeping.written).await)
    }

    /// Plans a query to its operators, and keeps the plan if it may be used again. `places` has places for values, `bound` has these.
    pub(crate) async fn planned_to_keep(
        &self,
        (keeping, made_of): (&Keeping, MadeOf),
        (mut state, in_order): (SessionState, bool),
        places: LogicalPlan,
        bound: LogicalPlan,
        params: &Params,
    ) -> Result<Physical> {
        let optimized = planning::optimized(&mut state, bound)?;
        let physical = planning::operators(state, &optimized).await?;
        *lock(&keeping.kept.0) = if is_lasting(&places, &made_of)? {
            let places = Arc::new(places);
            Known::Plan(Arc::new(Plan { made_of, in_order, places, bound: params.values().clone(), optimized }))
        } else {
            Known::Unfit
        };
        Ok(physical)
    }

    /// Counts a statement that may change what others mean.
    pub(crate) fn note_changes(&self, statement: &Statement) {
        let is_question = match statement {
            Statement::Explain(_) => true,
            Statement::Statement(statement) => matches!(
                **statement,
                ast::Statement::Query(_)
                    | ast::Statement::Prepare { .. }
                    | ast::Statement::Execute { .. }
                    | ast::Statement::Deallocate { .. }
            ),
            _ => false,
        };
        if !is_question {
            self.changes.fetch_add(1, Ordering::AcqRel);
        }
    }

    async fn made_of(&self, references: Vec<TableReference>, written: &[ast::Expr]) -> MadeOf {
        let settings = Arc::clone(self.context.state_ref().read().config().options());
        let changes = self.changes.load(Ordering::Acquire);
        let mut tables = Vec::with_capacity(references.len());
        for reference in references {
            let table = self.context.table_provider(reference.clone()).await.ok();
            tables.push((reference, table));
        }
        MadeOf { written: written.to_vec(), settings, changes, tables }
    }
}

/// Whether a function is called for its rows.
fn calls_for_rows(statement: &ast::Statement) -> bool {
    struct Calls;
    impl Visitor for Calls {
        type Break = ();

        fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
            match factor {
                TableFactor::Table { args: Some(_), .. }
                | TableFactor::Function { .. }
                | TableFactor::TableFunction { .. } => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        }
    }
    statement.visit(&mut Calls).is_break()
}

/// Whether a plan says the same whenever it is run over the same tables: all of these are files, by names of the statement, and no function has another
/// result each time.
fn is_lasting(plan: &LogicalPlan, made_of: &MadeOf) -> Result<bool> {
    let mut lasting = true;
    plan.apply_with_subqueries(|node| {
        match node {
            LogicalPlan::TableScan(scan) => {
                let provider = source_as_provider(&scan.source)?;
                let is_named = made_of.tables.iter().any(|(name, table)| *name == scan.table_name && table.is_some());
                lasting &= is_named && (provider.as_ref() as &dyn Any).is::<PlinthTable>();
            }
            LogicalPlan::Extension(_) | LogicalPlan::RecursiveQuery(_) => lasting = false,
            _ => {}
        }
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                match expr {
                    Expr::ScalarFunction(function) => {
                        lasting &= function.func.signature().volatility == Volatility::Immutable;
                    }
                    Expr::HigherOrderFunction(_) | Expr::ScalarVariable(..) => lasting = false,
                    _ => {}
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(lasting)
}
