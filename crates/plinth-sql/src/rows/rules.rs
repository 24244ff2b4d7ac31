//! DEFAULT and CHECK of a writable table.
//!
//! The table keeps them as texts beside its columns. A statement that writes to the table reads them again: defaults become
//! expressions of the statement, conditions are evaluated over the rows before they are written.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, Schema, SchemaRef};
use datafusion::arrow::util::display::array_value_to_string;
use datafusion::common::{Result, TableReference, exec_err};
use datafusion::datasource::empty::EmptyTable;
use datafusion::logical_expr::{LogicalPlan, Projection};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    self, CheckConstraint, ColumnDef, ColumnOption, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident,
    SelectItem, SetExpr, TableConstraint,
};
use futures::TryStreamExt;
use plinth_datafusion::{CheckedPart, checked_arithmetic};

use super::query::{alone, named, null, quoted, select};
use crate::names::normal;
use crate::numbers::keep_digits;
use crate::sequences::{NEXTVAL, missing};
use crate::{Params, Session, depth};

/// What the names of a table's notes begin with; the name of the column, or of the condition, follows.
pub(crate) const DEFAULT: &str = "default.";
pub(crate) const CHECK: &str = "check.";

/// The texts that a table keeps, by their names.
pub(super) type Notes = BTreeMap<String, String>;

/// What rows of a table are.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    schema: SchemaRef,
    /// The values of columns that are given none, where these are not NULL.
    defaults: Arc<HashMap<String, Expr>>,
    checks: Arc<[Check]>,
}

/// A condition of each row.
#[derive(Debug)]
struct Check {
    text: String,
    condition: Arc<dyn PhysicalExpr>,
    /// The columns that it is evaluated over, and the places among these of those that it names.
    columns: Vec<usize>,
    names: BTreeSet<usize>,
}

/// Takes DEFAULT and CHECK out of a CREATE TABLE, as notes of the table.
pub(crate) fn take(create: &mut ast::CreateTable) -> Result<Notes> {
    let statement = format!("CREATE TABLE {}", create.name);
    let table = super::last(&create.name)?.value;
    let mut notes = BTreeMap::new();
    let mut conditions = Vec::new();
    for ColumnDef { name, options, data_type, .. } in &mut create.columns {
        let mut kept = Vec::new();
        if *data_type == ast::DataType::Uuid {
            // A text, which the condition has in one form.
            *data_type = ast::DataType::Text;
            add_uuid_check(&mut notes, &statement, &table, name)?;
        }
        for option in std::mem::take(options) {
            match option.option {
                ColumnOption::Default(value) => {
                    let value = text_of(&format!("{statement}: column {name}: DEFAULT"), &value)?;
                    if notes.insert(format!("{DEFAULT}{}", normal(name)), value).is_some() {
                        return exec_err!("{statement}: column {name} has two DEFAULTs");
                    }
                }
                ColumnOption::Check(check) => {
                    let named = option.name.or(check.name.clone());
                    conditions.push((named, format!("{table}_{}_check", normal(name)), check));
                }
                other => kept.push(ast::ColumnOptionDef { name: option.name, option: other }),
            }
        }
        *options = kept;
    }
    create.constraints = std::mem::take(&mut create.constraints)
        .into_iter()
        .filter_map(|constraint| match constraint {
            TableConstraint::Check(check) => {
                conditions.push((check.name.clone(), format!("{table}_check"), check));
                None
            }
            other => Some(other),
        })
        .collect();
    for (named, usual, check) in conditions {
        add_check(&mut notes, &statement, named.as_ref(), &usual, &check)?;
    }
    Ok(notes)
}

/// The name of the note of a column's default.
pub(super) fn default_of(column: &str) -> String {
    format!("{DEFAULT}{column}")
}

/// Adds a condition under its name, or under the usual one of those that have none.
pub(super) fn add_check(
    notes: &mut Notes,
    statement: &str,
    named: Option<&Ident>,
    usual: &str,
    check: &CheckConstraint,
) -> Result<()> {
    if check.enforced == Some(false) {
        return exec_err!("{statement}: CHECK ... NOT ENFORCED is not supported: a condition holds of all rows");
    }
    let key = match named {
        Some(name) => format!("{CHECK}{}", normal(name)),
        None => free(notes, &format!("{CHECK}{usual}")),
    };
    let condition = text_of(&format!("{statement}: CHECK"), &check.expr)?;
    match (notes.insert(key, condition), named) {
        (Some(_), Some(name)) => exec_err!("{statement}: two constraints have the name {name}"),
        _ => Ok(()),
    }
}

/// Adds the condition of a column of UUIDs.
pub(super) fn add_uuid_check(notes: &mut Notes, statement: &str, table: &str, name: &Ident) -> Result<()> {
    let condition = format!("{name} = CAST({name} AS UUID)");
    add_check_of(notes, statement, &format!("{table}_{}_uuid", normal(name)), &condition)
}

/// Adds a condition that is written down here.
fn add_check_of(notes: &mut Notes, statement: &str, usual: &str, condition: &str) -> Result<()> {
    let Some(expr) = expressions(condition)?.pop().map(Box::new) else {
        return exec_err!("{statement}: {condition}: is no condition");
    };
    add_check(notes, statement, None, usual, &CheckConstraint { name: None, expr, enforced: None })
}

/// Whether there was a condition of a name, which is there no more.
pub(super) fn remove_check(notes: &mut Notes, name: &str) -> bool {
    notes.remove(&format!("{CHECK}{name}")).is_some()
}

/// The conditions that name a column: their names and texts.
pub(super) fn checks_of(notes: &Notes, column: &str) -> Result<Vec<(String, String)>> {
    let mut found = Vec::new();
    for (name, text) in notes.iter().filter_map(|(name, text)| Some((name.strip_prefix(CHECK)?, text))) {
        let mut condition = expressions(text)?.pop().unwrap_or_else(null);
        if rename_within(&mut condition, column, column) {
            found.push((name.to_owned(), text.clone()));
        }
    }
    Ok(found)
}

/// Gives a column another name in all rules.
pub(super) fn rename(notes: &mut Notes, statement: &str, old: &str, new: &str) -> Result<()> {
    for (name, text) in checks_of(notes, old)? {
        let mut condition = expressions(&text)?.pop().unwrap_or_else(null);
        rename_within(&mut condition, old, new);
        notes.insert(format!("{CHECK}{name}"), text_of(statement, &condition)?);
    }
    if let Some(default) = notes.remove(&default_of(old)) {
        notes.insert(default_of(new), default);
    }
    Ok(())
}

/// Whether an expression names a column, which gets another name.
fn rename_within(expr: &mut Expr, old: &str, new: &str) -> bool {
    let mut found = false;
    let _: ControlFlow<()> = ast::visit_expressions_mut(expr, |expr| {
        let name = match expr {
            Expr::Identifier(name) => Some(name),
            Expr::CompoundIdentifier(names) => names.last_mut(),
            _ => None,
        };
        if let Some(name) = name.filter(|name| normal(name) == old) {
            *name = quoted(new);
            found = true;
        }
        ControlFlow::Continue(())
    });
    found
}

/// Whether rows of these columns may be put into a table as they are: it has no conditions, nor defaults of other columns.
pub fn takes_rows_as_they_are(notes: &Notes, given: &Schema) -> bool {
    let allowed = |name: &String| match name.strip_prefix(DEFAULT) {
        Some(column) => given.index_of(column).is_ok(),
        None => !name.starts_with(CHECK),
    };
    notes.keys().all(allowed)
}

/// A name that no note has.
fn free(notes: &Notes, usual: &str) -> String {
    let others = (1_usize..).map(|number| format!("{usual}{number}"));
    let mut names = std::iter::once(usual.to_owned()).chain(others);
    names.find(|name| !notes.contains_key(name)).unwrap_or_default()
}

/// What is kept of an expression: a text that means the same.
pub(super) fn text_of(what: &str, expr: &Expr) -> Result<String> {
    let within = ast::visit_expressions(expr, |expr| match expr {
        Expr::Subquery(_) | Expr::InSubquery { .. } | Expr::Exists { .. } => ControlFlow::Break("a subquery"),
        Expr::Value(ast::ValueWithSpan { value: ast::Value::Placeholder(_), .. }) => ControlFlow::Break("a parameter"),
        _ => ControlFlow::Continue(()),
    });
    if let ControlFlow::Break(within) = within {
        return exec_err!("{what} {expr}: has {within}, which is not supported");
    }
    let text = expr.to_string();
    match expressions(&text)?.as_slice() {
        [again] if again == expr => Ok(text),
        _ => exec_err!("{what} {expr}: can't be kept as a text; write it another way"),
    }
}

/// The names of the sequences that an expression takes numbers from.
fn sequences_in(expr: &Expr) -> Vec<String> {
    let mut names = Vec::new();
    let _: ControlFlow<()> = ast::visit_expressions(expr, |expr| {
        if let Expr::Function(function) = expr
            && function.name.to_string().eq_ignore_ascii_case(NEXTVAL)
            && let FunctionArguments::List(list) = &function.args
            && let [FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(name)))] = list.args.as_slice()
        {
            names.extend(name.clone().into_string());
        }
        ControlFlow::Continue(())
    });
    names
}

/// The sequences that the text of a DEFAULT takes numbers from.
pub(crate) fn sequences_of_default(text: &str) -> Result<Vec<String>> {
    Ok(expressions(text)?.iter().flat_map(sequences_in).collect())
}

/// The expressions of a list.
fn expressions(list: &str) -> Result<Vec<Expr>> {
    let statement = depth::parse(&format!("SELECT {list}"))?.pop();
    Ok(statement.map(of_select).unwrap_or_default())
}

fn of_select(statement: Statement) -> Vec<Expr> {
    let Statement::Statement(inner) = statement else { return Vec::new() };
    let ast::Statement::Query(query) = *inner else { return Vec::new() };
    let SetExpr::Select(select) = *query.body else { return Vec::new() };
    let expr = |item| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr),
        _ => None,
    };
    select.projection.into_iter().filter_map(expr).collect()
}

impl Session {
    /// The rules of a table with these columns and notes.
    pub(super) async fn rules(&self, schema: SchemaRef, notes: &Notes) -> Result<Rules> {
        let of = |kind: &'static str| {
            notes.iter().filter_map(move |(name, text)| Some((name.strip_prefix(kind)?, text.as_str())))
        };
        let mut defaults = HashMap::new();
        for (column, text) in of(DEFAULT) {
            let statement = depth::parse(&format!("SELECT {text}"))?.pop();
            let Some(statement) = statement else { return exec_err!("DEFAULT {text}: is no expression") };
            let mut rewritten = self.rewriter().rewritten(statement, false).await?.statement;
            keep_digits(&mut rewritten);
            match of_select(rewritten).pop() {
                Some(value) => defaults.insert(column.to_owned(), value),
                None => return exec_err!("DEFAULT {text}: is no expression"),
            };
        }
        let mut checks = Vec::new();
        for (_, text) in of(CHECK) {
            checks.push(self.check(&schema, text).await?);
        }
        Ok(Rules { schema, defaults: Arc::new(defaults), checks: checks.into() })
    }

    async fn check(&self, schema: &SchemaRef, text: &str) -> Result<Check> {
        let table = self.scratch(Arc::new(EmptyTable::new(Arc::clone(schema))))?;
        let condition = expressions(text)?.pop().unwrap_or_else(null);
        let from = vec![alone(table.as_table(&quoted("row"))?)];
        let query = select(vec![named(condition, "holds")], from, None)?;
        let statement = Statement::Statement(Box::new(ast::Statement::Query(Box::new(query))));
        let (state, plan) = self.rewriter().planned(statement).await?;
        let plan = state.analyzer().execute_and_check(plan, state.config_options(), |_, _| {})?;
        // What leaves its type is an error, as in a query.
        let plan = checked_arithmetic(plan, CheckedPart::All)?.data;
        let LogicalPlan::Projection(Projection { expr, input, .. }) = plan else {
            return exec_err!("CHECK ({text}): is no condition of one row");
        };
        let mut source = input.as_ref();
        while let LogicalPlan::SubqueryAlias(alias) = source {
            source = alias.input.as_ref();
        }
        let (LogicalPlan::TableScan(_), [expr]) = (source, expr.as_slice()) else {
            return exec_err!("CHECK ({text}): is no condition of one row");
        };
        let condition = state.create_physical_expr(expr.clone().unalias(), input.schema())?;
        if condition.data_type(input.schema().as_arrow())? != DataType::Boolean {
            return exec_err!("CHECK ({text}): is no condition");
        }
        let columns = input.schema().fields().iter().map(|field| schema.index_of(field.name()));
        let columns = columns.collect::<std::result::Result<_, _>>()?;
        let names = collect_columns(&condition).into_iter().map(|column| column.index()).collect();
        Ok(Check { text: text.to_owned(), condition, columns, names })
    }

    /// Finds out whether the rules of a new table can be kept: each default has a value of its column.
    pub(super) async fn try_rules(&self, statement: &str, rules: &Rules) -> Result<()> {
        for field in rules.schema.fields() {
            let Some(value) = rules.defaults.get(field.name()) else { continue };
            // A number of a sequence would be gone; of no row, the types are looked at.
            let sequences = sequences_in(value);
            for name in &sequences {
                let name = self.resolved(TableReference::parse_str(name));
                if !self.kept.sequences.has(&name)? {
                    return exec_err!("{statement}: column {:?}: DEFAULT: {}", field.name(), missing(&name));
                }
            }
            let none = (!sequences.is_empty()).then(|| Expr::Value(ast::Value::Boolean(false).into()));
            let query = select(vec![named(value.clone(), field.name())], Vec::new(), none)?;
            let tried = async {
                let stream = self.query(query, &[field.data_type().clone()], &Params::default()).await?;
                stream.try_collect::<Vec<_>>().await
            };
            if let Err(error) = tried.await {
                return exec_err!("{statement}: column {:?}: DEFAULT: {}", field.name(), crate::SqlError::from(error));
            }
        }
        Ok(())
    }
}

impl Rules {
    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The value of a column that is given none.
    pub(super) fn default(&self, column: &str) -> Option<&Expr> {
        self.defaults.get(column)
    }

    /// Some columns of a batch as rows of the table, if they may be.
    pub(super) fn rows_of(&self, statement: &str, batch: &RecordBatch, columns: Range<usize>) -> Result<RecordBatch> {
        let columns: Vec<ArrayRef> = batch.columns().get(columns).unwrap_or_default().to_vec();
        for (column, field) in columns.iter().zip(self.schema.fields()) {
            if !field.is_nullable() && column.logical_null_count() > 0 {
                return exec_err!("{statement}: column {:?} can't be NULL", field.name());
            }
        }
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let rows = RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?;
        self.checks.iter().try_for_each(|check| check.holds(statement, &rows))?;
        Ok(rows)
    }
}

impl Check {
    /// Whether the condition holds of all rows: NULL does not break it.
    fn holds(&self, statement: &str, rows: &RecordBatch) -> Result<()> {
        let Self { text, condition, columns, names } = self;
        let seen = rows.project(columns)?;
        let holds = condition.evaluate(&seen)?.into_array(rows.num_rows())?;
        let Some(row) = holds.as_boolean().iter().position(|holds| holds == Some(false)) else { return Ok(()) };
        let schema = seen.schema();
        let named = schema.fields().iter().zip(seen.columns()).enumerate().filter(|(at, _)| names.contains(at));
        let values = named.map(|(_, (field, values))| {
            let value = if values.is_null(row) { "NULL".to_owned() } else { array_value_to_string(values, row)? };
            Ok(format!("{} is {value}", field.name()))
        });
        let values = values.collect::<Result<Vec<_>>>()?.join(", ");
        exec_err!("{statement}: CHECK ({text}) does not hold where {values}")
    }
}
