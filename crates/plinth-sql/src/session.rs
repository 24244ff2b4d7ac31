//! A session: the engine with Plinth files in it, its rules, its memory.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use datafusion::catalog::{CatalogProvider, CatalogProviderList, MemorySchemaProvider, UrlTableFactory};
use datafusion::datasource::dynamic_file::DynamicListTableFactory;
use datafusion::datasource::provider::DefaultTableFactory;
use datafusion::execution::FunctionRegistry;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::disk_manager::DiskManagerBuilder;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::session_state::SessionState;
use datafusion::optimizer::{Analyzer, Optimizer};
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};
use datafusion::sql::parser::Statement;
use datafusion_session::SessionStore;
use plinth_datafusion::{
    BudgetPool, CoveredBlocks, DigitsOfFiles, ExternalSorts, FileOptions, FilledSides, GuardMemory, HoldLimits,
    JoinOrder, NamelessSpills, NativeOperators, NativeSorts, OpenTables, ParquetScans, PlinthConfig, ProfileOperators,
    ReleaseLimits, RowsInOrder, SessionObjects, Stores, WindowsByPartition, WindowsOfText, bounded_functions,
    checked_sum, honest_aggregates, profile_tasks,
};
use plinth_format::{Access, OpenOptions, WriterOptions};
use plinth_io::{Io, IoOptions, MemoryBudget, Objects};
use plinth_objects::{ObjectStores, ObjectStoresOptions};

use crate::by_path::ByPath;
use crate::current::Current;
use crate::database::{Database, PUBLIC, Shared};
use crate::error::Result;
use crate::grants::Grants;
use crate::interrupt::Interrupt;
use crate::kept::{Kept, Variable};
use crate::kept_plan::Prepared;
use crate::profiles::Profiles;
use crate::rewriter::Rewriter;
use crate::schemas::{CATALOG, Catalogs, Schemas};
use crate::sequences::{self, Sequences};
use crate::spread::{Spread, Spreads};
use crate::watch::{Done, Watch};
use crate::{cut, dense, engine, joins, meaning, names, numbers, overflow, read, series, types, view_plans};

/// Most bytes that a sort sets aside for merging what it spilled.
const SORT_MERGING: usize = 10 << 20;

/// Most rows of a row group of Parquet, which its writer keeps in memory: as many as the engine makes where there is room, else what
/// wide rows have room for.
fn row_group_rows(memory: u64) -> usize {
    usize::try_from(memory >> 11).unwrap_or(usize::MAX).clamp(8 << 10, 1 << 20)
}

/// Bytes after which an exchange between threads closes a file that it spills to: each batch has its own. Two files that are written
/// to at a time are read one after the other, so a reader may wait for the next batch of one while its batch lies in the
/// other, and the writers wait for the reader: the engine then waits for ever.
const EXCHANGE_FILE: usize = 1;
/// Most bytes of names of files that a statement has listed, so that it lists them once.
const LISTED: usize = 64 << 20;
/// Most bytes of foreign rows that wait for a query.
const AHEAD: usize = 64 << 20;

/// Rows of a batch of the engine where memory does not matter.
const BATCH_ROWS: u64 = 8192;
/// Fewer cost more than they save.
const FEWEST_ROWS: u64 = 512;
/// Bytes of the memory of a thread for each row of a batch: what is spilled and merged takes several batches of each run.
const FOR_EACH_ROW: u64 = 16 << 10;

/// Rows of a batch of the engine: within little memory fewer, as a power of two.
fn batch_rows(options: &SessionOptions) -> usize {
    let rows = options.memory / (options.threads.max(1) as u64 * FOR_EACH_ROW);
    let rows = rows.clamp(FEWEST_ROWS, BATCH_ROWS);
    usize::try_from(1_u64 << rows.ilog2()).unwrap_or(8192)
}

/// What sessions of a process share: the engine that reads blocks, and the budget whose part theirs is.
#[derive(Clone, Debug)]
pub struct Share {
    /// Reads for all of them; its budget is that of the process, of which [`SessionOptions::memory`] is what this session's operators
    /// may use at most.
    pub io: Io,
    /// What that budget calls this session.
    pub name: String,
}

/// How to set up a session.
#[derive(Clone, Debug)]
pub struct SessionOptions {
    /// A folder whose files are tables, or none: then files are named by path.
    pub db: Option<PathBuf>,
    /// Bytes that operators, writers and what is kept of files may use together.
    pub memory: u64,
    /// Partitions of a query, and threads of the writer.
    pub threads: usize,
    /// How blocks are read.
    pub io: IoOptions,
    /// How rows are found by values of columns with an index.
    pub access: Access,
    /// How objects of stores are read.
    pub objects: ObjectStoresOptions,
    /// Tables that are open for writing: sessions of a process that are to write to the same ones share them.
    pub tables: OpenTables,
    /// The request to stop that statements listen to.
    pub interrupt: Interrupt,
    /// What statements may touch beside the tables of the folder.
    pub grants: Grants,
    /// What the session shares with others of the process; without, it has memory and an engine of reads of its own.
    pub share: Option<Share>,
    /// Bytes that the process holds ([`plinth_io::mapped_bytes`] among them), where its allocator counts them: then the limit holds
    /// for what no operator asks for, too.
    pub allocated: Option<fn() -> u64>,
    /// What spreads its queries over other processes; without, they run in this one.
    pub spread: Option<Arc<dyn Spread>>,
}

impl Default for SessionOptions {
    /// No folder, a quarter of the machine's memory, all of its cores.
    fn default() -> Self {
        Self {
            db: None,
            memory: plinth_io::default_memory(),
            threads: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            io: IoOptions::default(),
            access: Access::Auto,
            objects: ObjectStoresOptions::default(),
            tables: OpenTables::default(),
            interrupt: Interrupt::default(),
            grants: Grants::default(),
            share: None,
            allocated: None,
            spread: None,
        }
    }
}

/// Answers SQL, asynchronously; [`Connection`](crate::Connection) does for callers that are not. Statements may run side by side.
pub struct Session {
    pub(crate) context: SessionContext,
    pub(crate) database: Arc<Database>,
    pub(crate) schemas: Arc<Schemas>,
    pub(crate) files: FileOptions,
    pub(crate) stores: Arc<Stores>,
    /// Object stores, and what they are asked with.
    pub(crate) objects: Arc<ObjectStores>,
    /// What statements read beside the tables that they name.
    pub(crate) scratch: Arc<MemorySchemaProvider>,
    /// Prepared statements, as they were written, and their plans.
    pub(crate) prepared: Mutex<HashMap<String, Prepared>>,
    /// Statements that were no queries.
    pub(crate) changes: AtomicU64,
    /// Macros, variables and sequences.
    pub(crate) kept: Arc<Kept>,
    watch: Arc<Watch>,
    pub(crate) profiles: Arc<Profiles>,
    pub(crate) threads: usize,
    pub(crate) interrupt: Interrupt,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("database", &self.database).finish_non_exhaustive()
    }
}

impl Session {
    /// Sets up a session.
    ///
    /// # Errors
    /// If `db` is not a folder that can be read.
    pub fn new(options: &SessionOptions) -> Result<Self> {
        let budget = match &options.share {
            Some(share) => share.io.budget().within(&share.name, options.memory),
            None => MemoryBudget::new(options.memory),
        };
        if let Some(allocated) = options.allocated {
            budget.measure(allocated);
        }
        let writer =
            WriterOptions { threads: options.threads, cancelled: options.interrupt.flag(), ..WriterOptions::default() };
        let io = match &options.share {
            Some(share) => share.io.clone(),
            None => Io::new(&budget, options.io.clone()),
        };
        let objects =
            Arc::new(ObjectStores::new(ObjectStoresOptions { io: Some(io.clone()), ..options.objects.clone() }));
        let known: Arc<dyn Objects> = Arc::clone(&objects) as _;
        let files = FileOptions {
            open: OpenOptions { io, access: options.access, objects: Some(Arc::clone(&known)) },
            // The rest is for the query that makes the rows, which may have to sort them.
            writer: writer.charged_to(&budget, options.memory / 4, options.threads),
        };
        // What sessions share is not held against the one that came first.
        let store_writer = match &options.share {
            Some(share) => {
                let whole = share.io.budget();
                files.writer.clone().charged_to(whole, whole.limit() / 4, options.threads)
            }
            None => files.writer.clone(),
        };
        let store_options = engine::store_options(&files.open, store_writer, options.memory);
        let stores = Arc::new(Stores::sharing(store_options, options.tables.clone()));
        let shared = Arc::new(Shared::new(files.clone(), Arc::clone(&stores)));
        let database = Arc::new(Database::new(options.db.as_deref(), Arc::clone(&shared))?);
        let schemas = Arc::new(Schemas::new(Arc::clone(&database)));
        let scratch = Arc::new(MemorySchemaProvider::new());
        schemas.register_schema(names::SCRATCH, Arc::clone(&scratch) as _)?;
        let catalogs = Catalogs(Arc::clone(&schemas));
        let by_path = Arc::new(DynamicListTableFactory::new(SessionStore::new()));
        let ahead_bytes = usize::try_from(options.memory / 8).unwrap_or(usize::MAX).min(AHEAD);
        let grants = options.grants.clone();
        let reader =
            read::ReadFunctions { threads: options.threads, ahead_bytes, objects: known, grants: grants.clone() };
        let text = reader.within(read::defaults());
        let others = Arc::new(engine::Naming(Arc::clone(&by_path) as _));
        let current = Arc::new(Current(Arc::clone(&by_path)));
        let tables: Arc<dyn UrlTableFactory> = engine::path_tables(others, current, files.clone(), text, &stores);
        let catalogs = Arc::new(catalogs) as Arc<dyn CatalogProviderList>;
        let catalogs = Arc::new(ByPath::new(catalogs, Arc::clone(&tables), grants.clone()));

        // What each sort sets aside for merging must leave room to sort in: several run side by side.
        let merging = usize::try_from(options.memory / 64).unwrap_or(usize::MAX) / options.threads.max(1);
        // IS TRUE is never NULL, which the engine knows of its logical plans alone, and fails of the difference.
        let mut config = SessionConfig::new()
            .set_bool("datafusion.execution.skip_physical_aggregate_schema_check", true)
            // It ends in a panic where a key is NaN, which it does not find again.
            .set_bool("datafusion.optimizer.enable_topk_aggregation", false)
            // It is of some of the aggregates alone, and leaves rows out that the others need.
            .set_bool("datafusion.optimizer.enable_aggregate_dynamic_filter_pushdown", false)
            .with_sort_spill_reservation_bytes(merging.min(SORT_MERGING))
            .set_usize("datafusion.execution.parquet.max_row_group_size", row_group_rows(options.memory))
            .set_usize("datafusion.execution.max_spill_file_size_bytes", EXCHANGE_FILE)
            .with_target_partitions(options.threads)
            .with_batch_size(batch_rows(options))
            .with_create_default_catalog_and_schema(false)
            .with_default_catalog_and_schema(CATALOG, PUBLIC)
            .with_information_schema(true)
            // Without, a time stamp with a zone would be one of none.
            .set_str("datafusion.execution.time_zone", "UTC")
            .with_option_extension(PlinthConfig::default());
        if let Some(spread) = &options.spread {
            config.set_extension(Arc::new(Spreads(Arc::clone(spread))));
        }
        let spills =
            DiskManagerBuilder::default().with_temp_file_factory(Arc::new(NamelessSpills::new(std::env::temp_dir())));
        let runtime = RuntimeEnvBuilder::new()
            .with_memory_pool(Arc::new(BudgetPool::new(Arc::clone(&budget))))
            .with_disk_manager_builder(spills)
            .with_object_list_cache_limit(LISTED)
            .with_object_store_registry(Arc::new(match grants.is_bounded() {
                true => SessionObjects::none(Arc::clone(&objects)),
                false => SessionObjects::new(Arc::clone(&objects)),
            }))
            .build_arc()?;
        let watch = Arc::new(Watch::new(options.interrupt.clone()));
        let rules = meaning::filters_by_column(PhysicalOptimizer::default().rules);
        let mut rules = joins::with_joins_within(options.memory, rules);
        let sorts = ExternalSorts::new(options.memory, std::env::temp_dir());
        let native = NativeOperators::new(Arc::clone(&budget))
            .with_sorts(vec![Arc::new(sorts.clone()), Arc::new(dense::DenseSorts)]);
        // Behind the rules that choose joins, before the one that adds exchanges.
        if let Some(at) = rules.iter().position(|rule| rule.name() == "joins_within_memory") {
            rules.insert(at + 1, Arc::new(FilledSides));
            rules.insert(at + 1, Arc::new(native));
            rules.insert(at, Arc::new(JoinOrder));
        }
        if let Some(at) = rules.iter().position(|rule| rule.name() == "EnsureRequirements") {
            rules.insert(at + 1, Arc::new(ReleaseLimits));
            rules.insert(at, Arc::new(HoldLimits));
        }
        // Behind the rules that change what a scan reads.
        if let Some(at) = rules.iter().position(|rule| rule.name() == "EnsureCooperative") {
            rules.insert(at, Arc::new(CoveredBlocks));
            rules.insert(at, Arc::new(NativeSorts::new(Arc::clone(&budget))));
        }
        // Before filters look for scans that take them.
        rules.insert(0, Arc::new(ParquetScans::new(files.open.clone())));
        rules.insert(0, meaning::grouping_rule());
        rules.push(meaning::recursion_rule());
        rules.push(Arc::new(cut::CutBatches::within(options.memory)));
        rules.push(Arc::new(WindowsByPartition));
        rules.push(Arc::new(WindowsOfText));
        rules.push(Arc::new(sorts));
        rules.push(Arc::new(dense::DenseSorts));
        rules.push(Arc::new(RowsInOrder));
        rules.push(Arc::new(DigitsOfFiles));
        rules.push(Arc::clone(&watch) as _);
        rules.push(Arc::new(GuardMemory::new(Arc::clone(&budget))));
        rules.push(Arc::new(ProfileOperators));
        // Tasks that operators spawn count as theirs, unless another library follows the tasks of this process already.
        let _ = profile_tasks();
        let mut analysis = Analyzer::new().rules;
        // Before types are made to meet: a DECIMAL beside a double would become one.
        analysis.insert(0, Arc::new(numbers::DecimalsBesideFloats));
        analysis.insert(0, Arc::new(numbers::ExactNumbers));
        analysis.splice(0..0, meaning::first_rules(read::is_function));
        let mut optimization = Optimizer::new().rules;
        // Before the rules that take `x = 0.0 AND x <> -0.0` for `x = 0.0`, and `x = 0.0 AND x = -0.0` for FALSE: constants are found in between.
        let at = optimization.iter().position(|rule| rule.name() == "push_down_filter").unwrap_or(optimization.len());
        optimization.insert(at, Arc::new(numbers::BothZeros));
        optimization.insert(0, Arc::new(numbers::BothZeros));
        optimization.push(Arc::new(overflow::CheckedConstants));
        let builder = SessionStateBuilder::new()
            .with_config(config)
            .with_runtime_env(runtime)
            .with_expr_planners(meaning::planners().into_iter().chain([Arc::new(numbers::Room) as _]).collect())
            .with_default_features()
            .with_analyzer_rules(analysis)
            .with_optimizer_rules(optimization)
            .with_query_planner(Arc::new(overflow::CheckedPlanner(Arc::clone(&budget))))
            .with_physical_optimizer_rules(rules)
            .with_type_planner(Arc::new(types::Types(Some(Current(Arc::clone(&by_path))))))
            .with_catalog_list(catalogs);
        let mut state: SessionState = meaning::rules()
            .into_iter()
            .fold(builder, |b, rule| b.with_analyzer_rule(rule))
            .with_analyzer_rule(Arc::new(overflow::CheckedConstants))
            .build();
        meaning::register(&mut state)?;
        state.register_relation_planner(Arc::new(reader))?;
        state.register_udf(Arc::new(numbers::Number::default().into()))?;
        let kept = Arc::new(Kept::with(Arc::new(Sequences::of(&schemas, grants.clone())), grants));
        for function in sequences::functions(&kept.sequences) {
            state.register_udf(Arc::new(function))?;
        }
        state.register_udf(Arc::new(Variable::new(&kept.variables).into()))?;
        series::register(&mut state);
        for function in plinth_datafusion::scalar_functions() {
            let known = function.inner().with_updated_config(state.config().options());
            state.register_udf(Arc::new(known.unwrap_or(function)))?;
        }
        for function in plinth_datafusion::aggregate_functions() {
            state.register_udaf(Arc::new(function))?;
        }
        if let Some(sum) = state.aggregate_functions().get("sum").map(|sum| checked_sum(sum)) {
            state.register_udaf(Arc::new(sum))?;
        }
        for function in bounded_functions(state.scalar_functions().clone().values(), &budget) {
            state.register_udf(Arc::new(function))?;
        }
        for function in honest_aggregates(state.aggregate_functions().clone().values(), &budget) {
            state.register_udaf(Arc::new(function))?;
        }
        state.register_file_format(engine::format_factory(files.clone()), true)?;
        state.table_factories_mut().insert("PLINTH".to_owned(), Arc::new(DefaultTableFactory::new()));
        let context = SessionContext::new_with_state(state);
        by_path.session_store().with_state(context.state_weak_ref());
        shared
            .complete(tables, view_plans::plan_views(context.state_weak_ref(), Arc::clone(&kept), CATALOG.to_owned()));
        let profiles = Arc::<Profiles>::default();
        context.register_udtf("plinth_profile", Arc::clone(&profiles) as _);
        let (prepared, threads, interrupt) = (Mutex::default(), options.threads, options.interrupt.clone());
        Ok(Self {
            context,
            database,
            schemas,
            files,
            stores,
            objects,
            scratch,
            prepared,
            changes: AtomicU64::new(0),
            kept,
            watch,
            profiles,
            threads,
            interrupt,
        })
    }

    /// What rewrites its statements.
    pub(crate) fn rewriter(&self) -> Rewriter {
        Rewriter::new(self.context.state_ref(), Arc::clone(&self.kept))
    }

    /// The engine's session: its tables and functions.
    pub fn context(&self) -> &SessionContext {
        &self.context
    }

    /// How it opens Plinth files: with its memory, its engine of reads and its stores.
    pub fn open_options(&self) -> &OpenOptions {
        &self.files.open
    }

    /// The names of tables that need no path.
    pub fn table_names(&self) -> Vec<String> {
        use datafusion::catalog::SchemaProvider;
        self.database.table_names()
    }

    /// Makes a file, a folder or a pattern a table of this name, whose rows are read as they are when a statement begins.
    ///
    /// # Errors
    /// If it is a folder that can't be read.
    pub fn name_path(&self, name: &str, path: &Path) -> Result {
        Ok(self.database.name_path(name.to_owned(), path)?)
    }

    /// Lets other processes write to the tables that this session has written to, unless a transaction is open. The next statement
    /// that writes to one opens it again.
    ///
    /// # Errors
    /// If what was written can't be made durable.
    pub fn release(&self) -> Result {
        Ok(self.stores.release()?)
    }

    /// The statement that an EXECUTE runs. None for any other.
    pub fn executed(&self, statement: &Statement) -> Option<Statement> {
        self.execution(statement)?.statement().ok()
    }

    /// Whether a transaction was begun that no statement has ended.
    pub fn in_transaction(&self) -> bool {
        self.stores.in_transaction()
    }

    /// Ends the transaction that is open as if nothing had been: for programs that give up between two statements of one.
    ///
    /// # Errors
    /// If none is open.
    pub fn roll_back(&self) -> Result {
        Ok(self.stores.rollback()?)
    }

    /// What stops its statements.
    pub fn interrupt(&self) -> &Interrupt {
        &self.interrupt
    }

    /// How far the statement is that was planned last. None if there is none.
    pub fn progress(&self) -> Option<Done> {
        self.watch.done()
    }

    /// Lets go of the plan whose progress was asked for.
    pub fn forget_progress(&self) {
        self.watch.forget();
    }

    /// Makes a table of Parquet files known by a name.
    ///
    /// # Errors
    /// If they can't be read.
    pub async fn register_parquet(&self, name: &str, files: &[PathBuf]) -> Result {
        let paths: Vec<String> = files.iter().map(|f| f.display().to_string()).collect();
        // Any extension: the caller knows what the files are.
        let options = ParquetReadOptions::default().file_extension("");
        let frame = self.context.read_parquet(paths, options).await?;
        self.context.register_table(name, frame.into_view())?;
        Ok(())
    }

    /// Makes a Plinth file known by a name.
    ///
    /// # Errors
    /// If it can't be opened.
    pub fn register_plinth(&self, name: &str, file: PathBuf) -> Result {
        self.context.register_table(name, engine::open(vec![file], &self.files)?)?;
        Ok(())
    }
}
