//! Answers to what the rewriting of statements asks of tables.

use std::sync::Arc;

use arrow_array::RecordBatch;
use datafusion::common::{DataFusionError, Result, ScalarValue, exec_err, plan_err};
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{self, ObjectNamePart, Query, Set};
use futures::StreamExt;
use futures::future::BoxFuture;
use plinth_core::sync::lock;

use crate::habits::{self, Answer, Column, Known, Question, Stop};
use crate::meaning::resolve_windows;
use crate::names::normal;
use crate::numbers::keep_digits;
use crate::{Session, depth, planning};

/// Most questions about one statement.
const MOST_QUESTIONS: usize = 10_000;

/// A statement in the words of the engine.
pub(crate) struct Rewritten {
    pub(crate) statement: Statement,
    /// Whether rows have to come in the order of their tables.
    pub(crate) in_order: bool,
}

impl Session {
    /// A statement without habits; with `lenient`, its names are looked up among aliases and without regard to case, too.
    pub(crate) fn rewritten(&self, statement: Statement, lenient: bool) -> BoxFuture<'_, Result<Rewritten>> {
        Box::pin(async move {
            let aggregates = self.context.state_ref().read().aggregate_functions().keys().cloned().collect();
            let macros = Arc::clone(&lock(&self.kept.macros));
            let mut known = Known { macros, aggregates, lenient, ..Known::default() };
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
        let Rewritten { mut statement, in_order } = self.rewritten(statement, false).await?;
        keep_digits(&mut statement);
        resolve_windows(&mut statement)?;
        let mut state = self.state_in(in_order);
        let plan = planning::logical(&mut state, statement).await?;
        depth::check(&plan).map_err(|error| DataFusionError::Plan(error.to_string()))?;
        Ok((state, plan))
    }

    async fn rows_of(&self, query: Query, most: usize) -> Result<Vec<RecordBatch>> {
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
        let mut state = self.context.state();
        if order {
            state.config_mut().options_mut().execution.target_partitions = 1;
        }
        state
    }

    /// Runs a statement that changes what is kept for others; whether it is one.
    pub(crate) async fn keep(&self, statement: &Statement) -> Result<bool> {
        let Statement::Statement(inner) = statement else { return Ok(false) };
        match inner.as_ref() {
            ast::Statement::CreateMacro { or_replace, temporary: _, name, args, definition } => {
                let mut macros = lock(&self.kept.macros);
                let args = args.clone().unwrap_or_default();
                Arc::make_mut(&mut macros).create(name, *or_replace, args, definition.clone())?;
                Ok(true)
            }
            ast::Statement::DropFunction(drop) => {
                let mut macros = lock(&self.kept.macros);
                for function in &drop.func_desc {
                    if !Arc::make_mut(&mut macros).remove(&function.name) && !drop.if_exists {
                        return plan_err!("DROP FUNCTION {}: there is no macro of this name", function.name);
                    }
                }
                Ok(true)
            }
            ast::Statement::Set(Set::SingleAssignment { variable, values, .. }) => {
                let [ObjectNamePart::Identifier(kind), ObjectNamePart::Identifier(name)] = variable.0.as_slice() else {
                    return Ok(false);
                };
                let [value] = values.as_slice() else { return Ok(false) };
                if normal(kind) != "plinth_variable" {
                    return Ok(false);
                }
                let mut query = habits::query("SELECT 1 AS value")?;
                habits::set_items(&mut query, vec![ast::SelectItem::UnnamedExpr(value.clone())]);
                let rows = self.rows_of(*query, 1).await?;
                let value = rows.iter().find(|batch| batch.num_rows() > 0).and_then(|batch| batch.columns().first());
                let value = match value {
                    Some(value) => ScalarValue::try_from_array(value, 0)?,
                    None => ScalarValue::Null,
                };
                self.kept.variables.set(normal(name), value);
                Ok(true)
            }
            _ => Ok(false),
        }
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
