use std::fmt::Debug;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type};
use arrow_array::{Float64Array, Int32Array, StringViewArray};
use arrow_buffer::NullBuffer;
use proptest::prelude::*;

use super::*;
use crate::error::ExecError;
use crate::vector::Coded;

type Row = (Option<i32>, Option<String>, Option<f64>);

/// A dictionary, sorted or not.
#[derive(Debug)]
struct Texts(Vec<String>);

impl Coded for Texts {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn identity(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    fn is_ordered(&self) -> bool {
        self.0.is_sorted()
    }

    fn values(&self, codes: &[u32], nulls: Option<&NullBuffer>) -> Result<ArrayRef> {
        let value = |(row, &code): (usize, &u32)| {
            nulls.is_none_or(|nulls| nulls.is_valid(row)).then(|| self.0[code as usize].as_str())
        };
        Ok(Arc::new(StringViewArray::from_iter(codes.iter().enumerate().map(value))))
    }
}

fn row() -> impl Strategy<Value = Row> {
    let text = prop_oneof!["[ab]{0,2}", "[a-c]{11,14}", Just("a long text that many rows have".to_owned())];
    let double = prop_oneof![Just(0.0), Just(-0.0), Just(f64::NAN), Just(-f64::NAN), -2.0..2.0];
    (prop::option::of(-4..4_i32), prop::option::of(text), prop::option::of(double))
}

fn texted() -> impl Strategy<Value = Texted> {
    prop_oneof![Just(Texted::Values), Just(Texted::Codes), Just(Texted::Mixed)]
}

fn options() -> impl Strategy<Value = SortOptions> {
    (any::<bool>(), any::<bool>()).prop_map(|(descending, nulls_first)| SortOptions { descending, nulls_first })
}

/// How the texts of a chunk come.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Texted {
    Values,
    Codes,
    /// In another order than that of their values.
    Mixed,
}

/// Rows as the columns of a chunk, their texts perhaps as codes of a dictionary of its own.
fn chunk(rows: &[Row], texted: Texted) -> Vec<Vector> {
    let texts = StringViewArray::from_iter(rows.iter().map(|row| row.1.as_deref()));
    let texts = if texted != Texted::Values {
        let mut values: Vec<String> = rows.iter().filter_map(|row| row.1.clone()).collect();
        values.sort_unstable();
        values.dedup();
        if texted == Texted::Mixed {
            values.reverse();
        }
        let code = |row: &Row| {
            let place = |text| values.iter().position(|value| value == text).unwrap();
            row.1.as_ref().map_or(u32::MAX, |text| u32::try_from(place(text)).unwrap())
        };
        let ids = rows.iter().map(code).collect();
        Vector::Codes { ids, nulls: texts.nulls().cloned(), dictionary: Arc::new(Texts(values)) }
    } else {
        Vector::Array(Arc::new(texts))
    };
    vec![
        Vector::Array(Arc::new(Int32Array::from_iter(rows.iter().map(|row| row.0)))),
        texts,
        Vector::Array(Arc::new(Float64Array::from_iter(rows.iter().map(|row| row.2)))),
    ]
}

fn compare<T: Debug>(one: &Option<T>, other: &Option<T>, by: &SortOptions, values: fn(&T, &T) -> Ordering) -> Ordering {
    match (one, other) {
        (Some(one), Some(other)) => {
            let ordering = values(one, other);
            if by.descending { ordering.reverse() } else { ordering }
        }
        (one, other) => {
            let ordering = one.is_some().cmp(&other.is_some());
            if by.nulls_first { ordering } else { ordering.reverse() }
        }
    }
}

/// The order as the standard library has it.
fn ordering(by: &[SortOptions], one: &Row, other: &Row) -> Ordering {
    compare(&one.0, &other.0, &by[0], i32::cmp)
        .then_with(|| compare(&one.1, &other.1, &by[1], String::cmp))
        .then_with(|| compare(&one.2, &other.2, &by[2], f64::total_cmp))
}

fn columns(by: &[SortOptions]) -> Vec<OrderColumn> {
    let types = [DataType::Int32, DataType::Utf8View, DataType::Float64];
    types.into_iter().zip(by).map(|(data_type, &options)| OrderColumn { data_type, options }).collect()
}

/// What tells values apart: the bits of a double.
fn bits(row: &Row) -> (Option<i32>, Option<String>, Option<u64>) {
    (row.0, row.1.clone(), row.2.map(f64::to_bits))
}

proptest! {
    #[test]
    fn the_first_rows_are_those_of_a_sort(
        chunks in prop::collection::vec((prop::collection::vec(row(), 0..40), texted(), any::<bool>()), 0..6),
        by in prop::collection::vec(options(), 3),
        count in 0..50_usize,
    ) {
        let budget = MemoryBudget::new(1 << 20);
        let mut ranking = Ranking::new(columns(&by)).unwrap();
        let mut first = First::new(count, &budget);
        let mut all: Vec<Row> = Vec::new();
        for (rows, texted, bounded) in &chunks {
            let bound = first.bound().cloned().filter(|_| *bounded);
            let best = ranking.best(&chunk(rows, *texted), count, bound.as_deref()).unwrap();
            let before = all.len();
            let known = first.bound().cloned();
            let tightened = first.push(best.into_iter().map(|(row, key)| (key, before + row as usize))).unwrap();
            prop_assert_eq!(tightened, known.as_ref() != first.bound());
            all.extend(rows.iter().cloned());
        }
        let (found, memory) = first.into_rows();
        prop_assert_eq!(memory.bytes() > 0, !found.is_empty());
        let mut sorted: Vec<&Row> = all.iter().collect();
        sorted.sort_by(|one, other| ordering(&by, one, other));
        prop_assert_eq!(found.len(), count.min(all.len()));
        let values = ranking.values(found.iter().map(|(key, _)| key)).unwrap();
        for (at, ((key, place), expected)) in found.iter().zip(sorted).enumerate() {
            prop_assert_eq!(bits(&all[*place]), bits(expected));
            let (numbers, texts) = (values[0].as_primitive::<Int32Type>(), values[1].as_string_view());
            let doubles = values[2].as_primitive::<Float64Type>();
            let decoded = (
                numbers.is_valid(at).then(|| numbers.value(at)),
                texts.is_valid(at).then(|| texts.value(at).to_owned()),
                doubles.is_valid(at).then(|| doubles.value(at)),
            );
            prop_assert_eq!(bits(&decoded), bits(expected));
            let bounds = ranking.bounds(Arc::clone(&values[0])).unwrap();
            prop_assert!(bounds[..=at].iter().all(|bound| bound <= key));
            let later = bounds[at..].iter().find(|bound| **bound != bounds[at]);
            prop_assert!(later.is_none_or(|bound| bound > key));
        }
        drop(memory);
        prop_assert_eq!(budget.used(), 0);
    }
}

#[test]
fn keys_that_do_not_fit_are_refused() {
    let budget = MemoryBudget::new(100);
    let mut first = First::new(10, &budget);
    let refused = first.push((0..10).map(|at| (vec![at; 20].into(), at))).unwrap_err();
    assert!(matches!(refused, ExecError::Memory(_)));
}
