//! A look at the plan that runs: how far its scans are, and how soon it hears that it should stop.

use std::sync::{Arc, Mutex};

use datafusion::common::Result;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::config::ConfigOptions;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};

use plinth_core::sync::lock;

use crate::interrupt::Interrupt;
use crate::stop::stoppable_plan;

/// Remembers the last plan; the optimizer's last rule.
#[derive(Debug)]
pub(crate) struct Watch {
    plan: Mutex<Option<Arc<dyn ExecutionPlan>>>,
    interrupt: Interrupt,
}

/// What the scans of a plan have done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Rows that were read.
    pub rows: u64,
    /// Rows of the tables, as far as known.
    pub of_rows: Option<u64>,
    /// Bytes that were read.
    pub bytes: u64,
}

impl Watch {
    /// Of a session with this request to stop.
    pub(crate) fn new(interrupt: Interrupt) -> Self {
        Self { plan: Mutex::default(), interrupt }
    }

    /// How far the plan is. None if there is none.
    pub(crate) fn done(&self) -> Option<Done> {
        let plan = lock(&self.plan).clone()?;
        let mut done = Done { of_rows: Some(0), ..Done::default() };
        let visited = plan.apply(|node| {
            if node.children().is_empty() {
                add(&mut done, node);
            }
            Ok(TreeNodeRecursion::Continue)
        });
        visited.is_ok().then_some(done)
    }

    /// Lets go of the plan.
    pub(crate) fn forget(&self) {
        *lock(&self.plan) = None;
    }
}

fn add(done: &mut Done, leaf: &Arc<dyn ExecutionPlan>) {
    let metrics = leaf.metrics().unwrap_or_default();
    let sum = |name: &str| metrics.sum_by_name(name).map(|value| value.as_usize() as u64);
    // A scan that filters has seen more rows than came out of it.
    let rows = sum("rows_scanned").into_iter().chain(metrics.output_rows().map(|n| n as u64)).max();
    done.rows += rows.unwrap_or(0);
    done.bytes += sum("bytes_read").or_else(|| sum("bytes_scanned")).unwrap_or(0);
    let statistics = StatisticsContext::new().compute(leaf.as_ref(), &StatisticsArgs::new());
    let total = match statistics.map(|s| s.num_rows) {
        Ok(Precision::Exact(n) | Precision::Inexact(n)) => Some(n as u64),
        _ => None,
    };
    done.of_rows = done.of_rows.zip(total).map(|(sum, n)| sum.saturating_add(n));
}

impl PhysicalOptimizerRule for Watch {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let plan = stoppable_plan(plan, &self.interrupt)?;
        *lock(&self.plan) = Some(Arc::clone(&plan));
        Ok(plan)
    }

    fn name(&self) -> &'static str {
        "Watch"
    }

    fn schema_check(&self) -> bool {
        true
    }
}
