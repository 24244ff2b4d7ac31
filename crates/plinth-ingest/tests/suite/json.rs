//! JSON: every arrangement, however it is cut, and what becomes of what does not fit.

mod arrangements;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrangements::same_however_cut;
use arrow_array::*;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use plinth_ingest::{JsonOptions, Level, Misfits, Rejects, Sample, SourceOptions, Unknown, open, open_with};

use crate::{drain, lines, read, write};

fn schema(fields: &[(&str, DataType)]) -> Option<SchemaRef> {
    let fields = fields.iter().map(|(name, t)| Field::new(*name, t.clone(), true));
    Some(Arc::new(Schema::new(fields.collect::<Vec<_>>())))
}

fn rooted(root: &str) -> JsonOptions {
    JsonOptions { root: Some(root.to_owned()), ..JsonOptions::default() }
}

fn error<P: AsRef<Path>>(inputs: &[P], options: &SourceOptions) -> String {
    let e = read(inputs, options).map(|rows| lines(&rows)).unwrap_err();
    assert!(!e.contains('\n'), "{e}");
    e
}

fn suite() -> Option<PathBuf> {
    let near = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/json/test_parsing");
    let told = std::env::var_os("PLINTH_JSON_SUITE").map(PathBuf::from);
    let found = told.or(Some(near)).filter(|path| path.is_dir());
    if found.is_none() {
        eprintln!("skipped: no JSONTestSuite; set PLINTH_JSON_SUITE to its test_parsing folder");
    }
    found
}

/// What the suite leaves open: these are taken, all others of its `i_` files refused. Numbers are grammar alone until a
/// column takes them; half a surrogate pair is no character; what is not UTF-8 is no text.
const TAKEN: [&str; 12] = [
    "i_number_double_huge_neg_exp.json",
    "i_number_huge_exp.json",
    "i_number_neg_int_huge_exp.json",
    "i_number_pos_double_huge_exp.json",
    "i_number_real_neg_overflow.json",
    "i_number_real_pos_overflow.json",
    "i_number_real_underflow.json",
    "i_number_too_big_neg_int.json",
    "i_number_too_big_pos_int.json",
    "i_number_very_big_negative_int.json",
    "i_structure_500_nested_arrays.json",
    "i_structure_UTF-8_BOM_empty_object.json",
];

#[test]
fn documents_are_what_the_suite_says_however_they_are_cut() {
    let Some(suite) = suite() else { return };
    let dir = tempfile::tempdir().unwrap();
    let (mut good, mut bad, mut open_taken) = (0, 0, Vec::new());
    for entry in std::fs::read_dir(suite).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let content = std::fs::read(&path).unwrap();
        let whole = write(dir.path(), "x.json", &content);
        // The document is a row, or its elements are.
        let options = SourceOptions {
            schema: schema(&[("value", DataType::Utf8View)]),
            json: rooted(""),
            ignore_extra: true,
            ..SourceOptions::default()
        };
        let taken = |path: &Path, options: &SourceOptions| {
            // That a column is nowhere is no fault of the JSON.
            match read(&[path], options).map(|rows| lines(&rows)) {
                Err(e) if e.contains("is in no input file") => Ok(Vec::new()),
                other => other,
            }
        };
        let expected = taken(&whole, &options);
        match name.as_bytes() {
            [b'y', b'_', ..] => {
                assert!(expected.is_ok(), "{name}: {expected:?}");
                good += 1;
            }
            [b'n', b'_', ..] => {
                let e = expected.clone().map(|rows| (name.clone(), rows)).unwrap_err();
                let located = e.contains("(byte ") || e.contains("UTF-16") || e.contains("no columns");
                assert!(located && !e.contains('\n'), "{name}: {e}");
                bad += 1;
            }
            _ if expected.is_ok() => open_taken.push(name.clone()),
            _ => {}
        }
        let levels = Level::all();
        for (nth, level) in levels.iter().enumerate() {
            // Every byte in turn with one kernel, some with the others.
            let step = if nth + 1 == levels.len() { (content.len() / 30).max(1) } else { (content.len() / 4).max(1) };
            for piece in (1..=content.len() + 1).step_by(step) {
                let (level, threads) = (*level, 1 + piece % 3);
                let cut = SourceOptions { chunk_bytes: Some(piece), threads, level: Some(level), ..options.clone() };
                assert_eq!(taken(&whole, &cut), expected, "{name} {piece} {level:?}");
            }
        }
        // The same within a document, among other things, and on a line of its own.
        let within = [b"{\"x\":[{}],\"rows\":[{\"value\":", content.as_slice(), b"},{\"value\":2}]}"].concat();
        let within = write(dir.path(), "y.json", within);
        let line: Vec<u8> = content.iter().map(|b| if b"\r\n".contains(b) { b' ' } else { *b }).collect();
        let line = write(dir.path(), "z.json", [b"{\"value\":", line.as_slice(), b"}\n"].concat());
        for (path, json) in [(within, rooted("rows")), (line, JsonOptions::default())] {
            let options = SourceOptions { json, ..options.clone() };
            let result = taken(&path, &options);
            if name.starts_with("y_") {
                assert!(result.is_ok(), "{name} {result:?}");
            } else if name.starts_with("n_") && !expected.clone().is_err_and(|e| e.contains("UTF-16")) {
                // Some are sound with what is around them here.
                let line_end = content.iter().any(|b| b"\r\n".contains(b));
                let closes = ["n_structure_object_with_trailing_garbage", "n_object_trailing_comment"];
                assert!(result.is_err() || line_end || closes.iter().any(|c| name.starts_with(c)), "{name} {result:?}");
            }
        }
    }
    open_taken.sort();
    assert_eq!(open_taken, TAKEN);
    assert!(good > 90 && bad > 180, "{good} {bad}");
}

#[test]
fn what_is_before_a_value_in_brackets_counts_as_part_of_it() {
    for text in
        ["{\"a\":0}{\"a\":}\n1\n{\"a\" {\"a\":0}{\"a\":0}\n{\"a\":}{\"a\":\\}\n", "{} 1 1 {\"a\":1} 2 {\"a\":2}"]
    {
        for limit in 1..20 {
            same_however_cut(text.as_bytes(), 1, 1, limit).unwrap();
        }
    }
}

#[test]
fn a_document_is_told_from_lines() {
    let dir = tempfile::tempdir().unwrap();
    let rows = |text: &str| lines(&read(&[write(dir.path(), "x.json", text)], &SourceOptions::default()).unwrap());
    let two = [r#"{"a":1}"#, r#"{"a":2}"#];
    for text in [
        "{\"a\":1}\n{\"a\":2}",
        "\n {\"a\":1} \r\n\n{\"a\":2}\n \n",
        "{\"a\":1}{\"a\":2}",
        "{\"a\":1} {\n\"a\":2\n}\n",
        "{\n\"a\":1}\n{\"a\":2}",
        "[{\"a\":1},{\"a\":2}]",
        "\u{feff} [ {\"a\":1}\n,\n{\"a\":2} ] ",
    ] {
        assert_eq!(rows(text), two, "{text}");
    }
    assert_eq!(rows("[[1,2],[3]]"), [r#"{"value":[1,2]}"#, r#"{"value":[3]}"#]);
    assert_eq!(rows("1\n2.5\n"), [r#"{"value":1.0}"#, r#"{"value":2.5}"#]);
    let e = error(&[write(dir.path(), "x.json", "{\"a\":1}\n2\n")], &SourceOptions::default());
    assert!(e.contains("line 2 (byte 8): not a JSON object: 2"), "{e}");
    let e = error(&[write(dir.path(), "x.json", "{\"a\":1}\n{\"a\":\n2}\n")], &SourceOptions::default());
    assert!(e.contains("line 2 (byte 8): broken JSON: the JSON ends too early (at byte 5 of the record)"), "{e}");
}

#[test]
fn a_file_without_a_sound_record_says_what_is_wrong_with_the_first() {
    let dir = tempfile::tempdir().unwrap();
    let deep = format!("{{\"a\":{}1{}}}\n", "[".repeat(2_000), "]".repeat(2_000));
    for (text, what) in [
        (deep.as_str(), "line 1 (byte 0): broken JSON: nested too deep (at byte 1028 of the record)"),
        ("\n{\"a\":01}\n", "line 2 (byte 1): broken JSON: a number with a leading zero"),
        ("{\"a\":tru}", "line 1 (byte 0): broken JSON: expected a JSON value"),
    ] {
        for sample in [Sample::Rows(10), Sample::Everything] {
            let options = SourceOptions { sample, threads: 2, ..SourceOptions::default() };
            let e = error(&[write(dir.path(), "x.json", text)], &options);
            assert!(e.contains("no columns found") && e.contains(what), "{e}");
        }
    }
    let e = error(&[write(dir.path(), "x.json", "\n")], &SourceOptions::default());
    assert!(e.contains("no columns found; give a schema"), "{e}");
}

#[test]
fn a_root_leads_into_a_document() {
    let dir = tempfile::tempdir().unwrap();
    let text = "{\"meta\":{\"pairs\":[0]},\"pairs\":[{\"x\":1},\n{\"x\":2}],\n\"n\":{\"x\":3}}";
    let path = write(dir.path(), "x.json", text);
    let at = |root: &str| SourceOptions { json: rooted(root), ..SourceOptions::default() };
    for root in ["pairs", "/pairs", "$.pairs", "$.pairs[*]", "$['pairs']"] {
        assert_eq!(lines(&read(&[&path], &at(root)).unwrap()), [r#"{"x":1}"#, r#"{"x":2}"#]);
    }
    assert_eq!(lines(&read(&[&path], &at("n")).unwrap()), [r#"{"x":3}"#]);
    assert_eq!(lines(&read(&[&path], &at("meta.pairs")).unwrap()), [r#"{"value":0}"#]);
    assert_eq!(lines(&read(&[&path], &at("/pairs/1/x")).unwrap()), [r#"{"value":2}"#]);
    let e = error(&[&path], &at("pears"));
    assert!(e.ends_with("x.json: --root leads to nothing in it; there are \"meta\", \"pairs\", \"n\""), "{e}");
    assert!(error(&[&path], &at("$..x")).contains("is no path to rows"));
    // What is around the rows is held to the same.
    for (text, expected) in [
        (
            "{\"pairs\":[{\"x\":1}],\"z\":01}",
            "line 1 (byte 24): broken JSON around the rows: a number with a leading zero",
        ),
        ("{\"pairs\":[{\"x\":1}]\n,}", "line 2 (byte 20): broken JSON around the rows: expected a key in quotes"),
        ("{\"pairs\":[{\"x\":1}]} x", "something after the JSON value"),
        ("{\"pairs\":[{\"x\":1}],\"pairs\":[]}", "the key that leads to the rows occurs twice"),
        ("{\"pairs\":[{\"x\":1}", "ends too early"),
        ("{\"pairs\":[{\"x\":1},", "ends too early"),
        ("{\"pairs\":[{\"x\":1},]}", "a comma with no value after it"),
        ("{\"pairs\":[{\"x\":1}]", "ends too early"),
        ("{\"pairs\":[{\"x\":1},,{\"x\":2}]}", "expected a JSON value"),
        ("{\"pairs\":[{\"x\":1} {\"x\":2}]}", "expected a comma or ]"),
    ] {
        for piece in [1, 7, 1_000] {
            let options =
                SourceOptions { schema: schema(&[("x", DataType::Int64)]), chunk_bytes: Some(piece), ..at("pairs") };
            let e = error(&[write(dir.path(), "y.json", text)], &options);
            assert!(e.contains(expected), "{text} {piece}: {e}");
        }
    }
}

#[test]
fn unknown_keys_are_never_lost_silently() {
    let dir = tempfile::tempdir().unwrap();
    let rows = "{\"a\":1}\n".repeat(2_000);
    let text = format!("{rows}{{\"a\":2,\"b\":[1, 2],\"s\":{{\"x\":1}},\"b c\":\"\\u0041\"}}\n");
    let path = write(dir.path(), "x.ndjson", text);
    let with = |unknown| SourceOptions {
        json: JsonOptions { unknown, ..JsonOptions::default() },
        sample: Sample::Rows(100),
        ..SourceOptions::default()
    };
    assert!(error(&[&path], &with(Unknown::Error)).contains("column \"b\": not seen before"));
    let mut source = open(&[&path], &with(Unknown::Report)).unwrap();
    assert_eq!(drain(source.as_mut()).unwrap().num_columns(), 1);
    let counts = source.unknown_keys().into_iter().collect::<Vec<_>>();
    assert_eq!(counts, [("b".to_owned(), 1), ("b c".to_owned(), 1), ("s".to_owned(), 1)]);
    let rows = read(&[&path], &with(Unknown::Extra)).unwrap();
    assert_eq!(rows.schema().field(1), &Field::new("_extra", DataType::Utf8View, true));
    let extra = rows.column(1).as_any().downcast_ref::<StringViewArray>().unwrap();
    assert_eq!((extra.null_count(), extra.value(2_000)), (2_000, r#"{"b":[1, 2],"s":{"x":1},"b c":"\u0041"}"#));
    // In structs and lists, with the names that lead there.
    let nested = write(dir.path(), "y.ndjson", "{\"s\":{\"l\":[{\"k\":1},{\"m\":2}]}}\n");
    let item = DataType::Struct(vec![Field::new("k", DataType::Int64, true)].into());
    let list = DataType::List(Arc::new(Field::new_list_field(item, true)));
    let s = DataType::Struct(vec![Field::new("l", list, true)].into());
    let rows = read(&[nested], &SourceOptions { schema: schema(&[("s", s)]), ..with(Unknown::Extra) }).unwrap();
    assert_eq!(lines(&rows), [r#"{"s":{"l":[{"k":1},{"k":null}]},"_extra":"{\"s.l.m\":2}"}"#]);
}

#[test]
fn misfits_may_become_nulls() {
    let dir = tempfile::tempdir().unwrap();
    let path =
        write(dir.path(), "x.ndjson", "{\"a\":1,\"b\":[1,\"x\"]}\n{\"a\":\"y\",\"b\":[2]}\nbroken\n{\"a\":1e400}\n");
    let to = dir.path().join("rejects.ndjson");
    let list = DataType::List(Arc::new(Field::new_list_field(DataType::Int64, true)));
    let options = SourceOptions {
        schema: schema(&[("a", DataType::Float64), ("b", list)]),
        misfits: Misfits::Null,
        rejects: Rejects::Collect { to: to.clone(), max: None },
        ..SourceOptions::default()
    };
    let mut source = open(&[&path], &options).unwrap();
    let rows = lines(&drain(source.as_mut()).unwrap());
    assert_eq!(rows, [r#"{"a":1.0,"b":[1,null]}"#, r#"{"a":null,"b":[2]}"#, r#"{"a":null,"b":null}"#]);
    assert_eq!(source.rejects(), 4);
    let said = std::fs::read_to_string(to).unwrap();
    let columns: Vec<String> = said
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["column"].to_string())
        .collect();
    assert_eq!(columns, ["\"b\"", "\"a\"", "null", "\"a\""]);
}

#[test]
fn records_that_are_too_large_are_passed_over_in_every_arrangement() {
    let dir = tempfile::tempdir().unwrap();
    let huge = "z".repeat(50_000);
    let texts = [
        format!("{{\"a\":1}}\n{{\"a\":\"{huge}\"}}\n{{\"a\":3}}\n"),
        format!("[{{\"a\":1}},{{\"a\":\"{huge}\"}},{{\"a\":3}}]"),
        format!("[{{\"a\":1}},{{\"a\":3}},{{\"a\":\"{huge}\"}}]"),
        format!("[{{\"a\":\"{huge}\"}},{{\"a\":1}},{{\"a\":3}}]"),
        format!("{{\n\"a\":1}}{{\"a\":\"{huge}\"}}{{\"a\":3}}"),
    ];
    for text in texts {
        let path = write(dir.path(), "x.json", &text);
        let mut first = None;
        for piece in [10, 3_000, 1_000_000] {
            let to = dir.path().join("rejects");
            let strict = SourceOptions {
                schema: schema(&[("a", DataType::Int64)]),
                record_bytes: 1_000,
                chunk_bytes: Some(piece),
                ..SourceOptions::default()
            };
            let e = error(&[&path], &strict);
            assert!(e.contains("larger than the 1000 bytes a record may have (--max-record)"), "{e}");
            assert!(e.contains("--root"), "{e}");
            let rejects = Rejects::Collect { to: to.clone(), max: None };
            let mut source = open(&[&path], &SourceOptions { rejects, ..strict }).unwrap();
            assert_eq!(lines(&drain(source.as_mut()).unwrap()), [r#"{"a":1}"#, r#"{"a":3}"#]);
            let said = std::fs::read_to_string(to).unwrap();
            assert_eq!(&said, first.get_or_insert(said.clone()), "{piece}");
        }
    }
}

#[test]
fn a_giant_document_takes_little_memory() {
    struct Giant {
        rows: u64,
        left: Vec<u8>,
    }
    impl std::io::Read for Giant {
        fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
            if self.left.is_empty() && self.rows > 0 {
                self.rows -= 1;
                let last = if self.rows == 0 { "]}" } else { "," };
                self.left = format!("{{\"n\":{}}}{last}", self.rows).into_bytes();
            }
            let len = to.len().min(self.left.len());
            to[..len].copy_from_slice(&self.left[..len]);
            self.left.drain(..len);
            Ok(len)
        }
    }
    let options = SourceOptions {
        schema: schema(&[("n", DataType::Int64)]),
        json: rooted("rows"),
        record_bytes: 10_000,
        threads: 2,
        ..SourceOptions::default()
    };
    let head = format!("{{\"x\":\"{}\",\"rows\":[", "y".repeat(1 << 20)).into_bytes();
    let mut source = open_with(&["-"], &options, Giant { rows: 300_000, left: head }).unwrap();
    let mut next = 300_000;
    while let Some(batch) = source.next_batch().unwrap() {
        let numbers = batch.column(0).as_any().downcast_ref::<Int64Array>().unwrap().clone();
        numbers.values().iter().for_each(|n| {
            next -= 1;
            assert_eq!(*n, next);
        });
    }
    assert_eq!(next, 0);
}

#[test]
fn columns_may_be_anywhere_in_a_row() {
    let dir = tempfile::tempdir().unwrap();
    let text = "{\"id\":1,\"user\":{\"name\":\"x\",\"at\":{\"city\":\"Bonn\",\"zip\":\"007\"}},\"tags\":[1,2]}\n\
                {\"user\":{\"at\":null},\"id\":2,\"more\":3}\n{\"id\":3,\"user\":null,\"tags\":[]}\n";
    let path = write(dir.path(), "x.ndjson", text);
    let with = |columns: &[(&str, &str)]| SourceOptions {
        json: JsonOptions {
            columns: columns.iter().map(|(name, path)| ((*name).to_owned(), (*path).to_owned())).collect(),
            ..JsonOptions::default()
        },
        ..SourceOptions::default()
    };
    let some = with(&[
        ("city", "$.user.at.city"),
        ("n", "id"),
        ("who", "/user/name"),
        ("t", "tags"),
        ("again", "user.at.city"),
    ]);
    let expected = [
        r#"{"city":"Bonn","n":1,"who":"x","t":[1,2],"again":"Bonn"}"#,
        r#"{"city":null,"n":2,"who":null,"t":null,"again":null}"#,
        r#"{"city":null,"n":3,"who":null,"t":[],"again":null}"#,
    ];
    assert_eq!(lines(&read(&[&path], &some).unwrap()), expected);
    let types = vec![Field::new("n", DataType::Int8, false), Field::new("zip", DataType::Utf8, true)];
    let given =
        SourceOptions { schema: Some(Arc::new(Schema::new(types))), ..with(&[("zip", "user.at.zip"), ("n", "id")]) };
    assert_eq!(lines(&read(&[&path], &given).unwrap())[0], r#"{"zip":"007","n":1}"#);
    let stdin = plinth_ingest::open_with(&["-"], &given, std::io::Cursor::new(text)).unwrap();
    assert_eq!(stdin.schema().fields().len(), 2);
    let needed = vec![Field::new("city", DataType::Utf8, false)];
    let needed = SourceOptions { schema: Some(Arc::new(Schema::new(needed))), ..with(&[("city", "user.at.city")]) };
    let e = read(&[&path], &needed).unwrap_err();
    assert!(e.contains("line 2") && e.contains("where a value is needed"), "{e}");
    for (columns, expected) in [
        (&[("a", "nothing")][..], "nothing is called \"nothing\" there"),
        (&[("a", "id.x")], "\"id\" is no object with fields in all rows"),
        (&[("a", "tags[0]")], "a column is one value"),
        (&[("a", "$")], "leads nowhere"),
        (&[("a", "user"), ("b", "user.name")], "another column's path"),
        (&[("a", "$[")], "write it as a.b"),
    ] {
        let e = read(&[&path], &with(columns)).unwrap_err();
        assert!(e.starts_with("column ") && e.contains(expected), "{e}");
    }
    // What the sample did not show is a surprise, as without paths.
    let text = format!("{}{{\"a\":{{\"b\":\"x\"}}}}\n", "{\"a\":{\"b\":1}}\n".repeat(100));
    let path = write(dir.path(), "y.ndjson", text);
    let few = SourceOptions { sample: plinth_ingest::Sample::Rows(64), ..with(&[("b", "a.b")]) };
    let mut source = plinth_ingest::open(&[&path], &few).unwrap();
    assert!(matches!(source.next_batch(), Err(plinth_ingest::IngestError::Surprise(_))));
}

#[test]
fn what_is_not_wanted_is_passed_over_unseen_if_that_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let text = "{\"a\":1,\"x\":{\"y\":[01,tru,\"]}\\\"\"]}}\n{\"x\":[1 2],\"a\":2}\n{\"a\":3,\"x\":[1,{]}\n{\"a\":4,\"x\":{\"k\":1}}\n";
    let path = write(dir.path(), "x.ndjson", text);
    let of = |validate, piece| {
        let schema = Schema::new(vec![Field::new("a", DataType::Int64, true)]);
        let options = SourceOptions {
            schema: Some(Arc::new(schema)),
            ignore_extra: true,
            chunk_bytes: Some(piece),
            rejects: plinth_ingest::Rejects::Collect { to: dir.path().join("rejects"), max: None },
            json: JsonOptions { validate, ..JsonOptions::default() },
            ..SourceOptions::default()
        };
        let mut source = plinth_ingest::open(&[&path], &options).unwrap();
        (lines(&drain(source.as_mut()).unwrap()), source.rejects())
    };
    for piece in [1, 30, 1_000] {
        assert_eq!(of(true, piece), (vec![r#"{"a":4}"#.to_owned()], 3));
        let (rows, rejects) = of(false, piece);
        // A bracket that is not closed is noticed all the same.
        assert_eq!((rows.join(""), rejects), (r#"{"a":1}{"a":2}{"a":4}"#.to_owned(), 1));
    }
}
