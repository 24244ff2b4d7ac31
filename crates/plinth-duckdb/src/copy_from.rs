//! `COPY table FROM 'x.plinth'`: the columns of a file by their names, cast to the types of the table's.

use std::num::NonZeroUsize;
use std::sync::Arc;

use arrow_schema::Schema;
use duckdb_neo::connection::Context;
use duckdb_neo::copy_function::{CopyFromBindInfo, CopyFromCardinality, CopyFromFunctionCallbacks};
use duckdb_neo::data_chunk::DataChunkRef;
use plinth_format::PushdownMode;

use crate::copy::PlinthFormat;
use crate::failure::{Result, guarded, refused};
use crate::handover;
use crate::scan::{self, Running, Shared, Wanted};
use crate::settings::Settings;
use crate::shape;
use crate::table::{Asked, Column, Table};

/// A file, and which of its columns a table gets.
pub(crate) struct Bound {
    table: Arc<Table>,
    /// Places in the file, in the order of the table's columns.
    columns: Vec<usize>,
}

impl CopyFromFunctionCallbacks for PlinthFormat {
    type BindData = Bound;
    type LocalState = Running;
    type GlobalState = Shared;

    fn bind(
        &self,
        context: &Context,
        file_path: &str,
        info: &CopyFromBindInfo,
    ) -> Result<(Bound, Option<CopyFromCardinality>)> {
        guarded(|| {
            if info.option_count()? > 0 {
                let (name, _) = info.get_option(0)?;
                return Err(refused(format!("COPY FROM a Plinth file has no option {}", name.to_uppercase())));
            }
            let asked = Asked {
                named: vec![file_path.to_owned()],
                filename: false,
                hive: None,
                hive_types: true,
                union_by_name: true,
            };
            let table = self.shelf.open(&asked, &Settings::of(context)?)?;
            let place = |at| {
                let (name, column_type) = info.get_column(at)?;
                let is_it = |column: &Column| table.name(column).eq_ignore_ascii_case(name);
                let found = table.columns.iter().position(is_it);
                let place = found.ok_or_else(|| refused(format!("{file_path}: has no column {name:?}")))?;
                let Some(Column::Stored(field)) = table.columns.get(place) else {
                    return Err(refused(format!(
                        "{file_path}: the column {name:?} is that of a folder; INSERT INTO ... FROM reads it"
                    )));
                };
                let stored = handover::types(context, &Schema::new(vec![shape::of_field(field)]))?;
                Ok((place, stored.first() != Some(&column_type)))
            };
            let found = (0..info.column_count()?).map(place).collect::<Result<Vec<_>>>()?;
            if let Some((place, _)) = found.iter().find(|(_, casts)| *casts) {
                let name = table.columns.get(*place).map_or("", |column| table.name(column)).to_owned();
                return Err(refused(format!(
                    "{file_path}: the column {name:?} has another type than the table's; INSERT INTO ... SELECT casts it"
                )));
            }
            let cardinality = usize::try_from(table.rows).unwrap_or(usize::MAX);
            let columns = found.into_iter().map(|(place, _)| place).collect();
            Ok((Bound { table: Arc::new(table), columns }, Some(CopyFromCardinality { cardinality, is_exact: true })))
        })
    }

    fn init_global_state(&self, bound: &Bound, _: &Context) -> Result<(Option<Shared>, Option<NonZeroUsize>)> {
        guarded(|| {
            let wanted = Wanted {
                columns: bound.columns.clone(),
                filters: Vec::new(),
                parts: (0..bound.table.parts.len()).collect(),
                mode: PushdownMode::Auto,
            };
            // One thread: nothing here would tell DuckDB the order of what several give.
            let shared = Shared::new(&bound.table, wanted, 1, &self.shelf.vectors)?;
            Ok((Some(shared), NonZeroUsize::new(1)))
        })
    }

    fn init_local_state(&self, _: &Bound, _: &Context, _: Option<&Shared>) -> Result<Option<Running>> {
        guarded(|| Ok(Some(Running::new())))
    }

    fn exec(
        &self,
        _: &Bound,
        shared: Option<&Shared>,
        running: Option<&mut Running>,
        context: &Context,
        output: DataChunkRef<'_>,
    ) -> Result<()> {
        scan::exec(shared, running, context, &output)
    }

    fn progress(&self, _: &Bound, shared: Option<&Shared>, _: &Context) -> Result<Option<f64>> {
        guarded(|| Ok(shared.map(Shared::progress)))
    }
}
