//! Statements about schemas, views and sequences, and tables that last as long as the session.
//!
//! What a folder (`--db`) has is kept in it: schemas are its subfolders that its catalog names, views are texts in the catalog, and sequences
//! are there, too.
//! Without a folder both last as long as the session, as what is TEMP does.

mod attach;
mod paths;
mod schema;
pub(crate) mod secret;
mod sequence;
mod show;

use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::catalog::{SchemaProvider, TableProvider};
use datafusion::common::{ResolvedTableReference, Result, TableReference, exec_err};
use datafusion::dataframe::DataFrame;
use datafusion::datasource::{MemTable, TableType, ViewTable};
use datafusion::logical_expr::{CreateMemoryTable, LogicalPlan};
use datafusion::sql::parser::Statement;
use datafusion::sql::planner::object_name_to_table_reference;
use datafusion::sql::sqlparser::ast::{self, CreateView, Expr, ObjectName, ObjectType};

use crate::catalog::View;
use crate::database::{Database, Entry, PUBLIC};
use crate::error::SqlError;
use crate::schemas::CATALOG;
use crate::{Session, depth, view_plans, views};

/// What a statement has become.
pub(crate) enum Defined {
    /// It is done, and tells nothing.
    Done,
    /// The texts that it answers, each with its heading.
    Text(Vec<(&'static str, String)>),
}

impl Session {
    /// Carries out a statement, as it was written, if it is one about schemas or views.
    pub(crate) async fn define(&self, statement: &Statement) -> Result<Option<Defined>> {
        let Statement::Statement(statement) = statement else { return Ok(None) };
        match statement.as_ref() {
            ast::Statement::CreateView(create) => {
                self.refuse_within_a_transaction("CREATE VIEW")?;
                self.create_view(create.clone()).await?;
            }
            ast::Statement::CreateSchema { .. } => {
                self.refuse_within_a_transaction("CREATE SCHEMA")?;
                return Ok(self.create_schema(statement)?.then_some(Defined::Done));
            }
            ast::Statement::Drop { object_type: ObjectType::View, if_exists, names, .. } => {
                self.refuse_within_a_transaction("DROP VIEW")?;
                for name in names {
                    self.drop_view(name, *if_exists).await?;
                }
            }
            ast::Statement::Drop { object_type: ObjectType::Schema, if_exists, names, cascade, .. } => {
                self.refuse_within_a_transaction("DROP SCHEMA")?;
                for name in names {
                    if !self.drop_schema(name, *if_exists, *cascade).await? {
                        return Ok(None);
                    }
                }
            }
            ast::Statement::AlterTable(alter) => self.alter(statement, alter).await?,
            ast::Statement::AttachDatabase { schema_name, database_file_name, .. } => {
                self.refuse_within_a_transaction("ATTACH")?;
                self.attach(database_file_name, schema_name)?;
            }
            ast::Statement::CreateSequence { .. } => {
                self.refuse_within_a_transaction("CREATE SEQUENCE")?;
                self.create_sequence(statement)?;
            }
            ast::Statement::Drop { object_type: ObjectType::Sequence, if_exists, names, cascade, .. } => {
                self.refuse_within_a_transaction("DROP SEQUENCE")?;
                for name in names {
                    self.drop_sequence(name, *if_exists, *cascade).await?;
                }
            }
            ast::Statement::CreateSecret { .. } => self.create_secret(statement)?,
            ast::Statement::DropSecret { name, if_exists, .. } => self.drop_secret(name, *if_exists)?,
            ast::Statement::CreateType { name, .. } => {
                return exec_err!(
                    "CREATE TYPE {name}: there are no types of one's own; TEXT CHECK (c IN ('a', 'b')) takes certain values only"
                );
            }
            ast::Statement::Comment { object_type, object_name, .. } => {
                return exec_err!("COMMENT ON {object_type} {object_name}: comments are not kept");
            }
            ast::Statement::Use(what) => self.use_schema(what)?,
            ast::Statement::ShowCreate { obj_type, obj_name } => {
                return self.show_create(*obj_type, obj_name).await.map(|text| Some(Defined::Text(text)));
            }
            _ => return Ok(None),
        }
        Ok(Some(Defined::Done))
    }

    fn refuse_within_a_transaction(&self, what: &str) -> Result<()> {
        if self.in_transaction() {
            return exec_err!("{what} can't be part of a transaction, which could not take it back: COMMIT first");
        }
        Ok(())
    }

    /// The whole name of a table.
    pub(crate) fn resolved(&self, name: impl Into<TableReference>) -> ResolvedTableReference {
        let state = self.context.state_ref();
        let state = state.read();
        let defaults = &state.config_options().catalog;
        name.into().resolve(&defaults.default_catalog, &defaults.default_schema)
    }

    /// The schema of a folder that a table is in, or would be. None if it is one of the session, or there is none.
    pub(crate) fn database_of(&self, name: &ResolvedTableReference) -> Result<Option<Arc<Database>>> {
        self.schemas.of_folder(name)
    }

    async fn create_view(&self, mut create: CreateView) -> Result<()> {
        let reference = object_name_to_table_reference(create.name.clone(), true)?;
        let name = self.resolved(reference.clone());
        let statement = format!("CREATE VIEW {}", create.name);
        let (or_replace, missing_only) = (create.or_replace, create.if_not_exists);
        let placed = ast::visit_expressions(&create.query, |expr| match expr {
            Expr::Value(ast::ValueWithSpan { value: ast::Value::Placeholder(place), .. }) => {
                ControlFlow::Break(place.clone())
            }
            _ => ControlFlow::Continue(()),
        });
        if let ControlFlow::Break(place) = placed {
            return exec_err!("{statement}: {place}: a view takes no parameters; write the value");
        }
        if create.or_alter || create.secure || create.params.is_some() {
            return exec_err!("{statement}: OR ALTER, SECURE and other options of a view are not supported");
        }
        if or_replace && missing_only {
            return exec_err!("{statement}: IF NOT EXISTS and OR REPLACE exclude each other");
        }
        let Some(database) = self.database_of(&name)?.filter(|_| !create.temporary) else {
            let known = self.session_table_type(&name).await?;
            match known {
                Some(_) if missing_only => return Ok(()),
                Some(TableType::View) if or_replace => {}
                Some(_) => return exec_err!("{statement}: {} exists already", name.table),
                None => {}
            }
            plain(&mut create);
            let shown = match name.schema.as_ref() {
                PUBLIC => name.table.to_string(),
                schema => format!("{schema}.{}", name.table),
            };
            let shown = self.rewriter().of(name.catalog.to_string()).shown(shown);
            let text = Statement::Statement(Box::new(ast::Statement::CreateView(create)));
            let state = self.context.state_weak_ref();
            let (view, planned) = view_plans::of_session(shown, text, state, &self.kept).await?;
            check_columns(&statement, &planned)?;
            if known.is_some() {
                self.context.deregister_table(reference.clone())?;
            }
            self.context.register_table(reference, Arc::new(view))?;
            return Ok(());
        };
        match database.find(&name.table)? {
            Some(_) if missing_only => return Ok(()),
            Some(Entry::View(_)) if or_replace => {}
            Some(Entry::View(_)) => {
                return exec_err!("{statement}: already exists; CREATE OR REPLACE VIEW replaces it");
            }
            Some(_) => return exec_err!("{statement}: there is a table of this name"),
            None if database.is_registered(&name.table) => {
                return exec_err!("{statement}: this session has a table of this name; DROP it first");
            }
            None => {}
        }
        plain(&mut create);
        paths::make_absolute(&mut create, &self.context, &self.kept.grants, &std::env::current_dir()?);
        let sql = ast::Statement::CreateView(create.clone()).to_string();
        // What is kept is a text: it has to mean what was written.
        let again = depth::parse(&sql).ok().and_then(|mut statements| statements.pop());
        if again != Some(Statement::Statement(Box::new(ast::Statement::CreateView(create)))) {
            return exec_err!(
                "{statement}: the query can't be kept as a text; CREATE TEMP VIEW makes one for this session"
            );
        }
        // What is kept in a folder names what is in that folder.
        let catalog_of = match self.schemas.attached(&name.schema) {
            Some(_) if name.catalog.as_ref() == CATALOG => name.schema.to_string(),
            _ => name.catalog.to_string(),
        };
        let search = match catalog_of.as_str() {
            CATALOG => self.context.state_ref().read().config_options().catalog.default_schema.clone(),
            _ => database.name().to_owned(),
        };
        let view = View { search, sql };
        let shown = shown(&database, &name.table);
        let planned = view_plans::plan(self.rewriter().of(catalog_of), shown, view.clone()).await;
        let planned = planned.map_err(|error| naming(&statement, error))?;
        check_columns(&statement, &planned)?;
        let Some(catalog) = database.catalog() else { return Ok(()) };
        let (schema, key) = (database.name(), (database.name().to_owned(), name.table.to_string()));
        let changed = catalog.change(|contents| {
            if schema != crate::database::PUBLIC && !contents.schemas.contains(schema) {
                return Err(SqlError::new(format!("{statement}: the schema is gone")));
            }
            if contents.views.contains_key(&key) && !or_replace {
                return Err(SqlError::new(format!("{statement}: already exists; CREATE OR REPLACE VIEW replaces it")));
            }
            contents.views.insert(key, view);
            Ok(())
        });
        Ok(changed?)
    }

    /// A table that lasts as long as the session; of a view its plan.
    pub(crate) async fn session_table(&self, name: &ResolvedTableReference) -> Result<Option<Arc<dyn TableProvider>>> {
        match self.schema_of_session(name)? {
            Some(schema) => schema.table(&name.table).await,
            None => Ok(None),
        }
    }

    /// Whether there is such a table, or a view, which may be one that can't be read.
    async fn session_table_type(&self, name: &ResolvedTableReference) -> Result<Option<TableType>> {
        match self.schema_of_session(name)? {
            Some(schema) => schema.table_type(&name.table).await,
            None => Ok(None),
        }
    }

    /// The schema that has a table of the session.
    fn schema_of_session(&self, name: &ResolvedTableReference) -> Result<Option<Arc<dyn SchemaProvider>>> {
        if self.database_of(name)?.is_some_and(|database| !database.is_registered(&name.table)) {
            return Ok(None);
        }
        let schema = self.context.catalog(&name.catalog).and_then(|catalog| catalog.schema(&name.schema));
        Ok(schema.filter(|schema| schema.table_exist(&name.table)))
    }

    async fn drop_view(&self, written: &ObjectName, if_exists: bool) -> Result<()> {
        let reference = object_name_to_table_reference(written.clone(), true)?;
        let name = self.resolved(reference.clone());
        match self.session_table_type(&name).await? {
            Some(TableType::View) => {
                self.context.deregister_table(reference)?;
                return Ok(());
            }
            Some(_) => return exec_err!("DROP VIEW {written}: is a table: DROP TABLE {written}"),
            None => {}
        }
        let found = match self.database_of(&name)? {
            Some(database) => database.catalog().map(|catalog| {
                let removed = catalog.change(|contents| {
                    let schema = database.name();
                    let key = contents.view(schema, &name.table).map(|(known, _)| known.clone());
                    Ok(key.and_then(|key| contents.views.remove(&(schema.to_owned(), key))).is_some())
                });
                Ok::<_, SqlError>((removed?, database.find(&name.table)?.is_some()))
            }),
            None => None,
        };
        match found.transpose()?.unwrap_or_default() {
            (true, _) => Ok(()),
            (false, true) => exec_err!("DROP VIEW {written}: is a table: DROP TABLE {written}"),
            (false, false) if if_exists => Ok(()),
            (false, false) => exec_err!("DROP VIEW {written}: there is no such view"),
        }
    }

    /// `CREATE TEMP TABLE`: rows in memory, before which those that a folder has of the name step back.
    pub(crate) async fn create_temporary(&self, create: CreateMemoryTable) -> Result<Option<u64>> {
        let CreateMemoryTable { name, input, if_not_exists, or_replace, constraints, column_defaults, .. } = create;
        let statement = format!("CREATE TEMP TABLE {name}");
        refuse_constraints(&statement, constraints.iter().next().is_some())?;
        if !column_defaults.is_empty() {
            return exec_err!("{statement}: DEFAULT is not supported of what is TEMP");
        }
        let known = self.session_table_type(&self.resolved(name.clone())).await?;
        match known {
            Some(_) if if_not_exists => return Ok(None),
            Some(_) if !or_replace => {
                return exec_err!("{statement}: already exists; CREATE OR REPLACE TEMP TABLE replaces it");
            }
            Some(_) => drop(self.context.deregister_table(name.clone())?),
            None => {}
        }
        let empty = matches!(input.as_ref(), LogicalPlan::EmptyRelation(_));
        let frame = DataFrame::new(self.context.state(), Arc::unwrap_or_clone(input));
        let schema = Arc::clone(frame.schema().inner());
        let rows = frame.collect_partitioned().await?;
        let count = rows.iter().flatten().map(|batch| batch.num_rows() as u64).sum();
        self.context.register_table(name, Arc::new(MemTable::try_new(schema, rows)?))?;
        Ok((!empty).then_some(count))
    }
}

/// A key of a table in memory would not be kept: rows are not looked at as they come.
pub(crate) fn refuse_constraints(statement: &str, any: bool) -> Result<()> {
    if any {
        return exec_err!(
            "{statement}: PRIMARY KEY and UNIQUE are kept by tables of a folder (--db DIR), not by tables in memory; open a folder, or \
             leave them out"
        );
    }
    Ok(())
}

/// What is said of how a view comes to be does not belong to its text.
fn plain(create: &mut CreateView) {
    (create.or_replace, create.if_not_exists, create.temporary) = (false, false, false);
    create.name_before_not_exists = false;
}

/// A name as users write it.
fn shown(database: &Database, name: &str) -> String {
    match database.name() {
        crate::database::PUBLIC => name.to_owned(),
        schema => format!("{schema}.{name}"),
    }
}

fn naming(statement: &str, error: impl Into<SqlError>) -> SqlError {
    match error.into() {
        SqlError::Message(kind, what) => SqlError::of(kind, format!("{statement}: {}", views::missing(what))),
        SqlError::Interrupted => SqlError::Interrupted,
    }
}

fn check_columns(statement: &str, view: &ViewTable) -> Result<()> {
    let mut seen = std::collections::HashSet::new();
    let schema = view.schema();
    match schema.fields().iter().find(|field| !seen.insert(field.name())) {
        Some(field) => exec_err!("{statement}: column {:?} occurs twice; give one of them another name", field.name()),
        None => Ok(()),
    }
}
