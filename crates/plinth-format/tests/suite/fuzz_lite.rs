//! The fuzz targets' mutations with fixed seeds, for every build: files with right checksums and wrong contents.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, RecordBatch};
use arrow_schema::DataType;
use plinth_encoding::Effort;
use plinth_format::{FormatError, Writer, WriterOptions};

use crate::data::{Random, all_types, array};
use crate::forge::{Forged, Sample, exercise};

/// Mutations of each sample.
const ROUNDS: u64 = 150;

const ROWS: usize = 150;
const GROUP_ROWS: usize = 96;
const BLOCK_ROWS: usize = 32;

/// Whether each stream of a type holds one value a row, in preorder.
fn streams(data_type: &DataType, one_value_a_row: bool, out: &mut Vec<bool>) {
    out.push(one_value_a_row);
    match data_type {
        DataType::Struct(fields) => fields.iter().for_each(|field| streams(field.data_type(), one_value_a_row, out)),
        DataType::List(item) | DataType::FixedSizeList(item, _) | DataType::Map(item, _) => {
            streams(item.data_type(), false, out);
        }
        _ => {}
    }
}

/// A small file of numbers and values of one type.
pub fn sample(data_type: &DataType, seed: u64, effort: Effort) -> Sample {
    let mut random = Random(seed);
    let numbers: ArrayRef = Arc::new(Int32Array::from_iter_values((0..ROWS as i32).map(|n| n % 40)));
    let columns = [("n", numbers, true), ("x", array(&mut random, data_type, ROWS, seed % 3 * 20), true)];
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("sample.plinth");
    let options = WriterOptions {
        effort,
        row_group_rows: GROUP_ROWS,
        block_rows: BLOCK_ROWS,
        threads: 1,
        ..WriterOptions::default()
    };
    let mut writer = Writer::create(&path, &batch.schema(), options).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
    let bytes = std::fs::read(&path).unwrap();
    exercise(&bytes).unwrap();
    let file = plinth_format::File::open(&path).unwrap();
    let mut one_value_a_row = Vec::new();
    file.schema().fields().iter().for_each(|field| streams(field.data_type(), true, &mut one_value_a_row));
    Sample {
        file: Forged::new(&bytes, one_value_a_row.len()),
        rows: file.row_groups().iter().map(|group| group.rows).collect(),
        block_rows: BLOCK_ROWS as u64,
        one_value_a_row,
    }
}

#[test]
fn resealing_what_was_not_changed_gives_the_same_file() {
    for (i, data_type) in all_types().iter().enumerate() {
        let sample = sample(data_type, i as u64, Effort::Balanced);
        let before = sample.file.seal();
        let mut again = sample.file.clone();
        for (stream, &one_value_a_row) in sample.one_value_a_row.iter().enumerate() {
            let sealed = sample.file.sealed(stream, &sample.rows, sample.block_rows, one_value_a_row);
            assert!(sealed.len() >= sample.rows.len());
            sealed.iter().for_each(|sealed| again.set_sealed(stream, sealed, |_| {}));
        }
        assert!(again.seal() == before, "{data_type}");
    }
}

#[test]
fn resealed_mutations_are_errors_or_harmless() {
    let mut outcomes = [0, 0];
    for (i, data_type) in all_types().iter().enumerate() {
        let effort = [Effort::Balanced, Effort::Fast, Effort::Compact][i % 3];
        let sample = sample(data_type, i as u64, effort);
        let mut random = Random(i as u64);
        for _ in 0..ROUNDS {
            let result = exercise(&sample.mutated(&mut || random.next_u64()));
            outcomes[usize::from(result.is_ok())] += 1;
            if let Err(error) = result {
                let known =
                    matches!(error, FormatError::Corrupt { .. } | FormatError::Version { .. } | FormatError::Io(_));
                assert!(known, "{data_type}: {error}");
            }
        }
    }
    assert!(outcomes.iter().all(|&count| count > 200), "{outcomes:?}");
}
