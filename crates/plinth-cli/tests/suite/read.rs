//! `read_json` and `read_csv`, and the functions that the engine lacks.

use crate::common::{Dir, Run, plinth};

fn sql(dir: &Dir, statement: &str) -> Run {
    plinth(dir, &["sql", "--format", "csv", "-c", statement])
}

fn pairs() -> Dir {
    let dir = Dir::new();
    let pair = |i: u32| format!("{{\"x0\":{i}.5,\"y0\":{},\"x1\":-{i},\"y1\":10.25}}", i % 90);
    let rows: Vec<String> = (0..100).map(pair).collect();
    let document = format!("{{\"made\":\"by hand\",\"pairs\":[{}],\"rest\":{{\"a\":[]}}}}", rows.join(",\n"));
    std::fs::write(dir.path("pairs.json"), document).unwrap();
    std::fs::write(dir.path("rows.ndjson"), rows.join("\n")).unwrap();
    dir
}

#[test]
fn one_answer_from_a_document_from_lines_from_a_file_and_with_any_number_of_threads() {
    let dir = pairs();
    plinth(&dir, &["import", "pairs.json", "--root", "pairs", "--to", "pairs.plinth", "-q"]).ok();
    let statement = |from: &str| {
        format!(
            "SELECT count(*) AS n, avg_exact(haversine(y0, x0, y1, x1, 6372.8)) AS mean, sum_exact(x0 + 0.1) AS s FROM {from}"
        )
    };
    let expected = sql(&dir, &statement("'pairs.plinth'")).ok().stdout;
    assert!(expected.contains("\n100,"), "{expected}");
    for from in [
        "read_json('pairs.json', root => 'pairs')",
        "read_json('pairs.json', ROOT => '$.pairs[*]', sample => 'all') AS t",
        "read_json('rows.ndjson')",
        "read_json(['rows.ndjson'], schema => 'x0 DOUBLE, y0 DOUBLE, x1 DOUBLE, y1 DOUBLE')",
    ] {
        for threads in ["1", "3"] {
            let found = plinth(&dir, &["sql", "--format", "csv", "--threads", threads, "-c", &statement(from)]).ok();
            assert_eq!(found.stdout, expected, "{from}");
        }
    }
}

#[test]
fn options_are_those_of_an_import() {
    let dir = Dir::new();
    std::fs::write(dir.path("a.csv"), "1;'x;y';NA\n2;z;3\n").unwrap();
    std::fs::write(dir.path("b.csv"), "4;w;5\n").unwrap();
    std::fs::write(dir.path("t.tsv"), "a\tb\n1\tx\n").unwrap();
    let all = "delim => ';', header => false, quote => '''', null => ['NA', '-']";
    let found = sql(&dir, &format!("SELECT * FROM read_csv('*.csv', {all}) AS t(n, t, m) ORDER BY n")).ok();
    assert_eq!(found.stdout, "n,t,m\n1,x;y,\n2,z,3\n4,w,5\n");
    let found = sql(&dir, &format!("SELECT column3 FROM read_csv(['b.csv', 'a.csv'], {all})")).ok();
    assert_eq!(found.stdout, "column3\n5\n\n3\n");
    assert_eq!(sql(&dir, "SELECT b FROM read_csv('t.tsv')").ok().stdout, "b\nx\n");

    std::fs::write(dir.path("bad.json"), "{\"a\":1}\n{\"a\":\"x\"}\n{\"a\":3,\"b\":4}\n").unwrap();
    let of = |options: &str| sql(&dir, &format!("SELECT * FROM read_json('bad.json', schema => 'a INT', {options})"));
    assert!(of("sample => 5").stderr.contains("line 2"));
    let kept = of("on_error => 'skip', rejects => 'bad.txt', unknown => 'report'").ok();
    assert_eq!(kept.stdout, "a\n1\n3\n");
    assert!(std::fs::read_to_string(dir.path("bad.txt")).unwrap().contains("\"line\":2"));
    let extra = of("on_error => 'null', unknown => 'extra'").ok();
    assert_eq!(extra.stdout, "a,_extra\n1,\n,\n3,\"{\"\"b\"\":4}\"\n");
    let few = sql(&dir, "SELECT a FROM read_json('bad.json', unknown => 'report', schema => 'a TEXT') LIMIT 1").ok();
    assert_eq!(few.stdout, "a\n1\n");
}

#[test]
fn without_a_text_for_null_an_empty_field_is_text() {
    let dir = Dir::new();
    std::fs::write(dir.path("n.csv"), "a,b\nx,1\n,2\n").unwrap();
    let count = |args: &str| {
        sql(&dir, &format!("SELECT count(a) AS a, count(*) AS n FROM read_csv('n.csv'{args})")).ok().stdout
    };
    assert_eq!(count(""), "a,n\n1,2\n");
    assert_eq!(count(", null => 'x'"), "a,n\n1,2\n");
    assert_eq!(count(", null => ['', 'x']"), "a,n\n0,2\n");
    assert_eq!(count(", null => []"), "a,n\n2,2\n");
}

#[test]
fn what_the_functions_do_not_understand_is_one_line() {
    let dir = pairs();
    for (from, start) in [
        ("read_json()", "plinth: read_json takes the name of a file"),
        ("read_json('pairs.json', 'pairs')", "plinth: read_json: 'pairs': options have names, such as root"),
        ("read_json('pairs.json', delim => ';')", "plinth: read_json has no argument \"delim\"; it has root"),
        ("read_csv('pairs.json', header => 'maybe')", "plinth: read_csv: header: true or false is expected"),
        ("read_csv('pairs.json', delim => 'ab')", "plinth: read_csv: delim: one ASCII character"),
        ("read_json('pairs.json', schema => 'a NONSENSE')", "plinth: read_json: schema: "),
        ("read_json('pairs.json', root => '$[')", "plinth: \"$[\" is no path to rows"),
        ("read_json('missing.json')", "plinth: missing.json: no such file"),
        ("read_json('pairs.json', columns => 'x0')", "plinth: read_json: columns: {'name': 'path', ...} is expected"),
        ("read_csv('pairs.json', thousands => '.')", "plinth: the separator of thousands and the decimal point"),
        ("read_json(1 + 1)", "plinth: read_json: files: text is expected"),
        (
            "read_json('pairs.json', on_error => 'skip')",
            "plinth: read_json: on-error is skip: name the file for bad records with rejects",
        ),
        (
            "read_json('pairs.json', max_rejects => 5)",
            "plinth: read_json: max-rejects: name the file for bad records with rejects",
        ),
        ("read_json('pairs.json', on_error => 'fail', rejects => 'bad')", "plinth: read_json: on-error is fail"),
        ("read_json('pairs.json', ignore_extra => true)", "plinth: read_json: ignore_extra: no column is extra"),
    ] {
        sql(&dir, &format!("SELECT * FROM {from}")).fails(1, start);
    }
}

#[test]
fn files_of_text_are_tables_by_their_names() {
    let dir = Dir::new();
    std::fs::write(dir.path("x.csv"), "a;b\n1;x,y\n2;\n").unwrap();
    std::fs::write(dir.path("x.json"), "[{\"a\":1,\"b\":\"x,y\"},{\"a\":2}]").unwrap();
    for to in ["x.tsv", "x.ndjson", "y.csv.gz", "y.jsonl.zst", "y.json.lz4", "y.tsv.bz2"] {
        plinth(&dir, &["convert", "x.csv", "--to", to, "-q"]).ok();
    }
    let expected = "a,b\n1,\"x,y\"\n2,\n";
    for from in [
        "x.csv",
        "x.json",
        "x.tsv",
        "x.ndjson",
        "y.csv.gz",
        "y.jsonl.zst",
        "y.json.lz4",
        "y.tsv.bz2",
        "./x.csv",
        "y.csv*",
    ] {
        assert_eq!(sql(&dir, &format!("SELECT a, b FROM '{from}' ORDER BY a")).ok().stdout, expected, "{from}");
    }
    std::fs::create_dir(dir.path("some")).unwrap();
    std::fs::write(dir.path("some/1.csv"), "a,b\n1,x\n").unwrap();
    std::fs::write(dir.path("some/2.csv"), "b\ta\ny\t2\n").unwrap();
    assert_eq!(sql(&dir, "SELECT sum(a) AS s, max(b) AS m FROM 'some/'").ok().stdout, "s,m\n3,y\n");
    assert_eq!(sql(&dir, "SELECT count(*) AS n FROM 'some/*.csv'").ok().stdout, "n\n2\n");
    sql(&dir, "SELECT * FROM 'missing.csv'").fails(1, "plinth: missing.csv: no such file");
}

#[test]
fn columns_come_from_within_rows() {
    let dir = Dir::new();
    let text =
        "{\"id\":1,\"user\":{\"name\":\"x\",\"at\":{\"city\":\"Bonn\"}},\"rest\":[01]}\n{\"user\":null,\"id\":2}\n";
    std::fs::write(dir.path("x.ndjson"), text.replace("01", "1")).unwrap();
    std::fs::write(dir.path("bad.ndjson"), text).unwrap();
    let expected = "city,id\nBonn,1\n,2\n";
    let columns = "columns => {'city': '$.user.at.city', 'id': 'id'}";
    let found = sql(&dir, &format!("SELECT * FROM read_json('x.ndjson', {columns}) ORDER BY id"));
    assert_eq!(found.ok().stdout, expected);
    let found = sql(&dir, &format!("SELECT id FROM read_json('x.ndjson', {columns}) WHERE city = 'Bonn'"));
    assert_eq!(found.ok().stdout, "id\n1\n");
    plinth(&dir, &["import", "x.ndjson", "--columns", "city=$.user.at.city,id", "--to", "x.plinth", "-q"]).ok();
    assert_eq!(sql(&dir, "SELECT * FROM 'x.plinth' ORDER BY id").ok().stdout, expected);
    let schema = "schema => 'city TEXT, id INT'";
    let bad = |more: &str| {
        sql(&dir, &format!("SELECT * FROM read_json('bad.ndjson', {columns}, {schema}{more}) ORDER BY id"))
    };
    bad("").fails(1, "plinth: bad.ndjson: line 1");
    assert_eq!(bad(", validate => false").ok().stdout, expected);
}
