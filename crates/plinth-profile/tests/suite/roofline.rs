//! What bounds a query, told from what it moved and what the machine can do.

use std::sync::Arc;
use std::time::Duration;

use plinth_profile::{
    Anchor, Bound, Ceiling, Ceilings, ManualClock, Origin, Profile, Resource, Roofline, Stage, StoreTraffic, scope,
};

use crate::sample::{ceilings, query};
use crate::{nanos, on};

/// Nanoseconds awake and asleep, and bytes, of a stage.
type Spent = (Anchor, u64, u64, u64);

fn profile(threads: usize, spent: &[Spent], rest: u64) -> Profile {
    let clock = Arc::new(ManualClock::default());
    let profiler = on(&clock, |options| options.threads = threads);
    {
        let _operator = profiler.scope(Stage::Operator.nth(0));
        for (anchor, work, sleep, bytes) in spent {
            let scope = scope(*anchor);
            clock.work(*work);
            clock.sleep(*sleep);
            scope.bytes(*bytes);
        }
    }
    clock.sleep(rest);
    profiler.finish()
}

fn near(found: f64, wanted: f64) -> bool {
    (found - wanted).abs() <= 1e-6 * wanted.abs()
}

#[test]
fn each_limit_alone() {
    let roofline = Roofline::of(&query("q"), &ceilings());
    let limit = |resource| roofline.limit(resource).unwrap_or_else(|| panic!("no {resource:?}"));
    // 80 MB at 2 GB/s; 400 MB at 8 and 40 MB at 2 GB/s by two threads; 400 + 40 + 1.6 MB at 20 GB/s by two; 168 ms by two.
    for (resource, moved, alone, reached) in [
        (Resource::Device, 80_000_000, 40_000_000, 0.2),
        (Resource::Checksum, 80_000_000, 1_333_333, 1.0 / 150.0),
        (Resource::Decode, 440_000_000, 35_000_000, 0.175),
        (Resource::Memory, 441_600_000, 11_040_000, 0.0552),
        (Resource::Processor, 168_000_000, 84_000_000, 0.42),
    ] {
        let limit = limit(resource);
        assert_eq!(limit.moved, moved, "{resource:?}");
        assert!(nanos(limit.alone.unwrap()).abs_diff(alone) <= 1, "{limit:?}");
        assert!((limit.reached.unwrap() - reached).abs() < 1e-6, "{limit:?}");
    }
    assert_eq!((roofline.limits.len(), roofline.limit(Resource::DeviceWrite)), (5, None));
    assert_eq!(limit(Resource::Device).origin, Some(Origin::Probe));
}

#[test]
fn a_device_at_its_limit_bounds() {
    let ceilings = Ceilings { device_read: Some(Ceiling::shared(200e6)), ..ceilings() };
    // 19 MB in 100 ms from a device of 200 MB/s.
    let slow =
        profile(2, &[(Stage::Submit.into(), 1_000_000, 0, 19_000_000), (Stage::Wait.into(), 0, 99_000_000, 0)], 0);
    let roofline = Roofline::of(&slow, &ceilings);
    assert_eq!(roofline.bound, Bound::Device);
    assert!(near(roofline.limit(Resource::Device).unwrap().reached.unwrap(), 0.95));
    assert!(
        roofline.verdict.starts_with("device-bound: reads at 95.0 % of what the device can do; read less"),
        "{roofline:?}"
    );
    // More than it can: one of the figures is wrong.
    let wild = profile(2, &[(Stage::Submit.into(), 1_000_000, 9_000_000, 19_000_000)], 0);
    assert!(
        Roofline::of(&wild, &ceilings).verdict.contains("950.0 % of what the device can do; more than was measured")
    );
    let written = profile(1, &[(Stage::Write.into(), 1_000, 99_999_000, 90_000_000)], 0);
    let ceilings = Ceilings { device_write: Some(Ceiling::shared(1e9)), ..Ceilings::default() };
    assert!(Roofline::of(&written, &ceilings).verdict.starts_with("device-bound: writes at 90.0 %"));
}

#[test]
fn busy_threads_are_bound_by_what_they_do_most() {
    let ceilings = ceilings();
    for (anchor, stage, text) in [
        (
            Stage::Decode.of("bit-packed"),
            Stage::Decode,
            "decode-bound: 90.0 % of the processor time decodes, mostly decode bit-packed",
        ),
        (Stage::Filter.nth(0), Stage::Filter, "filter-bound: 90.0 %"),
        (Stage::Operator.nth(3), Stage::Operator, "operator-bound: 100.0 %"),
        (Stage::Parse.into(), Stage::Parse, "parsing-bound: 90.0 %"),
        (Stage::Intern.into(), Stage::Intern, "encoding-bound: 90.0 %"),
        (Stage::Plan.into(), Stage::Plan, "processor-bound: 90.0 % of the processor time is plan"),
    ] {
        let small = Stage::Operator.nth(1);
        let busy = profile(1, &[(anchor, 90_000_000, 0, 100_000_000), (small, 10_000_000, 0, 0)], 5_000_000);
        let roofline = Roofline::of(&busy, &ceilings);
        assert_eq!(roofline.bound, Bound::Stage(stage), "{roofline:?}");
        assert!(roofline.verdict.starts_with(text) && roofline.verdict.lines().count() == 1, "{}", roofline.verdict);
    }
    // A resident scan of packed integers, at 7 of the 8 GB/s there are.
    let packed = profile(1, &[(Stage::Decode.of("bit-packed"), 100_000_000, 0, 700_000_000)], 0);
    let roofline = Roofline::of(&packed, &ceilings);
    assert!(near(roofline.limit(Resource::Decode).unwrap().reached.unwrap(), 0.875));
    assert!(roofline.verdict.contains("87.5 % of what all threads could"), "{}", roofline.verdict);
    // What was measured on the spot is no measure of an encoding.
    let now = |ceiling| Ceiling { origin: Origin::Now, ..ceiling };
    let guessed = Ceilings { decode: vec![(String::new(), now(Ceiling::by_thread(8e9)))], ..Ceilings::default() };
    let roofline = Roofline::of(&packed, &guessed);
    assert!(
        !roofline.verdict.contains("could") && roofline.bound == Bound::Stage(Stage::Decode),
        "{}",
        roofline.verdict
    );
    // Plain values decode for nothing: memory is what is left.
    let plain = profile(1, &[(Stage::Gather.into(), 100_000_000, 0, 1_800_000_000)], 0);
    assert_eq!(Roofline::of(&plain, &ceilings).bound, Bound::Memory);
}

#[test]
fn idle_threads_wait_or_have_nothing_to_do() {
    let ceilings = ceilings();
    let waits =
        profile(1, &[(Stage::Submit.into(), 1_000_000, 0, 20_000_000), (Stage::Wait.into(), 0, 99_000_000, 0)], 0);
    let roofline = Roofline::of(&waits, &ceilings);
    assert_eq!(roofline.bound, Bound::Latency);
    assert!(roofline.verdict.contains("at 10.0 % of its speed"), "{}", roofline.verdict);
    let alone = profile(8, &[(Stage::Decode.of("fsst"), 100_000_000, 0, 1_000)], 0);
    let roofline = Roofline::of(&alone, &ceilings);
    assert_eq!(roofline.bound, Bound::Parallelism);
    assert!(roofline.verdict.contains("nothing to do 87.5 % of the time"), "{}", roofline.verdict);
    assert_eq!(Roofline::of(&Profile::default(), &ceilings).bound, Bound::Unknown);
    // A stage that never sleeps, and had no processor most of the time.
    let crowded = profile(1, &[(Stage::Decode.of("fsst"), 10_000_000, 190_000_000, 1_000)], 0);
    let roofline = Roofline::of(&crowded, &ceilings);
    assert_eq!(roofline.bound, Bound::Crowded);
    assert!(
        roofline.verdict.starts_with("crowded: others had the processors 95.0 % of the time"),
        "{}",
        roofline.verdict
    );
}

#[test]
fn what_waits_for_an_object_store_is_bound_by_it() {
    let spent = [(Stage::Submit.into(), 1_000_000, 0, 20_000_000), (Stage::Wait.into(), 0, 99_000_000, 0)];
    let far = StoreTraffic { requests: 12, bytes: 20_000_000, ..StoreTraffic::default() };
    let mut profile = Profile { stores: Some(far), ..profile(1, &spent, 0) };
    profile.compare(&ceilings());
    let roofline = profile.roofline.as_ref().unwrap();
    assert_eq!(roofline.bound, Bound::Store);
    assert!(roofline.verdict.contains("12 requests, 200 MB/s"), "{}", roofline.verdict);
    // Its bytes are none of the device.
    assert_eq!(roofline.limit(Resource::Store).map(|limit| limit.moved), Some(20_000_000));
    assert!(roofline.limit(Resource::Device).is_none());
    for text in [profile.to_text(), profile.to_html()] {
        assert!(text.contains("object stores: 12 requests, 20.0 MB read"), "{text}");
    }
    let json = profile.to_json();
    assert!(json.contains("\"bound\":\"store\"") && json.contains("\"requests\":12"), "{json}");
    // Busy threads are busy, wherever their bytes come from.
    let busy =
        Profile { stores: Some(far), ..self::profile(1, &[(Stage::Decode.of("fsst"), 100_000_000, 0, 1_000)], 0) };
    assert_eq!(Roofline::of(&busy, &ceilings()).bound, Bound::Stage(Stage::Decode));
}

#[test]
fn what_was_not_measured_is_no_limit() {
    let spent = [
        (Stage::Decode.of("pco"), 5, 0, 1_000),
        (Stage::Decode.of("fsst"), 5, 0, 2_000),
        (Stage::Submit.into(), 0, 0, 7),
    ];
    let profile = profile(1, &spent, 0);
    let roofline = Roofline::of(&profile, &Ceilings { device_read: None, ..ceilings() });
    let decode = roofline.limit(Resource::Decode).unwrap();
    assert_eq!((decode.moved, decode.unmeasured), (2_000, 1_000));
    let device = roofline.limit(Resource::Device).unwrap();
    assert_eq!(
        (device.moved, device.ceiling, device.alone, device.reached, device.origin),
        (7, None, None, None, None)
    );
    let roofline = Roofline::of(&profile, &Ceilings::default());
    assert_eq!(roofline.limit(Resource::Decode).unwrap().unmeasured, 3_000);
    // Ceilings that can't be are none.
    for wrong in [0.0, -1.0, f64::NAN] {
        let wrong = Ceiling::shared(wrong);
        let decode = vec![("fsst".to_owned(), wrong)];
        let ceilings = Ceilings { device_read: Some(wrong), memory: Some(wrong), decode, ..Ceilings::default() };
        let roofline = Roofline::of(&profile, &ceilings);
        assert!(
            roofline.limits.iter().all(|limit| limit.resource == Resource::Processor || limit.alone.is_none()),
            "{roofline:?}"
        );
    }
}

#[test]
fn a_machine_is_measured_and_marked() {
    let measured = Ceilings::measure(2, Duration::from_millis(100));
    let memory = measured.memory.unwrap();
    assert!(memory.per_second > 0.0 && !memory.by_thread && memory.origin == Origin::Now, "{memory:?}");
    let decode = measured.decode("anything").unwrap();
    assert!(decode.per_second > 0.0 && decode.by_thread && decode.origin == Origin::Now, "{decode:?}");
    // What a probe found goes first.
    let both = ceilings().or(&measured);
    assert_eq!((both.memory, both.decode("fsst")), (ceilings().memory, ceilings().decode("fsst")));
    assert_eq!(both.decode("pco"), Some(decode));
    let mut profile = query("q");
    profile.compare(&measured);
    let text = profile.to_text();
    assert!(text.contains("measured now") && text.contains("not measured"), "{text}");
}
