//! What a table that is written to asks of files: some rows only, single blocks, rows as bytes.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, BooleanArray, Int64Array, ListArray, RecordBatch, StringArray, StructArray};
use arrow_buffer::BooleanBuffer;
use arrow_schema::{Field, Schema};
use arrow_select::concat::concat_batches;
use arrow_select::filter::filter_record_batch;
use plinth_encoding::expr::col;
use plinth_format::{Access, File, RowCodec, Writer, WriterOptions};

fn batch(rows: i64) -> RecordBatch {
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter((0..rows).map(|i| (i % 7 > 0).then_some(i * 3))));
    let texts: ArrayRef = Arc::new(StringArray::from_iter((0..rows).map(|i| (i % 5 > 0).then(|| format!("text {i}")))));
    let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<arrow_array::types::Int64Type, _, _>(
        (0..rows).map(|i| (i % 3 > 0).then(|| (0..i % 4).map(Some).collect::<Vec<_>>())),
    ));
    let field = |name, array: &ArrayRef| Field::new(name, array.data_type().clone(), true);
    let inner = StructArray::from(vec![(Arc::new(field("t", &texts)), Arc::clone(&texts))]);
    let inner: ArrayRef = Arc::new(inner);
    let fields = vec![field("n", &numbers), field("t", &texts), field("l", &lists), field("s", &inner)];
    RecordBatch::try_new(Arc::new(Schema::new(fields)), vec![numbers, texts, lists, inner]).unwrap()
}

#[test]
fn rows_become_bytes_and_rows_again_and_cut_bytes_are_errors() {
    for rows in [0, 1, 2, 300] {
        let batch = batch(rows);
        let codec = RowCodec::new(&batch.schema()).unwrap();
        let codec = RowCodec::from_schema_bytes(&codec.schema_bytes()).unwrap();
        let batch = codec.normalise(&batch).unwrap();
        let mut bytes = Vec::new();
        codec.encode(&batch, &mut bytes).unwrap();
        assert_eq!(codec.decode(&bytes, batch.num_rows()).unwrap(), batch);
        assert!(codec.decode(&bytes, batch.num_rows() + 1).is_err());
        for cut in (0..bytes.len()).step_by(1 + bytes.len() / 200) {
            assert!(codec.decode(&bytes[..cut], batch.num_rows()).is_err());
        }
    }
}

#[test]
fn some_rows_of_a_file_that_pass_filters_by_scan_and_by_postings() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.plinth");
    let words: Vec<String> = (0..3000_i64).map(|i| format!("word {}", i * 7919 % 40)).collect();
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..3000));
    let columns = [("n", numbers), ("w", Arc::new(StringArray::from(words.clone())) as ArrayRef)];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let index = vec!["w".to_owned()];
    let options = WriterOptions { row_group_rows: 512, block_rows: 64, index, ..WriterOptions::default() };
    let mut writer = Writer::create(&path, &batch.schema(), options).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
    let file = File::open(&path).unwrap();
    for step in [1, 2, 40, 300] {
        let only: BooleanBuffer = (0..3000).map(|row| row % step == 0).collect();
        let of = |word: &str, from: usize| -> Vec<i64> {
            let there = (0..3000).filter(|&row| row % step == 0 && words[row] == word && row >= from);
            there.map(|row| i64::try_from(row).unwrap()).collect()
        };
        for access in [Access::Auto, Access::Scan, Access::Postings] {
            for (word, from) in [("word 0", 0), ("word 7", 0), ("word 0", 1500), ("none", 0)] {
                let scan = file.scan().only_rows(only.clone()).filter(col("w").eq(word)).access(access);
                let scan = scan.filter(col("n").gt(i64::try_from(from).unwrap() - 1)).select(["n"]);
                let mut found = Vec::new();
                for batch in scan.batches().unwrap() {
                    found.extend_from_slice(batch.unwrap().column(0).as_primitive::<Int64Type>().values());
                }
                assert_eq!(found, of(word, from), "{word}, every {step}th row, {access:?}");
            }
        }
    }
}

#[test]
fn some_rows_of_a_file_and_single_blocks() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.plinth");
    let batch = batch(1000);
    let options = WriterOptions { row_group_rows: 256, block_rows: 64, ..WriterOptions::default() };
    let mut writer = Writer::create(&path, &batch.schema(), options).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
    let file = File::open(&path).unwrap();
    let whole = RowCodec::new(&batch.schema()).unwrap().normalise(&batch).unwrap();
    for step in [1, 2, 3, 70, 300, 2000] {
        let only: BooleanBuffer = (0..1000).map(|row| row % step == step / 2).collect();
        let scan = file.scan().only_rows(only.clone()).batches().unwrap();
        let found = concat_batches(&whole.schema(), &scan.map(|batch| batch.unwrap()).collect::<Vec<_>>()).unwrap();
        assert_eq!(found, filter_record_batch(&whole, &BooleanArray::new(only.clone(), None)).unwrap());
        let limited = file.scan().only_rows(only).limit(3).batches().unwrap();
        assert_eq!(limited.map(|batch| batch.unwrap().num_rows()).sum::<usize>(), found.num_rows().min(3));
    }
    assert!(file.scan().only_rows(BooleanBuffer::new_set(999)).batches().is_err());
    for row in (0..1000).step_by(37) {
        let (rows, block) = file.read_block_at(row).unwrap();
        assert!(rows.contains(&row) && rows == file.block_rows_at(row).unwrap());
        let start = usize::try_from(rows.start).unwrap();
        assert_eq!(block, whole.slice(start, block.num_rows()));
    }
    assert!(file.read_block_at(1000).is_err());
}
