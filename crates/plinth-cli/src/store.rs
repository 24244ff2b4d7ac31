//! `plinth table`: folders that can be written to; and what other commands say of them.

use std::io::Write;
use std::path::Path;

use plinth_format::{OpenOptions, WriterOptions};
use plinth_io::{Io, IoOptions, MemoryBudget};
use plinth_rowstore::{Snapshot, Table, TableOptions};
use plinth_sql::expect_folder;
use plinth_table::TableFolder;
use serde_json::json;

use crate::cli::{InitArgs, TableCommand};
use crate::error::{Failure, Result};
use crate::progress::Progress;
use crate::table::{self, Align};
use crate::{interrupt, screen, units};

/// Runs the command.
pub(crate) fn run(command: &TableCommand) -> Result {
    match command {
        TableCommand::Init(args) => init(args),
    }
}

fn init(args: &InitArgs) -> Result {
    expect_folder(&args.folder)?;
    interrupt::listen()?;
    let writer =
        WriterOptions { threads: args.limits.threads(), cancelled: interrupt::flag(), ..WriterOptions::default() };
    let budget = MemoryBudget::new(args.limits.memory());
    let defaults = TableOptions::default();
    let options = TableOptions {
        // The rest is for the writer and what is kept of the files that are read.
        import_bytes: defaults.import_bytes.min(budget.limit() / 8),
        writer: writer.charged_to(&budget, budget.limit() / 2, 1),
        open: OpenOptions { io: Io::new(&budget, IoOptions::default()), ..OpenOptions::default() },
        background: false,
        cluster: args.cluster.clone(),
        ..defaults
    };
    let listed = TableFolder::new(&args.folder).list()?;
    let progress = Progress::new(listed.iter().map(|file| file.identity.len).sum(), args.quiet);
    let key: Vec<&str> = args.key.iter().map(String::as_str).collect();
    let rows = Table::init(&args.folder, &key, &options, |bytes| progress.show(bytes, None)).map_err(Failure::new)?;
    let elapsed = progress.elapsed();
    drop(progress);
    if !args.quiet {
        let key = if args.key.is_empty() { "no key".to_owned() } else { format!("key ({})", args.key.join(", ")) };
        let (rows, elapsed) = (units::counted(rows, "row"), units::duration(elapsed));
        screen::say(format_args!("{}: {rows}, {key}, in {elapsed}", args.folder.display()));
    }
    Ok(())
}

/// `plinth inspect` of a folder that can be written to.
pub(crate) fn inspect(folder: &Path, as_json: bool) -> Result {
    let table = Table::open_read_only(folder, TableOptions::default()).map_err(Failure::new)?;
    let snapshot = table.snapshot();
    let mut out = std::io::BufWriter::new(screen::stdout());
    if as_json {
        serde_json::to_writer_pretty(&mut out, &to_json(&table, &snapshot)?).map_err(std::io::Error::from)?;
        writeln!(out)?;
    } else {
        for line in to_text(folder, &table, &snapshot)? {
            writeln!(out, "{line}")?;
        }
    }
    Ok(out.flush()?)
}

fn in_memory(snapshot: &Snapshot) -> Result<u64> {
    let memory = snapshot.memory().map_err(Failure::new)?;
    Ok(memory.iter().map(|batch| batch.num_rows() as u64).sum())
}

fn deleted(kept: Option<&arrow_buffer::BooleanBuffer>) -> u64 {
    kept.map_or(0, |kept| (kept.len() - kept.count_set_bits()) as u64)
}

fn to_text(folder: &Path, table: &Table, snapshot: &Snapshot) -> Result<Vec<String>> {
    let key = table.key();
    let key = if key.is_empty() { "no key".to_owned() } else { format!("key ({})", key.join(", ")) };
    let segments = snapshot.segments();
    let mut lines = vec![
        screen::spelled(&format!("{}: a writable table, {key}", folder.display())).into_owned(),
        format!(
            "{}: {} in the log, the others in {}",
            units::counted(snapshot.num_rows(), "row"),
            units::count(in_memory(snapshot)?),
            units::counted(segments.len() as u64, "segment")
        ),
        String::new(),
    ];
    let columns = [("column", Align::Left), ("type", Align::Left), ("null", Align::Left)];
    let mut columns = table::Table::new(&columns);
    for field in table.schema().fields() {
        let null = if field.is_nullable() { "yes" } else { "no" };
        columns.row(vec![field.name().clone(), field.data_type().to_string(), null.to_owned()]);
    }
    lines.extend(columns.lines());
    let indexes = snapshot.indexes();
    if !indexes.is_empty() {
        let mut known = table::Table::new(&[("index", Align::Left), ("columns", Align::Left), ("unique", Align::Left)]);
        for index in indexes {
            let unique = if index.unique { "yes" } else { "no" };
            known.row(vec![index.name, index.columns.join(", "), unique.to_owned()]);
        }
        lines.push(String::new());
        lines.extend(known.lines());
    }
    if segments.is_empty() {
        return Ok(lines);
    }
    let parts = [("segment", Align::Left), ("rows", Align::Right), ("deleted", Align::Right), ("bytes", Align::Right)];
    let mut parts = table::Table::new(&parts);
    for segment in &segments {
        let name = Path::new(segment.file.name()).file_name().unwrap_or_default();
        parts.row(vec![
            name.to_string_lossy().into_owned(),
            units::count(segment.file.num_rows()),
            units::count(deleted(segment.kept.as_ref())),
            units::bytes(segment.file.byte_len()),
        ]);
    }
    lines.push(String::new());
    lines.extend(parts.lines());
    Ok(lines)
}

fn to_json(table: &Table, snapshot: &Snapshot) -> Result<serde_json::Value> {
    let schema = table.schema();
    let columns: Vec<_> = schema
        .fields()
        .iter()
        .map(
            |field| json!({ "name": field.name(), "type": field.data_type().to_string(), "null": field.is_nullable() }),
        )
        .collect();
    let indexes: Vec<_> = snapshot
        .indexes()
        .iter()
        .map(|index| json!({ "name": index.name, "columns": index.columns, "unique": index.unique }))
        .collect();
    let segments: Vec<_> = snapshot
        .segments()
        .iter()
        .map(|segment| {
            json!({
                "file": segment.file.name(),
                "rows": segment.file.num_rows(),
                "deleted": deleted(segment.kept.as_ref()),
                "bytes": segment.file.byte_len(),
            })
        })
        .collect();
    Ok(json!({
        "rows": snapshot.num_rows(),
        "rows_in_log": in_memory(snapshot)?,
        "key": table.key(),
        "columns": columns,
        "indexes": indexes,
        "segments": segments,
    }))
}

/// `plinth verify` of a folder that can be written to. How many bytes and rows there are.
pub(crate) fn verify(folder: &Path, threads: usize) -> Result<(u64, u64)> {
    let found = Table::verify(folder, threads, &TableOptions::default()).map_err(Failure::new)?;
    match found.problems.into_iter().next() {
        Some(problem) => Err(Failure::new(problem)),
        None => Ok((found.bytes, found.rows)),
    }
}
