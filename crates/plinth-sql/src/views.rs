//! Views, as what has them sees them: how they are planned it is told, and whether one is planned now.
//!
//! While one that a folder keeps is planned, names mean what the folder keeps: tables of the session do not stand in the place of those
//! that the view was made over.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use datafusion::common::{Result, exec_err};
use datafusion::datasource::ViewTable;
use futures::future::BoxFuture;
use plinth_core::sync::lock;

use crate::catalog::View;
use crate::error::SqlError;

/// Plans a view: its name with that of its schema, and the view.
pub(crate) type PlanView = Arc<dyn Fn(String, View) -> BoxFuture<'static, Result<Arc<ViewTable>>> + Send + Sync>;

/// Who has a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Owner {
    Session,
    Folder,
}

/// What a view is told apart by.
type Name = (Owner, String);

/// Views as a statement plans them.
#[derive(Clone, Debug, Default)]
struct Open {
    /// Those that are being planned, each for the one before.
    names: Vec<Name>,
    /// Those that are planned, by their names: many may read the same, and each asks for its columns more than once.
    planned: Arc<Mutex<HashMap<Name, Arc<ViewTable>>>>,
}

tokio::task_local! {
    static OPEN: Open;
}

/// Most views that read one another in a row.
const MOST: usize = 64;

/// A view's plan: made now, unless what is being planned has it already.
///
/// # Errors
/// If it reads itself, or can't be planned.
pub(crate) async fn once(
    owner: Owner,
    shown: String,
    plan: impl Future<Output = Result<ViewTable>> + Send,
) -> Result<Arc<ViewTable>> {
    let mut open = OPEN.try_with(Clone::clone).unwrap_or_default();
    let name = (owner, shown);
    if let Some(planned) = lock(&open.planned).get(&name) {
        return Ok(Arc::clone(planned));
    }
    if open.names.contains(&name) {
        let names: Vec<String> = open.names.into_iter().map(|(_, name)| name).chain([name.1]).collect();
        return exec_err!("a view can't read itself: {}", names.join(" reads "));
    }
    if open.names.len() >= MOST {
        return exec_err!("{}: more than {MOST} views read one another in a row; make a table of one of them", name.1);
    }
    open.names.push(name.clone());
    let all = Arc::clone(&open.planned);
    let planned = Arc::new(OPEN.scope(open, plan).await?);
    lock(&all).insert(name, Arc::clone(&planned));
    Ok(planned)
}

/// Whether what is planned now is a view that a folder keeps.
pub(crate) fn is_planning() -> bool {
    OPEN.try_with(|open| open.names.last().is_some_and(|(owner, _)| *owner == Owner::Folder)).unwrap_or(false)
}

/// Whether what is planned now is a view.
fn is_within_one() -> bool {
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
        SqlError::Message(kind, what) if is_within_one() && what.starts_with("the view ") => SqlError::of(kind, what),
        SqlError::Message(kind, what) => {
            SqlError::of(kind, format!("the view {name} can't be read: {}", missing(what)))
        }
        SqlError::Interrupted => SqlError::Interrupted,
    }
}
