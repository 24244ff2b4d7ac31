//! A file or a table for the package `datafusion`: its engine hands columns, filters and limits over, and gets the rows of a query that
//! this session plans and runs.

use std::fmt;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use datafusion::catalog::{Session as Engine, TableProvider};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, Result as EngineResult, Statistics, internal_err};
use datafusion::dataframe::DataFrame;
use datafusion::datasource::TableType;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, LogicalPlan, TableProviderFilterPushDown};
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PhysicalExpr, PlanProperties};
use futures::future::BoxFuture;
use plinth_sql::{Session, SqlError};

/// What is selected from by a name or a path.
pub(crate) struct Provider {
    session: Arc<Session>,
    all: LogicalPlan,
    schema: SchemaRef,
}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Provider").field("schema", &self.schema).finish_non_exhaustive()
    }
}

impl Provider {
    /// What `SELECT * FROM what` gives.
    pub(crate) async fn new(session: Arc<Session>, what: &str) -> Result<Self, SqlError> {
        let all = session.context().state().create_logical_plan(&format!("SELECT * FROM {what}")).await?;
        let schema = Arc::clone(all.schema().inner());
        Ok(Self { session, all, schema })
    }

    /// The plan of some columns of the rows that pass all filters.
    async fn plan(
        &self,
        projection: Option<Vec<usize>>,
        filters: Vec<Expr>,
        limit: Option<usize>,
    ) -> EngineResult<Arc<dyn ExecutionPlan>> {
        let mut rows = DataFrame::new(self.session.context().state(), self.all.clone());
        for filter in filters {
            rows = rows.filter(of_any_table(filter)?)?;
        }
        if let Some(columns) = projection {
            let columns = columns.into_iter().map(|at| match self.all.schema().columns().get(at) {
                Some(column) => Ok(Expr::Column(column.clone())),
                None => internal_err!("column {at} of {}", self.schema.fields().len()),
            });
            rows = rows.select(columns.collect::<EngineResult<Vec<_>>>()?)?;
        }
        if limit.is_some() {
            rows = rows.limit(0, limit)?;
        }
        let context = Arc::new(rows.task_ctx());
        let inner = rows.create_physical_plan().await?;
        Ok(Arc::new(Ours { inner, context }))
    }
}

/// An expression whose columns have no table before them: the other engine calls the table by a name of its own.
fn of_any_table(expr: Expr) -> EngineResult<Expr> {
    let bare = |expr| match expr {
        Expr::Column(column) => Ok(Transformed::yes(Expr::Column(Column::new_unqualified(column.name)))),
        other => Ok(Transformed::no(other)),
    };
    expr.transform_up(bare).data()
}

/// Whether all of an expression means the same in every session: no functions, which may be those of another library.
fn is_plain(expr: &Expr) -> bool {
    let other = |expr: &Expr| {
        !matches!(
            expr,
            Expr::Column(_)
                | Expr::Literal(..)
                | Expr::BinaryExpr(_)
                | Expr::Not(_)
                | Expr::IsNull(_)
                | Expr::IsNotNull(_)
                | Expr::IsTrue(_)
                | Expr::IsFalse(_)
                | Expr::Negative(_)
                | Expr::Between(_)
                | Expr::InList(_)
                | Expr::Like(_)
                | Expr::Cast(_)
        )
    };
    expr.exists(|expr| Ok(other(expr))).is_ok_and(|other| !other)
}

impl TableProvider for Provider {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> EngineResult<Vec<TableProviderFilterPushDown>> {
        let how = |filter: &&Expr| match is_plain(filter) {
            true => TableProviderFilterPushDown::Exact,
            false => TableProviderFilterPushDown::Unsupported,
        };
        Ok(filters.iter().map(how).collect())
    }

    // `async_trait`'s signature, written out: the future holds no `Expr` for the compiler to prove `Send` of.
    fn scan<'a: 'c, 'b: 'c, 'd: 'c, 'e: 'c, 'c>(
        &'a self,
        _: &'b dyn Engine,
        projection: Option<&'d Vec<usize>>,
        filters: &'e [Expr],
        limit: Option<usize>,
    ) -> BoxFuture<'c, EngineResult<Arc<dyn ExecutionPlan>>>
    where
        Self: 'c,
    {
        Box::pin(self.plan(projection.cloned(), filters.to_vec(), limit))
    }
}

/// A plan of this session, which runs within it though another engine asks for its rows.
struct Ours {
    inner: Arc<dyn ExecutionPlan>,
    context: Arc<TaskContext>,
}

impl fmt::Debug for Ours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl DisplayAs for Ours {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PlinthExec")
    }
}

impl ExecutionPlan for Ours {
    fn name(&self) -> &'static str {
        "PlinthExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.inner.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn with_new_children(self: Arc<Self>, _: Vec<Arc<dyn ExecutionPlan>>) -> EngineResult<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn execute(&self, partition: usize, _: Arc<TaskContext>) -> EngineResult<SendableRecordBatchStream> {
        self.inner.execute(partition, Arc::clone(&self.context))
    }

    fn statistics_from_inputs(&self, _: &[Arc<Statistics>], args: &StatisticsArgs) -> EngineResult<Arc<Statistics>> {
        StatisticsContext::new().compute(self.inner.as_ref(), args)
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> EngineResult<TreeNodeRecursion>,
    ) -> EngineResult<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }
}
