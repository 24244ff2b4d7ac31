//! Foreign files in, the same rows out, and back.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss
)]

mod csv;
mod dialects;
mod json;
mod kinds;
mod parquet;
mod partitions;
mod profile;
mod restart;
mod roundtrip;
mod said;
mod stored;
mod stored_rows;
mod text;
mod verdicts;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_cast::cast;
use arrow_select::concat::concat_batches;
use plinth_core::random::Random;
use plinth_ingest::{BatchSource, SourceOptions};

/// All rows of a source in the types of its schema.
fn drain(source: &mut dyn BatchSource) -> Result<RecordBatch, String> {
    let schema = Arc::clone(source.schema());
    let mut batches = Vec::new();
    while let Some(batch) = source.next_batch().map_err(|e| e.to_string())? {
        let columns = batch.columns().iter().zip(schema.fields()).map(|(a, f)| cast(a, f.data_type()).unwrap());
        let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        batches.push(RecordBatch::try_new_with_options(Arc::clone(&schema), columns.collect(), &options).unwrap());
        if let Some(bytes) = source.totals().bytes {
            assert!(source.position().bytes <= bytes);
        }
    }
    let all = concat_batches(&schema, &batches).unwrap();
    assert_eq!(source.position().rows, all.num_rows() as u64);
    if let Some(bytes) = source.totals().bytes {
        assert_eq!(source.position().bytes, bytes);
    }
    Ok(all)
}

fn read<P: AsRef<Path>>(inputs: &[P], options: &SourceOptions) -> Result<RecordBatch, String> {
    let mut source = plinth_ingest::open(inputs, options).map_err(|e| e.to_string())?;
    drain(source.as_mut())
}

fn write(folder: &Path, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, content).unwrap();
    path
}

/// A batch as lines of JSON, for comparisons that can be read.
fn lines(batch: &RecordBatch) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.ndjson");
    let mut sink = plinth_ingest::export::to_file(&path, batch.schema_ref(), &Default::default()).unwrap();
    sink.write(batch).unwrap();
    sink.finish().unwrap();
    std::fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect()
}

/// What tests draw from numbers that are the same in every run.
trait Draw {
    fn one_in(&mut self, many: usize) -> bool;
    fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T;
}

impl Draw for Random {
    fn one_in(&mut self, many: usize) -> bool {
        self.index(many) == 0
    }

    fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.index(of.len())]
    }
}
