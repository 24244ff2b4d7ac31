//! A table that can be written to, as the engine reads it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use datafusion_common::stats::Precision;
use datafusion_common::{DataFusionError, Result, Statistics, exec_err, plan_err};
use datafusion_datasource::memory::MemorySourceConfig;
use datafusion_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion_physical_plan::ExecutionPlan;
use datafusion_physical_plan::union::UnionExec;
use datafusion_session::{Session, TableProvider};
use futures::future::BoxFuture;
use plinth_format::File;
use plinth_rowstore::{SegmentRows, TableIndex};

use super::point;
use super::stores::{Stores, Writing};
use crate::error::from_table;
use crate::source::{part_of, plan_of};
use crate::{location, statistics, table};

/// A folder's table. Which of its versions is read, [`Stores`] says when a scan is planned: a prepared statement reads what is
/// there when it is executed.
#[derive(Clone, Debug)]
pub struct StoreTable {
    stores: Arc<Stores>,
    folder: PathBuf,
    schema: SchemaRef,
    /// The columns of its key; none if its rows are numbered.
    key: Vec<String>,
    /// The texts that are kept beside its columns.
    notes: Arc<BTreeMap<String, String>>,
}

impl StoreTable {
    /// The table of a folder.
    ///
    /// # Errors
    /// If there is none, or it can't be read.
    pub fn open(stores: &Arc<Stores>, folder: &Path) -> Result<Self> {
        let folder = folder.canonicalize().map_err(|e| DataFusionError::Plan(format!("{}: {e}", folder.display())))?;
        let view = stores.view(&folder)?;
        let schema = view.snapshot.schema();
        let numbered = schema.fields().len() < view.snapshot.stored_schema().fields().len();
        let key = if numbered { Vec::new() } else { view.snapshot.row_columns() };
        let notes = view.snapshot.notes();
        Ok(Self { stores: Arc::clone(stores), folder, schema, key, notes })
    }

    /// The same table with the column that tells its rows apart, though it is hidden.
    ///
    /// # Errors
    /// If it can't be read.
    pub fn with_row_columns(&self) -> Result<Self> {
        let view = self.stores.view(&self.folder)?;
        Ok(Self {
            stores: Arc::clone(&self.stores),
            folder: self.folder.clone(),
            schema: view.snapshot.stored_schema(),
            key: view.snapshot.row_columns(),
            notes: Arc::clone(&self.notes),
        })
    }

    /// The texts that are kept beside its columns.
    pub fn notes(&self) -> &BTreeMap<String, String> {
        &self.notes
    }

    /// Begins to change the table, as [`Stores::write`] does.
    ///
    /// # Errors
    /// As that; if the table has been altered since it was looked up, so that rows would go by rules that are no longer its.
    pub fn write(&self) -> Result<Writing> {
        let writing = self.stores.write(&self.folder)?;
        let now = self.stores.view(&self.folder)?.snapshot;
        if now.schema() != self.schema || *now.notes() != *self.notes {
            return exec_err!("{}: the table was altered meanwhile; run the statement again", self.folder.display());
        }
        Ok(writing)
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The columns of its key; none if it has no key.
    pub fn key(&self) -> &[String] {
        &self.key
    }

    /// Its indexes.
    ///
    /// # Errors
    /// If it can't be read.
    pub fn indexes(&self) -> Result<Vec<TableIndex>> {
        Ok(self.stores.view(&self.folder)?.snapshot.indexes())
    }

    /// Its files of rows, with their bytes, and its rows.
    ///
    /// # Errors
    /// If it can't be read.
    pub fn size(&self) -> Result<(u64, u64, u64)> {
        let view = self.stores.view(&self.folder)?;
        let segments = view.snapshot.segments();
        let bytes = segments.iter().map(|segment| segment.file.byte_len()).sum();
        let own = view.own.as_ref().map_or(0, |rows| rows.num_rows() as u64);
        Ok((segments.len() as u64, view.snapshot.num_rows() + own, bytes))
    }

    /// The rows that have the values of a batch of one row, whose columns are those of the table's key, or of one of its indexes in
    /// any order. `None` if it takes a plan to find them: in a transaction, whose own rows come first, and where an index finds
    /// [more](plinth_rowstore::Snapshot::find_few) than `most`.
    ///
    /// # Errors
    /// If it can't be read.
    pub fn few(&self, values: &RecordBatch, most: usize) -> Result<Option<RecordBatch>> {
        let view = self.stores.view(&self.folder)?;
        if view.own.is_some() || view.snapshot.schema() != self.schema {
            return Ok(None);
        }
        let schema = values.schema();
        let key: Option<Vec<usize>> = self.key.iter().map(|column| schema.index_of(column).ok()).collect();
        match key.filter(|key| !key.is_empty() && key.len() == values.num_columns()) {
            Some(key) => Ok(Some(view.snapshot.get_batch(&values.project(&key)?).map_err(from_table)?.rows)),
            None => view.snapshot.find_few(values, most).map_err(from_table),
        }
    }

    fn plan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let view = self.stores.view(&self.folder)?;
        let (visible, stored) = (view.snapshot.schema(), view.snapshot.stored_schema());
        if self.schema != visible && self.schema != stored {
            return plan_err!(
                "{}: the table has other columns than when the statement was prepared; prepare it again",
                self.folder.display()
            );
        }
        if !self.key.is_empty() && visible == stored {
            let keys = point::keys(state, &self.schema, &self.key, filters)?;
            if let Some(keys) = keys {
                let found = view.snapshot.get_batch(&keys).map_err(from_table)?.rows;
                return self.memory(view.own.into_iter().chain([found]).collect(), projection);
            }
        }
        let mut memory = view.snapshot.memory().map_err(from_table)?;
        memory.extend(view.own.clone());
        let segments = view.snapshot.segments();
        let files = match segments.is_empty() {
            true => None,
            false => Some(self.files(state, segments, projection, filters, limit)?),
        };
        Ok(match (files, memory.is_empty()) {
            (Some(files), true) => files,
            (Some(files), false) => UnionExec::try_new(vec![files, self.memory(memory, projection)?])?,
            (None, _) => self.memory(memory, projection)?,
        })
    }

    /// Rows in memory, which may have the hidden column though this table does not.
    fn memory(&self, batches: Vec<RecordBatch>, projection: Option<&Vec<usize>>) -> Result<Arc<dyn ExecutionPlan>> {
        let all: Vec<usize> = (0..self.schema.fields().len()).collect();
        let visible = |batch: RecordBatch| match batch.num_columns() > all.len() {
            true => batch.project(&all),
            false => Ok(batch),
        };
        let batches = batches.into_iter().map(visible).collect::<Result<Vec<_>, _>>()?;
        let plan = MemorySourceConfig::try_new_exec(&[batches], Arc::clone(&self.schema), projection.cloned())?;
        Ok(plan)
    }

    /// The scan of files, without the rows that are deleted.
    fn files(
        &self,
        state: &dyn Session,
        segments: Vec<SegmentRows>,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let width = self.schema.fields().len();
        let columns = projection.map_or_else(|| (0..width).collect(), Vec::clone);
        let files: Vec<File> = segments.iter().map(|segment| segment.file.clone()).collect();
        let whole = statistics::of_scan(&files, &self.schema, &columns, filters, state)?;
        let statistics = without_deleted(whole, &segments);
        let parts = segments.into_iter().zip(files).map(|(segment, file)| {
            let location = location::from_path(Path::new(file.name()));
            part_of(file, location).with_extension(segment)
        });
        plan_of(&self.schema, parts.collect(), statistics, columns, limit)
    }
}

/// What is known of files' rows when some of these are deleted: how many are left, and of values no more than bounds.
fn without_deleted(whole: Statistics, segments: &[SegmentRows]) -> Statistics {
    let deleted: usize = segments
        .iter()
        .filter_map(|segment| segment.kept.as_ref())
        .map(|kept| kept.len() - kept.count_set_bits())
        .sum();
    if deleted == 0 {
        return whole;
    }
    let num_rows = match whole.num_rows {
        Precision::Exact(rows) => Precision::Exact(rows.saturating_sub(deleted)),
        other => other,
    };
    Statistics { num_rows, ..whole.to_inexact() }
}

// Written out, as those of `PlinthTable`.
impl TableProvider for StoreTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn scan<'a: 'e, 'b: 'e, 'c: 'e, 'd: 'e, 'e>(
        &'a self,
        state: &'b dyn Session,
        projection: Option<&'c Vec<usize>>,
        filters: &'d [Expr],
        limit: Option<usize>,
    ) -> BoxFuture<'e, Result<Arc<dyn ExecutionPlan>>> {
        Box::pin(std::future::ready(self.plan(state, projection, filters, limit)))
    }

    /// `Inexact`, as of [`crate::PlinthTable`]: the physical optimizer hands filters to the files afterwards, and rows in memory
    /// are filtered by the engine.
    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(filters.iter().map(|filter| table::pushdown_of(filter)).collect())
    }
}
