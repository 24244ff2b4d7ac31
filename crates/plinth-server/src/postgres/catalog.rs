//! The catalog of PostgreSQL (`pg_catalog`), as far as tools look there: `\d` of psql, SQLAlchemy, drivers of JDBC.
//!
//! Tables, views, columns, keys and indexes are those of the session ([`relations`], [`tables`]); types are PostgreSQL's, and the tables of what
//! Plinth has none of, such as triggers, are empty ([`fixed`]). The functions that such questions call are in [`functions`]; what their statements
//! have that Plinth's SQL has not is written otherwise before they are planned ([`asked`]).

mod asked;
mod fixed;
mod forms;
mod functions;
mod relations;
mod tables;

use std::sync::Arc;

use arrow_schema::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{MemTable, SchemaProvider, Session as CatalogSession, TableProvider};
use datafusion::common::plan_err;
use datafusion::datasource::TableType;
use datafusion::error::Result;
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::dml::InsertOp;
use datafusion::physical_plan::ExecutionPlan;
use plinth_sql::Session;

use crate::engine::CATALOG;
use crate::users::User;
pub(super) use asked::readable;
pub(crate) use relations::Numbers;
use relations::Relations;

/// The schema of the catalog.
const SCHEMA: &str = "pg_catalog";

/// Gives a session the catalog, and its functions.
///
/// # Errors
/// If the session takes no schema.
pub(crate) fn install(session: &Session, user: &User, numbers: &Arc<Numbers>) -> Result<()> {
    let context = session.context();
    let Some(catalog) = context.catalog(CATALOG) else { return Ok(()) };
    let catalogs = Arc::downgrade(context.state().catalog_list());
    let relations = Arc::new(Relations::new(catalogs, Arc::clone(numbers), user));
    for function in functions::all(&relations) {
        context.register_udf(function);
    }
    catalog.register_schema(SCHEMA, Arc::new(Catalog(relations)))?;
    Ok(())
}

/// The tables of the catalog. Their names are in no list, so that SHOW TABLES tells of the user's alone.
#[derive(Debug)]
struct Catalog(Arc<Relations>);

#[async_trait]
impl SchemaProvider for Catalog {
    fn table_names(&self) -> Vec<String> {
        Vec::new()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        let rows = match fixed::table(name, &functions::SETTINGS)? {
            None => tables::table(name, &self.0).await?,
            fixed => fixed,
        };
        let Some(rows) = rows else { return Ok(None) };
        Ok(Some(Arc::new(ReadOnly(MemTable::try_new(rows.schema(), vec![vec![rows]])?))))
    }

    fn table_exist(&self, name: &str) -> bool {
        is_table(name)
    }
}

/// Rows that are read alone: those of a table in memory take others.
#[derive(Debug)]
struct ReadOnly(MemTable);

#[async_trait]
impl TableProvider for ReadOnly {
    fn schema(&self) -> SchemaRef {
        self.0.schema()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        session: &dyn CatalogSession,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.0.scan(session, projection, filters, limit).await
    }

    async fn insert_into(
        &self,
        _: &dyn CatalogSession,
        _: Arc<dyn ExecutionPlan>,
        _: InsertOp,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan_err!("{SCHEMA}: is read alone; CREATE, ALTER and DROP change what it tells of")
    }
}

/// Whether the catalog has a table of this name.
fn is_table(name: &str) -> bool {
    fixed::is_table(name) || tables::is_table(name)
}
