//! Aggregates, distinct rows and windows that a plan has more than once: a query of WITH that is asked twice, or the same subquery in two places.
//!
//! What the optimizer has left of each may differ, as other columns are wanted of it or other rows; then it is computed for each. Where all is the
//! same, one computes it and the others have its rows from memory ([`SharedExec`]). Joins above are not part of it: their filters reach down
//! into scans, which a shared part cannot have.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchemaRef, Result, internal_err};
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{Expr, Extension, LogicalPlan, UserDefinedLogicalNode, UserDefinedLogicalNodeCore};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{ExtensionPlanner, PhysicalPlanner};
use datafusion_session::Session;
use plinth_datafusion::{Occurrences, SharedExec};
use plinth_io::MemoryBudget;

/// Marks the parts of a plan that occur more than once. The planner knows them.
pub(crate) fn marked(plan: LogicalPlan, budget: &MemoryBudget) -> Result<(LogicalPlan, SharedPlanner)> {
    let mut parts = Parts::default();
    parts.count(&plan)?;
    parts.kept.retain(|part| part.occurrences > 1);
    let plan = if parts.kept.is_empty() { plan } else { parts.mark(plan)?.data };
    let of = |part: &Part| Arc::new(Occurrences::new(part.occurrences, parts.kept.len(), budget));
    let occurrences = parts.kept.iter().map(of);
    Ok((plan, SharedPlanner { occurrences: occurrences.collect() }))
}

/// Parts of a plan that may be computed once.
#[derive(Default)]
struct Parts {
    kept: Vec<Part>,
}

struct Part {
    hash: u64,
    plan: LogicalPlan,
    occurrences: usize,
}

impl Parts {
    /// Counts the parts of a plan; what is within one that was counted before is computed with that one.
    fn count(&mut self, plan: &LogicalPlan) -> Result<()> {
        let mut candidates = 0;
        plan.apply_with_subqueries(|node| {
            candidates += usize::from(is_worth_it(node));
            // Whatever a recursion has is another thing with each step.
            Ok(if matches!(node, LogicalPlan::RecursiveQuery(_)) {
                TreeNodeRecursion::Jump
            } else {
                TreeNodeRecursion::Continue
            })
        })?;
        if candidates < 2 {
            return Ok(());
        }
        plan.apply_with_subqueries(|node| {
            if matches!(node, LogicalPlan::RecursiveQuery(_)) {
                return Ok(TreeNodeRecursion::Jump);
            }
            if !is_candidate(node) {
                return Ok(TreeNodeRecursion::Continue);
            }
            let hash = hash(node);
            if let Some(part) = self.of(hash, node).and_then(|at| self.kept.get_mut(at)) {
                part.occurrences += 1;
                return Ok(TreeNodeRecursion::Jump);
            }
            if is_same_each_time(node)? {
                self.kept.push(Part { hash, plan: node.clone(), occurrences: 1 });
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(())
    }

    fn of(&self, hash: u64, plan: &LogicalPlan) -> Option<usize> {
        let is_it = |part: &Part| part.hash == hash && part.plan == *plan && has_same_sources(&part.plan, plan);
        self.kept.iter().position(is_it)
    }

    /// Puts a node above each part that occurs more than once.
    fn mark(&self, plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
        if matches!(plan, LogicalPlan::RecursiveQuery(_)) {
            return Ok(Transformed::no(plan));
        }
        let place = if is_candidate(&plan) { self.of(hash(&plan), &plan) } else { None };
        let marked = plan.map_children(|child| self.mark(child))?;
        let marked = marked.transform_data(|plan| plan.map_subqueries(|query| self.mark(query)))?;
        Ok(match place {
            Some(place) => {
                let node = Shared { place, input: marked.data };
                Transformed::yes(LogicalPlan::Extension(Extension { node: Arc::new(node) }))
            }
            None => marked,
        })
    }
}

/// Whether it is more work to compute a part than to keep its rows.
fn is_worth_it(plan: &LogicalPlan) -> bool {
    matches!(plan, LogicalPlan::Aggregate(_) | LogicalPlan::Distinct(_) | LogicalPlan::Window(_))
}

/// Whether it is such a part, or what is made of the rows of one.
fn is_candidate(mut plan: &LogicalPlan) -> bool {
    loop {
        plan = match plan {
            plan if is_worth_it(plan) => return true,
            LogicalPlan::Projection(node) => &node.input,
            LogicalPlan::Filter(node) => &node.input,
            LogicalPlan::SubqueryAlias(node) => &node.input,
            LogicalPlan::Sort(node) => &node.input,
            LogicalPlan::Limit(node) => &node.input,
            _ => return false,
        };
    }
}

fn hash(plan: &LogicalPlan) -> u64 {
    let mut hasher = DefaultHasher::new();
    plan.hash(&mut hasher);
    hasher.finish()
}

/// Whether a part has the same rows each time that it is computed, whatever is around it.
fn is_same_each_time(plan: &LogicalPlan) -> Result<bool> {
    let mut same = !plan.contains_outer_reference();
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            same &= !expr.is_volatile();
            Ok(TreeNodeRecursion::Continue)
        })?;
        same &= !matches!(node, LogicalPlan::RecursiveQuery(_) | LogicalPlan::Extension(_));
        Ok(if same { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
    })?;
    Ok(same)
}

/// Whether two plans, which are equal, read the same tables: the engine compares these by name, and functions of tables have one name each.
fn has_same_sources(one: &LogicalPlan, two: &LogicalPlan) -> bool {
    let sources = |plan: &LogicalPlan| {
        let mut sources = Vec::new();
        let all = plan.apply_with_subqueries(|node| {
            if let LogicalPlan::TableScan(scan) = node {
                sources.push(Arc::clone(&scan.source));
            }
            Ok(TreeNodeRecursion::Continue)
        });
        all.is_ok().then_some(sources)
    };
    match (sources(one), sources(two)) {
        (Some(one), Some(two)) => {
            one.len() == two.len() && one.iter().zip(&two).all(|(one, two)| Arc::ptr_eq(one, two))
        }
        _ => false,
    }
}

/// An occurrence of a part.
#[derive(Debug, PartialEq, Eq, PartialOrd, Hash)]
struct Shared {
    /// Which of the parts.
    place: usize,
    input: LogicalPlan,
}

impl UserDefinedLogicalNodeCore for Shared {
    fn name(&self) -> &'static str {
        "Shared"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        self.input.schema()
    }

    fn expressions(&self) -> Vec<Expr> {
        Vec::new()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Shared: {}", self.place)
    }

    fn with_exprs_and_inputs(&self, _: Vec<Expr>, inputs: Vec<LogicalPlan>) -> Result<Self> {
        match <[_; 1]>::try_from(inputs) {
            Ok([input]) => Ok(Self { place: self.place, input }),
            Err(inputs) => internal_err!("a shared part has one input, not {}", inputs.len()),
        }
    }
}

/// Plans the occurrences of a plan's parts.
pub(crate) struct SharedPlanner {
    occurrences: Vec<Arc<Occurrences>>,
}

#[async_trait]
impl ExtensionPlanner for SharedPlanner {
    async fn plan_extension(
        &self,
        _: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        _: &[&LogicalPlan],
        inputs: &[Arc<dyn ExecutionPlan>],
        _: &dyn Session,
        _: &PhysicalPlanningContext,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let Some(node) = node.as_any().downcast_ref::<Shared>() else { return Ok(None) };
        let (Some(occurrences), [input]) = (self.occurrences.get(node.place), inputs) else {
            return internal_err!("a shared part that is not known");
        };
        Ok(Some(Arc::new(SharedExec::new(Arc::clone(input), Arc::clone(occurrences)))))
    }
}
