//! Views that a folder keeps, as what has them sees them: how they are planned it is told, and whether one is planned now.
//!
//! While a text is planned, names mean what a folder keeps: tables of the session do not stand in the place of those that the view was
//! made over.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use datafusion::common::Result;
use datafusion::datasource::ViewTable;
use futures::future::BoxFuture;

use crate::catalog::View;
use crate::error::SqlError;

/// Plans a view: its name with that of its schema, and the view.
pub(crate) type PlanView = Arc<dyn Fn(String, View) -> BoxFuture<'static, Result<Arc<ViewTable>>> + Send + Sync>;

/// Views as a statement plans them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Open {
    /// Those that are being planned, each for the one before.
    pub(crate) names: Vec<String>,
    /// Those that are planned, by their names: many may read the same, and each asks for its columns more than once.
    pub(crate) planned: Arc<Mutex<HashMap<String, Arc<ViewTable>>>>,
}

tokio::task_local! {
    pub(crate) static OPEN: Open;
}

/// Whether what is planned now is the text of a view.
pub(crate) fn is_planning() -> bool {
    OPEN.try_with(|_| ()).is_ok()
}

/// What the engine says of a table that is not there, as users know it.
pub(crate) fn missing(what: String) -> String {
    let name = what.strip_prefix("table 'datafusion.").and_then(|rest| rest.strip_suffix("' not found"));
    match name.map(|name| name.strip_prefix("public.").unwrap_or(name)) {
        Some(name) => format!("there is no table \"{name}\""),
        None => what,
    }
}

/// Why a view can't be read. Of views that read one another the outermost and the innermost are named.
pub(crate) fn unreadable(name: &str, error: impl Into<SqlError>) -> SqlError {
    match error.into() {
        SqlError::Message(kind, what) if is_planning() && what.starts_with("the view ") => SqlError::of(kind, what),
        SqlError::Message(kind, what) => {
            SqlError::of(kind, format!("the view {name} can't be read: {}", missing(what)))
        }
        SqlError::Interrupted => SqlError::Interrupted,
    }
}
