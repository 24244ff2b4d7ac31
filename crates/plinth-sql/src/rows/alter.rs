//! ALTER TABLE of writable tables.
//!
//! Defaults, and conditions that go, are changed where they are kept. All else makes a table beside the one that is there, with its
//! rows and indexes, and puts it in the place of that.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema};
use datafusion::common::{Result, exec_err};
use datafusion::dataframe::DataFrame;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::sql::parser::Statement;
use datafusion::sql::planner::object_name_to_table_reference;
use datafusion::sql::sqlparser::ast::{
    self, AlterColumnOperation, AlterTable, AlterTableOperation, ColumnDef, ColumnOption, Expr, ObjectName,
    RenameTableNameKind, TableConstraint,
};
use plinth_datafusion::{StoreTable, from_table};
use plinth_rowstore::{Table, TableOptions};

use super::query::{alone, cast, column, named, null, select};
use super::rules::{self, Notes};
use super::write::{blocking, with_types};
use super::{Done, Target, refuse};
use crate::Session;
use crate::database::{Entry, PUBLIC};
use crate::names::normal;

/// A table as it is to be.
struct Shape {
    statement: String,
    columns: Vec<Column>,
    key: Vec<String>,
    cluster: Vec<String>,
    indexes: Vec<Index>,
    notes: Notes,
    /// Whether more than its notes differs from what it was.
    is_new: bool,
}

struct Column {
    field: Field,
    /// Its values, over the table as it is.
    value: Expr,
}

struct Index {
    name: String,
    columns: Vec<String>,
    unique: bool,
}

impl Session {
    /// `ALTER TABLE name operation, ...`
    pub(super) async fn alter(&self, statement: &ast::Statement, alter: &AlterTable) -> Result<Option<Done>> {
        self.not_within_a_transaction::<Done>(statement)?;
        let AlterTable { name, if_exists, only, operations, location, on_cluster, table_type, end_token: _ } = alter;
        let statement = format!("ALTER TABLE {name}");
        refuse(&statement, *only || location.is_some() || on_cluster.is_some() || table_type.is_some(), "an option")?;
        let Some(target) = self.target(name).await? else {
            let reference = object_name_to_table_reference(name.clone(), true)?;
            if *if_exists && !self.context.table_exist(reference)? {
                return Ok(Some(Done::Nothing));
            }
            return exec_err!(
                "{statement}: is no writable table, which CREATE TABLE with columns makes in a folder; write another with CREATE TABLE \
                 ... AS SELECT"
            );
        };
        if let [AlterTableOperation::RenameTable { table_name }] = operations.as_slice() {
            let (RenameTableNameKind::As(to) | RenameTableNameKind::To(to)) = table_name;
            self.rename_table(&statement, name, to).await?;
            return Ok(Some(Done::Nothing));
        }
        let mut shape = Shape::of(statement, &target)?;
        for operation in operations {
            self.change(&mut shape, &target, operation).await?;
        }
        let fields: Vec<Field> = shape.columns.iter().map(|column| column.field.clone()).collect();
        let rules = self.rules(Arc::new(Schema::new(fields)), &shape.notes).await?;
        self.try_rules(&shape.statement, &rules).await?;
        if shape.is_new {
            self.remake(shape, target, rules).await?;
        } else {
            let table = self.stores.writer(target.table.folder())?;
            blocking(move || table.set_notes(shape.notes).map_err(from_table)).await?;
        }
        Ok(Some(Done::Nothing))
    }

    async fn change(&self, shape: &mut Shape, target: &Target, operation: &AlterTableOperation) -> Result<()> {
        match operation {
            AlterTableOperation::AddColumn { if_not_exists, column_def, column_position: None, .. } => {
                if *if_not_exists && shape.columns.iter().any(|known| *known.field.name() == normal(&column_def.name)) {
                    return Ok(());
                }
                let data_type = self.type_of(&column_def.data_type).await?;
                shape.add(target, column_def, data_type)
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
                shape.alter(&normal(column_name), op, data_type)
            }
            AlterTableOperation::AddConstraint { constraint, not_valid } => {
                refuse(&shape.statement, *not_valid, "NOT VALID")?;
                shape.constrain(&target.alias.value, constraint)
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
    async fn remake(&self, shape: Shape, target: Target, rules: super::Rules) -> Result<()> {
        let folder = target.table.folder().to_path_buf();
        let Some(stem) = folder.file_name().and_then(|name| name.to_str()) else {
            return exec_err!("{}: the folder has no name", shape.statement);
        };
        let place = folder.with_file_name(format!(".{stem}.altered"));
        // Of a process that was killed.
        remove(&place).await?;
        let made = self.remade(shape, target, rules, &folder, &place).await;
        if made.is_err() {
            let _ = self.stores.close(&place);
            let _ = remove(&place).await;
        }
        made
    }

    async fn remade(
        &self,
        shape: Shape,
        target: Target,
        rules: super::Rules,
        folder: &Path,
        place: &Path,
    ) -> Result<()> {
        let Shape { statement, columns, key, cluster, indexes, notes, .. } = shape;
        // What is copied is what this sees.
        let writing = self.stores.write(folder)?;
        let sequence = self.stores.view(folder)?.snapshot.sequence();
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
        blocking(move || Table::replace(&folder, &place, sequence).map_err(from_table)).await
    }

    /// The rows of a table with other columns, in the order that they have.
    async fn rows_for(&self, target: &Target, columns: Vec<Column>) -> Result<SendableRecordBatchStream> {
        let scratch = self.scratch(target.stored()?)?;
        let types: Vec<_> = columns.iter().map(|column| column.field.data_type().clone()).collect();
        let items = columns.into_iter().enumerate().map(|(at, column)| named(column.value, format!("_c{at}")));
        let query = select(items.collect(), vec![alone(scratch.as_table(&target.alias)?)], None)?;
        let statement = Statement::Statement(Box::new(ast::Statement::Query(Box::new(query))));
        let (_, plan) = self.rewriter().planned(statement).await?;
        DataFrame::new(self.rewriter().state_in(true), with_types(plan, &types)?).execute_stream().await
    }

    /// `ALTER TABLE name RENAME TO other`, within its schema.
    async fn rename_table(&self, statement: &str, name: &ObjectName, to: &ObjectName) -> Result<()> {
        let name = self.resolved(object_name_to_table_reference(name.clone(), true)?);
        let wanted = object_name_to_table_reference(to.clone(), true)?;
        if wanted.schema().is_some_and(|schema| schema != name.schema.as_ref()) {
            return exec_err!("{statement}: RENAME TO {to}: a table stays in its schema");
        }
        let statement = format!("{statement}: RENAME TO {to}");
        let (Some(database), to) = (self.database_of(&name)?, wanted.table()) else {
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
        let Some(file) = crate::statements::file_of(root, to) else {
            return exec_err!("{statement}: the name can't be that of a folder");
        };
        self.stores.close(&place.canonicalize()?)?;
        blocking(move || Table::rename(&place, file.with_extension("")).map_err(from_table)).await
    }
}

/// Removes a table that was not finished.
async fn remove(place: &Path) -> Result<()> {
    let place: PathBuf = place.to_path_buf();
    blocking(move || if Table::is_table(&place) { Table::destroy(&place).map_err(from_table) } else { Ok(()) }).await
}

impl Shape {
    /// A table as it is.
    fn of(statement: String, target: &Target) -> Result<Self> {
        let stored = target.table.with_row_columns()?;
        let key = target.table.key().to_vec();
        let cluster = match key.is_empty() {
            true => stored.key().split_last().map(|(_, columns)| columns.to_vec()).unwrap_or_default(),
            false => Vec::new(),
        };
        let schema = target.schema();
        let columns = schema
            .fields()
            .iter()
            .map(|field| Column { field: field.as_ref().clone(), value: column(&target.alias, field.name()) });
        let indexes = target.table.indexes()?.into_iter();
        let indexes = indexes.map(|index| Index { name: index.name, columns: index.columns, unique: index.unique });
        let (columns, indexes) = (columns.collect(), indexes.collect());
        Ok(Self { statement, columns, key, cluster, indexes, notes: target.table.notes().clone(), is_new: false })
    }

    fn column(&mut self, name: &str) -> Result<&mut Column> {
        let statement = &self.statement;
        match self.columns.iter_mut().find(|column| column.field.name() == name) {
            Some(column) => Ok(column),
            None => exec_err!("{statement}: there is no column {name:?}"),
        }
    }

    fn add(&mut self, target: &Target, definition: &ColumnDef, data_type: DataType) -> Result<()> {
        let name = normal(&definition.name);
        let statement = format!("{}: ADD COLUMN {}", self.statement, definition.name);
        if self.columns.iter().any(|column| *column.field.name() == name) {
            return exec_err!("{statement}: there is such a column already");
        }
        let (mut value, mut nullable) = (null(), true);
        for option in &definition.options {
            match &option.option {
                ColumnOption::Null => {}
                ColumnOption::NotNull => nullable = false,
                ColumnOption::Default(default) => {
                    self.notes.insert(rules::default_of(&name), rules::text_of(&statement, default)?);
                    value = default.clone();
                }
                ColumnOption::Check(check) => {
                    let usual = format!("{}_{name}_check", target.alias.value);
                    rules::add_check(
                        &mut self.notes,
                        &statement,
                        option.name.as_ref().or(check.name.as_ref()),
                        &usual,
                        check,
                    )?;
                }
                other => {
                    return exec_err!("{statement}: {other}: is not supported (CREATE UNIQUE INDEX makes an index)");
                }
            }
        }
        self.columns.push(Column { field: Field::new(name, data_type, nullable), value });
        self.is_new = true;
        Ok(())
    }

    fn drop(&mut self, name: &str, if_exists: bool) -> Result<()> {
        if if_exists && !self.columns.iter().any(|column| column.field.name() == name) {
            return Ok(());
        }
        self.column(name)?;
        let statement = format!("{}: DROP COLUMN {name}", self.statement);
        if self.columns.len() == 1 {
            return exec_err!("{statement}: it is the only one; DROP TABLE");
        }
        if self.key.iter().chain(&self.cluster).any(|column| column == name) {
            return exec_err!("{statement}: the rows are kept in its order, which can't be changed");
        }
        if let Some(index) = self.indexes.iter().find(|index| index.columns.iter().any(|column| column == name)) {
            return exec_err!("{statement}: the index {} is over it; DROP INDEX first", index.name);
        }
        if let Some((check, text)) = rules::checks_of(&self.notes, name)?.first() {
            return exec_err!("{statement}: CHECK ({text}) names it; DROP CONSTRAINT {check} first");
        }
        self.notes.remove(&rules::default_of(name));
        self.columns.retain(|column| column.field.name() != name);
        self.is_new = true;
        Ok(())
    }

    fn rename(&mut self, old: &str, new: &str) -> Result<()> {
        if self.columns.iter().any(|column| column.field.name() == new) {
            return exec_err!("{}: RENAME COLUMN: there is a column {new:?} already", self.statement);
        }
        let column = self.column(old)?;
        column.field = column.field.clone().with_name(new);
        let indexed = self.indexes.iter_mut().flat_map(|index| &mut index.columns);
        for name in self.key.iter_mut().chain(&mut self.cluster).chain(indexed).filter(|name| *name == old) {
            new.clone_into(name);
        }
        rules::rename(&mut self.notes, &self.statement, old, new)?;
        self.is_new = true;
        Ok(())
    }

    fn alter(&mut self, name: &str, operation: &AlterColumnOperation, data_type: Option<DataType>) -> Result<()> {
        let statement = format!("{}: ALTER COLUMN {name}", self.statement);
        let in_key = self.key.iter().chain(&self.cluster).any(|column| column == name);
        let column = self.column(name)?;
        match operation {
            AlterColumnOperation::SetDefault { value } => {
                let text = rules::text_of(&statement, value)?;
                self.notes.insert(rules::default_of(name), text);
            }
            AlterColumnOperation::DropDefault => {
                self.notes.remove(&rules::default_of(name));
            }
            AlterColumnOperation::SetNotNull => {
                column.field = column.field.clone().with_nullable(false);
                self.is_new = true;
            }
            AlterColumnOperation::DropNotNull if in_key => {
                return exec_err!("{statement}: rows are kept in its order, and NULL has none");
            }
            AlterColumnOperation::DropNotNull => {
                column.field = column.field.clone().with_nullable(true);
                self.is_new = true;
            }
            AlterColumnOperation::SetDataType { using, .. } => {
                if let Some(data_type) = data_type {
                    column.field = column.field.clone().with_data_type(data_type);
                }
                if let Some(using) = using {
                    column.value = using.clone();
                }
                self.is_new = true;
            }
            other @ AlterColumnOperation::AddGenerated { .. } => {
                return exec_err!("{statement}: {other}: is not supported");
            }
        }
        Ok(())
    }

    fn constrain(&mut self, table: &str, constraint: &TableConstraint) -> Result<()> {
        let statement = format!("{}: ADD CONSTRAINT", self.statement);
        match constraint {
            TableConstraint::Check(check) => {
                let usual = format!("{table}_check");
                rules::add_check(&mut self.notes, &statement, check.name.as_ref(), &usual, check)?;
            }
            TableConstraint::Unique(unique) => {
                let columns = names_of(&statement, &unique.columns)?;
                let name = unique.name.as_ref().map_or_else(|| format!("{table}_{}_key", columns.join("_")), normal);
                if self.indexes.iter().any(|index| index.name == name) {
                    return exec_err!("{statement}: there is an index {name} already");
                }
                self.indexes.push(Index { name, columns, unique: true });
            }
            other => return exec_err!("{statement}: {other}: is not supported (CHECK and UNIQUE are)"),
        }
        self.is_new = true;
        Ok(())
    }

    fn release(&mut self, name: &str, if_exists: bool) -> Result<()> {
        if rules::remove_check(&mut self.notes, name) {
            return Ok(());
        }
        if let Some(at) = self.indexes.iter().position(|index| index.unique && index.name == name) {
            self.indexes.remove(at);
            self.is_new = true;
            return Ok(());
        }
        if if_exists { Ok(()) } else { exec_err!("{}: there is no constraint {name:?}", self.statement) }
    }
}

fn names_of(statement: &str, columns: &[ast::IndexColumn]) -> Result<Vec<String>> {
    let name = |column: &ast::IndexColumn| match &column.column.expr {
        Expr::Identifier(name) => Ok(normal(name)),
        other => exec_err!("{statement}: {other}: is no column"),
    };
    columns.iter().map(name).collect()
}
