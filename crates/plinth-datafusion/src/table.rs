//! A table over an ordered list of files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_schema::SchemaRef;
use datafusion_catalog::{ScanArgs, ScanResult};
use datafusion_common::{DataFusionError, Result};
use datafusion_expr::dml::InsertOp;
use datafusion_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion_physical_plan::ExecutionPlan;
use datafusion_session::{Session, TableProvider};
use futures::future::BoxFuture;
use object_store::path::Path as Location;
use plinth_format::{File, WriterOptions};
use plinth_io::Object;
use plinth_table::{Listed, Snapshot, TableFolder};

use crate::error::from_format;
use crate::sink::WriteExec;
use crate::source::{part_of, plan_of};
use crate::{FileOptions, location, statistics};

/// A table over an ordered list of Plinth files whose columns are united by name; a column that a file lacks is null
/// there, and one that has a narrower type is widened (see [`plinth_table::SchemaUnion`]). Footers, and what was read of
/// columns' metadata, are read once.
///
/// A table of a folder is that folder at the moment it was opened. Rows can be inserted into it; they make a further file,
/// which those see who open the folder afterwards.
#[derive(Clone, Debug)]
pub struct PlinthTable {
    snapshot: Arc<Snapshot>,
    /// Where the engine finds each file.
    locations: Arc<[Location]>,
    schema: SchemaRef,
    folder: Option<TableFolder>,
    writer: WriterOptions,
}

impl PlinthTable {
    /// Opens files; rows come in the order given where a plan keeps order at all.
    ///
    /// # Errors
    /// If there are none, one can't be read, or two disagree about a column's type.
    pub fn open(paths: Vec<PathBuf>) -> Result<Self> {
        Self::open_with(paths, &FileOptions::default())
    }

    /// As [`PlinthTable::open`], with options.
    ///
    /// # Errors
    /// As [`PlinthTable::open`].
    pub fn open_with(paths: Vec<PathBuf>, options: &FileOptions) -> Result<Self> {
        Self::open_files(paths, None, options)
    }

    /// As [`PlinthTable::open_with`]. What `before`, an earlier table of files, has open already is not opened again.
    pub(crate) fn open_files(paths: Vec<PathBuf>, before: Option<&Self>, options: &FileOptions) -> Result<Self> {
        if paths.is_empty() {
            return Err(DataFusionError::Plan("a table needs at least one Plinth file".to_owned()));
        }
        let before = before.map(|before| before.snapshot.as_ref());
        let listed = Listed::all(paths, options.open.objects.as_ref());
        let snapshot = listed.and_then(|listed| Snapshot::open_with(listed, before, &options.open));
        Ok(Self::of(snapshot.map_err(from_format)?, None, options))
    }

    /// As [`PlinthTable::open_files`], of objects that a store told of.
    pub(crate) fn open_objects(found: &[Object], before: Option<&Self>, options: &FileOptions) -> Result<Self> {
        let listed = found.iter().cloned().map(Listed::of_object).collect();
        let before = before.map(|before| before.snapshot.as_ref());
        Ok(Self::of(Snapshot::open_with(listed, before, &options.open).map_err(from_format)?, None, options))
    }

    /// Whether these are its objects.
    pub(crate) fn is_of(&self, found: &[Object]) -> bool {
        let listed: Vec<Listed> = found.iter().cloned().map(Listed::of_object).collect();
        self.snapshot.is_of(&listed)
    }

    /// Opens the files of a folder. What `before`, an earlier table of that folder, has open already is not opened again.
    ///
    /// # Errors
    /// If there are none, one can't be read, or two disagree about a column's type.
    pub fn open_folder(folder: impl Into<PathBuf>, before: Option<&Self>) -> Result<Self> {
        Self::open_folder_with(folder, before, &FileOptions::default())
    }

    /// As [`PlinthTable::open_folder`], with options.
    ///
    /// # Errors
    /// As [`PlinthTable::open_folder`].
    pub fn open_folder_with(folder: impl Into<PathBuf>, before: Option<&Self>, options: &FileOptions) -> Result<Self> {
        let folder = TableFolder::with_options(folder, options.open.clone());
        let snapshot = folder.open(before.map(|before| before.snapshot.as_ref())).map_err(from_format)?;
        if snapshot.files().is_empty() {
            let what = format!("{}: no file in this folder ends in .{}", folder.path().display(), crate::EXTENSION);
            return Err(DataFusionError::Plan(what));
        }
        Ok(Self::of(snapshot, Some(folder), options))
    }

    fn of(snapshot: Snapshot, folder: Option<TableFolder>, options: &FileOptions) -> Self {
        let locations = snapshot.files().iter().map(|file| location::from_path(&file.path)).collect();
        let (schema, snapshot) = (snapshot.schema(), Arc::new(snapshot));
        Self { schema, snapshot, locations, folder, writer: options.writer.clone() }
    }

    /// The same files as a table of the columns that have some names, or of one column if none has. None if all have.
    pub fn of_columns(&self, named: impl Fn(&str) -> bool) -> Option<Self> {
        let fields = self.schema.fields();
        let mut columns: Vec<usize> = (0..fields.len()).filter(|&at| named(fields[at].name())).collect();
        if columns.is_empty() {
            columns.extend(0..fields.len().min(1));
        }
        if columns.len() == fields.len() {
            return None;
        }
        let schema = Arc::new(self.schema.project(&columns).ok()?);
        Some(Self { schema, ..self.clone() })
    }

    /// The folder whose table this is, if it is one.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_ref().map(TableFolder::path)
    }

    /// Whether opening it now would open the same files.
    ///
    /// # Errors
    /// If its folder can't be listed, or a file is gone.
    pub fn is_current(&self) -> Result<bool> {
        let listed = match &self.folder {
            Some(folder) => folder.list(),
            None => Listed::all(self.snapshot.files().iter().map(|file| file.path.clone()), None),
        };
        Ok(self.snapshot.is_of(&listed.map_err(from_format)?))
    }

    /// The open files, in order.
    pub fn files(&self) -> impl Iterator<Item = (&Path, &File)> {
        self.snapshot.files().iter().map(|part| (part.path.as_path(), &part.file))
    }

    /// Rows of all files.
    pub fn num_rows(&self) -> u64 {
        self.snapshot.num_rows()
    }

    fn plan(
        &self,
        state: &dyn Session,
        projection: Option<&[usize]>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let width = self.schema.fields().len();
        let columns = projection.map_or_else(|| (0..width).collect(), <[usize]>::to_vec);
        let files: Vec<File> = self.files().map(|(_, file)| file.clone()).collect();
        let statistics = statistics::of_scan(&files, &self.schema, &columns, filters, state)?;
        let parts =
            files.into_iter().zip(self.locations.iter()).map(|(file, location)| part_of(file, location.clone()));
        plan_of(&self.schema, parts.collect(), statistics, columns, limit)
    }
}

// The async methods are written out as the boxed futures they are: they need not wait for anything, and a future that
// captures the engine's expressions costs the compiler dearly.
impl TableProvider for PlinthTable {
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
        let plan = self.plan(state, projection.map(Vec::as_slice), filters, limit);
        Box::pin(std::future::ready(plan))
    }

    fn scan_with_args<'a: 'd, 'b: 'd, 'c: 'd, 'd>(
        &'b self,
        state: &'c dyn Session,
        args: ScanArgs<'a>,
    ) -> BoxFuture<'d, Result<ScanResult>> {
        let plan = self.plan(state, args.projection(), args.filters().unwrap_or(&[]), args.limit());
        Box::pin(std::future::ready(plan.map(ScanResult::from)))
    }

    fn insert_into<'a: 'c, 'b: 'c, 'c>(
        &'a self,
        _state: &'b dyn Session,
        input: Arc<dyn ExecutionPlan>,
        operation: InsertOp,
    ) -> BoxFuture<'c, Result<Arc<dyn ExecutionPlan>>> {
        let plan = match self.folder() {
            Some(folder) => {
                let (schema, options) = (Arc::clone(&self.schema), self.writer.clone());
                let write = WriteExec::append(input, operation, folder.to_path_buf(), schema, options);
                write.map(|write| Arc::new(write) as Arc<dyn ExecutionPlan>)
            }
            None => Err(DataFusionError::Plan(
                "rows can be added to a folder of Plinth files, not to single files: name the folder".to_owned(),
            )),
        };
        Box::pin(std::future::ready(plan))
    }

    /// `Inexact` though the scan is exact: the filter then still counts while joins are ordered, and the physical
    /// optimizer hands it to the source afterwards.
    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(filters.iter().map(|filter| pushdown_of(filter)).collect())
    }
}

/// How a table of files takes a filter, before its files are looked at.
pub(crate) fn pushdown_of(filter: &Expr) -> TableProviderFilterPushDown {
    match filter.is_volatile() {
        true => TableProviderFilterPushDown::Unsupported,
        false => TableProviderFilterPushDown::Inexact,
    }
}
