//! Rows without ORDER BY come as files have them, whatever the threads and the memory.

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;

use super::Db;

/// Rows of the files, of several row groups.
const ROWS: usize = 300_000;

fn numbers(db: &Db, sql: &str) -> Vec<i64> {
    let batches = db.batches(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    batches.iter().flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values().to_vec()).collect()
}

fn is_in_order(db: &Db, sql: &str, expected: impl Iterator<Item = i64>) {
    let (found, expected) = (numbers(db, sql), expected.collect::<Vec<_>>());
    assert_eq!(found.len(), expected.len(), "{sql}");
    let other = found.iter().zip(&expected).position(|(found, expected)| found != expected);
    assert_eq!(other, None, "{sql}");
}

#[test]
fn rows_of_files_come_in_the_order_of_the_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let made = format!(
        "SELECT value AS id, value % 7 AS few, concat('text ', value % 1009) AS t, [value, -value] AS pair \
         FROM generate_series(1, {ROWS})"
    );
    let db = Db::open(folder.path());
    for name in ["a.plinth", "a.parquet"] {
        db.rows(&format!("COPY ({made}) TO '{}'", path(name)));
    }
    db.rows(&format!("COPY (SELECT id, few, t FROM '{}') TO '{}'", path("a.plinth"), path("a.csv")));
    let all = || 1..=i64::try_from(ROWS).unwrap();
    for memory in [8 << 30, 64 << 20] {
        let db = Db::open_within(folder.path(), plinth_format::Access::default(), memory);
        for file in ["a.plinth", "a.parquet", "a.csv"] {
            let file = format!("'{}'", path(file));
            for _ in 0..3 {
                is_in_order(&db, &format!("SELECT id, t FROM {file}"), all());
            }
            is_in_order(&db, &format!("SELECT id FROM {file} WHERE few = 3"), all().filter(|id| id % 7 == 3));
            let costly = format!("SELECT id, upper(t) FROM {file} WHERE id % 3 = 1 AND length(t) > 1");
            is_in_order(&db, &costly, all().filter(|id| id % 3 == 1));
            is_in_order(&db, &format!("SELECT id FROM {file} LIMIT 70000"), all().take(70_000));
            is_in_order(
                &db,
                &format!("SELECT id FROM {file} WHERE few = 5 LIMIT 10"),
                all().filter(|id| id % 7 == 5).take(10),
            );
            is_in_order(&db, &format!("SELECT id FROM {file} LIMIT 5 OFFSET 200000"), 200_001..=200_005);
            if !file.ends_with("csv'") {
                // What is dealt out of one partition has no order among others.
                let twice = format!("SELECT id FROM {file} UNION ALL SELECT -id FROM {file}");
                is_in_order(&db, &twice, all().chain(all().map(|id| -id)));
            }
            let numbered = format!("SELECT id FROM (SELECT id, row_number() OVER () AS n FROM {file}) WHERE id <> n");
            is_in_order(&db, &numbered, std::iter::empty());
        }
        let pairs = format!("SELECT unnest(pair) AS id FROM '{}'", path("a.plinth"));
        is_in_order(&db, &pairs, all().flat_map(|id| [id, -id]));
    }
    // What is written, too.
    db.rows(&format!("COPY (SELECT * FROM '{}' WHERE few > 2) TO '{}'", path("a.plinth"), path("b.parquet")));
    is_in_order(&db, &format!("SELECT id FROM '{}'", path("b.parquet")), all().filter(|id| id % 7 > 2));
}
