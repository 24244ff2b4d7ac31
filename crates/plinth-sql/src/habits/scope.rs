//! Which names of WITH can be used where.

use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{Cte, Query, TableWithJoins, With};

use super::known::{Column, Known, Stop};
use super::templates;
use std::sync::Arc;

/// The queries that are open, from the outermost.
#[derive(Debug, Default)]
pub(super) struct Scope {
    frames: Vec<Frame>,
}

#[derive(Debug)]
struct Frame {
    recursive: bool,
    names: Vec<Cte>,
    /// How many of the names have been rewritten, which are those before the query that is visited.
    done: usize,
    /// Whether it is itself what a name of the query around it stands for.
    is_named: bool,
}

impl Scope {
    /// A query is about to be visited.
    pub(super) fn enter(&mut self, query: &Query) {
        let is_named = self.frames.last().is_some_and(|frame| frame.done < frame.names.len());
        let (recursive, names) = match &query.with {
            Some(with) => (with.recursive, with.cte_tables.clone()),
            None => (false, Vec::new()),
        };
        self.frames.push(Frame { recursive, names, done: 0, is_named });
    }

    /// A query has been rewritten.
    pub(super) fn leave(&mut self, query: &Query) {
        let Some(left) = self.frames.pop() else { return };
        if let (true, Some(frame)) = (left.is_named, self.frames.last_mut()) {
            if let Some(name) = frame.names.get_mut(frame.done) {
                *name.query = query.clone();
            }
            frame.done += 1;
        }
    }

    /// A WITH of all names that can be used here, behind those of a query.
    pub(super) fn with(&self, further: Option<&With>) -> Option<With> {
        let mut cte_tables: Vec<Cte> = Vec::new();
        let mut recursive = further.is_some_and(|with| with.recursive);
        for frame in &self.frames {
            recursive |= frame.recursive;
            for name in frame.names.iter().take(frame.done) {
                // The inner one of a name is meant.
                cte_tables.retain(|other| other.alias.name != name.alias.name);
                cte_tables.push(name.clone());
            }
        }
        for name in further.iter().flat_map(|with| &with.cte_tables) {
            cte_tables.retain(|other| other.alias.name != name.alias.name);
            cte_tables.push(name.clone());
        }
        (!cte_tables.is_empty()).then(|| With { with_token: AttachedToken::empty(), recursive, cte_tables })
    }

    /// The columns of tables.
    pub(super) fn columns(&self, from: &[TableWithJoins], known: &Known) -> Result<Arc<[Column]>, Stop> {
        let mut query = templates::query("SELECT * FROM t")?;
        templates::set_from(&mut query, from.to_vec());
        query.with = self.with(None);
        known.columns(*query)
    }
}
