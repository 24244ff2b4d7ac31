//! A table on its way through the operations of an ALTER TABLE.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};
use datafusion::common::{Result, exec_err};
use datafusion::sql::sqlparser::ast::{
    self, AlterColumnOperation, ColumnDef, ColumnOption, Expr, Ident, TableConstraint,
};

use super::super::Target;
use super::super::query::{column, null};
use super::super::rules::{self, Notes};
use crate::names::normal;

/// A table as it is to be.
pub(super) struct Shape {
    pub(super) statement: String,
    pub(super) columns: Vec<Column>,
    pub(super) key: Vec<String>,
    pub(super) cluster: Vec<String>,
    pub(super) indexes: Vec<Index>,
    pub(super) notes: Notes,
    /// Whether more than its notes differs from what it was.
    pub(super) is_new: bool,
}

pub(super) struct Column {
    pub(super) field: Field,
    /// Its values, over the table as it is.
    pub(super) value: Expr,
}

pub(super) struct Index {
    pub(super) name: String,
    pub(super) columns: Vec<String>,
    pub(super) unique: bool,
}

impl Shape {
    /// A table as it is.
    pub(super) fn of(statement: String, target: &Target) -> Result<Self> {
        let stored = target.table.with_row_columns()?;
        let key = target.table.key().to_vec();
        let cluster = match key.is_empty() {
            true => stored.key().split_last().map(|(_, columns)| columns.to_vec()).unwrap_or_default(),
            false => Vec::new(),
        };
        let indexes = target.table.indexes()?.into_iter();
        let indexes = indexes.map(|index| Index { name: index.name, columns: index.columns, unique: index.unique });
        let (columns, indexes) = (columns_of(&target.schema(), &target.alias), indexes.collect());
        Ok(Self { statement, columns, key, cluster, indexes, notes: target.table.notes().clone(), is_new: false })
    }

    /// A table of columns alone.
    pub(super) fn of_columns(statement: String, schema: &Schema, alias: &Ident) -> Self {
        let (key, cluster, indexes, notes) = Default::default();
        Self { statement, columns: columns_of(schema, alias), key, cluster, indexes, notes, is_new: false }
    }

    pub(super) fn schema(&self) -> SchemaRef {
        Arc::new(Schema::new(self.columns.iter().map(|column| column.field.clone()).collect::<Vec<_>>()))
    }

    fn column(&mut self, name: &str) -> Result<&mut Column> {
        let statement = &self.statement;
        match self.columns.iter_mut().find(|column| column.field.name() == name) {
            Some(column) => Ok(column),
            None => exec_err!("{statement}: there is no column {name:?}"),
        }
    }

    pub(super) fn add(&mut self, table: &str, definition: &ColumnDef, data_type: DataType) -> Result<()> {
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
                    let usual = format!("{table}_{name}_check");
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

    pub(super) fn drop(&mut self, name: &str, if_exists: bool) -> Result<()> {
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

    pub(super) fn rename(&mut self, old: &str, new: &str) -> Result<()> {
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

    pub(super) fn alter(
        &mut self,
        name: &str,
        operation: &AlterColumnOperation,
        data_type: Option<DataType>,
    ) -> Result<()> {
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

    /// Gives a column the condition of UUIDs if that is its new type, and its values their one form.
    pub(super) fn keep_uuids(&mut self, table: &str, name: &Ident, data_type: &ast::DataType) -> Result<()> {
        if *data_type != ast::DataType::Uuid {
            return Ok(());
        }
        let column = self.column(&normal(name))?;
        column.value = Expr::Cast {
            kind: ast::CastKind::Cast,
            expr: Box::new(column.value.clone()),
            data_type: ast::DataType::Uuid,
            array: false,
            format: None,
        };
        rules::add_uuid_check(&mut self.notes, &self.statement, table, name)
    }

    pub(super) fn constrain(&mut self, table: &str, constraint: &TableConstraint) -> Result<()> {
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

    pub(super) fn release(&mut self, name: &str, if_exists: bool) -> Result<()> {
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

/// Columns as they are.
fn columns_of(schema: &Schema, alias: &Ident) -> Vec<Column> {
    let fields = schema.fields().iter();
    fields.map(|field| Column { field: field.as_ref().clone(), value: column(alias, field.name()) }).collect()
}
