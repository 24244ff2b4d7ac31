//! CREATE, DROP, TRUNCATE and VACUUM of writable tables.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use arrow_schema::Schema;
use datafusion::common::{Constraint, Constraints, ResolvedTableReference, Result, exec_err};
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::sqlparser::ast::{ObjectName, Truncate, VacuumStatement};
use plinth_rowstore::{Table, TableOptions};

use super::write::{Changes, blocking};
use super::{Done, refuse};
use crate::{Params, Session};

/// How a statement wants a table's rows told apart and ordered.
#[derive(Debug, Default)]
pub(crate) struct Created {
    /// The columns of the primary key.
    pub(crate) key: Vec<String>,
    /// The columns of each UNIQUE constraint.
    pub(crate) unique: Vec<Vec<String>>,
    /// The columns that rows are ordered by.
    pub(crate) cluster: Vec<String>,
    /// Its defaults and conditions.
    pub(crate) notes: BTreeMap<String, String>,
}

impl Created {
    /// Whether only a writable table keeps it.
    pub(crate) fn needs_a_store(&self) -> bool {
        let Self { key, unique, cluster, notes } = self;
        !(key.is_empty() && unique.is_empty() && cluster.is_empty() && notes.is_empty())
    }
}

/// What a statement's constraints say.
pub(crate) fn constraints(name: &str, constraints: &Constraints, schema: &Schema) -> Result<Created> {
    let mut created = Created::default();
    let names = |columns: &[usize]| -> Vec<String> {
        columns.iter().filter_map(|&at| schema.fields().get(at)).map(|field| field.name().clone()).collect()
    };
    for constraint in constraints.iter() {
        match constraint {
            Constraint::PrimaryKey(columns) if created.key.is_empty() => created.key = names(columns),
            Constraint::PrimaryKey(_) => return exec_err!("CREATE TABLE {name}: a table has one primary key"),
            Constraint::Unique(columns) => created.unique.push(names(columns)),
        }
    }
    Ok(created)
}

impl Session {
    /// Makes a writable table in a folder, with the rows of a query: how many.
    pub(crate) async fn create_store(
        &self,
        name: &ResolvedTableReference,
        folder: &Path,
        created: Created,
        input: LogicalPlan,
    ) -> Result<Option<u64>> {
        let schema = input.schema().as_arrow().clone();
        let Created { key, unique, cluster, notes } = created;
        let statement = format!("CREATE TABLE {}", name.table);
        let rules = self.rules(Arc::new(schema.clone()), &notes).await?;
        self.try_rules(&statement, &rules).await?;
        let (options, place) = (TableOptions { cluster, notes, ..self.stores.options().clone() }, folder.to_path_buf());
        let stem = name.table.to_string();
        let create = move || {
            fn all(columns: &[String]) -> Vec<&str> {
                columns.iter().map(String::as_str).collect()
            }
            let table = Table::create(&place, &schema, &all(&key), options)?;
            let indexed = unique.iter().try_for_each(|columns| {
                table.create_index(&format!("{stem}_{}_key", columns.join("_")), &all(columns), true)
            });
            match indexed.and_then(|()| table.close()) {
                // It was to be there as it was asked for, or not at all.
                Err(error) => Table::destroy(&place).and(Err(error)),
                done => done,
            }
        };
        blocking(move || create().map_err(plinth_datafusion::from_table)).await?;
        if matches!(input, LogicalPlan::EmptyRelation(_)) {
            return Ok(None);
        }
        let filled = self.fill(name, input).await;
        if filled.is_err() {
            // It was to be there with its rows or not at all.
            let _ = self.drop_store(folder).await;
        }
        filled.map(Some)
    }

    async fn fill(&self, name: &ResolvedTableReference, input: LogicalPlan) -> Result<u64> {
        let statement = format!("CREATE TABLE {}", name.table);
        let missing =
            ObjectName::from([&name.catalog, &name.schema, &name.table].map(|part| super::quoted(&**part)).to_vec());
        let Some(target) = self.target(&missing).await? else { return exec_err!("{statement}: the table is gone") };
        let writing = target.table.write()?;
        let types = target.types();
        let stream = self.run(super::write::with_types(input, &types)?, &Params::default()).await?;
        self.insert_all(statement, target, writing, stream).await
    }

    /// Removes a writable table and all of its rows.
    pub(crate) async fn drop_store(&self, folder: &Path) -> Result<()> {
        self.stores.close(folder)?;
        let folder = folder.to_path_buf();
        blocking(move || Table::destroy(&folder).map_err(plinth_datafusion::from_table)).await
    }

    /// TRUNCATE: all rows go.
    pub(super) async fn truncate(&self, truncate: &Truncate) -> Result<Option<Done>> {
        let [name] = truncate.table_names.as_slice() else {
            return exec_err!("TRUNCATE: one table at a time");
        };
        let statement = format!("TRUNCATE {}", name.name);
        refuse(&statement, truncate.partitions.is_some() || truncate.identity.is_some(), "PARTITION and IDENTITY")?;
        let Some(target) = self.target(&name.name).await? else { return Ok(None) };
        let folder = target.table.folder().to_path_buf();
        if !self.stores.in_transaction() {
            let table = self.stores.writer(&folder)?;
            let gone = blocking(move || table.truncate().map_err(plinth_datafusion::from_table)).await?;
            return Ok(Some(Done::Rows(gone.deleted)));
        }
        let writing = self.stores.write(&folder)?;
        let (old, types) = target.row_columns()?;
        let scratch = self.scratch(target.stored()?)?;
        let alias = target.alias.clone();
        let items = old.iter().map(|name| super::named(super::column(&alias, name), name.as_str())).collect();
        let query = super::query::select(items, vec![super::query::alone(scratch.as_table(&alias)?)], None)?;
        let stream = self.query(query, &types, &Params::default()).await?;
        let gathered = self.gather(stream).await?;
        let rows = self.apply(writing, gathered, move |batches, transaction| {
            Changes { gone: batches, ..Changes::default() }.apply(&statement, transaction)
        });
        rows.await.map(|rows| Some(Done::Rows(rows)))
    }

    /// VACUUM: what is deleted leaves the files.
    pub(super) async fn vacuum(&self, vacuum: &VacuumStatement) -> Result<Option<Done>> {
        let Some(name) = &vacuum.table_name else { return exec_err!("VACUUM: name a table") };
        let others =
            [vacuum.full, vacuum.sort_only, vacuum.delete_only, vacuum.reindex, vacuum.recluster, vacuum.boost];
        refuse("VACUUM", others.contains(&true) || vacuum.threshold.is_some(), "an option")?;
        let Some(target) = self.target(name).await? else {
            return exec_err!("VACUUM {name}: is no writable table; plinth compact makes few files of many");
        };
        if self.stores.in_transaction() {
            return exec_err!("VACUUM can't be part of a transaction: COMMIT first");
        }
        let table = Arc::clone(&self.stores.writer(target.table.folder())?);
        blocking(move || table.vacuum().map_err(plinth_datafusion::from_table)).await?;
        Ok(Some(Done::Nothing))
    }
}
