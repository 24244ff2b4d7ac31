//! Views that last as long as their session, among its tables.
//!
//! What is registered is how to plan the view: it is planned when it is asked for, over its tables as they are then.

use std::fmt;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use datafusion::catalog::{SchemaProvider, Session, TableProvider};
use datafusion::common::{Result, internal_err};
use datafusion::datasource::{TableType, ViewTable};
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::ExecutionPlan;
use futures::future::BoxFuture;

use crate::views::unreadable;

/// Plans a view.
pub(crate) type PlanAgain = Arc<dyn Fn() -> BoxFuture<'static, Result<Arc<ViewTable>>> + Send + Sync>;

/// A view that lasts as long as its session.
pub(crate) struct SessionView {
    shown: String,
    plan: PlanAgain,
    /// Its columns as it was made.
    schema: SchemaRef,
}

impl SessionView {
    pub(crate) fn new(shown: String, plan: PlanAgain, schema: SchemaRef) -> Self {
        Self { shown, plan, schema }
    }
}

impl fmt::Debug for SessionView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionView").field("shown", &self.shown).finish_non_exhaustive()
    }
}

/// A table that a session knows; of a view the plan, made now.
pub(crate) async fn opened(table: Arc<dyn TableProvider>) -> Result<Arc<dyn TableProvider>> {
    let any: &dyn std::any::Any = table.as_ref();
    match any.downcast_ref::<SessionView>() {
        Some(view) => Ok((view.plan)().await.map_err(|error| unreadable(&view.shown, error))?),
        None => Ok(table),
    }
}

impl TableProvider for SessionView {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    fn scan<'a: 'c, 'b: 'c, 'p: 'c, 'f: 'c, 'c>(
        &'a self,
        _: &'b dyn Session,
        _: Option<&'p Vec<usize>>,
        _: &'f [Expr],
        _: Option<usize>,
    ) -> BoxFuture<'c, Result<Arc<dyn ExecutionPlan>>> {
        Box::pin(async move { internal_err!("the view {} is read without being planned", self.shown) })
    }
}

/// A schema of the session, whose views are planned when they are asked for.
#[derive(Debug)]
pub(crate) struct SessionSchema(pub(crate) Arc<dyn SchemaProvider>);

impl SchemaProvider for SessionSchema {
    fn table_names(&self) -> Vec<String> {
        self.0.table_names()
    }

    fn table<'a: 'c, 'b: 'c, 'c>(&'a self, name: &'b str) -> BoxFuture<'c, Result<Option<Arc<dyn TableProvider>>>> {
        Box::pin(async move {
            match self.0.table(name).await? {
                Some(table) => opened(table).await.map(Some),
                None => Ok(None),
            }
        })
    }

    fn table_type<'a: 'c, 'b: 'c, 'c>(&'a self, name: &'b str) -> BoxFuture<'c, Result<Option<TableType>>> {
        self.0.table_type(name)
    }

    fn register_table(&self, name: String, table: Arc<dyn TableProvider>) -> Result<Option<Arc<dyn TableProvider>>> {
        self.0.register_table(name, table)
    }

    fn deregister_table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        self.0.deregister_table(name)
    }

    fn table_exist(&self, name: &str) -> bool {
        self.0.table_exist(name)
    }
}
