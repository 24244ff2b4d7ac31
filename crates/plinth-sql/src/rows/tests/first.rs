//! The first rows of an order: own operators give rows that the question allows, in the order in which the engine has them.

use std::collections::HashMap;

use arrow_array::RecordBatch;
use plinth_core::random::Random;

use super::native::{COLUMNS as TYPES, FILTERS, tables};
use super::{Db, texts};

/// Questions of each set of tables.
const QUESTIONS: usize = 40;

/// Columns, and what is computed of them.
const COLUMNS: [&str; 16] =
    ["id", "s", "u", "i", "b", "f", "d", "m", "t", "ts", "n", "bin", "w", "i % 3", "upper(s)", "length(u)"];

/// A question: its columns, of which the first are those of the order, and what follows the table.
pub(super) struct Question {
    columns: Vec<&'static str>,
    keys: usize,
    filter: &'static str,
    order: String,
    limit: String,
    skip: usize,
    count: usize,
}

pub(super) fn question(random: &mut Random) -> Question {
    let mut columns: Vec<&str> = Vec::new();
    let (keys, others) = (1 + random.index(3), random.index(4));
    while columns.len() < keys + others {
        let column = COLUMNS[random.index(COLUMNS.len())];
        if !columns.contains(&column) {
            columns.push(column);
        }
    }
    let order = (0..keys).map(|key| {
        let options = ["", " DESC", " ASC NULLS FIRST", " DESC NULLS LAST", " NULLS LAST"];
        format!("c{key}{}", options[random.index(options.len())])
    });
    let order = order.collect::<Vec<_>>().join(", ");
    let (count, skip) = ([0, 1, 2, 5, 10, 100, 1000][random.index(7)], [0, 0, 0, 1, 7, 2000][random.index(6)]);
    let offset = if skip > 0 { format!(" OFFSET {skip}") } else { String::new() };
    let filter = FILTERS[random.index(FILTERS.len())];
    Question { columns, keys, filter, order, limit: format!(" LIMIT {count}{offset}"), skip, count }
}

impl Question {
    pub(super) fn sql(&self, table: &str) -> String {
        let named = self.columns.iter().enumerate().map(|(at, column)| format!("{column} AS c{at}"));
        let columns = named.collect::<Vec<_>>().join(", ");
        format!("SELECT {columns} FROM {table} {} ORDER BY {}", self.filter, self.order)
    }

    /// The values of some first columns, a text each row.
    fn of(batches: &[RecordBatch], columns: usize) -> Vec<String> {
        let columns: Vec<usize> = (0..columns).collect();
        batches.iter().flat_map(|batch| texts(&batch.project(&columns).unwrap())).collect()
    }

    /// All rows of a table in this order, as the engine has them.
    pub(super) fn all(&self, db: &Db, table: &str) -> Expected {
        let batches = db.batches(&self.sql(table)).unwrap();
        let mut rows: HashMap<String, usize> = HashMap::new();
        Self::of(&batches, self.columns.len()).into_iter().for_each(|row| *rows.entry(row).or_default() += 1);
        Expected { keys: Self::of(&batches, self.keys), rows }
    }

    /// Asks a table; says whether an own operator answered.
    fn ask(&self, db: &Db, table: &str, all: &Expected) -> bool {
        let sql = format!("{}{}", self.sql(table), self.limit);
        let plan = db.explain(&sql);
        let found = db.batches(&sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        let keys: Vec<&String> = all.keys.iter().skip(self.skip).take(self.count).collect();
        assert_eq!(Self::of(&found, self.keys).iter().collect::<Vec<_>>(), keys, "{sql}");
        let mut taken: HashMap<String, usize> = HashMap::new();
        Self::of(&found, self.columns.len()).into_iter().for_each(|row| *taken.entry(row).or_default() += 1);
        for (row, count) in taken {
            let there = all.rows.get(&row).copied().unwrap_or(0);
            assert!(count <= there, "{sql}: {count} rows {row} of {there}");
        }
        plan.contains("TopExec")
    }
}

/// The rows of a question without a limit.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Expected {
    /// Their values in the columns of the order, a text each.
    keys: Vec<String>,
    /// How often each row is there.
    rows: HashMap<String, usize>,
}

#[test]
fn first_rows_are_those_of_a_sort() {
    let rounds = plinth_core::random::trials("PLINTH_NATIVE_ROUNDS", 2);
    let first = plinth_core::random::trials("PLINTH_NATIVE_SEED", 1);
    let mut native = 0;
    for seed in first..first + rounds {
        let random = &mut Random(seed);
        let folder = tempfile::tempdir().unwrap();
        let db = Db::open(folder.path());
        let mut tables = tables(&db, folder.path(), random);
        // Rows of a segment of which some are deleted, and none in memory.
        db.rows(&format!("CREATE TABLE segment ({TYPES})"));
        db.rows("INSERT INTO segment SELECT * FROM kept");
        db.rows("VACUUM segment");
        db.rows("INSERT INTO segment SELECT id + 1000000, s, u, i, b, f, d, m, t, ts, n, bin, w FROM kept");
        db.rows("VACUUM segment");
        db.rows("DELETE FROM segment WHERE id >= 1000000");
        tables.push("segment".to_owned());
        for _ in 0..QUESTIONS {
            let question = question(random);
            native += tables.iter().filter(|table| question.ask(&db, table, &question.all(&db, table))).count();
        }
    }
    assert!(native > QUESTIONS, "own operators answered {native} times");
}

#[test]
fn first_rows_of_many_row_groups() {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(folder.path());
    let path = |name: &str| folder.path().join(name).display().to_string();
    std::fs::create_dir_all(folder.path().join("parts/p=1")).unwrap();
    std::fs::create_dir_all(folder.path().join("parts/p=2")).unwrap();
    let rows = "SELECT value AS id, 16000 - value AS back, value * 7919 % 16001 AS mixed, value % 5 AS few, \
                CASE WHEN value % 7 > 0 THEN value / 1000 END AS steps, concat('a text ', value * 31 % 1013) AS s, \
                concat('a longer text of its own ', value * 104729 % 16001) AS u, \
                CASE WHEN value < 9000 THEN (value * 13 % 1000)::DOUBLE / 8 END AS f \
                FROM generate_series(1, 16000)";
    let small = "STORED AS PLINTH OPTIONS (row_group_rows 1024)";
    db.rows(&format!("COPY ({rows}) TO '{}' {small}", path("many.plinth")));
    let types = "id BIGINT, back BIGINT, mixed BIGINT, few BIGINT, steps BIGINT, s TEXT, u TEXT, f DOUBLE";
    db.rows(&format!("CREATE TABLE kept ({types})"));
    db.rows(&format!("INSERT INTO kept {rows}"));
    db.rows("VACUUM kept");
    db.rows("DELETE FROM kept WHERE id < 20 OR mixed % 3 = 0 OR id > 15990");
    for part in 1..3 {
        let to = path(&format!("parts/p={part}/rows.plinth"));
        db.rows(&format!("COPY (SELECT * FROM ({rows}) WHERE id % 2 + 1 = {part}) TO '{to}' {small}"));
    }
    let tables = [format!("'{}'", path("many.plinth")), "kept".to_owned(), format!("'{}/'", path("parts"))];
    let mut native = 0;
    for (columns, keys, order) in [
        (vec!["id", "u"], 1, "c0"),
        (vec!["id", "u"], 1, "c0 DESC"),
        (vec!["back", "id", "s"], 1, "c0"),
        (vec!["mixed", "s", "u", "f"], 1, "c0 DESC"),
        (vec!["few", "mixed", "u"], 2, "c0, c1"),
        (vec!["few", "s", "id"], 1, "c0"),
        (vec!["steps", "s", "id"], 2, "c0 DESC NULLS LAST, c1"),
        (vec!["steps", "s", "id"], 2, "c0 NULLS FIRST, c1 DESC"),
        (vec!["s", "id"], 1, "c0"),
        (vec!["s", "u"], 2, "c0 DESC, c1"),
        (vec!["u", "s"], 1, "c0 DESC"),
        (vec!["f", "id"], 1, "c0 NULLS FIRST"),
        (vec!["f", "u"], 1, "c0 DESC NULLS LAST"),
    ] {
        for filter in ["", "WHERE u LIKE '%99%'", "WHERE s = 'a text 5' AND id > 100", "WHERE few = 3 AND f IS NULL"] {
            for table in &tables {
                let (order, limit) = (order.to_owned(), String::new());
                let mut question = Question { columns: columns.clone(), keys, filter, order, limit, skip: 0, count: 0 };
                let all = question.all(&db, table);
                for (skip, count) in [(0, 1), (3, 10), (0, 3000)] {
                    question.limit = format!(" LIMIT {count} OFFSET {skip}");
                    (question.skip, question.count) = (skip, count);
                    native += usize::from(question.ask(&db, table, &all));
                }
            }
        }
    }
    // Where a filter leaves one value of all keys there is no order.
    assert_eq!(native, (13 * 4 - 2) * 3 * tables.len());
    // Columns that are in the paths of files are dictionaries to the engine.
    let by_path = format!("SELECT p, id, s FROM {} ORDER BY p DESC, id LIMIT 2", tables[2]);
    assert!(!db.explain(&by_path).contains("TopExec"));
    assert_eq!(db.rows(&by_path), ["2 1 a text 31", "2 3 a text 93"]);
    let fetched = format!("SELECT p FROM {} ORDER BY id DESC LIMIT 3", tables[2]);
    assert!(db.explain(&fetched).contains("columns fetched=1"));
    assert_eq!(db.rows(&fetched), ["1", "2", "1"]);
}

#[test]
fn what_own_operators_do_not_take_the_engine_sorts() {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(folder.path());
    let path = folder.path().join("t.plinth").display().to_string();
    db.rows(&format!(
        "COPY (SELECT value AS id, [value % 3] AS list FROM generate_series(1, 9000)) TO '{path}' STORED AS PLINTH"
    ));
    for (question, first) in [
        ("SELECT id FROM t ORDER BY list, id LIMIT 1", "3"),
        ("SELECT id FROM t ORDER BY id LIMIT 5000", "1"),
        ("SELECT id FROM (SELECT * FROM t LIMIT 10) ORDER BY id LIMIT 1", "1"),
    ] {
        let question = question.replace("FROM t", &format!("FROM '{path}'"));
        assert!(!db.explain(&question).contains("TopExec"), "{question}");
        assert_eq!(db.rows(&question)[0], first, "{question}");
    }
    let question = format!("SELECT id FROM '{path}' ORDER BY id DESC LIMIT 3");
    assert!(db.explain(&question).contains("TopExec"));
    db.rows("SET plinth.native = false");
    assert!(!db.explain(&question).contains("TopExec"));
    assert_eq!(db.rows(&question), ["9000", "8999", "8998"]);
}

#[test]
fn what_is_computed_of_texts_is_ordered_by_its_own_values() {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(folder.path());
    let path = folder.path().join("t.plinth").display().to_string();
    let rows =
        "SELECT concat('text ', lpad(CAST(value / 200 AS VARCHAR), 5, '0')) AS s FROM generate_series(1, 200000)";
    db.rows(&format!("COPY ({rows}) TO '{path}' STORED AS PLINTH OPTIONS (row_group_rows 40000)"));
    for sql in [
        "SELECT md5(s) AS h FROM t ORDER BY h LIMIT 3",
        "SELECT md5(s) AS h FROM t ORDER BY h DESC LIMIT 3",
        "SELECT reverse(s) AS h, s FROM t ORDER BY h, s LIMIT 201",
    ] {
        let sql = sql.replace("FROM t", &format!("FROM '{path}'"));
        db.run("SET plinth.native = false").unwrap();
        let expected = db.rows(&sql);
        db.run("SET plinth.native = true").unwrap();
        assert_eq!(db.rows(&sql), expected, "{sql}");
    }
}
