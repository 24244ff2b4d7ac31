//! Which names of WITH can be used where.

use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{Cte, Query, Select, SetExpr, TableWithJoins, With};

use super::known::{Column, Known, Stop};
use super::templates;
use std::sync::Arc;

/// How columns begin that rewriting adds, and no query is to see.
pub(super) const HIDDEN: &str = "plinth_hidden_";

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
    /// Of a recursion, the rows that it begins with. Its steps see a table of their columns.
    beginning: Option<SetExpr>,
    /// Whether the beginning is a SELECT that is still to be rewritten.
    begins: bool,
}

impl Frame {
    /// What a name stands for within this query, which is that of the name, if it may refer to itself.
    fn step_of(&self, name: &Cte) -> Option<Cte> {
        let beginning = self.beginning.as_ref().filter(|_| !self.begins)?;
        let mut name = name.clone();
        let names = self.names.iter().take(self.done).cloned().collect::<Vec<_>>();
        let with = With { with_token: AttachedToken::empty(), recursive: self.recursive, cte_tables: names };
        *name.query = Query {
            with: (!with.cte_tables.is_empty()).then_some(with),
            body: Box::new(beginning.clone()),
            order_by: None,
            limit_clause: None,
            ..*name.query
        };
        Some(name)
    }
}

/// The first of several parts of a query.
fn beginning(body: &SetExpr) -> Option<&SetExpr> {
    let SetExpr::SetOperation { left, .. } = body else { return None };
    let mut first = left.as_ref();
    while let SetExpr::SetOperation { left, .. } = first {
        first = left;
    }
    Some(first)
}

impl Scope {
    /// A query is about to be visited.
    pub(super) fn enter(&mut self, query: &Query) {
        let around = self.frames.last().filter(|frame| frame.done < frame.names.len());
        let beginning = around.filter(|frame| frame.recursive).and_then(|_| beginning(&query.body)).cloned();
        let begins = matches!(beginning, Some(SetExpr::Select(_)));
        let is_named = around.is_some();
        let (recursive, names) = match &query.with {
            Some(with) => (with.recursive, with.cte_tables.clone()),
            None => (false, Vec::new()),
        };
        self.frames.push(Frame { recursive, names, done: 0, is_named, beginning, begins });
    }

    /// A SELECT of the innermost query has been rewritten.
    pub(super) fn rewritten(&mut self, select: &Select) {
        if let Some(frame) = self.frames.last_mut().filter(|frame| frame.begins) {
            frame.beginning = Some(SetExpr::Select(Box::new(select.clone())));
            frame.begins = false;
        }
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
        // The inner one of a name is meant.
        let mut add = |name: Cte| {
            cte_tables.retain(|other| other.alias.name != name.alias.name);
            cte_tables.push(name);
        };
        for (frame, within) in self.frames.iter().zip(self.frames.iter().skip(1).map(Some).chain([None])) {
            recursive |= frame.recursive;
            frame.names.iter().take(frame.done).cloned().for_each(&mut add);
            if let (Some(name), Some(within)) = (frame.names.get(frame.done), within) {
                within.step_of(name).into_iter().for_each(&mut add);
            }
        }
        further.iter().flat_map(|with| &with.cte_tables).cloned().for_each(&mut add);
        (!cte_tables.is_empty()).then(|| With { with_token: AttachedToken::empty(), recursive, cte_tables })
    }

    /// The columns of tables, but for the hidden ones.
    pub(super) fn columns(&self, from: &[TableWithJoins], known: &Known) -> Result<Arc<[Column]>, Stop> {
        let mut query = templates::query("SELECT * FROM t")?;
        templates::set_from(&mut query, from.to_vec());
        query.with = self.with(None);
        let columns = known.columns(*query)?;
        let is_seen = |column: &&Column| !column.name().starts_with(HIDDEN);
        Ok(if columns.iter().all(|column| is_seen(&column)) {
            columns
        } else {
            columns.iter().filter(is_seen).cloned().collect()
        })
    }
}
