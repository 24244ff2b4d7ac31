//! What has to be known of tables to say what a statement means: their columns, or a few of their rows.
//!
//! Rewriting runs without waiting. What it lacks it asks for and stops; once the answer is there, it begins anew.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use arrow_array::RecordBatch;
use arrow_schema::FieldRef;
use datafusion::common::DataFusionError;
use datafusion::sql::sqlparser::ast::{Expr, Ident, Query};

use super::macros::Macros;
use crate::grants::Grants;

/// A column of what is selected from.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    /// The parts of the name of its table.
    pub(crate) table: Vec<String>,
    pub(crate) field: FieldRef,
}

impl Column {
    pub(crate) fn name(&self) -> &str {
        self.field.name()
    }
}

/// A question about tables.
#[derive(Clone, Debug)]
pub(crate) enum Question {
    /// Which columns a query has.
    Columns(Box<Query>),
    /// Which rows a query has, of which there are to be no more than so many.
    Rows(Box<Query>, usize),
}

impl Question {
    pub(crate) fn key(&self) -> String {
        match self {
            Self::Columns(query) => format!("columns {query}"),
            Self::Rows(query, most) => format!("{most} rows {query}"),
        }
    }
}

/// The answer to a question.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    Columns(Arc<[Column]>),
    Rows(Vec<RecordBatch>),
}

/// Why rewriting stopped.
#[derive(Debug)]
pub(crate) enum Stop {
    Error(DataFusionError),
    Ask(Question),
}

impl From<DataFusionError> for Stop {
    fn from(error: DataFusionError) -> Self {
        Self::Error(error)
    }
}

/// What is known by now.
#[derive(Debug, Default)]
pub(crate) struct Known {
    pub(crate) answers: HashMap<String, Answer>,
    pub(crate) macros: Arc<Macros>,
    /// The names of all aggregate functions.
    pub(crate) aggregates: HashSet<String>,
    /// The names of functions that give another value with each call.
    pub(crate) volatile: HashSet<String>,
    /// Whether names that no column has are looked up among aliases and without regard to case.
    pub(crate) lenient: bool,
    /// Whether rows have to come in the order of their tables.
    pub(crate) in_order: AtomicBool,
    /// Which files may be looked at.
    pub(crate) grants: Grants,
}

impl Known {
    /// The columns of a query.
    pub(super) fn columns(&self, query: Query) -> Result<Arc<[Column]>, Stop> {
        let question = Question::Columns(Box::new(query));
        match self.answers.get(&question.key()) {
            Some(Answer::Columns(columns)) => Ok(Arc::clone(columns)),
            _ => Err(Stop::Ask(question)),
        }
    }

    /// The rows of a query, of which there are to be no more than so many.
    pub(super) fn rows(&self, query: Query, most: usize) -> Result<&[RecordBatch], Stop> {
        let question = Question::Rows(Box::new(query), most);
        match self.answers.get(&question.key()) {
            Some(Answer::Rows(rows)) => Ok(rows),
            _ => Err(Stop::Ask(question)),
        }
    }
}

/// A name as it is.
pub(super) fn quoted(name: &str) -> Ident {
    Ident::with_quote('"', name)
}

/// A column by its name, with its table if others have the name too.
pub(super) fn reference(column: &Column, among: &[Column]) -> Expr {
    let alone = among.iter().filter(|other| other.name() == column.name()).count() == 1;
    if alone || column.table.is_empty() {
        return Expr::Identifier(quoted(column.name()));
    }
    let parts = column.table.iter().map(String::as_str).chain([column.name()]);
    Expr::CompoundIdentifier(parts.map(quoted).collect())
}
