//! JSON and CSV files as tables, read where they are.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_cast::cast;
use arrow_schema::{DataType, SchemaRef};
use datafusion_common::{DataFusionError, Result, plan_err};
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_expr::{Expr, TableType};
use datafusion_physical_plan::ExecutionPlan;
use datafusion_physical_plan::stream::RecordBatchReceiverStream;
use datafusion_physical_plan::streaming::{PartitionStream, StreamingTableExec};
use datafusion_session::{Session, TableProvider};
use futures::future::BoxFuture;
use plinth_ingest::{BatchSource, IngestError, Listing, SourceOptions, Unknown, Whole};

/// Batches that may wait for the consumer, beside those that the reader has ahead.
const WAITING: usize = 1;

/// Files of text as a table: named one by one, by folders or by patterns, as [`plinth_ingest::open`] takes them. Which they are is
/// known when the table is opened.
///
/// Types are inferred when the table is opened, unless a schema is given. A scan reads the files from their beginning as one
/// stream in order, decodes the columns it is asked for and passes over the others, and stops when no more rows are wanted.
#[derive(Debug)]
pub struct ForeignTable {
    listing: Arc<Listing>,
    options: SourceOptions,
    schema: SchemaRef,
    /// Whether the types are those of a sample.
    inferred: bool,
}

impl ForeignTable {
    /// Opens files.
    ///
    /// # Errors
    /// If they can't be read or are of several formats, or if no schema can be inferred; if one of them is standard input,
    /// which can't be read once for each scan.
    pub fn open(inputs: Vec<PathBuf>, options: SourceOptions) -> Result<Self> {
        if inputs.iter().any(|input| input.as_path() == Path::new(plinth_ingest::inputs::STDIN)) {
            return plan_err!("standard input (-) can't be a table, which may be read more than once; import it");
        }
        Self::of(Listing::of(&inputs, &options).map_err(external)?, options)
    }

    /// Opens files that were listed.
    ///
    /// # Errors
    /// If they can't be read, or if no schema can be inferred.
    pub fn of(listing: Listing, options: SourceOptions) -> Result<Self> {
        let inferred = options.schema.is_none();
        let schema = match &options.schema {
            // As they are to be read, and whatever can't be is said now.
            Some(_) => Arc::clone(open(&listing, &options)?.schema()),
            None => {
                // Decoding ahead would be for nothing.
                let options = SourceOptions { ahead_bytes: 0, ..options.clone() };
                Arc::clone(open(&listing, &options)?.schema())
            }
        };
        Ok(Self { listing: Arc::new(listing), options, schema, inferred })
    }

    /// A scan of some columns, in the order of the table.
    fn part(&self, projection: Option<&Vec<usize>>) -> Result<Part> {
        let Some(projection) = projection else { return self.part(Some(&(0..self.schema.fields().len()).collect())) };
        let output = Arc::new(self.schema.project(projection)?);
        let all = projection.len() == self.schema.fields().len();
        // What is unknown is told by all columns.
        let extra = self.options.json.unknown == Unknown::Extra && output.field_with_name("_extra").is_ok();
        let mut options = self.options.clone();
        let read = match all || extra {
            true => Arc::clone(&self.schema),
            false => {
                options.ignore_extra = true;
                options.json.unknown = Unknown::Report;
                let mut read = projection.clone();
                if read.iter().all(|at| self.is_of_folders(*at)) {
                    read.push(self.cheapest());
                }
                // Those of folders come behind those of files, and in their order.
                read.sort_by_key(|at| if self.is_of_folders(*at) { at + 1 } else { 0 });
                Arc::new(self.schema.project(&read)?)
            }
        };
        let columns = output.fields().iter().map(|field| read.index_of(field.name())).collect::<Result<_, _>>()?;
        options.schema = Some(read);
        let names = self.schema.fields().iter().map(|field| field.name().clone());
        options.whole = Some(Whole { names: Arc::new(names.collect()), inferred: self.inferred });
        Ok(Part { listing: Arc::clone(&self.listing), options, columns, output, inferred: self.inferred })
    }

    /// Whether a column is in the names of folders.
    fn is_of_folders(&self, column: usize) -> bool {
        self.schema.fields().get(column).is_some_and(|field| self.listing.columns().contains(field.name()))
    }

    /// The column of the files by which rows are counted, where no other is asked for.
    fn cheapest(&self) -> usize {
        let cost = |data_type: &DataType| match data_type {
            DataType::Boolean | DataType::Null => 0,
            plain if plain.is_integer() => 1,
            plain if plain.is_primitive() => 2,
            DataType::Utf8View => 3,
            _ => 4,
        };
        let fields = self.schema.fields().iter().enumerate().filter(|(at, _)| !self.is_of_folders(*at));
        fields.min_by_key(|(_, field)| cost(field.data_type())).map_or(0, |(at, _)| at)
    }
}

fn open(listing: &Listing, options: &SourceOptions) -> Result<Box<dyn BatchSource>> {
    plinth_ingest::open_listing(listing, options).map_err(external)
}

fn external(error: IngestError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

impl TableProvider for ForeignTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    // `async_trait`'s signature, written out as elsewhere.
    fn scan<'a: 'e, 'b: 'e, 'c: 'e, 'd: 'e, 'e>(
        &'a self,
        _: &'b dyn Session,
        projection: Option<&'c Vec<usize>>,
        _: &'d [Expr],
        limit: Option<usize>,
    ) -> BoxFuture<'e, Result<Arc<dyn ExecutionPlan>>> {
        let plan = self.part(projection).and_then(|part| {
            let schema = Arc::clone(&part.output);
            let plan = StreamingTableExec::try_new(schema, vec![Arc::new(part)], None, [], false, limit)?;
            Ok(Arc::new(plan) as Arc<dyn ExecutionPlan>)
        });
        Box::pin(std::future::ready(plan))
    }
}

/// What a scan reads.
#[derive(Clone)]
struct Part {
    listing: Arc<Listing>,
    /// With the columns that are read as the schema.
    options: SourceOptions,
    /// Of the columns that are read those that go out.
    columns: Vec<usize>,
    output: SchemaRef,
    inferred: bool,
}

impl fmt::Debug for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Part").field("listing", &self.listing).field("columns", &self.columns).finish_non_exhaustive()
    }
}

impl Part {
    fn project(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let columns = self.columns.iter().filter_map(|at| batch.columns().get(*at)).zip(self.output.fields());
        // A value of a folder comes once, and is referred to.
        let columns =
            columns.map(|(column, field)| Ok(cast(column, field.data_type())?)).collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.output), columns, &options)?)
    }
}

/// What the engine says of a failure to read; of types that were inferred, also how to infer others.
fn failed(error: &IngestError, inferred: bool) -> DataFusionError {
    let misfit = matches!(error, IngestError::Record(bad) if bad.column.is_some());
    let hint =
        if misfit && inferred { "; types are of a sample: sample => 'all' infers them from all rows" } else { "" };
    DataFusionError::Execution(format!("{error}{hint}"))
}

impl PartitionStream for Part {
    fn schema(&self) -> &SchemaRef {
        &self.output
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let mut stream = RecordBatchReceiverStream::builder(Arc::clone(&self.output), WAITING);
        let (rows, part) = (stream.tx(), self.clone());
        // A reader waits, for its threads and for the taker of the rows.
        stream.spawn_blocking(move || {
            let mut source = open(&part.listing, &part.options)?;
            while let Some(batch) = source.next_batch().map_err(|e| failed(&e, part.inferred))? {
                if rows.blocking_send(part.project(&batch)).is_err() {
                    break;
                }
            }
            Ok(())
        });
        stream.build()
    }
}
