//! The peers, each by its own API and as durable as Plinth: a commit returns once it survives a power failure.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};
use rusqlite::{Connection, Statement, params};

use crate::workload::{Row, Store, digest, row};

/// SQLite, with a write-ahead log that is synced at each commit; a connection for each thread.
pub struct Sqlite {
    path: PathBuf,
    connections: Mutex<Vec<Connection>>,
}

const INSERT: &str = "insert into t values (?, ?, ?, ?, ?, ?, ?, ?)";

fn insert(into: &mut Statement<'_>, row: &Row) {
    into.execute(params![row.id, row.a, row.b, row.c, row.d, row.e, row.f, row.g]).expect("a new row");
}

fn select(from: &mut Statement<'_>, key: i64) -> u64 {
    from.query_row([key], |row| {
        let (f, g) = (row.get_ref(6)?.as_str()?, row.get_ref(7)?.as_str()?);
        Ok(digest(row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?, f, g))
    })
    .unwrap_or(0)
}

impl Sqlite {
    pub fn create(folder: &Path) -> Self {
        let store = Self { path: folder.join("rows.sqlite"), connections: Mutex::default() };
        store.with(|connection| {
            connection.execute_batch(
                "create table t (id integer primary key, a integer, b integer, c real, d integer, e integer, f text, g text)",
            )
            .expect("a new table");
        });
        store
    }

    fn with<T>(&self, work: impl FnOnce(&Connection) -> T) -> T {
        let free = self.connections.lock().expect("no thread panics").pop();
        let connection = free.unwrap_or_else(|| {
            let connection = Connection::open(&self.path).expect("the file opens");
            connection
                .execute_batch(
                    "pragma journal_mode = wal; pragma synchronous = full; pragma busy_timeout = 600000;
                     pragma cache_size = -4000000",
                )
                .expect("pragmas are known");
            connection
        });
        let done = work(&connection);
        self.connections.lock().expect("no thread panics").push(connection);
        done
    }
}

impl Store for Sqlite {
    fn load(&self, keys: impl Iterator<Item = i64> + Clone) {
        self.with(|connection| {
            connection.execute_batch("begin").expect("a transaction");
            let mut into = connection.prepare(INSERT).expect("a statement");
            keys.for_each(|key| insert(&mut into, &row(key)));
            connection.execute_batch("commit; pragma wal_checkpoint(truncate)").expect("a commit");
        });
    }

    fn get(&self, keys: &[i64]) -> u64 {
        self.with(|connection| {
            let mut from = connection.prepare_cached("select * from t where id = ?").expect("a statement");
            keys.iter().fold(0, |sum: u64, &key| sum.wrapping_add(select(&mut from, key)))
        })
    }

    /// One after the other, in one transaction.
    fn many(&self, keys: &[i64]) -> u64 {
        self.with(|connection| {
            connection.execute_batch("begin").expect("a transaction");
            let mut from = connection.prepare_cached("select * from t where id = ?").expect("a statement");
            let sum = keys.iter().fold(0, |sum: u64, &key| sum.wrapping_add(select(&mut from, key)));
            connection.execute_batch("commit").expect("a commit");
            sum
        })
    }

    fn index(&self) {
        self.with(|connection| connection.execute_batch("create index by_a on t (a)").expect("an index"));
    }

    fn find(&self, values: &[i64]) -> u64 {
        self.with(|connection| {
            let mut from = connection.prepare_cached("select * from t where a = ?").expect("a statement");
            values.iter().fold(0, |sum: u64, &value| sum.wrapping_add(select(&mut from, value)))
        })
    }

    fn commit(&self, rows: &[Row]) {
        self.with(|connection| {
            connection.execute_batch("begin immediate").expect("a transaction");
            let mut into = connection.prepare_cached(INSERT).expect("a statement");
            rows.iter().for_each(|row| insert(&mut into, row));
            drop(into);
            connection.execute_batch("commit").expect("a commit");
        });
    }

    fn other(&self, _: &str, _: i64) -> Option<(f64, u64)> {
        None
    }
}

/// redb, whose values are a row's bytes: numbers as they are in memory, a length, and both texts.
pub struct Redb(Database, AtomicBool);

const TABLE: TableDefinition<'static, i64, &[u8]> = TableDefinition::new("t");

/// Keys by the values of `a`, once that is indexed.
const BY_A: TableDefinition<'static, i64, i64> = TableDefinition::new("by_a");

fn pack(row: &Row) -> Vec<u8> {
    let mut out = Vec::with_capacity(64);
    out.extend_from_slice(&row.a.to_le_bytes());
    out.extend_from_slice(&row.b.to_le_bytes());
    out.extend_from_slice(&row.c.to_le_bytes());
    out.extend_from_slice(&row.d.to_le_bytes());
    out.extend_from_slice(&row.e.to_le_bytes());
    out.push(u8::try_from(row.f.len()).expect("a short text"));
    out.extend_from_slice(row.f.as_bytes());
    out.extend_from_slice(row.g.as_bytes());
    out
}

fn unpack(key: i64, bytes: &[u8]) -> Option<u64> {
    let long = |at: usize| Some(i64::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
    let int = |at: usize| Some(i32::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
    let texts = std::str::from_utf8(bytes.get(33..)?).ok()?;
    let (f, g) = texts.split_at_checked(usize::from(*bytes.get(32)?))?;
    Some(digest(key, long(0)?, long(8)?, f64::from_bits(long(16)?.cast_unsigned()), int(24)?, int(28)?, f, g))
}

impl Redb {
    pub fn create(folder: &Path) -> Self {
        let database = Database::builder().set_cache_size(4 << 30).create(folder.join("rows.redb"));
        Self(database.expect("a new file"), AtomicBool::new(false))
    }

    fn put(&self, rows: impl Iterator<Item = Row>) {
        let change = self.0.begin_write().expect("a transaction");
        {
            let mut table = change.open_table(TABLE).expect("a table");
            rows.for_each(|row| drop(table.insert(row.id, pack(&row).as_slice()).expect("a row")));
        }
        change.commit().expect("a commit");
    }
}

impl Store for Redb {
    fn load(&self, keys: impl Iterator<Item = i64> + Clone) {
        self.put(keys.map(row));
    }

    /// A transaction for each, as each is a read of its own.
    fn get(&self, keys: &[i64]) -> u64 {
        keys.iter().fold(0, |sum: u64, &key| sum.wrapping_add(self.many(&[key])))
    }

    fn many(&self, keys: &[i64]) -> u64 {
        let read = self.0.begin_read().expect("a transaction");
        let table = read.open_table(TABLE).expect("a table");
        keys.iter().fold(0, |sum: u64, &key| {
            let found = table.get(key).expect("it can be read");
            sum.wrapping_add(found.and_then(|found| unpack(key, found.value())).unwrap_or(0))
        })
    }

    fn index(&self) {
        let change = self.0.begin_write().expect("a transaction");
        {
            let (rows, mut index) =
                (change.open_table(TABLE).expect("a table"), change.open_table(BY_A).expect("a table"));
            let mut pairs: Vec<(i64, i64)> = rows
                .iter()
                .expect("it can be read")
                .map(|entry| {
                    let key = entry.expect("it can be read").0.value();
                    (row(key).a, key)
                })
                .collect();
            pairs.sort_unstable();
            pairs.iter().for_each(|(value, key)| drop(index.insert(value, key).expect("an entry")));
        }
        change.commit().expect("a commit");
        self.1.store(true, Ordering::Relaxed);
    }

    fn find(&self, values: &[i64]) -> u64 {
        let one = |&value: &i64| {
            let read = self.0.begin_read().expect("a transaction");
            let index = read.open_table(BY_A).expect("a table");
            let key = index.get(value).expect("it can be read").map(|key| key.value());
            let table = read.open_table(TABLE).expect("a table");
            key.and_then(|key| unpack(key, table.get(key).expect("it can be read")?.value())).unwrap_or(0)
        };
        values.iter().map(one).fold(0, u64::wrapping_add)
    }

    fn commit(&self, rows: &[Row]) {
        let change = self.0.begin_write().expect("a transaction");
        {
            let mut table = change.open_table(TABLE).expect("a table");
            rows.iter().for_each(|row| drop(table.insert(row.id, pack(row).as_slice()).expect("a row")));
            if self.1.load(Ordering::Relaxed) {
                let mut index = change.open_table(BY_A).expect("a table");
                rows.iter().for_each(|row| drop(index.insert(row.a, row.id).expect("an entry")));
            }
        }
        change.commit().expect("a commit");
    }

    fn other(&self, _: &str, _: i64) -> Option<(f64, u64)> {
        None
    }
}
