//! Many files become fewer, larger ones of the same rows.
//!
//! Each run of neighbours is rewritten and replaced on its own, so that work done is not lost when a later run fails. How a
//! replacement becomes a single step is the [journal](crate::journal)'s story; in between, rows may be appended.

use std::ffi::OsStr;
use std::ops::Range;
use std::path::Path;
use std::sync::mpsc::sync_channel;
use std::time::SystemTime;

use arrow_schema::SchemaRef;
use plinth_format::{FormatError, OpenOptions, Result, Writer, WriterOptions};

use crate::far::FarFolder;
use crate::folder::{Snapshot, TableFile, TableFolder};
use crate::journal::Journal;
use crate::listed::Listed;
use crate::manifest::second;
use crate::rows::read;
use crate::scratch::Scratch;
use crate::union::SchemaUnion;
use crate::{lock, names};

/// Batches that may wait between reading and writing.
const AHEAD: usize = 8;

/// How to compact.
#[derive(Clone, Debug)]
pub struct CompactOptions {
    /// Bytes that a file should have at most; files of half as many are left as they are (default 1 GiB).
    pub target_bytes: u64,
    /// Whether to make one file of all, however large that is.
    pub all: bool,
    /// How the new files are written. [`WriterOptions::replace`] does not matter.
    pub writer: WriterOptions,
    /// How the files are opened.
    pub open: OpenOptions,
}

impl Default for CompactOptions {
    fn default() -> Self {
        Self { target_bytes: 1 << 30, all: false, writer: WriterOptions::default(), open: OpenOptions::default() }
    }
}

/// What a compaction did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompactSummary {
    /// Files of the table before.
    pub files_before: u64,
    /// Files of the table after, not counting those that were appended meanwhile.
    pub files_after: u64,
    /// Bytes of the files that were replaced.
    pub bytes_before: u64,
    /// Bytes of those that replaced them.
    pub bytes_after: u64,
    /// Rows that were rewritten.
    pub rows: u64,
}

/// How far a compaction is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompactProgress {
    /// Bytes of the files to replace that were read.
    pub bytes: u64,
    /// Bytes of all files to replace.
    pub total_bytes: u64,
    /// Rows rewritten.
    pub rows: u64,
}

/// Told after each step that a crash could follow; an error stops there.
type Step<'a> = &'a mut dyn FnMut(&'static str) -> Result<()>;

/// Rewrites runs of neighbouring files of a folder as one file each, in the order of their rows and with the columns that
/// the whole table has. Others may read and append meanwhile. Whatever happens, the table has each row once.
///
/// # Errors
/// If the folder has no files or is being compacted already, a file can't be read, the device is full or refuses, or
/// writing was cancelled. Runs that were replaced stay so; nothing else is changed.
pub fn compact(
    folder: impl AsRef<Path>,
    options: &CompactOptions,
    progress: &mut dyn FnMut(CompactProgress),
) -> Result<CompactSummary> {
    compact_in_steps(folder.as_ref(), options, progress, &mut |_| Ok(()))
}

fn compact_in_steps(
    path: &Path,
    options: &CompactOptions,
    progress: &mut dyn FnMut(CompactProgress),
    step: Step<'_>,
) -> Result<CompactSummary> {
    let folder = TableFolder::with_options(path, options.open.clone());
    if folder.list()?.is_empty() {
        let what = format!("{}: no file in this folder ends in .{}", path.display(), crate::EXTENSION);
        return Err(FormatError::InvalidArgument(what));
    }
    let far = folder.far()?;
    // In a store two compactions may run, and one of them says at its end that the other has changed the files.
    let _only = if far.is_some() { None } else { Some(lock::compacting(path)?) };
    if far.is_none() {
        let _lock = lock::exclusive(path)?;
        Journal::finish(path, step)?;
    }
    let table = folder.open(None)?;
    let is_named = |file: &TableFile| match &far {
        Some(far) => far.name_of(&file.path).is_some(),
        None => name_of(file).is_some(),
    };
    let sizes: Vec<Option<u64>> =
        table.files().iter().map(|file| is_named(file).then_some(file.identity.len)).collect();
    let runs = choose(&sizes, options);
    let files = |run: &Range<usize>| table.files().get(run.clone()).unwrap_or_default();
    let bytes_of = |run: &Range<usize>| files(run).iter().map(|file| file.identity.len).sum::<u64>();
    let count = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
    let mut summary = CompactSummary {
        files_before: count(table.files().len()),
        files_after: count(table.files().len()),
        ..CompactSummary::default()
    };
    let total_bytes = runs.iter().map(bytes_of).sum();
    for run in &runs {
        let (bytes, rows) = (summary.bytes_before, summary.rows);
        let mut told = |at: CompactProgress| {
            progress(CompactProgress { bytes: bytes + at.bytes, total_bytes, rows: rows + at.rows });
        };
        let (run_files, options) = (files(run), &options.writer);
        let rewriting = Rewriting { folder: &folder, far: far.as_ref(), table: &table, run: run_files, options };
        let (rows, bytes) = rewriting.run(&mut told, step)?;
        summary.files_after -= count(run.len() - 1);
        summary.bytes_before += bytes_of(run);
        summary.bytes_after += bytes;
        summary.rows += rows;
    }
    if let Some(far) = far {
        far.clean(SystemTime::now())?;
    }
    Ok(summary)
}

/// The name of a file, if it can stand in a journal.
fn name_of(file: &TableFile) -> Option<&str> {
    file.path.file_name().and_then(OsStr::to_str).filter(|name| Journal::can_name(name))
}

/// Runs of at least two neighbours to make one file of. Files without a size are left alone.
fn choose(sizes: &[Option<u64>], options: &CompactOptions) -> Vec<Range<usize>> {
    let target = if options.all { u64::MAX } else { options.target_bytes };
    let mut runs: Vec<Range<usize>> = Vec::new();
    let mut run = 0..0;
    let mut bytes = 0u64;
    for (at, size) in sizes.iter().enumerate() {
        // Rewriting a file that is large already, again and again for a few rows more, costs more than it gains.
        let Some(size) = size.filter(|&size| options.all || size < target.div_ceil(2)) else {
            runs.push(std::mem::replace(&mut run, at + 1..at + 1));
            bytes = 0;
            continue;
        };
        if bytes.saturating_add(size) > target {
            runs.push(std::mem::replace(&mut run, at..at));
            bytes = 0;
        }
        run.end = at + 1;
        bytes = bytes.saturating_add(size);
    }
    runs.push(run);
    runs.retain(|run| run.len() > 1);
    runs
}

/// One run while it is rewritten.
struct Rewriting<'a> {
    folder: &'a TableFolder,
    /// The folder, if it is in a store.
    far: Option<&'a FarFolder>,
    table: &'a Snapshot,
    run: &'a [TableFile],
    options: &'a WriterOptions,
}

impl Rewriting<'_> {
    /// Rewrites and replaces: the rows and bytes of the new file.
    fn run(&self, progress: &mut dyn FnMut(CompactProgress), step: Step<'_>) -> Result<(u64, u64)> {
        let path = self.folder.path();
        let schema = self.table.schema();
        let index = self.indexed(&schema)?;
        let options = WriterOptions { replace: true, index, ..self.options.clone() };
        let scratch = self.far.map(|_| Scratch::make()).transpose()?;
        let here = scratch.as_ref().map_or(path, Scratch::path);
        let mut writer = Writer::create(here.join(".compact"), &schema, options)?;
        step("created the new file")?;
        self.write(&mut writer, &schema, progress)?;
        let (file, rows) = writer.complete()?;
        let expected: u64 = self.run.iter().map(|file| file.file.num_rows()).sum();
        if rows != expected {
            let what = format!("{}: {rows} rows were read where there are {expected}", path.display());
            return Err(FormatError::InvalidArgument(what));
        }
        file.sync()?;
        step("wrote the new file")?;
        if let (Some(far), Some(scratch)) = (self.far, scratch) {
            let complete = scratch.path().join("rows.plinth");
            let bytes = file.commit_as(complete.clone(), false)?;
            self.replace_far(far, &complete, &schema)?;
            return Ok((rows, bytes));
        }

        let _lock = lock::exclusive(path)?;
        let journal = self.journal(&schema)?;
        journal.write(path)?;
        step("wrote the journal")?;
        let bytes = file.commit_as(path.join(&journal.by), false)?;
        step("put the new file in place")?;
        Journal::finish(path, step)?;
        Ok((rows, bytes))
    }

    /// Sends the new file to the store, where it takes the run's place.
    fn replace_far(&self, far: &FarFolder, complete: &Path, schema: &SchemaRef) -> Result<()> {
        let sent = far.send(complete)?;
        let names: Vec<&str> = self.run.iter().filter_map(|file| far.name_of(&file.path)).collect();
        let mut refused = false;
        let replaced = far.commit(|manifest| {
            if manifest.has(&sent.name) {
                return Ok(());
            }
            let mut change = || {
                let now = Snapshot::open_with(far.listed(manifest), Some(self.table), self.folder.options())?;
                let start = manifest.files.iter().position(|file| Some(&file.name.as_str()) == names.first());
                if !manifest.replace(&names, sent.clone(), second(SystemTime::now())) {
                    return Err(self.changed("its files were replaced by others"));
                }
                let start = start.unwrap_or(0);
                self.has_columns(&now, start..start + names.len(), schema)
            };
            let changed = change();
            refused = changed.is_err();
            changed
        });
        // Of what the store did not answer it is not known whether the manifest names the file.
        if refused {
            far.take_back(&sent);
        }
        replaced
    }

    fn changed(&self, what: &str) -> FormatError {
        let path = self.folder.path().display();
        FormatError::InvalidArgument(format!("{path}: {what} while it was compacted; try again"))
    }

    /// Checks that the table has the same columns when a run of its files is replaced.
    fn has_columns(&self, now: &Snapshot, run: Range<usize>, schema: &SchemaRef) -> Result<()> {
        let mut union = SchemaUnion::new();
        for (at, file) in now.files().iter().enumerate() {
            if at == run.start {
                union.add("the compacted file", schema)?;
            } else if !run.contains(&at) {
                union.add(file.file.name(), file.file.schema())?;
            }
        }
        if union.schema().fields() == now.schema().fields() { Ok(()) } else { Err(self.changed("columns were added")) }
    }

    /// The columns that are to have postings: those that have some in one of the run's files.
    fn indexed(&self, schema: &SchemaRef) -> Result<Vec<String>> {
        let mut names = self.options.index.clone();
        for name in schema.fields().iter().map(|field| field.name()) {
            for TableFile { file, .. } in self.run {
                let known = !names.contains(name) && file.schema().index_of(name).is_ok();
                if known && file.column(name.as_str())?.index()?.is_some() {
                    names.push(name.clone());
                }
            }
        }
        Ok(names)
    }

    /// Copies the run's rows, reading on another thread.
    fn write(&self, writer: &mut Writer, schema: &SchemaRef, progress: &mut dyn FnMut(CompactProgress)) -> Result<()> {
        let total_bytes = self.run.iter().map(|file| file.identity.len).sum();
        std::thread::scope(|scope| {
            let (to_writer, batches) = sync_channel(AHEAD);
            // A writer that has failed has the reason.
            let send = move |batch, bytes| Ok(to_writer.send((batch, bytes)).is_ok());
            let reader = scope.spawn(move || read(self.run, schema, send));
            let mut bytes = 0;
            for (batch, read) in batches {
                bytes += read;
                writer.write(&batch)?;
                progress(CompactProgress { bytes, total_bytes, rows: writer.rows() });
            }
            reader.join().map_err(|_| FormatError::InvalidArgument("the thread that reads files died".into()))?
        })
    }

    /// What is to be said of the replacement, as the folder is now. It is locked.
    fn journal(&self, schema: &SchemaRef) -> Result<Journal> {
        let path = self.folder.path();
        let names = self.folder.names_under(None)?;
        let now: Vec<Listed> =
            names.iter().filter_map(|name| Listed::of(path.join(name)).transpose()).collect::<Result<_>>()?;
        let first = self.run.first().and_then(|first| now.iter().position(|listed| listed.path == first.path));
        let start = first.ok_or_else(|| self.changed("a file was removed"))?;
        let end = start + self.run.len();
        let still = now.get(start..end).unwrap_or_default();
        if still.len() != self.run.len()
            || !still.iter().zip(self.run).all(|(a, b)| a.path == b.path && a.identity == b.identity)
        {
            return Err(self.changed("a file was removed, replaced or added in between"));
        }

        // The table must have the same columns afterwards.
        let following = now.get(end).map(|listed| listed.name().to_owned());
        self.has_columns(&Snapshot::open(now, Some(self.table))?, start..end, schema)?;

        let replaced: Vec<String> = self.run.iter().filter_map(name_of).map(str::to_owned).collect();
        let (Some(first), Some(last)) = (replaced.first(), replaced.last()) else {
            return Err(self.changed("a file was removed"));
        };
        let fits = |name: &String| {
            let name = OsStr::new(name);
            !names.iter().any(|taken| taken == name)
                && following.as_deref().is_none_or(|following| names::order(name, following).is_lt())
        };
        let by = names::replacement(first, last).find(fits).ok_or_else(|| {
            let what = format!("{}: no name is left between {first} and the next file; rename it", path.display());
            FormatError::InvalidArgument(what)
        })?;
        Ok(Journal { by, replaced })
    }
}

#[cfg(test)]
#[path = "compact_tests.rs"]
mod tests;
