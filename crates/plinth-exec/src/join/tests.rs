use arrow_array::{ArrayRef, Int32Array, Int64Array};
use arrow_schema::DataType;
use proptest::prelude::*;

use super::*;

/// Keys of two columns.
type Key = (Option<i64>, Option<i32>);

fn vectors(rows: &[Key], columns: usize) -> Vec<Vector> {
    let one: ArrayRef = Arc::new(rows.iter().map(|row| row.0).collect::<Int64Array>());
    let two: ArrayRef = Arc::new(rows.iter().map(|row| row.1).collect::<Int32Array>());
    [Vector::Array(one), Vector::Array(two)].into_iter().take(columns).collect()
}

/// A key's number: near, far, or at the ends of what there is.
fn number() -> impl Strategy<Value = Option<i64>> {
    prop_oneof![
        8 => (-4_i64..4).prop_map(Some),
        2 => (0_i64..1 << 30).prop_map(Some),
        1 => any::<i64>().prop_map(Some),
        1 => prop_oneof![Just(i64::MIN), Just(i64::MAX)].prop_map(Some),
        1 => Just(None),
    ]
}

fn keys(most: usize) -> impl Strategy<Value = Vec<Key>> {
    let small = prop_oneof![9 => (-2..3_i32).prop_map(Some), 1 => Just(None)];
    prop::collection::vec((number(), small), 0..most)
}

/// All pairs that a table gives for rows, in pieces of at most so many.
fn pairs(table: &Table, probe: &[Key], columns: usize, most: usize) -> Vec<(u32, u32)> {
    let (mut groups, mut all) = (Vec::new(), Vec::new());
    table.probe().groups(table, &vectors(probe, columns), probe.len(), &mut groups).unwrap();
    let (mut cursor, mut probed, mut found) = (Cursor::default(), Vec::new(), Vec::new());
    loop {
        let ended = table.pairs(&groups, &mut cursor, most, &mut probed, &mut found);
        assert!(found.len() <= most && found.len() == probed.len());
        all.extend(probed.iter().copied().zip(found.iter().copied()));
        if ended {
            return all;
        }
    }
}

fn equal(one: &Key, two: &Key, columns: usize, nulls_match: bool) -> bool {
    let of = |key: &Key| [key.0, key.1.map(i64::from)];
    let each = of(one).into_iter().zip(of(two)).take(columns);
    each.into_iter().all(|(one, two)| one == two && (nulls_match || one.is_some()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn pairs_are_those_of_a_nested_loop(
        build in keys(120),
        probe in keys(120),
        columns in 1_usize..3,
        nulls_match: bool,
        expected in prop::option::of((-3_i64..0, 0_i64..5)),
        piece in 1_usize..50,
        most in 1_usize..40,
    ) {
        let budget = MemoryBudget::new(1 << 30);
        let types = [DataType::Int64, DataType::Int32];
        let meanings = types[..columns].iter().map(|t| Meaning::of(t, &budget).unwrap()).collect();
        let mut builder = Builder::new(meanings, &[expected, None][..columns], nulls_match, build.len(), &budget);
        for rows in build.chunks(piece) {
            builder.push(&vectors(rows, columns), rows.len()).unwrap();
        }
        let table = builder.finish().unwrap();
        prop_assert_eq!(table.len(), build.len());
        let mut wanted = Vec::new();
        for (row, key) in probe.iter().enumerate() {
            let matching = build.iter().enumerate().filter(|(_, other)| equal(key, other, columns, nulls_match));
            wanted.extend(matching.map(|(other, _)| (row as u32, other as u32)));
        }
        prop_assert_eq!(pairs(&table, &probe, columns, most), wanted);
        for column in 0..columns {
            let Some(mut integers) = table.integers(column) else {
                prop_assert!(nulls_match);
                continue;
            };
            let keyed = build.iter().filter(|key| equal(key, key, columns, false));
            let mut all: Vec<i64> = keyed.filter_map(|key| [key.0, key.1.map(i64::from)][column]).collect();
            for numbers in [&mut integers, &mut all] {
                numbers.sort_unstable();
                numbers.dedup();
            }
            prop_assert_eq!(integers, all);
        }
    }
}

#[test]
fn many_hashed_keys_are_found_again() {
    let budget = MemoryBudget::new(1 << 30);
    let mut builder = Builder::new(vec![Meaning::of(&DataType::Int64, &budget).unwrap()], &[None], false, 0, &budget);
    let key = |row: i64| (Some(row.wrapping_mul(0x9e37_79b9_7f4a_7c15_u64.cast_signed())), None);
    let build: Vec<Key> = (0..200_000).map(key).collect();
    builder.push(&vectors(&build, 1), build.len()).unwrap();
    let table = builder.finish().unwrap();
    let probe: Vec<Key> = (100_000..300_000).map(key).collect();
    let wanted: Vec<(u32, u32)> = (0..100_000).map(|row| (row, row + 100_000)).collect();
    assert_eq!(pairs(&table, &probe, 1, 8192), wanted);
}

#[test]
fn refused_memory_is_an_error() {
    let budget = MemoryBudget::new(1 << 16);
    let mut builder = Builder::new(vec![Meaning::of(&DataType::Int64, &budget).unwrap()], &[None], false, 0, &budget);
    let build: Vec<Key> = (0..100_000).map(|row| (Some(row), None)).collect();
    assert!(matches!(builder.push(&vectors(&build, 1), build.len()), Err(ExecError::Memory(_))));
}
