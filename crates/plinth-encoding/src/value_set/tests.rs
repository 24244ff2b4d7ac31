//! Sets of values say of a value what the comparisons say that they come from.

use proptest::prelude::*;

use super::*;

fn op() -> impl Strategy<Value = CompareOp> {
    use CompareOp::{Eq, Gt, GtEq, Lt, LtEq};
    prop::sample::select(vec![Eq, Lt, LtEq, Gt, GtEq])
}

proptest! {
    #[test]
    fn two_ranges_are_one_where_they_overlap(ops in (op(), op()), bounds in (0_u8..5, 0_u8..5)) {
        let both = |physical, of: &dyn Fn(u8) -> Scalar| {
            let one = ValueSet::compare(physical, ops.0, &of(bounds.0)).unwrap();
            let other = ValueSet::compare(physical, ops.1, &of(bounds.1)).unwrap();
            (one.of_both(&other), one, other)
        };
        let (joined, one, other) = both(Physical::Int { width: 4, signed: true }, &|n| Scalar::Int(n.into()));
        let joined = joined.unwrap();
        for n in -1..6 {
            prop_assert_eq!(joined.holds_int(n), one.holds_int(n) && other.holds_int(n));
        }
        let (joined, one, other) = both(Physical::Bytes { utf8: true }, &|n| Scalar::Bytes([b'a', n].as_slice().into()));
        let values = (0..6).flat_map(|n| [vec![b'a', n], vec![b'a', n, 0]]).chain([vec![], vec![b'b']]);
        for value in values {
            let holds = one.holds_bytes(&value) && other.holds_bytes(&value);
            prop_assert_eq!(joined.as_ref().is_some_and(|joined| joined.holds_bytes(&value)), holds);
        }
        let (joined, one, other) = both(Physical::Float { width: 8 }, &|n| Scalar::Float(n.into()));
        for value in [-1.0, -0.0, 0.0, 0.5, 1.0, 2.0, 3.0, 3.5, 4.0, 9.0, f64::NAN] {
            let holds = one.holds_float(value) && other.holds_float(value);
            prop_assert_eq!(joined.as_ref().is_some_and(|joined| joined.holds_float(value)), holds);
        }
    }
}
