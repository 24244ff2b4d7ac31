//! Random histories of random tables: what each statement answers is what a naive table says, by whichever way its rows are found.
//!
//! A history has a seed and is the same each time. `PLINTH_HISTORIES=N` runs so many statements rather than some, beginning
//! with the seed `PLINTH_SEED`; a difference is reported with its seed and the statements that lead to it.

mod model;
mod table;
mod value;

use std::fmt::Write;

use super::Db;
use model::{Predicate, Rows};
use table::{Table, Unique};
use value::{Kind, Random, Value};

/// Statements of a history: a table, what becomes of it, and questions about it.
const STATEMENTS: u64 = 400;

/// Statements unless the environment asks for more.
const SOME: u64 = 1_200;

/// Most rows that a table comes to have; more, and it is emptied.
const ROWS: usize = 400;

/// A table, its model, and the statements so far.
struct History {
    dir: tempfile::TempDir,
    db: Option<Db>,
    random: Random,
    table: Table,
    rows: Rows,
    /// The rows before the transaction that is open.
    before: Option<Rows>,
    said: Vec<String>,
}

/// What a statement must answer.
enum Answer {
    /// So many rows changed.
    Changed(usize),
    Nothing,
    Error,
}

/// The question for the first rows in an order.
const FIRST_ROWS: usize = 5;

impl History {
    fn new(seed: u64) -> Self {
        let memory = std::path::Path::new("/dev/shm");
        let dir = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap();
        let mut random = Random::new(seed);
        let table = Table::random(&mut random);
        let db = Some(Db::open(dir.path()));
        let mut history = Self { dir, db, random, table, rows: Rows::default(), before: None, said: Vec::new() };
        let create = history.table.create();
        history.say(&create, &Answer::Nothing);
        history
    }

    fn db(&self) -> &Db {
        self.db.as_ref().unwrap()
    }

    fn fail(&self, what: &str) -> ! {
        let from = self.said.len().saturating_sub(120);
        let mut said = self.said[..from].iter().filter(|sql| sql.starts_with("CREATE")).cloned().collect::<Vec<_>>();
        said.extend_from_slice(&self.said[from..]);
        panic!("seed {}, statement {}: {what}\n{};", self.random.seed(), self.said.len(), said.join(";\n"));
    }

    /// Runs a statement that changes something.
    fn say(&mut self, sql: &str, answer: &Answer) {
        self.said.push(sql.to_owned());
        match (self.db().run(sql), answer) {
            (Ok(count), Answer::Changed(changed)) if count == [changed.to_string()] => {}
            (Ok(_), Answer::Nothing) | (Err(_), Answer::Error) => {}
            (Ok(count), Answer::Changed(changed)) => self.fail(&format!("changed {count:?} rows, not {changed}")),
            (Ok(_), Answer::Error) => self.fail("must be an error"),
            (Err(error), _) => self.fail(&error),
        }
    }

    /// Replaces the rows, if that may be, and runs the statement that does so.
    fn change(&mut self, sql: &str, changed: usize, rows: Option<Rows>) {
        match rows.filter(|rows| self.table.allows(rows)) {
            Some(rows) => {
                self.say(sql, &Answer::Changed(changed));
                self.rows = rows;
            }
            None => self.say(sql, &Answer::Error),
        }
    }

    fn step(&mut self) {
        let free = self.before.is_none();
        match self.random.below(100) {
            0..14 => self.insert(),
            14..18 => self.insert_or_not(),
            18..22 => self.upsert(),
            22..28 => self.update(),
            28..31 => self.delete(),
            31..34 => self.merge(),
            34 if self.rows.0.len() > ROWS => {
                let all = self.rows.0.len();
                self.change("TRUNCATE TABLE t", all, Some(Rows::default()));
            }
            35..37 if free => {
                self.say("BEGIN", &Answer::Nothing);
                self.before = Some(self.rows.clone());
            }
            37..39 if !free => {
                self.say("COMMIT", &Answer::Nothing);
                self.before = None;
            }
            39 if !free => {
                self.say("ROLLBACK", &Answer::Nothing);
                self.rows = self.before.take().unwrap();
            }
            40 if free => self.say("VACUUM t", &Answer::Nothing),
            41 => {
                self.said.push("-- merged".to_owned());
                let folder = self.dir.path().join("t").canonicalize().unwrap();
                self.db().session.stores.writer(&folder).unwrap().merge().unwrap();
            }
            42 if self.random.below(4) == 0 => {
                self.said.push("-- opened again".to_owned());
                self.db = None;
                self.db = Some(Db::open(self.dir.path()));
                if let Some(before) = self.before.take() {
                    self.rows = before;
                }
            }
            43 | 44 if free => self.index(),
            _ => self.ask(),
        }
    }

    fn insert(&mut self) {
        let count = self.random.below(6) + 1;
        let count = if self.random.below(20) == 0 { count * 20 } else { count };
        let new: Vec<Vec<Value>> = (0..count).map(|_| self.table.row(&mut self.random)).collect();
        let sql = format!("INSERT INTO t VALUES {}", literals(&new));
        let mut rows = self.rows.clone();
        rows.0.extend(new);
        self.change(&sql, count, Some(rows));
    }

    /// Rows whose keys are there are left out.
    fn insert_or_not(&mut self) {
        if self.table.key.is_empty() {
            return self.insert();
        }
        let new: Vec<Vec<Value>> = (0..5).map(|_| self.table.row(&mut self.random)).collect();
        let sql = format!("INSERT INTO t VALUES {} ON CONFLICT DO NOTHING", literals(&new));
        let nulls = new.iter().any(|row| self.table.lacks(row));
        let mut rows = self.rows.clone();
        for row in new {
            let key = self.table.key_of(&row);
            if !rows.0.iter().any(|other| self.table.key_of(other) == key) {
                rows.0.push(row);
            }
        }
        let added = rows.0.len() - self.rows.0.len();
        self.change(&sql, added, (!nulls).then_some(rows));
    }

    /// Rows whose keys are there take their places.
    fn upsert(&mut self) {
        let others: Vec<usize> = (0..self.table.columns.len()).filter(|i| !self.table.key.contains(i)).collect();
        if self.table.key.is_empty() || others.is_empty() {
            return self.insert();
        }
        let new: Vec<Vec<Value>> = (0..4).map(|_| self.table.row(&mut self.random)).collect();
        let set: Vec<String> =
            others.iter().map(|i| self.table.name(*i)).map(|name| format!("{name} = excluded.{name}")).collect();
        let key: Vec<String> = self.table.key.iter().map(|i| self.table.name(*i)).collect();
        let sql = format!(
            "INSERT INTO t VALUES {} ON CONFLICT ({}) DO UPDATE SET {}",
            literals(&new),
            key.join(", "),
            set.join(", ")
        );
        let mut keys: Vec<Vec<Value>> = new.iter().map(|row| self.table.key_of(row)).collect();
        keys.sort_by(|a, b| value::order_all(a, b));
        let once = keys.array_windows().all(|[a, b]| a != b);
        let count = new.len();
        let mut rows = self.rows.clone();
        for row in new {
            let key = self.table.key_of(&row);
            match rows.0.iter_mut().find(|other| self.table.key_of(other) == key) {
                Some(other) => *other = row,
                None => rows.0.push(row),
            }
        }
        self.change(&sql, count, once.then_some(rows));
    }

    fn update(&mut self) {
        let column = self.random.below(self.table.columns.len());
        let kind = self.table.columns[column].0;
        let (set, text) = (kind.value(&mut self.random), self.table.name(column));
        let predicate = Predicate::random(&self.table, &mut self.random, 2);
        let mut rows = self.rows.clone();
        let mut changed = 0;
        // A number that is counted up is another for each row.
        let up = matches!(kind, Kind::Int | Kind::BigInt) && self.random.below(2) == 0;
        let by = i64::try_from(self.random.below(5)).unwrap() - 2;
        for row in rows.0.iter_mut().filter(|row| predicate.holds(row)) {
            row[column] = match (&row[column], up) {
                (Value::Int(old), true) => Value::Int(old + by),
                (old, true) => old.clone(),
                (_, false) => set.clone(),
            };
            changed += 1;
        }
        let value = if up { format!("{text} + {by}") } else { set.literal(kind) };
        let sql = format!("UPDATE t SET {text} = {value} WHERE {}", predicate.sql(&self.table));
        let fits = rows.0.iter().all(|row| kind.holds(&row[column]));
        self.change(&sql, changed, fits.then_some(rows));
    }

    fn delete(&mut self) {
        let predicate = Predicate::random(&self.table, &mut self.random, 2);
        let mut rows = self.rows.clone();
        rows.0.retain(|row| !predicate.holds(row));
        let gone = self.rows.0.len() - rows.0.len();
        let sql = format!("DELETE FROM t WHERE {}", predicate.sql(&self.table));
        self.change(&sql, gone, Some(rows));
    }

    /// Rows of a source by the first column of the key: those that are there change, others come.
    fn merge(&mut self) {
        let [key] = self.table.key[..] else { return self.insert() };
        let columns = self.table.columns.len();
        let set = (key + 1) % columns;
        if set == key {
            return self.delete();
        }
        let source: Vec<Vec<Value>> = (0..4).map(|_| self.table.row(&mut self.random)).collect();
        let names: Vec<String> = (0..columns).map(|i| self.table.name(i)).collect();
        let from: Vec<String> = names.iter().map(|name| format!("s.{name}")).collect();
        // VALUES have no types of their own.
        let typed = names
            .iter()
            .zip(&self.table.columns)
            .map(|(name, (kind, _))| format!("CAST({name} AS {}) AS {name}", kind.sql()));
        let sql = format!(
            "MERGE INTO t USING (SELECT {} FROM (VALUES {}) AS v({})) AS s ON t.{key} = s.{key}
                WHEN MATCHED THEN UPDATE SET {set} = s.{set} WHEN NOT MATCHED THEN INSERT ({}) VALUES ({})",
            typed.collect::<Vec<_>>().join(", "),
            literals_of(&source, &self.table),
            names.join(", "),
            names.join(", "),
            from.join(", "),
            key = names[key],
            set = names[set],
        );
        let (mut rows, mut twice) = (self.rows.clone(), false);
        let mut seen: Vec<&Value> = Vec::new();
        for row in &source {
            match rows.0.iter_mut().find(|other| other[key] == row[key]) {
                Some(other) => {
                    twice |= seen.contains(&&row[key]);
                    other[set] = row[set].clone();
                }
                None => rows.0.push(row.clone()),
            }
            seen.push(&row[key]);
        }
        self.change(&sql, source.len(), (!twice).then_some(rows));
    }

    fn index(&mut self) {
        if self.random.below(3) == 0 && !self.table.indexes.is_empty() {
            let at = self.random.below(self.table.indexes.len());
            let index = self.table.indexes.swap_remove(at);
            return self.say(&format!("DROP INDEX {} ON t", index.name), &Answer::Nothing);
        }
        let Some(columns) = self.table.some_columns(&mut self.random) else { return };
        let unique = self.random.below(3) == 0;
        let name = format!("i{}", self.said.len());
        let names: Vec<String> = columns.iter().map(|i| self.table.name(*i)).collect();
        let kind = if unique { "UNIQUE " } else { "" };
        let sql = format!("CREATE {kind}INDEX {name} ON t ({})", names.join(", "));
        let index = Unique { name, columns, unique };
        if index.allows(&self.rows) {
            self.say(&sql, &Answer::Nothing);
            self.table.indexes.push(index);
        } else {
            self.say(&sql, &Answer::Error);
        }
    }

    /// One question, in several ways that must agree with the model.
    fn ask(&mut self) {
        let depth = self.random.below(3);
        let predicate = Predicate::random(&self.table, &mut self.random, depth);
        let filter = predicate.sql(&self.table);
        let found: Vec<&Vec<Value>> = self.rows.0.iter().filter(|row| predicate.holds(row)).collect();
        // A limit that no table reaches keeps the filter above it: no index, no pushdown.
        let from = if self.random.below(4) == 0 { "(SELECT * FROM t LIMIT 1000000000) AS t" } else { "t" };
        let column = self.random.below(self.table.columns.len());
        let (kind, name) = (self.table.columns[column].0, self.table.name(column));
        let question = self.random.below(8);
        let (sql, mut expected) = match question {
            0..3 => {
                let mut rows: Vec<Vec<Value>> = found.into_iter().cloned().collect();
                rows.sort_by(|a, b| value::order_all(a, b));
                (format!("SELECT * FROM {from} WHERE {filter}"), rows)
            }
            3 => {
                let known = found.iter().filter(|row| row[column] != Value::Null).count();
                let counts = [found.len(), known].map(|count| Value::Int(count.try_into().unwrap()));
                (format!("SELECT count(*), count({name}) FROM {from} WHERE {filter}"), vec![counts.to_vec()])
            }
            4 => {
                let known = || found.iter().map(|row| &row[column]).filter(|value| **value != Value::Null);
                let (least, most) = (known().min_by(|a, b| a.order(b)), known().max_by(|a, b| a.order(b)));
                if matches!(kind, Kind::Double | Kind::Bool) {
                    return;
                }
                let row = [least, most].map(|value| value.cloned().unwrap_or(Value::Null)).to_vec();
                (format!("SELECT min({name}), max({name}) FROM {from} WHERE {filter}"), vec![row])
            }
            FIRST_ROWS => {
                let mut values: Vec<Value> = found.iter().map(|row| row[column].clone()).collect();
                values.sort_by(Value::order);
                let (count, down) = (self.random.below(9) + 1, self.random.below(2) == 0);
                if down {
                    values.reverse();
                }
                let order = if down { "DESC NULLS LAST" } else { "NULLS FIRST" };
                values.truncate(count);
                let sql = format!("SELECT {name} FROM {from} WHERE {filter} ORDER BY {name} {order} LIMIT {count}");
                let mut rows: Vec<Vec<Value>> = values.into_iter().map(|value| vec![value]).collect();
                rows.sort_by(|a, b| value::order_all(a, b));
                (sql, rows)
            }
            6 => {
                let few: Vec<Value> = (0..3).map(|_| kind.value_there(&mut self.random)).collect();
                let mut rows = Vec::new();
                for row in found {
                    let matches = few.iter().filter(|value| value.same(&row[column])).count();
                    rows.extend(std::iter::repeat_n(row.clone(), matches));
                }
                rows.sort_by(|a, b| value::order_all(a, b));
                let few: Vec<String> = few.iter().map(|value| format!("({})", value.typed(kind))).collect();
                let few = format!("(VALUES {}) AS few (k)", few.join(", "));
                (format!("SELECT t.* FROM {from} JOIN {few} ON t.{name} = few.k WHERE {filter}"), rows)
            }
            _ => {
                let few: Vec<Value> = (0..3).map(|_| kind.value_there(&mut self.random)).collect();
                let there = found.iter().filter(|row| few.iter().any(|value| value.same(&row[column]))).count();
                let few: Vec<String> = few.iter().map(|value| format!("({})", value.typed(kind))).collect();
                let few = format!("SELECT k FROM (VALUES {}) AS few (k)", few.join(", "));
                let sql = format!("SELECT count(*) FROM {from} WHERE {name} IN ({few}) AND ({filter})");
                (sql, vec![vec![Value::Int(there.try_into().unwrap())]])
            }
        };
        self.said.push(sql.clone());
        let mut answer = match self.db().batches(&sql) {
            Ok(batches) => batches.iter().flat_map(value::rows).collect::<Vec<_>>(),
            Err(error) => self.fail(&error),
        };
        if question == FIRST_ROWS {
            // Which of the zeros comes first is open, and so which of them a LIMIT leaves.
            for value in answer.iter_mut().chain(&mut expected).flatten().filter(|value| **value == Value::Double(0.0))
            {
                *value = Value::Double(0.0);
            }
        }
        answer.sort_by(|a, b| value::order_all(a, b));
        expected.sort_by(|a, b| value::order_all(a, b));
        let same =
            answer.len() == expected.len() && answer.iter().zip(&expected).all(|(a, b)| value::order_all(a, b).is_eq());
        if !same {
            let mut what = format!("{} rows, not {}", answer.len(), expected.len());
            let differs = |one: &[Vec<Value>], other: &[Vec<Value>]| {
                one.iter().find(|row| !other.iter().any(|row_| value::order_all(row, row_).is_eq())).cloned()
            };
            let _ = write!(what, "; too much: {:?}", differs(&answer, &expected));
            let _ = write!(what, "; missing: {:?}", differs(&expected, &answer));
            self.fail(&what);
        }
        self.said.pop();
    }
}

fn literals(rows: &[Vec<Value>]) -> String {
    let row = |row: &Vec<Value>| row.iter().map(Value::plain).collect::<Vec<_>>().join(", ");
    rows.iter().map(|values| format!("({})", row(values))).collect::<Vec<_>>().join(", ")
}

fn literals_of(rows: &[Vec<Value>], table: &Table) -> String {
    let row = |row: &Vec<Value>| {
        let values = row.iter().zip(&table.columns).map(|(value, (kind, _))| value.typed(*kind));
        values.collect::<Vec<_>>().join(", ")
    };
    rows.iter().map(|values| format!("({})", row(values))).collect::<Vec<_>>().join(", ")
}

#[test]
fn every_way_to_rows_gives_what_a_naive_table_has() {
    let asked = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let (most, mut seed) = (asked("PLINTH_HISTORIES").unwrap_or(SOME), asked("PLINTH_SEED").unwrap_or(1));
    let mut done = 0;
    while done < most {
        let mut history = History::new(seed);
        for _ in 0..STATEMENTS {
            history.step();
        }
        done += STATEMENTS;
        if most > SOME && done % (25 * STATEMENTS) == 0 {
            println!("{done} statements, up to seed {seed}");
        }
        seed += 1;
    }
}
