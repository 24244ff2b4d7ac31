//! Rows written in every arrangement and cut anywhere: the values that were written, and the same verdicts.

use std::sync::Arc;

use arrow_array::*;
use arrow_schema::{DataType, Field};
use plinth_core::random::Random;
use plinth_ingest::{JsonOptions, Level, Rejects, SourceOptions, Unknown, open};
use proptest::prelude::*;

use super::{rooted, schema};
use crate::{drain, lines, read, write};

/// Rows, and some ways to write them down.
type Row = (Option<f64>, Option<i64>, Option<String>, Vec<Option<(i64, bool)>>);

fn rows() -> impl Strategy<Value = Vec<Row>> {
    let float = prop_oneof![prop::num::f64::NORMAL, prop::num::f64::SUBNORMAL, (-1000_i32..1000).prop_map(f64::from)];
    let list = prop::collection::vec(prop::option::weighted(0.8, any::<(i64, bool)>()), 0..3);
    let text = "[a-c\"\\\\{}\\[\\],:\t\n\u{0}é\u{1f600}/]{0,12}|\\PC{0,20}";
    let row = (
        prop::option::weighted(0.8, float),
        prop::option::weighted(0.8, any::<i64>()),
        prop::option::weighted(0.8, text),
        list,
    );
    prop::collection::vec(row, 0..12)
}

fn batch(rows: &[Row]) -> RecordBatch {
    let inner = vec![Field::new("n", DataType::Int64, true), Field::new("b", DataType::Boolean, true)];
    let items: Vec<_> = rows.iter().flat_map(|row| &row.3).collect();
    let numbers = items.iter().map(|item| item.map(|item| item.0)).collect::<Int64Array>();
    let flags = items.iter().map(|item| item.map(|item| item.1)).collect::<BooleanArray>();
    let valid = items.iter().map(|item| item.is_some()).collect::<Vec<_>>();
    let structs = StructArray::new(inner.into(), vec![Arc::new(numbers), Arc::new(flags)], Some(valid.into()));
    let offsets = arrow_buffer::OffsetBuffer::from_lengths(rows.iter().map(|row| row.3.len()));
    let item = Arc::new(Field::new_list_field(structs.data_type().clone(), true));
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("f", Arc::new(rows.iter().map(|row| row.0).collect::<Float64Array>())),
        ("i", Arc::new(rows.iter().map(|row| row.1).collect::<Int64Array>())),
        ("t", Arc::new(rows.iter().map(|row| row.2.as_deref()).collect::<StringViewArray>())),
        ("l", Arc::new(ListArray::new(item, offsets, Arc::new(structs), None))),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true))).unwrap()
}

/// A row in JSON, its keys in one of many orders, with spaces in many places; `lines` allows no line ends.
fn spelled(row: &Row, seed: u64, lines: bool) -> String {
    let mut random = Random(seed);
    let mut next = |most: u64| random.below(most);
    let mut space =
        || if next(3) > 0 { "" } else { [" ", "\t", "  ", if lines { "\r" } else { "\n" }][next(4) as usize] };
    let json = |value: serde_json::Value| value.to_string();
    let items: Vec<String> = row
        .3
        .iter()
        .map(|item| match item {
            Some((n, b)) => format!("{{{}\"b\"{}:{}{b},\"n\":{n}{}}}", space(), space(), space(), space()),
            None => "null".to_owned(),
        })
        .collect();
    let mut members = vec![
        format!(
            "\"f\":{}{}",
            space(),
            row.0.map_or("null".to_owned(), |f| if f.abs() < 1e15 { format!("{f:?}") } else { format!("{f:e}") })
        ),
        format!("\"i\"{}:{}", space(), json(row.1.into())),
        format!("\"\\u0074\":{}{}", json(row.2.clone().into()), space()),
        format!("\"l\":[{}{}{}]", space(), items.join(","), space()),
    ];
    let by = seed as usize % 4;
    members.rotate_left(by);
    if seed.is_multiple_of(3) && row.0.is_none() {
        members.retain(|member| !member.starts_with("\"f\""));
    }
    format!("{}{{{}{}{}}}{}", space(), space(), members.join(","), space(), space())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, ..ProptestConfig::default() })]

    #[test]
    fn values_are_those_that_were_written_in_every_arrangement(
        rows in rows(), seed: u64, arrangement in 0..5, threads in 1_usize..4, piece in 1_usize..300, level in 0_usize..3,
    ) {
        let dir = tempfile::tempdir().unwrap();
        let text: Vec<String> = rows.iter().enumerate().map(|(at, row)| spelled(row, seed.wrapping_add(at as u64), arrangement == 0)).collect();
        let filler = r#"{"deep":[{"rows":[1,"]"]}],"s":"\"{[","rows":"#;
        let (text, json) = match arrangement {
            0 => (text.join("\n"), JsonOptions::default()),
            1 => (format!(" [{}] ", text.join(",")), JsonOptions::default()),
            2 => (format!("{{\"data\":{filler}[{}]}},\"z\":[]}}", text.join(",")), rooted("data.rows")),
            3 => (format!("[{{}},{{\"rows\":[{}]}},3]", text.join(",")), rooted("/1/rows")),
            // An object that is less than a line says that lines mean nothing.
            _ => (format!("{{\n\"l\":[]}}{}", text.join("")), JsonOptions::default()),
        };
        let path = write(dir.path(), "x.json", &text);
        let mut expected = rows;
        if arrangement == 4 {
            expected.insert(0, (None, None, None, Vec::new()));
        }
        let expected = batch(&expected);
        let level = Level::all()[level % Level::all().len()];
        let options = SourceOptions {
            schema: Some(expected.schema()), json, threads, chunk_bytes: Some(piece), level: Some(level), ..SourceOptions::default()
        };
        let taken = read(&[&path], &options);
        if expected.num_rows() == 0 {
            return Ok(());
        }
        match taken {
            Ok(taken) => prop_assert_eq!(taken, expected),
            // A column that no row has is one that the file lacks.
            Err(e) => prop_assert!(e.contains("is in no input file"), "{} {}", e, text),
        }
    }

    #[test]
    fn records_that_are_broken_are_the_same_however_they_are_cut(
        text in "((\\{\"a\":[0-9]{1,3}\\}|\\{\"a\":\"x\"\\}|\\{\"a\"|[\\]}\"\\[,x]|\\{\"a\":[\"b\\\\]{0,3}\\}|\u{e9}|1){0,2}[, \n]{1,2}){0,12}",
        array: bool, threads in 1_usize..4, piece in 1_usize..40, limit in 3_usize..40, bad_byte in prop::option::of(0_usize..60),
    ) {
        let mut bytes = if array { format!("[{text}") } else { text }.into_bytes();
        if let Some(byte) = bad_byte.and_then(|at| bytes.get_mut(at)) {
            *byte = 0xff;
        }
        same_however_cut(&bytes, threads, piece, limit)?;
    }
}

/// A record of doubles, spelled like others as a rule.
fn alike() -> impl Strategy<Value = String> {
    let number = prop_oneof![
        12 => "-?(0|[1-9][0-9]{0,2})\\.[0-9]{1,16}",
        2 => "-?[0-9]{1,9}(\\.[0-9]{1,18})?([eE][+-]?[0-9]{1,3})?",
        1 => "null|\"x\"|1\\.|-|01\\.5|\\{\\}|\\[1\\]| ",
    ];
    let spelling = prop_oneof![
        16 => Just(["{\"a\":", ",\"b\":", "}"]),
        2 => Just([" {\"a\": ", " , \"b\": ", " }"]),
        2 => Just(["{\"b\":", ",\"a\":", "}"]),
        1 => prop::sample::select(vec![
            ["{\"a\":", ",\"a\":", "}"],
            ["{\"a\":", ",\"c\":", "}"],
            ["{\"a\":", ",\"b\":", ",\"c\":\"x\"}"],
            ["{\"c\":{},\"a\":", ",\"b\":", "}"],
            ["{\"a\" :", ",\"b\":", "}"],
            ["{\"a\":", ";\"b\":", "}"],
            ["{\"a\":", ",\"b\":", "]"],
            ["{\"\\u0061\":", ",\"b\":", "}"],
        ]),
    ];
    (spelling, number.clone(), number).prop_map(|([a, b, end], x, y)| format!("{a}{x}{b}{y}{end}"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn records_that_are_spelled_alike_are_what_they_are_one_by_one(
        records in prop::collection::vec(alike(), 1..40), array: bool, threads in 1_usize..3, piece in 100_usize..2_000, level in 0_usize..3,
    ) {
        let dir = tempfile::tempdir().unwrap();
        let run = |text: &str, chunk_bytes, level| {
            let path = write(dir.path(), "x.json", text);
            let rejects = dir.path().join("rejects");
            let options = SourceOptions {
                schema: schema(&[("a", DataType::Float64), ("b", DataType::Float64)]),
                json: JsonOptions { unknown: Unknown::Report, ..JsonOptions::default() },
                rejects: Rejects::Collect { to: rejects.clone(), max: None },
                threads, chunk_bytes, level,
                ..SourceOptions::default()
            };
            let (rows, unknown) = match open(&[path], &options) {
                Ok(mut source) => {
                    let rows = drain(source.as_mut()).map_or_else(|e| vec![e], |rows| lines(&rows));
                    (rows, source.unknown_keys().values().sum())
                }
                Err(e) => (vec![e.to_string()], 0),
            };
            let unknown: u64 = unknown;
            (rows, unknown, std::fs::read_to_string(rejects).unwrap_or_default().lines().count())
        };
        let level = Level::all().get(level).copied();
        // Both columns are in every file; nothing else is spelled so.
        let first = "{\"b\" :0,\"a\" :0}";
        let whole = match array {
            true => format!("[{first},{}]", records.join(",\n")),
            false => format!("{first}\n{}\n", records.join("\n")),
        };
        let (rows, unknown, rejected) = run(&whole, Some(piece), level);
        // One by one nothing is learned.
        let mut expected = (Vec::new(), 0, 0);
        for record in &records {
            let text = if array { format!("[{first},{record}]") } else { format!("{first}\n{record}") };
            let (rows, unknown, rejected) = run(&text, None, None);
            expected.0.extend(rows.into_iter().skip(1));
            expected.1 += unknown;
            expected.2 += rejected;
        }
        // Brackets that do not match may join records of an array.
        if !(array && whole.contains("]\n") | whole.contains("],")) {
            prop_assert_eq!(rows.into_iter().skip(1).collect::<Vec<_>>(), expected.0, "{}", whole);
            prop_assert_eq!((unknown, rejected), (expected.1, expected.2), "{}", whole);
        }
    }
}

/// Whether rows, rejects and the error at the end are those of the text read in one piece.
pub(super) fn same_however_cut(bytes: &[u8], threads: usize, piece: usize, limit: usize) -> Result<(), TestCaseError> {
    let dir = tempfile::tempdir().unwrap();
    let path = write(dir.path(), "x.json", bytes);
    let run = |threads, piece, to: &str| {
        let to = dir.path().join(to);
        let options = SourceOptions {
            schema: schema(&[("a", DataType::Int64)]),
            threads,
            chunk_bytes: Some(piece),
            record_bytes: limit,
            rejects: Rejects::Collect { to: to.clone(), max: None },
            ..SourceOptions::default()
        };
        // An error comes after the rows before it. Whether a record that is too large has the column is not looked at
        // where it is found while cutting.
        let mut rows = Vec::new();
        let end = match open(&[&path], &options) {
            Ok(mut source) => loop {
                match source.next_batch() {
                    Ok(Some(batch)) => rows.extend(lines(&batch)),
                    Ok(None) => break None,
                    Err(e) => break Some(e.to_string()).filter(|e| !e.contains("is in no input file")),
                }
            },
            Err(e) => Some(e.to_string()),
        };
        (rows, end, std::fs::read_to_string(to).unwrap_or_default())
    };
    let (rows, end, rejects) = run(1, 1 << 20, "one");
    let (other_rows, other_end, other_rejects) = run(threads, piece, "two");
    prop_assert_eq!(rows, other_rows, "{}", String::from_utf8_lossy(bytes));
    prop_assert_eq!(end, other_end);
    prop_assert_eq!(rejects, other_rejects, "{}", String::from_utf8_lossy(bytes));
    Ok(())
}
