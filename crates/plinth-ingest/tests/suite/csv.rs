//! CSV of any dialect: what is told from the file, and that nothing depends on how it is read.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use plinth_ingest::{CsvOptions, Level, Mark, Rejects, Sample, SourceOptions, open};
use proptest::prelude::*;

use crate::{drain, lines, read, write};

fn schema(fields: &[(&str, DataType)]) -> Option<SchemaRef> {
    let fields = fields.iter().map(|(name, t)| Field::new(*name, t.clone(), true));
    Some(Arc::new(Schema::new(fields.collect::<Vec<_>>())))
}

/// The rows of a text, or why there are none.
fn rows(text: impl AsRef<[u8]>, options: &SourceOptions) -> Result<Vec<String>, String> {
    let dir = tempfile::tempdir().unwrap();
    read(&[write(dir.path(), "x.csv", text)], options).map(|rows| lines(&rows))
}

fn sniffed(text: &str) -> Vec<String> {
    rows(text, &SourceOptions::default()).unwrap()
}

#[test]
fn the_same_rows_in_every_dialect() {
    let expected = [r#"{"a":1,"b":"x,y","c":1.5}"#, r#"{"a":2,"b":"p\nq","c":null}"#, r#"{"a":3,"b":"it's","c":2.0}"#];
    for text in [
        "a,b,c\n1,\"x,y\",1.5\n2,\"p\nq\",\n3,it's,2\n",
        "a;b;c\n1;x,y;1.5\n2;\"p\nq\";\n3;it's;2\n",
        "a\tb\tc\n1\tx,y\t1.5\n2\t\"p\nq\"\t\n3\tit's\t2\n",
        "a|b|c\r\n1|x,y|1.5\r\n2|\"p\nq\"|\r\n\r\n3|it's|2",
        "a^b^c\n1^x,y^1.5\n2^\"p\nq\"^\n3^it's^2\n",
        "a,b,c\r1,\"x,y\",1.5\r2,\"p\nq\",\r3,it's,2\r",
        "\u{feff}a,b,c\n1,\"x,y\",1.5\n2,\"p\nq\",\n3,\"it's\",2\n",
        "a,b,c\n1,'x,y',1.5\n2,'p\nq',\n3,'it''s',2\n",
        "a,b,c\n1,'x,y',1.5\n2,'p\nq',\n3,'it\\'s',2\n",
    ] {
        // Lines that end with a carriage return alone are told where there is no other line end.
        if text.starts_with("a,b,c\r1") {
            let text = text.replace('\n', " ");
            assert_eq!(sniffed(&text)[1], expected[1].replace("\\n", " "), "{text:?}");
            continue;
        }
        assert_eq!(sniffed(text), expected, "{text:?}");
    }
    let none = CsvOptions { quote: Mark::None, ..CsvOptions::default() };
    let none = SourceOptions { csv: none, ..SourceOptions::default() };
    assert_eq!(rows("a,b\n\"1\",x\"y\n", &none).unwrap(), [r#"{"a":"\"1\"","b":"x\"y"}"#]);
}

#[test]
fn names_are_told_from_values() {
    assert_eq!(sniffed("1,2024-01-01\n2,2024-01-02\n").len(), 2);
    assert_eq!(sniffed("n,2024-01-01\n2,2024-01-02\n"), [r#"{"n":2,"2024-01-01":"2024-01-02"}"#]);
    let with = |header| {
        let csv = CsvOptions { header: Some(header), ..CsvOptions::default() };
        rows("1,2\n3,4\n", &SourceOptions { csv, ..SourceOptions::default() }).unwrap()
    };
    assert_eq!(with(true), [r#"{"1":3,"2":4}"#]);
    assert_eq!(with(false)[0], r#"{"column1":1,"column2":2}"#);
    // Each file has a dialect of its own.
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "1.csv", "a,b\n1,x\n");
    write(dir.path(), "2.csv", "b;a\r\ny;2\r\n");
    let both = read(&[dir.path()], &SourceOptions::default()).unwrap();
    assert_eq!(lines(&both), [r#"{"a":1,"b":"x"}"#, r#"{"a":2,"b":"y"}"#]);
}

#[test]
fn numbers_are_written_as_is_said() {
    let text = "a;b;c;d\n1.234;3,5;007;1.5\n-12;1.234.567,25;1;2\n;;;\n";
    let german = CsvOptions { thousands: Some(b'.'), decimal: b',', ..CsvOptions::default() };
    let german = SourceOptions { csv: german, ..SourceOptions::default() };
    let expected = [
        r#"{"a":1234,"b":3.5,"c":"007","d":"1.5"}"#,
        r#"{"a":-12,"b":1234567.25,"c":"1","d":"2"}"#,
        r#"{"a":null,"b":null,"c":null,"d":null}"#,
    ];
    for sample in [Sample::Rows(100), Sample::Everything] {
        assert_eq!(rows(text, &SourceOptions { sample, ..german.clone() }).unwrap(), expected);
    }
    // It was not asked for: nothing is bent.
    assert_eq!(sniffed("a\tb\n1,234\t1\n1\t2\n"), [r#"{"a":"1,234","b":1}"#, r#"{"a":"1","b":2}"#]);
    let types = [
        ("a", DataType::Int32),
        ("b", DataType::Decimal128(9, 2)),
        ("c", DataType::Utf8View),
        ("d", DataType::Utf8View),
    ];
    let given = SourceOptions { schema: schema(&types), ..german.clone() };
    assert_eq!(rows(text, &given).unwrap()[1], r#"{"a":-12,"b":1234567.25,"c":"1","d":"2"}"#);
    let odd = SourceOptions { schema: schema(&[("a", DataType::Float64)]), ..german };
    let e = rows("a;b\n1.5;2\n", &SourceOptions { ignore_extra: true, ..odd }).unwrap_err();
    assert!(e.contains("--thousands"), "{e}");
}

#[test]
fn nothing_depends_on_where_the_bytes_are_cut() {
    let text = "a,b,c\n1,\"x\ny\",2024-02-29\r\n2,\"a\"\"b\",\n\n,é,2024-12-31\n3,\"odd\"x,2024-01-01\n4,5\n\"5\",\"\",2024-02-30\n6,\"open\n";
    let types = [("a", DataType::Int64), ("b", DataType::Utf8View), ("c", DataType::Date32)];
    let dir = tempfile::tempdir().unwrap();
    let path = write(dir.path(), "x.csv", text);
    let to = dir.path().join("rejects");
    let mut found = Vec::new();
    for piece in 1..text.len() + 1 {
        for (level, threads) in Level::all().into_iter().zip([1, 2, 3]) {
            let options = SourceOptions {
                schema: schema(&types),
                chunk_bytes: Some(piece),
                level: Some(level),
                threads,
                rejects: Rejects::Collect { to: to.clone(), max: None },
                ..SourceOptions::default()
            };
            let mut source = open(&[&path], &options).unwrap();
            let rows = lines(&drain(source.as_mut()).unwrap());
            found.push((rows, std::fs::read_to_string(&to).unwrap()));
        }
    }
    assert_eq!((found[0].0.len(), found[0].1.lines().count()), (3, 4));
    found.dedup();
    assert_eq!(found.len(), 1);
}

#[test]
fn a_piece_of_many_windows_is_read_whole() {
    let text: String =
        (0..40_000).map(|row| format!("{row},\"t,{row}\",{}.5,2024-01-{:02}\n", row % 97, 1 + row % 28)).collect();
    let text = format!("a,b,c,d\n{text}");
    let rows = rows(&text, &SourceOptions::default()).unwrap();
    assert_eq!(rows.len(), 40_000);
    assert_eq!(rows[39_999], r#"{"a":39999,"b":"t,39999","c":35.5,"d":"2024-01-16"}"#);
}

/// Not empty: quotes make a text of nothing, and nothing else does.
fn cell() -> impl Strategy<Value = String> {
    let cell = prop_oneof![
        "-?[0-9]{1,20}",
        "-?[0-9]{1,9}\\.[0-9]{1,20}",
        "-?[0-9]{0,3}[.]?[0-9]{0,3}([eE][+-]?[0-9]{1,2})?",
        "[0-9]{4}-[01][0-9]-[0-3][0-9]",
        "(19|20)[0-9]{2}-[01][0-9]-[0-3][0-9][T ][0-2][0-9]:[0-5][0-9](:[0-5][0-9])?Z?",
        "(true|false|NaN|-0|007|\\+1| 1)",
        "[a-zé]{1,20}",
    ];
    cell.prop_filter("empty", |cell| !cell.is_empty())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, ..ProptestConfig::default() })]

    /// What is in quotes is gone to value by value; what is not goes straight from the bytes.
    #[test]
    fn values_are_the_same_with_quotes_and_without(
        cells in prop::collection::vec(prop::collection::vec(cell(), 3), 1..40), given: bool, which in 0_usize..5,
    ) {
        let types = [DataType::Int64, DataType::Float64, DataType::Date32, DataType::Utf8View, DataType::Timestamp(TimeUnit::Microsecond, None)];
        let dir = tempfile::tempdir().unwrap();
        let to = dir.path().join("rejects");
        let of = |quote: &str, level| {
            let row = |row: &Vec<String>| row.iter().map(|cell| format!("{quote}{cell}{quote}")).collect::<Vec<_>>().join(",");
            let text = std::iter::once("a,b,c".to_owned()).chain(cells.iter().map(row)).collect::<Vec<_>>().join("\n");
            let typed = schema(&["a", "b", "c"].map(|name| (name, types[which].clone())));
            let options = SourceOptions {
                schema: if given { typed } else { None },
                csv: CsvOptions { delimiter: Some(b','), header: Some(true), ..CsvOptions::default() },
                rejects: Rejects::Collect { to: to.clone(), max: None },
                level: Some(level),
                ..SourceOptions::default()
            };
            rows(text, &options)
        };
        let expected = of("\"", Level::Scalar);
        for level in Level::all() {
            prop_assert_eq!(&of("", level), &expected);
        }
    }

    #[test]
    fn pieces_levels_and_threads_change_nothing(
        text in prop_oneof![
            "(([a-b]|\"[a\n,\"]{0,3}\"|[0-9]{1,2}){0,2},?){0,4}(\r?\n(([a-b]|\"[a\n,]{0,3}\"|[0-9]{1,2}),){0,2}[a\"]?){0,12}",
            "[ab1;,'\"\\\\\r\n\t]{0,120}",
        ],
        threads in 1_usize..4, piece in 1_usize..160, limit in 5_usize..200, ahead in 0_usize..5_000, header: Option<bool>, typed: bool,
        escape in prop::sample::select(vec![Mark::Sniffed, Mark::None, Mark::Byte(b'\\')]),
        quote in prop::sample::select(vec![Mark::Sniffed, Mark::None, Mark::Byte(b'\'')]),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let path = write(dir.path(), "x.csv", format!("x,y\n{text}"));
        let run = |threads, piece, ahead, level, to: &str| {
            let to = dir.path().join(to);
            let options = SourceOptions {
                schema: if typed { schema(&[("x", DataType::Utf8View), ("y", DataType::Int8)]) } else { None },
                ignore_extra: typed,
                sample: Sample::Everything,
                csv: CsvOptions { header, escape, quote, ..CsvOptions::default() },
                threads, ahead_bytes: ahead, chunk_bytes: Some(piece), record_bytes: limit, level: Some(level),
                rejects: Rejects::Collect { to: to.clone(), max: None },
                ..SourceOptions::default()
            };
            read(&[&path], &options).map(|rows| (lines(&rows), std::fs::read_to_string(to).unwrap()))
        };
        let whole = run(1, 1 << 20, 1 << 20, Level::Scalar, "one");
        for level in Level::all() {
            prop_assert_eq!(&run(threads, piece, ahead, level, "two"), &whole, "{:?}", level);
        }
    }
}
