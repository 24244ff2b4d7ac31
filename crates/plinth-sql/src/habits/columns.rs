//! Columns by patterns: `COLUMNS('a.*')`, `COLUMNS(c -> c LIKE 'a%')`, `* LIKE 'a%'`, `* RENAME (a AS b)`, and the fields of a struct by `s.*`.

use std::ops::ControlFlow;
use std::sync::Arc;

use arrow_array::{Array, BooleanArray};
use arrow_schema::DataType;
use datafusion::common::{Result, plan_datafusion_err, plan_err};
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, ExceptSelectItem, ExcludeSelectItem, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArguments, LambdaFunction, ObjectName, Query, RenameSelectItem, Select, SelectItem,
    SelectItemQualifiedWildcardKind, TableFactor, Value, VisitMut, VisitorMut, WildcardAdditionalOptions,
};
use regex::Regex;

use super::known::{Column, Known, Stop, quoted, reference};
use super::scope::Scope;
use super::{headings, simple_name, templates, text_of};
use crate::names::normal;

/// Puts columns into the places of patterns.
pub(super) fn expand(
    select: &mut Select,
    headings: &mut Vec<Option<String>>,
    written: &[SelectItem],
    known: &Known,
    scope: &Scope,
) -> Result<(), Stop> {
    let mut items = Vec::with_capacity(select.projection.len());
    let mut names = Vec::with_capacity(headings.len());
    let mut columns: Option<Arc<[Column]>> = None;
    let mut all = || -> Result<Arc<[Column]>, Stop> {
        if columns.is_none() {
            columns = Some(scope.columns(&select.from, known)?);
        }
        columns.clone().ok_or_else(|| plan_datafusion_err!("no columns").into())
    };
    for (at, item) in select.projection.iter().enumerate() {
        let heading = headings.get(at).cloned().flatten();
        match item {
            SelectItem::Wildcard(options) if is_changed(options) => {
                for (item, name) in renamed(options, &all()?, None)? {
                    items.push(item);
                    names.push(name);
                }
            }
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), options) => {
                let is_table = names_table(select, name);
                if is_table && !is_changed(options) {
                    items.push(item.clone());
                    names.push(None);
                } else if is_table {
                    for (item, name) in renamed(options, &all()?, last_of(name).as_deref())? {
                        items.push(item);
                        names.push(name);
                    }
                } else {
                    for field in fields(name, &all()?)? {
                        items.push(field);
                        names.push(None);
                    }
                }
            }
            SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } if has_pattern(expr) => {
                let columns = all()?;
                let chosen = chosen(expr, &columns, known)?;
                if chosen.is_empty() {
                    return Ok(plan_err!("no column fits: {expr}")?);
                }
                let alias = match item {
                    SelectItem::ExprWithAlias { alias, .. } => Some(alias.clone()),
                    _ => None,
                };
                if alias.is_some() && chosen.len() > 1 {
                    return Ok(plan_err!("{item}: {} columns can't have one name", chosen.len())?);
                }
                let original = match written.get(at) {
                    Some(SelectItem::UnnamedExpr(original)) => original,
                    _ => expr,
                };
                let single = is_pattern(expr);
                for column in &chosen {
                    let value = with_column(expr, column, &columns);
                    match (&alias, single) {
                        (Some(alias), _) => {
                            items.push(SelectItem::ExprWithAlias { expr: value, alias: alias.clone() });
                            names.push(None);
                        }
                        (None, true) => {
                            items.push(SelectItem::UnnamedExpr(value));
                            names.push(None);
                        }
                        (None, false) => {
                            names.push(Some(
                                headings::of(&with_column(original, column, std::slice::from_ref(column)))
                                    .replace('"', ""),
                            ));
                            items.push(SelectItem::UnnamedExpr(value));
                        }
                    }
                }
            }
            other => {
                items.push(other.clone());
                names.push(heading);
            }
        }
    }
    if items.is_empty() && !select.projection.is_empty() {
        return Ok(plan_err!(
            "no column fits: {}",
            select.projection.first().map(ToString::to_string).unwrap_or_default()
        )?);
    }
    if let Some(condition) = select.selection.as_ref().filter(|condition| has_pattern(condition)) {
        let columns = all()?;
        let each = chosen(condition, &columns, known)?
            .into_iter()
            .map(|column| Expr::Nested(Box::new(with_column(condition, &column, &columns))));
        let both = |one, other| Expr::BinaryOp { left: Box::new(one), op: BinaryOperator::And, right: Box::new(other) };
        match each.reduce(both) {
            Some(all) => select.selection = Some(all),
            None => return Ok(plan_err!("no column fits: {condition}")?),
        }
    }
    (select.projection, *headings) = (items, names);
    Ok(())
}

/// The last part of a name, which is that of a table or a column.
pub(super) fn last_of(name: &ObjectName) -> Option<String> {
    name.0.last().and_then(|part| part.as_ident()).map(normal)
}

/// Whether a name is that of a table of a SELECT.
fn names_table(select: &Select, name: &ObjectName) -> bool {
    let Some(wanted) = last_of(name) else { return true };
    let tables = select
        .from
        .iter()
        .flat_map(|from| std::iter::once(&from.relation).chain(from.joins.iter().map(|join| &join.relation)));
    let mut unknown = false;
    for table in tables {
        let its = match table {
            TableFactor::Table { alias: Some(alias), .. }
            | TableFactor::Derived { alias: Some(alias), .. }
            | TableFactor::UNNEST { alias: Some(alias), .. } => Some(normal(&alias.name)),
            TableFactor::Table { name, .. } => last_of(name),
            TableFactor::Derived { .. } => None,
            _ => {
                unknown = true;
                None
            }
        };
        if its == Some(wanted.clone()) {
            return true;
        }
    }
    unknown || select.from.is_empty()
}

/// What a column is called that is a field of a struct: `s.a` is `a`.
pub(super) fn field_name(item: &SelectItem, select: &Select) -> Option<String> {
    let SelectItem::UnnamedExpr(Expr::CompoundIdentifier(names)) = item else { return None };
    let (first, last) = (names.first()?, names.last()?);
    let of_table = names_table(select, &ObjectName::from(vec![first.clone()]));
    (!of_table || names.len() > 2).then(|| normal(last))
}

/// The fields of a struct as columns.
fn fields(name: &ObjectName, columns: &[Column]) -> Result<Vec<SelectItem>, Stop> {
    let Some(wanted) = last_of(name) else {
        return Ok(plan_err!("{name}.*: is no table and no struct")?);
    };
    let Some(column) = columns.iter().find(|column| column.name() == wanted) else {
        return Ok(plan_err!("{name}.*: there is no table and no column {wanted:?}")?);
    };
    let DataType::Struct(fields) = column.field.data_type() else {
        return Ok(plan_err!("{name}.*: {wanted:?} is no struct")?);
    };
    let of = reference(column, columns);
    fields
        .iter()
        .map(|field| {
            let name = format!("'{}'", field.name().replace('\'', "''"));
            let expr = templates::expression(&format!("get_field($1, {name})"), std::slice::from_ref(&of))?;
            Ok(SelectItem::ExprWithAlias { expr, alias: quoted(field.name()) })
        })
        .collect()
}

/// `* EXCLUDE (a) REPLACE (b + 1 AS b) RENAME (c AS d)`, one by one.
pub(super) fn renamed(
    options: &WildcardAdditionalOptions,
    columns: &[Column],
    table: Option<&str>,
) -> Result<Vec<(SelectItem, Option<String>)>> {
    let left_out = excluded(options);
    let renames = match &options.opt_rename {
        Some(RenameSelectItem::Single(one)) => vec![one.clone()],
        Some(RenameSelectItem::Multiple(several)) => several.clone(),
        None => Vec::new(),
    };
    let replaced = options.opt_replace.as_ref().map(|replace| replace.items.as_slice()).unwrap_or_default();
    let of_table = |column: &&Column| table.is_none_or(|table| column.table.last().is_some_and(|name| name == table));
    let named = renames.iter().map(|rename| ("RENAME", normal(&rename.ident)));
    let named = named.chain(replaced.iter().map(|item| ("REPLACE", normal(&item.column_name))));
    for (what, name) in named.chain(left_out.iter().map(|name| ("EXCLUDE", name.clone()))) {
        if !columns.iter().filter(of_table).any(|column| column.name() == name) {
            return plan_err!("{what}: there is no column {name}");
        }
    }
    let mut items = Vec::new();
    for column in columns.iter().filter(of_table).filter(|column| !left_out.iter().any(|name| name == column.name())) {
        let replace = replaced.iter().find(|item| normal(&item.column_name) == column.name());
        let expr = replace.map_or_else(|| reference(column, columns), |item| item.expr.clone());
        let name = renames.iter().find(|rename| normal(&rename.ident) == column.name());
        let name = name.map_or_else(|| column.name().to_owned(), |rename| normal(&rename.alias));
        items.push((SelectItem::ExprWithAlias { expr, alias: quoted(&name) }, None));
    }
    Ok(items)
}

/// Whether columns of `*` get other names or values. (Of a value for a column that is not there the engine says nothing.)
fn is_changed(options: &WildcardAdditionalOptions) -> bool {
    options.opt_rename.is_some() || options.opt_replace.is_some()
}

/// The names that EXCLUDE and EXCEPT leave out.
pub(super) fn excluded(options: &WildcardAdditionalOptions) -> Vec<String> {
    let mut names: Vec<String> = match &options.opt_exclude {
        Some(ExcludeSelectItem::Single(name)) => last_of(name).into_iter().collect(),
        Some(ExcludeSelectItem::Multiple(names)) => names.iter().filter_map(last_of).collect(),
        None => Vec::new(),
    };
    if let Some(ExceptSelectItem { first_element, additional_elements }) = &options.opt_except {
        names.push(normal(first_element));
        names.extend(additional_elements.iter().map(normal));
    }
    names
}

/// The call `COLUMNS(...)`, if an expression is one.
fn pattern(expr: &Expr) -> Option<&Function> {
    match expr {
        Expr::Function(function) if simple_name(&function.name).as_deref() == Some("columns") => Some(function),
        Expr::Nested(inner) => pattern(inner),
        _ => None,
    }
}

pub(super) fn is_pattern(expr: &Expr) -> bool {
    pattern(expr).is_some()
}

fn has_pattern(expr: &Expr) -> bool {
    let mut found = Patterns::default();
    let _ = expr.clone().visit(&mut found);
    !found.calls.is_empty()
}

/// The columns that the patterns of an expression mean, which are to be the same.
pub(super) fn chosen(expr: &Expr, columns: &[Column], known: &Known) -> Result<Vec<Column>, Stop> {
    let mut found = Patterns::default();
    let _ = expr.clone().visit(&mut found);
    let mut calls = found.calls.into_iter();
    let Some(first) = calls.next() else { return Ok(Vec::new()) };
    if calls.any(|other| other.args != first.args) {
        return Ok(plan_err!("{expr}: the patterns of one expression are to be the same")?);
    }
    of_pattern(&first, columns, known)
}

fn of_pattern(call: &Function, columns: &[Column], known: &Known) -> Result<Vec<Column>, Stop> {
    let FunctionArguments::List(list) = &call.args else { return Ok(plan_err!("{call}: takes a pattern")?) };
    let [FunctionArg::Unnamed(arg)] = list.args.as_slice() else { return Ok(plan_err!("{call}: takes one pattern")?) };
    let keep = |keep: &dyn Fn(&Column) -> bool| columns.iter().filter(|column| keep(column)).cloned().collect();
    Ok(match arg {
        FunctionArgExpr::Wildcard => columns.to_vec(),
        FunctionArgExpr::WildcardWithOptions(options) => {
            if options.opt_replace.is_some() || options.opt_rename.is_some() {
                return Ok(plan_err!("{call}: takes EXCLUDE alone")?);
            }
            let left_out = excluded(options);
            keep(&|column| !left_out.iter().any(|name| name == column.name()))
        }
        FunctionArgExpr::QualifiedWildcard(name) => {
            let table = last_of(name);
            keep(&|column| column.table.last() == table.as_ref())
        }
        FunctionArgExpr::Expr(Expr::Array(array)) => {
            let mut found = Vec::new();
            for name in &array.elem {
                let name = text_of(name).ok_or_else(|| plan_datafusion_err!("{call}: takes names as text"))?;
                let column = columns.iter().find(|column| column.name() == name);
                found.push(column.cloned().ok_or_else(|| plan_datafusion_err!("{call}: there is no column {name:?}"))?);
            }
            found
        }
        FunctionArgExpr::Expr(Expr::Lambda(lambda)) => by_test(lambda, columns, known)?,
        FunctionArgExpr::Expr(Expr::Function(test)) if simple_name(&test.name).as_deref() == Some("plinth_named") => {
            by_word(test, columns, known)?
        }
        FunctionArgExpr::Expr(value) => match text_of(value) {
            Some(pattern) => {
                let regex = Regex::new(pattern).map_err(|error| plan_datafusion_err!("{call}: {error}"))?;
                keep(&|column| regex.is_match(column.name()))
            }
            None => return Ok(plan_err!("{call}: takes a pattern as text, a list of names, a lambda or *")?),
        },
    })
}

/// The columns whose names pass a lambda.
fn by_test(lambda: &LambdaFunction, columns: &[Column], known: &Known) -> Result<Vec<Column>, Stop> {
    let name = match lambda.params.iter().collect::<Vec<_>>().as_slice() {
        [one] => one.name.clone(),
        _ => return Ok(plan_err!("COLUMNS: a lambda takes the name of a column")?),
    };
    let tests = columns.iter().map(|column| {
        let mut body = (*lambda.body).clone();
        let value = Expr::Value(Value::SingleQuotedString(column.name().to_owned()).into());
        let _ = body.visit(&mut Replace { name: &name.value, value: &value });
        body
    });
    passing(tests.collect(), columns, known)
}

/// The columns whose names are LIKE a pattern, or ILIKE or GLOB.
fn by_word(test: &Function, columns: &[Column], known: &Known) -> Result<Vec<Column>, Stop> {
    let args = super::functions::arguments(test).unwrap_or_default();
    let [word, pattern] = args.as_slice() else { return Ok(plan_err!("* takes LIKE and a pattern")?) };
    let word = text_of(word).unwrap_or_default().to_uppercase();
    let word = if word.ends_with("SIMILAR") { format!("{word} TO") } else { word };
    let mut tests = Vec::new();
    for column in columns {
        let name = column.name().replace('\'', "''");
        let mut test = templates::expression(&format!("'{name}' {word} $1"), std::slice::from_ref(pattern))?;
        super::functions::rewrite(&mut test)?;
        tests.push(test);
    }
    passing(tests, columns, known)
}

/// The columns whose tests, one for each, are true.
fn passing(tests: Vec<Expr>, columns: &[Column], known: &Known) -> Result<Vec<Column>, Stop> {
    let mut query: Box<Query> = templates::query("SELECT 1")?;
    let named = |(at, expr)| SelectItem::ExprWithAlias { expr, alias: quoted(&format!("c{at}")) };
    templates::set_items(&mut query, tests.into_iter().enumerate().map(named).collect());
    let rows = known.rows(*query, 1)?;
    let Some(row) = rows.iter().find(|batch| batch.num_rows() > 0) else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for (column, test) in columns.iter().zip(row.columns()) {
        let Some(test) = test.as_any().downcast_ref::<BooleanArray>() else {
            return Ok(plan_err!("COLUMNS: a lambda says true or false of a name")?);
        };
        if test.is_valid(0) && test.value(0) {
            found.push(column.clone());
        }
    }
    Ok(found)
}

/// An expression with a column in the place of patterns.
pub(super) fn with_column(expr: &Expr, column: &Column, among: &[Column]) -> Expr {
    let mut expr = expr.clone();
    let _ = expr.visit(&mut Fill { value: reference(column, among) });
    expr
}

struct Fill {
    value: Expr,
}

impl VisitorMut for Fill {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if is_pattern(expr) {
            *expr = self.value.clone();
        }
        ControlFlow::Continue(())
    }
}

struct Replace<'a> {
    name: &'a str,
    value: &'a Expr,
}

impl VisitorMut for Replace<'_> {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if matches!(expr, Expr::Identifier(name) if name.value.eq_ignore_ascii_case(self.name)) {
            *expr = self.value.clone();
        }
        ControlFlow::Continue(())
    }
}

#[derive(Default)]
struct Patterns {
    calls: Vec<Function>,
}

impl VisitorMut for Patterns {
    type Break = ();

    // Those of a subquery are its own, and were expanded.
    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Function(function) = expr
            && simple_name(&function.name).as_deref() == Some("columns")
        {
            self.calls.push(function.clone());
        }
        ControlFlow::Continue(())
    }
}
