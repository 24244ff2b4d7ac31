//! Sorted rows are the input's rows in order, whatever the memory, the threads and the batches.

use std::path::Path;

use arrow_array::{Array, RecordBatch, UInt64Array};
use arrow_row::{RowConverter, SortField};
use plinth_format::sort::{SortKey, SortOptions, Sorter};

use crate::data::{assert_same, wide_batch};

fn key(column: &str, descending: bool) -> SortKey {
    SortKey { column: column.to_owned(), descending }
}

fn options(folder: &Path, memory: u64, threads: usize) -> SortOptions {
    let folder = folder.to_path_buf();
    SortOptions { gather_bytes: memory, merge_bytes: memory, threads, folder, cancelled: Default::default() }
}

/// By a stable sort in memory.
fn naive(batch: &RecordBatch, by: &[SortKey]) -> RecordBatch {
    let columns: Vec<_> = by.iter().map(|key| batch.column_by_name(&key.column).unwrap().clone()).collect();
    let fields = columns.iter().zip(by).map(|(column, key)| {
        let order = arrow_schema::SortOptions { descending: key.descending, nulls_first: key.descending };
        SortField::new_with_options(column.data_type().clone(), order)
    });
    let rows = RowConverter::new(fields.collect()).unwrap().convert_columns(&columns).unwrap();
    let mut order: Vec<u64> = (0..batch.num_rows() as u64).collect();
    order.sort_by(|&a, &b| rows.row(a as usize).cmp(&rows.row(b as usize)));
    arrow_select::take::take_record_batch(batch, &UInt64Array::from(order)).unwrap()
}

fn sorted(batch: &RecordBatch, step: usize, by: &[SortKey], options: SortOptions) -> RecordBatch {
    let mut sorter = Sorter::new(&batch.schema(), by, options).unwrap();
    for from in (0..batch.num_rows()).step_by(step) {
        sorter.push(&batch.slice(from, step.min(batch.num_rows() - from))).unwrap();
    }
    let rows = sorter.finish().unwrap();
    let schema = rows.schema().clone();
    let batches: Vec<RecordBatch> = rows.map(Result::unwrap).collect();
    arrow_select::concat::concat_batches(&schema, &batches).unwrap()
}

/// Columns as the sorter hands them out.
fn as_sorted(batch: &RecordBatch, like: &RecordBatch) -> RecordBatch {
    let schema = like.schema();
    let columns = batch.columns().iter().zip(schema.fields().iter()).map(|(column, field)| {
        if column.data_type() == field.data_type() {
            column.clone()
        } else {
            arrow_cast::cast(column, field.data_type()).unwrap()
        }
    });
    RecordBatch::try_new(like.schema(), columns.collect()).unwrap()
}

/// Without the columns that arrow's `take` and `cast` can't be trusted with.
fn trusted(batch: &RecordBatch) -> RecordBatch {
    use arrow_schema::DataType::*;
    let schema = batch.schema();
    let kept = schema.fields().iter().enumerate().filter(|(_, field)| {
        !matches!(field.data_type(), FixedSizeList(..) | RunEndEncoded(..) | ListView(_) | LargeListView(_))
    });
    batch.project(&kept.map(|(i, _)| i).collect::<Vec<_>>()).unwrap()
}

#[test]
fn every_type_is_carried_along_and_those_with_an_order_sort() {
    let dir = tempfile::tempdir().unwrap();
    let batch = trusted(&wide_batch(5, 3_000, 20));
    let mut sortable = 0;
    for field in batch.schema().fields() {
        let by = [key(field.name(), sortable % 2 == 1), key("c3", false)];
        let stored = options(dir.path(), 1 << 30, 2);
        if Sorter::new(&batch.schema(), &by, stored.clone()).is_err() {
            continue;
        }
        sortable += 1;
        let got = sorted(&batch, 700, &by, stored);
        assert_same(&got, &as_sorted(&naive(&batch, &by), &got));
    }
    assert!(sortable > 30, "{sortable}");
}

#[test]
fn memory_threads_and_batches_change_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let batch = trusted(&wide_batch(9, 2_500, 10));
    let text = batch.schema().fields().iter().position(|f| f.data_type() == &arrow_schema::DataType::Utf8).unwrap();
    let by = [key(batch.schema().field(text).name(), false), key("c2", true)];
    let reference = sorted(&batch, 2_500, &by, options(dir.path(), 1 << 30, 1));
    assert_same(&reference, &as_sorted(&naive(&batch, &by), &reference));
    // From one run to several passes of merging.
    for (memory, threads, step) in [(4 << 20, 2, 999), (600_000, 3, 500), (100_000, 2, 64), (40_000, 1, 2_500)] {
        assert_same(&sorted(&batch, step, &by, options(dir.path(), memory, threads)), &reference);
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "scratch files have no names");
}

#[test]
fn few_rows_and_none() {
    let dir = tempfile::tempdir().unwrap();
    for rows in [0, 1, 2] {
        let batch = trusted(&wide_batch(1, rows, 0));
        let got = sorted(&batch, 1, &[key("c1", true)], options(dir.path(), 1 << 20, 2));
        assert_eq!(got.num_rows(), rows);
    }
}

#[test]
fn what_cannot_be_sorted_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let batch = wide_batch(1, 10, 0);
    let fail = |by: &[SortKey]| match Sorter::new(&batch.schema(), by, options(dir.path(), 1 << 20, 1)) {
        Ok(_) => panic!("{by:?}"),
        Err(e) => e.to_string(),
    };
    assert!(fail(&[key("nope", false)]).contains("\"nope\""));
    assert!(fail(&[]).contains("no column"));
    let mut sorter = Sorter::new(&batch.schema(), &[key("c1", false)], options(dir.path(), 1 << 20, 1)).unwrap();
    assert!(sorter.push(&batch.project(&[0]).unwrap()).is_err());

    // A folder that takes no scratch file, and someone who changes their mind.
    let mut sorter =
        Sorter::new(&batch.schema(), &[key("c1", false)], options(&dir.path().join("none"), 1 << 20, 1)).unwrap();
    sorter.push(&batch).unwrap();
    assert!(sorter.finish().is_err());
    let stored = options(dir.path(), 1 << 20, 1);
    let cancelled = stored.cancelled.clone();
    let mut sorter = Sorter::new(&batch.schema(), &[key("c1", false)], stored).unwrap();
    sorter.push(&batch).unwrap();
    cancelled.store(true, std::sync::atomic::Ordering::Relaxed);
    assert!(sorter.finish().is_err());
}

#[test]
fn dropping_the_rows_early_stops_the_merge() {
    let dir = tempfile::tempdir().unwrap();
    let batch = trusted(&wide_batch(2, 5_000, 10));
    let mut sorter = Sorter::new(&batch.schema(), &[key("c4", false)], options(dir.path(), 100_000, 2)).unwrap();
    sorter.push(&batch).unwrap();
    let mut rows = sorter.finish().unwrap();
    assert!(rows.next().unwrap().unwrap().num_rows() > 0);
    drop(rows);
}
