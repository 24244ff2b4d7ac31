//! Several threads and several profilers.

use std::sync::Barrier;

use plinth_profile::{Place, Profiler, Stage, scope};

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
    assert_eq!((nanos(one.other), nanos(other.other)), (0, 0), "what the other did is not counted as other work");
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
fn what_others_do_in_an_operators_stead_stands_below_it() {
    let (clock, profiler) = manual();
    let operators: Vec<_> = (0..3).map(|_| profiler.another(Stage::Operator, "same")).collect();
    profiler.part_of(operators[0], None);
    profiler.part_of(operators[1], Some(operators[0]));
    profiler.part_of(operators[2], Some(operators[1]));
    // Each says that it is part of the other: no row is lost, and nothing hangs.
    let [ring, knot] = [0, 1].map(|at| profiler.anchor(Stage::Filter, &format!("filter {at}")));
    profiler.part_of(ring, Some(knot));
    profiler.part_of(knot, Some(ring));
    let place = {
        let _plan = profiler.scope(Stage::Plan);
        let _top = scope(operators[0]);
        clock.work(1);
        let _below = scope(operators[1]);
        clock.work(10);
        Place::current()
    };
    assert_eq!((place.anchor(), Place::current().anchor()), (Some(operators[1]), None));
    let (clock_there, profiler_there) = (clock.clone(), profiler.clone());
    let elsewhere = move || {
        {
            let _same = place.scope();
            clock_there.work(100);
        }
        let _leaf = profiler_there.scope(operators[2]);
        clock_there.work(1_000);
        drop(_leaf);
        let _knot = profiler_there.scope(knot);
        clock_there.work(5);
    };
    std::thread::spawn(elsewhere).join().unwrap();
    assert!(!Place::current().scope().is_recording());
    let profile = profiler.finish();
    check(&profile);
    assert_eq!(
        tree(&profile)[..3],
        [(0, "same", 1, 1_111), (1, "same", 110, 1_110), (2, "same", 1_000, 1_000)],
        "one path, whichever thread went it"
    );
    assert_eq!(row(&profile.flat(), "filter filter 1").time.as_nanos(), 5);
}

#[test]
fn the_same_label_is_the_same_part() {
    let (_, profiler) = manual();
    let one = profiler.anchor(Stage::Filter, "x > 1");
    assert_eq!(profiler.anchor(Stage::Filter, "x > 1"), one);
    assert_ne!(profiler.anchor(Stage::Filter, "x > 2"), one);
    assert_ne!(profiler.another(Stage::Filter, "x > 1"), one);
    assert_eq!(Profiler::off().anchor(Stage::Filter, "x"), Stage::Filter.nth(0));
}

#[test]
fn a_thread_that_waits_for_others_counts_what_it_computes() {
    let (clock, profiler) = manual();
    {
        let _drive = profiler.scope(Stage::Drive);
        clock.work(5);
        clock.sleep(1_000);
        let _checksum = scope(Stage::Checksum);
        clock.work(10);
    }
    let profile = profiler.finish();
    check(&profile);
    assert_eq!(tree(&profile), [(0, "drive reads", 5, 15), (1, "checksum", 10, 10)]);
    assert_eq!((nanos(profile.waited), nanos(profile.named)), (0, 15));
}

#[test]
fn a_futures_polls_are_in_its_scope() {
    let (clock, profiler) = manual();
    let mut polls = 0;
    let future = std::future::poll_fn(|_| {
        clock.work(10);
        polls += 1;
        if polls < 3 { std::task::Poll::Pending } else { std::task::Poll::Ready(7) }
    });
    let mut future = std::pin::pin!(profiler.around(Stage::Plan, future));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    while future.as_mut().poll(&mut context).is_pending() {
        clock.sleep(1_000);
    }
    let profile = profiler.finish();
    check(&profile);
    assert_eq!((tree(&profile), profile.rows[0].hits), (vec![(0, "plan", 30, 30)], 3));
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
