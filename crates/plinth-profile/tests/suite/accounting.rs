//! Scopes of known cost, nested, recursed, left in the wrong order: every nanosecond is charged once.

use std::time::Duration;

use plinth_profile::{ManualClock, Part, Profiler, Stage, scope};
use proptest::prelude::*;

use crate::{check, manual, nanos, on, row, tree};

#[test]
fn time_belongs_to_the_innermost_scope() {
    let (clock, profiler) = manual();
    clock.work(5);
    {
        let outer = profiler.scope(Stage::Operator.nth(1));
        clock.work(10);
        for encoding in ["bit-packed", "fsst", "bit-packed"] {
            let decode = scope(Stage::Decode.of(encoding));
            clock.work(100);
            {
                let _checksum = scope(Stage::Checksum);
                clock.work(1_000);
            }
            clock.work(200);
            decode.rows(7);
            decode.bytes(1_000);
        }
        clock.work(20);
        outer.rows(3);
        outer.rows(4);
    }
    clock.work(6);
    profiler.label(Stage::Operator.nth(1), "sum");
    let profile = profiler.finish();
    check(&profile);
    assert_eq!(
        tree(&profile),
        [
            (0, "sum", 30, 3_930),
            (1, "decode bit-packed", 600, 2_600),
            (2, "checksum", 2_000, 2_000),
            (1, "decode fsst", 300, 1_300),
            (2, "checksum", 1_000, 1_000),
        ]
    );
    assert_eq!((nanos(profile.wall), nanos(profile.other), nanos(profile.named)), (3_941, 11, 3_930));
    assert_eq!(nanos(profile.idle), 0);
    let decode = row(&profile.rows, "decode bit-packed");
    assert_eq!((decode.hits, decode.rows, decode.bytes, nanos(decode.cpu)), (2, 14, 2_000, 600));
    assert_eq!(decode.bytes_per_second(), Some(2_000.0 / 2_600e-9));
    assert_eq!(row(&profile.rows, "sum").rows, 7);
    let flat = profile.flat();
    assert_eq!((flat[0].name.as_str(), flat[0].hits, nanos(flat[0].time)), ("checksum", 3, 3_000));
    assert!((profile.coverage().unwrap() - 3_930.0 / 3_941.0).abs() < 1e-9);
}

#[test]
fn a_recursion_counts_once_with_what_is_below() {
    fn descend(clock: &ManualClock, left: u32) {
        let scope = scope(Stage::Decode.of("struct"));
        clock.work(10);
        if left > 0 {
            descend(clock, left - 1);
            let _other = plinth_profile::scope(Stage::Decode.of("delta"));
            clock.work(1);
            if left == 2 {
                descend(clock, 0);
            }
        }
        clock.work(5);
        scope.rows(1);
    }
    let (clock, profiler) = manual();
    {
        let _root = profiler.scope(Stage::Output);
        descend(&clock, 4);
    }
    let profile = profiler.finish();
    check(&profile);
    let flat = profile.flat();
    let structs = row(&flat, "decode struct");
    let deltas = row(&flat, "decode delta");
    // Six calls of 15, four of 1; the outermost call has it all.
    assert_eq!((structs.hits, nanos(structs.time), nanos(structs.total)), (6, 90, 94));
    assert_eq!((deltas.hits, nanos(deltas.time), nanos(deltas.total)), (4, 4, 19));
    assert_eq!(profile.rows.len(), 11);
    assert_eq!(row(&profile.rows, "decode struct").total, Duration::from_nanos(94));
}

#[test]
fn endless_recursion_is_folded_and_loses_no_time() {
    let (clock, profiler) = manual();
    let mut scopes = vec![profiler.scope(Stage::Output)];
    for _ in 0..10_000 {
        clock.work(1);
        scopes.push(scope(Stage::Gather));
    }
    while let Some(scope) = scopes.pop() {
        scope.rows(1);
    }
    let profile = profiler.finish();
    check(&profile);
    assert_eq!(profile.rows.len(), 4_095);
    assert_eq!(profile.folded, 10_001 - 4_095);
    assert_eq!(profile.rows.iter().map(|row| nanos(row.time)).sum::<u64>(), 10_000);
    assert_eq!(profile.rows.iter().map(|row| row.hits).sum::<u64>(), 4_095);
}

#[test]
fn sleep_is_told_from_work() {
    let (clock, profiler) = manual();
    {
        let _operator = profiler.scope(Stage::Operator.nth(0));
        clock.work(300);
        {
            let _wait = scope(Stage::Wait);
            clock.sleep(1_000);
            // The kernel takes some for itself.
            clock.work(50);
        }
        {
            let _submit = scope(Stage::Submit);
            clock.work(20);
        }
        {
            let _join = scope(Stage::Join);
            clock.sleep(70);
        }
        let _decode = scope(Stage::Decode);
        clock.work(100);
    }
    clock.sleep(430);
    let pause = profiler.pause();
    clock.sleep(40);
    std::thread::spawn(move || drop(pause)).join().unwrap();
    let profile = profiler.finish();
    check(&profile);
    let cpu = |name| nanos(row(&profile.rows, name).cpu);
    assert_eq!((cpu("operator 0"), cpu("decode"), cpu("submit"), cpu("wait")), (300, 100, 20, 50));
    assert_eq!((nanos(profile.wall), nanos(profile.waited), nanos(profile.paused)), (2_010, 1_000, 40));
    assert_eq!((profile.cpu, nanos(profile.idle)), (Some(Duration::from_nanos(470)), 1_540));
}

#[test]
fn where_others_had_the_processor_stages_share_what_was_left() {
    let (clock, profiler) = manual();
    {
        let _operator = profiler.scope(Stage::Operator.nth(0));
        clock.work(100);
        clock.sleep(200);
        {
            let _decode = scope(Stage::Decode);
            clock.work(101);
            clock.sleep(499);
        }
        let _wait = scope(Stage::Wait);
        clock.sleep(1_000);
    }
    let profile = profiler.finish();
    check(&profile);
    let cpu = |name| nanos(row(&profile.rows, name).cpu);
    // 201 of 900, to the last nanosecond.
    assert_eq!((cpu("operator 0"), cpu("decode"), cpu("wait")), (67, 134, 0));
}

#[test]
fn detailed_profiles_measure_each_stage() {
    let (clock, _) = manual();
    let profiler = on(&clock, |options| options.detailed = true);
    {
        let _operator = profiler.scope(Stage::Operator.nth(0));
        clock.work(100);
        clock.fault(2);
        {
            let _decode = scope(Stage::Decode);
            clock.work(101);
            clock.sleep(499);
            clock.fault(3);
        }
        clock.fault(4);
    }
    clock.fault(10);
    let profile = profiler.finish();
    check(&profile);
    let (operator, decode) = (row(&profile.rows, "operator 0"), row(&profile.rows, "decode"));
    assert_eq!((nanos(operator.cpu), operator.faults.minor), (100, 6));
    assert_eq!((nanos(decode.cpu), decode.faults.minor, nanos(decode.time)), (101, 3, 600));
    assert_eq!(profile.faults.minor, 19);
    let total = nanos(profile.cpu.unwrap());
    assert_eq!((total, nanos(profile.other)), (201, 0));
}

#[test]
fn a_counter_that_turns_back_makes_no_time_negative() {
    let (clock, profiler) = manual();
    clock.work(1_000);
    {
        let _operator = profiler.scope(Stage::Operator.nth(0));
        clock.work(10);
        let _decode = scope(Stage::Decode);
        clock.turn_back(500);
    }
    let profile = profiler.finish();
    check(&profile);
    assert_eq!(tree(&profile), [(0, "operator 0", 10, 10), (1, "decode", 0, 0)]);
}

#[test]
fn without_a_profiler_nothing_is_recorded() {
    let lone = scope(Stage::Decode);
    lone.rows(1);
    assert!(!lone.is_recording());
    let off = Profiler::off();
    {
        let scope = off.scope(Stage::Decode);
        assert!(!scope.is_recording() && !off.is_recording() && !Profiler::current().is_recording());
    }
    let profile = off.finish();
    check(&profile);
    assert_eq!(profile, plinth_profile::Profile::default());
    // Nor after its end.
    let (clock, profiler) = manual();
    assert!(profiler.is_recording());
    assert!(!scope(Stage::Decode).is_recording(), "this thread does not work for it");
    let early = profiler.scope(Stage::Output);
    clock.work(3);
    let profile = profiler.clone().finish();
    assert_eq!(tree(&profile), [(0, "output", 3, 3)], "what is open counts until now");
    assert!(!profiler.is_recording() && !profiler.scope(Stage::Decode).is_recording());
    drop(early);
}

#[test]
fn scopes_left_in_the_wrong_order_lose_no_time() {
    let (clock, profiler) = manual();
    let outer = profiler.scope(Stage::Output);
    clock.work(1);
    let inner = scope(Stage::Gather);
    clock.work(10);
    let innermost = scope(Stage::Decode);
    clock.work(100);
    drop(outer);
    clock.work(1_000);
    {
        let _build = profiler.scope(Stage::Build);
        clock.work(3);
        // What is over already ends nothing else.
        drop(innermost);
        drop(inner);
        clock.work(4);
    }
    std::mem::forget(profiler.scope(Stage::Write));
    clock.work(10_000);
    {
        let _sync = profiler.scope(Stage::Sync);
        clock.work(100_000);
    }
    let profile = profiler.finish();
    check(&profile);
    assert_eq!(
        tree(&profile),
        [
            (0, "write", 10_000, 110_000),
            (1, "sync", 100_000, 100_000),
            (0, "output", 1, 111),
            (1, "gather", 10, 110),
            (2, "decode", 100, 100),
            (0, "build", 7, 7),
        ]
    );
    assert_eq!(nanos(profile.other), 1_000);
}

#[test]
fn what_a_part_turns_out_to_be_is_charged_to_it() {
    let (clock, profiler) = manual();
    for encoding in ["plain", "alp"] {
        let mut encode = profiler.scope(Stage::Encode);
        clock.work(10);
        drop(scope(Stage::Checksum));
        clock.work(100);
        encode.turns_out(Stage::Encode.of(encoding));
        clock.work(1_000);
        encode.bytes(7);
        let mut outer = scope(Stage::Build);
        let _inner = scope(Stage::Structure);
        clock.work(5);
        // Too late: something else is under way within.
        outer.turns_out(Stage::Parse);
    }
    let profile = profiler.finish();
    check(&profile);
    let flat = profile.flat();
    // What was done before another scope stays where it was.
    assert_eq!(nanos(row(&flat, "encode").time), 20);
    for encoding in ["encode plain", "encode alp"] {
        let row = row(&flat, encoding);
        assert_eq!((nanos(row.time), row.hits, row.bytes), (1_100, 1, 7));
    }
    assert_eq!((nanos(row(&flat, "structure").time), row(&flat, "build").hits), (10, 2));
}

#[test]
fn stages_have_names_of_their_own_and_parts_are_told() {
    let mut names: Vec<_> = Stage::ALL.iter().map(|stage| stage.name()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), Stage::ALL.len());
    assert_eq!(Stage::Decode.of("fsst").to_string(), "decode fsst");
    assert_eq!((Stage::Filter.nth(2).to_string(), Stage::Filter.nth(2).part), ("filter 2".into(), Part::Index(2)));
}

/// What a program may do: open a scope, close the innermost, work, sleep.
#[derive(Clone, Debug)]
enum Step {
    Open(usize),
    Close,
    Work(u64),
    Sleep(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0_usize..6).prop_map(Step::Open),
        Just(Step::Close),
        (0_u64..1_000_000).prop_map(Step::Work),
        (0_u64..1_000_000).prop_map(Step::Sleep),
    ]
}

proptest! {
    #[test]
    fn whatever_is_done_adds_up(steps in prop::collection::vec(step(), 0..200), detailed: bool) {
        let stages = [Stage::Decode.of("a"), Stage::Decode.of("b"), Stage::Wait.into(), Stage::Filter.nth(0), Stage::Filter.nth(1), Stage::Read.into()];
        let (clock, _) = manual();
        let profiler = on(&clock, |options| options.detailed = detailed);
        let (mut scopes, mut within, mut worked, mut worked_within, mut hits) = (Vec::new(), 0, 0, 0, 0);
        for step in steps {
            match step {
                Step::Open(stage) => { scopes.push(profiler.scope(stages[stage])); hits += 1; }
                Step::Close => drop(scopes.pop()),
                Step::Work(time) => {
                    clock.work(time);
                    worked += time;
                    if !scopes.is_empty() { within += time; worked_within += time; }
                }
                Step::Sleep(time) => {
                    clock.sleep(time);
                    if !scopes.is_empty() { within += time; }
                }
            }
        }
        while scopes.pop().is_some() {}
        let profile = profiler.finish();
        check(&profile);
        prop_assert_eq!(profile.rows.iter().map(|row| nanos(row.time)).sum::<u64>(), within);
        prop_assert_eq!(profile.rows.iter().map(|row| row.hits).sum::<u64>(), hits);
        prop_assert_eq!(nanos(profile.named), worked_within);
        prop_assert_eq!(nanos(profile.other), worked - worked_within);
        prop_assert!(profile.rows.iter().all(|row| row.cpu <= row.time || row.time.is_zero()));
    }
}
