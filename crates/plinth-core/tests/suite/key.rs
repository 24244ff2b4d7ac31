//! Heads order as keys do, shared bytes are counted.

use plinth_core::key::{common_prefix, head};
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
