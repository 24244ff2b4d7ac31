//! Catalogs without the views that can't be read: `information_schema.columns` asks each table for its columns, and one view whose
//! table has changed would take the answer from all.

use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::catalog::{CatalogProvider, CatalogProviderList, SchemaProvider, TableProvider};
use datafusion::common::Result;
use datafusion::datasource::TableType;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{Statement as Plain, visit_relations};
use futures::future::BoxFuture;

use crate::names::normal;

/// Whether a query asks what tables there are.
pub(crate) fn asks_of_tables(statement: &Statement) -> bool {
    match statement {
        Statement::Statement(plain) => match plain.as_ref() {
            Plain::Query(query) => visit_relations(query, |name| {
                let of_schema = name.0.iter().filter_map(|part| part.as_ident()).any(|part| normal(part) == SCHEMA);
                if of_schema { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })
            .is_break(),
            _ => false,
        },
        Statement::Explain(explain) => asks_of_tables(&explain.statement),
        _ => false,
    }
}

const SCHEMA: &str = "information_schema";

/// Catalogs, or a part of one, of what can be read.
#[derive(Debug)]
pub(crate) struct Readable<T: ?Sized>(Arc<T>);

impl<T: ?Sized> Readable<T> {
    pub(crate) fn new(all: Arc<T>) -> Arc<Self> {
        Arc::new(Self(all))
    }
}

impl CatalogProviderList for Readable<dyn CatalogProviderList> {
    fn register_catalog(&self, name: String, catalog: Arc<dyn CatalogProvider>) -> Option<Arc<dyn CatalogProvider>> {
        self.0.register_catalog(name, catalog)
    }

    fn catalog_names(&self) -> Vec<String> {
        self.0.catalog_names()
    }

    fn catalog(&self, name: &str) -> Option<Arc<dyn CatalogProvider>> {
        Some(Readable::new(self.0.catalog(name)?) as _)
    }
}

impl CatalogProvider for Readable<dyn CatalogProvider> {
    fn schema_names(&self) -> Vec<String> {
        self.0.schema_names()
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        Some(Readable::new(self.0.schema(name)?) as _)
    }
}

impl SchemaProvider for Readable<dyn SchemaProvider> {
    fn table_names(&self) -> Vec<String> {
        self.0.table_names()
    }

    // `async_trait`'s signature, written out.
    fn table<'a: 'c, 'b: 'c, 'c>(&'a self, name: &'b str) -> BoxFuture<'c, Result<Option<Arc<dyn TableProvider>>>> {
        Box::pin(async move {
            let is_view = matches!(self.0.table_type(name).await, Ok(Some(TableType::View)));
            match self.0.table(name).await {
                Err(_) if is_view => Ok(None),
                table => table,
            }
        })
    }

    fn table_type<'a: 'c, 'b: 'c, 'c>(&'a self, name: &'b str) -> BoxFuture<'c, Result<Option<TableType>>> {
        self.0.table_type(name)
    }

    fn table_exist(&self, name: &str) -> bool {
        self.0.table_exist(name)
    }
}
