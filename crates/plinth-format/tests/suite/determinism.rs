use std::path::Path;

use arrow_array::RecordBatch;
use arrow_schema::DataType;
use plinth_format::{Writer, WriterOptions};

use crate::data::{small, wide_batch};

fn bytes(path: &Path, batches: &[RecordBatch], options: WriterOptions) -> Vec<u8> {
    // Encoded inputs are written into columns of what they stand for.
    let schema = wide_batch(0, 0, 0).schema();
    let mut writer = Writer::create(path, &schema, options).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.finish().unwrap();
    std::fs::read(path).unwrap()
}

#[test]
fn the_same_rows_give_the_same_bytes_whatever_the_threads_and_the_batches() {
    let dir = tempfile::tempdir().unwrap();
    let batch = wide_batch(11, 9_000, 15);
    let whole = std::slice::from_ref(&batch);
    let pieces: Vec<_> = (0..9_000).step_by(123).map(|i| batch.slice(i, 123.min(9_000 - i))).collect();
    let reference = bytes(&dir.path().join("one"), whole, WriterOptions { threads: 1, ..small() });
    for threads in [2, 8] {
        let path = dir.path().join(format!("{threads}"));
        assert!(bytes(&path, whole, WriterOptions { threads, ..small() }) == reference, "{threads} threads");
    }
    assert!(bytes(&dir.path().join("pieces"), &pieces, small()) == reference, "other batches");

    // Dictionary arrays of the same values, read as Parquet gives them, change nothing either.
    let plain: Vec<_> = batch
        .columns()
        .iter()
        .map(|column| match column.data_type() {
            DataType::Utf8 | DataType::Int64 => {
                let dictionary = DataType::Dictionary(Box::new(DataType::Int32), Box::new(column.data_type().clone()));
                arrow_cast::cast(column, &dictionary).unwrap()
            }
            _ => column.clone(),
        })
        .collect();
    let fields: Vec<_> = plain.iter().map(|a| arrow_schema::Field::new("x", a.data_type().clone(), true)).collect();
    let dictionaries = RecordBatch::try_new(std::sync::Arc::new(arrow_schema::Schema::new(fields)), plain).unwrap();
    let pieces: Vec<_> = (0..9_000).step_by(500).map(|i| dictionaries.slice(i, 500)).collect();
    assert!(bytes(&dir.path().join("dictionaries"), &pieces, small()) == reference, "dictionary arrays");
}
