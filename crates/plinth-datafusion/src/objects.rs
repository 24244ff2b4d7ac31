//! The engine's way to object stores: those of the session.

use std::sync::Arc;

use datafusion_common::{DataFusionError, Result, plan_err};
use datafusion_execution::object_store::{DefaultObjectStoreRegistry, ObjectStoreRegistry};
use object_store::ObjectStore;
use plinth_objects::{ObjectStores, ObjectUrl};
use url::Url;

/// Leads from URLs to the stores of a session, and to those that were registered.
#[derive(Debug)]
pub struct SessionObjects {
    registered: DefaultObjectStoreRegistry,
    stores: Arc<ObjectStores>,
    /// Whether no store but the local file system is reached.
    is_local: bool,
}

impl SessionObjects {
    /// The stores of a session, and the local file system.
    pub fn new(stores: Arc<ObjectStores>) -> Self {
        Self { registered: DefaultObjectStoreRegistry::new(), stores, is_local: false }
    }

    /// The local file system alone, in which a session without object stores has its tables.
    pub fn none(stores: Arc<ObjectStores>) -> Self {
        Self { is_local: true, ..Self::new(stores) }
    }
}

impl ObjectStoreRegistry for SessionObjects {
    fn register_store(&self, url: &Url, store: Arc<dyn ObjectStore>) -> Option<Arc<dyn ObjectStore>> {
        self.registered.register_store(url, store)
    }

    fn deregister_store(&self, url: &Url) -> Result<Arc<dyn ObjectStore>> {
        self.registered.deregister_store(url)
    }

    fn get_store(&self, url: &Url) -> Result<Arc<dyn ObjectStore>> {
        if let Ok(store) = self.registered.get_store(url) {
            return Ok(store);
        }
        if self.is_local {
            return plan_err!("{}: this session reaches no object stores", url.scheme());
        }
        let external = |e| DataFusionError::External(Box::new(e));
        let url = ObjectUrl::parse(url.as_str()).map_err(external)?;
        Ok(Arc::clone(self.stores.connected(&url).map_err(external)?.client()))
    }
}
