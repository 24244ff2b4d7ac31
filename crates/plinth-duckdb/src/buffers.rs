//! The table function `plinth_buffers()`: what scans of this instance took and handed over, as names and numbers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use duckdb_neo::DuckDBType;
use duckdb_neo::bind_arguments::BindArgument;
use duckdb_neo::connection::Context;
use duckdb_neo::data_chunk::DataChunkRef;
use duckdb_neo::extension::Extension;
use duckdb_neo::signature::SignatureBuilder;
use duckdb_neo::table_function::{
    BindFunctionHandle, ExecColumnInfo, InitColumnData, TableFunctionBuilder, TableFunctionCallbacks,
};

use crate::failure::{Result, guarded, of_arrow};
use crate::shelf::SharedShelf;

struct Buffers {
    shelf: SharedShelf,
}

impl TableFunctionCallbacks for Buffers {
    type BindData = ();
    type LocalState = ();
    /// Whether the rows were given.
    type GlobalState = AtomicBool;

    fn bind(&self, context: &Context, _: Vec<BindArgument>, result: BindFunctionHandle<'_>) -> Result<()> {
        guarded(|| {
            result.add_result_column("name", &String::logical_type(context)?)?;
            result.add_result_column("value", &u64::logical_type(context)?)
        })
    }

    fn init_global_state(
        &self,
        (): &(),
        _: &Context,
        _: InitColumnData<'_>,
    ) -> Result<(Option<AtomicBool>, Option<usize>)> {
        Ok((Some(AtomicBool::new(false)), Some(1)))
    }

    fn exec(
        &self,
        (): &(),
        given: Option<&AtomicBool>,
        _: Option<&mut ()>,
        _: &Context,
        mut output: DataChunkRef<'_>,
        _: ExecColumnInfo<'_>,
    ) -> Result<()> {
        guarded(|| {
            let given = given.ok_or_else(|| of_arrow("a scan that was not begun"))?;
            if given.swap(true, Ordering::Relaxed) {
                return Ok(());
            }
            let rows = self.shelf.counters();
            let mut names = output.get_vector_at_mut::<String>(0)?;
            names.set_size(rows.len())?;
            let mut writer = names.writer()?;
            for (at, (name, _)) in rows.iter().enumerate() {
                writer.set(at, Some(*name))?;
            }
            drop(writer);
            drop(names);
            let mut values = output.get_vector_at_mut::<u64>(1)?;
            values.set_size(rows.len())?;
            let mut writer = values.writer()?;
            for (at, (_, value)) in rows.iter().enumerate() {
                writer.set(at, Some(*value))?;
            }
            Ok(())
        })
    }
}

/// Makes the function known.
///
/// # Errors
/// If DuckDB refuses.
pub(crate) fn register(extension: &Extension, shelf: &SharedShelf) -> Result<()> {
    let buffers = Buffers { shelf: Arc::clone(shelf) };
    TableFunctionBuilder::new("plinth_buffers", SignatureBuilder::new(), buffers).register(extension)
}
