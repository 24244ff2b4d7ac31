//! Groups that carry what their keys determine.

#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "codes are few")]

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Int64Type};
use arrow_array::{Array, ArrayRef, BooleanArray, Decimal128Array, Int64Array, StringViewArray};
use arrow_schema::DataType;
use plinth_io::MemoryBudget;
use proptest::prelude::*;

use crate::aggregate::Count;
use crate::error::ExecError;
use crate::grouping::{Chunk, Column, Division, Grouping, Merge, Order, Top};
use crate::key::{Keys, Meaning};
use crate::vector::samples::{coded, listed};
use crate::vector::{Coded, Vector};

/// Keys of most rows.
const COMMON: std::ops::Range<i64> = -40..400;

const WIDE: DataType = DataType::Decimal128(38, 0);

/// What a key determines: a text, a number of 128 bits, a condition.
fn carried(key: Option<i64>) -> (Option<String>, Option<i128>, Option<bool>) {
    let text = key.filter(|key| key % 5 != 0).map(|key| format!("the text of {key}, which is a long one"));
    (text, key.map(|key| i128::from(key) << 70), key.map_or(Some(true), |key| (key % 3 != 0).then_some(key > 0)))
}

fn chunk(keys: &[Option<i64>]) -> Chunk {
    let of: Vec<_> = keys.iter().map(|key| carried(*key)).collect();
    let wide = Decimal128Array::from_iter(of.iter().map(|of| of.1)).with_data_type(WIDE);
    let columns: [ArrayRef; 4] = [
        Arc::new(StringViewArray::from_iter(of.iter().map(|of| of.0.as_deref()))),
        Arc::new(Int64Array::from_iter(keys.iter().copied())),
        Arc::new(wide),
        Arc::new(BooleanArray::from_iter(of.iter().map(|of| of.2))),
    ];
    let rows = keys.len();
    let mut vectors = columns.map(Vector::Array);
    // Texts come as values, as codes of a dictionary of their own, and of one that others have, too.
    let codes = |code: &dyn Fn(usize) -> u32| -> Vec<Option<u32>> {
        of.iter().enumerate().map(|(row, of)| of.0.as_ref().map(|_| code(row))).collect()
    };
    match rows % 3 {
        0 => {
            let own = listed(of.iter().map(|of| of.0.as_deref().unwrap_or_default()));
            vectors[0] = coded(&codes(&|row| row as u32), &own);
        }
        1 if keys.iter().flatten().all(|key| COMMON.contains(key)) => {
            static ALL: LazyLock<Arc<dyn Coded>> = LazyLock::new(|| {
                let all: Vec<String> = COMMON.map(|key| carried(Some(key)).0.unwrap_or_default()).collect();
                listed(all.iter().map(String::as_str))
            });
            let code = |row: usize| keys[row].map_or(0, |key| (key - COMMON.start) as u32);
            vectors[0] = coded(&codes(&code), &ALL);
        }
        _ => {}
    }
    let keys = vectors.to_vec();
    Chunk { rows, keys, arguments: vec![vec![]], filters: vec![None] }
}

fn grouping(keys: &Keys, budget: &Arc<MemoryBudget>) -> Grouping {
    Grouping::new(keys.clone(), vec![Box::new(Count::rows())], budget).unwrap()
}

/// Keys that all threads share.
fn keys(budget: &Arc<MemoryBudget>) -> Keys {
    Keys::carrying(meanings(budget), &[true, false, true, true], budget)
}

fn meanings(budget: &Arc<MemoryBudget>) -> Vec<Meaning> {
    let types = [DataType::Utf8View, DataType::Int64, WIDE, DataType::Boolean];
    types.iter().map(|data_type| Meaning::of(data_type, budget).unwrap()).collect()
}

/// The rows of each key, once it was checked what came with it.
fn counted(arrays: &[ArrayRef], counts: &mut BTreeMap<Option<i64>, i64>) {
    let (texts, keys) = (arrays[0].as_string_view(), arrays[1].as_primitive::<Int64Type>());
    let (wide, conditions) = (arrays[2].as_primitive::<Decimal128Type>(), arrays[3].as_boolean());
    for row in 0..keys.len() {
        let key = keys.is_valid(row).then(|| keys.value(row));
        let text = texts.is_valid(row).then(|| texts.value(row).to_owned());
        let of = (
            text,
            wide.is_valid(row).then(|| wide.value(row)),
            conditions.is_valid(row).then(|| conditions.value(row)),
        );
        assert_eq!(of, carried(key));
        *counts.entry(key).or_default() += arrays[4].as_primitive::<Int64Type>().value(row);
    }
}

proptest! {
    #[test]
    fn groups_have_what_their_keys_determine(
        rows in prop::collection::vec(prop::option::of(COMMON), 1..400),
        size in 1..100_usize,
        threads in 1..4_usize,
        count in 0..12_usize,
    ) {
        let budget = MemoryBudget::new(1 << 30);
        let mut expected: BTreeMap<Option<i64>, i64> = BTreeMap::new();
        rows.iter().for_each(|key| *expected.entry(*key).or_default() += 1);
        let keys = keys(&budget);
        let groupings = || -> Vec<Grouping> {
            let of_thread = |rows: &[Option<i64>]| {
                let mut grouping = grouping(&keys, &budget);
                rows.chunks(size).for_each(|rows| grouping.push(&chunk(rows)).unwrap());
                grouping
            };
            rows.chunks(rows.len().div_ceil(threads)).map(of_thread).collect()
        };
        let merge = || {
            let groupings = groupings();
            let division = Division::new(&groupings).unwrap();
            let divided = groupings.into_iter().map(|grouping| division.divide(grouping).unwrap()).collect();
            Merge::new(division, divided)
        };
        let (all, mut found) = (merge(), BTreeMap::new());
        for part in 0..all.parts() {
            let mut merged = all.merged(part).unwrap();
            let groups = merged.all();
            counted(&merged.values(&groups).unwrap(), &mut found);
        }
        drop(all);
        prop_assert_eq!(&found, &expected);
        // The first by a carried number.
        let order = Order { descending: true, nulls_first: false };
        let top = Top { by: vec![(Column::Key(2), order)], whole: true, count };
        let (all, mut found) = (merge(), BTreeMap::new());
        let mut firsts = all.firsts();
        for part in 0..all.parts() {
            let mut merged = all.merged(part).unwrap();
            let groups = merged.top(&top).unwrap();
            firsts.take(merged, &groups).unwrap();
        }
        counted(&firsts.values(&top).unwrap(), &mut found);
        prop_assert_eq!(found, expected.into_iter().rev().take(count).collect());
        drop((all, keys));
        prop_assert_eq!(budget.used(), 0);
    }
}

/// What is numbered when there is no memory for it has made groups that are not told of.
#[test]
fn refused_memory_leaves_no_group_without_its_values() {
    let budget = MemoryBudget::new(600 << 10);
    // In little memory texts are each grouping's own.
    let new = || grouping(&keys(&budget), &budget);
    let (mut current, mut flushed, mut counts) = (new(), 0, BTreeMap::new());
    for start in (0..60_000).step_by(500) {
        let chunk = chunk(&(start..start + 500).map(|key| Some(key / 2)).collect::<Vec<_>>());
        if let Err(error) = current.push(&chunk) {
            assert!(matches!(error, ExecError::Memory(_)), "{error}");
            let all = current.all();
            counted(&current.partial(&all).unwrap(), &mut counts);
            flushed += 1;
            drop(current);
            current = new();
            current.push(&chunk).unwrap();
        }
    }
    let all = current.all();
    counted(&current.partial(&all).unwrap(), &mut counts);
    assert!(flushed > 1);
    assert!(counts.len() == 30_000 && counts.values().all(|count| *count == 2));
}
