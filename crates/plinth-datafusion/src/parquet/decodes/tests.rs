//! Counts of rows that are decoded again.

use super::*;

#[test]
fn rows_are_counted_the_second_time() {
    let metrics = Arc::<ScanMetrics>::default();
    let mut decodes = Decodes::new(Arc::clone(&metrics));
    let mut decode = |rows| {
        decodes.decoded(rows);
        let known: Vec<_> = decodes.rows.iter().map(|rows| (rows.start, rows.end)).collect();
        (metrics.blocks_decoded_again.load(Relaxed), known)
    };
    assert_eq!(decode(10..20), (0, vec![(10, 20)]));
    assert_eq!(decode(30..40), (0, vec![(10, 20), (30, 40)]));
    assert_eq!(decode(20..25), (0, vec![(10, 25), (30, 40)]));
    assert_eq!(decode(0..5), (0, vec![(0, 5), (10, 25), (30, 40)]));
    assert_eq!(decode(24..26), (1, vec![(0, 5), (10, 26), (30, 40)]));
    assert_eq!(decode(26..30), (1, vec![(0, 5), (10, 40)]));
    assert_eq!(decode(3..50), (2, vec![(0, 50)]));
}
