//! Files with right checksums that claim what cannot be: each once made the reader reserve memory or count without end.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, Decimal128Array, FixedSizeBinaryArray, Int32Array, RecordBatch, RecordBatchOptions, new_null_array,
};
use arrow_schema::{DataType, Field, Schema};
use plinth_encoding::expr::{Path, col};
use plinth_format::{File, Result, Writer};
use plinth_io::MemorySource;

use crate::data::{Random, array, small, write};
use crate::forge::Forged;

fn table(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true))).unwrap()
}

fn bytes_of(batch: &RecordBatch) -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.plinth");
    write(&path, batch, small());
    std::fs::read(&path).unwrap()
}

fn open(bytes: &[u8]) -> Result<File> {
    File::from_source(Arc::new(MemorySource::new("hostile.plinth", bytes)))
}

/// Reads everything, and some rows by a predicate on the column `n`.
fn read(bytes: &[u8]) -> Result<()> {
    let all = open(bytes).and_then(|file| file.scan().build()?.try_for_each(|batch| batch.map(drop)));
    let some =
        open(bytes).and_then(|file| file.scan().filter(col("n").eq(7)).build()?.try_for_each(|batch| batch.map(drop)));
    all.and(some)
}

fn numbers(rows: i32) -> ArrayRef {
    Arc::new(Int32Array::from_iter_values(0..rows))
}

fn nested(data_type: DataType, rows: usize) -> Vec<u8> {
    bytes_of(&table(vec![("n", numbers(rows as i32)), ("x", array(&mut Random(3), &data_type, rows, 0))]))
}

#[test]
fn fixed_size_lists_cannot_claim_more_items_than_there_are() {
    let item = Arc::new(Field::new("item", DataType::Int16, true));
    let mut forged = Forged::new(&nested(DataType::FixedSizeList(item, 3), 1_000), 3);
    assert!(read(&forged.seal()).is_ok());
    forged.replace(&[18, 3, 0, 0, 0], &[18, 0xff, 0xff, 0xff, 0x7f]);
    assert!(read(&forged.seal()).is_err());
    forged.replace(&[18, 0xff, 0xff, 0xff, 0x7f], &[18, 2, 0, 0, 0]);
    assert!(read(&forged.seal()).is_err());
}

#[test]
fn lists_cannot_claim_more_items_than_there_are() {
    let item = Arc::new(Field::new("item", DataType::Int16, true));
    let list = nested(DataType::List(item), 1_000);
    let mut forged = Forged::new(&list, 3);
    // One constant block of the longest length, in place of the lengths.
    let start = forged.body.len().next_multiple_of(8);
    forged.body.resize(start, 0);
    let block = [0, 1, 0xff, 0xff, 0xff, 0xff];
    forged.body.extend_from_slice(&block);
    let mut meta = vec![0, 0xe8, 0x07, 0, 0, 0, 0, 0, 0, 0];
    let mut offset = start;
    while offset >= 0x80 {
        meta.push((offset & 0x7f) as u8 | 0x80);
        offset >>= 7;
    }
    meta.push(offset as u8);
    meta.extend_from_slice(&[6, 0, 1]);
    meta.extend_from_slice(&crate::forge::checksum(&block));
    meta.push(0);
    forged.set_metadata(1, &meta);
    let error = read(&forged.seal()).unwrap_err().to_string();
    assert!(error.contains("items"), "{error}");
}

#[test]
fn lists_in_lists_must_be_as_many_as_the_lists_around_them_hold() {
    let item = |data_type| Arc::new(Field::new("item", data_type, true));
    let outer = nested(DataType::List(item(DataType::List(item(DataType::Int16)))), 1_000);
    let mut forged = Forged::new(&outer, 4);
    let metadata = forged.body[forged.metadata(2)].to_vec();
    let sealed = forged.sealed(2, &[1_000], 1024, false);
    assert_eq!(sealed.len(), 1);
    // One inner list fewer, of which all are empty: values, then the block's offset, length, values.
    let block = [0, 1, 0, 0, 0, 0];
    let start = forged.body.len().next_multiple_of(8);
    forged.body.resize(start, 0);
    forged.body.extend_from_slice(&block);
    assert_eq!(metadata[0], 0);
    let mut fewer = vec![0, 5, 0, 0, 0, 0, 0, 0, 0];
    let mut offset = start;
    while offset >= 0x80 {
        fewer.push((offset & 0x7f) as u8 | 0x80);
        offset >>= 7;
    }
    fewer.extend_from_slice(&[offset as u8, 6, 5, 0, 1]);
    fewer.extend_from_slice(&crate::forge::checksum(&block));
    fewer.push(0);
    forged.set_metadata(2, &fewer);
    let error = read(&forged.seal()).unwrap_err().to_string();
    assert!(error.contains("items"), "{error}");
    let some = open(&forged.seal()).unwrap().scan().filter(col("n").eq(7)).build().unwrap().next().unwrap();
    assert!(some.unwrap_err().to_string().contains("items"));
}

#[test]
fn wide_values_cannot_claim_more_bytes_than_a_block_may_have() {
    let width = 77;
    let nulls = new_null_array(&DataType::FixedSizeBinary(width), 1_000);
    let constant = FixedSizeBinaryArray::try_from_iter((0..1_000).map(|_| vec![1u8; width as usize])).unwrap();
    for column in [nulls, Arc::new(constant) as ArrayRef] {
        let mut forged = Forged::new(&bytes_of(&table(vec![("n", numbers(1_000)), ("x", column)])), 2);
        assert!(read(&forged.seal()).is_ok());
        forged.replace(&[16, 77, 0, 0, 0], &[16, 0xff, 0xff, 0xff, 0x7f]);
        assert!(read(&forged.seal()).is_err());
    }
}

#[test]
fn decimals_cannot_have_more_digits_behind_the_point_than_they_have() {
    let decimals = Decimal128Array::from_iter_values((0..100).map(|i| i * 1_000_000_007));
    let decimals = decimals.with_precision_and_scale(38, 10).unwrap();
    let mut forged = Forged::new(&bytes_of(&table(vec![("n", numbers(100)), ("x", Arc::new(decimals))])), 2);
    assert!(open(&forged.seal()).unwrap().report().is_ok());
    forged.replace(&[4, 16, 38, 10], &[4, 16, 1, 10]);
    // Arrow prints such decimals by cutting more digits off than it has.
    assert!(open(&forged.seal()).and_then(|file| file.report()).is_err());
}

#[test]
fn row_groups_cannot_claim_more_rows_than_the_metadata_has_blocks() {
    let mut forged = Forged::new(&bytes_of(&table(vec![("n", numbers(500))])), 1);
    // The rows of a block, one row group, its 500 rows.
    let count = |file: &[u8]| {
        open(file).and_then(|file| file.scan().select([]).build()?.try_fold(0, |n, batch| Ok(n + batch?.num_rows())))
    };
    assert_eq!(count(&forged.seal()).unwrap(), 500);
    let at = forged.footer.len() - 20 - 7;
    assert_eq!(forged.footer[at + 4..at + 7], [1, 0xf4, 0x03]);
    let huge = [1, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x3f];
    forged.footer.splice(at..at + 7, huge);
    assert!(count(&forged.seal()).is_err());
    assert!(read(&forged.seal()).is_err());
}

#[test]
fn a_file_without_columns_has_no_rows() {
    let schema = Arc::new(Schema::empty());
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.plinth");
    let options = RecordBatchOptions::new().with_row_count(Some(3));
    let batch = RecordBatch::try_new_with_options(Arc::clone(&schema), vec![], &options).unwrap();
    assert!(Writer::create(&path, &schema, small()).unwrap().write(&batch).is_err());
    Writer::create(&path, &schema, small()).unwrap().finish().unwrap();
    let bytes = std::fs::read(&path).unwrap();
    assert_eq!(open(&bytes).unwrap().num_rows(), 0);
    let mut forged = Forged::new(&bytes, 0);
    let end = forged.footer.len();
    assert_eq!(forged.footer[end - 1], 0);
    forged.footer.splice(end - 1.., [1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x3f]);
    assert!(open(&forged.seal()).is_err());
}

#[test]
fn claimed_sizes_do_not_overflow_when_they_are_added() {
    let structs = array(
        &mut Random(1),
        &DataType::Struct(vec![Field::new("a", DataType::Int32, true), Field::new("b", DataType::Int32, true)].into()),
        100,
        0,
    );
    let mut forged = Forged::new(&bytes_of(&table(vec![("s", structs)])), 3);
    for stream in [1, 2] {
        let meta = forged.body[forged.metadata(stream)].to_vec();
        // Nulls (0), values (100), then the bytes they take in memory (400).
        assert_eq!(meta[..4], [0, 100, 0x90, 0x03]);
        let huge = [&meta[..2], &[0xff; 9], &[1], &meta[4..]].concat();
        forged.set_metadata(stream, &huge);
    }
    let file = open(&forged.seal()).unwrap();
    assert_eq!(file.statistics(&Path::column("s")).unwrap().value_bytes, u64::MAX);
    assert_eq!(file.report().unwrap().columns.len(), 3);
}
