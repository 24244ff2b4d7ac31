//! `unnest` of a struct as its fields, and `unnest(x, recursive := true)` and `max_depth := n` of lists and structs within others.

use std::ops::ControlFlow;

use arrow_schema::DataType;
use datafusion::common::{Result, plan_datafusion_err, plan_err};
use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Query, Select, SelectItem, SetExpr, VisitMut,
    VisitorMut,
};

use super::known::{Known, Stop, quoted};
use super::scope::Scope;
use super::{simple_name, templates};

/// How many levels of lists and structs are undone, of `recursive := true`.
const ALL: usize = usize::MAX;

/// Puts fields into the places of structs, and values into those of lists within lists.
pub(super) fn expand(
    select: &mut Select,
    headings: &mut Vec<Option<String>>,
    known: &Known,
    scope: &Scope,
) -> Result<(), Stop> {
    let mut found = Found(false);
    let _ = select.projection.visit(&mut found);
    if !found.0 {
        return Ok(());
    }
    let types = Types { select: select.clone(), known, scope };
    let (mut items, mut names) = (Vec::new(), Vec::new());
    for (at, mut item) in std::mem::take(&mut select.projection).into_iter().enumerate() {
        let heading = headings.get(at).cloned().flatten();
        if let SelectItem::UnnamedExpr(Expr::Function(function)) = &item
            && let Some((value, depth)) = call(function)?
        {
            let mut fields = Vec::new();
            unnested(value, &types.of(value)?, depth, None, &mut fields)?;
            for (value, name) in fields {
                names.push(if name.is_none() { heading.clone() } else { None });
                items.push(match name {
                    Some(name) => SelectItem::ExprWithAlias { expr: value, alias: quoted(&name) },
                    None => SelectItem::UnnamedExpr(value),
                });
            }
            continue;
        }
        if let ControlFlow::Break(stop) = item.visit(&mut Within { types: &types, depth: 0 }) {
            return Err(*stop);
        }
        items.push(item);
        names.push(heading);
    }
    (select.projection, *headings) = (items, names);
    Ok(())
}

/// What `unnest` is called with, and of how many levels.
fn call(function: &Function) -> Result<Option<(&Expr, usize)>> {
    if simple_name(&function.name).as_deref() != Some("unnest") {
        return Ok(None);
    }
    let FunctionArguments::List(list) = &function.args else { return Ok(None) };
    let (value, option) = match list.args.as_slice() {
        [FunctionArg::Unnamed(FunctionArgExpr::Expr(value))] => return Ok(Some((value, 1))),
        [FunctionArg::Unnamed(FunctionArgExpr::Expr(value)), option] => (value, option),
        _ => return Ok(None),
    };
    let FunctionArg::Named { name, arg: FunctionArgExpr::Expr(given), .. } = option else { return Ok(None) };
    let depth = match (name.value.to_ascii_lowercase().as_str(), given.to_string().as_str()) {
        ("recursive", "true") => Some(ALL),
        ("recursive", "false") => Some(1),
        ("max_depth", number) => number.parse().ok().filter(|depth| *depth > 0),
        _ => None,
    };
    let depth = depth.ok_or_else(|| plan_datafusion_err!("unnest: takes recursive := true and max_depth := 2"))?;
    Ok(Some((value, depth)))
}

/// The columns that a value is undone to, with the names of those that are fields.
fn unnested(
    value: &Expr,
    data_type: &DataType,
    depth: usize,
    name: Option<&str>,
    columns: &mut Vec<(Expr, Option<String>)>,
) -> Result<()> {
    let (mut inner, mut levels) = (data_type, 0);
    while let (DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _), true) =
        (inner, levels < depth)
    {
        inner = item.data_type();
        levels += 1;
    }
    let mut value = value.clone();
    if levels > 0 || !matches!(inner, DataType::Struct(_)) {
        if name.is_some() && levels > 0 {
            return plan_err!("unnest: a list within a struct is not undone; write max_depth := n with fewer levels");
        }
        if name.is_none() {
            // What is no list is the engine's to refuse.
            let flat = levels.saturating_sub(1);
            let text = format!("unnest({}$1{})", "flatten(".repeat(flat), ")".repeat(flat));
            value = templates::expression(&text, &[value])?;
        }
    }
    match inner {
        DataType::Struct(fields) if levels < depth => {
            for field in fields {
                let text = format!("get_field($1, '{}')", field.name().replace('\'', "''"));
                let of = templates::expression(&text, std::slice::from_ref(&value))?;
                unnested(&of, field.data_type(), depth - levels - 1, Some(field.name()), columns)?;
            }
        }
        _ => columns.push((value, name.map(str::to_owned))),
    }
    Ok(())
}

/// The types of expressions of a SELECT.
struct Types<'a> {
    select: Select,
    known: &'a Known,
    scope: &'a Scope,
}

impl Types<'_> {
    fn of(&self, value: &Expr) -> Result<DataType, Stop> {
        let mut query = templates::query("SELECT 1")?;
        let mut select = self.select.clone();
        select.projection = vec![SelectItem::ExprWithAlias { expr: value.clone(), alias: quoted("value") }];
        select.distinct = None;
        *query.body = SetExpr::Select(Box::new(select));
        query.with = self.scope.with(None);
        let columns = self.known.columns(*query)?;
        let column = columns.first().ok_or_else(|| plan_datafusion_err!("unnest: {value}: has no type"))?;
        Ok(column.field.data_type().clone())
    }
}

/// Whether there is a call of `unnest`.
struct Found(bool);

impl VisitorMut for Found {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        self.0 |= matches!(expr, Expr::Function(function) if matches!(call(function), Err(_) | Ok(Some(_))));
        ControlFlow::Continue(())
    }
}

/// Calls within other expressions, of lists alone.
struct Within<'a> {
    types: &'a Types<'a>,
    depth: usize,
}

impl VisitorMut for Within<'_> {
    type Break = Box<Stop>;

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<Box<Stop>> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Box<Stop>> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Box<Stop>> {
        let Expr::Function(function) = expr else { return ControlFlow::Continue(()) };
        let (value, depth) = match call(function) {
            Ok(Some((value, depth))) if self.depth == 0 && depth > 1 => (value, depth),
            Ok(_) => return ControlFlow::Continue(()),
            Err(error) => return ControlFlow::Break(Box::new(error.into())),
        };
        let mut columns = Vec::new();
        let undone =
            self.types.of(value).and_then(|data_type| Ok(unnested(value, &data_type, depth, None, &mut columns)?));
        match (undone, columns.pop()) {
            (Err(stop), _) => ControlFlow::Break(Box::new(stop)),
            (Ok(()), Some((value, None))) if columns.is_empty() => {
                *expr = value;
                ControlFlow::Continue(())
            }
            _ => ControlFlow::Break(Box::new(
                plan_datafusion_err!("{expr}: the fields of a struct are columns: write it alone in SELECT").into(),
            )),
        }
    }
}
