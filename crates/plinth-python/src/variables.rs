//! Names in statements that are no tables: variables of Python.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use datafusion::catalog::{MemorySchemaProvider, SchemaProvider, TableProvider};
use datafusion::sql::sqlparser::ast::{
    self, Ident, ObjectName, ObjectNamePart, Query, TableAlias, TableFactor, VisitorMut,
};
use plinth_adbc::visit;
use plinth_sql::{Session, Statement};

/// The schema of what statements name by variables.
pub(crate) const SCHEMA: &str = "plinth_python";

/// Names that a statement reads from and that WITH does not explain, as they are written.
pub(crate) fn names_of(statement: &mut Statement) -> BTreeSet<String> {
    #[derive(Default)]
    struct Names {
        with: BTreeSet<String>,
        read: BTreeSet<(String, String)>,
    }
    impl VisitorMut for Names {
        type Break = ();

        fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
            let tables = query.with.iter().flat_map(|with| &with.cte_tables);
            self.with.extend(tables.map(|table| normal(&table.alias.name)));
            ControlFlow::Continue(())
        }

        fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
            if let Some(name) = variable(factor) {
                self.read.insert((normal(name), name.value.clone()));
            }
            ControlFlow::Continue(())
        }
    }
    let mut names = Names::default();
    visit(statement, &mut names);
    let Names { with, read } = names;
    read.into_iter().filter(|(normal, _)| !with.contains(normal)).map(|(_, name)| name).collect()
}

fn normal(name: &Ident) -> String {
    if name.quote_style.is_some() { name.value.clone() } else { name.value.to_lowercase() }
}

/// The name of a table that may be one of a variable.
fn variable(factor: &TableFactor) -> Option<&Ident> {
    let TableFactor::Table { name: ObjectName(parts), args: None, .. } = factor else { return None };
    let [ObjectNamePart::Identifier(name)] = parts.as_slice() else { return None };
    let mut letters = name.value.chars();
    let named = letters.next().is_some_and(|first| first.is_alphabetic() || first == '_')
        && letters.all(|letter| letter.is_alphanumeric() || letter == '_')
        && name.quote_style != Some('\'');
    named.then_some(name)
}

/// Whether a session has a table of this name.
pub(crate) fn is_table(session: &Session, name: &str) -> bool {
    let schema = session.context().catalog("datafusion").and_then(|catalog| catalog.schema("public"));
    schema.is_some_and(|schema| schema.table_exist(name) || schema.table_exist(&name.to_lowercase()))
}

/// Tables that statements know while they are planned.
#[derive(Debug)]
pub(crate) struct Registered {
    schema: Arc<MemorySchemaProvider>,
    names: Vec<String>,
}

impl Registered {
    /// Makes tables known, each under a name of its own that the statement then has in the place of the variable's.
    pub(crate) fn new(
        schema: &Arc<MemorySchemaProvider>,
        statement: &mut Statement,
        tables: &[(String, Arc<dyn TableProvider>)],
    ) -> datafusion::common::Result<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let mut registered = Self { schema: Arc::clone(schema), names: Vec::new() };
        let mut renamed = Renamed(Vec::new());
        for (variable, table) in tables {
            let name = NUMBER.fetch_add(1, Ordering::Relaxed).to_string();
            registered.schema.register_table(name.clone(), Arc::clone(table))?;
            renamed.0.push((variable.clone(), name.clone()));
            registered.names.push(name);
        }
        if !tables.is_empty() {
            visit(statement, &mut renamed);
        }
        // A view is planned anew whenever it is read: what it reads lasts as long as the connection.
        if is_view(statement) {
            registered.names.clear();
        }
        Ok(registered)
    }
}

fn is_view(statement: &Statement) -> bool {
    matches!(statement, Statement::Statement(inner) if matches!(inner.as_ref(), ast::Statement::CreateView(_)))
}

impl Drop for Registered {
    fn drop(&mut self) {
        for name in &self.names {
            let _ = self.schema.deregister_table(name);
        }
    }
}

struct Renamed(Vec<(String, String)>);

impl VisitorMut for Renamed {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        let Some(written) = variable(factor).cloned() else { return ControlFlow::Continue(()) };
        let Some((_, to)) = self.0.iter().find(|(variable, _)| *variable == written.value) else {
            return ControlFlow::Continue(());
        };
        if let TableFactor::Table { name, alias, .. } = factor {
            let quoted = |name: &str| ObjectNamePart::Identifier(Ident::with_quote('"', name));
            *name = ObjectName(vec![quoted(SCHEMA), quoted(to)]);
            // Its columns are still qualified by the variable.
            alias.get_or_insert_with(|| TableAlias { explicit: true, name: written, columns: Vec::new(), at: None });
        }
        ControlFlow::Continue(())
    }
}
