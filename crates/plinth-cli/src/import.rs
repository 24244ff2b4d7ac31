//! `plinth import`: foreign files to a Plinth file, or to one more file of a table.

mod memory;
mod output;
mod probe;
mod rows;

use std::path::PathBuf;
use std::time::Duration;

use arrow_schema::SchemaRef;
use plinth_encoding::Effort;
use plinth_format::WriterOptions;
use plinth_format::sort::{SortKey, SortOptions, Sorter};
use plinth_ingest::{Attempt, BatchSource, Rejects, SourceOptions};
use plinth_profile::{Profile, Profiler, Stage};
use plinth_table::TableFolder;

use crate::cli::{ImportArgs, device_of};
use crate::error::{Failure, Result, catching};
use crate::output::is_same_place;
use crate::progress::Progress;
use crate::reading::COLUMNS;
use crate::{interrupt, objects, screen, units};
use memory::Shares;
use output::Output;
use probe::TextProbe;

pub(crate) use output::Target;

/// Runs the command.
pub(crate) fn run(args: &ImportArgs) -> Result {
    let effort = match (args.plain, args.fast, args.compact) {
        (true, _, _) => Effort::Plain,
        (_, true, _) => Effort::Fast,
        (_, _, true) => Effort::Compact,
        _ => Effort::Balanced,
    };
    let target = match (&args.to, &args.append) {
        (_, Some(folder)) => Target::Table(folder.clone()),
        (Some(path), None) => Target::File { path: path.clone(), replace: args.replace },
        (None, None) => return Err(Failure::new("give --to FILE.plinth or --append FOLDER")),
    };
    interrupt::listen()?;
    let threads = args.limits.threads();
    let rows = args.append.is_none().then(|| target.path());
    let others = rows.into_iter().chain(args.source.rejects.as_deref());
    args.profile.check_place(others)?;
    let profiling = args.profile.profiling(threads, || Ok(device_of(&target.folder())))?;
    let title = format!("import to {}", target.path().display());
    let profiler = profiling.as_ref().map_or(Profiler::off(), |profiling| profiling.start(title));
    let mut source = args.source.options()?;
    source.json.columns.clone_from(&args.columns);
    if !args.columns.is_empty() {
        source.meant.push(COLUMNS);
    }
    source.written.extend(args.profile.profile_to.clone());
    let job = Job {
        profiler: profiler.clone(),
        inputs: args.inputs.clone(),
        source,
        target,
        effort,
        threads,
        memory: args.limits.memory(),
        sort_by: args.sort_by.clone(),
        index: args.index.clone(),
        quiet: args.quiet,
    };
    let report = job.run()?;
    if !args.quiet {
        screen::say(report.line());
        if let Some(hint) = report.hint() {
            screen::say(hint);
        }
        report.notes.iter().for_each(screen::say);
    }
    profiling.map_or(Ok(()), |profiling| profiling.show(Profile { stores: objects::traffic(), ..profiler.finish() }))
}

/// Keys that the columns lack, the most frequent first.
fn unknown_keys(source: &dyn BatchSource) -> Option<String> {
    const NAMED: usize = 5;
    let mut counts: Vec<_> = source.unknown_keys().into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let named = counts.iter().take(NAMED).map(|(name, count)| format!("{name:?} {}", units::counted(*count, "time")));
    let named = named.collect::<Vec<_>>().join(", ");
    let more = if counts.len() > NAMED { ", and others" } else { "" };
    (!counts.is_empty()).then(|| format!("note: keys without a column were passed over: {named}{more}"))
}

/// What to import.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) inputs: Vec<PathBuf>,
    /// How to read them, but for threads and memory.
    pub(crate) source: SourceOptions,
    pub(crate) target: Target,
    pub(crate) effort: Effort,
    pub(crate) threads: usize,
    pub(crate) memory: u64,
    pub(crate) sort_by: Vec<SortKey>,
    pub(crate) index: Vec<String>,
    pub(crate) quiet: bool,
    /// Who hears where the time goes.
    pub(crate) profiler: Profiler,
}

/// What an import did.
#[derive(Debug)]
pub(crate) struct Report {
    to: PathBuf,
    pub(crate) rows: u64,
    pub(crate) columns: usize,
    pub(crate) files: u64,
    pub(crate) elapsed: Duration,
    pub(crate) input_bytes: u64,
    pub(crate) output_bytes: u64,
    /// Records left out.
    rejects: u64,
    /// Binary columns whose values look like text.
    text_like: Vec<String>,
    /// What of indexed columns is not indexed, and what of the input was passed over.
    notes: Vec<String>,
}

impl Job {
    /// Imports. Whatever fails, nothing is left behind.
    pub(crate) fn run(&self) -> Result<Report> {
        self.target.check()?;
        if let Rejects::Collect { to, .. } = &self.source.rejects
            && is_same_place(to, self.target.path())
        {
            return Err(Failure::new(format!("{}: bad records can't go where the rows go", to.display())));
        }
        interrupt::writes_into(self.target.folder());
        let shares = Shares::of(self.memory);
        let options = SourceOptions {
            // The writer's threads need the other half, if they are at work already.
            threads: if self.sort_by.is_empty() { (self.threads / 2).max(1) } else { self.threads },
            ahead_bytes: usize::try_from(shares.ahead).unwrap_or(usize::MAX),
            // A thread holds a record twice, as text and as values.
            record_bytes: usize::try_from(shares.ahead).unwrap_or(usize::MAX).min(self.source.record_bytes),
            spill: self.target.scratch(),
            ..self.source.clone()
        };
        let progress = Progress::new(0, self.quiet);
        plinth_ingest::import(
            &self.inputs,
            &options,
            |record| progress.note(&format!("{record}; starting again with a schema inferred from all rows")),
            |attempt| self.write(attempt, shares, &progress),
        )
    }

    /// Writes all rows of the input, which are read from its beginning.
    fn write(&self, attempt: &mut Attempt<'_, PathBuf>, shares: Shares, progress: &Progress) -> Result<Report> {
        let opening = self.profiler.scope(Stage::Open);
        let source = catching(|| attempt.open())?;
        drop(opening);
        let schema = source.schema().clone();
        let totals = source.totals();
        progress.expect(totals.bytes.unwrap_or(0));
        let writer = WriterOptions {
            effort: self.effort,
            threads: self.threads,
            index: self.index.clone(),
            cancelled: interrupt::flag(),
            ..WriterOptions::default()
        };
        let writer = writer.within(shares.writer, 1);
        let mut output = {
            let _open = self.profiler.scope(Stage::Open);
            self.target.create(&schema, writer)?
        };
        let mut probe = TextProbe::new(source);
        if self.sort_by.is_empty() {
            self.read(source, &mut probe, progress, |batch| output.write(batch))?;
        } else {
            self.sort(source, &schema, shares, &mut probe, progress, &mut output)?;
        }
        interrupt::check()?;
        progress.say("sorting dictionaries, writing");
        let summary = {
            let _write = self.profiler.scope(Stage::Write);
            output.finish()?
        };
        Ok(Report {
            to: self.target.path().to_path_buf(),
            rows: summary.rows,
            columns: schema.fields().len(),
            files: totals.files,
            elapsed: progress.elapsed(),
            input_bytes: totals.bytes.unwrap_or(source.position().bytes),
            output_bytes: summary.file_bytes,
            rejects: source.rejects(),
            text_like: probe.finish(&schema),
            notes: self.index_notes()?.into_iter().chain(unknown_keys(source)).collect(),
        })
    }

    /// What there is to say of the indexes of the file that was written.
    fn index_notes(&self) -> Result<Vec<String>> {
        if self.index.is_empty() {
            return Ok(Vec::new());
        }
        let path = match &self.target {
            Target::File { path, .. } => path.clone(),
            Target::Table(folder) => {
                let files = TableFolder::with_options(folder, objects::options()).list().map_err(Failure::new)?;
                match files.into_iter().next_back() {
                    Some(file) => file.path,
                    None => return Ok(Vec::new()),
                }
            }
        };
        let columns = objects::open(&path)?.report()?.columns.into_iter();
        let noted = columns.filter(|column| self.index.contains(&column.path));
        Ok(noted.filter_map(|column| Some(format!("note: column {:?}: {}", column.path, column.note?))).collect())
    }

    fn sort(
        &self,
        source: &mut dyn BatchSource,
        schema: &SchemaRef,
        shares: Shares,
        probe: &mut TextProbe,
        progress: &Progress,
        output: &mut Output,
    ) -> Result {
        let options = SortOptions {
            gather_bytes: shares.gather,
            merge_bytes: shares.merge,
            threads: self.threads,
            folder: self.target.folder(),
            cancelled: interrupt::flag(),
        };
        let sort = self.profiler.scope(Stage::Sort);
        let mut sorter = Sorter::new(schema, &self.sort_by, options)?;
        drop(sort);
        self.read(source, probe, progress, |batch| Ok(sorter.push(batch)?))?;
        let rows = source.position().rows;
        let _build = self.profiler.scope(Stage::Build);
        for batch in sorter.finish()? {
            interrupt::check()?;
            output.write(&batch?)?;
            progress.say(&format!("sorted {} of {}", units::count(output.rows()), units::counted(rows, "row")));
        }
        Ok(())
    }

    /// Reads everything.
    fn read(
        &self,
        source: &mut dyn BatchSource,
        probe: &mut TextProbe,
        progress: &Progress,
        mut take: impl FnMut(&arrow_array::RecordBatch) -> Result,
    ) -> Result {
        loop {
            let read = self.profiler.scope(Stage::Read);
            let Some(batch) = source.next_batch()? else { return Ok(()) };
            interrupt::check()?;
            probe.look(&batch);
            let position = source.position();
            read.rows(batch.num_rows() as u64);
            drop(read);
            let build = self.profiler.scope(Stage::Build);
            take(&batch)?;
            drop(build);
            progress.show(position.bytes, Some(position.rows));
        }
    }
}

impl Report {
    /// The summary.
    pub(crate) fn line(&self) -> String {
        let rejects = match self.rejects {
            0 => String::new(),
            n => format!(", {} left out", units::counted(n, "bad record")),
        };
        let (input, output) = (units::to_f64(self.input_bytes), units::to_f64(self.output_bytes));
        let change = if output > input {
            format!("{} larger", units::ratio(output, input))
        } else {
            format!("{} smaller", units::ratio(input, output))
        };
        format!(
            "{}: {}, {} from {} in {} ({}){rejects}; {} -> {} ({change})",
            self.to.display(),
            units::counted(self.rows, "row"),
            units::counted(self.columns as u64, "column"),
            units::counted(self.files, "file"),
            units::duration(self.elapsed),
            units::row_rate(self.rows, self.elapsed),
            units::bytes(self.input_bytes),
            units::bytes(self.output_bytes),
        )
    }

    /// What the user may want to do differently.
    fn hint(&self) -> Option<String> {
        let (first, rest) = self.text_like.split_first()?;
        let others = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
        Some(format!("hint: binary column {first:?}{others} holds text; import it as such with --binary-as-text"))
    }
}
