//! Any bytes as CSV: the same rows and the same verdicts whatever the cuts, the kernel and the threads, and no panic.
#![no_main]

use std::io::Cursor;
use std::sync::Arc;

use arbitrary::Arbitrary;
use arrow_array::cast::AsArray;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use libfuzzer_sys::fuzz_target;
use plinth_ingest::{CsvOptions, FileFormat, Level, Mark, Rejects, SourceOptions, open_with};

#[derive(Arbitrary, Debug)]
struct Input {
    /// Bytes of a piece and of a record.
    piece: u8,
    record: u8,
    threads: u8,
    delimiter: Option<u8>,
    quote: u8,
    backslash: bool,
    header: Option<bool>,
    german: bool,
    text: Vec<u8>,
}

/// The rows, and what is written down of the others.
fn rows(
    input: &Input,
    schema: Option<SchemaRef>,
    piece: usize,
    level: Level,
    threads: usize,
) -> Result<Vec<String>, String> {
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let to = folder.path().join("rejects");
    let options = SourceOptions {
        format: Some(FileFormat::Csv),
        ignore_extra: schema.is_some(),
        schema,
        csv: CsvOptions {
            delimiter: input.delimiter.filter(u8::is_ascii_punctuation),
            quote: [Mark::Sniffed, Mark::None, Mark::Byte(b'"'), Mark::Byte(b'\'')][usize::from(input.quote & 3)],
            escape: if input.backslash { Mark::Byte(b'\\') } else { Mark::Sniffed },
            header: input.header,
            thousands: input.german.then_some(b'.'),
            decimal: if input.german { b',' } else { b'.' },
            ..CsvOptions::default()
        },
        chunk_bytes: Some(piece),
        record_bytes: usize::from(input.record) + 16,
        level: Some(level),
        threads,
        rejects: Rejects::Collect { to: to.clone(), max: None },
        spill: folder.path().to_path_buf(),
        ..SourceOptions::default()
    };
    let mut source = open_with(&["-"], &options, Cursor::new(input.text.clone())).map_err(|e| e.to_string())?;
    let mut rows = vec![format!("{:?}", source.schema())];
    while let Some(batch) = source.next_batch().map_err(|e| e.to_string())? {
        let columns = batch.columns().iter().map(|column| arrow_cast::cast(column, &DataType::Utf8View));
        let columns = columns.collect::<Result<Vec<_>, _>>().map_err(|e| e.to_string())?;
        for row in 0..batch.num_rows() {
            let value =
                |column: &arrow_array::ArrayRef| column.as_string_view().iter().nth(row).flatten().map(str::to_owned);
            rows.push(format!("{:?}", columns.iter().map(value).collect::<Vec<_>>()));
        }
    }
    rows.push(std::fs::read_to_string(&to).unwrap_or_default());
    Ok(rows)
}

fuzz_target!(|input: Input| {
    let typed =
        Schema::new(vec![Field::new("column1", DataType::Int64, true), Field::new("column2", DataType::Float64, true)]);
    for schema in [None, Some(Arc::new(typed))] {
        let whole = rows(&input, schema.clone(), 1 << 20, Level::Scalar, 1);
        if let Err(e) = &whole {
            assert!(!e.contains('\n') && !e.contains("gave up"), "{e}");
        }
        for level in Level::all() {
            let cut =
                rows(&input, schema.clone(), usize::from(input.piece) + 1, level, 1 + usize::from(input.threads & 3));
            assert_eq!(cut, whole, "{level:?}");
        }
    }
});
