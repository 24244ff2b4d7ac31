//! What goes to a store: how often it is asked, and what it is not asked for.

use plinth_objects::server::Asked;

use crate::common::{Dir, plinth};
use crate::objects::Store;

fn lists(asked: &[Asked]) -> usize {
    asked.iter().filter(|asked| asked.target.contains("list-type=2")).count()
}

fn of(asked: &[Asked], method: &str) -> usize {
    asked.iter().filter(|asked| asked.method == method).count()
}

#[test]
fn a_pattern_of_parquet_is_listed_once_and_anew_for_each_statement() {
    let store = Store::new();
    let count = "SELECT count(*) AS n FROM 's3://b/parquet/part-*.parquet'";
    store.server.asked();
    assert_eq!(store.sql(count).ok().stdout, "n\n6000\n");
    let asked = store.server.asked();
    assert_eq!(lists(&asked), 1, "{asked:?}");
    // In a statement that names it twice, once.
    store.sql(&format!("{count} WHERE id IN (SELECT id FROM 's3://b/parquet/part-*.parquet')")).ok();
    assert_eq!(lists(&store.server.asked()), 1);
    // The next statement sees what came meanwhile.
    let copy = |part: usize| format!("COPY (SELECT {part} AS a) TO 's3://b/made/part-{part}.parquet'");
    for from in ["s3://b/made/part-*.parquet", "s3://b/made/"] {
        let count = format!("SELECT count(*) AS n FROM '{from}'");
        let all = format!("{}; {count}; {}; {count}", copy(1), copy(2));
        assert_eq!(store.sql(&all).ok().stdout, "n\n1\nn\n2\n", "{from}");
        store.server.remove("b/made/part-1.parquet");
        store.server.remove("b/made/part-2.parquet");
    }
    // What is wrong is said as before.
    let run = store.sql("FROM 's3://b/parquet/none-*.parquet'");
    assert!(run.code == Some(1) && run.stderr.contains("no object matches"), "{}", run.stderr);
}

#[test]
fn folders_of_one_name_in_two_buckets_are_two() {
    let store = Store::new();
    let bytes = std::fs::read(store.dir.path("people.parquet")).unwrap();
    store.server.put("c/parquet/part-0.parquet", &bytes);
    for pattern in ["", "*.parquet"] {
        let both = format!(
            "SELECT count(*) AS n FROM 's3://b/parquet/{pattern}' UNION ALL SELECT count(*) FROM 's3://c/parquet/{pattern}'"
        );
        assert_eq!(store.sql(&format!("SELECT * FROM ({both}) ORDER BY n")).ok().stdout, "n\n2000\n6000\n");
    }
}

#[test]
fn folders_of_parquet_are_looked_at_for_each_statement() {
    let dir = Dir::new();
    std::fs::create_dir(dir.path("p")).unwrap();
    let counts = "SELECT count(*) AS n FROM 'p/*.parquet'; SELECT count(*) AS n FROM 'p/'; SELECT count(*) AS n FROM e";
    let all = format!(
        "COPY (SELECT 1 AS a) TO 'p/a.parquet'; CREATE EXTERNAL TABLE e STORED AS PARQUET LOCATION 'p/'; {counts}; \
         COPY (SELECT 2 AS a) TO 'p/b.parquet'; {counts}; COPY (SELECT 3 AS a UNION ALL SELECT 4) TO 'p/a.parquet'; {counts}"
    );
    let run = plinth(&dir, &["sql", "--format", "csv", "-c", &all]).ok();
    assert_eq!(run.stdout, "n\n1\n".repeat(3) + &"n\n2\n".repeat(3) + &"n\n3\n".repeat(3));
}

/// A table whose rows lie in files, with deletes that do not.
fn writable(dir: &Dir) {
    let make = "CREATE TABLE t (a INT PRIMARY KEY); INSERT INTO t SELECT x FROM generate_series(1, 1000) g(x)";
    plinth(dir, &["sql", "--db", "db", "-c", make]).ok();
    plinth(dir, &["sql", "--db", "db", "-c", "VACUUM t"]).ok();
    plinth(dir, &["sql", "--db", "db", "-c", "DELETE FROM t WHERE a <= 10"]).ok();
}

#[test]
fn a_pattern_over_the_files_of_a_writable_table_is_refused() {
    let store = Store::new();
    writable(&store.dir);
    let mut files = 0;
    for entry in std::fs::read_dir(store.dir.path("db/t")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        files += usize::from(name.ends_with(".plinth"));
        store.server.put(&format!("b/t/{name}"), &std::fs::read(&path).unwrap());
    }
    assert!(files > 0);
    let count = |from: &str| store.sql(&format!("SELECT count(*) AS n FROM '{from}'"));
    assert_eq!(count("db/t").ok().stdout, "n\n990\n");
    for from in
        ["db/t/*.plinth", "db/*/*.plinth", "db/**/*.plinth", "s3://b/t/*.plinth", "s3://b/*/*.plinth", "s3://b/t/**"]
    {
        let run = count(from);
        assert!(run.code == Some(1) && run.stderr.contains("name the folder"), "{from}: {}{}", run.stdout, run.stderr);
    }
    // Files that are asked for are read as they are.
    for from in ["db/t/_segment-*.plinth", "s3://b/t/_segment-*.plinth"] {
        assert_eq!(count(from).ok().stdout, "n\n1000\n", "{from}");
    }
    for verb in [&["verify"][..], &["export", "--to", "x.csv"]] {
        let run = store.run(&[verb, &["s3://b/t/*.plinth"]].concat());
        assert!(run.code == Some(1) && run.stderr.contains("name the folder"), "{}", run.stderr);
    }
    store.run(&["verify", "s3://b/t/_segment-*.plinth"]).ok();
}

#[test]
fn verify_and_export_ask_for_each_object_once() {
    let store = Store::new();
    for (args, files, lists_asked) in [
        (&["verify", "s3://b/people.plinth"][..], 1, 0),
        (&["verify", "s3://b/plinth/*.plinth"], 3, 1),
        (&["verify", "s3://b/plinth/"], 3, 1),
        (&["export", "s3://b/people.plinth", "--to", "x.csv", "--replace", "-q"], 1, 0),
        (&["export", "s3://b/plinth/", "--to", "x.csv", "--replace", "-q"], 3, 1),
        (&["export", "s3://b/plinth/*.plinth", "--to", "x.csv", "--replace", "-q"], 3, 1),
    ] {
        store.server.asked();
        store.run(args).ok();
        let asked = store.server.asked();
        let heads = of(&asked, "HEAD");
        assert_eq!((lists(&asked), heads), (lists_asked, 0), "{args:?}, {files} files: {asked:#?}");
    }
}
