//! Blocks that are counted from metadata: with the rows that come out they are all that pass.

use std::sync::atomic::Ordering::Relaxed;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray};
use plinth_encoding::expr::{Expr, Path, col};
use plinth_format::{ColumnTotal, File, TotalOf, Totals};

use crate::data::{Random, read_all, small, write};

const ROWS: usize = 9_000;

/// Ascending numbers, others with nulls, text, doubles.
fn table(dir: &std::path::Path) -> (RecordBatch, File) {
    let mut random = Random(11);
    let up: Int64Array = (0..ROWS as i64).map(|row| Some(row - 4_000)).collect();
    let some: Int32Array =
        (0..ROWS).map(|_| if random.chance(20) { None } else { Some(random.below(2_000) as i32 - 1_000) }).collect();
    let columns: [(&str, ArrayRef); 4] = [
        ("up", std::sync::Arc::new(up)),
        ("some", std::sync::Arc::new(some)),
        ("text", std::sync::Arc::new(StringArray::from_iter_values((0..ROWS).map(|row| format!("{}", row % 7))))),
        ("double", std::sync::Arc::new(Float64Array::from_iter_values((0..ROWS).map(|row| row as f64)))),
    ];
    let batch = RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true))).unwrap();
    let file = write(&dir.join("t.plinth"), &batch, small());
    (batch, file)
}

fn of(column: &str, sum: bool, bounds: bool) -> TotalOf {
    TotalOf { column: Path::column(column), sum, bounds }
}

/// What the rows for which a condition holds add up to: of `up` and `some`.
fn naive(batch: &RecordBatch, passes: impl Fn(i64, Option<i32>) -> bool) -> Totals {
    let (up, some) = (batch["up"].as_primitive::<Int64Type>(), batch["some"].as_primitive::<Int32Type>());
    let mut all = Totals { rows: 0, columns: vec![ColumnTotal::default(); 2] };
    for row in 0..batch.num_rows() {
        let value = some.is_valid(row).then(|| some.value(row));
        if passes(up.value(row), value) {
            let total = |value: Option<i128>| match value {
                Some(value) => ColumnTotal { values: 1, sum: value, bounds: Some((value, value)) },
                None => ColumnTotal::default(),
            };
            let columns = vec![total(Some(up.value(row).into())), total(value.map(Into::into))];
            all = all.and(&Totals { rows: 1, columns }).unwrap();
        }
    }
    all
}

#[test]
fn what_is_counted_and_what_comes_out_is_all_that_passes() {
    let dir = tempfile::tempdir().unwrap();
    let (batch, file) = table(dir.path());
    let mut random = Random(5);
    let mut counted = 0;
    for _ in 0..200 {
        let (from, to) = (random.below(9_000) as i64 - 4_000, random.below(9_000) as i64 - 4_000);
        let least = [-1_000, -1_000, 300][random.below(3) as usize];
        let null_too = random.chance(50);
        let mut predicate = Expr::And(vec![col("up").gt_eq(from), col("up").lt(to)]);
        if !null_too {
            predicate = Expr::And(vec![predicate, col("some").gt_eq(least)]);
        }
        let passes = |up: i64, some: Option<i32>| {
            up >= from && up < to && (null_too || some.is_some_and(|some| some >= least as i32))
        };
        let expected = naive(&batch, passes);
        let wanted = vec![of("up", true, true), of("some", true, true)];
        let mut scan = file.scan().select(["up", "some"]).filter(predicate).totals(wanted).build().unwrap();
        let rows: Vec<RecordBatch> = scan.by_ref().map(Result::unwrap).collect();
        counted += scan.metrics().blocks_counted.load(Relaxed);
        let mut all = scan.take_totals();
        assert_eq!(scan.take_totals(), Totals::default(), "what was taken is counted once more");
        for batch in rows {
            all = all.and(&naive(&batch, |_, _| true)).unwrap();
        }
        if expected.rows == 0 {
            assert_eq!(all.rows, 0);
        } else {
            assert_eq!(all, expected, "{from}..{to}, {least}, {null_too}");
        }
    }
    assert!(counted > 50, "{counted} blocks were counted");
}

#[test]
fn a_block_of_which_metadata_does_not_tell_all_comes_out() {
    let dir = tempfile::tempdir().unwrap();
    let (_, file) = table(dir.path());
    for (wanted, counts) in [
        (of("text", false, false), true),
        (of("text", true, false), false),
        (of("text", false, true), false),
        (of("double", false, false), true),
        (of("double", true, false), false),
        (of("double", false, true), false),
        (of("up", false, true), true),
    ] {
        let mut scan =
            file.scan().select(["up"]).filter(col("up").gt_eq(-9_000)).totals(vec![wanted.clone()]).build().unwrap();
        let rows: usize = scan.by_ref().map(|batch| batch.unwrap().num_rows()).sum();
        assert_eq!(rows + scan.take_totals().rows as usize, ROWS, "{wanted:?}");
        assert_eq!(rows == 0, counts, "{wanted:?}");
    }
}

#[test]
fn totals_of_the_first_rows_are_refused_and_rows_that_do_not_count_are_not_counted() {
    let dir = tempfile::tempdir().unwrap();
    let (_, file) = table(dir.path());
    let error = file.scan().totals(Vec::new()).limit(3).build().unwrap_err().to_string();
    assert!(error.contains("totals"), "{error}");
    let error = file.scan().totals(vec![of("none", true, true)]).build().unwrap_err().to_string();
    assert!(error.contains("none"), "{error}");
    let only = (0..ROWS).map(|row| row % 2 == 0).collect();
    let mut scan = file.scan().filter(col("up").gt_eq(-9_000)).totals(Vec::new()).only_rows(only).build().unwrap();
    let rows = scan.by_ref().map(|batch| batch.unwrap().num_rows()).sum::<usize>();
    assert_eq!((rows, scan.take_totals().rows), (ROWS / 2, 0));
    // Without a filter all rows pass.
    let mut scan = file.scan().totals(Vec::new()).build().unwrap();
    assert_eq!((scan.by_ref().count(), scan.take_totals().rows), (0, ROWS as u64));
    assert_eq!(read_all(file.scan().build().unwrap()).num_rows(), ROWS);
}
