//! `plinth import`: Parquet files to one Plinth file.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::DataType;
use plinth_encoding::Effort;
use plinth_format::{Writer, WriterOptions};
use plinth_ingest::{BatchSource, ParquetOptions, ParquetSource, inputs};

use crate::cli::ImportArgs;
use crate::error::{Failure, Result, catching};
use crate::progress::Progress;
use crate::{interrupt, machine, units};

/// Runs the command.
pub(crate) fn run(args: &ImportArgs) -> Result {
    let effort = match (args.fast, args.compact) {
        (true, _) => Effort::Fast,
        (_, true) => Effort::Compact,
        _ => Effort::Balanced,
    };
    interrupt::listen()?;
    let job = Job {
        files: inputs::expand(&args.inputs)?,
        to: args.to.clone(),
        effort,
        replace: args.replace,
        threads: args.threads.unwrap_or_else(machine::threads),
        ahead_bytes: args.memory,
        binary_as_text: args.binary_as_text,
        quiet: args.quiet,
    };
    let report = job.run()?;
    if !args.quiet {
        println_stderr(&report.line(&args.to));
        if let Some(hint) = report.hint() {
            println_stderr(&hint);
        }
    }
    Ok(())
}

fn println_stderr(line: &str) {
    use std::io::Write;
    // A closed standard error is no reason to fail.
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// What to import.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) files: Vec<PathBuf>,
    pub(crate) to: PathBuf,
    pub(crate) effort: Effort,
    pub(crate) replace: bool,
    pub(crate) threads: usize,
    /// Bytes of rows that may wait for the writer.
    pub(crate) ahead_bytes: Option<u64>,
    pub(crate) binary_as_text: bool,
    pub(crate) quiet: bool,
}

/// What an import did.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) rows: u64,
    pub(crate) columns: usize,
    pub(crate) files: u64,
    pub(crate) elapsed: Duration,
    pub(crate) input_bytes: u64,
    pub(crate) output_bytes: u64,
    /// Binary columns whose values look like text.
    pub(crate) text_like: Vec<String>,
}

impl Job {
    /// Imports. Whatever fails, nothing is left behind.
    pub(crate) fn run(&self) -> Result<Report> {
        self.check_output()?;
        // Before any input is read: a name that is taken is the cheapest thing to find out.
        let folder = match self.to.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_path_buf(),
            _ => PathBuf::from("."),
        };
        if !folder.is_dir() {
            return Err(Failure::new(format!("{}: no such directory", folder.display())));
        }
        interrupt::writes_into(folder);
        let options = ParquetOptions {
            // The writer's threads need the other half.
            threads: (self.threads / 2).max(1),
            ahead_bytes: usize::try_from(self.ahead_bytes.unwrap_or(64 << 20)).unwrap_or(usize::MAX),
            binary_as_text: self.binary_as_text,
        };
        let mut source = catching(|| ParquetSource::open(&self.files, &options))?;
        let options = WriterOptions {
            effort: self.effort,
            threads: self.threads,
            replace: self.replace,
            cancelled: interrupt::flag(),
            ..WriterOptions::default()
        };
        let schema = source.schema().clone();
        let mut writer = Writer::create(&self.to, &schema, options)?;
        let totals = source.totals();
        let progress = Progress::new(totals.bytes.unwrap_or(0), self.quiet);
        let mut probe = TextProbe::new(&source);
        while let Some(batch) = source.next_batch()? {
            interrupt::check()?;
            probe.look(&batch);
            writer.write(&batch)?;
            let position = source.position();
            progress.show(position.bytes, Some(position.rows));
        }
        interrupt::check()?;
        progress.say("sorting dictionaries, writing");
        let summary = writer.finish()?;
        Ok(Report {
            rows: summary.rows,
            columns: schema.fields().len(),
            files: totals.files,
            elapsed: progress.elapsed(),
            input_bytes: totals.bytes.unwrap_or(0),
            output_bytes: summary.file_bytes,
            text_like: probe.finish(&schema),
        })
    }

    fn check_output(&self) -> Result {
        if self.to.extension().is_none_or(|e| e != "plinth") {
            let mut better = self.to.clone();
            better.set_extension("plinth");
            let (path, better) = (self.to.display(), better.display());
            return Err(Failure::new(format!("{path}: the output's name must end in .plinth (such as {better})")));
        }
        if !self.replace && self.to.symlink_metadata().is_ok() {
            let path = self.to.display();
            return Err(Failure::new(format!("{path}: already exists; give --replace to replace it")));
        }
        Ok(())
    }
}

impl Report {
    /// The summary.
    pub(crate) fn line(&self, to: &Path) -> String {
        format!(
            "{}: {}, {} from {} in {} ({}); {} -> {} ({} smaller)",
            to.display(),
            units::counted(self.rows, "row"),
            units::counted(self.columns as u64, "column"),
            units::counted(self.files, "file"),
            units::duration(self.elapsed),
            units::row_rate(self.rows, self.elapsed),
            units::bytes(self.input_bytes),
            units::bytes(self.output_bytes),
            units::ratio(units::to_f64(self.input_bytes), units::to_f64(self.output_bytes)),
        )
    }

    /// What the user may want to do differently.
    fn hint(&self) -> Option<String> {
        let (first, rest) = self.text_like.split_first()?;
        let others = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
        Some(format!("hint: binary column {first:?}{others} holds text; import it as such with --binary-as-text"))
    }
}

/// Looks whether binary columns hold text (ClickHouse and Impala write strings without saying that they are).
struct TextProbe {
    undecided: BTreeSet<usize>,
    seen: BTreeSet<usize>,
    batches: usize,
}

impl TextProbe {
    /// Values looked at in a batch, and batches.
    const VALUES: usize = 200;
    const BATCHES: usize = 8;

    fn new(source: &ParquetSource) -> Self {
        let columns = 0..source.schema().fields().len();
        Self { undecided: columns.filter(|at| source.is_binary(*at)).collect(), seen: BTreeSet::new(), batches: 0 }
    }

    fn look(&mut self, batch: &RecordBatch) {
        self.batches += 1;
        if self.batches > Self::BATCHES {
            return;
        }
        let seen = &mut self.seen;
        self.undecided.retain(|at| {
            let Some(array) = batch.columns().get(*at) else { return false };
            let values: &ArrayRef = match array.data_type() {
                DataType::Dictionary(..) => array.as_dictionary::<Int32Type>().values(),
                _ => array,
            };
            let Some(values) = values.as_binary_view_opt() else { return true };
            let mut texts = values.iter().flatten().filter(|value| !value.is_empty()).take(Self::VALUES).peekable();
            if texts.peek().is_some() {
                seen.insert(*at);
            }
            texts.all(|value| std::str::from_utf8(value).is_ok_and(|text| !text.contains('\0')))
        });
    }

    fn finish(self, schema: &arrow_schema::Schema) -> Vec<String> {
        let columns = self.undecided.intersection(&self.seen);
        columns.filter_map(|at| schema.fields().get(*at)).map(|field| field.name().clone()).collect()
    }
}
