//! CREATE INDEX and DROP INDEX.

use std::path::PathBuf;

use datafusion::common::{Result, exec_err};
use datafusion::sql::sqlparser::ast::{self, CreateIndex, Expr, IndexColumn, IndexType, ObjectName};

use super::query::last;
use super::write::blocking;
use super::{Done, refuse};
use crate::Session;
use crate::names::normal;

impl Session {
    /// `CREATE [UNIQUE] INDEX [IF NOT EXISTS] [name] ON table (column, ...)`
    pub(super) async fn create_index(&self, statement: &ast::Statement, create: &CreateIndex) -> Result<Option<Done>> {
        self.not_within_a_transaction::<Done>(statement)?;
        let CreateIndex { name, table_name, using, columns, unique, concurrently, if_not_exists, .. } = create;
        let Some(target) = self.target(table_name).await? else {
            return exec_err!(
                "CREATE INDEX: {table_name} is no writable table; CREATE TABLE or plinth table init makes one"
            );
        };
        let statement = format!("CREATE INDEX on {}", target.name);
        let tree = matches!(using, None | Some(IndexType::BTree));
        refuse(&statement, !tree, "another kind than BTREE")?;
        refuse(&statement, *concurrently, "CONCURRENTLY, which every index is,")?;
        refuse(&statement, !create.include.is_empty(), "INCLUDE")?;
        refuse(&statement, create.nulls_distinct == Some(false), "NULLS NOT DISTINCT")?;
        refuse(&statement, create.predicate.is_some(), "WHERE")?;
        let options = !(create.with.is_empty() && create.index_options.is_empty() && create.alter_options.is_empty());
        refuse(&statement, options, "an option")?;
        let columns = columns.iter().map(|column| name_of(&statement, column)).collect::<Result<Vec<_>>>()?;
        let name = match name {
            Some(name) => normal(&last(name)?),
            None => format!("{}_{}_idx", normal(&target.alias), columns.join("_")),
        };
        let table = self.stores.writer(target.table.folder())?;
        if *if_not_exists && table.snapshot().indexes().iter().any(|index| index.name == name) {
            return Ok(Some(Done::Nothing));
        }
        let unique = *unique;
        let create = move || {
            let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
            table.create_index(&name, &columns, unique).map_err(plinth_datafusion::from_table)
        };
        blocking(create).await?;
        Ok(Some(Done::Nothing))
    }

    /// `DROP INDEX [IF EXISTS] name [ON table]`. Without a table, it is the one that has such an index.
    pub(super) async fn drop_index(
        &self,
        statement: &ast::Statement,
        names: &[ObjectName],
        table: Option<&ObjectName>,
        if_exists: bool,
    ) -> Result<Option<Done>> {
        self.not_within_a_transaction::<Done>(statement)?;
        let [name] = names else { return exec_err!("DROP INDEX: one index at a time") };
        let index = normal(&last(name)?);
        let folders: Vec<PathBuf> = match table {
            Some(table) => match self.target(table).await? {
                Some(target) => vec![target.table.folder().to_path_buf()],
                None => return exec_err!("DROP INDEX {index}: {table} is no writable table"),
            },
            None => {
                let databases = self.schemas.databases()?;
                databases.iter().map(|database| database.stores()).collect::<Result<Vec<_>>>()?.concat()
            }
        };
        let mut with = Vec::new();
        for folder in folders {
            // Named as tables are, by where their links lead.
            let folder = folder.canonicalize()?;
            if self.stores.view(&folder)?.snapshot.indexes().iter().any(|known| known.name == index) {
                with.push(folder);
            }
        }
        match with.as_slice() {
            [] if if_exists => Ok(Some(Done::Nothing)),
            [] => exec_err!("DROP INDEX {index}: there is no such index"),
            [folder] => {
                let table = self.stores.writer(folder)?;
                blocking(move || table.drop_index(&index).map_err(plinth_datafusion::from_table)).await?;
                Ok(Some(Done::Nothing))
            }
            [_, ..] => exec_err!("DROP INDEX {index}: several tables have one: DROP INDEX {index} ON a table"),
        }
    }
}

/// The column that an index is of.
fn name_of(statement: &str, column: &IndexColumn) -> Result<String> {
    let order = &column.column.options;
    let other = order.asc == Some(false) || order.nulls_first.is_some() || column.operator_class.is_some();
    refuse(statement, other, "an order or operators of a column")?;
    match &column.column.expr {
        Expr::Identifier(name) => Ok(normal(name)),
        other => exec_err!("{statement}: {other}: is no column"),
    }
}
