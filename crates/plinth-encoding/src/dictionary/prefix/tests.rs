//! Prefix codes come back as they were written.

use proptest::prelude::*;

use super::*;

fn counts(bytes: &[u8]) -> [usize; 256] {
    let mut counts = [0; 256];
    bytes.iter().for_each(|&byte| counts[usize::from(byte)] += 1);
    counts
}

fn there_and_back(bytes: &[u8], code: &Code) {
    let (mut table, mut packed) = (Vec::new(), vec![7]);
    code.write(&mut table);
    let described = table.len();
    code.encode(bytes, &mut packed);
    let (table, read) = CodeTable::read(&[&table[..], &[1, 2, 3]].concat()).unwrap();
    assert_eq!(read, described);
    let mut out = Vec::new();
    assert_eq!(table.decode(&packed, 1, bytes.len(), &mut out), Some(packed.len()));
    assert_eq!(out, bytes);
    if !bytes.is_empty() {
        assert_eq!(table.decode(&packed[..packed.len() - 1], 1, bytes.len(), &mut out), None);
    }
}

proptest! {
    #[test]
    fn bytes_come_back(bytes in prop_oneof![any::<Vec<u8>>(), prop::collection::vec(3..9u8, 0..2000)]) {
        there_and_back(&bytes, &Code::choose(&counts(&bytes)));
        there_and_back(&bytes, &Code([8; 256]));
    }

    #[test]
    fn any_table_is_safe(table: Vec<u8>, bytes: Vec<u8>) {
        if let Some((table, _)) = CodeTable::read(&table) {
            let _ = table.decode(&bytes, 0, 100, &mut Vec::new());
        }
    }
}

#[test]
fn codes_are_near_the_entropy_and_never_too_deep() {
    // Powers of two: the code is as good as the entropy. Fibonacci numbers: the tree would be 29 deep.
    let mut counts = [0; 256];
    (0..8).for_each(|i| counts[i] = 1 << (9 - i.min(7)));
    let code = Code::choose(&counts);
    assert_eq!(&code.0[..8], &[1, 2, 3, 4, 5, 6, 7, 7]);
    let mut counts = [0; 256];
    let (mut a, mut b) = (1, 1);
    for count in &mut counts[..30] {
        (*count, a, b) = (a, b, a + b);
    }
    let code = Code::choose(&counts);
    assert!(code.0[..30].iter().all(|bits| (1..=DEEPEST).contains(bits)) && code.0[29] <= 2);
    assert_eq!(code.0[..30].iter().map(|&bits| 1 << (DEEPEST - bits)).sum::<u32>(), 1 << DEEPEST);
}
