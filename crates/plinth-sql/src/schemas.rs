//! The schemas of a session: `public`, those that a folder keeps, and others that last as long as the session.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

use datafusion::catalog::{CatalogProvider, SchemaProvider};
use datafusion::common::{Result, exec_err};
use plinth_core::sync::lock;

use crate::database::{Database, PUBLIC};
use crate::error::SqlError;
use crate::{names, views};

/// What the engine calls the catalog of a session.
pub(crate) const CATALOG: &str = "datafusion";

/// Names that no schema can have.
const TAKEN: [&str; 4] = [PUBLIC, "information_schema", "pg_catalog", names::SCRATCH];

/// The catalog of a session.
#[derive(Debug)]
pub(crate) struct Schemas {
    public: Arc<Database>,
    /// Those that the folder keeps, as far as they were asked for.
    kept: Mutex<HashMap<String, Arc<Database>>>,
    /// Those of the session.
    own: Mutex<BTreeMap<String, Arc<dyn SchemaProvider>>>,
}

impl Schemas {
    /// With one schema.
    pub(crate) fn new(public: Arc<Database>) -> Self {
        Self { public, kept: Mutex::default(), own: Mutex::default() }
    }

    /// A schema of a folder.
    ///
    /// # Errors
    /// If the catalog of the folder can't be read.
    pub(crate) fn database(&self, name: &str) -> Result<Option<Arc<Database>>, SqlError> {
        if name == PUBLIC {
            return Ok(Some(Arc::clone(&self.public)));
        }
        let Some(catalog) = self.public.catalog() else { return Ok(None) };
        let mut kept = lock(&self.kept);
        if !catalog.read()?.schemas.contains(name) {
            kept.remove(name);
            return Ok(None);
        }
        if let Some(known) = kept.get(name) {
            return Ok(Some(Arc::clone(known)));
        }
        let Some(opened) = self.public.schema(name).map(Arc::new) else { return Ok(None) };
        kept.insert(name.to_owned(), Arc::clone(&opened));
        Ok(Some(opened))
    }

    /// All schemas of the folder.
    ///
    /// # Errors
    /// If the catalog of the folder can't be read.
    pub(crate) fn databases(&self) -> Result<Vec<Arc<Database>>, SqlError> {
        let contents = self.public.catalog().map(|catalog| catalog.read()).transpose()?.unwrap_or_default();
        let names = std::iter::once(PUBLIC).chain(contents.schemas.iter().map(String::as_str));
        names.filter_map(|name| self.database(name).transpose()).collect()
    }
}

/// An error if a schema can't have this name.
pub(crate) fn check_name(name: &str) -> Result<()> {
    let plain = !name.is_empty() && !name.starts_with(['.', '_']) && !name.contains(['/', '\\', '\0']);
    if TAKEN.contains(&name) || !plain {
        return exec_err!("CREATE SCHEMA {name:?}: the name is taken, or can't be that of a folder");
    }
    Ok(())
}

impl CatalogProvider for Schemas {
    fn schema_names(&self) -> Vec<String> {
        let kept = self.public.catalog().and_then(|catalog| catalog.read().ok()).unwrap_or_default();
        let own = lock(&self.own);
        let own = own.keys().filter(|name| name.as_str() != names::SCRATCH);
        let mut all: Vec<String> = kept.schemas.iter().chain(own).cloned().chain([PUBLIC.to_owned()]).collect();
        all.sort();
        all.dedup();
        all
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        // What can't be read says so where its tables are asked for.
        if let Ok(Some(database)) = self.database(name) {
            return Some(database as _);
        }
        let own = lock(&self.own).get(name).map(Arc::clone);
        // The text of a view means what is kept.
        own.filter(|_| self.public.folder().is_none() || !views::is_planning())
    }

    fn register_schema(&self, name: &str, schema: Arc<dyn SchemaProvider>) -> Result<Option<Arc<dyn SchemaProvider>>> {
        if let Some(known) = self.database(name)? {
            return exec_err!("schema {:?} is there already", known.name());
        }
        Ok(lock(&self.own).insert(name.to_owned(), schema))
    }

    fn deregister_schema(&self, name: &str, cascade: bool) -> Result<Option<Arc<dyn SchemaProvider>>> {
        let mut own = lock(&self.own);
        match own.get(name) {
            Some(schema) if !cascade && !schema.table_names().is_empty() => {
                exec_err!("DROP SCHEMA {name}: has tables; DROP SCHEMA {name} CASCADE drops them, too")
            }
            _ => Ok(own.remove(name)),
        }
    }
}
