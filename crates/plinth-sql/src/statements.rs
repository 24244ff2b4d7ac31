//! From statement to stream: what DataFusion would do wrong with files is refused or done here.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StringArray, UInt64Array};
use arrow_schema::DataType;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{TableReference, exec_err, internal_err};
use datafusion::dataframe::DataFrame;
use datafusion::datasource::source_as_provider;
use datafusion::error::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{
    CreateMemoryTable, DdlStatement, DmlStatement, LogicalPlan, Statement as PlannedStatement, WriteOp,
};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::sql::parser::Statement;
use datafusion::sql::planner::object_name_to_table_reference;
use datafusion::sql::sqlparser::ast;
use plinth_core::text::{nearest, spelled};
use plinth_format::WriterOptions;
use plinth_io::regular;

use super::catalog::Catalog;
use super::database::{Database, Entry, PUBLIC, file_of};
use super::ddl::{Defined, refuse_constraints, secret};
use super::meaning::resolve_windows;
use super::numbers::keep_digits;
use super::params::types_of;
use super::prepared::Keeping;
use super::rows::{Created, Done, constraints, refuse_options, take_cluster, take_rules, take_temporary};
use super::{Params, Session, depth, engine, planning, show};
use crate::error::{ErrorKind, Result, SqlError, near_path};
use crate::interrupt::Interrupt;
use crate::rewriter::{Rewritten, as_prepare, first_unless_told, is_unknown_name, may_be_lenient};

/// Splits a text into statements.
///
/// # Errors
/// If any of them is not SQL, or too deep: none is run then.
pub fn parse(text: &str) -> Result<Vec<Statement>> {
    depth::parse(text).map_err(|error| match secret::holds_secret(text) {
        // What the parser says repeats what it found.
        true => SqlError::new(format!("a statement that makes a secret is not understood: {}", secret::FORM)),
        false => error,
    })
}

/// What has become of a statement: nothing yet, or all that it does but for handing over its rows.
pub(crate) enum Planned {
    /// A query, which runs as its rows are asked for.
    Query(planning::Physical),
    /// The rows of a query that needed no plan.
    Found(SendableRecordBatchStream),
    /// What another statement answers.
    Done(SendableRecordBatchStream),
}

impl Planned {
    pub(crate) fn rows(self) -> Result<SendableRecordBatchStream, DataFusionError> {
        match self {
            Self::Query(plan) => plan.start(),
            Self::Found(rows) | Self::Done(rows) => Ok(rows),
        }
    }
}

impl Session {
    /// Plans and starts a statement. Rows come as the stream is polled; statements without rows are over when this
    /// returns.
    ///
    /// # Errors
    /// If the statement is refused or fails.
    pub async fn execute(&self, statement: Statement) -> Result<SendableRecordBatchStream> {
        self.execute_with(statement, &Params::default()).await
    }

    /// As [`Session::execute`], with values for the statement's parameters.
    ///
    /// # Errors
    /// As [`Session::execute`].
    pub async fn execute_with(&self, statement: Statement, params: &Params) -> Result<SendableRecordBatchStream> {
        Ok(self.planned(statement, params).await?.rows()?)
    }

    /// The parameters of a query, or of INSERT, UPDATE or DELETE, by their names without the `$`, and the types that their places ask
    /// for, where these ask for one.
    ///
    /// # Errors
    /// If the statement is refused.
    pub async fn parameter_types(&self, statement: Statement) -> Result<BTreeMap<String, Option<DataType>>> {
        self.stores.begin_statement();
        let types = if matches!(&statement, Statement::Statement(inner) if matches!(**inner, ast::Statement::Query(_)))
        {
            let planned = self.rewriter().planned(statement).await;
            let (_, plan) = planned.map_err(|e| self.explain_missing(e))?;
            types_of(&plan)?
        } else {
            self.types_of_change(&statement).await?
        };
        let types = types.into_iter();
        Ok(types.map(|(id, data_type)| (id.trim_start_matches('$').to_owned(), data_type)).collect())
    }

    /// Plans a statement, and runs one that is no query.
    pub(crate) async fn planned(&self, statement: Statement, params: &Params) -> Result<Planned> {
        self.planned_by(statement, params, true).await
    }

    /// As [`Session::planned`]; whether a row may be found by its key without a plan.
    pub(crate) async fn planned_by(&self, mut statement: Statement, params: &Params, by_key: bool) -> Result<Planned> {
        secret::refuse_within(&statement)?;
        self.kept.grants.statement(&statement)?;
        secret::show(&mut statement, self)?;
        self.stores.begin_statement();
        // Which files there are is looked at once for each statement: the engine would know it from then on.
        if let Some(listed) = self.context.runtime_env().cache_manager.get_list_files_cache() {
            listed.clear();
        }
        let Some(execution) = self.execution(&statement) else {
            let keeping = params.kept().map(|kept| Keeping { kept: Arc::clone(kept), written: Vec::new() });
            return self.planned_keeping(statement, params, keeping, by_key).await;
        };
        if let Some((query, values)) = execution.apart() {
            self.kept.grants.statement(&query)?;
            let planned = Box::pin(self.planned_keeping(query, &values, Some(execution.keeping_apart()), by_key)).await;
            // What is wrong is told of the statement with its values.
            if planned.is_ok() {
                return planned;
            }
        }
        let statement = execution.statement()?;
        self.kept.grants.statement(&statement)?;
        self.planned_keeping(statement, params, Some(execution.keeping()), by_key).await
    }

    /// As [`Session::planned_by`], of a statement that is no EXECUTE; `keeping` is where its plan is.
    async fn planned_keeping(
        &self,
        mut statement: Statement,
        params: &Params,
        keeping: Option<Keeping>,
        by_key: bool,
    ) -> Result<Planned> {
        let keeping = keeping.filter(|_| self.keeps_plans());
        if let Some(keeping) = &keeping
            && let Some(plan) = self.kept_plan(keeping, params).await?
        {
            return Ok(Planned::Query(plan));
        }
        self.note_changes(&statement);
        if by_key && let Some(rows) = self.row_by_key(&statement, params).await? {
            return Ok(Planned::Found(rows));
        }
        if let Some(defined) = self.define(&statement).await.map_err(|e| self.explain_missing(e))? {
            return Ok(Planned::Done(match defined {
                Defined::Done => count_stream(None)?,
                Defined::Text(texts) => text_stream(texts)?,
            }));
        }
        show::rewrite(&mut statement, &self.context.state_ref().read().config_options().catalog)?;
        if self.keep(&statement).await? {
            return Ok(Planned::Done(count_stream(None)?));
        }
        let temporary = take_temporary(&mut statement);
        let cluster = take_cluster(&mut statement)?;
        let notes = if temporary { BTreeMap::new() } else { self.take_rules(&mut statement)? };
        let to_be_kept = match &keeping {
            Some(keeping) => self.to_be_kept(keeping, &statement).await.map(|made_of| (keeping, made_of)),
            None => None,
        };
        let rewriter = self.rewriter();
        let written = may_be_lenient(&statement).then(|| statement.clone());
        // Rewritten anew when it is executed: tables and definitions may be others by then.
        let prepare = as_prepare(&statement).cloned();
        let rewritten = rewriter.rewritten(statement, false).await;
        let (mut statement, in_order) = match (rewritten, &written) {
            (Ok(Rewritten { statement, in_order }), _) => (statement, in_order),
            (Err(error), Some(written)) if is_unknown_name(&error) => {
                match rewriter.rewritten(written.clone(), true).await {
                    Ok(Rewritten { statement, in_order }) => (statement, in_order),
                    Err(other) => return Err(self.explain_missing(first_unless_told(error, other))),
                }
            }
            (Err(error), _) => return Err(self.explain_missing(error)),
        };
        settings(&mut statement)?;
        keep_digits(&mut statement);
        refuse_options(&statement)?;
        rewriter.keep_clauses(&mut statement)?;
        resolve_windows(&mut statement)?;
        match self.change_rows(&statement, prepare, params).await.map_err(|e| self.explain_missing(e))? {
            Some(Done::Rows(rows)) => return Ok(Planned::Done(count_stream(Some(rows))?)),
            Some(Done::Returned(rows)) => return Ok(Planned::Done(rows)),
            Some(Done::Nothing) => return Ok(Planned::Done(count_stream(None)?)),
            None => {}
        }
        let given = self.given_to(&mut statement).await.map_err(|e| self.explain_missing(e))?;
        let mut state = rewriter.state_in(in_order);
        let (state, plan) = match (planning::logical(&mut state, statement).await, written) {
            (Ok(plan), _) => (state, plan),
            (Err(error), Some(written)) if is_unknown_name(&error) => match rewriter.plan(written, true).await {
                Ok(planned) => planned,
                Err(other) => return Err(self.explain_missing(first_unless_told(error, other))),
            },
            (Err(error), _) => return Err(self.explain_missing(error)),
        };
        let plan = match given {
            Some(given) => given.put(plan)?,
            None => plan,
        };
        depth::check(&plan)?;
        refuse_changes(&plan, &self.interrupt)?;
        let unbound = to_be_kept.map(|to_be_kept| (to_be_kept, plan.clone()));
        let plan = params.bind(plan)?;
        self.kept.grants.plan(&plan, self.threads)?;
        match &plan {
            LogicalPlan::Copy(copy) => {
                // A finished file is renamed to it, whatever is there.
                expect_file(&copy.output_url)?;
                self.interrupt.writes_into(folder_of(&copy.output_url));
                if !copy.partition_by.is_empty() {
                    expect_empty(&copy.output_url)?;
                }
            }
            LogicalPlan::Ddl(DdlStatement::CreateExternalTable(create)) => {
                create
                    .locations
                    .iter()
                    .try_for_each(|location| expect_file(location).and_then(|()| expect_some(location)))?;
            }
            _ => {}
        }
        let done = match plan {
            LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(create)) if temporary && cluster.is_empty() => {
                count_stream(self.create_temporary(create).await?)?
            }
            LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(create)) if self.file_tables(&create.name)?.is_some() => {
                self.create_table(create, Created { cluster, notes, ..Created::default() }).await?
            }
            _ if !cluster.is_empty() => {
                return Err(SqlError::new(
                    "CLUSTER BY: only tables of files have an order; open a folder of tables (--db)",
                ));
            }
            LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(create)) => {
                refuse_constraints(
                    &format!("CREATE TABLE {}", create.name),
                    create.constraints.iter().next().is_some(),
                )?;
                let plan = LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(create));
                self.context.execute_logical_plan(plan).await?.execute_stream().await?
            }
            LogicalPlan::Ddl(DdlStatement::DropTable(drop)) => {
                if let Some(database) = self.file_tables(&drop.name)? {
                    if let Some(Entry::Store(folder)) = database.find(drop.name.table())? {
                        self.drop_store(&folder).await?;
                        return Ok(Planned::Done(count_stream(None)?));
                    }
                    // DataFusion swallows the refusal, and with IF EXISTS reports success.
                    database.refuse_drop(drop.name.table())?;
                }
                let plan = LogicalPlan::Ddl(DdlStatement::DropTable(drop));
                self.context.execute_logical_plan(plan).await?.execute_stream().await?
            }
            LogicalPlan::Copy(copy) => match self.copy_to(&copy).await? {
                Some(rows) => count_stream(Some(rows))?,
                None => DataFrame::new(self.state_for_writing(), LogicalPlan::Copy(copy)).execute_stream().await?,
            },
            plan @ LogicalPlan::Dml(_) => DataFrame::new(self.state_for_writing(), plan).execute_stream().await?,
            plan if is_query(&plan) => {
                let physical = match unbound {
                    Some((to_be_kept, unbound)) => {
                        self.planned_to_keep(to_be_kept, (state, in_order), unbound, plan, params).await?
                    }
                    None => planning::physical(state, plan).await?,
                };
                return Ok(Planned::Query(physical));
            }
            plan => {
                let about = subject(&plan);
                let run = async { self.context.execute_logical_plan(plan).await?.execute_stream().await };
                run.await.map_err(|e| about.iter().fold(SqlError::from(e), |e, name| engine::naming(name, e)))?
            }
        };
        Ok(Planned::Done(done))
    }

    /// Partitions get neighbouring rows, so that what is written keeps their order, rather than batches in turn.
    pub(crate) fn state_for_writing(&self) -> SessionState {
        let mut state = self.context.state();
        state.config_mut().options_mut().optimizer.enable_round_robin_repartition = false;
        state
    }

    /// The schema of a folder whose table a name is, or would be. None if a table of the session has the name.
    pub(crate) fn file_tables(&self, name: &TableReference) -> Result<Option<Arc<Database>>, DataFusionError> {
        let database = self.database_of(&self.resolved(name.clone()))?;
        Ok(database.filter(|database| !database.is_registered(name.table())))
    }

    /// Takes DEFAULT and CHECK out of a statement that makes a table of a folder. Of one in memory the engine keeps defaults.
    fn take_rules(&self, statement: &mut Statement) -> Result<BTreeMap<String, String>, DataFusionError> {
        let Statement::Statement(inner) = statement else { return Ok(BTreeMap::new()) };
        let ast::Statement::CreateTable(create) = inner.as_mut() else { return Ok(BTreeMap::new()) };
        let name = object_name_to_table_reference(create.name.clone(), true)?;
        if self.file_tables(&name)?.is_some() { take_rules(create) } else { Ok(BTreeMap::new()) }
    }

    /// `CREATE TABLE name AS SELECT`: DataFusion would gather all rows in memory; they go straight into a file here.
    async fn create_table(
        &self,
        create: CreateMemoryTable,
        wanted: Created,
    ) -> Result<SendableRecordBatchStream, DataFusionError> {
        let CreateMemoryTable {
            name,
            input,
            if_not_exists,
            or_replace,
            constraints: declared,
            temporary: _,
            column_defaults,
        } = create;
        let Some(database) = self.file_tables(&name)? else {
            return exec_err!("CREATE TABLE {name}: the schema is gone");
        };
        let reference = self.resolved(name);
        let name = reference.table.as_ref();
        if !column_defaults.is_empty() {
            return internal_err!("CREATE TABLE {name}: its defaults were not taken");
        }
        let Created { cluster, notes, .. } = wanted;
        let created = Created { cluster, notes, ..constraints(name, &declared, input.schema().as_arrow())? };
        let store = created.needs_a_store() || matches!(input.as_ref(), LogicalPlan::EmptyRelation(_));
        let Some(path) = database.folder().and_then(|folder| file_of(folder, name)) else {
            return exec_err!("CREATE TABLE {name:?}: the name can't be that of a file");
        };
        let is_schema = |catalog: &Arc<Catalog>| {
            catalog.read().map(|contents| database.name() == PUBLIC && contents.schemas.contains(name))
        };
        if database.catalog().map(is_schema).transpose()?.unwrap_or_default() {
            return exec_err!("CREATE TABLE {name}: there is a schema of this name, whose folder it would be");
        }
        match (database.find(name)?, if_not_exists, or_replace) {
            (Some(_), true, true) => {
                return exec_err!("CREATE TABLE {name}: IF NOT EXISTS and OR REPLACE exclude each other");
            }
            (Some(_), true, false) => return count_stream(None),
            (Some(Entry::View(_)), ..) => {
                return exec_err!("CREATE TABLE {name}: there is a view of this name; DROP VIEW first");
            }
            (Some(_), false, false) => {
                return exec_err!("CREATE TABLE {name}: already exists; CREATE OR REPLACE TABLE replaces it");
            }
            (Some(Entry::Plinth(files)), _, true) if files == [path.clone()] && !store => {}
            (Some(_), _, true) if store => {
                return exec_err!("CREATE OR REPLACE TABLE {name}: DROP TABLE first");
            }
            (Some(_), _, true) => {
                return exec_err!("CREATE OR REPLACE TABLE {name}: only a single .plinth file can be replaced");
            }
            (None, ..) => {}
        }
        check_unique_columns(name, &input)?;
        if store {
            let folder = path.with_extension("");
            return count_stream(self.create_store(&reference, &folder, created, Arc::unwrap_or_clone(input)).await?);
        }
        let frame = DataFrame::new(self.state_for_writing(), Arc::unwrap_or_clone(input));
        let context = frame.task_ctx();
        let plan = frame.create_physical_plan().await?;
        let options = WriterOptions { replace: or_replace, ..self.files.writer.clone() };
        self.interrupt.writes_into(folder_of(&path.display().to_string()));
        let summary = engine::write(&plan, &context, &path, options).await?;
        count_stream(Some(summary.rows))
    }

    /// Says of a table that is not there what the user can make of it.
    fn explain_missing(&self, error: DataFusionError) -> SqlError {
        let SqlError::Message(kind, text) = SqlError::from(error) else { return SqlError::Interrupted };
        let name = text.strip_prefix("table '").and_then(|rest| rest.strip_suffix("' not found"));
        // In another schema than the one that paths are in.
        let elsewhere = name.and_then(|name| name.strip_prefix("datafusion."));
        match elsewhere.or(name) {
            Some(url) if url.contains("://") => {
                let known = "s3://, gs://, az://, https:// or a path of this machine";
                SqlError::of(ErrorKind::NotSupported, format!("{url}: unknown scheme; {known} can be read"))
            }
            Some(path) if elsewhere.is_none() && path.contains(['/', '.', '*']) => {
                let near = self.near(path).map_or(String::new(), |near| format!("; is '{near}' meant?"));
                SqlError::of(ErrorKind::Operation, format!("{path}: no such file{near}"))
            }
            // Spelled out already.
            Some(name) => {
                let tables = self.table_names();
                let hint = match nearest(name, tables.iter().map(String::as_str)) {
                    Some(near) => format!("is {} meant?", spelled(near)),
                    None => "SHOW TABLES lists what there is, FROM 'path' reads a file".to_owned(),
                };
                SqlError::Message(kind, format!("no table \"{name}\"; {hint}"))
            }
            None => SqlError::Message(kind, self.with_near_path(text)),
        }
    }

    /// A path that may be meant, as far as the session may look.
    fn near(&self, path: &str) -> Option<String> {
        self.kept.grants.path(path).ok().and_then(|()| near_path(Path::new(path)))
    }

    /// A message that says that a path leads nowhere, with one that may be meant.
    fn with_near_path(&self, text: String) -> String {
        let path = text.strip_suffix(": no such file or folder").or_else(|| text.strip_suffix(": no such file"));
        match path.and_then(|path| self.near(path)) {
            Some(near) => format!("{text}; is '{near}' meant?"),
            None => text,
        }
    }
}

/// Settings by the names that DuckDB has for them.
fn settings(statement: &mut Statement) -> Result<(), DataFusionError> {
    let Statement::Statement(inner) = statement else { return Ok(()) };
    let ast::Statement::Set(ast::Set::SingleAssignment { variable, .. }) = inner.as_mut() else { return Ok(()) };
    match variable.to_string().to_ascii_lowercase().as_str() {
        "threads" | "worker_threads" => {
            *variable =
                ast::ObjectName::from(vec!["datafusion".into(), "execution".into(), "target_partitions".into()]);
            Ok(())
        }
        "memory_limit" | "max_memory" => exec_err!(
            "SET memory_limit: the limit is that of the program, and what it keeps is made for it: start with --memory 1GB"
        ),
        _ => Ok(()),
    }
}

/// Whether a plan is one of rows, which need no more than planning.
fn is_query(plan: &LogicalPlan) -> bool {
    !matches!(
        plan,
        LogicalPlan::Ddl(_)
            | LogicalPlan::Statement(_)
            | LogicalPlan::Explain(_)
            | LogicalPlan::Analyze(_)
            | LogicalPlan::DescribeTable(_)
    )
}

/// What a statement is about that the engine's errors do not name.
fn subject(plan: &LogicalPlan) -> Option<String> {
    match plan {
        LogicalPlan::Statement(PlannedStatement::SetVariable(set)) => Some(set.variable.clone()),
        LogicalPlan::Ddl(DdlStatement::CreateExternalTable(create)) => create.locations.first().cloned(),
        _ => None,
    }
}

/// An error if a path named in SQL leads to a pipe or a device: the engine would wait for it, or replace it.
fn expect_file(path: &str) -> Result<(), DataFusionError> {
    let path = Path::new(path.strip_prefix("file://").unwrap_or(path));
    if path.is_dir() { Ok(()) } else { regular::check(path).map_err(|e| DataFusionError::External(Box::new(e))) }
}

/// An error if there is no file of a name: the engine would take it for a table without rows. A folder may be made later.
fn expect_some(location: &str) -> Result<(), DataFusionError> {
    let path = location.strip_prefix("file://").unwrap_or(location);
    let many = path.contains(['*', '?', '[']) || path.ends_with('/') || path.contains("://");
    if many || Path::new(path).exists() {
        return Ok(());
    }
    let near = near_path(Path::new(path)).map_or(String::new(), |near| format!("; is '{near}' meant?"));
    exec_err!("{path}: no such file{near}")
}

/// An error if a folder has files in it, beside which those of partitions would be rows more.
fn expect_empty(path: &str) -> Result<(), DataFusionError> {
    let folder = Path::new(path.strip_prefix("file://").unwrap_or(path));
    let first = std::fs::read_dir(folder).ok().and_then(|mut entries| entries.next());
    if first.is_some() {
        return exec_err!(
            "{}: has files in it, which the new ones would be added to; name a new folder",
            folder.display()
        );
    }
    Ok(())
}

/// The folder of a file named in SQL.
fn folder_of(path: &str) -> PathBuf {
    match Path::new(path.strip_prefix("file://").unwrap_or(path)).parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_path_buf(),
        _ => PathBuf::from("."),
    }
}

fn check_unique_columns(name: &str, input: &LogicalPlan) -> Result<(), DataFusionError> {
    let mut seen = std::collections::HashSet::new();
    for field in input.schema().fields() {
        if !seen.insert(field.name()) {
            return exec_err!(
                "CREATE TABLE {name}: column {:?} occurs twice; give one of them another name",
                field.name()
            );
        }
    }
    Ok(())
}

/// What writing statements answer: how many rows they wrote, or nothing.
fn count_stream(rows: Option<u64>) -> Result<SendableRecordBatchStream, DataFusionError> {
    let batch = match rows {
        Some(rows) => {
            let count: ArrayRef = Arc::new(UInt64Array::from(vec![rows]));
            RecordBatch::try_from_iter([("count", count)])?
        }
        None => RecordBatch::new_empty(Arc::new(arrow_schema::Schema::empty())),
    };
    let schema = batch.schema();
    let batches = futures::stream::iter(rows.map(|_| Ok(batch)));
    Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
}

/// A row of texts, each under its heading.
fn text_stream(texts: Vec<(&'static str, String)>) -> Result<SendableRecordBatchStream, DataFusionError> {
    let columns = texts.into_iter().map(|(name, text)| (name, Arc::new(StringArray::from(vec![text])) as ArrayRef));
    let batch = RecordBatch::try_from_iter(columns)?;
    let schema = batch.schema();
    Ok(Box::pin(RecordBatchStreamAdapter::new(schema, futures::stream::iter([Ok(batch)]))))
}

/// Refuses statements that would change tables in place, wherever in a plan they stand (`EXPLAIN ANALYZE` runs them too).
///
/// This looks at the plan before optimisation: DataFusion 55 takes the rows to delete or update from the filters of the
/// optimised plan, and deletes everything where the optimiser turned the filter into something else.
fn refuse_changes(plan: &LogicalPlan, interrupt: &Interrupt) -> Result<(), DataFusionError> {
    plan.apply(|node| {
        if let LogicalPlan::Dml(dml) = node {
            refuse_change(dml, interrupt)?;
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(())
}

fn refuse_change(dml: &DmlStatement, interrupt: &Interrupt) -> Result<(), DataFusionError> {
    let name = &dml.table_name;
    if engine::is_store(&source_as_provider(&dml.target)?) {
        // Run by itself, it does not come here.
        return exec_err!(
            "{} {name}: is run, not explained; EXPLAIN a SELECT with the same FROM and WHERE",
            dml.op.name()
        );
    }
    match &dml.op {
        WriteOp::Insert(_) | WriteOp::Ctas => {
            let table = source_as_provider(&dml.target)?;
            match engine::folder(&table) {
                // The further file is written there.
                Some(folder) => interrupt.writes_into(folder),
                None if engine::is_plinth(&table) => {
                    return exec_err!(
                        "INSERT INTO {name}: a Plinth file is not changed once written; rows can be added to a folder of \
                         files, which is one table (plinth import --append makes one)"
                    );
                }
                None => {}
            }
            Ok(())
        }
        op => exec_err!(
            "{} {name}: tables of files can't be changed in place, only ones that were made with CREATE TABLE and their columns; \
             write another with CREATE TABLE ... AS SELECT or COPY ... TO",
            match op {
                WriteOp::Delete => "DELETE FROM",
                WriteOp::Update => "UPDATE",
                WriteOp::Truncate => "TRUNCATE",
                _ => "MERGE INTO",
            }
        ),
    }
}
