//! The rule that puts our scans in the place of DataFusion's.

use std::sync::Arc;

use datafusion_common::Result;
use datafusion_common::config::ConfigOptions;
use datafusion_common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion_datasource::file_scan_config::{FileScanConfig, FileScanConfigBuilder};
use datafusion_datasource::source::DataSourceExec;
use datafusion_datasource_parquet::source::ParquetSource;
use datafusion_functions::core::file_row_index::FileRowIndexFunc;
use datafusion_physical_expr::ScalarFunctionExpr;
use datafusion_physical_plan::ExecutionPlan;
use datafusion_session::PhysicalOptimizerRule;
use plinth_format::OpenOptions;

use super::source::ParquetScan;

/// A rule of the physical optimizer: Parquet files are scanned by Plinth's executor. It has to run before filters are pushed
/// down, best as the first rule of all. Scans it can't take over stay what they are.
#[derive(Debug, Default)]
pub struct ParquetScans {
    options: OpenOptions,
}

impl ParquetScans {
    /// Files are to be opened with these options.
    pub fn new(options: OpenOptions) -> Self {
        Self { options }
    }

    fn take_over(&self, plan: &Arc<dyn ExecutionPlan>) -> Option<Arc<dyn ExecutionPlan>> {
        let config = plan.downcast_ref::<DataSourceExec>()?.data_source().downcast_ref::<FileScanConfig>()?;
        let source = config.file_source().downcast_ref::<ParquetSource>()?;
        // Who adapts expressions to files in a way of his own does it there.
        if config.expr_adapter_factory.is_some() {
            return None;
        }
        let scan = ParquetScan::in_place_of(source, self.options.clone())?;
        let config = FileScanConfigBuilder::from(config.clone()).with_source(Arc::new(scan)).build();
        Some(DataSourceExec::from_data_source(config))
    }
}

impl PhysicalOptimizerRule for ParquetScans {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let ours = crate::config::scans_parquet(config);
        if !ours || counts_rows(&plan)? {
            return Ok(plan);
        }
        plan.transform_up(|node| {
            Ok(match self.take_over(&node) {
                Some(scan) => Transformed::yes(scan),
                None => Transformed::no(node),
            })
        })
        .data()
    }

    fn name(&self) -> &'static str {
        "plinth_parquet_scans"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Whether a plan asks for the numbers of rows in their files, which DataFusion's scan alone knows to give.
fn counts_rows(plan: &Arc<dyn ExecutionPlan>) -> Result<bool> {
    let mut found = false;
    plan.apply(|node| {
        node.apply_expressions(&mut |expr| {
            expr.apply(|inner| {
                found |= ScalarFunctionExpr::try_downcast_func::<FileRowIndexFunc>(inner.as_ref()).is_some();
                Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
            })
        })?;
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}
