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

/// The table of rows that come in pieces, made in so many parts (a power of two).
fn built(
    build: &[Key],
    columns: usize,
    ranges: &[Bounds],
    nulls_match: bool,
    piece: usize,
    part_bits: u32,
    budget: &Arc<MemoryBudget>,
) -> Result<Table> {
    let types = [DataType::Int64, DataType::Int32];
    let meanings = types[..columns].iter().map(|t| Meaning::of(t, budget).unwrap()).collect();
    let mut builder = Builder::new(meanings, ranges, nulls_match, build.len(), 1, budget)?;
    builder.part_bits = part_bits;
    let pieces: Vec<&[Key]> = build.chunks(piece).collect();
    let packed = loop {
        let pack =
            |(at, rows): (usize, &&[Key])| builder.pack(&vectors(rows, columns), rows.len(), (at * piece) as u32);
        let packed = pieces.iter().enumerate().map(pack).collect::<Result<Vec<_>>>()?;
        if !builder.widen(&packed) {
            break packed;
        }
    };
    let made = (0..builder.parts()).map(|at| builder.part(at, &packed)).collect::<Result<Vec<_>>>()?;
    Ok(builder.finish(made)?)
}

/// All pairs that a table gives for rows, in pieces of at most so many.
fn pairs(table: &Table, probe: &[Key], columns: usize, most: usize) -> Vec<(u32, u32)> {
    let (mut places, mut all) = (Vec::new(), Vec::new());
    table.probe().places(table, &vectors(probe, columns), probe.len(), &mut places).unwrap();
    let of_row = |(row, place): (usize, &u32)| table.rows(*place).map(move |found| (row as u32, found));
    let each = places.iter().enumerate().filter(|(_, place)| **place != NO_ROW).flat_map(of_row).collect::<Vec<_>>();
    let (mut cursor, mut probed, mut found) = (Cursor::default(), Vec::new(), Vec::new());
    loop {
        let ended = table.pairs(&places, &mut cursor, most, &mut probed, &mut found);
        assert!(found.len() <= most && found.len() == probed.len());
        all.extend(probed.iter().copied().zip(found.iter().copied()));
        if ended {
            assert_eq!(all, each);
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
        part_bits in 0_u32..4,
        most in 1_usize..40,
    ) {
        let budget = MemoryBudget::new(1 << 30);
        let ranges = &[expected, None][..columns];
        let table = built(&build, columns, ranges, nulls_match, piece, part_bits, &budget).unwrap();
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
    for (part_bits, several) in [(0, 1_u32), (3, 1), (0, 3), (3, 3)] {
        let key =
            |row: i64| (Some((row / i64::from(several)).wrapping_mul(0x9e37_79b9_7f4a_7c15_u64.cast_signed())), None);
        let build: Vec<Key> = (0..200_000).map(key).collect();
        let table = built(&build, 1, &[None], false, 8192, part_bits, &budget).unwrap();
        assert!(!table.addressed);
        let probe: Vec<Key> = (150_000..300_000).map(key).collect();
        let first = |row: u32| (150_000 + row) / several * several;
        let rows = |row: u32| (first(row)..(first(row) + several).min(200_000)).map(move |found| (row, found));
        let wanted: Vec<(u32, u32)> =
            (0..50_000 + several).filter(|row| first(*row) < 200_000).flat_map(rows).collect();
        assert_eq!(pairs(&table, &probe, 1, 8192), wanted);
    }
}

#[test]
fn addresses_are_told_by_the_number_of_rows() {
    let budget = MemoryBudget::new(1 << 30);
    let build: Vec<Key> = (0..100_000).map(|row| (Some(row * 7 % 100_000), None)).collect();
    for part_bits in [0, 2] {
        let table = built(&build, 1, &[Some((0, (1 << 19) - 1))], false, 8192, part_bits, &budget).unwrap();
        assert!(table.addressed);
        let probe: Vec<Key> = (-5..100_005).map(|row| (Some(row), None)).collect();
        let found = pairs(&table, &probe, 1, 1000);
        assert!(found.len() == 100_000 && found.iter().all(|(row, found)| found * 7 % 100_000 + 5 == *row));
    }
}

#[test]
fn refused_memory_is_an_error() {
    let budget = MemoryBudget::new(1 << 16);
    let build: Vec<Key> = (0..100_000).map(|row| (Some(row), None)).collect();
    assert!(matches!(built(&build, 1, &[None], false, 100_000, 0, &budget), Err(ExecError::Memory(_))));
    assert_eq!(budget.used(), 0);
}
