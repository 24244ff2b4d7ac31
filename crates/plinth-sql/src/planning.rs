//! From a statement to the rows of its plan, with as little work as the statement needs: planning is most of a short query's time.
//!
//! docs/design/execution.md says what was measured.

use std::sync::Arc;

use arrow_schema::SchemaRef;
use datafusion::catalog::CatalogProviderList;
use datafusion::common::Result;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::execution::session_state::SessionState;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::optimizer::Optimizer;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::sql::parser::Statement;
use plinth_profile::Profiler;

use crate::narrow::{Narrow, Words};
use crate::readable::{Readable, asks_of_tables};
use crate::spread::{Spread, Spreading, Spreads, recorded};

/// Passes of the optimizer over a plan of one table: the second sees what the first made, and a third would find nothing to do.
const PASSES: usize = 2;

/// Plans a statement over tables of the columns that it names. What fails is planned again over whole tables: errors list columns.
pub(crate) async fn logical(state: &mut SessionState, statement: Statement) -> Result<LogicalPlan> {
    // Its tables tell of the columns of all others.
    let told = state.config_options().catalog.default_schema == "information_schema";
    let words = if told { None } else { Words::of(&statement) };
    let all = Arc::clone(state.catalog_list());
    let seen: Arc<dyn CatalogProviderList> = match words {
        Some(words) => Narrow::new(Arc::clone(&all), &Arc::new(words)),
        None if asks_of_tables(&statement) => Readable::new(Arc::clone(&all)),
        None => return state.statement_to_plan(statement).await,
    };
    state.register_catalog_list(seen);
    let plan = state.statement_to_plan(statement.clone()).await;
    state.register_catalog_list(all);
    match plan {
        Ok(plan) => Ok(plan),
        Err(_) => state.statement_to_plan(statement).await,
    }
}

/// A query that can be started.
#[derive(Debug)]
pub(crate) struct Physical {
    plan: Arc<dyn ExecutionPlan>,
    context: Arc<TaskContext>,
    spread: Option<Where>,
}

/// Where a query of a session runs whose queries are spread.
#[derive(Debug)]
pub(crate) enum Where {
    /// In several processes.
    There(Arc<dyn Spread>),
    /// In this one; why.
    Here(String),
}

impl Physical {
    pub(crate) fn schema(&self) -> SchemaRef {
        self.plan.schema()
    }

    /// Its operators.
    pub(crate) fn plan(&self) -> Arc<dyn ExecutionPlan> {
        Arc::clone(&self.plan)
    }

    /// Where it runs, if queries of its session are spread.
    pub(crate) fn place(&self) -> Option<&Where> {
        self.spread.as_ref()
    }

    pub(crate) fn start(self) -> Result<SendableRecordBatchStream> {
        let rows = execute_stream(Arc::clone(&self.plan), self.context)?;
        let profiler = Profiler::current();
        Ok(match self.spread {
            Some(Where::There(spread)) if profiler.is_recording() => recorded(rows, self.plan, spread, profiler),
            _ => rows,
        })
    }
}

/// Plans a query to its operators.
pub(crate) async fn physical(mut state: SessionState, plan: LogicalPlan) -> Result<Physical> {
    let spreads = state.config().get_extension::<Spreads>();
    let mut spread = None;
    if let Some(spreads) = spreads {
        match spreads.0.plan(&state, &plan).await? {
            Spreading::Over(plan, context) => {
                return Ok(Physical { plan, context, spread: Some(Where::There(Arc::clone(&spreads.0))) });
            }
            Spreading::Here(why) => spread = Some(Where::Here(why)),
        }
    }
    let optimized = optimized(&mut state, plan)?;
    Ok(Physical { spread, ..operators(state, &optimized).await? })
}

/// The operators of a plan that the optimizer has seen, in this process.
pub(crate) async fn operators(state: SessionState, optimized: &LogicalPlan) -> Result<Physical> {
    let plan = state.query_planner().create_physical_plan(optimized, &state).await?;
    Ok(Physical { plan, context: state.task_ctx(), spread: None })
}

/// A plan as the engine would have it, without the rules that would find nothing to do.
///
/// # Errors
/// If a rule finds that it can't be planned.
pub fn optimized(state: &mut SessionState, plan: LogicalPlan) -> Result<LogicalPlan> {
    let analyzed = state.analyzer().execute_and_check(plan, state.config_options(), |_, _| {})?;
    let shape = Shape::of(&analyzed)?;
    if !shape.several && state.config_options().optimizer.max_passes > PASSES {
        state.config_mut().options_mut().optimizer.max_passes = PASSES;
    }
    let rules = state.optimizers().iter().filter(|rule| shape.concerns(rule.name())).cloned().collect();
    Optimizer::with_rules(rules).optimize(analyzed, state, |_, _| {})
}

/// What the rules of the optimizer look for in a plan.
#[derive(Debug, Default)]
struct Shape {
    /// More than one table and what is done to its rows: joins, subqueries and nodes of no known kind.
    several: bool,
    unions: bool,
    distinct: bool,
    limits: bool,
    aggregates: bool,
    functions: bool,
}

impl Shape {
    fn of(plan: &LogicalPlan) -> Result<Self> {
        let mut shape = Self::default();
        plan.apply(|node| {
            match node {
                LogicalPlan::Projection(_)
                | LogicalPlan::Filter(_)
                | LogicalPlan::Window(_)
                | LogicalPlan::Sort(_)
                | LogicalPlan::TableScan(_)
                | LogicalPlan::SubqueryAlias(_)
                | LogicalPlan::EmptyRelation(_)
                | LogicalPlan::Values(_) => {}
                LogicalPlan::Aggregate(_) => shape.aggregates = true,
                LogicalPlan::Union(_) => shape.unions = true,
                LogicalPlan::Distinct(_) => shape.distinct = true,
                LogicalPlan::Limit(_) => shape.limits = true,
                _ => shape.several = true,
            }
            node.apply_expressions(|expr| {
                expr.apply(|expr| {
                    match expr {
                        Expr::ScalarFunction(_) | Expr::HigherOrderFunction(_) => shape.functions = true,
                        Expr::Exists(_)
                        | Expr::InSubquery(_)
                        | Expr::SetComparison(_)
                        | Expr::ScalarSubquery(_)
                        | Expr::OuterReferenceColumn(..) => shape.several = true,
                        _ => {}
                    }
                    Ok(TreeNodeRecursion::Continue)
                })
            })?;
            Ok(if shape.several { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })?;
        Ok(shape)
    }

    /// Whether a rule may find something to do, before or after other rules. One of no known name may.
    fn concerns(&self, rule: &str) -> bool {
        self.several
            || match rule {
                "rewrite_set_comparison"
                | "eliminate_join"
                | "decorrelate_predicate_subquery"
                | "scalar_subquery_to_join"
                | "decorrelate_lateral_join"
                | "extract_equijoin_predicate"
                | "eliminate_cross_join"
                | "filter_null_join_keys"
                | "eliminate_outer_join" => false,
                "optimize_unions" | "unions_to_filter" => self.unions,
                "replace_distinct_aggregate" => self.distinct || self.unions,
                // DISTINCT of no columns is a limit.
                "eliminate_limit" | "push_down_limit" => self.limits || self.distinct || self.unions,
                "single_distinct_aggregation_to_group_by" | "eliminate_group_by_constant" => {
                    self.aggregates || self.distinct || self.unions
                }
                "extract_leaf_expressions" | "push_down_leaf_projections" => self.functions,
                _ => true,
            }
    }
}
