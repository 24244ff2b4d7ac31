//! Decoded values are asked as each one would be.

use arrow_array::{Array, BinaryViewArray, BooleanArray};
use arrow_buffer::NullBuffer;
use proptest::prelude::*;

use super::*;

proptest! {
    #[test]
    fn text_is_what_each_value_says(
        values in prop::collection::vec(prop::option::of("[ab]{0,2}|[ab]{11,14}"), 0..150),
        members in prop::collection::vec("[ab]{0,2}|[ab]{11,14}", 1..10), from in 0_usize..20, negated: bool,
    ) {
        let array = BinaryViewArray::from_iter(&values);
        let from = from.min(values.len());
        let (array, values) = (array.slice(from, values.len() - from), &values[from..]);
        let column = Column {
            len: array.len(),
            values: Values::Views { views: array.views().clone(), buffers: array.data_buffers().to_vec() },
            nulls: values.iter().any(Option::is_none).then(|| values.iter().map(Option::is_some).collect::<NullBuffer>()),
        };
        let physical = Physical::Bytes { utf8: true };
        let members: Vec<Scalar> = members.iter().map(|m| Scalar::Bytes(m.as_bytes().into())).collect();
        let test = ValueSet::any_of(physical, &members).unwrap();
        let test = if negated { ValueSet::Not(Box::new(test)) } else { test };
        let mask = evaluate_column(physical, &column, &test).unwrap();
        let expected: BooleanArray =
            values.iter().map(|value| value.as_ref().map(|value| test.holds_bytes(value.as_bytes()))).collect();
        for (row, value) in values.iter().enumerate() {
            let unknown = mask.is_null.as_ref().is_some_and(|nulls| nulls.value(row));
            prop_assert_eq!(unknown, value.is_none());
            prop_assert_eq!(!unknown && mask.is_true.value(row), value.is_some() && expected.value(row));
        }
    }
}
