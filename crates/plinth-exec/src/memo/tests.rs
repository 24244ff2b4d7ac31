use std::collections::BTreeSet;
use std::sync::Mutex;

use arrow_array::types::Int32Type;
use arrow_array::{Int32Array, StringViewArray};
use proptest::prelude::*;

use super::*;
use crate::vector::samples::{coded, listed, texts};

/// Some values of a dictionary of twelve: long ones and short ones.
fn values() -> Vec<String> {
    (0..12_usize).map(|value| "abc".repeat(value)).collect()
}

/// Text of the values: none for lengths that three times three divides, text for null.
fn shortened(value: Option<&str>) -> Option<String> {
    match value {
        None => Some("nothing".to_owned()),
        Some(value) if value.len() % 9 == 0 => None,
        Some(value) => Some(format!("{} of {value}", value.len())),
    }
}

fn length(value: Option<&str>) -> Option<i32> {
    value.filter(|value| value.len() % 9 != 0).map(|value| i32::try_from(value.len()).unwrap())
}

fn rows() -> impl Strategy<Value = Vec<Option<u32>>> {
    prop::collection::vec(prop::option::weighted(0.9, 0..12_u32), 0..40)
}

proptest! {
    #[test]
    fn results_are_those_of_the_function(batches in prop::collection::vec(rows(), 1..12), threads in 1..4_usize) {
        let budget = MemoryBudget::new(1 << 20);
        let values = values();
        let dictionary = listed(values.iter().map(String::as_str));
        let texts_of = Arc::new(Memo::new(&dictionary, &DataType::Utf8View, &budget).unwrap());
        let lengths_of = Arc::new(Memo::new(&dictionary, &DataType::Int32, &budget).unwrap());
        let asked = Mutex::new(BTreeSet::new());
        let check = |rows: &Vec<Option<u32>>| {
            let Vector::Codes { ids, nulls, .. } = coded(rows, &dictionary) else { unreachable!() };
            let of = |code: &Option<u32>| code.map(|code| values[code as usize].as_str());
            let text = |array: ArrayRef| {
                asked.lock().unwrap().extend(array.as_string_view().iter().map(|value| value.map(str::to_owned)));
                Ok(Arc::new(StringViewArray::from_iter(array.as_string_view().iter().map(shortened))) as ArrayRef)
            };
            let found = texts_of.apply(&ids, nulls.as_ref(), text).unwrap().unwrap();
            assert_eq!(texts(&found), rows.iter().map(|code| shortened(of(code))).collect::<Vec<_>>());
            assert_eq!(found.nulls().map_or(0, |nulls| nulls.null_count()), texts(&found).iter().filter(|text| text.is_none()).count());
            let number = |array: ArrayRef| {
                Ok(Arc::new(Int32Array::from_iter(array.as_string_view().iter().map(length))) as ArrayRef)
            };
            let found = lengths_of.apply(&ids, nulls.as_ref(), number).unwrap().unwrap().array().unwrap();
            assert_eq!(found.as_primitive::<Int32Type>().iter().collect::<Vec<_>>(), rows.iter().map(|code| length(of(code))).collect::<Vec<_>>());
        };
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| batches.iter().for_each(check));
            }
        });
        // Values that no row has are not computed.
        let met: BTreeSet<Option<String>> = batches.iter().flatten().map(|code| code.map(|code| values[code as usize].clone())).collect();
        prop_assert_eq!(asked.into_inner().unwrap(), met);
        drop((texts_of, lengths_of));
        prop_assert_eq!(budget.used(), 0);
    }
}

#[test]
fn many_results_lie_in_several_arrays() {
    let budget = MemoryBudget::new(1 << 24);
    let values: Vec<String> = (0..10_000).map(|value| format!("value {value}")).collect();
    let dictionary = listed(values.iter().map(String::as_str));
    let memo = Arc::new(Memo::new(&dictionary, &DataType::Utf8View, &budget).unwrap());
    let all: Vec<Option<u32>> = (0..10_000_u32).map(|row| Some(row * 7 % 10_000)).collect();
    for size in [900, 3000, 10_000] {
        for rows in all.chunks(size) {
            let Vector::Codes { ids, .. } = coded(rows, &dictionary) else { unreachable!() };
            let found = memo.apply(&ids, None, Ok).unwrap().unwrap();
            let expected = rows.iter().map(|code| code.map(|code| values[code as usize].clone()));
            assert_eq!(texts(&found), expected.collect::<Vec<_>>());
        }
    }
}

#[test]
fn what_does_not_fit_is_not_kept() {
    let budget = MemoryBudget::new(400);
    let dictionary = listed(["one", "two", "three", "a text that is too long to lie in its view"]);
    let memo = Arc::new(Memo::new(&dictionary, &DataType::Utf8View, &budget).unwrap());
    let function = |array: ArrayRef| {
        let long = array.as_string_view().iter().map(|value| value.map(|value| value.repeat(20)));
        Ok(Arc::new(StringViewArray::from_iter(long)) as ArrayRef)
    };
    let short: ScalarBuffer<u32> = vec![0, 1, 0].into();
    assert!(memo.apply(&short, None, function).unwrap().is_some());
    assert!(memo.apply(&vec![3].into(), None, function).unwrap().is_none());
    assert!(memo.apply(&short, None, function).unwrap().is_some());
}

#[test]
fn an_error_of_the_function_is_passed_on() {
    let budget = MemoryBudget::new(1 << 20);
    let dictionary = listed(["one", "two"]);
    let memo = Arc::new(Memo::new(&dictionary, &DataType::Int32, &budget).unwrap());
    let error = memo.apply(&vec![1].into(), None, |_| Err(ExecError::source("no number"))).unwrap_err();
    assert_eq!(error.to_string(), "no number");
    assert!(matches!(memo.apply(&vec![1].into(), None, Ok), Err(ExecError::Internal(_))), "results of another type");
    assert!(matches!(memo.apply(&vec![2].into(), None, Ok), Err(ExecError::Internal(_))), "no value has this code");
}
