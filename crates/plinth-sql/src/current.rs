//! The session as it is now, for tables that are opened by their paths.

use std::sync::Arc;

use datafusion::catalog::Session;
use datafusion::common::{DataFusionError, Result};
use datafusion::datasource::dynamic_file::DynamicListTableFactory;
use datafusion::execution::session_state::SessionState;
use plinth_datafusion::CurrentSession;

/// The session that the engine's own factory of such tables knows.
#[derive(Debug)]
pub(crate) struct Current(pub(crate) Arc<DynamicListTableFactory>);

impl CurrentSession for Current {
    fn current(&self) -> Result<Arc<dyn Session>> {
        let session = self.0.session_store().get_session().upgrade();
        let state = session.and_then(|session| session.read().as_any().downcast_ref::<SessionState>().cloned());
        match state {
            Some(state) => Ok(Arc::new(state)),
            None => Err(DataFusionError::Internal("the session has ended".to_owned())),
        }
    }
}
