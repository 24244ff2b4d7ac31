//! What users of the row store may rely on.

#![allow(clippy::unwrap_used, clippy::panic, clippy::cast_possible_truncation, missing_docs, reason = "tests")]

mod attack;
mod changes;
#[path = "../../../plinth-format/tests/suite/counting.rs"]
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "that suite's")]
mod counting;
mod crash;
mod damage;
mod files;
#[path = "../../../plinth-format/tests/suite/forge.rs"]
#[allow(
    dead_code,
    unreachable_pub,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    reason = "that suite's"
)]
mod forge;
mod full;
mod histories;
mod hostile;
mod indexes;
mod layout;
mod lost;
mod model;
mod process;
mod soak;
mod threads;

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
pub(crate) use plinth_core::random::{Random, trials};
use plinth_format::{OpenOptions, WriterOptions};
use plinth_io::sim::{Faults, SimDisk};
use plinth_io::{Io, Source, Storage};
use plinth_rowstore::{Durability, Key, Result, Table, TableOptions};

/// What a table should hold: by key a number and a text.
pub(crate) type Model = BTreeMap<i64, (Option<i64>, String)>;

pub(crate) fn schema() -> Schema {
    Schema::new(vec![
        Field::new("id", DataType::Int64, false),
        Field::new("n", DataType::Int64, true),
        Field::new("t", DataType::Utf8, false),
    ])
}

pub(crate) fn batch<'a>(rows: impl IntoIterator<Item = (&'a i64, &'a (Option<i64>, String))>) -> RecordBatch {
    let rows: Vec<_> = rows.into_iter().collect();
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| *row.0))),
        Arc::new(Int64Array::from_iter(rows.iter().map(|row| row.1.0))),
        Arc::new(StringArray::from_iter_values(rows.iter().map(|row| &row.1.1))),
    ];
    RecordBatch::try_new(Arc::new(schema()), columns).unwrap()
}

pub(crate) fn one(id: i64, n: i64) -> RecordBatch {
    batch([(&id, &(Some(n), format!("row {id} of {n}")))])
}

/// The rows of some batches. No key may come twice.
pub(crate) fn rows(batches: impl IntoIterator<Item = Result<RecordBatch>>) -> Result<Model> {
    let mut model = Model::new();
    for batch in batches {
        let batch = batch?;
        let (ids, ns) = (batch.column(0).as_primitive::<Int64Type>(), batch.column(1).as_primitive::<Int64Type>());
        let texts = batch.column(2).as_string_view();
        for (i, id) in ids.values().iter().enumerate() {
            let row = (ns.iter().nth(i).unwrap(), texts.value(i).to_owned());
            assert!(model.insert(*id, row).is_none(), "the key {id} comes twice");
        }
    }
    Ok(model)
}

pub(crate) fn scan(table: &Table) -> Result<Model> {
    let snapshot = table.snapshot();
    let model = rows(snapshot.scan()?)?;
    assert_eq!(model.len() as u64, snapshot.num_rows());
    Ok(model)
}

/// Small everything, so that little data does much.
pub(crate) fn small() -> TableOptions {
    TableOptions {
        durability: Durability::Sync,
        cache_bytes: 64 << 10,
        background: false,
        log_step: 16 << 10,
        writer: WriterOptions { threads: 1, row_group_rows: 64, block_rows: 16, ..WriterOptions::default() },
        open: OpenOptions::default(),
        ..TableOptions::default()
    }
}

pub(crate) fn disk(seed: u64) -> (SimDisk, Arc<dyn Storage>) {
    let disk = SimDisk::new(seed, Io::shared());
    disk.set_faults(Faults { at_once: 100, ..Faults::default() });
    (disk.clone(), Arc::new(disk))
}

/// All bytes of a file.
pub(crate) fn bytes_of(disk: &SimDisk, name: &str) -> Vec<u8> {
    let source = disk.open(name).unwrap();
    let len = source.byte_len();
    source.read(std::slice::from_ref(&(0..len))).unwrap()[0].to_vec()
}

/// Gives a file other bytes; it is created if there is none.
pub(crate) fn put(disk: &SimDisk, name: &str, bytes: &[u8]) {
    disk.write(name, 0, bytes).unwrap();
    disk.set_len(name, bytes.len()).unwrap();
}

/// The newest file of the log.
pub(crate) fn newest_log(disk: &SimDisk) -> String {
    Storage::list(disk).unwrap().into_iter().rfind(|name| name.starts_with("_log-")).unwrap()
}

pub(crate) fn keys(ids: impl IntoIterator<Item = i64>) -> Vec<Key> {
    ids.into_iter().map(Key::from).collect()
}

/// Draws of these tests.
pub(crate) trait Draw {
    /// A key of few, so that the same ones come again.
    fn key(&mut self) -> i64;
}

impl Draw for Random {
    fn key(&mut self) -> i64 {
        i64::try_from(self.below(60)).unwrap() - 20
    }
}
