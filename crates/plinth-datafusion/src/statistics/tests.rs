//! Statistics as the planner sees them.

use super::*;

fn int(value: i128) -> Option<(Scalar, Exactness)> {
    Some((Scalar::Int(value), Exactness::Exact))
}

#[test]
fn bounds_of_files_meet() {
    let column = DataType::Int64;
    let least = |bounds: &[Option<(Scalar, Exactness)>]| {
        bounds.iter().cloned().fold(Bound::Nothing, |all, bound| all.meet(bound, less)).value(&column)
    };
    let value = |v| ScalarValue::Int64(Some(v));
    assert_eq!(least(&[]), Precision::Absent);
    assert_eq!(least(&[int(3), int(-1), int(2)]), Precision::Exact(value(-1)));
    assert_eq!(least(&[int(3), None]), Precision::Absent);
    assert_eq!(least(&[int(3), Some((Scalar::Int(1), Exactness::Bound))]), Precision::Inexact(value(1)));
    assert_eq!(least(&[int(3), Some((Scalar::Float(1.0), Exactness::Exact))]), Precision::Absent);
}

#[test]
fn distinct_values_are_exact_in_one_file_only() {
    let count = |counts: &[Option<u64>]| {
        let mut distinct = Distinct::default();
        counts.iter().for_each(|&count| distinct.add(count.map(|count| (count, Exactness::Exact))));
        distinct.value()
    };
    let mut estimated = Distinct::default();
    estimated.add(Some((7, Exactness::Bound)));
    assert_eq!(estimated.value(), Precision::Inexact(7));
    assert_eq!(count(&[]), Precision::Absent);
    assert_eq!(count(&[Some(7)]), Precision::Exact(7));
    assert_eq!(count(&[Some(7), Some(9)]), Precision::Inexact(9));
    assert_eq!(count(&[Some(7), None]), Precision::Absent);
}
