//! ALTER TABLE of tables in memory, which last as long as the session.

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;

use datafusion::common::{Result, TableReference, exec_err};
use datafusion::datasource::MemTable;
use datafusion::sql::planner::object_name_to_table_reference;
use datafusion::sql::sqlparser::ast::{AlterTableOperation, ObjectName};
use futures::StreamExt;

use super::super::query::{last, table};
use super::super::rules::{DEFAULT, default_of};
use super::shape::Shape;
use super::{beside, new_name};
use crate::Session;

/// What the text of a default that the engine has planned begins with: no statement's does.
const PLANNED: char = '\0';

fn refused<T>(statement: &str) -> Result<T> {
    exec_err!("{statement}: new DEFAULT, CHECK and UNIQUE are kept by tables of a folder (--db DIR)")
}

impl Session {
    /// The same of a table in memory, which has columns alone.
    pub(super) async fn alter_in_memory(
        &self,
        statement: String,
        name: &ObjectName,
        if_exists: bool,
        operations: &[AlterTableOperation],
    ) -> Result<()> {
        let reference = object_name_to_table_reference(name.clone(), true)?;
        let resolved = self.resolved(reference.clone());
        let known = self.session_table(&resolved).await?;
        let Some(known) = known.filter(|known| (known.as_ref() as &dyn Any).is::<MemTable>()) else {
            if if_exists && !self.context.table_exist(reference)? {
                return Ok(());
            }
            return exec_err!(
                "{statement}: is no table that can be altered, as CREATE TABLE with columns makes one; write another with CREATE TABLE \
                 ... AS SELECT"
            );
        };
        if let [AlterTableOperation::RenameTable { table_name }] = operations {
            let statement = format!("{statement}: RENAME TO {}", new_name(table_name));
            let to = TableReference::from(beside(&statement, &resolved, new_name(table_name))?);
            if self.context.table_exist(to.clone())? {
                return exec_err!("{statement}: there is a table of this name");
            }
            self.context.deregister_table(reference)?;
            self.context.register_table(to, known)?;
            return Ok(());
        }
        let alias = last(name)?;
        let mut shape = Shape::of_columns(statement, &known.schema(), &alias);
        // Defaults that the engine has planned go where their columns go, each by the name that its column had.
        let had = shape.columns.iter().map(|column| column.field.name().clone());
        let had = had.filter(|name| known.get_column_default(name).is_some());
        shape.notes.extend(had.map(|name| (default_of(&name), format!("{PLANNED}{name}"))).collect::<Vec<_>>());
        for operation in operations {
            self.change(&mut shape, &alias, operation).await?;
        }
        let mut defaults = HashMap::new();
        for (name, text) in std::mem::take(&mut shape.notes) {
            let planned = text.strip_prefix(PLANNED).and_then(|old| known.get_column_default(old));
            match (name.strip_prefix(DEFAULT), planned) {
                (Some(column), Some(default)) => drop(defaults.insert(column.to_owned(), default.clone())),
                _ => return refused(&shape.statement),
            }
        }
        if !shape.indexes.is_empty() {
            return refused(&shape.statement);
        }
        let rules = self.rules(shape.schema(), &shape.notes).await?;
        let mut stream = self.columns_of(table(name.clone(), &alias)?, shape.columns).await?;
        let mut rows = Vec::new();
        while let Some(batch) = stream.next().await {
            let batch = batch?;
            rows.push(rules.rows_of(&shape.statement, &batch, 0..batch.num_columns())?);
        }
        let made = MemTable::try_new(Arc::clone(rules.schema()), vec![rows])?.with_column_defaults(defaults);
        self.context.deregister_table(reference.clone())?;
        self.context.register_table(reference, Arc::new(made))?;
        Ok(())
    }
}
