//! Tables with no more columns than a statement names: planning a query over a wide table looks at every column of it again and again.
//!
//! Names are told by the words of the statement's text: a column stays if its name is one of them, wherever it stands and whatever it
//! means there. So each name means what it would among all columns. Where columns are read that are not named (`*`, NATURAL, a list of
//! new names) all of them stay.

use std::collections::HashSet;
use std::fmt::{self, Write};
use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::catalog::{CatalogProvider, CatalogProviderList, SchemaProvider, TableProvider};
use datafusion::common::Result;
use datafusion::datasource::TableType;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Query, Select, SelectItem, SetExpr, Statement as Plain,
    TableFactor, Visit, Visitor,
};
use futures::future::BoxFuture;

use super::{engine, names};

/// Words that stand for columns which are not named.
const OF_ALL: [&str; 2] = ["natural", "information_schema"];

/// The words of a statement which reads no columns but those it names.
#[derive(Debug, Default)]
pub(crate) struct Words {
    /// In lower case.
    known: HashSet<String>,
    /// The one that is being written.
    word: String,
}

impl Words {
    /// Those of a query, or of the query that is explained; `None` if it may read columns that it does not name.
    pub(crate) fn of(statement: &Statement) -> Option<Self> {
        let plain = match statement {
            Statement::Statement(plain) => plain,
            Statement::Explain(explain) => match explain.statement.as_ref() {
                Statement::Statement(plain) => plain,
                _ => return None,
            },
            _ => return None,
        };
        let Plain::Query(query) = plain.as_ref() else { return None };
        if query.visit(&mut Named).is_break() {
            return None;
        }
        let mut words = Self::default();
        write!(words, "{query} ").ok()?;
        OF_ALL.iter().all(|word| !words.known.contains(*word)).then_some(words)
    }

    /// Whether a statement with these words may name a column.
    fn name(&self, column: &str) -> bool {
        // Other names are not told from the text.
        !column.bytes().all(is_of_word) || self.known.contains(&column.to_ascii_lowercase())
    }
}

impl Write for Words {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            if is_of_word(byte) {
                self.word.push(char::from(byte.to_ascii_lowercase()));
            } else if !self.word.is_empty() {
                self.known.insert(std::mem::take(&mut self.word));
            }
        }
        Ok(())
    }
}

fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Stops where columns are read that are not named.
struct Named;

impl Visitor for Named {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        let mut bodies = vec![query.body.as_ref()];
        while let Some(body) = bodies.pop() {
            match body {
                SetExpr::SetOperation { left, right, .. } => bodies.extend([left.as_ref(), right.as_ref()]),
                // The others are visited.
                SetExpr::Select(_) | SetExpr::Query(_) | SetExpr::Values(_) => {}
                _ => return ControlFlow::Break(()),
            }
        }
        known(query.pipe_operators.is_empty())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        let items = |item: &SelectItem| matches!(item, SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. });
        let plain = select.exclude.is_none() && select.into.is_none() && select.lateral_views.is_empty();
        known(plain && !select.projection.is_empty() && select.projection.iter().all(items))
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        let alias = match factor {
            TableFactor::Table { alias, .. }
            | TableFactor::Derived { alias, .. }
            | TableFactor::NestedJoin { alias, .. } => alias,
            _ => return ControlFlow::Break(()),
        };
        // A list of new names is one of places.
        known(alias.as_ref().is_none_or(|alias| alias.columns.is_empty()))
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        let wild = |arg: &FunctionArg| match arg {
            FunctionArg::Named { arg, .. } | FunctionArg::ExprNamed { arg, .. } | FunctionArg::Unnamed(arg) => {
                !matches!(arg, FunctionArgExpr::Expr(_))
            }
        };
        known(match expr {
            Expr::Wildcard(_) | Expr::QualifiedWildcard(..) => false,
            Expr::Function(function) => match &function.args {
                FunctionArguments::List(list) => {
                    let counts = || function.name.to_string().eq_ignore_ascii_case("count");
                    let all = |arg: &FunctionArg| matches!(arg, FunctionArg::Unnamed(FunctionArgExpr::Wildcard));
                    list.args.iter().all(|arg| !wild(arg) || (all(arg) && counts()))
                }
                _ => true,
            },
            _ => true,
        })
    }
}

fn known(known: bool) -> ControlFlow<()> {
    if known { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
}

/// Catalogs as a statement with these words sees them.
#[derive(Debug)]
pub(crate) struct Narrow<T: ?Sized> {
    all: Arc<T>,
    words: Arc<Words>,
}

impl<T: ?Sized> Narrow<T> {
    pub(crate) fn new(all: Arc<T>, words: &Arc<Words>) -> Arc<Self> {
        Arc::new(Self { all, words: Arc::clone(words) })
    }
}

impl CatalogProviderList for Narrow<dyn CatalogProviderList> {
    fn register_catalog(&self, name: String, catalog: Arc<dyn CatalogProvider>) -> Option<Arc<dyn CatalogProvider>> {
        self.all.register_catalog(name, catalog)
    }

    fn catalog_names(&self) -> Vec<String> {
        self.all.catalog_names()
    }

    fn catalog(&self, name: &str) -> Option<Arc<dyn CatalogProvider>> {
        Some(Narrow::new(self.all.catalog(name)?, &self.words) as _)
    }
}

impl CatalogProvider for Narrow<dyn CatalogProvider> {
    fn schema_names(&self) -> Vec<String> {
        self.all.schema_names()
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        let schema = self.all.schema(name)?;
        // What a statement reads beside the tables that it names.
        Some(if name == names::SCRATCH { schema } else { Narrow::new(schema, &self.words) as _ })
    }
}

impl SchemaProvider for Narrow<dyn SchemaProvider> {
    fn table_names(&self) -> Vec<String> {
        self.all.table_names()
    }

    // `async_trait`'s signature, written out.
    fn table<'a: 'c, 'b: 'c, 'c>(&'a self, name: &'b str) -> BoxFuture<'c, Result<Option<Arc<dyn TableProvider>>>> {
        Box::pin(async move {
            let table = self.all.table(name).await?;
            Ok(table.map(|table| engine::of_columns(table, |column| self.words.name(column))))
        })
    }

    fn table_type<'a: 'c, 'b: 'c, 'c>(&'a self, name: &'b str) -> BoxFuture<'c, Result<Option<TableType>>> {
        self.all.table_type(name)
    }

    fn table_exist(&self, name: &str) -> bool {
        self.all.table_exist(name)
    }
}
