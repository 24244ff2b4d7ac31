//! Scans of Plinth files on their way to another process: what they are made of, and how their rows are divided.

use std::sync::Arc;

use datafusion_common::Statistics;
use datafusion_datasource::file_groups::FileGroup;
use datafusion_datasource::file_scan_config::{FileScanConfig, FileScanConfigBuilder};
use datafusion_datasource::source::DataSourceExec;
use datafusion_datasource::{FileRange, PartitionedFile, TableSchema};
use datafusion_execution::object_store::ObjectStoreUrl;
use datafusion_expr::ScalarUDF;
use datafusion_physical_expr::projection::{ProjectionExpr, ProjectionExprs};
use datafusion_physical_expr_common::physical_expr::PhysicalExpr;
use datafusion_physical_plan::ExecutionPlan;
use plinth_format::{File, PushdownMode};
use plinth_io::MemoryBudget;
use plinth_rowstore::SegmentRows;

use crate::location;
use crate::predicates::Predicates;
use crate::source::{PlinthSource, part_of};

/// Pieces of a scan at most: of more row groups, neighbours stay together.
const PIECES: usize = 4096;

/// What a scan does with its files. Conjuncts that change while a query runs are left out: who made them checks rows again.
#[derive(Clone, Debug)]
pub struct Shipped {
    /// The columns of the table.
    pub table: TableSchema,
    /// The columns that come out.
    pub projection: Vec<ProjectionExpr>,
    /// The conjuncts that rows must pass.
    pub owned: Vec<Arc<dyn PhysicalExpr>>,
    /// When these are evaluated.
    pub pushdown: PushdownMode,
    /// Rows of a batch, if that was said.
    pub batch_size: Option<usize>,
    /// Rows that are enough.
    pub limit: Option<usize>,
    /// What is known of the rows.
    pub statistics: Statistics,
}

/// Some row groups of a file.
#[derive(Clone, Debug)]
pub struct Piece {
    /// The file.
    pub file: File,
    /// Its absolute path, or its URL.
    pub name: String,
    /// The row groups that start in these bytes.
    pub range: Option<(i64, i64)>,
    /// How many rows these have.
    pub rows: u64,
    /// Which of the file's pieces it is.
    pub number: usize,
    part: PartitionedFile,
}

impl Piece {
    /// A piece of a file that was found by its name.
    pub fn new(file: File, name: String, range: Option<(i64, i64)>) -> Self {
        let mut part = part_of(file.clone(), location::from_path(name.as_ref()));
        part.range = range.map(|(start, end)| FileRange { start, end });
        Self { rows: 0, number: 0, file, name, range, part }
    }

    /// Whether another one begins where this one ends.
    pub fn goes_on_with(&self, next: &Self) -> bool {
        let ends = self.range.map(|range| range.1);
        self.name == next.name && ends.is_some() && ends == next.range.map(|range| range.0)
    }

    /// Makes it end where another one does that it goes on with.
    pub fn extend_by(&mut self, next: &Self) {
        if let (Some((start, _)), Some((_, end))) = (self.range, next.range) {
            self.range = Some((start, end));
            self.part.range = Some(FileRange { start, end });
            self.rows += next.rows;
        }
    }
}

impl Shipped {
    /// What a scan does, and its pieces as they are divided now.
    ///
    /// # Errors
    /// If it is more than can leave this process; the message says why.
    pub fn of(config: &FileScanConfig) -> Result<(Self, Vec<Vec<Piece>>), String> {
        let source = source(config)?;
        let virtual_columns = !source.table.virtual_columns().is_empty();
        if virtual_columns || !source.table.table_partition_cols().is_empty() {
            return Err("it reads columns that are not in its files".to_owned());
        }
        if !config.output_ordering.is_empty() || config.output_partitioning.is_some() {
            return Err("it counts on an order of its files".to_owned());
        }
        let shipped = Self {
            table: source.table.clone(),
            projection: source.projection.iter().cloned().collect(),
            owned: source.predicates.owned.clone(),
            pushdown: source.predicates.mode(),
            batch_size: source.batch_size,
            limit: config.limit,
            statistics: config.statistics(),
        };
        let piece = |part: &PartitionedFile| {
            let (file, name) = file_of(source, part)?;
            let range = part.range.as_ref().map(|range| (range.start, range.end));
            Ok(Piece { file, name, range, rows: 0, number: 0, part: part.clone() })
        };
        let group = |group: &FileGroup| group.iter().map(piece).collect::<Result<Vec<_>, String>>();
        Ok((shipped, config.file_groups.iter().map(group).collect::<Result<_, _>>()?))
    }

    /// The scan of some pieces, a list of them for each partition.
    pub fn scan(&self, groups: Vec<Vec<Piece>>) -> Arc<dyn ExecutionPlan> {
        let example = groups.iter().flatten().next().map(|piece| piece.file.clone());
        let mut source = PlinthSource::new(self.table.clone());
        source.projection = ProjectionExprs::new(self.projection.clone());
        source.predicates = Arc::new(Predicates::owning(self.owned.clone(), self.pushdown));
        source.batch_size = self.batch_size;
        source.example = example;
        let group = |pieces: Vec<Piece>| FileGroup::new(pieces.into_iter().map(|piece| piece.part).collect());
        let config = FileScanConfigBuilder::new(ObjectStoreUrl::local_filesystem(), Arc::new(source))
            .with_file_groups(groups.into_iter().map(group).collect())
            .with_statistics(self.statistics.clone())
            .with_limit(self.limit)
            .build();
        DataSourceExec::from_data_source(config)
    }
}

/// The scan of Plinth files that a leaf of a plan is, if it is one.
fn source(config: &FileScanConfig) -> Result<&PlinthSource, String> {
    let source = config.file_source.downcast_ref::<PlinthSource>();
    source.ok_or_else(|| format!("{} files are read where the statement is planned", config.file_source.file_type()))
}

/// The file of a part, and the name that it has everywhere.
fn file_of(source: &PlinthSource, part: &PartitionedFile) -> Result<(File, String), String> {
    if part.extension::<SegmentRows>().is_some() {
        return Err("a table that is open for writing has rows in this process".to_owned());
    }
    let name = || part.object_meta.location.to_string();
    let Some(file) = source.handles.opened(part) else { return Err(format!("{} is not open", name())) };
    if file.is_far() {
        let name = file.name().to_owned();
        return Ok((file, name));
    }
    let path = location::to_path(&part.object_meta.location);
    match path.to_str() {
        Some(path) if std::path::Path::new(path).is_file() => Ok((file, path.to_owned())),
        _ => Err(format!("{}: the name of the file is not text in UTF-8", path.display())),
    }
}

/// The scan of a plan's leaf by row groups, in order: few together where there are very many.
///
/// # Errors
/// If it can't leave this process; the message says why.
pub fn pieces(config: &FileScanConfig) -> Result<Vec<Piece>, String> {
    let (_, groups) = Shipped::of(config)?;
    let count = |piece: &Piece| {
        let (start, end) = piece.part.range();
        piece.file.row_groups_in(start..end)
    };
    let all: usize = groups.iter().flatten().map(|piece| count(piece).len()).sum();
    let together = all.div_ceil(PIECES).max(1);
    let mut pieces = Vec::new();
    for whole in groups.iter().flatten() {
        let (len, here) = (u128::from(whole.file.byte_len()), count(whole));
        let many = whole.file.row_groups().len().max(1) as u128;
        // As the file's row groups are told by bytes.
        let start_of = |group: usize| i64::try_from(group as u128 * len / many).unwrap_or(i64::MAX);
        for first in here.clone().step_by(together) {
            let last = (first + together).min(here.end);
            let range = Some((start_of(first), start_of(last)));
            let rows =
                whole.file.row_groups().get(first..last).unwrap_or_default().iter().map(|group| group.rows).sum();
            let mut piece = Piece { range, rows, number: first, ..whole.clone() };
            piece.part.range = range.map(|(start, end)| FileRange { start, end });
            pieces.push(piece);
        }
    }
    Ok(pieces)
}

/// Operators that are functions once a plan is made: who is sent such a plan finds them by the names that they have in it.
pub fn operators_by_name(budget: &Arc<MemoryBudget>) -> Vec<ScalarUDF> {
    let mut functions = crate::checked::operators();
    functions.push(crate::enlarging::concatenation(budget));
    functions
}

/// Whether a function is one of [`operators_by_name`].
pub fn is_operator(function: &ScalarUDF) -> bool {
    crate::checked::is_operator(function) || crate::enlarging::is_concatenation(function)
}
