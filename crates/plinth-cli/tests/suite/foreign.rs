//! Folders, patterns and files of other formats in FROM: the rows and columns that an import of the same would have.

use std::sync::Arc;

use arrow_array::types::Int8Type;
use arrow_array::{
    ArrayRef, BooleanArray, Decimal128Array, DictionaryArray, FixedSizeBinaryArray, Float32Array, Float64Array,
    Int8Array, Int32Array, Int64Array, LargeStringArray, RecordBatch, StringArray, Time32MillisecondArray,
    Time64MicrosecondArray, UInt8Array,
};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::file::metadata::{KeyValue, SortingColumn};
use parquet::file::properties::WriterProperties;

use crate::common::{Dir, Run, plinth, write_parquet};

fn sql(dir: &Dir, statement: &str) -> Run {
    plinth(dir, &["sql", "--format", "csv", "-c", statement])
}

fn write(dir: &Dir, name: &str, text: &str) {
    let path = dir.path(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// Rows in the order of a column, from a path in FROM; they are those of an import, with the same types.
fn rows(dir: &Dir, from: &str, order: &str) -> String {
    let imported = dir.path("imported.plinth");
    plinth(dir, &["import", from, "--to", "imported.plinth", "--replace", "-q"]).ok();
    let ask = |table: &str| {
        let found = sql(dir, &format!("SELECT * FROM '{table}' ORDER BY {order}")).ok().stdout;
        // Of text and views nothing is said, and what may be null is not compared.
        let types = sql(dir, &format!("DESCRIBE SELECT * FROM '{table}'")).ok().stdout;
        let types = types.lines().map(|line| line.rsplit_once(',').unwrap_or((line, "")).0.to_owned());
        (found, types.collect::<Vec<_>>())
    };
    let (found, types) = ask(from);
    let (expected, expected_types) = ask("imported.plinth");
    std::fs::remove_file(imported).unwrap();
    assert_eq!(found, expected, "{from}");
    assert_eq!(types, expected_types, "{from}");
    let counted = sql(dir, &format!("SELECT count(*) AS n FROM '{from}'")).ok().stdout;
    assert_eq!(counted, format!("n\n{}\n", found.lines().count() - 1), "{from}");
    found
}

fn parquet(dir: &Dir, name: &str, columns: Vec<(&str, ArrayRef)>) {
    let path = dir.path(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let has_nulls = |array: &ArrayRef| array.null_count() > 0;
    let fields = columns.iter().map(|(name, array)| Field::new(*name, array.data_type().clone(), has_nulls(array)));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let batch = RecordBatch::try_new(schema, columns.into_iter().map(|(_, array)| array).collect()).unwrap();
    write_parquet(&path, &batch, 2);
}

fn ids(ids: &[i32]) -> ArrayRef {
    Arc::new(Int32Array::from(ids.to_vec()))
}

#[test]
fn text_beside_other_things_and_in_folders_is_read_as_an_import_reads_it() {
    let dir = Dir::new();
    write(&dir, "csv/a.csv", "x,zip,big,far,e\n1,00701,123456789012345678901234567890,1e400,\"\"\n");
    write(&dir, "csv/b.csv", "zip,x\n00702,2\n");
    write(&dir, "csv/c.CSV", "x;zip\n3;00703\n4;00704\n");
    write(&dir, "csv/README.md", "x");
    write(&dir, "csv/.hidden.csv", "x\n100\n");
    std::fs::create_dir(dir.path("csv/old")).unwrap();
    write(&dir, "csv/more/still/d.tsv.md", "x");
    let expected =
        "x,zip,big,far,e\n1,00701,123456789012345678901234567890,1e400,\"\"\n2,00702,,,\n3,00703,,,\n4,00704,,,\n";
    assert_eq!(rows(&dir, "csv/", "x"), expected);
    assert_eq!(rows(&dir, "csv", "x"), expected);
    write(&dir, "csv/more/e.csv", "x\n5\n");
    plinth(&dir, &["export", "csv/more/e.csv", "--to", "csv/more/f.csv.gz", "-q"]).ok();
    assert_eq!(rows(&dir, "csv/", "x"), format!("{expected}5,,,,\n5,,,,\n"));
    assert_eq!(rows(&dir, "csv/**/*.csv", "x").lines().count(), 4);
    assert_eq!(rows(&dir, "csv/more", "x"), "x\n5\n5\n");

    write(&dir, "json/a.json", "{\"a\":1}\n");
    write(&dir, "json/deep/b.ndjson", "{\"a\":2,\"late\":\"x\"}\n");
    assert_eq!(rows(&dir, "json/", "a"), "a,late\n1,\n2,x\n");

    // What can't be read together is named.
    write(&dir, "json/deep/c.csv", "a\n1\n");
    sql(&dir, "SELECT * FROM 'json/'").fails(1, "plinth: json/a.json is ndjson but json/deep/c.csv is csv");
    sql(&dir, "SELECT * FROM 'csv/*'").fails(1, "plinth: csv/README.md: can't import .md files");
    plinth(&dir, &["import", "csv/b.csv", "--to", "csv/more/g.plinth", "-q"]).ok();
    sql(&dir, "SELECT * FROM 'csv/'").fails(1, "plinth: csv/: holds .plinth files and others (more/g.plinth)");
}

#[test]
fn names_of_folders_are_columns_whatever_names_the_files() {
    let dir = Dir::new();
    for (folder, id) in [("k=a/j=1", 1), ("k=a/j=2", 2), ("k=__HIVE_DEFAULT_PARTITION__/j=1", 3), ("k=b%2Fc/j=1", 4)] {
        write(&dir, &format!("csv/{folder}/f.csv"), &format!("id,v\n{id},x{id}\n"));
        write(&dir, &format!("json/{folder}/f.json"), &format!("{{\"id\":{id},\"v\":\"x{id}\"}}\n"));
        let v: ArrayRef = Arc::new(StringArray::from(vec![format!("x{id}")]));
        parquet(&dir, &format!("pq/{folder}/f.parquet"), vec![("id", ids(&[id])), ("v", v)]);
    }
    let all = "id,v,k,j\n1,x1,a,1\n2,x2,a,2\n3,x3,,1\n4,x4,b/c,1\n";
    for (folder, extension) in [("csv", "csv"), ("json", "json"), ("pq", "parquet")] {
        for from in [
            format!("{folder}/"),
            format!("{folder}/*/*/*.{extension}"),
            format!("{folder}/**/*.{extension}"),
            format!("{folder}/k*/j*/f.*"),
        ] {
            assert_eq!(rows(&dir, &from, "id"), all, "{from}");
        }
        let ask = |statement: &str| sql(&dir, &statement.replace('@', &format!("'{folder}/'"))).ok().stdout;
        assert_eq!(ask("SELECT k FROM @ ORDER BY k"), "k\na\na\nb/c\n\n");
        assert_eq!(ask("SELECT j, v FROM @ WHERE k = 'a' ORDER BY j DESC"), "j,v\n2,x2\n1,x1\n");
        assert_eq!(ask("SELECT count(*) AS n, count(k) AS k, min(k) AS a, max(k) AS z FROM @"), "n,k,a,z\n4,3,a,b/c\n");
        assert_eq!(ask("SELECT id FROM @ WHERE k IS NULL"), "id\n3\n");
        assert_eq!(ask("SELECT id FROM @ AS t WHERE t.k IS NOT NULL AND t.j = '1' AND id > 1"), "id\n4\n");
        assert_eq!(ask("SELECT count(*) AS n FROM @ WHERE k = 'none'"), "n\n0\n");
        assert_eq!(ask("SELECT k, count(*) AS n FROM @ GROUP BY k ORDER BY k"), "k,n\na,2\nb/c,1\n,1\n");
        let counted = sql(&dir, &format!("SELECT * FROM '{folder}/k=a/*/*.{extension}' ORDER BY id")).ok().stdout;
        assert_eq!(counted, "id,v,j\n1,x1,1\n2,x2,2\n");
    }
    let of = |call: &str| sql(&dir, &format!("SELECT * FROM {call} ORDER BY id")).ok().stdout;
    assert_eq!(of("read_csv('csv/')"), all);
    assert_eq!(of("read_json('json/*/*/*.json')"), all);
    assert_eq!(of("read_parquet('pq/*/*/*.parquet')"), all);
    assert_eq!(of("read_csv('csv/', types => {'j': 'BIGINT'}) WHERE j > 1"), "id,v,k,j\n2,x2,a,2\n");
    assert_eq!(of("read_csv('csv/', hive_partitioning => false)"), "id,v\n1,x1\n2,x2\n3,x3\n4,x4\n");

    write(&dir, "csv/k=a/j=3/g.csv", "id,k\n1,x\n");
    sql(&dir, "SELECT * FROM 'csv/'").fails(1, "plinth: column \"k\" is in files, and in names of folders");
    parquet(&dir, "pq/k=a/j=3/g.parquet", vec![("k", ids(&[1]))]);
    sql(&dir, "SELECT * FROM 'pq/'").fails(1, "plinth: column \"k\" is in files, and in names of folders");
}

#[test]
fn folders_and_patterns_of_parquet_lose_no_file() {
    let dir = Dir::new();
    for (at, name) in ["g/a.parquet", "g/b.PARQUET", "g/c.parq", "g/d/e.pq", "g/d/f/h.parquet"].iter().enumerate() {
        parquet(&dir, name, vec![("id", ids(&[i32::try_from(at).unwrap()]))]);
    }
    for name in ["g/.h.parquet", "g/_u.parquet", "g/.d/i.parquet", "g/_d/i.parquet"] {
        parquet(&dir, name, vec![("id", ids(&[100]))]);
    }
    assert_eq!(rows(&dir, "g/", "id"), "id\n0\n1\n2\n3\n4\n");
    assert_eq!(rows(&dir, "g", "id"), "id\n0\n1\n2\n3\n4\n");
    assert_eq!(rows(&dir, "g/d/**/*.p*", "id"), "id\n3\n4\n");
    assert_eq!(rows(&dir, "g/[a-z]/*/*.parquet", "id"), "id\n4\n");
    assert_eq!(rows(&dir, "g/*.parquet", "id"), "id\n0\n100\n");
    assert_eq!(sql(&dir, "SELECT count(*) AS n FROM (SELECT id FROM 'g/' LIMIT 3)").ok().stdout, "n\n3\n");

    write(&dir, "g/d/z.parquet", "");
    sql(&dir, "SELECT count(*) FROM 'g/'").fails(1, "plinth: g/d/z.parquet: not a readable Parquet file");
    write(&dir, "g/d/z.parquet", "no Parquet");
    sql(&dir, "SELECT count(*) FROM 'g/**/*.parquet'").fails(1, "plinth: g/d/z.parquet: not a readable Parquet file");
    std::fs::remove_file(dir.path("g/d/z.parquet")).unwrap();
    write(&dir, "g/d/x.csv", "id\n1\n");
    sql(&dir, "SELECT count(*) FROM 'g/'").fails(1, "plinth: g/a.parquet is parquet but g/d/x.csv is csv");
}

#[test]
fn columns_of_one_name_are_refused_by_it() {
    let dir = Dir::new();
    parquet(&dir, "twice.parquet", vec![("id", ids(&[1])), ("v", ids(&[2])), ("id", ids(&[3]))]);
    let refused = "plinth: twice.parquet: column \"id\" occurs twice";
    sql(&dir, "SELECT v FROM 'twice.parquet'").fails(1, refused);
    plinth(&dir, &["import", "twice.parquet", "--to", "x.plinth"]).fails(1, refused);
}

#[test]
fn dictionaries_of_parquet_are_their_values() {
    let dir = Dir::new();
    let keys = || Int8Array::from(vec![Some(0), None, Some(1), Some(0)]);
    let coded =
        |values: ArrayRef| -> ArrayRef { Arc::new(DictionaryArray::<Int8Type>::try_new(keys(), values).unwrap()) };
    let decimals = Decimal128Array::from(vec![150, -25]).with_precision_and_scale(10, 2).unwrap();
    let halves = arrow_cast::cast(&Float32Array::from(vec![1.5, -2.0]), &DataType::Float16).unwrap();
    parquet(
        &dir,
        "d/a.parquet",
        vec![
            ("id", ids(&[1, 2, 3, 4])),
            ("b", coded(Arc::new(BooleanArray::from(vec![true, false])))),
            ("t", coded(Arc::new(StringArray::from(vec!["x", "y"])))),
            ("i", coded(Arc::new(Int64Array::from(vec![7, 8])))),
            ("d", coded(Arc::new(decimals))),
            ("f", coded(Arc::new(Float64Array::from(vec![0.5, 1.5])))),
            ("h", coded(halves)),
        ],
    );
    let found = rows(&dir, "d/a.parquet", "id");
    assert!(found.starts_with("id,b,t,i,d,f,h\n1,true,x,7,1.50,0.5,1.5\n2,,,,,,\n"), "{found}");
    let one = sql(&dir, "SELECT id FROM 'd/a.parquet' WHERE b AND t = 'x' AND d > 1 AND i < 8 ORDER BY id").ok();
    assert_eq!(one.stdout, "id\n1\n4\n");

    // More values over row groups and files than the codes of one of them can tell apart.
    for file in 0..3 {
        let values: Vec<String> = (0..100).map(|n| format!("{file} {n}")).collect();
        let keys = Int8Array::from_iter_values(0..100);
        let values = Arc::new(StringArray::from(values));
        let first: ArrayRef = Arc::new(DictionaryArray::<Int8Type>::try_new(keys, values).unwrap());
        parquet(&dir, &format!("many/{file}.parquet"), vec![("t", first)]);
    }
    assert_eq!(sql(&dir, "SELECT count(DISTINCT t) AS n FROM 'many/'").ok().stdout, "n\n300\n");
    assert_eq!(rows(&dir, "many/", "t").lines().count(), 301);
}

#[test]
fn columns_of_parquet_are_united_as_in_an_import() {
    let dir = Dir::new();
    let decimal = |value: i128, precision, scale| -> ArrayRef {
        Arc::new(Decimal128Array::from(vec![value]).with_precision_and_scale(precision, scale).unwrap())
    };
    let text = |text: &str| -> ArrayRef { Arc::new(StringArray::from(vec![text])) };
    let coded: ArrayRef = Arc::new(["y"].into_iter().collect::<DictionaryArray<Int8Type>>());
    parquet(
        &dir,
        "u/a.parquet",
        vec![
            ("id", ids(&[1])),
            ("i", ids(&[-5])),
            ("u", Arc::new(UInt8Array::from(vec![200]))),
            ("f", Arc::new(Float32Array::from(vec![1.5]))),
            ("t", text("x")),
            ("s", text("x")),
            ("d", decimal(15, 2, 1)),
            ("a", ids(&[1])),
        ],
    );
    parquet(
        &dir,
        "u/b.parquet",
        vec![
            ("b", ids(&[2])),
            ("s", Arc::new(LargeStringArray::from(vec!["y"]))),
            ("t", coded),
            ("d", decimal(12_345, 5, 2)),
            ("f", Arc::new(Float64Array::from(vec![0.1]))),
            ("u", ids(&[-1])),
            ("i", Arc::new(Int64Array::from(vec![1 << 40]))),
            ("id", ids(&[2])),
        ],
    );
    let expected = "id,i,u,f,t,s,d,a,b\n1,-5,200,1.5,x,x,1.50,1,\n2,1099511627776,-1,0.1,y,y,123.45,,2\n";
    assert_eq!(rows(&dir, "u/", "id"), expected);
    let ask = |statement: &str| sql(&dir, statement).ok().stdout;
    let bounds = "SELECT min(i), max(i), min(d), max(d), min(a), max(b), count(a), count(b), max(f), min(t) FROM 'u/'";
    assert_eq!(ask(bounds).lines().nth(1), Some("-5,1099511627776,1.50,123.45,1,2,1,1,1.5,x"));
    assert_eq!(ask("SELECT id FROM 'u/' WHERE i > 1000"), "id\n2\n");
    assert_eq!(ask("SELECT id FROM 'u/' WHERE i = -5 AND d = 1.5 AND b IS NULL"), "id\n1\n");
    assert_eq!(ask("SELECT id FROM 'u/' WHERE d > 100 AND t = 'y'"), "id\n2\n");
    // The engine's own scan reads the same.
    assert_eq!(ask("SET plinth.parquet_scan = 'datafusion'; SELECT * FROM 'u/' ORDER BY id"), expected);

    for (name, query) in [("o/1.parquet", "SELECT 1 AS a"), ("o/2.parquet", "SELECT 2 AS b, 3 AS a")] {
        std::fs::create_dir_all(dir.path("o")).unwrap();
        sql(&dir, &format!("COPY ({query}) TO '{name}'")).ok();
    }
    assert_eq!(rows(&dir, "o/", "a"), "a,b\n1,\n3,2\n");

    // Fields of structs, too, where an import wants them all.
    for (name, query) in [("s/1.parquet", "{'a': 1}"), ("s/2.parquet", "{'b': 'x', 'a': 2}")] {
        std::fs::create_dir_all(dir.path("s")).unwrap();
        sql(&dir, &format!("COPY (SELECT {query} AS s) TO '{name}'")).ok();
    }
    assert_eq!(ask("SELECT s.a, s.b FROM 's/' ORDER BY 1"), "a,b\n1,\n2,x\n");

    parquet(&dir, "u/c.parquet", vec![("i", text("x"))]);
    let refused = "plinth: column \"i\" is Int64 in u/b.parquet but Utf8View in u/c.parquet";
    sql(&dir, "SELECT count(*) FROM 'u/'").fails(1, refused);
}

#[test]
fn times_of_other_units_are_compared_with_literals() {
    let dir = Dir::new();
    let (hour, ms) = (3_600_000_000, 3_600_000);
    parquet(
        &dir,
        "t.parquet",
        vec![
            ("id", ids(&[1, 2])),
            ("us", Arc::new(Time64MicrosecondArray::from(vec![hour, 2 * hour]))),
            ("ms", Arc::new(Time32MillisecondArray::from(vec![ms, 3 * ms]))),
        ],
    );
    let ask = |filter: &str| sql(&dir, &format!("SELECT id FROM 't.parquet' WHERE {filter} ORDER BY id")).ok().stdout;
    for column in ["us", "ms"] {
        assert_eq!(ask(&format!("{column} = TIME '01:00:00'")), "id\n1\n");
        assert_eq!(ask(&format!("TIME '01:00:00.000000001' <= {column}")), "id\n2\n");
    }
    assert_eq!(ask("us <> ms"), "id\n2\n");
    assert_eq!(ask("us < ms"), "id\n2\n");
}

#[test]
fn integers_that_arrow_lacks_are_refused_by_their_column() {
    // What Polars tells of a column of 128 bits.
    const TOLD: &str = "/////3YAAAAEAAAA8v///xQAAAAEAAEAAAAKAAsACAAKAAQA+P///wwAAAAIAAgAAAAEAAEAAAAEAAAA7P///zgAAAAgAAAAGAAAAAECAAAQABIABAAQABEACAAAAAwAAAAAAPT///+AAAAAAQAAAAgACQAEAAgAAQAAAGEA";
    let dir = Dir::new();
    let values: ArrayRef = Arc::new(FixedSizeBinaryArray::try_from_iter([[1u8; 16]].iter()).unwrap());
    let batch = RecordBatch::try_from_iter([("a", values)]).unwrap();
    let told = KeyValue::new("ARROW:schema".to_owned(), TOLD.to_owned());
    let properties = WriterProperties::builder().set_key_value_metadata(Some(vec![told])).build();
    let options = ArrowWriterOptions::new().with_skip_arrow_metadata(true).with_properties(properties);
    let file = std::fs::File::create(dir.path("wide.parquet")).unwrap();
    let mut writer = ArrowWriter::try_new_with_options(file, batch.schema(), options).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let refused = "plinth: wide.parquet: not a readable Parquet file: column \"a\" is of integers of 128 bits";
    sql(&dir, "SELECT * FROM 'wide.parquet'").fails(1, refused);
    plinth(&dir, &["import", "wide.parquet", "--to", "x.plinth"]).fails(1, refused);
}

/// Which columns a query asks for changes neither how the files are read nor what their rows are.
#[test]
fn a_file_is_the_same_whichever_columns_are_asked_for() {
    let dir = Dir::new();
    write(&dir, "mixed/a.csv", "id,v\n1,2\n2,3\n");
    write(&dir, "mixed/b.csv", "3,4\n5,6\n7,8\n");
    write(&dir, "bare.csv", "1,x,2.5\n2,y,3.5\n3,z,4.5\n");
    write(&dir, "days.csv", "2024-01-01,5\n2024-01-02,6\n");
    write(&dir, "blank.csv", "\n\na,b\n1,2\n\n3,4\n");
    write(&dir, "keys/k=a%2Fb/n=50%+5x/a.csv", "a\n1\n2\n");
    let ask = |what: &str, from: &str| sql(&dir, &format!("SELECT {what} FROM {from}")).ok().stdout;
    for (from, columns, rows) in [
        ("'mixed/'", "id v column1 column2", 5),
        ("'bare.csv'", "column1 column2 column3", 3),
        ("'days.csv'", "column1 column2", 2),
        ("'blank.csv'", "a b", 2),
        ("'keys/'", "a k n", 2),
    ] {
        let whole = format!("(SELECT row_number() OVER () AS r, * FROM {from}) AS s");
        assert_eq!(ask("count(*) AS n", from), format!("n\n{rows}\n"), "{from}");
        for column in columns.split(' ') {
            let of = |from: &str| ask(&format!("{column}, count(*) AS of"), &format!("{from} GROUP BY 1 ORDER BY 1"));
            assert_eq!(of(from), of(&whole), "{column} of {from}");
        }
    }
    assert_eq!(ask("column2", "'bare.csv'"), "column2\nx\ny\nz\n");
    assert_eq!(ask("DISTINCT k, n", "'keys/'"), "k,n\na/b,50%+5x\n");
    let named = "read_csv('bare.csv', header => false, names => ['p', 'q'])";
    assert_eq!(ask("*", named), "p,q,column3\n1,x,2.5\n2,y,3.5\n3,z,4.5\n");
    assert_eq!(ask("q", named), "q\nx\ny\nz\n");
    let typed = "read_csv('bare.csv', header => false, names => ['p', 'q'], types => {'p': 'TEXT'})";
    assert_eq!(ask("typeof(p) AS t, q", &format!("{typed} WHERE p = '2'")), "t,q\nVARCHAR,y\n");
    for (names, error) in
        [("['p', 'q', 'r', 's']", "there are more names than columns"), ("['p', 'p']", "\"p\" is there twice")]
    {
        sql(&dir, &format!("SELECT * FROM read_csv('bare.csv', header => false, names => {names})"))
            .fails(1, &format!("plinth: read_csv: names: {error}"));
    }
    // A record that is no object has no columns, not even where `value` is the only one that is asked for.
    write(&dir, "value.ndjson", "{\"value\":1,\"x\":2}\n5\n{\"value\":3,\"x\":4}\n");
    for what in ["*", "count(*)", "sum(value)", "x"] {
        sql(&dir, &format!("SELECT {what} FROM 'value.ndjson'"))
            .fails(1, "plinth: value.ndjson: line 2 (byte 18): not a JSON object");
    }
}

/// Values behind the sample that types are inferred of are as exact as those of an import, or are told.
#[test]
fn values_behind_a_sample_are_not_bent() {
    // A sample is of the first megabyte, whatever few rows of it are asked for.
    const MANY: usize = 220_000;
    let dir = Dir::new();
    for (name, first, later) in [
        ("a.csv", "1.5", "9007199254740993"),
        ("b.csv", "1", "007"),
        ("c.csv", "1", "+8"),
        ("d.csv", "1", " 12 "),
        ("e.csv", "true", "1"),
        ("f.ndjson", "1.5", "9007199254740993"),
        ("g.ndjson", "1", "\"0012\""),
    ] {
        let is_csv = name.ends_with("csv");
        let record = |a: &str| if is_csv { format!("{a},x\n") } else { format!("{{\"a\":{a},\"b\":\"x\"}}\n") };
        let header = if is_csv { "a,b\n" } else { "" };
        write(&dir, name, &format!("{header}{}{}", record(first).repeat(MANY), record(later)));
        let read = if is_csv { "read_csv" } else { "read_json" };
        for what in ["*", "a", "max(a)"] {
            let run = sql(&dir, &format!("SELECT {what} FROM {read}('{name}', sample => 3)"));
            assert!(run.stderr.contains("sample => 'all'"), "{what} of {name}: {} {}", run.stdout, run.stderr);
            let run = sql(&dir, &format!("SELECT {what} FROM {read}('{name}', sample => 'all')"));
            let stdout = run.ok().stdout;
            assert!(what == "max(a)" || stdout.contains(later.trim_matches('"').trim()), "{what} of {name}");
        }
        assert_eq!(
            sql(&dir, &format!("SELECT b FROM {read}('{name}', sample => 3)")).ok().stdout.lines().count(),
            MANY + 2
        );
    }
    let by_path = ["import", "f.ndjson", "--to", "f.plinth", "--columns", "a=a,b=b", "--sample", "3", "-q"];
    plinth(&dir, &by_path).ok();
    assert!(sql(&dir, "SELECT a FROM 'f.plinth'").ok().stdout.contains("9007199254740993\n"));
}

/// The order of several files, one behind the other, is more than that of their bounds, which leave out NULL and NaN.
#[test]
fn orders_of_several_files_hold_with_nulls_and_nan() {
    let dir = Dir::new();
    for (name, kinds) in [("numbers", 0), ("texts", 1), ("doubles", 2), ("whole", 3)] {
        for (nulls_first, at) in [false, true].into_iter().flat_map(|first| (0..5).map(move |at| (first, at))) {
            let mut values = vec![Some(2 * at), Some(2 * at + 1)];
            if kinds < 2 {
                values.insert(if nulls_first { 0 } else { 2 }, None);
            }
            let column: ArrayRef = match kinds {
                1 => Arc::new(values.iter().map(|v| v.map(|v| format!("v{v}"))).collect::<StringArray>()),
                2 => Arc::new([f64::from(2 * at), f64::NAN].into_iter().collect::<Float64Array>()),
                _ => Arc::new(Int32Array::from(values)),
            };
            let batch = RecordBatch::try_from_iter_with_nullable([("a", column, true)]).unwrap();
            let by = SortingColumn { column_idx: 0, descending: false, nulls_first };
            let properties = WriterProperties::builder().set_sorting_columns(Some(vec![by])).build();
            let folder = dir.path(&format!("{name}{nulls_first}"));
            std::fs::create_dir_all(&folder).unwrap();
            let file = std::fs::File::create(folder.join(format!("{at}.parquet"))).unwrap();
            let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
            writer.write(&batch).unwrap();
            writer.close().unwrap();
        }
        for (nulls_first, threads) in [(false, "1"), (false, "2"), (true, "1"), (true, "2")] {
            let order = format!("ORDER BY a NULLS {}", if nulls_first { "FIRST" } else { "LAST" });
            let ask = |statement: String| {
                plinth(&dir, &["sql", "--format", "csv", "--threads", threads, "-c", &statement]).ok().stdout
            };
            let from = format!("'{name}{nulls_first}/'");
            let sorted = |from: &str, rest: &str| ask(format!("SELECT a FROM {from} {order} {rest}"));
            // A value that is computed has no order that is told of.
            let computed = format!("(SELECT CASE WHEN random() < 2 THEN a END AS a FROM {from}) AS s");
            for rest in ["", "LIMIT 4", "LIMIT 3 OFFSET 5"] {
                assert_eq!(sorted(&from, rest), sorted(&computed, rest), "{from} {rest} by {threads}");
            }
            let numbered = |from: &str| {
                ask(format!("SELECT a, r FROM (SELECT a, rank() OVER ({order}) AS r FROM {from}) AS s ORDER BY r, a"))
            };
            assert_eq!(numbered(&from), numbered(&computed), "{from} by {threads}");
        }
    }
}
