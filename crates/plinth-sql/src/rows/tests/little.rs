//! Random questions within little memory: the rows that a session with plenty gives, or a refusal that says that memory is short. Then all of it
//! is there again.

use std::path::Path;
use std::time::{Duration, Instant};

use plinth_core::random::Random;

use super::Db;
use super::native::question;

/// Questions of each table and each memory.
const QUESTIONS: u64 = 12;

/// Rows of the tables: some of their groupings are larger than the least memory.
const ROWS: u64 = 40_000;

/// Rows of a random table, with the columns that [`question`] asks for.
fn rows(random: &mut Random) -> String {
    let mut some = || [2, 5, 97, 1_009, 20_011, 40_009][random.index(6)];
    let null = |every: u64, value: &str| format!("CASE WHEN value % {every} > 0 THEN {value} END");
    let of = |prime: u64, modulus: u64| format!("(value * {prime} % {modulus})");
    let columns = [
        ("s", null(11, &format!("concat('text ', {})", of(31, some())))),
        ("u", null(13, &format!("concat('a common beginning and then ', {})", of(7_919, some())))),
        ("i", null(7, &format!("CAST({} AS INT)", of(17, some())))),
        ("b", format!("{} * 1000003", of(101, some()))),
        ("f", null(5, &format!("CAST({} / 4.0 AS DOUBLE)", of(3, some())))),
        ("d", format!("DATE '1990-01-01' + CAST({} AS INT)", of(13, some()))),
        ("m", null(17, &format!("CAST({} / 100.0 AS DECIMAL(10,2))", of(19, some())))),
        ("t", null(19, &format!("{} < 50", of(23, some())))),
        ("ts", format!("to_timestamp_seconds({} * 3607)", of(29, some()))),
        ("n", null(23, &format!("CAST({} % 1000 AS SMALLINT)", of(37, some())))),
        ("bin", format!("arrow_cast(concat('b', {}), 'Binary')", of(41, some()))),
        ("w", format!("CAST({} AS DECIMAL(38,0)) * 1000000000000", of(43, some()))),
    ];
    let columns: Vec<_> = columns.into_iter().map(|(name, value)| format!("{value} AS {name}")).collect();
    format!("SELECT value AS id, {} FROM generate_series(1, {ROWS})", columns.join(", "))
}

/// One file, three, and a writable table of which rows were deleted.
fn tables(db: &Db, folder: &Path, random: &mut Random) -> Vec<String> {
    let path = |name: &str| folder.join(name).display().to_string();
    let rows = rows(random);
    db.rows(&format!("COPY ({rows}) TO '{}' STORED AS PLINTH", path("one.plinth")));
    std::fs::create_dir(folder.join("several")).unwrap();
    for part in 0..3 {
        let to = path(&format!("several/{part}.plinth"));
        db.rows(&format!("COPY (SELECT * FROM ({rows}) WHERE id % 3 = {part}) TO '{to}' STORED AS PLINTH"));
    }
    db.rows(&format!("CREATE TABLE kept ({})", super::native::COLUMNS));
    db.rows(&format!("INSERT INTO kept {rows}"));
    db.rows("INSERT INTO kept (id, s) VALUES (-1, 'deleted'), (-2, 'deleted')");
    db.rows("DELETE FROM kept WHERE id < 0");
    vec![format!("'{}'", path("one.plinth")), format!("'{}/'", path("several")), "kept".to_owned()]
}

/// What is held for as long as a session or a table is open.
const STAYS: [&str; 2] = ["reads", "rows that wait to be merged"];

/// Waits until nothing holds memory but what gives way, and what stays.
pub(super) fn all_is_there_again(db: &Db, sql: &str) {
    let budget = db.session.open_options().io.budget().clone();
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        let stays =
            budget.usage().iter().filter(|one| STAYS.contains(&&*one.consumer)).map(|one| one.used).sum::<u64>();
        match budget.reserve("everything", budget.limit() - stays) {
            Ok(_all) => return,
            Err(error) => assert!(Instant::now() < until, "{sql}: {error}"),
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn little_memory_changes_no_answer() {
    let first = plinth_core::random::trials("PLINTH_LITTLE_SEED", 1);
    for seed in first..first + plinth_core::random::trials("PLINTH_LITTLE_ROUNDS", 1) {
        let random = &mut Random(seed);
        let folder = tempfile::tempdir().unwrap();
        let plenty = Db::open(folder.path());
        plenty.rows("SET plinth.native = false");
        let tables = tables(&plenty, folder.path(), random);
        for memory in [16_u64 << 20, 64 << 20] {
            let little = Db::open_within(folder.path(), plinth_format::Access::default(), memory);
            let (mut answered, mut asked) = (0, 0);
            for table in &tables {
                for _ in 0..QUESTIONS {
                    let (before, after) = question(random);
                    let sql = format!("{before}{table}{after}");
                    let digit = |c: char| c.is_ascii_digit() || c == '-';
                    let expected = plenty.sorted(&sql).map_err(|error| error.replace(digit, ""));
                    asked += 1;
                    match little.sorted(&sql).map_err(|error| error.replace(digit, "")) {
                        Err(error) if error.contains("memory") => assert!(expected.is_ok(), "{sql}: {error}"),
                        // Which of the groups that a limit leaves out is added up is not for a query to say.
                        rows if after.contains(" LIMIT ") && rows.is_err() != expected.is_err() => {}
                        rows => {
                            assert_eq!(rows, expected, "seed {seed}, memory {memory}: {sql}");
                            answered += 1;
                        }
                    }
                    all_is_there_again(&little, &sql);
                }
            }
            assert!(answered * 2 > asked, "{answered} of {asked} questions were answered with {memory} bytes");
            println!("{answered} of {asked} questions were answered with {memory} bytes");
        }
    }
}

#[test]
fn a_limit_holds_for_groups_that_outgrow_memory() {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(folder.path());
    let path = folder.path().join("t.plinth").display().to_string();
    let rows = "SELECT concat('a text of some length that is a key ', value * 7919 % 400009) AS k, value AS v FROM generate_series(1, 400000)";
    db.rows(&format!("COPY ({rows}) TO '{path}' STORED AS PLINTH"));
    let little = Db::open_within(folder.path(), plinth_format::Access::default(), 24 << 20);
    for (sql, rows) in [("SELECT k, count(*) FROM t GROUP BY k LIMIT 10", 10), ("SELECT DISTINCT k FROM t LIMIT 7", 7)]
    {
        for partitions in [1, 2] {
            little.run(&format!("SET datafusion.execution.target_partitions = {partitions}")).unwrap();
            let sql = sql.replace("FROM t", &format!("FROM '{path}'"));
            assert_eq!(little.rows(&sql).len(), rows, "{sql}");
        }
    }
}
