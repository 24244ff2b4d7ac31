//! Any bytes as JSON: one verdict whatever the cuts and the kernel, serde_json's where it is a document, and no panic.
#![no_main]

use std::io::Cursor;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_schema::{DataType, Field, Schema};
use libfuzzer_sys::fuzz_target;
use plinth_ingest::{FileFormat, JsonOptions, Level, SourceOptions, open_with};

/// The rows as they are spelled, or what is wrong.
fn rows(text: &[u8], root: Option<&str>, piece: usize, level: Level) -> Result<Vec<String>, String> {
    let schema = Schema::new(vec![Field::new("value", DataType::Utf8View, true)]);
    let options = SourceOptions {
        format: Some(FileFormat::Ndjson),
        schema: Some(Arc::new(schema)),
        ignore_extra: true,
        json: JsonOptions { root: root.map(str::to_owned), depth: 100, ..JsonOptions::default() },
        chunk_bytes: Some(piece),
        record_bytes: 1 << 20,
        level: Some(level),
        ..SourceOptions::default()
    };
    let mut source = open_with(&["-"], &options, Cursor::new(text.to_vec())).map_err(|e| e.to_string())?;
    let mut rows = Vec::new();
    loop {
        match source.next_batch() {
            Ok(Some(batch)) => {
                let values = batch.column(0).as_string_view();
                rows.extend(values.iter().map(|value| value.unwrap_or("null").to_owned()));
            }
            Ok(None) => return Ok(rows),
            // That the column is nowhere is no fault of the JSON.
            Err(e) if e.to_string().contains("is in no input file") => return Ok(rows),
            Err(e) => return Err(e.to_string()),
        }
    }
}

fuzz_target!(|input: (u8, Vec<u8>)| {
    let (piece, text) = input;
    for root in [Some(""), Some("a"), None] {
        let whole = rows(&text, root, 1 << 20, Level::Scalar);
        if let Err(e) = &whole {
            assert!(!e.contains('\n') && !e.contains("gave up"), "{e}");
        }
        for level in Level::all() {
            assert_eq!(rows(&text, root, usize::from(piece) + 1, level), whole, "{root:?} {piece} {level:?}");
        }
        // The document itself, unless there is a reason not to look at it; ours may be less deep.
        if root == Some("") && text.first().is_some_and(u8::is_ascii_graphic) {
            let sound = serde_json::from_slice::<serde_json::Value>(&text).is_ok();
            let known = |e: &String| ["too deep", "UTF-16", "Parquet", "compressed", "occurs twice"].iter().any(|why| e.contains(why));
            assert!(whole.is_ok() == sound || whole.as_ref().is_err_and(known), "{whole:?}");
        }
    }
});
