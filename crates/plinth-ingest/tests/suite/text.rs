//! Text files: what is read, what is refused, and what is said about it.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::*;
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use plinth_ingest::{
    Compression, CsvOptions, FileFormat, IngestError, Mark, Rejects, Sample, SourceOptions, open, open_with,
};
use proptest::prelude::*;

use crate::{drain, lines, read, write};

fn schema(fields: &[(&str, DataType)]) -> Option<SchemaRef> {
    let fields = fields.iter().map(|(name, t)| Field::new(*name, t.clone(), true));
    Some(Arc::new(Schema::new(fields.collect::<Vec<_>>())))
}

fn error<P: AsRef<Path>>(inputs: &[P], options: &SourceOptions) -> String {
    let e = read(inputs, options).unwrap_err();
    assert!(!e.contains('\n'), "{e}");
    e
}

fn compress(bytes: &[u8], compression: Compression) -> Vec<u8> {
    match compression {
        Compression::Gzip => {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        }
        Compression::Zstd => {
            let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
            encoder.include_checksum(true).unwrap();
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        }
        Compression::Lz4 => {
            let info = lz4_flex::frame::FrameInfo::new().content_checksum(true);
            let mut encoder = lz4_flex::frame::FrameEncoder::with_frame_info(info, Vec::new());
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        }
        Compression::Bzip2 => {
            let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        }
        _ => panic!("{compression:?}"),
    }
}

#[test]
fn several_members_frames_and_streams_are_one_file() {
    let dir = tempfile::tempdir().unwrap();
    let plain = write(dir.path(), "x.csv", "a,b\n1,x\n2,y\n3,z\n");
    let expected = read(&[plain], &SourceOptions::default()).unwrap();
    for compression in Compression::ALL {
        let parts: [&[u8]; 3] = [b"a,b\n1,", b"x\n2,y", b"\n3,z\n"];
        let bytes = parts.map(|part| compress(part, compression)).concat();
        let path = write(dir.path(), &format!("x.csv.{}", compression.extension()), bytes);
        assert_eq!(read(&[path], &SourceOptions::default()).unwrap(), expected, "{compression:?}");
    }
}

#[test]
fn truncated_or_flipped_compressed_files_are_errors_or_the_same_rows() {
    let dir = tempfile::tempdir().unwrap();
    let text: String = (0..300).map(|i| format!("{{\"a\":{i},\"b\":\"text {}\"}}\n", i * 7919 % 1000)).collect();
    let options = SourceOptions {
        schema: schema(&[("a", DataType::Int64), ("b", DataType::Utf8View)]),
        ..SourceOptions::default()
    };
    let whole = read(&[write(dir.path(), "x.ndjson", &text)], &options).unwrap();
    for compression in Compression::ALL {
        let bytes = compress(text.as_bytes(), compression);
        let name = format!("x.ndjson.{}", compression.extension());
        for len in (0..bytes.len()).step_by(31).chain(bytes.len().saturating_sub(12)..bytes.len()) {
            let e = error(&[write(dir.path(), &name, &bytes[..len])], &options);
            assert!(e.contains(&name), "{compression:?} cut to {len}: {e}");
        }
        for bit in (0..bytes.len() * 8).step_by(149) {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            // Headers have bits that mean nothing (times, names); the rest is under a checksum.
            match read(&[write(dir.path(), &name, &flipped)], &options) {
                Ok(rows) => assert_eq!(rows, whole, "{compression:?} bit {bit}"),
                Err(e) => assert!(e.contains(&name) && !e.contains('\n'), "{e}"),
            }
        }
    }
}

#[test]
fn nothing_is_lost_in_numbers() {
    let dir = tempfile::tempdir().unwrap();
    let int = SourceOptions { schema: schema(&[("a", DataType::Int64)]), ..SourceOptions::default() };
    let json = |value: &str| write(dir.path(), "x.ndjson", format!("{{\"a\":{value}}}\n"));
    let e = error(&[json("3.7")], &int);
    assert!(e.ends_with("x.ndjson: line 1 (byte 0): column \"a\": not a whole number: {\"a\":3.7}"), "{e}");
    for bad in ["9223372036854775808", "1e2", "true", "[1]", "\"x\"", "9007199254740993.0"] {
        assert!(error(&[json(bad)], &int).contains("column \"a\""), "{bad}");
    }
    assert_eq!(lines(&read(&[json("\"9007199254740993\"")], &int).unwrap()), [r#"{"a":9007199254740993}"#]);
    let wide = read(
        &[json("9007199254740993,\"b\":18446744073709551615,\"c\":123456789012345678901234567890")],
        &SourceOptions::default(),
    );
    assert_eq!(
        lines(&wide.unwrap()),
        [r#"{"a":9007199254740993,"b":18446744073709551615,"c":123456789012345678901234567890}"#]
    );
    // A double would take the last digit; a code would lose its zeros.
    let mixed = write(dir.path(), "x.csv", "a,b\n9007199254740993,007\n0.5,8\n");
    let mixed = read(&[mixed], &SourceOptions::default()).unwrap();
    assert_eq!(lines(&mixed), [r#"{"a":"9007199254740993","b":"007"}"#, r#"{"a":"0.5","b":"8"}"#]);
    let tiny = SourceOptions { schema: schema(&[("a", DataType::Decimal128(5, 2))]), ..SourceOptions::default() };
    assert!(error(&[json("1.005")], &tiny).contains("more than 2 digits after the point"));
    assert!(error(&[json("1000")], &tiny).contains("more than 5 digits"));
    let time = DataType::Timestamp(TimeUnit::Millisecond, None);
    let time = SourceOptions { schema: schema(&[("a", time)]), ..SourceOptions::default() };
    assert!(error(&[json("\"2024-01-01T00:00:00.0001\"")], &time).contains("precision"));
    assert!(error(&[json("\"2024-01-01T00:00:00Z\"")], &time).contains("has none"));
}

#[test]
fn columns_of_files_are_united_by_name() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "1.csv", "\u{feff}a,b\n1,x\n");
    write(dir.path(), "2.csv", "c,a\r\n2024-01-31,2.5\r\n");
    write(dir.path(), "3.csv", "b,c\n");
    write(dir.path(), "4.csv", "");
    let all = read(&[dir.path()], &SourceOptions::default()).unwrap();
    let expected = schema(&[("a", DataType::Float64), ("b", DataType::Utf8View), ("c", DataType::Date32)]);
    assert_eq!(Some(all.schema()), expected);
    assert_eq!(lines(&all), [r#"{"a":1.0,"b":"x","c":null}"#, r#"{"a":2.5,"b":null,"c":"2024-01-31"}"#]);
    write(dir.path(), "5.csv", "a\ntrue\n");
    assert_eq!(
        read(&[dir.path()], &SourceOptions::default()).unwrap().schema().field(0).data_type(),
        &DataType::Utf8View
    );
    write(dir.path(), "6.ndjson", "{}");
    assert!(error(&[dir.path()], &SourceOptions::default()).contains("import one format at a time"));
}

#[test]
fn a_given_schema_takes_columns_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let csv = write(dir.path(), "x.csv", "a,b\n 007,x\n");
    let json = write(dir.path(), "x.ndjson", "{\"a\":7,\"b\":\"x\"}\n");
    let parquet = dir.path().join("x.parquet");
    let batch = read(&[&json], &SourceOptions::default()).unwrap();
    let mut sink = plinth_ingest::export::to_file(&parquet, batch.schema_ref(), &Default::default()).unwrap();
    sink.write(&batch).unwrap();
    sink.finish().unwrap();
    for path in [&csv, &json, &parquet] {
        let with = |fields: &[(&str, DataType)], ignore_extra| SourceOptions {
            schema: schema(fields),
            ignore_extra,
            ..SourceOptions::default()
        };
        let both = [("b", DataType::Utf8), ("a", DataType::Int16)];
        let got = read(&[path], &with(&both, false)).unwrap();
        assert_eq!(lines(&got), [r#"{"b":"x","a":7}"#]);
        assert_eq!(got.schema().field(1).data_type(), &DataType::Int16);
        assert!(error(&[path], &with(&both[1..], false)).contains("column \"b\""));
        assert_eq!(lines(&read(&[path], &with(&both[1..], true)).unwrap()), [r#"{"a":7}"#]);
        let missing = [("a", DataType::Int16), ("b", DataType::Utf8), ("z", DataType::Int16)];
        assert_eq!(error(&[path], &with(&missing, false)), "column \"z\" of the schema is in no input file");
        assert!(
            error(&[path], &with(&[("a", DataType::Int16), ("b", DataType::Int16)], false)).contains("column \"b\"")
        );
    }
    // Parquet values are held to the same: exactly or not at all.
    let batch = RecordBatch::try_from_iter([("a", Arc::new(Float64Array::from(vec![1.0, 3.7])) as ArrayRef)]).unwrap();
    let path = dir.path().join("f.parquet");
    let mut sink = plinth_ingest::export::to_file(&path, batch.schema_ref(), &Default::default()).unwrap();
    sink.write(&batch).unwrap();
    sink.finish().unwrap();
    let options = SourceOptions { schema: schema(&[("a", DataType::Int64)]), ..SourceOptions::default() };
    assert!(error(&[&path], &options).contains("can't hold exactly"));
}

#[test]
fn what_the_sample_did_not_show_is_a_surprise() {
    let dir = tempfile::tempdir().unwrap();
    let rows: String = (0..1000).map(|i| format!("{{\"a\":{i}}}\n")).collect();
    for (odd, expected) in
        [("{\"a\":1.5}", DataType::Float64), ("{\"a\":\"x\"}", DataType::Utf8View), ("{\"b\":1}", DataType::Int64)]
    {
        let path = write(dir.path(), "x.jsonl", format!("{rows}{odd}\n"));
        for rejects in [Rejects::Error, Rejects::Collect { to: dir.path().join("rejects"), max: None }] {
            let sampled = SourceOptions { sample: Sample::Rows(100), rejects, ..SourceOptions::default() };
            let mut source = open(&[&path], &sampled).unwrap();
            let e = loop {
                match source.next_batch() {
                    Ok(batch) => assert!(batch.is_some(), "{odd}"),
                    Err(e) => break e,
                }
            };
            let IngestError::Surprise(record) = &e else { panic!("{e}") };
            assert_eq!(record.line, 1001);
            let again = SourceOptions { sample: Sample::Everything, ..sampled };
            let all = read(&[&path], &again).unwrap();
            assert_eq!((all.num_rows(), all.schema().field(0).data_type()), (1001, &expected));
        }
    }
}

const BAD_CSV: &str =
    "id,name,when\n1,a,2024-01-01\n2,b\nx,c,2024-01-01\n\n4,\"d\"x,2024-01-01\n5,\"e\ne\",2024-02-30\n6,f,\n";

#[test]
fn bad_records_are_errors_or_written_down() {
    let dir = tempfile::tempdir().unwrap();
    let types = [("id", DataType::Int32), ("name", DataType::Utf8View), ("when", DataType::Date32)];
    let path = write(dir.path(), "bad.csv", [BAD_CSV.as_bytes(), b"7,\xff,\n8,h,\n9,\"i,\n"].concat());
    let strict = SourceOptions { schema: schema(&types), ..SourceOptions::default() };
    let e = error(&[&path], &strict);
    assert!(e.ends_with("bad.csv: line 3 (byte 28): 2 fields where the file has 3 columns: 2,b"), "{e}");
    let to = dir.path().join("rejects.ndjson");
    for threads in [1, 3] {
        for piece in [1, 10, 1000] {
            let options = SourceOptions {
                rejects: Rejects::Collect { to: to.clone(), max: None },
                threads,
                chunk_bytes: Some(piece),
                ..strict.clone()
            };
            let mut source = open(&[&path], &options).unwrap();
            let rows = drain(source.as_mut()).unwrap();
            let ids = rows.column(0).as_any().downcast_ref::<Int32Array>().unwrap();
            assert_eq!((ids.values().as_ref(), source.rejects()), (&[1, 6, 8][..], 6));
            let rejects = read(&[&to], &SourceOptions { schema: None, ..SourceOptions::default() }).unwrap();
            let said = |column: &str| -> Vec<String> {
                let values = arrow_cast::cast(rejects.column_by_name(column).unwrap(), &DataType::Utf8).unwrap();
                let values = values.as_any().downcast_ref::<StringArray>().unwrap().clone();
                values.iter().map(|v| v.unwrap_or("-").to_owned()).collect()
            };
            assert_eq!(said("line"), ["3", "4", "6", "7", "10", "12"]);
            assert_eq!(said("column"), ["-", "id", "-", "when", "-", "-"]);
            assert_eq!(said("raw")[3], "5,\"e\ne\",2024-02-30");
            assert_eq!(said("raw_hex")[4], "372cff2c");
            assert!(said("reason")[5].contains("never closed"));
        }
    }
    let few = SourceOptions { rejects: Rejects::Collect { to, max: Some(2) }, ..strict };
    assert!(error(&[&path], &few).starts_with("more than 2 bad records; the last: "));
}

#[test]
fn records_that_are_too_large_are_passed_over() {
    let dir = tempfile::tempdir().unwrap();
    let huge = "z\n".repeat(50_000);
    let csv = write(dir.path(), "x.csv", format!("a,b\n1,x\n2,\"{huge}\"\n3,y\n"));
    let json =
        write(dir.path(), "x.ndjson", format!("{{\"a\":1}}\n{{\"a\":\"{}\"}}\n{{\"a\":3}}\n", "z".repeat(100_000)));
    for (path, types) in
        [(csv, vec![("a", DataType::Int64), ("b", DataType::Utf8View)]), (json, vec![("a", DataType::Int64)])]
    {
        for piece in [10, 3_000, 1_000_000] {
            let strict = SourceOptions {
                schema: schema(&types),
                record_bytes: 1_000,
                chunk_bytes: Some(piece),
                ..SourceOptions::default()
            };
            let e = error(&[&path], &strict);
            assert!(e.contains("larger than the 1000 bytes") && e.len() < 400, "{e}");
            let rejects = Rejects::Collect { to: dir.path().join("rejects"), max: None };
            let mut source = open(&[&path], &SourceOptions { rejects, ..strict }).unwrap();
            assert_eq!((drain(source.as_mut()).unwrap().num_rows(), source.rejects()), (2, 1), "{piece}");
        }
    }
}

#[test]
fn what_is_no_text_is_said_in_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let garbage: Vec<u8> = (0..5000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let utf16: Vec<u8> = "a,b\n1,2\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    for (name, bytes, expected) in [
        ("a.csv", garbage.clone(), "a.csv: "),
        ("a.ndjson", garbage, "a.ndjson: "),
        ("b.csv", [&[0xff, 0xfe], utf16.as_slice()].concat(), "iconv"),
        ("c.csv", utf16, "iconv"),
        ("d.csv", b"PAR1....".to_vec(), "is a Parquet file"),
        ("e.csv", compress(b"a\n1\n", Compression::Gzip), "must end in .gz"),
        ("h.parquet", b"nonsense nonsense".to_vec(), "h.parquet: not a readable Parquet file"),
        ("i.csv", b"a,a\n1,2\n".to_vec(), "column \"a\" occurs twice"),
        ("j.ndjson", b"{\"a\":1,\"a\":2}\n".to_vec(), "the key occurs twice"),
        ("k.ndjson", b"\n".to_vec(), "no columns found"),
        ("l.parquet.gz", b"x".to_vec(), "decompress it first"),
        ("m.csv.zst", b"a\n1\n".to_vec(), "damaged compressed data"),
        ("n.csv", Vec::new(), "no columns found"),
    ] {
        let e = error(&[write(dir.path(), name, bytes)], &SourceOptions::default());
        assert!(e.contains(expected), "{name}: {e}");
    }
    let options = SourceOptions { format: Some(FileFormat::Csv), ..SourceOptions::default() };
    assert!(error(&[write(dir.path(), "table.txt", "a\n1")], &SourceOptions::default()).contains("can't import .txt"));
    assert_eq!(lines(&read(&[dir.path().join("table.txt")], &options).unwrap()), [r#"{"a":1}"#]);
    let here = SourceOptions { spill: dir.path().to_path_buf(), ..SourceOptions::default() };
    let stdin = |bytes: &'static [u8]| open_with(&["-"], &here, bytes).map(drop).map_err(|e| e.to_string());
    assert!(stdin(b"a,b\n").unwrap_err().contains("--format"));
    assert!(stdin(b"{\"a\":1}\n").is_ok());
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let secret = write(dir.path(), "secret.csv", "a\n1\n");
        std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o0)).unwrap();
        match std::fs::read(&secret) {
            Ok(_) => eprintln!("skipped: this user may read everything"),
            Err(_) => assert!(error(&[secret], &SourceOptions::default()).contains("cannot open")),
        }
    }
}

#[test]
fn dialects() {
    let dir = tempfile::tempdir().unwrap();
    let path = write(dir.path(), "x.csv", "1;NA;'a''b'\n2;\"q;\n");
    let csv = CsvOptions {
        delimiter: Some(b';'),
        header: Some(false),
        quote: Mark::Byte(b'\''),
        nulls: vec!["NA".to_owned()],
        ..CsvOptions::default()
    };
    let options = SourceOptions { csv, ..SourceOptions::default() };
    let expected = [r#"{"column1":1,"column2":null,"column3":"a'b"}"#, r#"{"column1":2,"column2":"\"q","column3":""}"#];
    assert_eq!(lines(&read(&[&path], &options).unwrap()), expected);
    let csv = CsvOptions { delimiter: Some(b'"'), ..CsvOptions::default() };
    assert!(error(&[&path], &SourceOptions { csv, ..SourceOptions::default() }).contains("delimiter and quote"));
    let path = write(dir.path(), "y.csv", "a,,c\n,\"\",\"x\"\n");
    assert_eq!(lines(&read(&[path], &SourceOptions::default()).unwrap()), [r#"{"a":null,"column2":"","c":"x"}"#]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn pieces_and_threads_change_nothing(
        text in "(([a-b]|\"[a\n,\"]{0,3}\"|[0-9]{1,2}){0,2},?){0,4}(\r?\n(([a-b]|\"[a\n,]{0,3}\"|[0-9]{1,2}),){0,2}[a\"]?){0,12}",
        threads in 1usize..4, piece in 1usize..60, limit in 5usize..200, ahead in 0usize..5_000,
    ) {
        let dir = tempfile::tempdir().unwrap();
        let path = write(dir.path(), "x.csv", format!("x,y\n{text}"));
        let run = |threads, piece, ahead, to: &str| {
            let to = dir.path().join(to);
            let options = SourceOptions {
                schema: schema(&[("x", DataType::Utf8View), ("y", DataType::Int8)]),
                threads, ahead_bytes: ahead, chunk_bytes: Some(piece), record_bytes: limit,
                rejects: Rejects::Collect { to: to.clone(), max: None },
                ..SourceOptions::default()
            };
            read(&[&path], &options).map(|rows| (lines(&rows), std::fs::read_to_string(to).unwrap()))
        };
        let (rows, rejects) = run(1, 1 << 20, 1 << 20, "one").map_err(TestCaseError::fail)?;
        let (other_rows, other_rejects) = run(threads, piece, ahead, "two").map_err(TestCaseError::fail)?;
        prop_assert_eq!(rows, other_rows);
        prop_assert_eq!(rejects, other_rejects);
    }

    #[test]
    fn no_bytes_crash_a_reader(
        bytes in prop_oneof![
            prop::collection::vec(any::<u8>(), 0..200),
            "[a{}\\[\\]\",:\n\\\\u0-9ntf.e+-]{0,60}".prop_map(String::into_bytes),
        ],
        name in prop::sample::select(vec!["x.csv", "x.tsv", "x.ndjson", "x.csv.gz", "x.json.zst", "x.csv.lz4", "x.tsv.bz2", "x.parquet"]),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let path = write(dir.path(), name, bytes);
        for sample in [Sample::Rows(1), Sample::Everything] {
            match read(&[&path], &SourceOptions { sample, ..SourceOptions::default() }) {
                Ok(_) => {}
                Err(e) => prop_assert!(!e.contains('\n') && !e.contains("gave up near"), "{}", e),
            }
        }
    }
}

#[test]
fn objects_keyed_by_what_they_hold_are_maps_however_the_file_is_cut() {
    let dir = tempfile::tempdir().unwrap();
    let row = |at: usize| format!("{{\"a\":{at},\"m\":{{\"key {}\":1}}}}\n", at % 1_001);
    let of = |rows: usize| write(dir.path(), "x.ndjson", (0..rows).map(row).collect::<String>());
    for (threads, piece) in [(1, 1 << 20), (1, 5_000), (3, 50_000)] {
        let all =
            SourceOptions { sample: Sample::Everything, threads, chunk_bytes: Some(piece), ..SourceOptions::default() };
        for rows in [1_001, 3_003] {
            let rows = read(&[of(rows)], &all).unwrap();
            assert!(matches!(rows.schema().field(1).data_type(), DataType::Map(..)));
            assert_eq!(lines(&rows)[1_000], r#"{"a":1000,"m":{"key 1000":1}}"#);
        }
        let few = write(dir.path(), "few.ndjson", (0..60).map(|at| row(at % 19)).collect::<String>());
        let rows = read(&[few], &all).unwrap();
        let DataType::Struct(fields) = rows.schema().field(1).data_type().clone() else { panic!("no struct") };
        assert_eq!((fields.len(), fields[18].name().as_str()), (19, "key 18"));
    }
    let many = (0..10_001).map(|at| format!("{{\"k{at}\":1}}\n")).collect::<String>();
    let path = write(dir.path(), "y.ndjson", many);
    let all = SourceOptions { sample: Sample::Everything, chunk_bytes: Some(10_000), ..SourceOptions::default() };
    assert!(error(&[path], &all).contains("y.ndjson: more than 10000 columns"));
}

/// Lists and structs of a type, one in the other.
fn levels(data_type: &DataType) -> usize {
    match data_type {
        DataType::List(item) => 1 + levels(item.data_type()),
        DataType::Struct(fields) => 1 + fields.iter().map(|f| levels(f.data_type())).max().unwrap_or(0),
        _ => 0,
    }
}

#[test]
fn values_as_deep_as_may_be_are_read_and_types_are_less_deep() {
    let dir = tempfile::tempdir().unwrap();
    for (open, close, each) in [("[", "]", 1), ("{\"a\":", "}", 1), ("[{\"a\":", "}]", 2)] {
        for (deep, typed) in [(32 / each, 32), (34 / each, 32), (127 / each, 32)] {
            let line = format!("{{\"a\":{}null{}}}\n", open.repeat(deep), close.repeat(deep));
            let path = write(dir.path(), "x.ndjson", &line);
            for sample in [Sample::Rows(1), Sample::Everything] {
                let rows = read(&[&path], &SourceOptions { sample, ..SourceOptions::default() }).unwrap();
                assert_eq!(levels(rows.schema().field(0).data_type()), typed, "{line}");
                let again = lines(&rows).concat();
                // What is deeper is there as text.
                let rest = (deep - 32 / each, again.replace("\\\"", "\""));
                let text = format!("{}null{}", open.repeat(rest.0), close.repeat(rest.0));
                assert!(rest.1.contains(&if rest.0 == 0 { text } else { format!("\"{text}\"") }), "{again}");
            }
        }
    }
    let line = format!("{{\"a\":{}{}}}\n", "[".repeat(1_024), "]".repeat(1_024));
    assert!(error(&[write(dir.path(), "x.ndjson", line)], &SourceOptions::default()).contains("no columns found"));
}

#[test]
fn a_file_of_delimiters_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let commas = ",".repeat(1_000_000);
    for header in [true, false] {
        let csv = CsvOptions { header: Some(header), ..CsvOptions::default() };
        let options = SourceOptions { csv, ..SourceOptions::default() };
        let e = error(&[write(dir.path(), "x.csv", format!("{commas}\n"))], &options);
        assert!(e.contains("line 1: 1000001 columns where at most 1000000 can be read: ,,,"), "{e}");
        let e = error(&[write(dir.path(), "x.csv", format!("{}\n", &commas[..10_000]))], &options);
        assert!(e.contains("more than 10000 columns"), "{e}");
        let e = error(&[write(dir.path(), "x.csv", format!("a,b\n1,2\n{commas}\n"))], &options);
        assert!(e.contains("line 3 (byte 8): 1000001 fields where the file has 2 columns: ,,,"), "{e}");
    }
}

#[cfg(unix)]
#[test]
fn what_is_no_regular_file_is_refused_and_not_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let fifo = dir.path().join("pipe.csv");
    let socket = dir.path().join("socket.csv");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let mut odd = vec![socket, PathBuf::from("/dev/null"), PathBuf::from("/dev/zero")];
    match std::process::Command::new("mkfifo").arg(&fifo).status() {
        Ok(status) if status.success() => odd.push(fifo),
        _ => eprintln!("skipped: no mkfifo, so no FIFO"),
    }
    // By name, through a link, and through a pattern.
    for (at, path) in odd.clone().iter().enumerate() {
        let link = dir.path().join(format!("link{at}.csv"));
        std::os::unix::fs::symlink(path, &link).unwrap();
        odd.push(link);
    }
    odd.push(dir.path().join("*.csv"));
    let (to, refused) = std::sync::mpsc::channel();
    let paths = odd.clone();
    // They have no writer: a reader that opened one would wait for ever.
    std::thread::spawn(move || {
        for path in paths {
            for format in [FileFormat::Csv, FileFormat::Ndjson, FileFormat::Parquet] {
                let options = SourceOptions { format: Some(format), ..SourceOptions::default() };
                to.send(open(&[&path], &options).map(drop).map_err(|e| e.to_string())).unwrap();
            }
        }
    });
    for path in odd.iter().flat_map(|path| [path; 3]) {
        let result = refused.recv_timeout(std::time::Duration::from_secs(60));
        let e = result.unwrap_or_else(|_| panic!("{} is waited for", path.display())).unwrap_err();
        assert!(e.ends_with("csv: not a regular file; pipe it in, as -") || e.starts_with("/dev/"), "{e}");
        assert!(e.contains("not a regular file"), "{e}");
    }
    // A directory is taken for the files in it.
    write(dir.path(), "x.csv", "a\n1\n");
    assert_eq!(lines(&read(&[dir.path()], &SourceOptions::default()).unwrap()), [r#"{"a":1}"#]);
}

#[test]
fn nulls_where_none_may_be_are_bad_records_however_deep() {
    let dir = tempfile::tempdir().unwrap();
    let inner = Field::new("n", DataType::Int32, false);
    let item = Arc::new(Field::new("item", DataType::Struct(vec![inner].into()), false));
    let fields = vec![Field::new("a", DataType::List(item), false)];
    let path =
        write(dir.path(), "x.ndjson", "{\"a\":[{\"n\":1}]}\n{\"a\":[{\"n\":null}]}\n{\"a\":[null]}\n{}\n{\"a\":[]}\n");
    let options = SourceOptions {
        schema: Some(Arc::new(Schema::new(fields))),
        rejects: Rejects::Collect { to: dir.path().join("rejects"), max: None },
        ..SourceOptions::default()
    };
    let mut source = open(&[path], &options).unwrap();
    let rows = drain(source.as_mut()).unwrap();
    assert_eq!((lines(&rows), source.rejects()), (vec![r#"{"a":[{"n":1}]}"#.to_owned(), r#"{"a":[]}"#.to_owned()], 3));
    let lists = rows.column(0).as_any().downcast_ref::<ListArray>().unwrap();
    assert_eq!(lists.value_length(0), 1);
}
