use std::path::Path;

use std::sync::Arc;

use arrow_array::{RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
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

/// Rows of many words, some null, in a few row groups: their distinct values are interned by several threads, some of
/// them new in each row group.
fn words(rows: u32, distinct: u32) -> RecordBatch {
    let word = |row: u32| {
        let pick = row.wrapping_mul(2_654_435_769).rotate_left(7) % distinct;
        let tail = if pick.is_multiple_of(5) { "and what is too long for a view to hold" } else { "" };
        (!row.is_multiple_of(11)).then(|| format!("w{:x}{tail}", pick.wrapping_mul(0x9e37_79b9)))
    };
    let schema = Arc::new(Schema::new(vec![Field::new("word", DataType::Utf8, true)]));
    RecordBatch::try_new(schema, vec![Arc::new(StringArray::from_iter((0..rows).map(word)))]).unwrap()
}

#[test]
fn words_get_the_same_codes_whichever_thread_interns_them() {
    let dir = tempfile::tempdir().unwrap();
    for (name, distinct, limit) in [("few", 3_000, 1 << 20), ("many", 40_000, 1 << 20), ("several", 40_000, 20_000)] {
        let batch = words(120_000, distinct);
        let file = |threads: usize, step: usize| {
            let path = dir.path().join(format!("{name}-{threads}-{step}"));
            let options = WriterOptions {
                threads,
                row_group_rows: 16_384,
                block_rows: 1_024,
                dictionary_values: limit,
                ..WriterOptions::default()
            };
            let mut writer = Writer::create(&path, &batch.schema(), options).unwrap();
            for from in (0..batch.num_rows()).step_by(step) {
                writer.write(&batch.slice(from, step.min(batch.num_rows() - from))).unwrap();
            }
            writer.finish().unwrap();
            let opened = plinth_format::File::open(&path).unwrap();
            (std::fs::read(&path).unwrap(), opened.report().unwrap().columns[0].dictionaries)
        };
        let (reference, dictionaries) = file(1, 120_000);
        assert_eq!(dictionaries > 1, name == "several", "{name}: {dictionaries}");
        for (threads, step) in [(1, 1_000), (2, 120_000), (2, 777), (7, 120_000), (7, 8_192), (7, 65_536)] {
            assert!(file(threads, step).0 == reference, "{name}: {threads} threads, batches of {step}");
        }
    }
}
