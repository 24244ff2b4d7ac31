//! Views that a folder keeps: each is planned anew from its text by the statement that names it.
//!
//! So a view reads its tables as they are then, and one whose table is gone says so when it is read. While a text is planned,
//! names mean what a folder keeps: tables of the session do not stand in the place of those that the view was made over.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

use datafusion::common::{Result, exec_err};
use datafusion::datasource::ViewTable;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{DdlStatement, LogicalPlan};

use parking_lot::RwLock;
use plinth_core::sync::lock;

use crate::catalog::View;
use crate::database::PlanView;
use crate::depth;
use crate::error::SqlError;
use crate::kept::Kept;
use crate::rewriter::Rewriter;
use crate::schemas::CATALOG;

/// Most views that read one another in a row.
const MOST: usize = 64;

/// Views as a statement plans them.
#[derive(Clone, Debug, Default)]
struct Open {
    /// Those that are being planned, each for the one before.
    names: Vec<String>,
    /// Those that are planned, by their names: many may read the same, and each asks for its columns more than once.
    planned: Arc<Mutex<HashMap<String, Arc<ViewTable>>>>,
}

tokio::task_local! {
    static OPEN: Open;
}

/// Whether what is planned now is the text of a view.
pub(crate) fn is_planning() -> bool {
    OPEN.try_with(|_| ()).is_ok()
}

/// Plans the views of a session's folder, or of one that is attached: by the name of its catalog.
pub(crate) fn plan_views(state: Weak<RwLock<SessionState>>, kept: Arc<Kept>, catalog: String) -> PlanView {
    Arc::new(move |shown, view| {
        let rewriter = state.upgrade().map(|state| Rewriter::new(state, Arc::clone(&kept)).of(catalog.clone()));
        let shown = if catalog == CATALOG { shown } else { format!("{catalog}.{shown}") };
        Box::pin(async move {
            match rewriter {
                Some(rewriter) => plan(rewriter, shown, view).await,
                None => exec_err!("the session is over"),
            }
        })
    })
}

/// The rows of a view. `shown` is its name with all of its parts.
pub(crate) async fn plan(rewriter: Rewriter, shown: String, view: View) -> Result<Arc<ViewTable>> {
    let mut open = OPEN.try_with(Clone::clone).unwrap_or_default();
    if let Some(planned) = lock(&open.planned).get(&shown) {
        return Ok(Arc::clone(planned));
    }
    if open.names.contains(&shown) {
        open.names.push(shown);
        return exec_err!("a view can't read itself: {}", open.names.join(" reads "));
    }
    if open.names.len() >= MOST {
        return exec_err!("{shown}: more than {MOST} views read one another in a row; make a table of one of them");
    }
    open.names.push(shown.clone());
    let all = Arc::clone(&open.planned);
    let planned = Arc::new(OPEN.scope(open, Box::pin(planned(rewriter, view))).await?);
    lock(&all).insert(shown, Arc::clone(&planned));
    Ok(planned)
}

async fn planned(rewriter: Rewriter, View { search, sql }: View) -> Result<ViewTable> {
    let mut statements = depth::parse(&sql)?;
    let (Some(statement), true) = (statements.pop(), statements.is_empty()) else {
        return exec_err!("its text is no statement");
    };
    match rewriter.within(search).planned(statement).await? {
        (_, LogicalPlan::Ddl(DdlStatement::CreateView(view))) => {
            depth::check(&view.input)?;
            Ok(ViewTable::new(Arc::unwrap_or_clone(view.input), Some(sql)))
        }
        _ => exec_err!("its text makes no view"),
    }
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
