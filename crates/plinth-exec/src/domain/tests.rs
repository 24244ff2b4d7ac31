use std::collections::HashMap;

use arrow_array::{BinaryArray, FixedSizeBinaryArray, StringArray, StringViewArray};
use proptest::prelude::*;

use super::*;
use crate::vector::samples::{coded, listed};

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[ab]{0,3}", "[a-c]{11,14}", Just("a long text that many rows have".to_owned())]
}

/// The numbers of rows, none of null ones.
fn numbers(domain: &Domain, vector: &Vector) -> Vec<Option<i64>> {
    let mut numbers = Vec::new();
    domain.numbers(vector, &mut numbers).unwrap();
    let nulls = vector.nulls();
    let valid = |row| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
    numbers.into_iter().enumerate().map(|(row, number)| valid(row).then_some(number)).collect()
}

proptest! {
    /// Values meet wherever they come from: arrays, two dictionaries, two threads.
    #[test]
    fn equal_values_have_one_number(
        values in prop::collection::vec(prop::option::weighted(0.9, text()), 1..200),
        dictionaries in prop::collection::vec(prop::collection::vec(text(), 1..20), 2),
        rows in prop::collection::vec(prop::option::weighted(0.9, any::<prop::sample::Index>()), 1..200),
    ) {
        let budget = MemoryBudget::new(1 << 24);
        let domain = Domain::new(&DataType::Utf8View, &budget).unwrap();
        let array = Vector::Array(Arc::new(StringViewArray::from_iter(values.iter().map(Option::as_deref))));
        let mut vectors = vec![(array, values)];
        for values in &dictionaries {
            let dictionary = listed(values.iter().map(String::as_str));
            let codes: Vec<Option<u32>> =
                rows.iter().map(|row| row.map(|row| u32::try_from(row.index(values.len())).unwrap())).collect();
            let held = codes.iter().map(|code| code.map(|code| values[code as usize].clone())).collect();
            vectors.push((coded(&codes, &dictionary), held));
        }
        let found: Vec<Vec<Option<i64>>> = std::thread::scope(|scope| {
            let domain = &domain;
            let each = vectors.iter().chain(&vectors).map(|(vector, _)| scope.spawn(move || numbers(domain, vector)));
            each.collect::<Vec<_>>().into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let (mut of_value, mut of_number) = (HashMap::new(), HashMap::new());
        for ((_, values), numbers) in vectors.iter().chain(&vectors).zip(found) {
            let written = domain.values(&numbers).unwrap();
            prop_assert_eq!(&written.as_string_view().iter().map(|value| value.map(str::to_owned)).collect::<Vec<_>>(), values);
            for (value, number) in values.iter().zip(numbers) {
                prop_assert_eq!(value.is_some(), number.is_some());
                if let (Some(value), Some(number)) = (value, number) {
                    prop_assert!((Domain::RANGE.0..=Domain::RANGE.1).contains(&number));
                    prop_assert_eq!(*of_value.entry(value.clone()).or_insert(number), number);
                    prop_assert_eq!(of_number.entry(number).or_insert(value.clone()), value);
                }
            }
        }
        drop(domain);
        prop_assert_eq!(budget.used(), 0);
    }
}

/// So many values that their misses are made to overlap, of dictionaries that have some in common.
#[test]
fn many_values_have_a_number_each() {
    let budget = MemoryBudget::new(1 << 28);
    let domain = Domain::new(&DataType::Utf8View, &budget).unwrap();
    let text =
        |value: u32| format!("{value:06}{}", if value.is_multiple_of(3) { "" } else { " and what makes it long" });
    let mut of_value: HashMap<u32, i64> = HashMap::new();
    for from in [0, 40_000, 100_000] {
        let texts: Vec<String> = (from..from + 60_000).map(text).collect();
        let dictionary = listed(texts.iter().map(String::as_str));
        for codes in (0..60_000).collect::<Vec<u32>>().chunks(8192) {
            let codes: Vec<Option<u32>> = codes.iter().rev().map(|code| Some(*code)).collect();
            let found = numbers(&domain, &coded(&codes, &dictionary));
            for (code, number) in codes.iter().zip(&found) {
                let (value, number) = (from + code.unwrap(), number.unwrap());
                assert_eq!(*of_value.entry(value).or_insert(number), number, "{value}");
                assert!(number <= Domain::range_of(200_000).1, "{number}");
            }
        }
    }
    let numbers: std::collections::HashSet<i64> = of_value.values().copied().collect();
    assert_eq!((of_value.len(), numbers.len()), (160_000, 160_000));
    let (values, numbers): (Vec<u32>, Vec<Option<i64>>) =
        of_value.into_iter().map(|(value, number)| (value, Some(number))).unzip();
    let written = domain.values(&numbers).unwrap();
    assert!(written.as_string_view().iter().zip(values).all(|(found, value)| found == Some(text(value).as_str())));
}

#[test]
fn values_of_each_type_come_back() {
    let budget = MemoryBudget::new(1 << 20);
    let bytes: Vec<Option<&[u8]>> = vec![Some(b"abcd"), None, Some(b"\xff\x00\x01\x02"), Some(b"abcd")];
    let texts = vec![Some("abcd"), None, Some("long enough not to lie in its view"), Some("")];
    let arrays: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from(texts.clone())),
        Arc::new(arrow_array::LargeStringArray::from(texts.clone())),
        Arc::new(StringViewArray::from(texts)),
        Arc::new(BinaryArray::from(bytes.clone())),
        Arc::new(arrow_array::LargeBinaryArray::from(bytes.clone())),
        Arc::new(arrow_array::BinaryViewArray::from(bytes.clone())),
        Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(bytes.into_iter(), 4).unwrap()),
    ];
    for array in arrays {
        let domain = Domain::new(array.data_type(), &budget).unwrap();
        let numbers = numbers(&domain, &Vector::Array(Arc::clone(&array)));
        assert_eq!(domain.values(&numbers).unwrap().as_ref(), array.as_ref());
    }
    assert!(Domain::new(&DataType::Int32, &budget).is_none());
}

#[test]
fn a_number_of_no_value_is_an_error() {
    let domain = Domain::new(&DataType::Utf8View, &MemoryBudget::new(1 << 20)).unwrap();
    for number in [-1, 0, Domain::RANGE.1, i64::MAX] {
        assert!(matches!(domain.values(&[Some(number)]), Err(ExecError::Internal(_))));
    }
}

/// Within little memory the codes of a large dictionary are numbered by their values.
#[test]
fn a_dictionary_that_is_large_for_the_memory_is_asked_for_its_values() {
    let budget = MemoryBudget::new(256 << 10);
    let domain = Domain::new(&DataType::Utf8View, &budget).unwrap();
    let texts: Vec<String> = (0..20_000).map(|value| format!("text {value}")).collect();
    let dictionary = listed(texts.iter().map(String::as_str));
    let codes = [Some(3), None, Some(19_999), Some(3), Some(0)];
    let found = numbers(&domain, &coded(&codes, &dictionary));
    let values = codes.iter().map(|code| code.map(|code| texts[code as usize].as_str()));
    let array = Vector::Array(Arc::new(StringViewArray::from_iter(values)));
    assert_eq!(found, numbers(&domain, &array));
    assert_eq!((domain.len(), domain.dictionaries()), (3, 0));
}

#[test]
fn refused_memory_is_an_error_and_can_be_had_later() {
    let budget = MemoryBudget::new(64 << 10);
    let domain = Domain::new(&DataType::Utf8View, &budget).unwrap();
    let taken = budget.reserve("test", 64 << 10).unwrap();
    let vector = Vector::Array(Arc::new(StringViewArray::from(vec!["one", "two"])));
    assert!(matches!(domain.numbers(&vector, &mut Vec::new()), Err(ExecError::Memory(_))));
    drop(taken);
    let numbers = numbers(&domain, &vector);
    assert_ne!(numbers[0], numbers[1]);
}
