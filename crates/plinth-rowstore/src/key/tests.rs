//! The order of keys, and where they are found.

use std::sync::Arc;

use arrow_array::{FixedSizeBinaryArray, Int32Array, StringViewArray, UInt64Array};
use arrow_schema::Field;
use plinth_core::key::head;
use proptest::prelude::*;

use super::*;

proptest! {
    #[test]
    fn keys_are_found_in_their_order_wherever_one_begins_to_look(
        mut rows in prop::collection::vec(prop::collection::vec(0_u8..3, 0..11), 0..60),
        wanted in prop::collection::vec(0_u8..3, 0..11), from in 0_usize..60, guess in 0_usize..70,
    ) {
        let keys = |rows: &[Vec<u8>]| {
            let mut keys = Keys::default();
            rows.iter().for_each(|row| keys.push(row));
            keys
        };
        let order = keys(&rows).order();
        let mut expected: Vec<usize> = (0..rows.len()).collect();
        expected.sort_by(|&a, &b| rows[a].cmp(&rows[b]));
        prop_assert_eq!(&order, &expected);
        let some: Vec<u32> = (0..u32::try_from(rows.len()).unwrap()).step_by(2).collect();
        let in_order = keys(&rows).in_order(some);
        let expected: Vec<usize> = expected.into_iter().filter(|row| row % 2 == 0).collect();
        prop_assert!(in_order.iter().map(|&row| row as usize).eq(expected));
        rows.sort();
        let within = from.min(rows.len())..rows.len();
        let first = rows[within.clone()].partition_point(|row| row < &wanted) + within.start;
        prop_assert_eq!(keys(&rows).seek(within, guess, &wanted), first);
        if let (Some(first), Some(last)) = (rows.first(), rows.last()) {
            prop_assert!(super::guess(head(first, 0), head(last, 0), head(&wanted, 0), rows.len()) <= rows.len());
        }
    }
}

#[test]
fn bytes_compare_as_keys_do_and_are_the_same_from_batches_and_from_values() {
    let schema = Schema::new(vec![
        Field::new("t", DataType::Utf8View, false),
        Field::new("i", DataType::Int32, false),
        Field::new("u", DataType::UInt64, false),
        Field::new("f", DataType::FixedSizeBinary(2), false),
    ]);
    let texts = ["", "\0", "\0\0", "\0a", "a", "a\0", "a\0\0", "ab", "b"];
    let ints = [i32::MIN, -1, 0, 1, i32::MAX];
    let unsigned = [0, 1, u64::MAX];
    let mut all = Vec::new();
    for text in texts {
        for int in ints {
            for u in unsigned {
                for f in [[0, 0], [0, 1], [255, 0]] {
                    all.push((text, int, u, f));
                }
            }
        }
    }
    all.sort();
    let batch = RecordBatch::try_new(
        Arc::new(schema.clone()),
        vec![
            Arc::new(StringViewArray::from_iter_values(all.iter().map(|row| row.0))),
            Arc::new(Int32Array::from_iter_values(all.iter().map(|row| row.1))),
            Arc::new(UInt64Array::from_iter_values(all.iter().map(|row| row.2))),
            Arc::new(FixedSizeBinaryArray::try_from_iter(all.iter().map(|row| row.3)).unwrap()),
        ],
    )
    .unwrap();
    let columns = KeyColumns::new(&schema, &[0, 1, 2, 3]).unwrap();
    let keys = columns.of(&batch).unwrap();
    let mut last: Option<&[u8]> = None;
    for (row, &(text, int, u, f)) in all.iter().enumerate() {
        let key = keys.get(row);
        assert!(last < Some(key), "{row}");
        last = Some(key);
        let parts: Key = vec![text.into(), int.into(), u.into(), KeyPart::from(f)].into();
        assert_eq!(columns.encode(&parts).unwrap(), key);
    }
    assert_eq!(columns.show(keys.get(0)), "(\"\", -2147483648, 0, 0000)");
    let last = KeyColumns::new(&schema, &[1, 0]).unwrap();
    assert_eq!(last.show(&last.encode(&(-7, "x y").into()).unwrap()), "(-7, \"x y\")");
    assert!(last.encode(&(i64::MAX, "x").into()).is_err());
    assert!(last.encode(&("x", "x").into()).is_err());
    assert!(last.encode(&1.into()).is_err());
    assert!(KeyColumns::new(&Schema::new(vec![Field::new("f", DataType::Float64, false)]), &[0]).is_err());
}
