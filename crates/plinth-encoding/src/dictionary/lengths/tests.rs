//! Lengths come back as they were written.

use proptest::prelude::*;

use super::*;

proptest! {
    #[test]
    fn lengths_come_back(lengths: Vec<(usize, usize)>) {
        let (mut bytes, mut more) = (Vec::new(), Vec::new());
        lengths.iter().for_each(|&(shared, piece)| put(shared, piece, &mut bytes, &mut more));
        let mut cursor = Reader::new(&more);
        let read: Vec<_> = bytes.iter().map(|&byte| take(byte, &mut cursor).unwrap()).collect();
        prop_assert_eq!((read, cursor.left()), (lengths, 0));
    }
}
