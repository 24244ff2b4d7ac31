//! Where the tasks of a stage run.

use std::sync::Arc;

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::datasource::memory::DataSourceExec;
use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::physical_plan::ExecutionPlan;
use datafusion_distributed::{NetworkBoundary, NetworkBoundaryExt, Stage};
use plinth_datafusion::{PlinthSource, Shipped};
use url::Url;

use crate::deal;

/// The scan of Plinth files that a leaf is.
pub(crate) fn file_scan(plan: &Arc<dyn ExecutionPlan>) -> Option<&FileScanConfig> {
    let config = plan.downcast_ref::<DataSourceExec>()?.data_source().downcast_ref::<FileScanConfig>()?;
    config.file_source().downcast_ref::<PlinthSource>().map(|_| config)
}

/// The workers for the tasks of a stage: all in order, as scans are divided; one for a single task, the one that has its file, or the one that
/// has the rows already.
pub(crate) fn routes(workers: &[Url], plan: &Arc<dyn ExecutionPlan>, tasks: usize) -> Vec<Url> {
    if tasks == 1 {
        let mut home = None;
        let _ = plan.apply(|node| {
            if let Some(config) = file_scan(node) {
                let scanned = Shipped::of(config).ok();
                let first = scanned.and_then(|(_, groups)| groups.into_iter().flatten().map(|piece| piece.name).next());
                home = first.and_then(|name| deal::home(workers, &name).cloned());
            } else if let Some(Stage::Remote(stage)) = node.as_network_boundary().map(NetworkBoundary::input_stage) {
                home = stage.workers.first().cloned();
            }
            Ok(if home.is_some() { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        });
        return home.or_else(|| workers.first().cloned()).into_iter().collect();
    }
    workers.iter().cycle().take(tasks).cloned().collect()
}
