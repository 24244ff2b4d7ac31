//! Random statements against a naive table.

use proptest::prelude::*;

use super::Db;

/// A row of the model: all that differs.
type Row = (i64, Option<String>, Option<i64>);

#[derive(Clone, Debug)]
enum Op {
    Insert(Vec<Row>),
    InsertMissing(Vec<Row>),
    Upsert(Vec<Row>),
    Add { from: i64, to: i64, by: i64 },
    Shift { from: i64, by: i64 },
    UpdateFrom(Vec<(i64, i64)>),
    DeleteLess(i64),
    DeleteInSelf,
    DeleteNotIn(Vec<i64>),
    DeleteFirst(usize),
    DoubleSelf,
    MergeRows(Vec<(i64, i64)>),
    Truncate,
    Begin,
    Commit,
    Rollback,
    Savepoint(u8),
    BackTo(u8),
    Release(u8),
    Flush,
    Vacuum,
    Index { text: bool, drop: bool },
    Reopen,
}

fn row() -> impl Strategy<Value = Row> {
    (0_i64..40, prop::option::of("[a-c]{0,2}"), prop::option::weighted(0.8, 0_i64..40))
}

fn op() -> impl Strategy<Value = Op> {
    let rows = || prop::collection::vec(row(), 1..8);
    let pairs = || prop::collection::vec((0_i64..40, 0_i64..40), 1..6);
    prop_oneof![
        4 => rows().prop_map(Op::Insert),
        3 => rows().prop_map(Op::InsertMissing),
        3 => rows().prop_map(Op::Upsert),
        2 => (0_i64..40, 0_i64..40, -5_i64..5).prop_map(|(from, to, by)| Op::Add { from, to, by }),
        2 => (0_i64..40, -3_i64..4).prop_map(|(from, by)| Op::Shift { from, by }),
        2 => pairs().prop_map(Op::UpdateFrom),
        1 => (0_i64..20).prop_map(Op::DeleteLess),
        1 => Just(Op::DeleteInSelf),
        1 => prop::collection::vec(0_i64..40, 1..5).prop_map(Op::DeleteNotIn),
        1 => (0_usize..4).prop_map(Op::DeleteFirst),
        1 => Just(Op::DoubleSelf),
        2 => pairs().prop_map(Op::MergeRows),
        1 => Just(Op::Truncate),
        2 => Just(Op::Begin),
        2 => Just(Op::Commit),
        1 => Just(Op::Rollback),
        3 => (0_u8..3).prop_map(Op::Savepoint),
        2 => (0_u8..3).prop_map(Op::BackTo),
        1 => (0_u8..3).prop_map(Op::Release),
        2 => Just(Op::Flush),
        1 => Just(Op::Vacuum),
        2 => any::<(bool, bool)>().prop_map(|(text, drop)| Op::Index { text, drop }),
        1 => Just(Op::Reopen),
    ]
}

/// The naive table: its rows, those from before the transaction, and those at its savepoints by their names.
#[derive(Clone, Debug)]
struct Model {
    keyed: bool,
    rows: Vec<Row>,
    before: Option<Vec<Row>>,
    savepoints: Vec<(u8, Vec<Row>)>,
}

fn literal<T: ToString>(value: Option<T>, quote: &str) -> String {
    value.map_or_else(|| "NULL".to_owned(), |value| format!("{quote}{}{quote}", value.to_string()))
}

fn values(rows: &[Row]) -> String {
    let row = |(id, s, n): &Row| format!("({id}, {}, {})", literal(s.as_ref(), "'"), literal(*n, ""));
    rows.iter().map(row).collect::<Vec<_>>().join(", ")
}

fn pairs(rows: &[(i64, i64)]) -> String {
    let rows = rows.iter().map(|(k, m)| format!("({k}, {m})")).collect::<Vec<_>>();
    format!("(VALUES {}) AS s(k, m)", rows.join(", "))
}

impl Model {
    /// The statement, and what becomes of the rows: how many it changes, or `None` if it must fail.
    fn take(&mut self, op: &Op) -> (String, Option<u64>) {
        let before = self.rows.clone();
        let has = |rows: &[Row], id: i64| rows.iter().position(|row| row.0 == id);
        let (sql, changed) = match op {
            Op::Insert(rows) => {
                self.rows.extend(rows.iter().cloned());
                (format!("INSERT INTO t VALUES {}", values(rows)), Some(rows.len()))
            }
            Op::InsertMissing(rows) => {
                let mut inserted = 0;
                for row in rows {
                    if has(&self.rows, row.0).is_none() {
                        self.rows.push(row.clone());
                        inserted += 1;
                    }
                }
                (
                    format!("INSERT INTO t VALUES {} ON CONFLICT DO NOTHING", values(rows)),
                    self.keyed.then_some(inserted),
                )
            }
            Op::Upsert(rows) => {
                for (id, s, n) in rows {
                    match has(&before, *id).and_then(|_| has(&self.rows, *id)) {
                        Some(at) => {
                            let old = self.rows[at].2;
                            self.rows[at] = (*id, s.clone(), old.zip(*n).map(|(a, b)| a + b));
                        }
                        None => self.rows.push((*id, s.clone(), *n)),
                    }
                }
                let mut ids: Vec<i64> = rows.iter().map(|row| row.0).collect();
                ids.sort_unstable();
                ids.dedup();
                let changed = (self.keyed && ids.len() == rows.len()).then_some(rows.len());
                let set = "ON CONFLICT (id) DO UPDATE SET s = excluded.s, n = t.n + excluded.n";
                (format!("INSERT INTO t VALUES {} {set}", values(rows)), changed)
            }
            Op::Add { from, to, by } => {
                let mut changed = 0;
                for row in self.rows.iter_mut().filter(|row| (*from..=*to).contains(&row.0)) {
                    row.2 = row.2.map(|n| n + by);
                    changed += 1;
                }
                (format!("UPDATE t SET n = n + {by} WHERE id BETWEEN {from} AND {to}"), Some(changed))
            }
            Op::Shift { from, by } => {
                let mut changed = 0;
                for row in self.rows.iter_mut().filter(|row| row.0 >= *from) {
                    row.0 += by;
                    changed += 1;
                }
                (format!("UPDATE t AS x SET id = x.id + {by} WHERE id >= {from}"), Some(changed))
            }
            Op::UpdateFrom(from) => {
                let (mut changed, mut twice) = (0, false);
                for row in &mut self.rows {
                    let matches: Vec<i64> = from.iter().filter(|(k, _)| *k == row.0).map(|(_, m)| *m).collect();
                    twice |= matches.len() > 1;
                    if let Some(m) = matches.first() {
                        row.2 = Some(*m);
                        changed += 1;
                    }
                }
                (format!("UPDATE t SET n = s.m FROM {} WHERE t.id = s.k", pairs(from)), (!twice).then_some(changed))
            }
            Op::DeleteLess(than) => {
                self.rows.retain(|row| row.2.is_none_or(|n| n >= *than));
                (format!("DELETE FROM t WHERE n < {than}"), Some(before.len() - self.rows.len()))
            }
            Op::DeleteInSelf => {
                self.rows.retain(|row| !before.iter().any(|other| other.2 == Some(row.0)));
                ("DELETE FROM t WHERE id IN (SELECT n FROM t)".to_owned(), Some(before.len() - self.rows.len()))
            }
            Op::DeleteNotIn(list) => {
                self.rows.retain(|row| row.2.is_none_or(|n| list.contains(&n)));
                let list = list.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
                (format!("DELETE FROM t WHERE n NOT IN ({list})"), Some(before.len() - self.rows.len()))
            }
            Op::DeleteFirst(count) => {
                // Rows without keys may be alike in what they are sorted by: then it does not say which go.
                let mut order: Vec<Row> = self.rows.clone();
                order.sort();
                for row in order.into_iter().take(*count) {
                    let at = self.rows.iter().position(|other| *other == row).unwrap();
                    self.rows.remove(at);
                }
                let order = "ORDER BY id, s NULLS FIRST, n NULLS FIRST";
                (format!("DELETE FROM t {order} LIMIT {count}"), Some(before.len() - self.rows.len()))
            }
            Op::DoubleSelf => {
                let more: Vec<Row> = self.rows.iter().map(|(id, s, n)| (id + 1000, s.clone(), *n)).collect();
                let changed = more.len();
                self.rows.extend(more);
                ("INSERT INTO t SELECT id + 1000, s, n FROM t".to_owned(), Some(changed))
            }
            Op::MergeRows(from) => {
                let (mut changed, mut twice) = (0, false);
                let mut rows = Vec::new();
                for row in &before {
                    let matches: Vec<i64> = from.iter().filter(|(k, _)| *k == row.0).map(|(_, m)| *m).collect();
                    twice |= matches.len() > 1;
                    changed += matches.len();
                    match matches.first() {
                        None => rows.push(row.clone()),
                        Some(m) if m % 2 == 0 => {}
                        Some(m) => rows.push((row.0, Some("m".to_owned()), Some(*m))),
                    }
                }
                for (k, m) in from.iter().filter(|(k, _)| has(&before, *k).is_none()) {
                    rows.push((*k, None, Some(*m)));
                    changed += 1;
                }
                self.rows = rows;
                let clauses = "WHEN MATCHED AND s.m % 2 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET n = s.m, s = 'm'
                    WHEN NOT MATCHED THEN INSERT (n, id) VALUES (s.m, s.k)";
                (format!("MERGE INTO t USING {} ON t.id = s.k {clauses}", pairs(from)), (!twice).then_some(changed))
            }
            Op::Truncate => {
                self.rows.clear();
                ("TRUNCATE TABLE t".to_owned(), Some(before.len()))
            }
            Op::Begin
            | Op::Commit
            | Op::Rollback
            | Op::Savepoint(_)
            | Op::BackTo(_)
            | Op::Release(_)
            | Op::Flush
            | Op::Vacuum
            | Op::Index { .. }
            | Op::Reopen => {
                return (String::new(), None);
            }
        };
        let mut ids: Vec<i64> = self.rows.iter().map(|row| row.0).collect();
        ids.sort_unstable();
        let unique = ids.windows(2).all(|pair| pair[0] != pair[1]);
        match changed {
            Some(changed) if unique || !self.keyed => (sql, Some(changed as u64)),
            _ => {
                self.rows = before;
                (sql, None)
            }
        }
    }

    fn texts(&self) -> Vec<String> {
        let mut rows = self.rows.clone();
        rows.sort();
        let text = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
        rows.into_iter().map(|(id, s, n)| format!("{id} {} {}", text(s), text(n.map(|n| n.to_string())))).collect()
    }
}

fn follow(keyed: bool, ops: &[Op]) {
    let dir = tempfile::tempdir().unwrap();
    let mut db = Db::open(dir.path());
    let key = if keyed { "PRIMARY KEY" } else { "NOT NULL" };
    db.rows(&format!("CREATE TABLE t (id BIGINT {key}, s TEXT, n BIGINT)"));
    let folder = dir.path().join("t").canonicalize().unwrap();
    let mut model = Model { keyed, rows: Vec::new(), before: None, savepoints: Vec::new() };
    for op in ops {
        match op {
            Op::Begin if model.before.is_none() => {
                db.rows("BEGIN");
                model.before = Some(model.rows.clone());
            }
            Op::Commit if model.before.take().is_some() => {
                db.rows("COMMIT");
                model.savepoints.clear();
            }
            Op::Rollback if model.before.is_some() => {
                db.rows("ROLLBACK");
                model.rows = model.before.take().unwrap();
                model.savepoints.clear();
            }
            Op::Savepoint(name) => {
                let done = db.run(&format!("SAVEPOINT s{name}"));
                assert_eq!(done.is_ok(), model.before.is_some(), "{done:?}");
                if done.is_ok() {
                    model.savepoints.push((*name, model.rows.clone()));
                }
            }
            Op::BackTo(name) | Op::Release(name) => {
                let at = model.savepoints.iter().rposition(|(known, _)| known == name);
                let back = matches!(op, Op::BackTo(_));
                let done = db.run(&format!("{} s{name}", if back { "ROLLBACK TO" } else { "RELEASE SAVEPOINT" }));
                assert_eq!(done.is_ok(), at.is_some(), "{done:?}");
                match at {
                    Some(at) if back => {
                        model.savepoints.truncate(at + 1);
                        model.rows = model.savepoints[at].1.clone();
                    }
                    Some(at) => model.savepoints.truncate(at),
                    None => {}
                }
            }
            Op::Flush => db.session.stores.writer(&folder).unwrap().merge().unwrap(),
            Op::Vacuum if model.before.is_none() => drop(db.rows("VACUUM t")),
            Op::Index { text, drop: false } if model.before.is_none() => {
                // The other column is in it, too: either may be NULL.
                let (column, other) = if *text { ("s", "n") } else { ("n", "s") };
                db.rows(&format!("CREATE INDEX IF NOT EXISTS by_{column} ON t ({column}, {other})"));
            }
            Op::Index { text, drop: true } if model.before.is_none() => {
                db.rows(&format!("DROP INDEX IF EXISTS by_{} ON t", if *text { "s" } else { "n" }));
            }
            Op::Reopen => {
                drop(db);
                db = Db::open(dir.path());
                if let Some(before) = model.before.take() {
                    model.rows = before;
                }
                model.savepoints.clear();
            }
            op => {
                let (sql, changed) = model.take(op);
                if !sql.is_empty() {
                    match (db.run(&sql), changed) {
                        (Ok(count), Some(changed)) => assert_eq!(count, [changed.to_string()], "{sql}"),
                        (Err(_), None) => {}
                        (result, changed) => panic!("{sql}: {result:?}, not {changed:?}\n{model:?}"),
                    }
                }
            }
        }
        assert_eq!(db.rows("SELECT * FROM t ORDER BY id, s NULLS FIRST, n NULLS FIRST"), model.texts(), "{op:?}");
        let least = model.rows.iter().map(|row| row.0).min().map_or("-".to_owned(), |id| id.to_string());
        assert_eq!(db.rows("SELECT count(*), min(id) FROM t"), [format!("{} {least}", model.rows.len())], "{op:?}");
        let some = model.rows.iter().filter(|row| row.2 == Some(7) || row.0 == 7).count();
        assert_eq!(db.rows("SELECT count(*) FROM t WHERE n = 7 OR id = 7"), [some.to_string()]);
        let equal = model.rows.iter().filter(|row| row.2 == Some(7)).count();
        assert_eq!(db.rows("SELECT count(*) FROM t WHERE n = 7"), [equal.to_string()], "{op:?}");
        let within = model.rows.iter().filter(|row| row.2.is_some_and(|n| (3..=9).contains(&n))).count();
        assert_eq!(db.rows("SELECT count(*) FROM t WHERE n BETWEEN 3 AND 9"), [within.to_string()], "{op:?}");
        let texts = model.rows.iter().filter(|row| row.1.as_deref().is_some_and(|s| s.starts_with('b') || s == "a"));
        let texts = texts.count().to_string();
        assert_eq!(db.rows("SELECT count(*) FROM t WHERE s = 'a' OR s LIKE 'b%'"), [texts], "{op:?}");
        let joined = model.rows.iter().filter(|row| [Some(4), Some(8)].contains(&row.2)).count().to_string();
        let join = "SELECT count(*) FROM t JOIN (VALUES (4), (8), (99)) AS few (k) ON t.n = few.k";
        assert_eq!(db.rows(join), [joined], "{op:?}");
        let points = model.rows.iter().filter(|row| [5, 11].contains(&row.0)).count();
        assert_eq!(db.rows("SELECT count(id) FROM t WHERE id IN (5, 11)"), [points.to_string()]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6, ..ProptestConfig::default() })]

    #[test]
    fn statements_do_what_a_naive_table_does(keyed in any::<bool>(), ops in prop::collection::vec(op(), 1..25)) {
        follow(keyed, &ops);
    }
}
