//! What is said of inputs that are not what was meant, in words that help.

use std::io::{Cursor, Write};
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, TimestampMicrosecondArray};
use arrow_schema::{DataType, Field, Schema, TimeUnit};
use flate2::Compression;
use flate2::write::GzEncoder;
use plinth_ingest::{FileFormat, Meant, SourceOptions, open, open_with};

use crate::{lines, read, write};

fn given(fields: Vec<Field>) -> SourceOptions {
    SourceOptions { schema: Some(Arc::new(Schema::new(fields))), ..SourceOptions::default() }
}

#[test]
fn options_that_the_format_lacks_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let meant = vec![Meant { option: "--delimiter", formats: &[FileFormat::Csv, FileFormat::Tsv] }];
    let options = SourceOptions { meant, ..SourceOptions::default() };
    for (name, text, fine) in [("x.csv", "a\n1\n", true), ("x.tsv", "a\n1\n", true), ("x.ndjson", "{\"a\":1}\n", false)]
    {
        let path = write(dir.path(), name, text);
        let expected = format!("--delimiter: is an option of csv, tsv, and {} is ndjson", path.display());
        assert_eq!(read(&[&path], &options).map(|batch| batch.num_rows()), if fine { Ok(1) } else { Err(expected) });
    }
    let e = open_with(&["-"], &options, Cursor::new("{\"a\":1}\n")).map(drop).unwrap_err().to_string();
    assert_eq!(e, "--delimiter: is an option of csv, tsv, and standard input is ndjson");
}

#[test]
fn files_that_are_about_to_be_written_are_no_inputs() {
    let dir = tempfile::tempdir().unwrap();
    let path = write(dir.path(), "x.csv", "a\n1\n");
    let written = vec![dir.path().join("new.csv"), dir.path().join(".").join("x.csv")];
    let options = SourceOptions { written, ..SourceOptions::default() };
    let e = open(&[dir.path()], &options).map(drop).unwrap_err().to_string();
    assert!(e.ends_with("x.csv: is an input; name another file for what is written"), "{e}");
    assert_eq!(std::fs::read_to_string(path).unwrap(), "a\n1\n");
}

#[test]
fn files_of_other_programs_are_called_what_they_are() {
    let dir = tempfile::tempdir().unwrap();
    for (head, what) in [
        (&b"PLINTH\r\n\x01\0\0\0"[..], "is a Plinth file"),
        (b"\xff\xff\xff\xff\x78\0\0\0", "is a stream of Arrow's"),
        (b"ARROW1\0\0", "is a file of Arrow's"),
        (b"ORC\0\x01\x02", "is an ORC file"),
        (b"SQLite format 3\0", "is a database of SQLite"),
        (b"PK\x03\x04\x14\0", "is a zip archive"),
        (b"%PDF-1.7\n", "is a PDF"),
    ] {
        let path = write(dir.path(), "x.csv", head);
        assert!(read(&[&path], &SourceOptions::default()).unwrap_err().contains(what), "{what}");
        let e = open_with(&["-"], &SourceOptions::default(), Cursor::new(head)).map(drop).unwrap_err().to_string();
        assert!(e.starts_with("standard input: ") && e.contains(what), "{e}");
    }
    // What only begins like one is text.
    let path = write(dir.path(), "x.csv", "ORC,ELF\n1,2\n");
    assert_eq!(lines(&read(&[&path], &SourceOptions::default()).unwrap()), [r#"{"ORC":1,"ELF":2}"#]);
}

#[test]
fn what_follows_gzip_is_more_of_it_or_refused() {
    let dir = tempfile::tempdir().unwrap();
    let packed = |text: &str| {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    };
    let read = |bytes: &[u8]| read(&[write(dir.path(), "x.csv.gz", bytes)], &SourceOptions::default());
    let both = [packed("a\n1\n"), packed("2\n"), packed(""), packed("3\n")].concat();
    assert_eq!(lines(&read(&both).unwrap()), [r#"{"a":1}"#, r#"{"a":2}"#, r#"{"a":3}"#]);
    for rest in [&b"junk"[..], b"\0\0\0\0", b"a much longer text than the header of a member has"] {
        let e = read(&[&packed("a\n1\n"), rest].concat()).unwrap_err();
        assert!(e.ends_with("damaged compressed data: what comes after its end is not gzip; cut it off"), "{e}");
    }
    let cut = packed("a\n1\n");
    for bytes in [&cut[..cut.len() - 1], &[cut.clone(), cut[..5].to_vec()].concat()] {
        assert!(read(bytes).unwrap_err().ends_with("the file was cut short"));
    }
}

#[test]
fn rows_without_a_key_have_the_column_that_inference_gives_them() {
    let dir = tempfile::tempdir().unwrap();
    for (text, rows) in [("{}\n{}\n", 2), ("[]", 0), ("[{}]", 1), ("[ ]\n", 0)] {
        let path = write(dir.path(), "x.json", text);
        let inferred = open(&[&path], &SourceOptions::default()).unwrap();
        let options = SourceOptions { schema: Some(Arc::clone(inferred.schema())), ..SourceOptions::default() };
        let batch = read(&[&path], &options).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(batch.num_rows(), rows, "{text}");
    }
    // Rows that have another key lack it as ever.
    let path = write(dir.path(), "x.json", "{\"a\":1}\n");
    let options = SourceOptions { ignore_extra: true, ..given(vec![Field::new("value", DataType::Utf8View, true)]) };
    assert_eq!(read(&[&path], &options).unwrap_err(), "column \"value\" of the schema is in no input file");
}

#[test]
fn moments_that_nanoseconds_do_not_reach_are_told_with_a_type_that_does() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.parquet");
    let moments: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![253_370_768_400_000_000]));
    let batch = RecordBatch::try_from_iter([("t", moments)]).unwrap();
    let mut sink = plinth_ingest::export::to_file(&path, batch.schema_ref(), &Default::default()).unwrap();
    sink.write(&batch).unwrap();
    sink.finish().unwrap();
    let of = |unit| given(vec![Field::new("t", DataType::Timestamp(unit, None), true)]);
    let e = read(&[&path], &of(TimeUnit::Nanosecond)).unwrap_err();
    assert!(e.contains("column \"t\"") && e.contains("TIMESTAMP(6)") && !e.contains("verflow"), "{e}");
    assert_eq!(read(&[&path], &of(TimeUnit::Microsecond)).unwrap().columns(), batch.columns());
}
