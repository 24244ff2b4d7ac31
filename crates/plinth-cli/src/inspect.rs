//! `plinth inspect`: where a file's bytes are.

use std::io::Write;
use std::path::{Path, PathBuf};

use plinth_format::{ColumnReport, EncodingReport, FileReport};
use plinth_rowstore::Table;
use plinth_table::Snapshot;
use serde_json::json;

use crate::cli::InspectArgs;
use crate::error::Result;
use crate::table::{Align, shorten};
use crate::{objects, screen, store, table, units, verify};

/// Runs the command.
pub(crate) fn run(args: &InspectArgs) -> Result {
    if Table::is_table(&args.file) {
        return store::inspect(&args.file, args.json);
    }
    if let Some(files) = verify::folder(&args.file)? {
        return folder(&args.file, &files, args.json);
    }
    let file = objects::open(&args.file)?;
    let report = file.report()?;
    let mut out = std::io::BufWriter::new(screen::stdout());
    if args.json {
        serde_json::to_writer_pretty(&mut out, &to_json(&report)).map_err(std::io::Error::from)?;
        writeln!(out)?;
    } else {
        for line in to_text(&screen::spelled(&args.file.display().to_string()), &report) {
            writeln!(out, "{line}")?;
        }
    }
    Ok(out.flush()?)
}

/// A folder of files, which is one table: its columns, and what each file holds.
fn folder(folder: &Path, files: &[PathBuf], as_json: bool) -> Result {
    let table = Snapshot::of_paths(files.to_vec(), &objects::options())?;
    let schema = table.schema();
    let files: Vec<(String, u64, u64, u64)> = table
        .files()
        .iter()
        .map(|part| {
            let (path, file) = (&part.path, &part.file);
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            Ok((name, file.num_rows(), file.byte_len(), file.report()?.row_groups))
        })
        .collect::<Result<_>>()?;
    let sum = |of: fn(&(String, u64, u64, u64)) -> u64| files.iter().map(of).sum::<u64>();
    let (rows, bytes) = (sum(|file| file.1), sum(|file| file.2));
    let mut out = std::io::BufWriter::new(screen::stdout());
    if as_json {
        let columns = schema.fields().iter().map(
            |field| json!({ "name": field.name(), "type": field.data_type().to_string(), "null": field.is_nullable() }),
        );
        let files = files.iter().map(
            |(name, rows, bytes, groups)| json!({ "file": name, "rows": rows, "bytes": bytes, "row_groups": groups }),
        );
        let all = json!({
            "rows": rows,
            "bytes": bytes,
            "columns": columns.collect::<Vec<_>>(),
            "files": files.collect::<Vec<_>>(),
        });
        serde_json::to_writer_pretty(&mut out, &all).map_err(std::io::Error::from)?;
        writeln!(out)?;
        return Ok(out.flush()?);
    }
    let name = folder.display().to_string();
    writeln!(out, "{}: a folder of files, which is one table", screen::spelled(&name))?;
    let (counted, stored) = (units::counted(rows, "row"), units::bytes(bytes));
    writeln!(out, "{counted}, {stored} in {}\n", units::counted(files.len() as u64, "file"))?;
    let mut columns = table::Table::new(&[("column", Align::Left), ("type", Align::Left), ("null", Align::Left)]);
    for field in schema.fields() {
        let null = if field.is_nullable() { "yes" } else { "no" };
        columns.row(vec![field.name().clone(), field.data_type().to_string(), null.to_owned()]);
    }
    let heads = [("file", Align::Left), ("rows", Align::Right), ("bytes", Align::Right), ("row groups", Align::Right)];
    let mut parts = table::Table::new(&heads);
    for (name, rows, bytes, groups) in files {
        parts.row(vec![name, units::count(rows), units::bytes(bytes), units::count(groups)]);
    }
    for line in columns.lines().into_iter().chain([String::new()]).chain(parts.lines()) {
        writeln!(out, "{line}")?;
    }
    Ok(out.flush()?)
}

fn stored(column: &ColumnReport) -> u64 {
    column.block_bytes + column.dictionary_bytes + column.index_bytes + column.metadata_bytes
}

fn to_text(name: &str, report: &FileReport) -> Vec<String> {
    let sum = |part: fn(&ColumnReport) -> u64| report.columns.iter().map(part).sum::<u64>();
    let values = sum(|c| c.value_bytes);
    let whole = report.file_bytes;
    let mut lines = vec![
        format!("{name}: format version {}", report.version),
        format!(
            "{} in {}, {}",
            units::counted(report.rows, "row"),
            units::counted(report.row_groups, "row group"),
            units::counted(report.columns.len() as u64, "stored column")
        ),
        format!(
            "{} for {} of values in memory: {} smaller",
            units::bytes(whole),
            units::bytes(values),
            units::ratio(units::to_f64(values), units::to_f64(whole))
        ),
        String::new(),
    ];
    let mut table = table::Table::new(&[
        ("column", Align::Left),
        ("type", Align::Left),
        ("nulls", Align::Right),
        ("distinct", Align::Right),
        ("bytes", Align::Right),
        ("ratio", Align::Right),
        ("share", Align::Right),
        ("encodings", Align::Left),
        ("min .. max", Align::Left),
    ]);
    for column in &report.columns {
        table.row(vec![
            shorten(&column.path, 28),
            shorten(&column.data_type, 20),
            if column.nulls == 0 { String::new() } else { units::percent_of(column.nulls, column.values) },
            column.dictionary_values.map(units::count).unwrap_or_default(),
            units::bytes(stored(column)),
            units::ratio(units::to_f64(column.value_bytes), units::to_f64(stored(column))),
            units::percent_of(stored(column), whole),
            encodings(column),
            column
                .min_max
                .as_ref()
                .map(|(min, max)| format!("{} .. {}", shorten(min, 14), shorten(max, 14)))
                .unwrap_or_default(),
        ]);
    }
    lines.extend(table.lines());
    lines.push(String::new());

    let mut table =
        table::Table::new(&[("where the bytes are", Align::Left), ("bytes", Align::Right), ("share", Align::Right)]);
    let (blocks, dictionaries) = (sum(|c| c.block_bytes), sum(|c| c.dictionary_bytes));
    let indexes = sum(|c| c.index_bytes);
    let rest = whole.saturating_sub(blocks + dictionaries + indexes + report.metadata_bytes);
    for (what, bytes) in [
        ("blocks", blocks),
        ("dictionaries", dictionaries),
        ("indexes", indexes),
        ("metadata", report.metadata_bytes),
        ("alignment and the rest", rest),
    ] {
        table.row(vec![what.to_owned(), units::bytes(bytes), units::percent_of(bytes, whole)]);
    }
    lines.extend(table.lines());

    let notes: Vec<_> = report
        .columns
        .iter()
        .filter_map(|c| Some(format!("{}: {}", screen::spelled(&c.path), c.note.as_ref()?)))
        .collect();
    if !notes.is_empty() {
        lines.push(String::new());
        lines.extend(notes.into_iter().map(|note| format!("note: {note}")));
    }
    lines
}

/// The encodings of a column's blocks, those with most bytes first, with their shares; what rounds to nothing is counted.
fn encodings(column: &ColumnReport) -> String {
    let all: u64 = column.encodings.iter().map(|e| e.bytes).sum();
    let mut parts: Vec<String> = Vec::new();
    for EncodingReport { name, bytes, .. } in column.encodings.iter().take(2) {
        let share = 100.0 * units::to_f64(*bytes) / units::to_f64(all.max(1));
        match share {
            _ if parts.is_empty() && share >= 99.5 || column.encodings.len() == 1 => parts.push(name.clone()),
            0.5.. => parts.push(format!("{name} {share:.0} %")),
            _ => {}
        }
    }
    if parts.len() < column.encodings.len() {
        parts.push(format!("+{}", column.encodings.len() - parts.len()));
    }
    parts.join(", ")
}

fn to_json(report: &FileReport) -> serde_json::Value {
    let columns: Vec<_> = report
        .columns
        .iter()
        .map(|c| {
            let encodings: Vec<_> =
                c.encodings.iter().map(|e| json!({ "name": e.name, "blocks": e.blocks, "bytes": e.bytes })).collect();
            json!({
                "path": c.path,
                "type": c.data_type,
                "values": c.values,
                "nulls": c.nulls,
                "blocks": c.blocks,
                "value_bytes": c.value_bytes,
                "block_bytes": c.block_bytes,
                "dictionary_bytes": c.dictionary_bytes,
                "dictionaries": c.dictionaries,
                "dictionary_values": c.dictionary_values,
                "index_bytes": c.index_bytes,
                "metadata_bytes": c.metadata_bytes,
                "encodings": encodings,
                "min": c.min_max.as_ref().map(|(min, _)| min),
                "max": c.min_max.as_ref().map(|(_, max)| max),
                "note": c.note,
            })
        })
        .collect();
    json!({
        "version": report.version,
        "rows": report.rows,
        "row_groups": report.row_groups,
        "block_rows": report.block_rows,
        "file_bytes": report.file_bytes,
        "metadata_bytes": report.metadata_bytes,
        "columns": columns,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn encoding(name: &str, blocks: u64, bytes: u64) -> EncodingReport {
        EncodingReport { name: name.to_owned(), blocks, bytes }
    }

    fn report() -> FileReport {
        let column = ColumnReport {
            path: "URL".into(),
            data_type: "utf8".into(),
            values: 100,
            nulls: 25,
            blocks: 3,
            value_bytes: 10_000,
            block_bytes: 100,
            dictionaries: 2,
            dictionary_bytes: 800,
            dictionary_values: Some(12),
            index_bytes: 0,
            note: Some("no dictionary after row group 3".into()),
            metadata_bytes: 100,
            encodings: vec![encoding("for", 2, 90), encoding("constant", 1, 10), encoding("runs", 1, 0)],
            min_max: Some(("a".into(), "a value that is rather long".into())),
        };
        FileReport {
            version: 0,
            file_bytes: 1_250,
            rows: 100,
            row_groups: 1,
            block_rows: 8_192,
            metadata_bytes: 150,
            columns: vec![column],
        }
    }

    #[test]
    fn the_text_adds_up() {
        let text = to_text("x.plinth", &report()).join("\n");
        assert!(text.contains("1.25 kB for 10.0 kB of values in memory: 8.00x smaller"), "{text}");
        assert!(text.contains("for 90 %, constant 10 %, +1"), "{text}");
        assert!(text.contains("25.0 %") && text.contains("80.0 %") && text.contains("10.0x"), "{text}");
        assert!(text.contains("alignment and the rest  200 B"), "{text}");
        assert!(text.contains("a .. a value that …"), "{text}");
        assert!(text.ends_with("note: URL: no dictionary after row group 3"), "{text}");
    }

    #[test]
    fn the_json_holds_everything() {
        let json = to_json(&report());
        assert_eq!(json["columns"][0]["encodings"][1], json!({ "name": "constant", "blocks": 1, "bytes": 10 }));
        assert_eq!(json["columns"][0]["dictionary_values"], 12);
        assert_eq!(json["file_bytes"], 1_250);
    }
}
