//! A plan for people: its operators as a tree, the rows that statistics let expect, and what each operator did.

use std::sync::Arc;
use std::time::{Duration, Instant};

use datafusion::common::runtime::SpawnedTask;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast;
use futures::StreamExt;
use plinth_profile::{Profiler, Stage, StoreTraffic};

use crate::error::{Result, SqlError};
use crate::planning::Where;
use crate::profiles::of_stores;
use crate::statements::Planned;
use crate::steps::{Step, step};
use crate::{Params, Session};

/// What a statement asks to be explained, if it wants a tree: a query, and whether it is to run.
pub fn asks_for_tree(statement: &Statement) -> Option<(&Statement, bool)> {
    let Statement::Explain(explain) = statement else { return None };
    let options = &explain.options;
    let others = options.verbose
        || options.format.is_some()
        || options.analyze_level.is_some()
        || options.analyze_categories.is_some()
        || options.show_statistics.is_some();
    // A plan of anything else would be made by running it.
    let query = matches!(explain.statement.as_ref(), Statement::Statement(inner) if matches!(**inner, ast::Statement::Query(_)));
    (query && !others).then_some((explain.statement.as_ref(), options.analyze))
}

/// A plan as a tree.
#[derive(Clone, Debug)]
pub struct Explained {
    /// The operator that hands out the rows.
    pub root: Step,
    /// Time to plan it.
    pub planned: Duration,
    /// Rows that came out and the time until the last, if it ran.
    pub ran: Option<(u64, Duration)>,
    /// What went to object stores and came from them meanwhile, if anything did: of all statements of the session.
    pub far: Option<StoreTraffic>,
    /// Why it runs in this process alone, where queries are spread over several.
    pub alone: Option<String>,
}

impl Session {
    /// Plans a query, runs it if that is asked for, and tells of its operators.
    ///
    /// # Errors
    /// If the query is refused or fails.
    pub async fn explain(
        self: &Arc<Self>,
        query: Statement,
        params: &Params,
        runs: bool,
        profiler: &Profiler,
    ) -> Result<Explained> {
        let (session, params, profiler) = (Arc::clone(self), params.clone(), profiler.clone());
        let work = async move {
            let (started, before) = (Instant::now(), session.objects.traffic());
            session.profiles.begin(before);
            let planned = profiler.around(Stage::Plan, session.planned_by(query, &params, false)).await?;
            let Planned::Query(physical) = planned else {
                return Err(SqlError::new("EXPLAIN: the statement is no query"));
            };
            let planned = started.elapsed();
            let plan = physical.plan();
            let (spread, alone) = match physical.place() {
                Some(Where::There(spread)) => (Some(Arc::clone(spread)), None),
                Some(Where::Here(why)) => (None, Some(why.clone())),
                None => (None, None),
            };
            let root = async |ran: bool| match &spread {
                Some(spread) => Ok::<_, SqlError>(spread.explain(&plan, ran).await?),
                None => Ok(step(&plan, ran)),
            };
            if !runs {
                return Ok(Explained { root: root(false).await?, planned, ran: None, far: None, alone });
            }
            let started = Instant::now();
            let mut stream = physical.start()?;
            let counted = async move {
                let mut rows = 0;
                while let Some(batch) = stream.next().await {
                    rows += batch?.num_rows() as u64;
                }
                Ok::<u64, SqlError>(rows)
            };
            let rows = profiler.around(Stage::Output, counted).await?;
            let ran = Some((rows, started.elapsed()));
            let far = of_stores(session.objects.traffic().since(before));
            Ok(Explained { root: root(true).await?, planned, ran, far, alone })
        };
        SpawnedTask::spawn(work).await.map_err(|_| SqlError::new("the statement was given up: see above"))?
    }
}
