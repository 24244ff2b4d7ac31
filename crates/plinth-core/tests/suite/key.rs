//! Heads order as keys do, shared bytes are counted.

use plinth_core::key::{common_prefix, head, put_terminated, split_terminated};
use proptest::prelude::*;

proptest! {
    #[test]
    fn keys_whose_heads_differ_compare_as_these(a: Vec<u8>, b: Vec<u8>, from in 0..4_usize) {
        prop_assume!(a.get(..from) == b.get(..from));
        let (x, y) = (head(&a, from), head(&b, from));
        if x != y {
            prop_assert_eq!(x.cmp(&y), a.cmp(&b));
        }
    }

    #[test]
    fn shared_bytes_are_counted(shared: Vec<u8>, a: Vec<u8>, b: Vec<u8>) {
        let (a, b) = ([&shared[..], &a].concat(), [&shared[..], &b].concat());
        let expected = a.iter().zip(&b).take_while(|(x, y)| x == y).count();
        prop_assert_eq!(common_prefix(&a, &b), expected);
    }
}

proptest! {
    #[test]
    fn terminated_bytes_compare_as_they_are_and_can_be_told_from_what_follows(
        a in prop::collection::vec(0_u8..3, 0..6), b in prop::collection::vec(0_u8..3, 0..6), tail in any::<[u8; 2]>(),
    ) {
        let terminated = |bytes: &[u8]| {
            let mut key = Vec::new();
            put_terminated(&mut key, bytes);
            key.extend_from_slice(&tail);
            key
        };
        let (x, y) = (terminated(&a), terminated(&b));
        prop_assert_eq!(x.cmp(&y), a.cmp(&b));
        let (head, rest) = split_terminated(&x);
        prop_assert_eq!(head.len(), a.len() + a.iter().filter(|byte| **byte == 0).count());
        prop_assert_eq!(rest, tail);
    }
}
