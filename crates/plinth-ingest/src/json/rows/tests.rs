#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use arrow_array::{Array, BooleanArray};
use arrow_schema::{DataType, Schema};

use super::*;
use crate::json::tokenizer::Scratch;

#[test]
fn lists_of_wide_values_are_counted_and_bounded() {
    let wide = DataType::Struct((0..99).map(|at| Field::new(format!("f{at}"), DataType::Int8, true)).collect());
    let list = DataType::List(Arc::new(Field::new_list_field(wide, true)));
    let lists = DataType::List(Arc::new(Field::new_list_field(list, true)));
    let schema = Arc::new(Schema::new(vec![Field::new("a", lists, true)]));
    let mut rows = Rows::new(&schema, Rules { given: true, bare: false, unknown: Unknown::Error }, 1).unwrap();
    let mut scratch = Scratch::new(100);
    let mut push = |rows: &mut Rows, most| {
        rows.most = most;
        // Two inner lists, three structs of a hundred values each.
        rows.push(&mut Tokenizer::new(r#"{"a":[[{},{}],[null]]}"#, &mut scratch, false)).unwrap()
    };
    assert!(push(&mut rows, 302).is_none());
    assert_eq!(rows.listed(), 302);
    let fault = push(&mut rows, 301).unwrap();
    assert_eq!(fault.column, ["a"]);
    assert!(fault.why.contains("too many values") && !fault.misfit, "{fault:?}");
    assert!(push(&mut rows, 302).is_none());
    let column = rows.finish().unwrap().remove(0);
    assert_eq!((column.len(), rows.len(), rows.listed()), (3, 0, 0));
    let keep = BooleanArray::from(vec![true, false, true]);
    let column = arrow_select::filter::filter(&column, &keep).unwrap();
    assert_eq!(column.slice(0, 1).as_ref(), column.slice(1, 1).as_ref());
}

#[test]
fn rows_that_break_off_anywhere_are_rows_all_the_same() {
    let field = |name: &str, data_type| Field::new(name, data_type, true);
    let inner = DataType::Struct(vec![field("x", DataType::Int64), field("y", DataType::Utf8View)].into());
    let list = |item: DataType| DataType::List(Arc::new(Field::new_list_field(item, true)));
    let pair =
        DataType::Struct(vec![Field::new("key", DataType::Utf8View, false), field("value", inner.clone())].into());
    let map = DataType::Map(Arc::new(Field::new("entries", pair, false)), false);
    let fixed = DataType::FixedSizeList(Arc::new(Field::new_list_field(inner.clone(), true)), 2);
    let fields = vec![
        field("a", list(list(inner.clone()))),
        field("m", list(map)),
        field("f", list(fixed)),
        field("s", inner),
        field("d", DataType::Float64),
    ];
    let schema = Arc::new(Schema::new(fields));
    let good = concat!(
        r#"{"a":[[{"x":1,"y":"p"},{"x":2}],[null,{}],[]],"m":[{"k":{"x":3},"l":null},{}],"f":[[{"x":4},{"y":"q"}],null],"#,
        r#""s":{"y":"r","x":5},"d":1.5}"#
    );
    let mut rows = Rows::new(&schema, Rules { given: true, bare: false, unknown: Unknown::Error }, 1).unwrap();
    let mut scratch = Scratch::new(100);
    let mut keep = Vec::new();
    // Without its first bracket it is no row.
    for end in 1..=good.len() {
        keep.push(rows.push(&mut Tokenizer::new(&good[..end], &mut scratch, false)).is_ok());
        let odd = format!("{}?", &good[..end]);
        keep.push(rows.push(&mut Tokenizer::new(&odd, &mut scratch, false)).is_ok());
    }
    assert_eq!(keep.iter().filter(|keep| **keep).count(), 2);
    let columns = rows.finish().unwrap();
    let keep = BooleanArray::from(keep);
    for column in columns {
        let kept = arrow_select::filter::filter(&column, &keep).unwrap();
        assert_eq!(kept.slice(0, 1).as_ref(), kept.slice(1, 1).as_ref());
        assert_eq!((kept.len(), kept.null_count()), (2, 0));
    }
}
