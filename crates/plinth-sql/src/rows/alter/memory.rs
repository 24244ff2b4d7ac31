//! ALTER TABLE of tables in memory, which last as long as the session.

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;

use datafusion::common::{Result, exec_err};
use datafusion::datasource::MemTable;
use datafusion::sql::planner::object_name_to_table_reference;
use datafusion::sql::sqlparser::ast::{AlterTableOperation, ObjectName};
use futures::StreamExt;

use super::super::query::{last, table};
use super::new_name;
use super::shape::Shape;
use crate::Session;

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
        let known = self.session_table(&self.resolved(reference.clone())).await?;
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
            let to = object_name_to_table_reference(new_name(table_name).clone(), true)?;
            if self.context.table_exist(to.clone())? {
                return exec_err!("{statement}: RENAME TO {}: there is a table of this name", new_name(table_name));
            }
            self.context.deregister_table(reference)?;
            self.context.register_table(to, known)?;
            return Ok(());
        }
        let alias = last(name)?;
        let mut shape = Shape::of_columns(statement, &known.schema(), &alias);
        for operation in operations {
            self.change(&mut shape, &alias, operation).await?;
        }
        if !(shape.notes.is_empty() && shape.indexes.is_empty()) {
            return exec_err!(
                "{}: DEFAULT, CHECK and UNIQUE are kept by tables of a folder (--db DIR)",
                shape.statement
            );
        }
        let rules = self.rules(shape.schema(), &shape.notes).await?;
        let kept = shape.columns.iter().filter_map(|column| {
            Some((column.field.name().clone(), known.get_column_default(column.field.name())?.clone()))
        });
        let defaults: HashMap<_, _> = kept.collect();
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
