//! What point reads and durable commits take: `cargo run --release -p plinth-rowstore --example rows [ROWS] [FOLDER]`.
//!
//! `rows serve FOLDER` answers the commands of the benchmarks' suite `rows` instead.
//!
//! A table of eight columns is imported (10 M rows unless said otherwise); a tenth of the keys is read one by one, all of them in lots; rows are
//! committed one by one by one writer and by sixteen, beside one fdatasync of as many bytes. Every answer is checked.

#![allow(
    missing_docs,
    unreachable_pub,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "times are for people, a digest needs no more"
)]

#[path = "../../../bench/rows/src/workload.rs"]
mod workload;

use std::fs::File;
use std::io::{Error, Result};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type, Int64Type};
use arrow_array::{ArrayRef, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use plinth_rowstore::{Key, Table, TableOptions};
use workload::{Row, Spent, Store, digest, mix, row};

fn schema() -> Schema {
    let field = |name, data_type| Field::new(name, data_type, false);
    Schema::new(vec![
        field("id", DataType::Int64),
        field("a", DataType::Int64),
        field("b", DataType::Int64),
        field("c", DataType::Float64),
        field("d", DataType::Int32),
        field("e", DataType::Int32),
        field("f", DataType::Utf8),
        field("g", DataType::Utf8),
    ])
}

/// Every second number is a key, in an order that knows nothing of it.
fn batch(rows: &[Row]) -> RecordBatch {
    let ints = |f: fn(&Row) -> i64| Arc::new(Int64Array::from_iter_values(rows.iter().map(f))) as ArrayRef;
    let small = |f: fn(&Row) -> i32| Arc::new(Int32Array::from_iter_values(rows.iter().map(f))) as ArrayRef;
    let columns = vec![
        ints(|row| row.id),
        ints(|row| row.a),
        ints(|row| row.b),
        Arc::new(Float64Array::from_iter_values(rows.iter().map(|row| row.c))) as ArrayRef,
        small(|row| row.d),
        small(|row| row.e),
        Arc::new(StringArray::from_iter_values(rows.iter().map(|row| &row.f))) as ArrayRef,
        Arc::new(StringArray::from_iter_values(rows.iter().map(|row| &row.g))) as ArrayRef,
    ];
    RecordBatch::try_new(Arc::new(schema()), columns).expect("columns of one length")
}

fn made(ids: impl Iterator<Item = i64>) -> RecordBatch {
    batch(&ids.map(row).collect::<Vec<_>>())
}

/// Digests of all rows of a batch.
fn digests(rows: &RecordBatch) -> u64 {
    let long = |i: usize| rows.column(i).as_primitive::<Int64Type>().values();
    let int = |i: usize| rows.column(i).as_primitive::<Int32Type>().values();
    let (id, a, b, c) = (long(0), long(1), long(2), rows.column(3).as_primitive::<Float64Type>().values());
    let (d, e, f, g) = (int(4), int(5), rows.column(6).as_string_view(), rows.column(7).as_string_view());
    let one = |i: usize| digest(id[i], a[i], b[i], c[i], d[i], e[i], f.value(i), g.value(i));
    (0..rows.num_rows()).fold(0, |sum, i| sum.wrapping_add(one(i)))
}

fn check(rows: &RecordBatch, at: usize, id: i64) {
    assert_eq!(digests(&rows.slice(at, 1)), row(id).digest());
}

impl Store for Table {
    fn load(&self, keys: impl Iterator<Item = i64> + Clone) {
        let mut keys = keys.peekable();
        let batches = std::iter::from_fn(|| {
            keys.peek()?;
            Some(Ok(made(keys.by_ref().take(65_536))))
        });
        self.import(batches).expect("new rows");
    }

    fn get(&self, keys: &[i64]) -> u64 {
        keys.iter().fold(0, |sum: u64, &key| {
            let found = Self::get(self, key).expect("it can be read");
            sum.wrapping_add(found.map_or(0, |row| digests(&row)))
        })
    }

    fn many(&self, keys: &[i64]) -> u64 {
        let field = Field::new("id", DataType::Int64, false);
        let keys: ArrayRef = Arc::new(Int64Array::from(keys.to_vec()));
        let keys = RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![keys]).expect("one column");
        digests(&self.snapshot().get_batch(&keys).expect("they can be read").rows)
    }

    fn index(&self) {
        self.create_index("by_a", &["a"], false).expect("an index");
    }

    fn find(&self, values: &[i64]) -> u64 {
        let one = |&value: &i64| digests(&self.snapshot().find("by_a", value).expect("it can be read"));
        values.iter().map(one).fold(0, u64::wrapping_add)
    }

    fn commit(&self, rows: &[Row]) {
        self.insert(&batch(rows)).expect("new rows");
    }

    /// `dirty`: every 20th row goes, and as many come, in memory. `vacuum`: all to one segment. `scan`: a digest of all rows' first four columns.
    fn other(&self, command: &str, rows: i64) -> Option<(f64, u64)> {
        let began = Instant::now();
        let found = match command {
            "dirty" => {
                let gone: Vec<Key> = (0..rows).step_by(20).map(|i| Key::from(i * 2)).collect();
                let new: Vec<Row> = (0..rows).step_by(20).map(|i| row(i * 2 + 1)).collect();
                gone.chunks(10_000).try_for_each(|some| self.delete(some).map(drop)).expect("they are there");
                new.chunks(10_000).try_for_each(|some| self.insert(&batch(some)).map(drop)).expect("they are new");
                0
            }
            "vacuum" => self.vacuum().map(|()| 0).expect("it can be written"),
            "scan" => {
                let columns = ["id", "a", "c", "g"].map(str::to_owned).to_vec();
                let mut sum = 0_u64;
                for batch in self.snapshot().scan_columns(columns).expect("columns of it") {
                    let batch = batch.expect("it can be read");
                    let long = |i: usize| batch.column(i).as_primitive::<Int64Type>().values();
                    let prices = batch.column(2).as_primitive::<Float64Type>().values();
                    let notes = batch.column(3).as_string_view();
                    for (i, (id, a)) in long(0).iter().zip(long(1)).enumerate() {
                        let row = id.cast_unsigned() ^ a.cast_unsigned() ^ prices[i].to_bits();
                        sum = sum.wrapping_add(row).wrapping_add(u64::from(notes.views()[i] as u32));
                    }
                }
                sum
            }
            _ => return None,
        };
        Some((began.elapsed().as_secs_f64(), found))
    }
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let first = arguments.next();
    if first.as_deref() == Some("serve") {
        let folder = PathBuf::from(arguments.next().unwrap_or_default());
        // Rows in memory are merged when asked.
        let options =
            TableOptions { cache_bytes: 4 << 30, merge_rows: 8 << 20, merge_bytes: 2 << 30, ..TableOptions::default() };
        let table =
            Table::create(folder.join("rows"), &schema(), &["id"], options).map_err(|e| Error::other(e.to_string()))?;
        return workload::serve(&table, &folder);
    }
    let rows: i64 = first.and_then(|rows| rows.parse().ok()).unwrap_or(10_000_000);
    let folder = arguments.next().map_or_else(std::env::temp_dir, PathBuf::from).join("plinth-rows-example");
    let _ = std::fs::remove_dir_all(&folder);
    let options = TableOptions { cache_bytes: 4 << 30, ..TableOptions::default() };
    let failed = |e| Error::other(format!("{e}"));

    let table = Table::create(&folder, &schema(), &["id"], options.clone()).map_err(failed)?;
    let began = Instant::now();
    let starts = (0..rows).step_by(65_536);
    let batches = starts.map(|start| Ok(made((start..rows.min(start + 65_536)).map(|i| i * 2))));
    table.import(batches).map_err(failed)?;
    println!("import of {rows} rows: {:.1} s", began.elapsed().as_secs_f64());
    table.close().map_err(failed)?;
    let began = Instant::now();
    let table = Table::open(&folder, options).map_err(failed)?;
    println!("open: {:.3} s, {} segments", began.elapsed().as_secs_f64(), table.snapshot().segments().len());

    reads(&table, rows).map_err(failed)?;
    commits(&table, rows, &folder)?;
    table.close().map_err(failed)?;
    std::fs::remove_dir_all(&folder)
}

fn show(spent: &Spent, what: &str, times: i64) {
    let each = 1e6 / times as f64;
    println!("{what}: {:.2} us each, {:.2} us of a processor", spent.wall * each, spent.cpu * each);
}

fn reads(table: &Table, rows: i64) -> plinth_rowstore::Result<()> {
    let key = |i: i64| mix(i) % rows * 2;
    // Once over all blocks, so that they are there.
    for i in (0..rows).step_by(1000) {
        table.get(i * 2)?;
    }
    let gets = (rows / 10).min(1_000_000);
    let mut spent = Spent::default();
    for lot in 0..10 {
        let keys = lot * gets / 10..(lot + 1) * gets / 10;
        let found =
            spent.add(|| keys.clone().map(|i| table.get(key(i))).collect::<plinth_rowstore::Result<Vec<_>>>())?;
        for (i, row) in keys.zip(found) {
            check(row.as_ref().expect("every key is there"), 0, key(i));
        }
    }
    show(&spent, "get, cached", gets);
    let mut spent = Spent::default();
    let there = spent.add(|| (0..gets).filter(|&i| matches!(table.get(key(i) + 1), Ok(Some(_)))).count());
    assert_eq!(there, 0);
    show(&spent, "get of what is not there", gets);
    for lot in [10, 100, 1_000, 10_000, 100_000] {
        let mut spent = Spent::default();
        for start in (0..gets).step_by(lot) {
            let ids: Vec<i64> = (start..gets.min(start + i64::try_from(lot).unwrap_or(1))).map(key).collect();
            let keys: Vec<Key> = ids.iter().map(|&id| Key::from(id)).collect();
            let many = spent.add(|| table.multi_get(&keys))?;
            for (id, at) in ids.iter().zip(&many.found) {
                check(&many.rows, at.expect("every key is there"), *id);
            }
        }
        show(&spent, &format!("multi_get of {lot}, cached"), gets);
    }
    Ok(())
}

/// A file that has its length, of which blocks of 4 KiB are written and synced one by one.
struct Bare {
    path: PathBuf,
    file: File,
    written: u64,
}

const BARE: u64 = 16 << 20;

impl Bare {
    fn new(folder: &Path) -> Result<Self> {
        let path = folder.join("_fdatasync");
        let file = File::create(&path)?;
        file.write_all_at(&vec![0; 16 << 20], 0)?;
        file.sync_all()?;
        Ok(Self { path, file, written: 0 })
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all_at(bytes, self.written % BARE)?;
        self.written += 4096;
        self.file.sync_data()
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

fn timed<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let began = Instant::now();
    let done = work();
    (began.elapsed().as_secs_f64(), done)
}

fn percentile(times: &mut [f64], percent: usize) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() * percent / 100).copied().unwrap_or(0.0)
}

/// One writer, a commit and a bare write with fdatasync in turn, as a busy device is slow now and fast then.
fn one_writer(table: &Table, next: &AtomicU64, rows: i64, folder: &Path) -> Result<()> {
    let mut bare = Bare::new(folder)?;
    let (mut commits, mut syncs) = (Vec::new(), Vec::new());
    for _ in 0..1000 {
        let i = i64::try_from(next.fetch_add(1, Ordering::Relaxed)).unwrap_or(0);
        let row = made(std::iter::once((rows + i) * 2));
        let (sync, done) = timed(|| bare.write(&[7; 4096]));
        done?;
        let (commit, done) = timed(|| table.insert(&row));
        done.expect("a new key");
        commits.push(commit);
        syncs.push(sync);
    }
    for percent in [10, 50, 90] {
        let (commit, sync) = (percentile(&mut commits, percent), percentile(&mut syncs, percent));
        println!(
            "1 writer, {percent}% of commits take {:.2} of what fdatasync does ({:.0} us, {:.0} us)",
            commit / sync,
            commit * 1e6,
            sync * 1e6
        );
    }
    Ok(())
}

/// Commits of some rows each by some writers, and bare writes with fdatasync in turn: of both the median time.
fn many_writers(table: &Table, next: &AtomicU64, rows: i64, folder: &Path, writers: i64, lot: i64) -> Result<()> {
    let each = if lot > 1 { 10 } else { 100 };
    let mut bare = Bare::new(folder)?;
    let (mut commits, mut syncs) = (Vec::new(), Vec::new());
    for _ in 0..10 {
        syncs.extend((0..50).map(|_| timed(|| bare.write(&[7; 4096])).0));
        let (seconds, ()) = timed(|| {
            std::thread::scope(|scope| {
                for _ in 0..writers {
                    scope.spawn(|| {
                        for _ in 0..each {
                            let i = i64::try_from(next.fetch_add(lot.cast_unsigned(), Ordering::Relaxed)).unwrap_or(0);
                            table.insert(&made((i..i + lot).map(|i| (rows + i) * 2))).expect("a new key");
                        }
                    });
                }
            });
        });
        commits.push(seconds / (writers * each) as f64);
    }
    let (commit, sync) = (percentile(&mut commits, 50), percentile(&mut syncs, 50));
    println!(
        "{writers} writers, {lot} rows a commit: {:.0} durable commits/s; {:.2} fdatasyncs ({:.0} us) a commit",
        1.0 / commit,
        commit / sync,
        sync * 1e6
    );
    Ok(())
}

fn commits(table: &Table, rows: i64, folder: &Path) -> Result<()> {
    let next = AtomicU64::new(0);
    one_writer(table, &next, rows, folder)?;
    for (writers, lot) in [(1, 1), (16, 1), (1, 1000), (16, 1000)] {
        many_writers(table, &next, rows, folder, writers, lot)?;
    }
    for i in 0..i64::try_from(next.load(Ordering::Relaxed)).unwrap_or(0) {
        let row = table.get((rows + i) * 2).expect("the row can be read");
        check(row.as_ref().expect("what was committed is there"), 0, (rows + i) * 2);
    }
    Ok(())
}
