//! How views are planned: anew by each statement that names them.
//!
//! So a view reads its tables as they are then, and one whose table is gone says so when it is read.

use std::sync::{Arc, Weak};

use datafusion::catalog::TableProvider;
use datafusion::common::{Result, exec_err};
use datafusion::datasource::ViewTable;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{DdlStatement, LogicalPlan};
use datafusion::sql::parser::Statement;
use parking_lot::RwLock;

use crate::catalog::View;
use crate::depth;
use crate::kept::Kept;
use crate::rewriter::Rewriter;
use crate::session_views::{PlanAgain, SessionView};
use crate::views::{Owner, PlanView, once};

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

/// The rows of a view that a folder keeps. `shown` is its name, with that of its schema, within the catalog of the rewriter.
pub(crate) async fn plan(rewriter: Rewriter, shown: String, View { search, sql }: View) -> Result<Arc<ViewTable>> {
    let shown = rewriter.shown(shown);
    let planned = async move {
        let mut statements = depth::parse(&sql)?;
        let (Some(statement), true) = (statements.pop(), statements.is_empty()) else {
            return exec_err!("its text is no statement");
        };
        let (plan, _) = planned(rewriter.within(search), statement).await?;
        Ok(ViewTable::new(plan, Some(sql)))
    };
    once(Owner::Folder, shown, Box::pin(planned)).await
}

/// What a statement makes a view of, and its text.
async fn planned(rewriter: Rewriter, statement: Statement) -> Result<(LogicalPlan, Option<String>)> {
    match rewriter.planned(statement).await? {
        (_, LogicalPlan::Ddl(DdlStatement::CreateView(view))) => {
            depth::check(&view.input)?;
            Ok((Arc::unwrap_or_clone(view.input), view.definition))
        }
        _ => exec_err!("its text makes no view"),
    }
}

/// The view of a session that a statement makes, and its plan as it is now.
pub(crate) async fn of_session(
    shown: String,
    statement: Statement,
    state: Weak<RwLock<SessionState>>,
    kept: &Arc<Kept>,
) -> Result<(SessionView, Arc<ViewTable>)> {
    let Some(now) = state.upgrade() else { return exec_err!("the session is over") };
    let catalog = now.read().config_options().catalog.clone();
    drop(now);
    let (kept, name) = (Arc::clone(kept), shown.clone());
    let plan: PlanAgain = Arc::new(move || {
        let rewriter = state.upgrade().map(|state| Rewriter::new(state, Arc::clone(&kept)));
        // Names without a catalog and a schema mean what they meant when the view was made.
        let (of, search) = (catalog.default_catalog.clone(), catalog.default_schema.clone());
        let (name, statement) = (name.clone(), statement.clone());
        Box::pin(async move {
            let Some(rewriter) = rewriter else { return exec_err!("the session is over") };
            let planned = planned(rewriter.of(of).within(search), statement);
            let planned = async { planned.await.map(|(plan, text)| ViewTable::new(plan, text)) };
            once(Owner::Session, name, Box::pin(planned)).await
        })
    });
    let planned = plan().await?;
    Ok((SessionView::new(shown, plan, planned.schema()), planned))
}
