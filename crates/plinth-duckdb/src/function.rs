//! The table function `read_plinth`, and `plinth_scan`, which is the same with a path by name: paths in FROM become it.
//!
//! Filters are pushed into scans, and stay in DuckDB's plan, which asks them again of the rows that pass. For DuckDB copies parts of a
//! plan by writing them down and reading them back, which binds a function anew, without what it had accepted (windows that become
//! joins, common table expressions); and it takes two parts for one that are written alike, which scans are whose *positional* arguments are equal,
//! whatever was pushed into them. So a scan whose path stood at a position gets no filters while another of the same arguments is being
//! planned. (`logical_operator.cpp` `Copy` and `common_subplan_optimizer.cpp` of DuckDB 2.0.0.)

use std::sync::{Arc, Mutex};

use arrow_schema::{DataType, Schema};
use duckdb_neo::DuckDBType;
use duckdb_neo::bind_arguments::BindArgument;
use duckdb_neo::connection::Context;
use duckdb_neo::data_chunk::DataChunkRef;
use duckdb_neo::extension::Extension;
use duckdb_neo::file::FileSystem;
use duckdb_neo::logical_type::LogicalTypeID;
use duckdb_neo::signature::{FunctionParameter, FunctionParameterKind, SignatureBuilder};
use duckdb_neo::table_function::{
    BindFunctionHandle, ExecColumnInfo, InitColumnData, PartitionData, PushdownData, TableFilterPushdownCallbacks,
    TableFunctionBuilder, TableFunctionCallbacks, TablePartitioningCallbacks,
};
use duckdb_neo::types::Any;
use duckdb_neo::value::Value;
use plinth_core::sync::lock;
use plinth_encoding::expr::Expr;
use plinth_format::PushdownMode;

use crate::failure::{Result, guarded, of_arrow, refused};
use crate::filters::{self, Columns};
use crate::handover;
use crate::keys::{self, KeyType};
use crate::planned::Planned;
use crate::scan::{self, Running, Shared, Wanted, key_type};
use crate::settings::{Pushdown, Settings};
use crate::shape;
use crate::shelf::SharedShelf;
use crate::table::{Asked, Column, Table};

/// With a path at its position.
const NAME: &str = "read_plinth";

/// With a path by name.
pub(crate) const SCAN: &str = "plinth_scan";

/// The argument with a path, or a list of them.
pub(crate) const PATH: &str = "path";

struct ReadPlinth {
    shelf: SharedShelf,
    positional: bool,
}

/// One use of the function in a statement.
struct Bound {
    table: Arc<Table>,
    pushdown: Pushdown,
    /// What follows from the filters of the statement.
    pushed: Mutex<Pushed>,
    /// Its place among those that are being planned, if its path stood at a position.
    planned: Option<Planned>,
}

#[derive(Default)]
struct Pushed {
    /// On columns of the files.
    stored: Vec<Expr>,
    /// On keys of folders.
    keys: Vec<Expr>,
}

/// Which columns filters may speak of: those that are stored, or the keys of folders.
struct Offered<'a> {
    table: &'a Table,
    /// The table's columns by their places in the scan.
    places: &'a [usize],
    of_keys: bool,
}

impl Columns for Offered<'_> {
    fn column(&self, place: usize) -> Option<(&str, DataType)> {
        match self.table.columns.get(*self.places.get(place)?)? {
            Column::Stored(field) if !self.of_keys => {
                Some((field.name(), self.table.same_in_all(field.name())?.clone()))
            }
            Column::Key(key) if self.of_keys => {
                let key = self.table.keys.get(*key)?;
                let data_type = match key.key_type {
                    KeyType::BigInt => DataType::Int64,
                    KeyType::Date => DataType::Date32,
                    KeyType::Varchar => DataType::Utf8View,
                };
                Some((&key.name, data_type))
            }
            _ => None,
        }
    }
}

impl TableFunctionCallbacks for ReadPlinth {
    type BindData = Bound;
    type LocalState = Running;
    type GlobalState = Shared;

    fn bind(&self, context: &Context, arguments: Vec<BindArgument>, result: BindFunctionHandle<'_>) -> Result<Bound> {
        guarded(|| {
            let asked = asked(context, &arguments)?;
            let settings = Settings::of(context)?;
            let table = self.shelf.open(&asked, &settings)?;
            let stored = table.columns.iter().filter_map(|column| match column {
                Column::Stored(field) => Some(shape::of_field(field)),
                _ => None,
            });
            let stored = Schema::new(stored.collect::<Vec<_>>());
            let mut stored = handover::types(context, &stored)?.into_iter();
            for column in &table.columns {
                let column_type = match column {
                    Column::Stored(_) => stored.next().ok_or_else(|| of_arrow("a column without a type"))?,
                    Column::Key(key) => {
                        key_type(context, table.keys.get(*key).map_or(KeyType::Varchar, |key| key.key_type))?
                    }
                    Column::Filename => String::logical_type(context)?,
                };
                result.add_result_column(table.name(column), &column_type)?;
            }
            result.set_cardinality(usize::try_from(table.rows).unwrap_or(usize::MAX), true)?;
            let planned = self.positional.then(|| Planned::new(&self.shelf.planned, &asked));
            Ok(Bound { table: Arc::new(table), pushdown: settings.pushdown, pushed: Mutex::default(), planned })
        })
    }

    fn init_global_state(
        &self,
        bound: &Bound,
        context: &Context,
        columns: InitColumnData<'_>,
    ) -> Result<(Option<Shared>, Option<usize>)> {
        guarded(|| {
            let columns = (0..columns.count()?).map(|at| columns.get_column_index(at)).collect::<Result<Vec<_>>>()?;
            let pushed = lock(&bound.pushed);
            let keys = &bound.table.keys;
            let passes = |part: &usize| pushed.keys.iter().all(|filter| keys::holds(filter, keys, *part));
            let wanted = Wanted {
                columns,
                filters: pushed.stored.clone(),
                parts: (0..bound.table.parts.len()).filter(passes).collect(),
                mode: match bound.pushdown {
                    Pushdown::On(mode) => mode,
                    Pushdown::Off => PushdownMode::Auto,
                },
            };
            let shared = Shared::new(&bound.table, wanted, threads(context)?, &self.shelf.vectors)?;
            let threads = shared.threads();
            Ok((Some(shared), Some(threads)))
        })
    }

    fn init_local_state(
        &self,
        _: &Bound,
        _: Option<&Shared>,
        _: &Context,
        _: InitColumnData<'_>,
    ) -> Result<Option<Running>> {
        guarded(|| Ok(Some(Running::new())))
    }

    fn exec(
        &self,
        _: &Bound,
        shared: Option<&Shared>,
        running: Option<&mut Running>,
        context: &Context,
        output: DataChunkRef<'_>,
        _: ExecColumnInfo<'_>,
    ) -> Result<()> {
        scan::exec(shared, running, context, &output)
    }

    fn progress(&self, _: &Bound, shared: Option<&Shared>, _: &Context) -> Result<Option<f64>> {
        guarded(|| Ok(shared.map(Shared::progress)))
    }
}

impl TableFilterPushdownCallbacks for ReadPlinth {
    fn pushdown_filter(&self, bound: &Bound, _: &Context, offered: PushdownData<'_>) -> Result<()> {
        guarded(|| {
            if bound.pushdown == Pushdown::Off || bound.planned.as_ref().is_some_and(Planned::has_peers) {
                return Ok(());
            }
            let places = (0..offered.count()?).map(|at| offered.get_column_index(at)).collect::<Result<Vec<_>>>()?;
            let mut pushed = lock(&bound.pushed);
            for at in 0..offered.filter_count()? {
                let filter = offered.filter(at)?;
                let of = |of_keys| Offered { table: &bound.table, places: &places, of_keys };
                if let Some(predicate) = filters::translate(&filter, &of(false))? {
                    pushed.stored.push(predicate);
                } else if let Some(predicate) = filters::translate(&filter, &of(true))?.filter(keys::is_simple) {
                    pushed.keys.push(predicate);
                }
            }
            Ok(())
        })
    }
}

impl TablePartitioningCallbacks for ReadPlinth {
    fn partition_data(
        &self,
        _: &Bound,
        _: Option<&Shared>,
        running: Option<&mut Running>,
        _: &Context,
        _: PartitionData<'_>,
    ) -> Result<usize> {
        guarded(|| Ok(running.map_or(0, |running| running.place())))
    }
}

/// Threads that DuckDB has.
pub(crate) fn threads(context: &Context) -> Result<usize> {
    let threads = context.config()?.get_value("threads")?.0.to_string().parse();
    Ok(threads.unwrap_or(1))
}

/// The arguments in the order of the signature.
fn asked(context: &Context, arguments: &[BindArgument]) -> Result<Asked> {
    let [paths, filename, hive, hive_types, union_by_name] = arguments else {
        return Err(of_arrow(format!("{NAME} with {} arguments", arguments.len())));
    };
    let boolean = bool::logical_type(context)?;
    let flag = |argument: &BindArgument| match &argument.value {
        Some(value) if !value.is_null()? => value.cast(context, &boolean)?.get::<bool>(),
        _ => Ok(None),
    };
    let Some(paths) = &paths.value else { return Err(refused(format!("{NAME}: the path must be a constant"))) };
    let files = FileSystem::new(context)?;
    Ok(Asked {
        // A tilde is the home folder.
        named: named(paths)?.iter().map(|path| files.expand(path)).collect::<Result<_>>()?,
        filename: flag(filename)?.unwrap_or(false),
        hive: flag(hive)?,
        hive_types: flag(hive_types)?.unwrap_or(true),
        union_by_name: flag(union_by_name)?.unwrap_or(true),
    })
}

/// A path or a list of paths.
fn named(value: &Value) -> Result<Vec<String>> {
    let is_null = || refused(format!("{NAME}: a path can't be NULL"));
    match value.logical_type()?.id()? {
        LogicalTypeID::Varchar => Ok(vec![value.get::<String>()?.ok_or_else(is_null)?]),
        LogicalTypeID::List if !value.is_null()? => {
            let text = |path: Value| match path.logical_type()?.id()? {
                LogicalTypeID::Varchar => path.get::<String>()?.ok_or_else(is_null),
                _ => Err(refused(format!("{NAME}: {path} is no path"))),
            };
            value.children()?.into_iter().map(text).collect()
        }
        _ if value.is_null()? => Err(is_null()),
        _ => Err(refused(format!("{NAME}: {value} is no path; give a text or a list of texts"))),
    }
}

/// Makes both known.
///
/// # Errors
/// If DuckDB refuses.
pub(crate) fn register(extension: &Extension, shelf: &SharedShelf) -> Result<()> {
    let signature = |path: FunctionParameter| {
        let flag = |name: &str, value: Option<bool>| {
            FunctionParameter::new::<Any>(name).default_value(value).kind(FunctionParameterKind::Named)
        };
        SignatureBuilder::new()
            .param(path)
            .param(flag("filename", Some(false)))
            .param(flag("hive_partitioning", None))
            .param(flag("hive_types_autocast", Some(true)))
            .param(flag("union_by_name", Some(true)))
    };
    let path = || FunctionParameter::new::<Any>(PATH);
    for (name, signature, positional) in
        [(NAME, signature(path()), true), (SCAN, signature(path().kind(FunctionParameterKind::Named)), false)]
    {
        TableFunctionBuilder::new(name, signature, ReadPlinth { shelf: Arc::clone(shelf), positional })
            .with_projection_pushdown(true)
            .with_progress()
            .with_filter_pushdown()
            .with_partitioning()
            .register(extension)?;
    }
    Ok(())
}
