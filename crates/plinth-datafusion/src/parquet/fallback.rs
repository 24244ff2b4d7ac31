//! Files that our scan can't read in the table's terms, by DataFusion's source: it reads what the query mentions, and what
//! the scan has promised to do with it is done here.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::SchemaRef;
use arrow_select::filter::filter_record_batch;
use datafusion_common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion_common::{Result, internal_datafusion_err};
use datafusion_datasource::PartitionedFile;
use datafusion_datasource::file::FileSource;
use datafusion_datasource::file_groups::FileGroup;
use datafusion_datasource::file_scan_config::{FileScanConfig, FileScanConfigBuilder};
use datafusion_datasource::file_stream::FileStreamBuilder;
use datafusion_datasource_parquet::source::ParquetSource;
use datafusion_physical_expr::expressions::Column;
use datafusion_physical_expr::projection::ProjectionExprs;
use datafusion_physical_expr::utils::collect_columns;
use datafusion_physical_expr_adapter::rewrite::rewrite_input_file_name_in_projection;
use datafusion_physical_expr_common::physical_expr::PhysicalExpr;
use datafusion_physical_plan::metrics::ExecutionPlanMetricsSet;
use futures::StreamExt;
use futures::stream::BoxStream;
use object_store::ObjectStore;

use crate::predicates::Predicates;

/// How to read such a file.
#[derive(Clone)]
pub(super) struct Fallback {
    /// Reads all columns and knows no filter.
    pub(super) source: ParquetSource,
    pub(super) config: Arc<FileScanConfig>,
    pub(super) store: Arc<dyn ObjectStore>,
    pub(super) batch_size: usize,
    pub(super) projection: ProjectionExprs,
    pub(super) output: SchemaRef,
    pub(super) predicates: Arc<Predicates>,
    pub(super) metrics: ExecutionPlanMetricsSet,
}

impl Fallback {
    /// The rows of a part that pass, as the query wants them.
    pub(super) fn open(self, part: PartitionedFile) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let name = part.object_meta.location.as_ref();
        let projection = rewrite_input_file_name_in_projection(self.projection.clone(), name)?;
        let exprs: Vec<Arc<dyn PhysicalExpr>> = projection.expr_iter().collect();
        let mentioned = exprs.iter().chain(&self.predicates.owned).flat_map(collect_columns);
        let mut columns: Vec<usize> = mentioned.map(|column| column.index()).collect();
        columns.sort_unstable();
        columns.dedup();

        let all = ProjectionExprs::from_indices(&columns, self.source.table_schema().table_schema());
        let source = self.source.try_pushdown_projection(&all)?;
        let source = source.ok_or_else(|| internal_datafusion_err!("a Parquet source that takes no projection"))?;
        let source = source.with_batch_size(self.batch_size);
        let config = FileScanConfigBuilder::from(FileScanConfig::clone(&self.config))
            .with_source(Arc::clone(&source))
            .with_file_groups(vec![FileGroup::new(vec![part])])
            .with_output_ordering(Vec::new())
            .with_limit(None)
            .build();
        let stream = FileStreamBuilder::new(&config)
            .with_partition(0)
            .with_morselizer(source.create_morselizer(self.store, &config, 0)?)
            .with_metrics(&self.metrics)
            .build()?;

        let moved = |expr: &Arc<dyn PhysicalExpr>| moved(expr, &columns);
        let owned = self.predicates.owned.iter().map(moved).collect::<Result<Vec<_>>>()?;
        let exprs = exprs.iter().map(moved).collect::<Result<Vec<_>>>()?;
        let output = self.output;
        Ok(stream.map(move |batch| apply(batch?, &owned, &exprs, &output)).boxed())
    }
}

/// An expression of the table's columns as one of those that are read.
fn moved(expr: &Arc<dyn PhysicalExpr>, columns: &[usize]) -> Result<Arc<dyn PhysicalExpr>> {
    Arc::clone(expr)
        .transform_up(|node| {
            let place = node.downcast_ref::<Column>().map(|column| (column, columns.binary_search(&column.index())));
            Ok(match place {
                Some((column, Ok(at))) => {
                    Transformed::yes(Arc::new(Column::new(column.name(), at)) as Arc<dyn PhysicalExpr>)
                }
                _ => Transformed::no(node),
            })
        })
        .data()
}

fn apply(
    mut batch: RecordBatch,
    predicates: &[Arc<dyn PhysicalExpr>],
    exprs: &[Arc<dyn PhysicalExpr>],
    output: &SchemaRef,
) -> Result<RecordBatch> {
    for predicate in predicates {
        let truth = predicate.evaluate(&batch)?.into_array(batch.num_rows())?;
        let truth = truth.as_boolean_opt().ok_or_else(|| internal_datafusion_err!("{predicate} is not boolean"))?;
        batch = filter_record_batch(&batch, truth)?;
    }
    let columns = exprs.iter().map(|expr| expr.evaluate(&batch)?.into_array(batch.num_rows()));
    let columns = columns.collect::<Result<Vec<ArrayRef>>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(Arc::clone(output), columns, &options)?)
}
