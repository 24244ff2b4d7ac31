//! Paths in the text of a view that is kept: they have to mean the same wherever it is read.

use std::ops::ControlFlow;
use std::path::Path;

use datafusion::prelude::SessionContext;
use datafusion::sql::sqlparser::ast::{
    CreateView, Expr, FunctionArg, FunctionArgExpr, Ident, ObjectName, ObjectNamePart, Query, TableFactor, Value,
    ValueWithSpan, VisitMut, VisitorMut,
};

use crate::grants::Grants;
use crate::names::normal;

/// Makes paths begin at the root: of files that FROM names, and of the arguments of functions that read files.
pub(super) fn make_absolute(create: &mut CreateView, context: &SessionContext, grants: &Grants, folder: &Path) {
    let mut with = Names(Vec::new());
    let _ = create.query.visit(&mut with);
    let catalog = context.state_ref().read().config_options().catalog.clone();
    let schema = context.catalog(&catalog.default_catalog).and_then(|all| all.schema(&catalog.default_schema));
    let is_known =
        |name: &String| with.0.contains(name) || schema.as_ref().is_some_and(|schema| schema.table_exist(name));
    let _ = create.query.visit(&mut Factors(&mut |factor: &mut TableFactor| {
        let TableFactor::Table { name, args, .. } = factor else { return };
        match args {
            None => {
                if let Some(path) = path_of(name).filter(|path| !is_known(path))
                    && let Some(absolute) = absolute(folder, &path, grants)
                {
                    *name = ObjectName::from(vec![Ident::with_quote('\'', absolute)]);
                }
            }
            Some(args) => {
                for arg in &mut args.args {
                    if let FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) = arg {
                        make_text_absolute(expr, folder, grants);
                    }
                }
            }
        }
    }));
}

/// A name of one part, which may be a path.
fn path_of(name: &ObjectName) -> Option<String> {
    match name.0.as_slice() {
        [ObjectNamePart::Identifier(name)] => Some(normal(name)),
        _ => None,
    }
}

/// The path from the root of one that begins here, if there is something.
fn absolute(folder: &Path, path: &str, grants: &Grants) -> Option<String> {
    grants.path(path).ok()?;
    let pattern = path.contains(['*', '?', '[']);
    let relative = !path.contains("://") && Path::new(path).is_relative();
    let there = || pattern || folder.join(path).exists();
    (relative && there()).then(|| folder.join(path).to_str().map(str::to_owned)).flatten()
}

fn make_text_absolute(expr: &mut Expr, folder: &Path, grants: &Grants) {
    match expr {
        Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(text), .. }) => {
            if let Some(path) = absolute(folder, text, grants) {
                *text = path;
            }
        }
        Expr::Array(array) => array.elem.iter_mut().for_each(|element| make_text_absolute(element, folder, grants)),
        _ => {}
    }
}

/// The names that WITH gives, wherever it stands.
struct Names(Vec<String>);

impl VisitorMut for Names {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        let tables = query.with.iter().flat_map(|with| &with.cte_tables);
        self.0.extend(tables.map(|table| normal(&table.alias.name)));
        ControlFlow::Continue(())
    }
}

/// Calls a function for each table that FROM names.
struct Factors<'a>(&'a mut dyn FnMut(&mut TableFactor));

impl VisitorMut for Factors<'_> {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        (self.0)(factor);
        ControlFlow::Continue(())
    }
}
