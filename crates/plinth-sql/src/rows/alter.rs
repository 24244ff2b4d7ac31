//! ALTER TABLE of writable tables.
//!
//! Defaults, and conditions that go, are changed where they are kept. All else makes a table beside the one that is there, with its
//! rows and indexes, and puts it in the place of that.

mod memory;
mod shape;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_schema::DataType;
use datafusion::common::{ResolvedTableReference, Result, exec_err};
use datafusion::dataframe::DataFrame;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::sql::parser::Statement;
use datafusion::sql::planner::object_name_to_table_reference;
use datafusion::sql::sqlparser::ast::{
    self, AlterColumnOperation, AlterTable, AlterTableOperation, Ident, ObjectName, RenameTableNameKind, TableFactor,
};
use plinth_datafusion::{StoreTable, from_table};
use plinth_rowstore::{Seen, Table, TableOptions};

use super::query::{alone, cast, named, null, select};
use super::write::{blocking, with_types};
use super::{Done, Target, refuse};
use crate::Session;
use crate::database::{Entry, PUBLIC, file_of};
use crate::names::normal;
use shape::{Column, Index, Shape};

impl Session {
    /// `ALTER TABLE name operation, ...`, as it was written: its rules are kept as texts.
    pub(crate) async fn alter(&self, statement: &ast::Statement, alter: &AlterTable) -> Result<()> {
        self.not_within_a_transaction::<Done>(statement)?;
        let AlterTable { name, if_exists, only, operations, location, on_cluster, table_type, end_token: _ } = alter;
        let statement = format!("ALTER TABLE {name}");
        refuse(&statement, *only || location.is_some() || on_cluster.is_some() || table_type.is_some(), "an option")?;
        let Some(target) = self.target(name).await? else {
            return self.alter_in_memory(statement, name, *if_exists, operations).await;
        };
        if let [AlterTableOperation::RenameTable { table_name }] = operations.as_slice() {
            return self.rename_table(&statement, name, new_name(table_name)).await;
        }
        let (indexes, notes) = (target.table.indexes()?, target.table.notes().clone());
        let mut shape = Shape::of(statement, &target)?;
        for operation in operations {
            self.change(&mut shape, &target.alias, operation).await?;
        }
        let rules = self.rules(shape.schema(), &shape.notes).await?;
        self.try_rules(&shape.statement, &rules).await?;
        if shape.is_new {
            self.remake(shape, target, rules, Seen { sequence: 0, indexes, notes }).await?;
        } else {
            let table = self.stores.writer(target.table.folder())?;
            blocking(move || table.set_notes(&notes, shape.notes).map_err(from_table)).await?;
        }
        Ok(())
    }

    async fn change(&self, shape: &mut Shape, table: &Ident, operation: &AlterTableOperation) -> Result<()> {
        match operation {
            AlterTableOperation::AddColumn { if_not_exists, column_def, column_position: None, .. } => {
                if *if_not_exists && shape.columns.iter().any(|known| *known.field.name() == normal(&column_def.name)) {
                    return Ok(());
                }
                let data_type = self.type_of(&column_def.data_type).await?;
                shape.add(&table.value, column_def, data_type)?;
                shape.keep_uuids(&table.value, &column_def.name, &column_def.data_type)
            }
            AlterTableOperation::DropColumn { column_names, if_exists, drop_behavior, .. } => {
                refuse(&shape.statement, drop_behavior.is_some(), "CASCADE and RESTRICT")?;
                column_names.iter().try_for_each(|name| shape.drop(&normal(name), *if_exists))
            }
            AlterTableOperation::RenameColumn { old_column_name, new_column_name } => {
                shape.rename(&normal(old_column_name), &normal(new_column_name))
            }
            AlterTableOperation::AlterColumn { column_name, op } => {
                let data_type = match op {
                    AlterColumnOperation::SetDataType { data_type, .. } => Some(self.type_of(data_type).await?),
                    _ => None,
                };
                shape.alter(&normal(column_name), op, data_type)?;
                match op {
                    AlterColumnOperation::SetDataType { data_type, .. } => {
                        shape.keep_uuids(&table.value, column_name, data_type)
                    }
                    _ => Ok(()),
                }
            }
            AlterTableOperation::AddConstraint { constraint, not_valid } => {
                refuse(&shape.statement, *not_valid, "NOT VALID")?;
                shape.constrain(&table.value, constraint)
            }
            AlterTableOperation::DropConstraint { if_exists, name, drop_behavior } => {
                refuse(&shape.statement, drop_behavior.is_some(), "CASCADE and RESTRICT")?;
                shape.release(&normal(name), *if_exists)
            }
            AlterTableOperation::RenameTable { .. } => {
                exec_err!("{}: RENAME TO stands alone; write a statement of its own", shape.statement)
            }
            other => exec_err!("{}: {other}: is not supported", shape.statement),
        }
    }

    /// The type that a column of a statement has.
    async fn type_of(&self, data_type: &ast::DataType) -> Result<DataType> {
        let query = select(vec![named(cast(null(), data_type.clone()), "x")], Vec::new(), None)?;
        let statement = Statement::Statement(Box::new(ast::Statement::Query(Box::new(query))));
        let (_, plan) = self.rewriter().planned(statement).await?;
        match plan.schema().fields().first() {
            Some(field) => Ok(field.data_type().clone()),
            None => exec_err!("{data_type}: is no type"),
        }
    }

    /// Makes the table anew, beside the one that is there, and puts it in its place.
    async fn remake(&self, shape: Shape, target: Target, rules: super::Rules, seen: Seen) -> Result<()> {
        let folder = target.table.folder().to_path_buf();
        let Some(stem) = folder.file_name().and_then(|name| name.to_str()) else {
            return exec_err!("{}: the folder has no name", shape.statement);
        };
        let place = folder.with_file_name(format!(".{stem}.altered"));
        // Of a process that was killed.
        remove(&place).await?;
        let made = self.remade(shape, (target, seen), rules, &folder, &place).await;
        if made.is_err() {
            let _ = self.stores.close(&place);
            let _ = remove(&place).await;
        }
        made
    }

    async fn remade(
        &self,
        shape: Shape,
        (target, seen): (Target, Seen),
        rules: super::Rules,
        folder: &Path,
        place: &Path,
    ) -> Result<()> {
        let Shape { statement, columns, key, cluster, indexes, notes, .. } = shape;
        // What is copied is what this sees.
        let writing = self.stores.write(folder)?;
        let seen = Seen { sequence: self.stores.view(folder)?.snapshot.sequence(), ..seen };
        let schema = Arc::clone(rules.schema());
        let options = TableOptions { cluster, notes, ..self.stores.options().clone() };
        let made = place.to_path_buf();
        blocking(move || {
            let key: Vec<&str> = key.iter().map(String::as_str).collect();
            Table::create(&made, &schema, &key, options).and_then(Table::close).map_err(from_table)
        })
        .await?;
        let stream = self.rows_for(&target, columns).await?;
        let place = place.canonicalize()?;
        let table = StoreTable::open(&self.stores, &place)?;
        let made = Target { table, rules, name: target.name.clone(), alias: target.alias.clone() };
        self.insert_all(statement, made, self.stores.write(&place)?, stream).await?;
        let table = self.stores.writer(&place)?;
        blocking(move || {
            let create = |index: &Index| {
                let columns: Vec<&str> = index.columns.iter().map(String::as_str).collect();
                table.create_index(&index.name, &columns, index.unique)
            };
            indexes.iter().try_for_each(create).map_err(from_table)
        })
        .await?;
        drop(writing);
        self.stores.close(&place)?;
        self.stores.close(folder)?;
        let folder = folder.to_path_buf();
        blocking(move || Table::replace(&folder, &place, &seen).map_err(from_table)).await
    }

    /// The rows of a table with other columns, in the order that they have.
    async fn rows_for(&self, target: &Target, columns: Vec<Column>) -> Result<SendableRecordBatchStream> {
        let scratch = self.scratch(target.stored()?)?;
        self.columns_of(scratch.as_table(&target.alias)?, columns).await
    }

    async fn columns_of(&self, table: TableFactor, columns: Vec<Column>) -> Result<SendableRecordBatchStream> {
        let types: Vec<_> = columns.iter().map(|column| column.field.data_type().clone()).collect();
        let items = columns.into_iter().enumerate().map(|(at, column)| named(column.value, format!("_c{at}")));
        let query = select(items.collect(), vec![alone(table)], None)?;
        let statement = Statement::Statement(Box::new(ast::Statement::Query(Box::new(query))));
        let (_, plan) = self.rewriter().planned(statement).await?;
        DataFrame::new(self.rewriter().state_in(true), with_types(plan, &types)?).execute_stream().await
    }

    /// `ALTER TABLE name RENAME TO other`, within its schema.
    async fn rename_table(&self, statement: &str, name: &ObjectName, to: &ObjectName) -> Result<()> {
        let name = self.resolved(object_name_to_table_reference(name.clone(), true)?);
        let statement = format!("{statement}: RENAME TO {to}");
        let to = beside(&statement, &name, to)?;
        let (Some(database), to) = (self.database_of(&name)?, to.table.as_ref()) else {
            return exec_err!("{statement}: the table is in no folder");
        };
        let (Some(Entry::Store(place)), Some(root)) = (database.find(&name.table)?, database.folder()) else {
            return exec_err!("{statement}: the table is in no folder");
        };
        if database.find(to)?.is_some() || database.is_registered(to) {
            return exec_err!("{statement}: there is a table or view of this name");
        }
        let is_schema = |catalog: &Arc<crate::catalog::Catalog>| {
            catalog.read().map(|contents| database.name() == PUBLIC && contents.schemas.contains(to))
        };
        if database.catalog().map(is_schema).transpose()?.unwrap_or_default() {
            return exec_err!("{statement}: there is a schema of this name, whose folder it would be");
        }
        let Some(file) = file_of(root, to) else {
            return exec_err!("{statement}: the name can't be that of a folder");
        };
        self.stores.close(&place.canonicalize()?)?;
        blocking(move || Table::rename(&place, file.with_extension("")).map_err(from_table)).await
    }
}

/// The name that RENAME TO gives.
fn new_name(name: &RenameTableNameKind) -> &ObjectName {
    let (RenameTableNameKind::As(to) | RenameTableNameKind::To(to)) = name;
    to
}

/// The whole name that a table gets: it stays in its schema.
fn beside(statement: &str, name: &ResolvedTableReference, to: &ObjectName) -> Result<ResolvedTableReference> {
    let wanted = object_name_to_table_reference(to.clone(), true)?.resolve(&name.catalog, &name.schema);
    if (&wanted.catalog, &wanted.schema) != (&name.catalog, &name.schema) {
        return exec_err!("{statement}: a table stays in its schema");
    }
    Ok(wanted)
}

/// Removes a table that was not finished.
async fn remove(place: &Path) -> Result<()> {
    let place: PathBuf = place.to_path_buf();
    blocking(move || if Table::is_table(&place) { Table::destroy(&place).map_err(from_table) } else { Ok(()) }).await
}
