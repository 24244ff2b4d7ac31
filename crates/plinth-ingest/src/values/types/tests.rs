#![allow(clippy::unwrap_used)]

use super::*;

#[test]
fn widths_are_those_of_nulls() {
    let wide = DataType::Struct((0..99).map(|at| Field::new(format!("f{at}"), DataType::Int8, true)).collect());
    let fixed = |item, size| DataType::FixedSizeList(Arc::new(Field::new_list_field(item, true)), size);
    assert_eq!(width(&wide), 100);
    assert_eq!(width(&fixed(wide.clone(), 7)), 701);
    assert_eq!(width(&DataType::List(Arc::new(Field::new_list_field(wide, true)))), 1);
    assert_eq!(width(&DataType::FixedSizeBinary(160)), 11);
    let huge = fixed(fixed(fixed(DataType::Int8, i32::MAX), i32::MAX), i32::MAX);
    assert_eq!(width(&huge), usize::MAX);
}
