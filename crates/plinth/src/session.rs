//! A DataFusion session with Plinth files in it.

mod cut;
mod database;
mod dense;
mod depth;
mod each;
mod engine;
mod joins;
mod meaning;
mod numbers;
mod params;
mod profiles;
mod read;
mod rows;
mod statements;
mod stop;
mod watch;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use datafusion::catalog::{
    CatalogProvider, CatalogProviderList, DynamicFileCatalog, MemoryCatalogProvider, MemoryCatalogProviderList,
    MemorySchemaProvider, UrlTableFactory,
};
use datafusion::datasource::dynamic_file::DynamicListTableFactory;
use datafusion::datasource::provider::DefaultTableFactory;
use datafusion::execution::FunctionRegistry;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::disk_manager::DiskManagerBuilder;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::session_state::SessionState;
use datafusion::optimizer::Analyzer;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};
use datafusion::sql::sqlparser::ast;
use datafusion_session::SessionStore;
use plinth_datafusion::{
    BudgetPool, FileOptions, GuardMemory, NamelessSpills, ParquetScans, PlinthConfig, ProfileOperators, Stores,
    WindowsByPartition, bounded_functions, honest_aggregates, profile_tasks,
};
use plinth_format::{Access, OpenOptions, WriterOptions};
use plinth_ingest::SourceOptions;
use plinth_io::{Io, IoOptions, MemoryBudget};

use crate::error::{Failure, Result};
use crate::{interrupt, machine};
use database::Database;

pub(crate) use engine::plinth_files;
pub(crate) use params::Params;
use profiles::Profiles;
pub(crate) use statements::parse;
pub(crate) use watch::{Done, Watch};

/// Most bytes that a sort sets aside for merging what it spilled.
const SORT_MERGING: usize = 10 << 20;

/// Bytes after which an exchange between threads closes a file that it spills to: each batch has its own. Two files that are written
/// to at a time are read one after the other, so a reader may wait for the next batch of one while its batch lies in the
/// other, and the writers wait for the reader: the engine then waits for ever.
const EXCHANGE_FILE: usize = 1;
/// Most bytes of foreign rows that wait for a query.
const AHEAD: usize = 64 << 20;

/// The stack of threads that run statements: what [`depth`] lets through has room on it, also unoptimised.
const STACK: usize = 64 << 20;

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

/// How to set up a session.
#[derive(Clone, Debug)]
pub(crate) struct SessionOptions {
    /// A folder whose files are tables.
    pub(crate) db: Option<PathBuf>,
    /// Bytes that operators, writers and what is kept of files may use together.
    pub(crate) memory: u64,
    /// Partitions, and threads of the writer.
    pub(crate) threads: usize,
    /// How blocks are read.
    pub(crate) io: IoOptions,
    /// How rows are found by values of columns with an index.
    pub(crate) access: Access,
}

/// Answers SQL.
pub(crate) struct Session {
    context: SessionContext,
    database: Arc<Database>,
    files: FileOptions,
    stores: Arc<Stores>,
    /// What statements read beside the tables that they name.
    scratch: Arc<MemorySchemaProvider>,
    /// Prepared statements, as they were written.
    prepared: Mutex<HashMap<String, ast::Statement>>,
    watch: Arc<Watch>,
    profiles: Arc<Profiles>,
    threads: usize,
}

impl Session {
    /// Sets up a session.
    pub(crate) fn new(options: &SessionOptions) -> Result<Self> {
        let budget = MemoryBudget::new(options.memory);
        machine::count_memory(&budget);
        let writer =
            WriterOptions { threads: options.threads, cancelled: interrupt::flag(), ..WriterOptions::default() };
        let files = FileOptions {
            open: OpenOptions { io: Io::new(&budget, options.io.clone()), access: options.access },
            // The rest is for the query that makes the rows, which may have to sort them.
            writer: writer.charged_to(&budget, options.memory / 4, options.threads),
        };
        let stores = Arc::new(Stores::new(engine::store_options(&files, options.memory)));
        let database = Arc::new(Database::new(options.db.as_deref(), files.clone(), Arc::clone(&stores))?);
        let schema = MemoryCatalogProvider::new();
        schema.register_schema("public", Arc::clone(&database) as _)?;
        let scratch = Arc::new(MemorySchemaProvider::new());
        schema.register_schema(rows::SCRATCH, Arc::clone(&scratch) as _)?;
        let catalogs = MemoryCatalogProviderList::new();
        catalogs.register_catalog("datafusion".to_owned(), Arc::new(schema));
        let by_path = Arc::new(DynamicListTableFactory::new(SessionStore::new()));
        let ahead_bytes = usize::try_from(options.memory / 8).unwrap_or(usize::MAX).min(AHEAD);
        let reader = read::ReadFunctions { threads: options.threads, ahead_bytes };
        let text = reader.within(SourceOptions::default());
        let tables: Arc<dyn UrlTableFactory> =
            engine::path_tables(Arc::new(engine::Naming(Arc::clone(&by_path) as _)), files.clone(), text, &stores);
        database.set_path_tables(Arc::clone(&tables));
        let catalogs = Arc::new(DynamicFileCatalog::new(Arc::new(catalogs), tables));

        // What each sort sets aside for merging must leave room to sort in: several run side by side.
        let merging = usize::try_from(options.memory / 64).unwrap_or(usize::MAX) / options.threads.max(1);
        // IS TRUE is never NULL, which the engine knows of its logical plans alone, and fails of the difference.
        let config = SessionConfig::new()
            .set_bool("datafusion.execution.skip_physical_aggregate_schema_check", true)
            .with_sort_spill_reservation_bytes(merging.min(SORT_MERGING))
            .set_usize("datafusion.execution.max_spill_file_size_bytes", EXCHANGE_FILE)
            .with_target_partitions(options.threads)
            .with_batch_size(batch_rows(options))
            .with_create_default_catalog_and_schema(false)
            .with_default_catalog_and_schema("datafusion", "public")
            .with_information_schema(true)
            .with_option_extension(PlinthConfig::default());
        let spills =
            DiskManagerBuilder::default().with_temp_file_factory(Arc::new(NamelessSpills::new(std::env::temp_dir())));
        let runtime = RuntimeEnvBuilder::new()
            .with_memory_pool(Arc::new(BudgetPool::new(Arc::clone(&budget))))
            .with_disk_manager_builder(spills)
            .build_arc()?;
        let watch = Arc::new(Watch::default());
        let mut rules = joins::with_joins_within(options.memory, PhysicalOptimizer::default().rules);
        // Before filters look for scans that take them.
        rules.insert(0, Arc::new(ParquetScans::new(files.open.clone())));
        rules.push(meaning::recursion_rule());
        rules.push(Arc::new(cut::CutBatches::within(options.memory)));
        rules.push(Arc::new(WindowsByPartition));
        rules.push(Arc::new(dense::DenseSorts));
        rules.push(Arc::clone(&watch) as _);
        rules.push(Arc::new(GuardMemory::new(Arc::clone(&budget))));
        rules.push(Arc::new(ProfileOperators));
        // What operators spawn is theirs; if somebody else follows the tasks of this process, it is nobody's.
        let _ = profile_tasks();
        let mut analysis = Analyzer::new().rules;
        // Before types are made to meet: a DECIMAL beside a double would become one.
        analysis.insert(0, Arc::new(numbers::ExactNumbers));
        let builder = SessionStateBuilder::new()
            .with_config(config)
            .with_runtime_env(runtime)
            .with_default_features()
            .with_analyzer_rules(analysis)
            .with_optimizer_rule(Arc::new(numbers::BothZeros))
            .with_physical_optimizer_rules(rules)
            .with_catalog_list(catalogs);
        let mut state: SessionState =
            meaning::rules().into_iter().fold(builder, |b, rule| b.with_analyzer_rule(rule)).build();
        meaning::register(&mut state)?;
        state.register_relation_planner(Arc::new(reader))?;
        state.register_udf(Arc::new(numbers::Number::default().into()))?;
        for function in plinth_datafusion::scalar_functions() {
            state.register_udf(Arc::new(function))?;
        }
        for function in plinth_datafusion::aggregate_functions() {
            state.register_udaf(Arc::new(function))?;
        }
        for function in bounded_functions(state.scalar_functions().clone().values(), &budget) {
            state.register_udf(Arc::new(function))?;
        }
        for function in honest_aggregates(state.aggregate_functions().clone().values()) {
            state.register_udaf(Arc::new(function))?;
        }
        state.register_file_format(engine::format_factory(files.clone()), true)?;
        state.table_factories_mut().insert("PLINTH".to_owned(), Arc::new(DefaultTableFactory::new()));
        let context = SessionContext::new_with_state(state);
        by_path.session_store().with_state(context.state_weak_ref());
        let profiles = Arc::<Profiles>::default();
        context.register_udtf("plinth_profile", Arc::clone(&profiles) as _);
        let (prepared, threads) = (Mutex::default(), options.threads);
        Ok(Self { context, database, files, stores, scratch, prepared, watch, profiles, threads })
    }

    /// The engine's session: its tables and functions.
    pub(crate) fn context(&self) -> &SessionContext {
        &self.context
    }

    /// The names of tables that need no path.
    pub(crate) fn table_names(&self) -> Vec<String> {
        use datafusion::catalog::SchemaProvider;
        self.database.table_names()
    }

    /// A look at the plan that runs.
    pub(crate) fn watch(&self) -> &Watch {
        &self.watch
    }

    /// Makes a table of Parquet files known by a name.
    pub(crate) async fn register_parquet(&self, name: &str, files: &[PathBuf]) -> Result {
        let paths: Vec<String> = files.iter().map(|f| f.display().to_string()).collect();
        // Any extension: the caller knows what the files are.
        let options = ParquetReadOptions::default().file_extension("");
        let frame = self.context.read_parquet(paths, options).await?;
        self.context.register_table(name, frame.into_view())?;
        Ok(())
    }

    /// Makes a Plinth file known by a name.
    pub(crate) fn register_plinth(&self, name: &str, file: PathBuf) -> Result {
        self.context.register_table(name, engine::open(vec![file], &self.files)?)?;
        Ok(())
    }
}

/// Runs asynchronous work on a runtime with this many threads, until it is done or the user interrupts.
pub(crate) fn block_on<T>(threads: usize, work: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .thread_name("plinth-sql")
        // Deep expressions are followed on it; what is not used is not there.
        .thread_stack_size(STACK)
        .enable_all()
        .build()
        .map_err(|e| Failure::new(format!("can't start threads: {e}")))?;
    let result = runtime.block_on(async {
        let work = std::pin::pin!(work);
        let asked = std::pin::pin!(crate::interrupt::asked());
        match futures::future::select(work, asked).await {
            futures::future::Either::Left((result, _)) => result,
            futures::future::Either::Right(_) => Err(Failure::Interrupted),
        }
    });
    if result.is_err() {
        // Writers on threads that block remove their files as they are dropped; what is too slow for that is swept.
        runtime.shutdown_timeout(std::time::Duration::from_millis(500));
        crate::interrupt::sweep();
    }
    result
}
