//! Names of WITH that stand for other queries around: the engine knows one query of a name.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Cte, Ident, ObjectName, Query, TableAlias, TableFactor, VisitMut, VisitorMut};

use crate::names::normal;

/// Gives the names of a query's WITH that are names around it others.
pub(super) fn renamed(query: &mut Query, around: &[Vec<String>], count: &mut usize) {
    let Some(with) = &mut query.with else { return };
    let recursive = with.recursive;
    for at in 0..with.cte_tables.len() {
        let Some(name) = with.cte_tables.get(at).map(|cte| normal(&cte.alias.name)) else { continue };
        if !around.iter().flatten().any(|other| *other == name) {
            continue;
        }
        *count += 1;
        let mut rename = Rename { to: format!("{name}__{count}"), from: name, hidden: 0 };
        // A name stands for its query behind it, and within it if it is recursive.
        let first = if recursive { at } else { at + 1 };
        for cte in with.cte_tables.iter_mut().skip(first) {
            let _ = cte.query.visit(&mut rename);
        }
        let _ = query.body.visit(&mut rename);
        let _ = query.order_by.visit(&mut rename);
        let _ = query.limit_clause.visit(&mut rename);
        if let Some(Cte { alias, .. }) = with.cte_tables.get_mut(at) {
            alias.name = Ident::with_quote('"', rename.to);
        }
    }
}

/// The names of a query's WITH.
pub(super) fn names(query: &Query) -> Vec<String> {
    query.with.iter().flat_map(|with| &with.cte_tables).map(|cte| normal(&cte.alias.name)).collect()
}

struct Rename {
    from: String,
    to: String,
    /// Queries that are open in which the name stands for another.
    hidden: usize,
}

impl VisitorMut for Rename {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        let Some(at) = names(query).iter().position(|name| *name == self.from) else {
            return ControlFlow::Continue(());
        };
        if let (0, Some(with)) = (self.hidden, &mut query.with) {
            // The queries before the one of the same name, and that itself where it does not mean itself, do not see it.
            let before = if with.recursive { at } else { at + 1 };
            for cte in with.cte_tables.iter_mut().take(before) {
                let _ = cte.query.visit(self);
            }
        }
        self.hidden += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        self.hidden -= usize::from(names(query).contains(&self.from));
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<()> {
        if self.hidden > 0 {
            return ControlFlow::Continue(());
        }
        let TableFactor::Table { name, alias, args: None, .. } = table else { return ControlFlow::Continue(()) };
        let [part] = name.0.as_slice() else { return ControlFlow::Continue(()) };
        let Some(ident) = part.as_ident() else { return ControlFlow::Continue(()) };
        if normal(ident) == self.from {
            let as_written = ident.clone();
            *name = ObjectName::from(vec![Ident::with_quote('"', self.to.clone())]);
            // Its columns are named by the name that is written.
            alias.get_or_insert_with(|| TableAlias { explicit: true, name: as_written, columns: Vec::new(), at: None });
        }
        ControlFlow::Continue(())
    }
}
