//! What the program says when it refuses, and what becomes of rows of a statement that fails.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::common::{Dir, command, people, plinth, with_input, write_parquet};

/// Words that mean something only to those who made the parts this program is built from.
const INTERNAL: &str = include_str!("../../src/error/tests/internal.txt");

/// A message that people can do something with.
#[track_caller]
fn is_a_sentence(message: &str, about: &str) {
    let whole = message.strip_suffix('\n').unwrap_or_else(|| panic!("{about}: no whole line: {message:?}"));
    // The line of the statement that it is about stands below it, with a mark.
    let (line, place) = whole.split_once('\n').unwrap_or((whole, ""));
    assert!(
        place.lines().all(|line| line.starts_with("  ") && !line.chars().any(char::is_control)),
        "{about}: {place:?}"
    );
    assert!(line.starts_with("plinth: "), "{about}: {line}");
    assert!(!line.chars().any(char::is_control), "{about}: {line:?}");
    assert!(
        !line.trim_end().ends_with([':', ',', ';']) && !line.contains(": :") && !line.contains("::"),
        "{about}: {line}"
    );
    for word in INTERNAL.lines() {
        assert!(!line.contains(word), "{about}: {word:?} in {line}");
    }
}

/// Commands that fail, and what their messages name. `#` stands for a blank within an argument.
const COMMANDS: [(&str, &str); 67] = [
    ("import missing.csv --to o.plinth", "missing.csv"),
    ("import t.csv --to o.csv", "o.csv"),
    ("import t.csv --to there.plinth", "there.plinth"),
    ("import t.csv --to no/where/o.plinth", "no/where"),
    ("import t.csv --append t.csv", "t.csv"),
    ("import t.csv --to o.plinth --sort-by nothing", "nothing"),
    ("import t.csv --to o.plinth --index nothing", "nothing"),
    ("import t.csv --to o.plinth --schema id#NOTATYPE", "NOTATYPE"),
    ("import t.csv --to o.plinth --schema id#BIGINT,#id#TEXT", "id"),
    ("import t.csv --to o.plinth --schema id#BIGINT", "name"),
    ("import t.csv --to o.plinth --schema id#DATE,name#TEXT,amount#DOUBLE,day#DATE", "id"),
    ("import t.csv --to o.plinth --rejects no/where.ndjson", "no/where.ndjson"),
    ("import t.csv --to o.plinth --on-error skip", "name the file for bad records with rejects"),
    ("import t.csv --to t.plinth --rejects t.plinth --replace", "t.plinth"),
    ("import t.csv t.parquet --to o.plinth", "t.parquet"),
    ("import t.csv broken.parquet --to o.plinth --format csv", "broken.parquet"),
    ("import broken.parquet --to o.plinth", "broken.parquet"),
    ("import empty.csv --to o.plinth", "empty.csv"),
    ("import broken.json --to o.plinth", "broken.json"),
    ("import cut.csv.gz --to o.plinth", "cut.csv.gz"),
    ("import data.xyz --to o.plinth", "xyz"),
    ("import *.nothing --to o.plinth", "*.nothing"),
    ("import [ --to o.plinth", "["),
    ("import folder --to o.plinth", "folder"),
    ("import n.ndjson --to o.plinth --root a[", "a["),
    ("import n.ndjson --to o.plinth --root nothing", "n.ndjson"),
    ("import n.ndjson --to o.plinth --columns x=$.nothing[", "nothing"),
    ("import - --to o.plinth", "standard input"),
    ("import - t.csv --to o.plinth", "-"),
    ("export missing.plinth --to o.csv", "missing.plinth"),
    ("export t.plinth --to o.xyz", "o.xyz"),
    ("export t.plinth --to there.plinth", "there.plinth"),
    ("export t.plinth --to t.csv", "t.csv"),
    ("export t.plinth --to o.csv --columns nothing", "nothing"),
    ("export t.plinth --to o.csv --columns id,id", "id"),
    ("export t.plinth t.csv --to o.csv", "t.plinth"),
    ("export t.plinth --to -", "--to-format"),
    ("export broken.plinth --to o.csv", "broken.plinth"),
    ("inspect missing.plinth", "missing.plinth"),
    ("inspect broken.plinth", "broken.plinth"),
    ("inspect folder", "folder"),
    ("inspect t.csv", "t.csv"),
    ("verify missing.plinth", "missing.plinth"),
    ("verify broken.plinth", "broken.plinth"),
    ("verify t.csv", "t.csv"),
    ("lookup t.plinth nothing --equals 1", "nothing"),
    ("lookup t.plinth id --equals x", "x"),
    ("lookup t.plinth name --matches (", "("),
    ("lookup folder id --equals 1", "folder"),
    ("lookup missing.plinth id --equals 1", "missing.plinth"),
    ("compact missing", "missing"),
    ("compact t.csv", "t.csv"),
    ("table init missing", "missing"),
    ("table init tables --key nothing", "nothing"),
    ("probe missing", "missing"),
    ("sql --db no/folder -c SELECT#1", "no/folder"),
    ("sql --db t.csv -c SELECT#1", "t.csv"),
    ("sql missing.csv -c SELECT#1", "missing.csv"),
    ("sql t.cvs -c SELECT#1", "is t.csv meant?"),
    ("sql -o there.plinth -c SELECT#1", "there.plinth"),
    ("sql -o t.csv -c SELECT#1", "give --replace to replace it"),
    ("sql -o o.arrow -c SELECT#1", ".arrows"),
    ("sql -f missing.sql", "missing.sql"),
    ("sql --device missing.toml -c SELECT#1", "missing.toml"),
    ("sql --device t.csv -c SELECT#1", "t.csv"),
    ("sql -o no/where.csv -c SELECT#1", "no/where.csv"),
    (
        "sql --memory 16MB -c SELECT#count(w)FROM(SELECT#ntile(4)OVER(ORDER#BY#value)AS#w#FROM#range(0,3000000))",
        "--memory",
    ),
];

fn bench() -> Dir {
    let dir = Dir::new();
    std::fs::write(dir.path("t.csv"), "id,name,amount,day\n1,a,1.5,2024-01-01\n2,b,2.5,2024-01-02\n").unwrap();
    std::fs::write(dir.path("n.ndjson"), "{\"a\":1}\n{\"a\":2}\n").unwrap();
    std::fs::write(dir.path("broken.json"), "{\"a\": [1, 2").unwrap();
    std::fs::write(dir.path("broken.parquet"), [b"PAR1".as_slice(), &[b'x'; 40], &[60, 0, 0, 0], b"PAR1"].concat())
        .unwrap();
    std::fs::write(dir.path("encrypted.parquet"), [b"PARE".as_slice(), &[b'x'; 40], &[16, 0, 0, 0], b"PARE"].concat())
        .unwrap();
    std::fs::write(dir.path("cut.csv.gz"), [31, 139, 8, 0, 0, 0, 0, 0, 0, 3, 75]).unwrap();
    std::fs::write(dir.path("there.plinth"), "mine").unwrap();
    for empty in ["empty.csv", "data.xyz", "["] {
        std::fs::write(dir.path(empty), "").unwrap();
    }
    std::fs::create_dir(dir.path("folder")).unwrap();
    std::fs::create_dir(dir.path("tables")).unwrap();
    plinth(&dir, &["import", "t.csv", "--to", "t.plinth", "-q"]).ok();
    plinth(&dir, &["import", "t.csv", "--to", "tables/t.plinth", "-q"]).ok();
    let whole = std::fs::read(dir.path("t.plinth")).unwrap();
    std::fs::write(dir.path("broken.plinth"), &whole[..whole.len() - 9]).unwrap();
    write_parquet(&dir.path("t.parquet"), &people(10), 10);
    dir
}

#[test]
fn every_command_that_fails_says_what_where_and_what_to_do() {
    let dir = bench();
    let before = dir.entries();
    for (arguments, named) in COMMANDS {
        let arguments: Vec<String> = arguments.split(' ').map(|part| part.replace('#', " ")).collect();
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let run = with_input(&dir, &arguments, "");
        let about = arguments.join(" ");
        assert_eq!(run.code, Some(1), "{about}: {}{}", run.stdout, run.stderr);
        assert_eq!(run.stdout, "", "{about}");
        is_a_sentence(&run.stderr, &about);
        assert!(run.stderr.contains(named), "{about}: {named} in {}", run.stderr);
        assert_eq!(dir.entries(), before, "{about}");
    }
}

#[test]
fn no_folder_is_made_of_what_others_call_a_database_in_memory() {
    let dir = bench();
    let before = dir.entries();
    let run = with_input(&dir, &["sql", "--db", ":memory:", "-c", "SELECT 1"], "");
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("without --db tables are in memory"), "{}", run.stderr);
    assert_eq!(dir.entries(), before);
}

#[test]
fn rows_of_a_statement_that_fails_are_dropped() {
    let dir = Dir::new();
    // Some batches of rows are fine, the next is not.
    let small = "SET datafusion.execution.batch_size = 100";
    let fails = "SELECT value, 10 / (value - 900) AS x FROM range(0, 2000)";
    for (format, one) in
        [("csv", "n\n1\n"), ("tsv", "n\n1\n"), ("json", "{\"n\":1}\n"), ("markdown", "| n |\n| --: |\n| 1 |\n")]
    {
        let both = format!("{small}; SELECT 1 AS n; {fails}; SELECT 2 AS n");
        let run = plinth(&dir, &["sql", "--threads", "1", "--format", format, "-c", &both]);
        run.fails(1, "plinth: division by zero");
        assert!(!run.stderr.contains("whole result"), "{}", run.stderr);
        assert_eq!(run.stdout, one, "{format}");
        // A file is complete or is not there.
        let run = plinth(&dir, &["sql", "--threads", "1", "--format", format, "-o", "out", "-c", &both]);
        run.fails(1, "plinth: division by zero");
        assert!(dir.entries().is_empty());
    }
    // What was handed over before is whole rows, and the error says that it is not all.
    let late = "SELECT value, repeat('x', 50) AS t, 10 / (value - 99999) AS x FROM range(0, 100000) ORDER BY value";
    let late = late.replace(" ORDER BY value", "");
    for format in ["csv", "json"] {
        let run = plinth(&dir, &["sql", "--threads", "1", "--format", format, "-c", &late]);
        run.fails(1, "plinth: division by zero; the rows above are not the whole result");
        assert!(run.stdout.len() > 1 << 16 && run.stdout.ends_with('\n'));
        let last = run.stdout.lines().last().unwrap();
        match format {
            "json" => assert!(run.stdout.lines().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok())),
            _ => assert_eq!(last.split(',').count(), 3, "{last}"),
        }
    }
}

#[test]
fn a_result_is_handed_over_before_the_next_statement_ends() {
    let dir = Dir::new();
    let endless = "SELECT count(*) FROM range(0, 10000000) a CROSS JOIN range(0, 10000000) b";
    for (format, lines) in [("csv", vec!["n", "1"]), ("json", vec!["{\"n\":1}"]), ("table", vec!["n", "─", "1"])] {
        let mut sql = command(&dir, &["sql", "--format", format, "-c", &format!("SELECT 1 AS n; {endless}")]);
        let mut child = sql.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        for expected in lines {
            let mut line = String::new();
            out.read_line(&mut line).unwrap();
            assert_eq!(line.trim_end(), expected);
        }
        assert!(child.try_wait().unwrap().is_none(), "{format}: it ended");
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

#[test]
fn names_with_ends_of_lines_stay_on_their_lines() {
    let dir = Dir::new();
    std::fs::create_dir(dir.path("db")).unwrap();
    std::fs::write(dir.path("in.csv"), "\"two\nlines\",b\n1,2\n").unwrap();
    plinth(&dir, &["import", "in.csv", "--header", "--to", "db/ta\nble.plinth", "-q"]).ok();
    let sql = |format: &str, statement: &str| plinth(&dir, &["sql", "--db", "db", "--format", format, "-c", statement]);
    assert_eq!(sql("csv", "SELECT * FROM \"ta\nble\"").ok().stdout, "\"two\nlines\",b\n1,2\n");
    assert_eq!(sql("json", "SELECT * FROM \"ta\nble\"").ok().stdout, "{\"two\\nlines\":1,\"b\":2}\n");
    assert_eq!(sql("table", "SELECT * FROM \"ta\nble\"").ok().stdout.lines().next().unwrap(), "two\\nlines │ b");
    let markdown = sql("markdown", "SELECT * FROM \"ta\nble\"").ok().stdout;
    assert_eq!(markdown, "| two<br>lines | b |\n| --: | --: |\n| 1 | 2 |\n");
    assert_eq!(sql("table", "SHOW TABLES").ok().stdout, "name\n───────\nta\\nble\n");
    for (statement, named) in [
        ("SELECT \"no\nthing\" FROM \"ta\nble\"", "no\\nthing"),
        ("SELECT * FROM \"no\nthing\"", "no\\nthing"),
        ("SELECT * FROM 'no\n\u{1b}thing.csv'", "no\\n\\u{1b}thing.csv"),
        ("SELECT \"two\nlines\" + 'x\ty' FROM \"ta\nble\"", "TEXT"),
        ("SELECT CAST('a\n\u{1b}[31mb' AS INT)", "31mb"),
    ] {
        let run = sql("csv", statement);
        assert_eq!(run.code, Some(1), "{statement}: {}", run.stdout);
        is_a_sentence(&run.stderr, statement);
        assert!(run.stderr.contains(named), "{statement}: {}", run.stderr);
    }
    let text = plinth(&dir, &["inspect", "db/ta\nble.plinth"]).ok().stdout;
    assert!(text.starts_with("db/ta\\nble.plinth: ") && text.contains("\ntwo\\nlines  int64"), "{text}");
    // One row a line, whatever it is called.
    let columns = text.lines().skip_while(|line| !line.starts_with("column ")).take_while(|line| !line.is_empty());
    assert_eq!(columns.count(), 3, "{text}");
}
