//! Tables by their paths: `FROM 'x.parquet'` where no table has the name.
//!
//! The engine's own wrapper for this opens a table to tell whether it is a view, and hides DROP SCHEMA.

use std::fmt::{self, Debug};
use std::sync::Arc;

use datafusion::catalog::{CatalogProvider, CatalogProviderList, SchemaProvider, TableProvider, UrlTableFactory};
use datafusion::common::Result;
use datafusion::datasource::TableType;
use futures::future::BoxFuture;

use crate::grants::Grants;

/// Catalogs, a catalog or a schema, whose names may be paths.
pub(crate) struct ByPath<T: ?Sized> {
    all: Arc<T>,
    tables: Arc<dyn UrlTableFactory>,
    grants: Grants,
}

impl<T: ?Sized> ByPath<T> {
    pub(crate) fn new(all: Arc<T>, tables: Arc<dyn UrlTableFactory>, grants: Grants) -> Self {
        Self { all, tables, grants }
    }

    fn within<U: ?Sized>(&self, all: Arc<U>) -> ByPath<U> {
        ByPath { all, tables: Arc::clone(&self.tables), grants: self.grants.clone() }
    }
}

impl<T: ?Sized + Debug> Debug for ByPath<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ByPath").field(&self.all).finish()
    }
}

impl CatalogProviderList for ByPath<dyn CatalogProviderList> {
    fn register_catalog(&self, name: String, catalog: Arc<dyn CatalogProvider>) -> Option<Arc<dyn CatalogProvider>> {
        self.all.register_catalog(name, catalog)
    }

    fn catalog_names(&self) -> Vec<String> {
        self.all.catalog_names()
    }

    fn catalog(&self, name: &str) -> Option<Arc<dyn CatalogProvider>> {
        self.all.catalog(name).map(|catalog| Arc::new(self.within(catalog)) as _)
    }
}

impl CatalogProvider for ByPath<dyn CatalogProvider> {
    fn schema_names(&self) -> Vec<String> {
        self.all.schema_names()
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        self.all.schema(name).map(|schema| Arc::new(self.within(schema)) as _)
    }

    fn register_schema(&self, name: &str, schema: Arc<dyn SchemaProvider>) -> Result<Option<Arc<dyn SchemaProvider>>> {
        self.all.register_schema(name, schema)
    }

    fn deregister_schema(&self, name: &str, cascade: bool) -> Result<Option<Arc<dyn SchemaProvider>>> {
        self.all.deregister_schema(name, cascade)
    }
}

impl SchemaProvider for ByPath<dyn SchemaProvider> {
    fn table_names(&self) -> Vec<String> {
        self.all.table_names()
    }

    // `async_trait`'s signature, written out.
    fn table<'a: 'c, 'b: 'c, 'c>(&'a self, name: &'b str) -> BoxFuture<'c, Result<Option<Arc<dyn TableProvider>>>> {
        Box::pin(async move {
            match self.all.table(name).await? {
                Some(table) => Ok(Some(table)),
                None if self.grants.table(name)? => self.tables.try_new(name).await,
                None => Ok(None),
            }
        })
    }

    fn table_type<'a: 'c, 'b: 'c, 'c>(&'a self, name: &'b str) -> BoxFuture<'c, Result<Option<TableType>>> {
        self.all.table_type(name)
    }

    fn register_table(&self, name: String, table: Arc<dyn TableProvider>) -> Result<Option<Arc<dyn TableProvider>>> {
        self.all.register_table(name, table)
    }

    fn deregister_table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        self.all.deregister_table(name)
    }

    fn table_exist(&self, name: &str) -> bool {
        self.all.table_exist(name)
    }
}
