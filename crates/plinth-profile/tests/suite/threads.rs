//! Several threads and several profilers.

use std::sync::Barrier;

use plinth_profile::{Profiler, Stage, scope};

use crate::{check, manual, nanos, on, row, tree};

#[test]
fn threads_are_merged_also_when_they_have_ended() {
    let (clock, profiler) = manual();
    for part in 0..3 {
        let (clock, profiler) = (clock.clone(), profiler.clone());
        let thread = std::thread::Builder::new().name(format!("worker {part}")).spawn(move || {
            let _operator = profiler.scope(Stage::Operator.nth(part % 2));
            clock.work(10);
            let decode = scope(Stage::Decode);
            clock.work(100);
            decode.bytes(1);
        });
        thread.unwrap().join().unwrap();
    }
    let profile = profiler.finish();
    check(&profile);
    assert_eq!(
        tree(&profile),
        [(0, "operator 0", 20, 220), (1, "decode", 200, 200), (0, "operator 1", 10, 110), (1, "decode", 100, 100)]
    );
    let workers: Vec<_> = profile.workers.iter().map(|worker| (worker.name.as_str(), nanos(worker.time))).collect();
    assert_eq!(workers, [("worker 0", 110), ("worker 1", 110), ("worker 2", 110)]);
    assert_eq!(row(&profile.flat(), "decode").bytes, 3);
}

#[test]
fn queries_of_one_process_are_told_apart() {
    let (clock, one) = manual();
    let other = on(&clock, |options| options.title = "other".into());
    // A task of each, by turns, as an engine does that moves them between threads.
    for _ in 0..3 {
        {
            let _scope = one.scope(Stage::Operator.nth(0));
            clock.work(1);
            let _decode = scope(Stage::Decode);
            clock.work(10);
        }
        let _scope = other.scope(Stage::Operator.nth(0));
        clock.work(100);
        let _decode = scope(Stage::Decode);
        clock.work(1_000);
    }
    let (one, other) = (one.finish(), other.finish());
    check(&one);
    check(&other);
    assert_eq!(tree(&one), [(0, "operator 0", 3, 33), (1, "decode", 30, 30)]);
    assert_eq!(tree(&other), [(0, "operator 0", 300, 3_300), (1, "decode", 3_000, 3_000)]);
    assert_eq!((nanos(one.other), nanos(other.other)), (0, 0), "what the other did is no work of nobody");
    assert_eq!(nanos(one.idle), 3_300);
}

#[test]
fn work_for_another_query_interrupts_and_is_not_counted_twice() {
    let (clock, outer) = manual();
    let inner = on(&clock, |_| {});
    {
        let _operator = outer.scope(Stage::Operator.nth(0));
        clock.work(1);
        {
            let _wait = scope(Stage::Wait);
            {
                let _decode = inner.scope(Stage::Decode);
                clock.work(10);
                {
                    // And back again within.
                    let _gather = outer.scope(Stage::Gather);
                    clock.work(100);
                }
                clock.work(1_000);
                let _checksum = scope(Stage::Checksum);
                clock.work(10_000);
            }
            clock.sleep(100_000);
        }
        clock.work(1_000_000);
    }
    let (outer, inner) = (outer.finish(), inner.finish());
    check(&outer);
    check(&inner);
    assert_eq!(
        tree(&outer),
        [(0, "operator 0", 1_000_001, 1_100_001), (1, "wait", 100_000, 100_000), (0, "gather", 100, 100)]
    );
    assert_eq!(tree(&inner), [(0, "decode", 1_010, 11_010), (1, "checksum", 10_000, 10_000)]);
    assert_eq!((nanos(outer.named), nanos(inner.named)), (1_000_101, 11_010));
}

#[test]
fn the_current_profiler_goes_along_to_other_threads() {
    let (clock, profiler) = manual();
    {
        let _build = profiler.scope(Stage::Build);
        let current = Profiler::current();
        std::thread::scope(|threads| {
            threads.spawn(|| {
                assert!(!scope(Stage::Encode).is_recording());
                let _encode = current.scope(Stage::Encode);
                clock.work(7);
            });
        });
    }
    let profile = profiler.finish();
    check(&profile);
    // Both threads' time: one waited, as far as this clock knows, while the other encoded.
    assert_eq!(row(&profile.rows, "encode").total.as_nanos(), 7);
}

#[test]
fn many_threads_at_once_lose_nothing() {
    const THREADS: u64 = 8;
    const ROUNDS: u64 = 2_000;
    let profilers = [Profiler::start(Default::default()), Profiler::start(Default::default())];
    let start = Barrier::new(usize::try_from(THREADS).unwrap());
    std::thread::scope(|threads| {
        for _ in 0..THREADS {
            threads.spawn(|| {
                start.wait();
                for round in 0..ROUNDS {
                    let profiler = &profilers[usize::try_from(round % 2).unwrap()];
                    let operator = profiler.scope(Stage::Operator.nth(0));
                    for encoding in ["a", "b"] {
                        let decode = scope(Stage::Decode.of(encoding));
                        decode.rows(3);
                    }
                    operator.bytes(5);
                }
            });
        }
        // Reading meanwhile does no harm.
        let early = profilers[0].clone();
        let rows = threads.spawn(move || early.snapshot().rows.iter().map(|row| row.hits).sum::<u64>());
        assert!(rows.join().unwrap() <= THREADS * ROUNDS * 3);
    });
    for profiler in profilers {
        let profile = profiler.finish();
        check(&profile);
        let flat = profile.flat();
        assert_eq!(row(&flat, "operator 0").bytes, 5 * THREADS * ROUNDS / 2);
        for name in ["decode a", "decode b"] {
            assert_eq!(
                (row(&flat, name).hits, row(&flat, name).rows),
                (THREADS * ROUNDS / 2, 3 * THREADS * ROUNDS / 2)
            );
        }
        assert_eq!(profile.workers.len(), 8);
    }
}
