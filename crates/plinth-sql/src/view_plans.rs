//! Views that a folder keeps: each is planned anew from its text by the statement that names it.
//!
//! So a view reads its tables as they are then, and one whose table is gone says so when it is read.

use std::sync::{Arc, Weak};

use datafusion::common::{Result, exec_err};
use datafusion::datasource::ViewTable;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{DdlStatement, LogicalPlan};
use parking_lot::RwLock;
use plinth_core::sync::lock;

use crate::catalog::View;
use crate::depth;
use crate::kept::Kept;
use crate::rewriter::Rewriter;
use crate::views::{OPEN, PlanView};

/// Most views that read one another in a row.
const MOST: usize = 64;

/// Plans the views of a session's folder, or of one that is attached: by the name of its catalog.
pub(crate) fn plan_views(state: Weak<RwLock<SessionState>>, kept: Arc<Kept>, catalog: String) -> PlanView {
    Arc::new(move |shown, view| {
        let rewriter = state.upgrade().map(|state| Rewriter::new(state, Arc::clone(&kept)).of(catalog.clone()));
        Box::pin(async move {
            match rewriter {
                Some(rewriter) => plan(rewriter, shown, view).await,
                None => exec_err!("the session is over"),
            }
        })
    })
}

/// The rows of a view. `shown` is its name, with that of its schema, within the catalog of the rewriter.
pub(crate) async fn plan(rewriter: Rewriter, shown: String, view: View) -> Result<Arc<ViewTable>> {
    let shown = rewriter.shown(shown);
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
