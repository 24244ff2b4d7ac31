//! The schemas of a session: `public`, those that a folder keeps, and others that last as long as the session.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

use datafusion::catalog::{CatalogProvider, CatalogProviderList, SchemaProvider};
use datafusion::common::{ResolvedTableReference, Result, exec_err};
use plinth_core::sync::lock;

use crate::database::{Database, PUBLIC};
use crate::error::SqlError;
use crate::session_views::SessionSchema;
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
    /// Other folders, whose `public` is a schema here, too.
    attached: Mutex<BTreeMap<String, Arc<Schemas>>>,
}

impl Schemas {
    /// With one schema.
    pub(crate) fn new(public: Arc<Database>) -> Self {
        Self { public, kept: Mutex::default(), own: Mutex::default(), attached: Mutex::default() }
    }

    /// A schema of a folder.
    ///
    /// # Errors
    /// If the catalog of the folder can't be read.
    pub(crate) fn database(&self, name: &str) -> Result<Option<Arc<Database>>, SqlError> {
        if name == PUBLIC {
            return Ok(Some(Arc::clone(&self.public)));
        }
        if let Some(attached) = self.attached(name) {
            return Ok(Some(Arc::clone(&attached.public)));
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

    /// The schema of a folder that something of this name is in, or would be. None if it is of the session, or there is none.
    pub(crate) fn of_folder(self: &Arc<Self>, name: &ResolvedTableReference) -> Result<Option<Arc<Database>>> {
        let schemas = match name.catalog.as_ref() {
            CATALOG => Some(Arc::clone(self)),
            attached => self.attached(attached),
        };
        let Some(schemas) = schemas else { return Ok(None) };
        Ok(schemas.database(&name.schema)?.filter(|database| database.folder().is_some()))
    }

    /// The schema of the folder itself.
    pub(crate) fn public(&self) -> &Arc<Database> {
        &self.public
    }

    /// A folder that was attached under a name.
    pub(crate) fn attached(&self, name: &str) -> Option<Arc<Schemas>> {
        lock(&self.attached).get(name).map(Arc::clone)
    }

    /// Attaches a folder under a name, or takes it away again: what had the name before.
    pub(crate) fn attach(&self, name: &str, schemas: Option<Arc<Schemas>>) -> Option<Arc<Schemas>> {
        let mut attached = lock(&self.attached);
        match schemas {
            Some(schemas) => attached.insert(name.to_owned(), schemas),
            None => attached.remove(name),
        }
    }

    /// Whether there is a schema of a name, or a folder attached under it.
    pub(crate) fn has(&self, name: &str) -> Result<bool, SqlError> {
        Ok(self.database(name)?.is_some() || lock(&self.own).contains_key(name))
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

/// The catalogs of a session: its own, and the folders that are attached.
#[derive(Debug)]
pub(crate) struct Catalogs(pub(crate) Arc<Schemas>);

impl CatalogProviderList for Catalogs {
    fn register_catalog(&self, _: String, _: Arc<dyn CatalogProvider>) -> Option<Arc<dyn CatalogProvider>> {
        None
    }

    fn catalog_names(&self) -> Vec<String> {
        std::iter::once(CATALOG.to_owned()).chain(lock(&self.0.attached).keys().cloned()).collect()
    }

    fn catalog(&self, name: &str) -> Option<Arc<dyn CatalogProvider>> {
        match name {
            CATALOG => Some(Arc::clone(&self.0) as _),
            _ => self.0.attached(name).map(|attached| attached as _),
        }
    }
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
        Ok(lock(&self.own).insert(name.to_owned(), Arc::new(SessionSchema(schema))))
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
