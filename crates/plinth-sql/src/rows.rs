//! Statements that change rows of writable tables.
//!
//! Each becomes a query of what tells the rows that go (their keys, or their hidden numbers) and of the rows that come. It is
//! planned and run like any other, on the version of the table that the statement sees; the result goes to one transaction of
//! the table. DataFusion's own hooks are not used: it hands them an empty filter where the optimizer made the filter into
//! something else, and that would mean all rows.

mod alter;
mod change;
mod created;
mod defaults;
mod execute;
mod given;
mod indexes;
mod insert;
mod merge;
mod places;
mod query;
mod returning;
mod rules;
mod tables;
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests;
mod write;

use std::any::Any;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, MutexGuard, PoisonError};

use arrow_schema::{DataType, SchemaRef};
use datafusion::catalog::{MemorySchemaProvider, SchemaProvider, TableProvider};
use datafusion::common::{Result, exec_err};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::sql::parser::Statement;
use datafusion::sql::planner::object_name_to_table_reference;
use datafusion::sql::sqlparser::ast::{
    self, Expr, Ident, ObjectName, ObjectNamePart, SelectItem, TableFactor, TableObject,
};
use plinth_datafusion::StoreTable;

use super::kept_plan::Prepared;
use super::names::{SCRATCH, normal};
use super::{Params, Session};
pub(crate) use created::{refuse_options, take_cluster, take_temporary};
pub use rules::takes_rows_as_they_are;
pub(crate) use rules::{CHECK, DEFAULT, sequences_of_default, take as take_rules};
pub(crate) use tables::{Created, constraints};
pub(crate) use write::blocking;

use query::{column, last, named, quoted};
use rules::Rules;

/// What a statement did.
pub(crate) enum Done {
    /// It changed so many rows.
    Rows(u64),
    /// What it was to answer of the rows that it changed.
    Returned(SendableRecordBatchStream),
    /// It has none to tell of.
    Nothing,
}

/// The table that a statement changes.
pub(crate) struct Target {
    table: StoreTable,
    rules: Rules,
    /// As the user wrote it.
    name: String,
    /// What its columns are qualified with, unless the statement says.
    alias: Ident,
}

impl Session {
    /// Runs a statement if it is one about writable tables or transactions. `written` is a PREPARE as it was before it was rewritten.
    pub(crate) async fn change_rows(
        &self,
        statement: &Statement,
        written: Option<ast::Statement>,
        params: &Params,
    ) -> Result<Option<Done>> {
        let Statement::Statement(statement) = statement else { return Ok(None) };
        let done = match statement.as_ref() {
            ast::Statement::StartTransaction { .. }
            | ast::Statement::Commit { .. }
            | ast::Statement::Rollback { .. }
            | ast::Statement::Savepoint { .. }
            | ast::Statement::ReleaseSavepoint { .. } => return self.transaction(statement).await.map(Some),
            ast::Statement::Insert(insert) => {
                let TableObject::TableName(name) = &insert.table else { return Ok(None) };
                let Some(target) = self.target(name).await? else { return self.not_within_a_transaction(statement) };
                self.insert(target, insert.clone(), params).await?
            }
            ast::Statement::Update(update) => {
                let Some((target, alias)) = self.target_of(&update.table.relation).await? else { return Ok(None) };
                self.update(target, alias, update.clone(), params).await?
            }
            ast::Statement::Delete(delete) => {
                let Some((target, alias)) = self.target_of(change::deleted_from(delete)?).await? else {
                    return Ok(None);
                };
                self.delete(target, alias, delete.clone(), params).await?
            }
            ast::Statement::Merge(merge) => {
                let Some((target, alias)) = self.target_of(&merge.table).await? else { return Ok(None) };
                Done::Rows(self.merge(target, alias, merge.clone(), params).await?)
            }
            ast::Statement::Prepare { name, statement: inner, .. } => {
                let done = self.prepare(statement, inner).await?;
                if done.is_some() {
                    let prepared = Prepared::new(written.unwrap_or_else(|| statement.as_ref().clone()));
                    self.prepared().insert(normal(name), prepared);
                }
                return Ok(done);
            }
            ast::Statement::Deallocate { name, .. } if normal(name) == "all" => {
                self.prepared().clear();
                return Ok(Some(Done::Nothing));
            }
            ast::Statement::Deallocate { name, .. } => {
                let known = self.prepared().remove(&normal(name)).is_some();
                return Ok(known.then_some(Done::Nothing));
            }
            ast::Statement::Truncate(truncate) => return self.truncate(truncate).await,
            ast::Statement::Vacuum(vacuum) => return self.vacuum(vacuum).await,
            ast::Statement::CreateIndex(create) => return self.create_index(statement, create).await,
            ast::Statement::Drop { object_type: ast::ObjectType::Index, names, if_exists, table, .. } => {
                return self.drop_index(statement, names, table.as_ref(), *if_exists).await;
            }
            ast::Statement::CreateTable(_) | ast::Statement::Drop { .. } => {
                return self.not_within_a_transaction(statement);
            }
            _ => return Ok(None),
        };
        Ok(Some(done))
    }

    /// Refuses what a ROLLBACK would not take back.
    fn not_within_a_transaction<T>(&self, statement: &ast::Statement) -> Result<Option<T>> {
        if !self.stores.in_transaction() {
            return Ok(None);
        }
        let what = match statement {
            ast::Statement::Insert(_) => "INSERT into a table that is no writable table",
            ast::Statement::CreateTable(_) => "CREATE TABLE",
            ast::Statement::CreateIndex(_) => "CREATE INDEX",
            ast::Statement::AlterTable(_) => "ALTER TABLE",
            ast::Statement::Drop { .. } => "DROP",
            ast::Statement::Vacuum(_) => "VACUUM",
            _ => "this",
        };
        exec_err!("{what} can't be part of a transaction, which could not take it back: COMMIT first")
    }

    async fn transaction(&self, statement: &ast::Statement) -> Result<Done> {
        match statement {
            ast::Statement::StartTransaction { modes, statements, exception, .. } => {
                refuse("BEGIN", !statements.is_empty() || exception.is_some(), "blocks")?;
                if let Some(mode) = modes.iter().find(|mode| !is_held(mode)) {
                    return exec_err!(
                        "BEGIN {mode}: not supported; a transaction reads what there was when it began, and is refused if another has changed \
                         the rows that it changes: REPEATABLE READ, READ WRITE"
                    );
                }
                self.stores.begin()?;
            }
            ast::Statement::Commit { chain, .. } => {
                refuse("COMMIT", *chain, "AND CHAIN")?;
                let stores = Arc::clone(&self.stores);
                write::blocking(move || stores.commit()).await?;
            }
            ast::Statement::Rollback { chain, savepoint } => {
                refuse("ROLLBACK", *chain, "AND CHAIN")?;
                match savepoint {
                    Some(name) => self.stores.back_to(&normal(name))?,
                    None => self.stores.rollback()?,
                }
            }
            ast::Statement::Savepoint { name } => self.stores.savepoint(&normal(name))?,
            ast::Statement::ReleaseSavepoint { name } => self.stores.release_savepoint(&normal(name))?,
            _ => {}
        }
        Ok(Done::Nothing)
    }

    /// Whether a statement is kept here, which is a query or changes a writable table: it is planned when it is executed. What
    /// DataFusion keeps it optimizes before the rules that tell what SQL means have seen it.
    async fn prepare(&self, prepare: &ast::Statement, inner: &ast::Statement) -> Result<Option<Done>> {
        let target = match inner {
            ast::Statement::Insert(ast::Insert { table: TableObject::TableName(name), .. }) => {
                self.target(name).await?
            }
            ast::Statement::Update(update) => self.target_of(&update.table.relation).await?.map(|(target, _)| target),
            ast::Statement::Delete(delete) => {
                self.target_of(change::deleted_from(delete)?).await?.map(|(target, _)| target)
            }
            ast::Statement::Merge(merge) => self.target_of(&merge.table).await?.map(|(target, _)| target),
            ast::Statement::Query(_) => {
                // For its errors.
                let statement = Statement::Statement(Box::new(prepare.clone()));
                self.context.state().statement_to_plan(statement).await?;
                return Ok(Some(Done::Nothing));
            }
            _ => None,
        };
        Ok(target.map(|_| Done::Nothing))
    }

    pub(crate) fn prepared(&self) -> MutexGuard<'_, HashMap<String, Prepared>> {
        self.prepared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The writable table with a name; `None` if another has it, or none.
    async fn target(&self, name: &ObjectName) -> Result<Option<Target>> {
        let reference = object_name_to_table_reference(name.clone(), true)?;
        let Ok(table) = self.context.table_provider(reference).await else { return Ok(None) };
        let any: &dyn Any = table.as_ref();
        let Some(table) = any.downcast_ref::<StoreTable>().cloned() else { return Ok(None) };
        let rules = self.rules(table.schema(), table.notes()).await?;
        Ok(Some(Target { table, rules, name: name.to_string(), alias: last(name)? }))
    }

    /// As [`Session::target`], of a table as FROM names it: with the name that its columns have then.
    async fn target_of(&self, factor: &TableFactor) -> Result<Option<(Target, Ident)>> {
        let TableFactor::Table { name, alias, .. } = factor else { return Ok(None) };
        let Some(target) = self.target(name).await? else { return Ok(None) };
        let alias = alias.as_ref().map_or_else(|| target.alias.clone(), |alias| quoted(normal(&alias.name)));
        Ok(Some((target, alias)))
    }

    /// Makes a table known for as long as the result lives.
    fn scratch(&self, table: Arc<dyn TableProvider>) -> Result<Scratch> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let name = NUMBER.fetch_add(1, Ordering::Relaxed).to_string();
        self.scratch.register_table(name.clone(), table)?;
        Ok(Scratch { schema: Arc::clone(&self.scratch), name })
    }
}

/// A table that a statement reads under a name of its own.
struct Scratch {
    schema: Arc<MemorySchemaProvider>,
    name: String,
}

impl Scratch {
    fn name(&self) -> ObjectName {
        ObjectName([quoted(SCRATCH), quoted(&self.name)].map(ObjectNamePart::Identifier).to_vec())
    }

    fn as_table(&self, alias: &Ident) -> Result<TableFactor> {
        query::table(self.name(), alias)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = self.schema.deregister_table(&self.name);
    }
}

impl Target {
    fn schema(&self) -> SchemaRef {
        self.table.schema()
    }

    fn types(&self) -> Vec<DataType> {
        self.schema().fields().iter().map(|field| field.data_type().clone()).collect()
    }

    /// The table with what tells its rows apart.
    fn stored(&self) -> Result<Arc<dyn TableProvider>> {
        Ok(Arc::new(self.table.with_row_columns()?))
    }

    /// The columns that tell its rows apart, and their types.
    fn row_columns(&self) -> Result<(Vec<String>, Vec<DataType>)> {
        let stored = self.table.with_row_columns()?;
        let schema = stored.schema();
        let types = stored.key().iter().map(|name| Ok(schema.field_with_name(name)?.data_type().clone()));
        Ok((stored.key().to_vec(), types.collect::<Result<_>>()?))
    }

    /// All columns of a row of which some are set.
    fn values(&self, statement: &str, alias: &Ident, mut set: Vec<(String, Expr)>) -> Result<Vec<Expr>> {
        let schema = self.schema();
        let values = schema.fields().iter().map(|field| {
            let at = set.iter().position(|(name, _)| name == field.name());
            match at.map(|at| set.swap_remove(at).1) {
                None => column(alias, field.name()),
                Some(value) if defaults::is_default(&value) => self.default_of(field.name()),
                Some(value) => value,
            }
        });
        let values = values.collect();
        match set.first() {
            Some((name, _)) => exec_err!("{statement}: SET {name}: there is no such column"),
            None => Ok(values),
        }
    }

    /// The same as items of a query.
    fn new_values(&self, statement: &str, alias: &Ident, set: Vec<(String, Expr)>) -> Result<Vec<SelectItem>> {
        let values = self.values(statement, alias, set)?.into_iter().enumerate();
        Ok(values.map(|(i, value)| named(value, format!("_c{i}"))).collect())
    }
}

/// An error that names what a statement can't do, if it asks for it.
fn refuse(statement: &str, asked: bool, what: &str) -> Result<()> {
    if asked { exec_err!("{statement}: {what} is not supported") } else { Ok(()) }
}

/// Whether transactions hold what a mode asks of them: they see a snapshot, which is more than REPEATABLE READ and less than SERIALIZABLE.
fn is_held(mode: &ast::TransactionMode) -> bool {
    use ast::{TransactionAccessMode as Access, TransactionIsolationLevel as Level, TransactionMode as Mode};
    matches!(
        mode,
        Mode::AccessMode(Access::ReadWrite)
            | Mode::IsolationLevel(
                Level::ReadUncommitted | Level::ReadCommitted | Level::RepeatableRead | Level::Snapshot
            )
    )
}
