//! The operator in the place of a sort with a limit over a scan.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::SchemaRef;
use datafusion_common::config::ConfigOptions;
use datafusion_common::tree_node::TreeNodeRecursion;
use datafusion_common::{Result, internal_datafusion_err, internal_err};
use datafusion_datasource::file_scan_config::{FileScanConfig, FileScanConfigBuilder};
use datafusion_datasource::source::DataSourceExec;
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_expr::Partitioning;
use datafusion_physical_expr::expressions::{Column, DynamicFilterPhysicalExpr, lit};
use datafusion_physical_expr_common::physical_expr::PhysicalExpr;
use datafusion_physical_expr_common::sort_expr::{LexOrdering, PhysicalSortExpr};
use datafusion_physical_plan::execution_plan::{Boundedness, CardinalityEffect, EmissionType};
use datafusion_physical_plan::filter_pushdown::{ChildFilterDescription, FilterDescription, FilterPushdownPhase};
use datafusion_physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion_physical_plan::sorts::sort::SortExec;
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties};
use futures::future::ready;
use futures::stream::{self, StreamExt};
use plinth_exec::top::{First, OrderColumn, Ranking};
use plinth_io::MemoryBudget;

use super::fetch::fetch;
use super::first::{Place, Search};
use super::pieces::{parts, pieces};
use crate::error::from_exec;
use crate::source::PlinthSource;

/// Most rows: more are better sorted by what can spill, and to fetch so many one by one is to read most blocks a second time.
const MOST: usize = 4096;

/// The first rows of an order: the scan reads the order's columns alone, and all others are fetched for the rows that are found.
pub(super) struct TopExec {
    /// The scan of the order's columns.
    keys: Arc<dyn ExecutionPlan>,
    /// The order, by the columns that the scan gives.
    order: LexOrdering,
    columns: Vec<OrderColumn>,
    count: usize,
    /// Where the output's columns are from.
    outputs: Vec<Output>,
    /// The scan of those that are not of the order, if there are such.
    others: Option<FileScanConfig>,
    filter: Arc<DynamicFilterPhysicalExpr>,
    budget: Arc<MemoryBudget>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
    /// Whether it ran: then the filter is of another run.
    ran: AtomicBool,
}

#[derive(Clone, Copy, Debug)]
enum Output {
    Key(usize),
    Other(usize),
}

impl TopExec {
    /// The operator in the place of a sort of all rows of a scan, if it can be.
    pub(super) fn of(sort: &SortExec, budget: &Arc<MemoryBudget>) -> Option<Self> {
        let count = sort.fetch().filter(|&count| count > 0 && count <= MOST)?;
        let scan = sort.input().downcast_ref::<DataSourceExec>()?;
        let (config, source) = scan.downcast_to_file_source::<PlinthSource>()?;
        if config.limit.is_some() {
            return None;
        }
        let schema = sort.schema();
        let (mut keys, mut order, mut columns) = (Vec::new(), Vec::new(), Vec::new());
        for key in sort.expr() {
            let column = key.expr.downcast_ref::<Column>()?;
            let data_type = schema.fields().get(column.index())?.data_type().clone();
            if !OrderColumn::is_known(&data_type) {
                return None;
            }
            columns.push(OrderColumn { data_type, options: key.options });
            order.push(PhysicalSortExpr::new(Arc::new(Column::new(column.name(), keys.len())), key.options));
            keys.push(column.index());
        }
        let mut others = Vec::new();
        let outputs = (0..schema.fields().len()).map(|column| match keys.iter().position(|&key| key == column) {
            Some(key) => Output::Key(key),
            None => {
                others.push(column);
                Output::Other(others.len() - 1)
            }
        });
        let outputs = outputs.collect();
        let order = LexOrdering::new(order)?;
        let metrics = ExecutionPlanMetricsSet::new();
        let others =
            (!others.is_empty()).then(|| of_columns(config, &source.with_outputs(&others).unfiltered(&metrics)));
        let properties = PlanProperties::new(
            sort.properties().equivalence_properties().clone(),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Final,
            Boundedness::Bounded,
        );
        Some(Self {
            keys: DataSourceExec::from_data_source(of_columns(config, &source.with_outputs(&keys))),
            filter: unbound(&order),
            order,
            columns,
            count,
            outputs,
            others,
            budget: Arc::clone(budget),
            properties: Arc::new(properties),
            metrics,
            ran: AtomicBool::new(false),
        })
    }

    /// The same over another scan of the order's columns.
    fn over(&self, keys: Arc<dyn ExecutionPlan>) -> Self {
        Self {
            keys,
            order: self.order.clone(),
            columns: self.columns.clone(),
            count: self.count,
            outputs: self.outputs.clone(),
            others: self.others.clone(),
            filter: Arc::clone(&self.filter),
            budget: Arc::clone(&self.budget),
            properties: Arc::clone(&self.properties),
            metrics: self.metrics.clone(),
            ran: AtomicBool::new(false),
        }
    }

    /// Finds the rows.
    fn run(&self, context: &Arc<TaskContext>) -> Result<Run> {
        if self.ran.swap(true, Ordering::Relaxed) {
            self.filter.update(lit(true))?;
        }
        let scan = self.keys.downcast_ref::<DataSourceExec>();
        let Some((config, source)) = scan.and_then(DataSourceExec::downcast_to_file_source::<PlinthSource>) else {
            return internal_err!("the first rows of something else than a scan");
        };
        let ranking = Ranking::new(self.columns.clone()).map_err(from_exec)?;
        let first = self.columns.first().ok_or_else(|| internal_datafusion_err!("an order of no columns"))?;
        let parts = parts(config);
        let search = Search {
            pieces: Mutex::new(pieces(&parts, source, &ranking, first)?),
            parts,
            order: self.order.clone(),
            columns: self.columns.clone(),
            count: self.count,
            first: Mutex::new(First::new(self.count, &self.budget)),
            filter: Arc::clone(&self.filter),
        };
        let store = context.runtime_env().object_store(&config.object_store_url)?;
        let partitions = 0..self.keys.output_partitioning().partition_count();
        let openers = partitions.map(|partition| source.opener(&store, config, partition)).collect::<Result<_>>()?;
        let others = match &self.others {
            Some(config) => {
                let source = crate::source::of_config(config)?;
                Some((source.opener(&store, config, 0)?, config.projected_schema()?))
            }
            None => None,
        };
        Ok(Run { search: Arc::new(search), openers, others, ranking, outputs: self.outputs.clone() })
    }
}

/// The rows of a scan, as another source reads them.
fn of_columns(config: &FileScanConfig, source: &PlinthSource) -> FileScanConfig {
    FileScanConfigBuilder::from(config.clone()).with_source(Arc::new(source.clone())).build()
}

/// The filter of an order of which no rows are known.
fn unbound(order: &LexOrdering) -> Arc<DynamicFilterPhysicalExpr> {
    let columns = order.iter().map(|key| Arc::clone(&key.expr)).collect();
    Arc::new(DynamicFilterPhysicalExpr::new(columns, lit(true)))
}

/// All that it takes to find the rows.
struct Run {
    search: Arc<Search>,
    openers: Vec<crate::opener::PlinthOpener>,
    others: Option<(crate::opener::PlinthOpener, SchemaRef)>,
    ranking: Ranking,
    outputs: Vec<Output>,
}

impl Run {
    async fn rows(self, schema: SchemaRef) -> Result<Option<RecordBatch>> {
        let (first, mut memory) = Arc::clone(&self.search).run(self.openers).await?;
        if first.is_empty() {
            return Ok(None);
        }
        let keys = self.ranking.values(first.iter().map(|(key, _)| key)).map_err(from_exec)?;
        let others = match &self.others {
            Some((opener, schema)) => {
                let places: Vec<Place> = first.iter().map(|(_, place)| *place).collect();
                fetch(opener, &self.search.parts, &places, schema, &mut memory).await?.columns().to_vec()
            }
            None => Vec::new(),
        };
        let array = |output: &Output| -> Result<ArrayRef> {
            let array = match *output {
                Output::Key(at) => keys.get(at),
                Output::Other(at) => others.get(at),
            };
            array.cloned().ok_or_else(|| internal_datafusion_err!("{output:?} of no column"))
        };
        let arrays = self.outputs.iter().map(array).collect::<Result<Vec<_>>>()?;
        Ok(Some(RecordBatch::try_new(schema, arrays)?))
    }
}

impl fmt::Debug for TopExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TopExec").field("order", &self.order).field("keys", &self.keys).finish_non_exhaustive()
    }
}

impl DisplayAs for TopExec {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fetched = self.outputs.iter().filter(|output| matches!(output, Output::Other(_))).count();
        match t {
            DisplayFormatType::TreeRender => write!(f, "first={}\nby=[{}]\nfetched={fetched}", self.count, self.order),
            _ => write!(f, "TopExec: first={} by [{}], columns fetched={fetched}", self.count, self.order),
        }
    }
}

impl ExecutionPlan for TopExec {
    fn name(&self) -> &'static str {
        "TopExec"
    }

    fn schema(&self) -> SchemaRef {
        Arc::clone(self.properties.equivalence_properties().schema())
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.keys]
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        match <[_; 1]>::try_from(children) {
            Ok([keys]) => Ok(Arc::new(self.over(keys))),
            Err(children) => internal_err!("an order has one input, not {}", children.len()),
        }
    }

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        self.filter.update(lit(true))?;
        Ok(Arc::new(self.over(Arc::clone(&self.keys))))
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        let filter: Arc<dyn PhysicalExpr> = Arc::clone(&self.filter) as _;
        datafusion_physical_plan::apply_expression_roots(self.order.iter().map(|key| &key.expr).chain([&filter]), f)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        if partition > 0 {
            return internal_err!("the first rows are in one partition, not in number {partition}");
        }
        let (run, schema) = (self.run(&context)?, self.schema());
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let rows = async move {
            let rows = run.rows(schema).await?;
            metrics.record_output(rows.as_ref().map_or(0, RecordBatch::num_rows));
            Ok(rows)
        };
        let batches = stream::once(rows).filter_map(|rows| ready(rows.transpose()));
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), batches)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::LowerEqual
    }

    fn fetch(&self) -> Option<usize> {
        Some(self.count)
    }

    /// Filters from above are of the rows that come out; the own one is of the scan.
    fn gather_filters_for_pushdown(
        &self,
        phase: FilterPushdownPhase,
        filters: Vec<Arc<dyn PhysicalExpr>>,
        config: &ConfigOptions,
    ) -> Result<FilterDescription> {
        let child = ChildFilterDescription::all_unsupported(&filters);
        let own = phase == FilterPushdownPhase::Post && config.optimizer.enable_topk_dynamic_filter_pushdown;
        let child = if own { child.with_self_filter(Arc::clone(&self.filter) as _) } else { child };
        Ok(FilterDescription::new().with_child(child))
    }
}
