//! What point reads and durable commits take: `cargo run --release -p plinth-table --example rows [ROWS] [FOLDER]`.
//!
//! A table of eight columns is imported (10 M rows unless said otherwise); a tenth of the keys is read one by one, all of them in lots; rows are
//! committed one by one by one writer and by sixteen, beside one fdatasync of as many bytes. Every answer is checked.

#![allow(clippy::cast_precision_loss, reason = "times are for people")]

use std::fs::File;
use std::io::{Error, Result};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{ArrayRef, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use plinth_table::store::{Key, Table, TableOptions};

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

fn mix(n: i64) -> i64 {
    let n = n.wrapping_mul(0x5851_f42d_4c95_7f2d_i64).wrapping_add(0x1405_7b7e_f767_814f);
    (n ^ (n >> 31)) & 0x7fff_ffff_ffff
}

/// Every second number is a key, in an order that knows nothing of it.
fn batch(ids: impl Iterator<Item = i64> + Clone) -> RecordBatch {
    let ints = |f: fn(i64) -> i64| Arc::new(Int64Array::from_iter_values(ids.clone().map(f))) as ArrayRef;
    let small = |most: i64| {
        let value = move |id| i32::try_from(mix(id) % most).unwrap_or(0);
        Arc::new(Int32Array::from_iter_values(ids.clone().map(value))) as ArrayRef
    };
    let columns = vec![
        ints(|id| id),
        ints(mix),
        ints(|id| id / 1000),
        Arc::new(Float64Array::from_iter_values(ids.clone().map(price))) as ArrayRef,
        small(100),
        small(100_000),
        Arc::new(StringArray::from_iter_values(ids.clone().map(|id| format!("city {}", mix(id) % 5000)))) as ArrayRef,
        Arc::new(StringArray::from_iter_values(ids.clone().map(|id| format!("note {}", mix(id))))) as ArrayRef,
    ];
    RecordBatch::try_new(Arc::new(schema()), columns).expect("columns of one length")
}

fn price(id: i64) -> f64 {
    f64::from(i32::try_from(mix(id) % 1_000_000).unwrap_or(0)) / 100.0
}

fn check(rows: &RecordBatch, row: usize, id: i64) {
    assert_eq!(rows.column(0).as_primitive::<Int64Type>().value(row), id);
    assert_eq!(rows.column(1).as_primitive::<Int64Type>().value(row), mix(id));
    assert!(rows.column(3).as_primitive::<Float64Type>().value(row).to_bits() == price(id).to_bits());
    assert_eq!(rows.column(7).as_string_view().value(row), format!("note {}", mix(id)));
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let rows: i64 = arguments.next().and_then(|rows| rows.parse().ok()).unwrap_or(10_000_000);
    let folder = arguments.next().map_or_else(std::env::temp_dir, PathBuf::from).join("plinth-rows-example");
    let _ = std::fs::remove_dir_all(&folder);
    let options = TableOptions { cache_bytes: 4 << 30, ..TableOptions::default() };
    let failed = |e| Error::other(format!("{e}"));

    let table = Table::create(&folder, &schema(), &["id"], options.clone()).map_err(failed)?;
    let began = Instant::now();
    let starts = (0..rows).step_by(65_536);
    let batches = starts.map(|start| Ok(batch((start..rows.min(start + 65_536)).map(|i| i * 2))));
    table.import(batches).map_err(failed)?;
    println!("import of {rows} rows: {:.1} s", began.elapsed().as_secs_f64());
    table.close().map_err(failed)?;
    let began = Instant::now();
    let table = Table::open(&folder, options).map_err(failed)?;
    println!("open: {:.3} s, {} segments", began.elapsed().as_secs_f64(), table.snapshot().segments().len());

    reads(&table, rows).map_err(failed)?;
    commits(&table, rows, &folder).map_err(failed)?;
    table.close().map_err(failed)?;
    std::fs::remove_dir_all(&folder)
}

fn reads(table: &Table, rows: i64) -> plinth_table::store::Result<()> {
    let key = |i: i64| mix(i) % rows * 2;
    // Once over all blocks, so that they are there.
    for i in (0..rows).step_by(1000) {
        table.get(i * 2)?;
    }
    let gets = (rows / 10).min(1_000_000);
    let (mut spent, mut found) = (Duration::ZERO, 0);
    for lot in 0..10 {
        let began = Instant::now();
        let mut kept = Vec::new();
        for i in lot * gets / 10..(lot + 1) * gets / 10 {
            kept.push(table.get(key(i))?);
        }
        spent += began.elapsed();
        for (i, row) in (lot * gets / 10..).zip(kept) {
            check(row.as_ref().expect("every key is there"), 0, key(i));
            found += 1;
        }
    }
    println!("get, cached: {:.2} us each ({found})", spent.as_secs_f64() * 1e6 / found as f64);
    let began = Instant::now();
    let there = (0..gets).filter(|&i| matches!(table.get(key(i) + 1), Ok(Some(_)))).count();
    assert_eq!(there, 0);
    println!("get of what is not there: {:.2} us each", began.elapsed().as_secs_f64() * 1e6 / gets as f64);
    for lot in [100, 1_000, 10_000, 100_000] {
        let (mut spent, mut found) = (Duration::ZERO, 0);
        for start in (0..gets).step_by(lot) {
            let ids: Vec<i64> = (start..gets.min(start + i64::try_from(lot).unwrap_or(1))).map(key).collect();
            let keys: Vec<Key> = ids.iter().map(|&id| Key::from(id)).collect();
            let began = Instant::now();
            let many = table.get_many(&keys)?;
            spent += began.elapsed();
            for (id, at) in ids.iter().zip(&many.found) {
                check(&many.rows, at.expect("every key is there"), *id);
                found += 1;
            }
        }
        println!("get_many of {lot}, cached: {:.2} us a key", spent.as_secs_f64() * 1e6 / f64::from(found));
    }
    Ok(())
}

/// Seconds of one write of 4 KiB and fdatasync, in a file that has its length.
fn fdatasync(folder: &std::path::Path) -> Result<f64> {
    let path = folder.join("_fdatasync");
    let file = File::create(&path)?;
    file.write_all_at(&vec![0; 4 << 20], 0)?;
    file.sync_all()?;
    let began = Instant::now();
    for i in 0..500 {
        file.write_all_at(&[7; 4096], i * 4096)?;
        file.sync_data()?;
    }
    let each = began.elapsed().as_secs_f64() / 500.0;
    std::fs::remove_file(path)?;
    Ok(each)
}

fn commits(table: &Table, rows: i64, folder: &std::path::Path) -> plinth_table::store::Result<()> {
    let next = AtomicU64::new(0);
    for (writers, each) in [(1, 500), (16, 300), (1, 500), (16, 300)] {
        let sync = fdatasync(folder).expect("the folder can be written to");
        let began = Instant::now();
        let first = i64::try_from(next.load(Ordering::Relaxed)).unwrap_or(0);
        std::thread::scope(|scope| {
            for _ in 0..writers {
                scope.spawn(|| {
                    for _ in 0..each {
                        let i = i64::try_from(next.fetch_add(1, Ordering::Relaxed)).unwrap_or(0);
                        table.insert(&batch(std::iter::once((rows + i) * 2))).expect("a new key");
                    }
                });
            }
        });
        let seconds = began.elapsed().as_secs_f64();
        let commits = f64::from(writers * each);
        println!(
            "{writers} writers: {:.0} durable commits/s; {:.2} fdatasyncs ({:.0} us) a commit",
            commits / seconds,
            seconds / commits / sync,
            sync * 1e6
        );
        for i in first..i64::try_from(next.load(Ordering::Relaxed)).unwrap_or(0) {
            let row = table.get((rows + i) * 2)?;
            check(row.as_ref().expect("what was committed is there"), 0, (rows + i) * 2);
        }
    }
    Ok(())
}
