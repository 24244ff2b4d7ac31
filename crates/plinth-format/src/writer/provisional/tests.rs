//! Provisional codes come back from their packed form.

use super::*;

#[test]
fn codes_and_nulls_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let mut spool = Spool::new(folder.path());
    for (rows, base, spread) in [(0, 0, 1), (1, 7, 1), (1024, 0, 2), (3000, 1 << 20, 300), (2048, 0, u32::MAX)] {
        let codes: Vec<u32> = (0..rows).map(|row: u32| base + row.wrapping_mul(2_654_435_769) % spread).collect();
        let some: NullBuffer = (0..rows).map(|row| row % 3 > 0).collect::<Vec<bool>>().into();
        for nulls in [None, Some(some.slice(0, codes.len()))] {
            let block = ProvisionalBlock::new(&codes, nulls.as_ref());
            assert_eq!(block.values(), codes.len());
            assert_eq!(block.nulls(), nulls.as_ref().map_or(0, NullBuffer::null_count));
            let stored = block.store(&mut spool).unwrap();
            let nulls = nulls.filter(|nulls| nulls.null_count() > 0);
            assert_eq!(stored.read(&spool).unwrap(), (codes.clone(), nulls));
        }
    }
}
