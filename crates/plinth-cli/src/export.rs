//! `plinth export`: tables to Parquet, CSV or NDJSON; and from one of these to another.

use std::io::IsTerminal;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;

use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};
use plinth_ingest::export::{BatchSink, SinkOptions, to_file, to_writer};
use plinth_ingest::{BatchSource, FileFormat, Sample, SourceOptions};
use plinth_rowstore::{Table, TableOptions};
use plinth_table::{Snapshot, TableFolder};

use crate::cli::ExportArgs;
use crate::error::{Failure, Result, catching};
use crate::progress::Progress;
use crate::{interrupt, objects, screen, units};

/// Batches that may wait between the thread that reads and the one that writes.
const AHEAD: usize = 4;

/// Runs the command.
pub(crate) fn run(args: &ExportArgs) -> Result {
    objects::local(&args.to)?;
    interrupt::listen()?;
    let progress = Progress::new(0, args.quiet);
    let (rows, bytes) = match args.inputs.as_slice() {
        [folder] if Table::is_table(folder) => {
            args.source.refuse(folder)?;
            export_store(args, folder, &progress)?
        }
        inputs => match plinth_inputs(inputs)? {
            Some(table) => {
                inputs.iter().take(1).try_for_each(|input| args.source.refuse(input))?;
                export_table(args, &table, &progress)?
            }
            None => convert(args, &progress)?,
        },
    };
    let elapsed = progress.elapsed();
    drop(progress);
    if !args.quiet {
        let to = if is_stdout(&args.to) { "standard output".into() } else { args.to.display().to_string() };
        let (rate, rows) = (units::row_rate(rows, elapsed), units::counted(rows, "row"));
        let (elapsed, bytes) = (units::duration(elapsed), units::bytes(bytes));
        screen::say(format_args!("{to}: {rows} in {elapsed} ({rate}); {bytes}"));
    }
    Ok(())
}

fn is_stdout(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// The inputs as one table, if they are Plinth's.
fn plinth_inputs(inputs: &[PathBuf]) -> Result<Option<Snapshot>> {
    if let [folder] = inputs
        && folder.is_dir()
        && TableFolder::new(folder).has_files()?
    {
        return Ok(Some(TableFolder::new(folder).open(None)?));
    }
    if let [url] = inputs
        && url.extension().is_none_or(|extension| extension == "plinth")
        && let Some(files) = objects::several(url)?
    {
        return Ok(Some(Snapshot::of_paths(files, &objects::options())?));
    }
    let ours = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "plinth");
    match (inputs.iter().all(ours), inputs.iter().find(|path| ours(path))) {
        (true, _) => Ok(Some(Snapshot::of_paths(inputs.to_vec(), &objects::options())?)),
        (false, Some(path)) => {
            Err(Failure::new(format!("{}: Plinth files and others can't be read together", path.display())))
        }
        (false, None) => Ok(None),
    }
}

/// Which of a table's columns are wanted, where they are.
fn chosen(schema: &Schema, columns: &[String]) -> Result<Option<Vec<usize>>> {
    if columns.is_empty() {
        return Ok(None);
    }
    if let Some(twice) = columns.iter().enumerate().find_map(|(i, name)| columns[..i].contains(name).then_some(name)) {
        return Err(Failure::new(format!("--columns: {twice:?} occurs twice")));
    }
    let find = |name: &String| {
        schema.index_of(name).map_err(|_| {
            let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).take(20).collect();
            Failure::new(format!("--columns: no column {name:?}; there are {}", names.join(", ")))
        })
    };
    columns.iter().map(find).collect::<Result<_>>().map(Some)
}

/// Where rows go.
struct Output {
    sink: Box<dyn BatchSink>,
    columns: Option<Vec<usize>>,
    rows: u64,
}

impl Output {
    fn create(args: &ExportArgs, schema: &SchemaRef) -> Result<Self> {
        let columns = chosen(schema, &args.columns)?;
        let schema = match &columns {
            Some(columns) => SchemaRef::new(schema.project(columns)?),
            None => schema.clone(),
        };
        let format = args.to_format.map(FileFormat::from);
        let options = SinkOptions {
            format,
            replace: args.replace,
            threads: NonZero::new(args.limits.threads()),
            ..SinkOptions::default()
        };
        let sink = if is_stdout(&args.to) {
            let format = format.ok_or_else(|| Failure::new("give --to-format parquet, csv, tsv or ndjson"))?;
            if format == FileFormat::Parquet && std::io::stdout().is_terminal() {
                return Err(Failure::new("Parquet is no text for a terminal: name a file or a pipe"));
            }
            to_writer(screen::stdout(), &schema, format, None, &options)?
        } else {
            if let Some(folder) = args.to.parent() {
                interrupt::writes_into(if folder.as_os_str().is_empty() { ".".into() } else { folder.to_path_buf() });
            }
            to_file(&args.to, &schema, &options)?
        };
        Ok(Self { sink, columns, rows: 0 })
    }

    fn write(&mut self, batch: &RecordBatch) -> Result {
        interrupt::check()?;
        self.rows += batch.num_rows() as u64;
        match &self.columns {
            Some(columns) => self.sink.write(&batch.project(columns)?)?,
            None => self.sink.write(batch)?,
        }
        Ok(())
    }

    fn finish(self) -> Result<(u64, u64)> {
        interrupt::check()?;
        Ok((self.rows, self.sink.finish()?))
    }
}

/// Writes a folder of files, or some files.
fn export_table(args: &ExportArgs, table: &Snapshot, progress: &Progress) -> Result<(u64, u64)> {
    let schema = table.schema();
    let read = |give: Give<'_>| Ok(plinth_table::read(table.files(), &schema, |batch, bytes| Ok(give(batch, bytes)))?);
    write_what(args, &schema, table.byte_len(), progress, read)
}

/// Writes the rows of a folder that can be written to, as they are now.
fn export_store(args: &ExportArgs, folder: &Path, progress: &Progress) -> Result<(u64, u64)> {
    let table = Table::open_read_only(folder, TableOptions::default()).map_err(Failure::new)?;
    let snapshot = table.snapshot();
    let bytes: u64 = snapshot.segments().iter().map(|segment| segment.file.byte_len()).sum();
    let read = |give: Give<'_>| {
        for batch in snapshot.scan().map_err(Failure::new)? {
            let batch = batch.map_err(Failure::new)?;
            let share = bytes.saturating_mul(batch.num_rows() as u64) / snapshot.num_rows().max(1);
            if !give(batch, share) {
                break;
            }
        }
        Ok(())
    };
    write_what(args, &snapshot.schema(), bytes, progress, read)
}

/// Takes a batch that was read, and the bytes that took; false if no more is wanted.
type Give<'g> = &'g dyn Fn(RecordBatch, u64) -> bool;

/// Reads on a thread of its own: what is read and what is written cost about the same.
fn write_what(
    args: &ExportArgs,
    schema: &SchemaRef,
    bytes: u64,
    progress: &Progress,
    read: impl FnOnce(Give<'_>) -> Result + Send,
) -> Result<(u64, u64)> {
    let mut output = Output::create(args, schema)?;
    progress.expect(bytes);
    std::thread::scope(|scope| {
        let (give, batches) = sync_channel(AHEAD);
        // A writer that has gone has the reason.
        let reader = scope.spawn(move || read(&|batch, bytes| give.send((batch, bytes)).is_ok()));
        let mut done = 0;
        for (batch, bytes) in batches {
            output.write(&batch)?;
            done += bytes;
            progress.show(done, Some(output.rows));
        }
        let died = |_| Failure::new("the thread that reads died");
        reader.join().map_err(died)??;
        output.finish()
    })
}

/// Where standard input is kept if it has to be read twice: beside the output, if that is a file.
fn scratch_folder(to: &Path) -> PathBuf {
    match to.parent() {
        _ if is_stdout(to) => std::env::temp_dir(),
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_path_buf(),
        _ => PathBuf::from("."),
    }
}

/// From one foreign format to another.
fn convert(args: &ExportArgs, progress: &Progress) -> Result<(u64, u64)> {
    let memory = args.limits.memory();
    let options = SourceOptions {
        threads: args.limits.threads(),
        ahead_bytes: usize::try_from(memory / 4).unwrap_or(usize::MAX),
        spill: scratch_folder(&args.to),
        // Rows that don't fit a sample would be found when half of the output is gone.
        sample: args.source.sample.unwrap_or(Sample::Everything),
        ..args.source.options()?
    };
    let mut source: Box<dyn BatchSource> = catching(|| plinth_ingest::open(&args.inputs, &options))?;
    let schema = source.schema().clone();
    let mut output = Output::create(args, &schema)?;
    progress.expect(source.totals().bytes.unwrap_or(0));
    while let Some(batch) = source.next_batch()? {
        output.write(&batch)?;
        progress.show(source.position().bytes, Some(output.rows));
    }
    output.finish()
}
