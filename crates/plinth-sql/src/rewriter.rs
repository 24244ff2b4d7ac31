//! From a statement as it is written to one in the words of the engine, and to its plan: the rewriting asks tables for their columns
//! and, of some forms, for values.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::RecordBatch;
use datafusion::common::{DataFusionError, Result, SchemaError, exec_err, plan_err};
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{LogicalPlan, ScalarUDF, Volatility};
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{self, Expr, Query};
use futures::StreamExt;
use futures::future::BoxFuture;
use parking_lot::RwLock;
use plinth_core::sync::lock;

use crate::habits::{self, Answer, Column, Known, Question, Stop};
use crate::kept::Kept;
use crate::meaning::{keep_clauses, resolve_windows};
use crate::numbers::keep_digits;
use crate::schemas::CATALOG;
use crate::{depth, planning, show};

/// Most questions about one statement.
const MOST_QUESTIONS: usize = 10_000;

/// A statement in the words of the engine.
pub(crate) struct Rewritten {
    pub(crate) statement: Statement,
    /// Whether rows have to come in the order of their tables.
    pub(crate) in_order: bool,
}

/// Rewrites statements and plans them, of a session or of the text of a view.
#[derive(Clone)]
pub(crate) struct Rewriter {
    /// The engine's: tables and functions.
    state: Arc<RwLock<SessionState>>,
    kept: Arc<Kept>,
    /// The catalog and the schema of names without them, if not those of the session.
    catalog: String,
    search: Option<String>,
}

impl Rewriter {
    pub(crate) fn new(state: Arc<RwLock<SessionState>>, kept: Arc<Kept>) -> Self {
        Self { state, kept, catalog: CATALOG.to_owned(), search: None }
    }

    /// Of the views of a catalog.
    pub(crate) fn of(self, catalog: String) -> Self {
        Self { catalog, ..self }
    }

    /// A name within its catalog, with that of the catalog if it is none of the session's own.
    pub(crate) fn shown(&self, name: String) -> String {
        if self.catalog == CATALOG { name } else { format!("{}.{name}", self.catalog) }
    }

    /// With the schema of names that have none.
    pub(crate) fn within(self, search: String) -> Self {
        Self { search: Some(search), ..self }
    }

    /// The plan of a statement of rows. Names that no column has may be aliases, or differ in case.
    pub(crate) async fn planned(&self, mut statement: Statement) -> Result<(SessionState, LogicalPlan)> {
        show::rewrite(&mut statement, &self.state.read().config_options().catalog)?;
        let written = may_be_lenient(&statement).then(|| statement.clone());
        match (Box::pin(self.plan(statement, false)).await, written) {
            (Err(error), Some(written)) if is_unknown_name(&error) => {
                Box::pin(self.plan(written, true)).await.map_err(|other| first_unless_told(error, other))
            }
            (plan, _) => plan,
        }
    }

    pub(crate) async fn plan(&self, statement: Statement, lenient: bool) -> Result<(SessionState, LogicalPlan)> {
        let Rewritten { mut statement, in_order } = self.rewritten(statement, lenient).await?;
        keep_digits(&mut statement);
        self.keep_clauses(&mut statement)?;
        resolve_windows(&mut statement)?;
        let mut state = self.state_in(in_order);
        let plan = match &self.search {
            None => planning::logical(&mut state, statement).await?,
            // Views may read one another: what is planned twice for each is planned a thousand times for ten.
            Some(_) => state.statement_to_plan(statement).await?,
        };
        Ok((state, plan))
    }

    /// See [`keep_clauses`].
    pub(crate) fn keep_clauses(&self, statement: &mut Statement) -> Result<()> {
        let state = self.state.read();
        let has_more =
            |name: &str| state.aggregate_functions().contains_key(name) || state.window_functions().contains_key(name);
        keep_clauses(statement, &|name| state.scalar_functions().contains_key(name) && !has_more(name))
    }

    /// The names of functions that give another value with each call.
    fn volatile(&self) -> HashSet<String> {
        let state = self.state.read();
        let draws = |function: &ScalarUDF| function.signature().volatility == Volatility::Volatile;
        let volatile = state.scalar_functions().iter().filter(|(_, function)| draws(function));
        volatile.map(|(name, _)| name.clone()).collect()
    }

    /// Whether an expression may be another with each look.
    pub(crate) fn draws(&self, expr: &Expr) -> bool {
        habits::draws(expr, &self.volatile())
    }

    /// A statement without habits; with `lenient`, its names are looked up among aliases and without regard to case, too.
    pub(crate) fn rewritten(&self, statement: Statement, lenient: bool) -> BoxFuture<'_, Result<Rewritten>> {
        Box::pin(async move {
            let volatile = self.volatile();
            let aggregates = self.state.read().aggregate_functions().keys().cloned().collect();
            let macros = Arc::clone(&lock(&self.kept.macros));
            let grants = self.kept.grants.clone();
            let mut known = Known { macros, aggregates, volatile, lenient, grants, ..Known::default() };
            // Rows that are inserted are many, and ask for nothing.
            let original = (!is_insert_of_values(&statement)).then(|| statement.clone());
            let mut statement = statement;
            loop {
                match habits::rewrite(&mut statement, &known) {
                    Ok(()) => {
                        let in_order = known.in_order.into_inner();
                        return Ok(Rewritten { statement, in_order });
                    }
                    Err(Stop::Error(error)) => return Err(error),
                    Err(Stop::Ask(question)) => {
                        if known.answers.len() >= MOST_QUESTIONS {
                            return plan_err!("the statement asks for too many tables");
                        }
                        let key = question.key();
                        let answer = self.answer(question).await?;
                        known.answers.insert(key, answer);
                    }
                }
                if let Some(original) = &original {
                    statement = original.clone();
                }
            }
        })
    }

    async fn answer(&self, question: Question) -> Result<Answer> {
        match question {
            Question::Columns(query) => {
                let (_, plan) = self.asked(*query).await?;
                let parts = |table: &datafusion::common::TableReference| {
                    let parts = [table.catalog(), table.schema(), Some(table.table())];
                    parts.into_iter().flatten().map(str::to_owned).collect()
                };
                let columns = plan.schema().iter().map(|(table, field)| Column {
                    table: table.map(parts).unwrap_or_default(),
                    field: Arc::clone(field),
                });
                Ok(Answer::Columns(columns.collect()))
            }
            Question::Rows(query, most) => Ok(Answer::Rows(self.rows_of(*query, most).await?)),
        }
    }

    /// The plan of a query.
    async fn asked(&self, query: Query) -> Result<(SessionState, LogicalPlan)> {
        let statement = Statement::Statement(Box::new(ast::Statement::Query(Box::new(query))));
        let (state, plan) = Box::pin(self.plan(statement, false)).await?;
        depth::check(&plan).map_err(|error| DataFusionError::Plan(error.to_string()))?;
        Ok((state, plan))
    }

    /// The rows of a query, not more than `most`.
    pub(crate) async fn rows_of(&self, query: Query, most: usize) -> Result<Vec<RecordBatch>> {
        let (state, plan) = self.asked(query).await?;
        let mut stream = planning::physical(state, plan).await?.start()?;
        let (mut rows, mut count) = (Vec::new(), 0);
        while let Some(batch) = stream.next().await {
            let batch = batch?;
            count += batch.num_rows();
            if count > most {
                return exec_err!("more than {most} values: name those that are wanted, as in PIVOT t ON a IN (1, 2)");
            }
            rows.push(batch);
        }
        Ok(rows)
    }

    /// The engine's state, in which rows come in the order of their tables if that is wanted.
    pub(crate) fn state_in(&self, order: bool) -> SessionState {
        let mut state = self.state.read().clone();
        state.mark_start_execution();
        let options = state.config_mut().options_mut();
        if order {
            options.execution.target_partitions = 1;
        }
        if let Some(search) = &self.search {
            options.catalog.default_catalog.clone_from(&self.catalog);
            options.catalog.default_schema.clone_from(search);
        }
        state
    }
}

fn is_insert_of_values(statement: &Statement) -> bool {
    let Statement::Statement(inner) = statement else { return false };
    match inner.as_ref() {
        ast::Statement::Insert(insert) => {
            insert.source.as_ref().is_some_and(|query| matches!(query.body.as_ref(), ast::SetExpr::Values(_)))
        }
        _ => false,
    }
}

/// Whether a statement is one of rows, whose names may be aliases or differ in case.
pub(crate) fn may_be_lenient(statement: &Statement) -> bool {
    match statement {
        Statement::Statement(inner) => {
            matches!(
                inner.as_ref(),
                ast::Statement::Query(_) | ast::Statement::CreateTable(_) | ast::Statement::CreateView(_)
            )
        }
        Statement::Explain(explain) => may_be_lenient(&explain.statement),
        Statement::CopyTo(_) => true,
        _ => false,
    }
}

/// A statement that is a PREPARE.
pub(crate) fn as_prepare(statement: &Statement) -> Option<&ast::Statement> {
    match statement {
        Statement::Statement(inner) => {
            Some(inner.as_ref()).filter(|inner| matches!(inner, ast::Statement::Prepare { .. }))
        }
        _ => None,
    }
}

pub(crate) fn is_unknown_name(error: &DataFusionError) -> bool {
    matches!(error.find_root(), DataFusionError::SchemaError(schema, _) if matches!(schema.as_ref(), SchemaError::FieldNotFound { .. }))
}

/// Of two errors about a name the first, unless the other says why it means nothing.
pub(crate) fn first_unless_told(first: DataFusionError, other: DataFusionError) -> DataFusionError {
    if matches!(other.find_root(), DataFusionError::Plan(_)) { other } else { first }
}
