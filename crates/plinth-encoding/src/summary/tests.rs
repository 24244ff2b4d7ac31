use arrow_buffer::{Buffer, NullBuffer, ScalarBuffer};
use proptest::prelude::*;

use super::*;
use crate::views::view;

const I32: Physical = Physical::Int { width: 4, signed: true };

fn ints(values: &[Option<i32>]) -> Column {
    let nulls = NullBuffer::from_iter(values.iter().map(Option::is_some));
    let values: Vec<i32> = values.iter().map(|value| value.unwrap_or(-7)).collect();
    Column { len: values.len(), values: Values::Fixed(Buffer::from_vec(values)), nulls: Some(nulls) }
}

fn text(values: &[&str]) -> Column {
    let (heap, len) = (values.concat(), values.len());
    let mut at = 0;
    let views: Vec<u128> = values
        .iter()
        .map(|value| {
            at += value.len();
            view(heap.as_bytes(), at - value.len(), value.len())
        })
        .collect();
    let values = Values::Views { views: ScalarBuffer::from(views), buffers: vec![Buffer::from_vec(heap.into_bytes())] };
    Column { len, values, nulls: None }
}

#[test]
fn sorted_text_is_told_from_other_text() {
    let bytes = Physical::Bytes { utf8: true };
    let order_of = |values: &[&str]| order(bytes, &text(values));
    assert_eq!(order_of(&["a", "a long value, not inline", "b"]), Order { descends: false, ..Order::ALL });
    assert_eq!(order_of(&["b", "b", "a"]), Order { ascends: false, descends: true, differs: false });
    assert_eq!(order_of(&["b", "c", "a"]), Order::NONE);
    assert_eq!(order_of(&[]), Order::ALL);
}

#[test]
fn floats_are_ordered_totally_and_have_no_sum() {
    let values = vec![-f64::NAN, -1.0, -0.0, 0.0, f64::NAN];
    let column = Column { len: values.len(), values: Values::Fixed(Buffer::from_vec(values)), nulls: None };
    assert_eq!(order(Physical::Float { width: 8 }, &column), Order { descends: false, ..Order::ALL });
    assert_eq!(sum(Physical::Float { width: 8 }, &column), None);
}

#[test]
fn wide_sums_are_none_where_they_do_not_fit() {
    let column =
        |values: Vec<i128>| Column { len: values.len(), values: Values::Fixed(Buffer::from_vec(values)), nulls: None };
    let wide = Physical::Wide { width: 16 };
    assert_eq!(sum(wide, &column(vec![i128::MAX - 1, 1])), Some(i128::MAX));
    assert_eq!(sum(wide, &column(vec![i128::MAX, 1])), None);
    assert_eq!(
        sum(
            Physical::Int { width: 8, signed: false },
            &Column { len: 2, values: Values::Fixed(Buffer::from_vec(vec![u64::MAX; 2])), nulls: None }
        ),
        Some(2 * i128::from(u64::MAX))
    );
}

proptest! {
    #[test]
    fn order_and_sum_are_those_of_the_values(values in proptest::collection::vec(proptest::option::of(-3..3_i32), 0..6)) {
        let column = ints(&values);
        let known: Vec<i32> = values.iter().flatten().copied().collect();
        let (ascends, descends) = (known.is_sorted(), known.is_sorted_by(|a, b| a >= b));
        let differs = (ascends || descends) && known.windows(2).all(|two| two[0] != two[1]);
        prop_assert_eq!(order(I32, &column), Order { ascends, descends, differs });
        prop_assert_eq!(sum(I32, &column), Some(known.iter().copied().map(i128::from).sum()));
    }

    #[test]
    fn sums_of_every_width_are_exact(values: Vec<u64>, nulls: bool) {
        fn check<const W: usize>(values: &[u64], nulls: Option<&NullBuffer>) -> Result<(), TestCaseError> {
            let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()[..W].to_vec()).collect();
            let column = Column { len: values.len(), values: Values::Fixed(Buffer::from(bytes)), nulls: nulls.cloned() };
            for signed in [false, true] {
                let value = |raw: u64| {
                    let raw = i128::from(raw & (u64::MAX >> (64 - 8 * W)));
                    if signed && raw >> (8 * W - 1) == 1 { raw - (1 << (8 * W)) } else { raw }
                };
                let known = values.iter().enumerate().filter(|(row, _)| nulls.is_none_or(|nulls| nulls.is_valid(*row)));
                let width = u8::try_from(W).unwrap();
                prop_assert_eq!(
                    sum(Physical::Int { width, signed }, &column),
                    Some(known.map(|(_, &raw)| value(raw)).sum())
                );
            }
            Ok(())
        }
        let nulls = nulls.then(|| NullBuffer::from_iter(values.iter().map(|value| value % 3 > 0)));
        check::<1>(&values, nulls.as_ref())?;
        check::<2>(&values, nulls.as_ref())?;
        check::<4>(&values, nulls.as_ref())?;
        check::<8>(&values, nulls.as_ref())?;
    }
}
