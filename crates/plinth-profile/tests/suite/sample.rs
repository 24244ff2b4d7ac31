//! A query as it could be, by a clock that stands still: 200 ms on two threads.

use std::sync::Arc;

use plinth_profile::{Ceiling, Ceilings, ManualClock, Profile, Stage, scope};

use crate::on;

const MS: u64 = 1_000_000;

/// What the machine of the sample can do.
pub(crate) fn ceilings() -> Ceilings {
    Ceilings {
        device_read: Some(Ceiling::shared(2e9)),
        page_cache: Some(Ceiling::by_thread(10e9)),
        memory: Some(Ceiling::by_thread(20e9)),
        checksum: Some(Ceiling::by_thread(30e9)),
        decode: vec![("bit-packed".into(), Ceiling::by_thread(8e9)), ("fsst".into(), Ceiling::by_thread(2e9))],
        ..Ceilings::default()
    }
}

/// A scan that filters, and an operator above it.
pub(crate) fn query(title: &str) -> Profile {
    let clock = Arc::new(ManualClock::default());
    let profiler = on(&clock, |options| {
        (options.title, options.threads, options.spans) = (title.into(), 2, 100);
    });
    profiler.label(Stage::Operator.nth(0), "AggregateExec: sum(x)");
    profiler.label(Stage::Operator.nth(1), "DataSourceExec: <hits>");
    profiler.label(Stage::Filter.nth(0), "URL LIKE '%google%' AND x < 3");
    {
        let _plan = profiler.scope(Stage::Plan);
        clock.work(4 * MS);
    }
    clock.work(2 * MS);
    for _ in 0..2 {
        let (clock, profiler) = (clock.clone(), profiler.clone());
        std::thread::spawn(move || work(&clock, &profiler)).join().unwrap();
    }
    clock.sleep(4 * MS);
    profiler.finish()
}

/// 95 ms of one thread.
fn work(clock: &ManualClock, profiler: &plinth_profile::Profiler) {
    let aggregate = profiler.scope(Stage::Operator.nth(0));
    clock.work(20 * MS);
    aggregate.rows(1);
    let source = scope(Stage::Operator.nth(1));
    clock.work(5 * MS);
    source.rows(100_000);
    {
        let submit = scope(Stage::Submit);
        clock.work(MS);
        submit.bytes(40_000_000);
    }
    {
        let _wait = scope(Stage::Wait);
        clock.sleep(14 * MS);
    }
    {
        let checksum = scope(Stage::Checksum);
        clock.work(2 * MS);
        checksum.bytes(40_000_000);
    }
    {
        let filter = scope(Stage::Filter.nth(0));
        clock.work(3 * MS);
        filter.rows(1_000_000);
        let decode = scope(Stage::Decode.of("fsst"));
        clock.work(10 * MS);
        decode.rows(1_000_000);
        decode.bytes(20_000_000);
    }
    {
        let decode = scope(Stage::Decode.of("bit-packed"));
        clock.work(35 * MS);
        decode.rows(25_000_000);
        decode.bytes(200_000_000);
    }
    let gather = scope(Stage::Gather);
    clock.work(5 * MS);
    gather.rows(100_000);
    gather.bytes(800_000);
}
