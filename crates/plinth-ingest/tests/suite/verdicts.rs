//! Random JSON and random damage to it: a text is refused where serde_json refuses it, however its values follow one another.

use plinth_core::random::Random;
use plinth_ingest::{FileFormat, JsonOptions, Sample, SourceOptions};
use serde_json::{Deserializer, Value};

use crate::{Draw, lines, read, write};

/// How values follow one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    Lines,
    Array,
    Values,
    /// In an array that a path leads to.
    Root,
}

fn value(random: &mut Random, depth: usize) -> String {
    match random.index(if depth == 0 { 5 } else { 8 }) {
        0 => "null".to_owned(),
        1 => random.pick(&["true", "false"]).to_string(),
        2 => random.index(1_000).to_string(),
        3 => format!("-{}.{}", random.index(10), random.index(100)),
        4 => random.pick(&[r#""""#, r#""a b""#, r#""[1}""#, r#""\"},{""#, r#""\u00e9\\""#, r#""é""#]).to_string(),
        5 => object(random, depth - 1),
        _ => array(random, depth - 1),
    }
}

fn object(random: &mut Random, depth: usize) -> String {
    let keys = ["a", "b", "c d", "e", "f\\n"];
    let first = random.index(keys.len());
    let members = (0..random.index(4)).map(|at| format!("\"{}\":{}", keys[(first + at) % 5], value(random, depth)));
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}

fn array(random: &mut Random, depth: usize) -> String {
    let items = (0..random.index(4)).map(|_| value(random, depth));
    format!("[{}]", items.collect::<Vec<_>>().join(*random.pick(&[",", ", "])))
}

fn document(random: &mut Random, framing: Framing) -> String {
    let objects = !random.one_in(3);
    let rows: Vec<String> =
        (0..random.index(6)).map(|_| if objects { object(random, 2) } else { array(random, 2) }).collect();
    let end = random.pick(&["", "\n"]).to_string();
    match framing {
        Framing::Lines => rows.join("\n") + &end,
        Framing::Values => rows.join(*random.pick(&["", " ", "\n\n"])) + &end,
        Framing::Array => format!("[{}]{end}", rows.join(*random.pick(&[",", ",\n", " , "]))),
        Framing::Root => {
            let (before, after) = (value(random, 1), value(random, 1));
            format!("{{\"x\":{before},\"p\":{{\"q\":[{}],\"y\":{after}}}}}{end}", rows.join(","))
        }
    }
}

/// One byte is another, is gone, or comes twice; or the end is gone.
fn damaged(random: &mut Random, text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for _ in 0..random.index(3) {
        let brackets: Vec<usize> = (0..bytes.len()).filter(|at| b"[]{}".contains(&bytes[*at])).collect();
        if bytes.is_empty() {
            break;
        }
        let at = random.index(bytes.len());
        match random.index(5) {
            0 | 1 if !brackets.is_empty() => bytes[*random.pick(&brackets)] = *random.pick(b"[]{}"),
            2 => bytes.truncate(at),
            3 => drop(bytes.remove(at)),
            _ => bytes.insert(at, *random.pick(b"[]{},:\"0 \n")),
        }
    }
    // A character may have been cut.
    String::from_utf8(bytes).unwrap_or_default()
}

/// The values of a text that are one after the other, if all of it is JSON.
fn values(text: &str) -> Option<Vec<Value>> {
    Deserializer::from_str(text).into_iter().collect::<Result<_, _>>().ok()
}

/// What is to be read, where that is beyond doubt; `Err` if the text is no JSON.
fn expected(text: &str, framing: Framing) -> Result<Option<Vec<Value>>, ()> {
    let alike = |rows: Vec<Value>| {
        let fits = rows.iter().all(Value::is_object) || rows.iter().all(Value::is_array);
        // Text without a value has no columns.
        (fits && !rows.is_empty()).then_some(rows)
    };
    if framing == Framing::Root {
        let mut document: Value = serde_json::from_str(text).map_err(drop)?;
        return Ok(match document.pointer_mut("/p/q").map(Value::take) {
            Some(Value::Array(rows)) => alike(rows),
            _ => None,
        });
    }
    let all = values(text).ok_or(())?;
    let by_line = text.lines().filter(|line| !line.trim_ascii().is_empty());
    let by_line = by_line.map(|line| serde_json::from_str(line).ok()).collect::<Option<Vec<Value>>>();
    Ok(match (all.as_slice(), by_line) {
        ([Value::Array(rows)], _) => alike(rows.clone()),
        (_, Some(rows)) => alike(rows),
        _ => None,
    })
}

#[test]
fn what_is_no_json_is_refused_however_values_follow() {
    let dir = tempfile::tempdir().unwrap();
    let mut random = Random(19);
    let (mut refused, mut accepted, mut unsure) = (0, 0, 0);
    for round in 0..8_000 {
        let framing = *random.pick(&[Framing::Lines, Framing::Array, Framing::Values, Framing::Root]);
        let text = document(&mut random, framing);
        let text = damaged(&mut random, &text);
        let root = (framing == Framing::Root).then(|| "p.q".to_owned());
        let options = SourceOptions {
            format: Some(FileFormat::Ndjson),
            sample: Sample::Everything,
            json: JsonOptions { root, ..JsonOptions::default() },
            chunk_bytes: random.one_in(2).then_some(1 + random.index(64)),
            ..SourceOptions::default()
        };
        let found = read(&[write(dir.path(), "x.json", &text)], &options);
        match (expected(&text, framing), found) {
            (Err(()), Ok(rows)) => panic!("{round}: {framing:?} {text:?} was read: {:?}", lines(&rows)),
            (Err(()), Err(e)) => {
                assert!(!e.ends_with(": "), "{text:?}: {e}");
                refused += 1;
            }
            (Ok(Some(rows)), Ok(found)) => {
                assert_eq!(found.num_rows(), rows.len(), "{round}: {framing:?} {text:?}");
                accepted += 1;
            }
            // A key twice is no flaw to serde_json.
            (Ok(Some(_)), Err(e)) => assert!(e.contains("occurs twice"), "{round}: {framing:?} {text:?}: {e}"),
            (Ok(None), _) => unsure += 1,
        }
    }
    eprintln!("{refused} refused, {accepted} read, {unsure} of neither kind");
    assert!(refused > 3_000 && accepted > 2_000, "{refused} {accepted} {unsure}");
}

#[test]
fn arrays_and_empty_objects_are_rows() {
    let dir = tempfile::tempdir().unwrap();
    let rows = |text: &str| {
        let options = SourceOptions { format: Some(FileFormat::Ndjson), ..SourceOptions::default() };
        read(&[write(dir.path(), "x.json", text)], &options).map(|rows| (rows.num_columns(), lines(&rows)))
    };
    let of = |rows: &[&str]| Ok((1, rows.iter().map(|row| (*row).to_owned()).collect::<Vec<_>>()));
    assert_eq!(rows("[1,2]\n[3]\n"), of(&[r#"{"value":[1,2]}"#, r#"{"value":[3]}"#]));
    assert_eq!(rows("[1][2]"), of(&[r#"{"value":[1]}"#, r#"{"value":[2]}"#]));
    assert_eq!(rows("[\n1\n]\n[2]"), of(&[r#"{"value":[1]}"#, r#"{"value":[2]}"#]));
    assert_eq!(rows("[]\n[]\n"), of(&[r#"{"value":[]}"#, r#"{"value":[]}"#]));
    assert_eq!(rows("[1,2]"), of(&[r#"{"value":1}"#, r#"{"value":2}"#]));
    assert_eq!(rows("{}"), of(&[r#"{"value":null}"#]));
    assert_eq!(rows("[{},{}]"), of(&[r#"{"value":null}"#, r#"{"value":null}"#]));
    assert_eq!(rows("{\"a\":1}\n{}\n"), of(&[r#"{"a":1}"#, r#"{"a":null}"#]));
    assert_eq!(rows("[]"), of(&[]));
    assert_eq!(rows(" [ ]\n"), of(&[]));
    let refused = |text: &str| rows(text).unwrap_err();
    for text in ["[1}", "[1}]", "[{\"a\":1}}", "[1,2}\n", "[}"] {
        assert!(refused(text).contains("expected a comma or ]"), "{text}: {}", refused(text));
    }
    assert!(refused("[1,2").ends_with("the JSON ends too early"), "{}", refused("[1,2"));
    assert!(refused("").contains("no columns found"));
}
