//! Statements that are dropped before their last row, at any moment: nothing stays behind.

use std::time::Duration;

use futures::{StreamExt, poll};
use plinth_core::random::Random;

use super::Db;
use super::little::all_is_there_again;
use crate::{Params, parse};

/// Times that each statement is dropped.
const DROPS: u64 = 12;

const STATEMENTS: [&str; 9] = [
    "SELECT s, count(*), count(DISTINCT k) FROM 't/' GROUP BY s",
    "SELECT k, s, sum(v), avg(v) FROM 't/' GROUP BY k, s ORDER BY 3 DESC, k, s LIMIT 10",
    "SELECT count(DISTINCT s), count(DISTINCT k) FROM 't/'",
    "SELECT a.s, b.v FROM 't/' AS a JOIN 't/' AS b ON a.k = b.k WHERE a.v < 20",
    "SELECT a.k, count(b.v) FROM 't/' AS a LEFT JOIN 't/' AS b ON a.k = b.v GROUP BY a.k",
    "SELECT k FROM 't/' WHERE k NOT IN (SELECT k FROM 't/' WHERE v = 3)",
    "SELECT * FROM 't/' ORDER BY v, k DESC, s LIMIT 100",
    "SELECT * FROM 't/' ORDER BY s, v, k",
    "SELECT upper(s) AS u, max(v) FROM 't/' GROUP BY u",
];

fn filled(folder: &std::path::Path, memory: u64) -> Db {
    let db = Db::open_within(folder, plinth_format::Access::default(), memory);
    std::fs::create_dir_all(folder.join("t")).unwrap();
    for part in 0..3 {
        db.rows(&format!(
            "COPY (SELECT value * 7919 % 6007 AS k, concat('a text ', value * 31 % 4001) AS s, value % 97 AS v \
             FROM generate_series({part}, 60000, 3)) TO '{}'",
            folder.join(format!("t/{part}.plinth")).display()
        ));
    }
    db
}

/// A statement is polled some times, with pauses in which its tasks run, and dropped.
fn dropped(db: &Db, sql: &str, polls: u64, pause: Duration) -> Result<(), String> {
    let statement = parse(sql).map_err(|e| e.to_string())?.pop().ok_or("no statement")?;
    db.runtime.block_on(async {
        let mut stream = db.session.execute_with(statement, &Params::default()).await.map_err(|e| e.to_string())?;
        for _ in 0..polls {
            if let std::task::Poll::Ready(None) = poll!(stream.next()) {
                break;
            }
            tokio::time::sleep(pause).await;
        }
        Ok(())
    })
}

#[test]
fn dropped_statements_leave_no_memory_and_change_no_answer() {
    let random = &mut Random(plinth_core::random::trials("PLINTH_SEED", 1));
    for memory in [8_u64 << 30, 64 << 20] {
        let folder = tempfile::tempdir().unwrap();
        let db = filled(folder.path(), memory);
        for sql in STATEMENTS {
            let sql = sql.replace("'t/'", &format!("'{}/'", folder.path().join("t").display()));
            let expected = db.sorted(&sql);
            for _ in 0..DROPS {
                let (polls, pause) = (1 + random.below(8), Duration::from_micros(random.below(1500)));
                dropped(&db, &sql, polls, pause).unwrap_or_else(|error| assert!(expected.is_err(), "{sql}: {error}"));
            }
            // Tasks end at their next row or piece; what is kept for other statements gives way.
            all_is_there_again(&db, &sql);
            assert_eq!(db.sorted(&sql), expected, "{sql}");
        }
    }
}
