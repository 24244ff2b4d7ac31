//! Orders of conjuncts and of decoding, from made-up times.

use super::*;

fn every(n: usize, rows: usize) -> BooleanBuffer {
    BooleanBuffer::from_iter((0..rows).map(|row| row % n == 0))
}

#[test]
fn the_order_is_by_what_a_conjunct_still_drops() {
    let stats = AdaptiveStats::new(vec!["tenth".into(), "twentieth".into(), "third".into()], 0);
    let rows = BooleanBuffer::new_set(6000);
    // The first drops all that the second drops but a half; the third is independent of both.
    let took = Duration::from_micros;
    stats.sampled(&[(0, every(10, 6000), took(6)), (1, every(20, 6000), took(5)), (2, every(3, 6000), took(7))], &rows);
    assert!((stats.passes(0, &[1]) - 1.0).abs() < 0.01 && (stats.passes(1, &[0]) - 0.5).abs() < 0.01);
    assert!((stats.passes(2, &[0, 1]) - 1.0 / 3.0).abs() < 0.01);
    assert_eq!(stats.order(|_| 1.0).rank, [2, 0, 1]);
    // A dear one comes last, however much it drops.
    stats.sampled(&[(1, every(20, 6000), took(5000))], &rows);
    assert_eq!(stats.order(|_| 1.0).rank[1], 2);
}

#[test]
fn without_samples_the_cheaper_goes_first() {
    let stats = AdaptiveStats::new(vec!["a".into(), "b".into(), "c".into()], 0);
    assert_eq!(stats.order(|slot| [3.0, 1.0, 2.0][slot]).rank, [2, 0, 1]);
    assert!(stats.report().is_empty());
}

#[test]
fn an_optional_conjunct_that_drops_next_to_nothing_rests() {
    let stats = AdaptiveStats::new(vec!["a".into()], 1);
    let rows = BooleanBuffer::new_set(1 << 16);
    let all = BooleanBuffer::from_iter((0..1 << 16).map(|row| row > 10));
    let took = Duration::from_micros(30);
    stats.sampled(&[(0, all.clone(), took), (1, all.clone(), took)], &rows);
    assert_eq!(stats.order(|_| 1.0).idle, [false, true]);
    stats.sampled(&[(0, all, took), (1, every(2, 1 << 16), took)], &rows);
    assert_eq!(stats.order(|_| 1.0).idle, [false, false]);
}

#[test]
fn an_optional_conjunct_is_asked_where_rows_cost_much_further_on() {
    let stats = AdaptiveStats::new(vec!["a".into()], 1);
    let rows = BooleanBuffer::new_set(1 << 16);
    // Of a tenth of the rows it drops nearly all, at 8 ns a row of the block.
    let (cheap, dear) = (Duration::from_micros(6), Duration::from_nanos(8 << 16));
    stats.sampled(&[(0, every(10, 1 << 16), cheap), (1, every(100, 1 << 16), dear)], &rows);
    let idle = || stats.order(|_| 1.0).idle[1];
    assert!(idle());
    stats.taken(1 << 16, Duration::from_nanos(300 << 16));
    assert!(!idle());
    // A reader that pauses for long is not taken at its word.
    stats.taken(1, Duration::from_secs(3600));
    assert!((stats.row_nanos() - MOST_ROW_NANOS).abs() < 1.0);
}

#[test]
fn the_other_way_to_decode_wins_only_where_the_difference_is_clear() {
    let stats = AdaptiveStats::new(vec!["a".into()], 0);
    let orders: Vec<DecodeOrder> = (0..8).map(|_| stats.next_window()).collect();
    assert!(
        orders.iter().enumerate().all(|(i, order)| order.dense == [3, 6].contains(&i) && order.trial == order.dense)
    );
    for i in 0..8 {
        stats.took(1000, Duration::from_micros(10 + i), false);
        stats.took(1000, Duration::from_micros(9 + i), true);
    }
    assert!(!stats.is_dense(), "too close");
    for i in 0..8 {
        stats.took(1000, Duration::from_micros(1 + i), true);
        stats.took(1000, Duration::from_micros(20 + i), false);
    }
    assert_eq!(stats.next_window(), DecodeOrder { dense: true, trial: false });
    assert_eq!(stats.mode(), PushdownMode::AfterDecode);
}
