//! Decimals that come out in 64 bits are those that come out in 128.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Decimal128Type;
use arrow_array::{Array, ArrayRef, Decimal128Array, Int32Array, RecordBatch, StructArray};
use arrow_schema::{DataType, Field};
use plinth_encoding::expr::{Expr, Path, col};
use plinth_format::{File, PushdownMode, ScanBuilder, ScanColumn};

use crate::data::{Random, small, write};

const ROWS: usize = 6_000;

fn decimals(values: impl Iterator<Item = Option<i128>>) -> ArrayRef {
    Arc::new(values.collect::<Decimal128Array>().with_precision_and_scale(38, 2).unwrap())
}

/// Small numbers, with and without nulls, some of which are too large, all of which are, one value, and small ones within structs.
fn table(dir: &std::path::Path) -> File {
    let mut random = Random(3);
    let mut small_one = |nulls: u64| {
        decimals((0..ROWS).map(|_| (!random.chance(nulls)).then(|| i128::from(random.below(100_000)) - 50_000)))
    };
    let (plain, nulls, inner) = (small_one(0), small_one(30), small_one(10));
    let some = decimals((0..ROWS).map(|row| Some(if row % 997 == 5 { 1 << 90 } else { row as i128 })));
    let large = decimals((0..ROWS).map(|row| Some((1 << 100) + row as i128)));
    let one = decimals((0..ROWS).map(|_| Some(7)));
    let none = decimals((0..ROWS).map(|_| None));
    let field = Field::new("in", inner.data_type().clone(), true);
    let nested: ArrayRef = Arc::new(StructArray::from(vec![(Arc::new(field), inner)]));
    let number: ArrayRef = Arc::new(Int32Array::from_iter_values((0..ROWS as i32).map(|row| row * 7_919 % 1_000)));
    let columns = [
        ("plain", plain),
        ("nulls", nulls),
        ("some", some),
        ("large", large),
        ("one", one),
        ("none", none),
        ("nested", nested),
        ("n", number),
    ];
    let batch = RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true))).unwrap();
    write(&dir.join("t.plinth"), &batch, small())
}

/// The values of each column of a scan's chunks, and how many columns came in 64 bits.
fn read(scan: ScanBuilder) -> (Vec<Vec<Option<i128>>>, usize) {
    let mut scan = scan.build().unwrap();
    let (mut all, mut narrow) = (vec![Vec::new(); scan.schema().fields().len()], 0);
    while let Some(chunk) = scan.next_chunk().unwrap() {
        for (column, into) in chunk.columns.into_iter().zip(&mut all) {
            match column {
                ScanColumn::Narrow { values, nulls } => {
                    narrow += 1;
                    assert_eq!(values.len(), chunk.rows);
                    let is_valid = |row| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
                    into.extend((0..values.len()).map(|row| is_valid(row).then(|| i128::from(values[row]))));
                }
                ScanColumn::Arrow(array) => {
                    let array = if *array.data_type() == DataType::Int32 { continue } else { array };
                    let array = array.as_struct_opt().map_or(array.clone(), |nested| nested.column(0).clone());
                    into.extend(array.as_primitive::<Decimal128Type>().iter());
                }
                ScanColumn::Codes { .. } => panic!("decimals have no codes"),
            }
        }
    }
    (all, narrow)
}

#[test]
fn decimals_in_64_bits_are_those_in_128() {
    let dir = tempfile::tempdir().unwrap();
    let file = table(dir.path());
    let paths = |names: &[&str]| names.iter().map(|name| Path::new(name.split('.').map(str::to_owned))).collect();
    let outputs: [Vec<Path>; 4] = [
        paths(&["plain", "nulls", "some", "large", "one", "none"]),
        paths(&["nulls", "nested.in", "nulls"]),
        paths(&["nested", "nested.in", "n"]),
        paths(&["some", "n", "plain"]),
    ];
    let filters: [Option<Expr>; 7] = [
        None,
        Some(col("n").lt(300)),
        Some(col("plain").gt_eq(0)),
        Some(col("nulls").lt(-1_000)),
        Some(Expr::And(vec![col("some").gt(100), col("n").lt(900), col("plain").lt(20_000)])),
        Some(col("nulls").is_null()),
        Some(col("large").gt(0)),
    ];
    let mut narrow = 0;
    for output in &outputs {
        for filter in &filters {
            for mode in [PushdownMode::Auto, PushdownMode::AfterDecode, PushdownMode::FilterFirst] {
                let scan = || {
                    let scan = file.scan().project(output.clone()).pushdown_mode(mode);
                    filter.iter().cloned().fold(scan, ScanBuilder::filter)
                };
                let (wide, none) = read(scan());
                let (all, some) = read(scan().narrow());
                assert_eq!(none, 0);
                assert!(all == wide, "{output:?} {filter:?} {mode:?}");
                narrow += some;
                // Batches are what the schema says.
                let rows: usize = scan().narrow().build().unwrap().map(|batch| batch.unwrap().num_rows()).sum();
                assert_eq!(rows, scan().build().unwrap().map(|batch| batch.unwrap().num_rows()).sum::<usize>());
            }
        }
    }
    assert!(narrow > 500, "{narrow} columns came in 64 bits");
}
