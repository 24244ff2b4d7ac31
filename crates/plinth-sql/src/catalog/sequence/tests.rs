use proptest::prelude::*;

use super::*;

/// The numbers that a sequence gives, the way it is defined.
fn numbers(start: i64, step: i64, least: i64, most: i64, cycles: bool, count: usize) -> Vec<i64> {
    let mut out = Vec::new();
    let mut at = i128::from(start);
    while out.len() < count {
        if at < i128::from(least) || at > i128::from(most) {
            if !cycles {
                break;
            }
            at = i128::from(if step > 0 { least } else { most });
        }
        out.push(i64::try_from(at).unwrap());
        at += i128::from(step);
    }
    out
}

proptest! {
    #[test]
    fn numbers_are_those_between_the_bounds(
        (least, most) in prop_oneof![(-20_i64..20, 0_i64..40), (i64::MAX - 20..i64::MAX, 0_i64..1)],
        start in 0_i64..40,
        step in prop_oneof![-7_i64..=-1, 1_i64..=7, Just(i64::MAX), Just(i64::MIN)],
        cycles: bool,
    ) {
        let most = least.saturating_add(most);
        let start = least.saturating_add(start).min(most);
        let mut sequence = Sequence { next: Some(start), step, least, most, cycles };
        let mut taken = Vec::new();
        for _ in 0..50 {
            let fields = sequence.fields();
            let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
            prop_assert_eq!(Sequence::parse(&fields), Some(sequence.clone()));
            taken.extend(sequence.take());
        }
        prop_assert_eq!(taken, numbers(start, step, least, most, cycles, 50));
    }
}
