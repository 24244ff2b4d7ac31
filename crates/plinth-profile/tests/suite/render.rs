//! What people and programs are shown.

use std::sync::Arc;

use plinth_profile::{Hardware, ManualClock, Profile, Stage, scope};
use serde_json::Value;

use crate::sample::{ceilings, query};
use crate::{check, nanos, on};

/// What would break a page, a terminal or an object if it were taken at its word.
const NASTY: &str = "SELECT '</title><script>alert(1)</script>', \"a\\b\"\n\t\u{1b}[31m FROM x & y";

fn sample() -> Profile {
    let mut profile = query("SELECT sum(x) FROM hits WHERE URL LIKE '%google%'");
    profile.compare(&ceilings());
    check(&profile);
    profile
}

#[test]
fn the_tree_for_a_terminal() {
    let text = sample().to_text();
    let expected = "\
SELECT sum(x) FROM hits WHERE URL LIKE '%google%'
200 ms on 2 threads; processor 168 ms: 98.8 % in stages, 1.2 % other; idle 232 ms
waited for storage 28.0 ms; page faults 0 minor, 0 major
";
    assert!(text.starts_with(expected), "{text}");
    for line in [
        "AggregateExec: sum(x)                    40.0 ms  20.4 %       96.9 %     2     2                   ",
        "    decode bit-packed                    70.0 ms  35.7 %       35.7 %     2  50.0 M   400 MB  5.71 GB/s",
        "      decode fsst",
        "    filter URL LIKE '%google%' AND x < 3",
        "idle                                      232 ms",
        "device      80.0 MB  2.00 GB/s  40.0 ms   20.0 %",
    ] {
        let wanted: Vec<_> = line.split_whitespace().collect();
        let found =
            text.lines().any(|found| found.split_whitespace().collect::<Vec<_>>() == wanted || found.starts_with(line));
        assert!(found, "{line}\n{text}");
    }
    assert!(text.lines().all(|line| line.chars().count() < 150 || line.contains("-bound")), "{text}");
    // Every column has its place: all lines of the tree are as long as what they show.
    let tree: Vec<_> =
        text.lines().skip_while(|line| !line.starts_with("stage")).take_while(|line| !line.is_empty()).collect();
    let end = tree[0].find("time").unwrap() + 4;
    assert_eq!(tree.len(), sample().rows.len() + 3);
    for line in &tree[1..] {
        let (start, rest) = line.split_at(end);
        assert!(start.ends_with("s") && (rest.is_empty() || rest.starts_with("  ")), "{line}");
    }
}

#[test]
fn an_empty_profile_is_shown_as_well() {
    let mut profile = Profile::default();
    profile.compare(&ceilings());
    for text in [profile.to_text(), profile.to_html(), profile.to_json(), profile.to_trace()] {
        assert!(!text.is_empty() && !text.contains("NaN") && !text.contains("inf"), "{text}");
    }
    assert!(profile.to_text().contains("nothing was recorded"));
    let cold = on(&Arc::new(ManualClock::default()), |_| {}).finish();
    assert!(!cold.to_html().contains("NaN"));
}

#[test]
fn names_are_text_everywhere() {
    let clock = Arc::new(ManualClock::default());
    let profiler = on(&clock, |options| (options.title, options.spans) = (NASTY.into(), 10));
    profiler.label(Stage::Filter.nth(0), NASTY);
    {
        let _filter = profiler.scope(Stage::Filter.nth(0));
        clock.work(1_000_000);
    }
    let profile = profiler.finish();
    let html = profile.to_html();
    assert!(!html.contains("<script") && html.contains("&lt;script&gt;") && !html.contains('\u{1b}'), "{html}");
    let text = profile.to_text();
    assert!(!text.contains('\u{1b}') && text.lines().count() < 10, "{text}");
    let json: Value = serde_json::from_str(&profile.to_json()).unwrap();
    assert_eq!(json["title"], NASTY);
    assert_eq!(json["rows"][0]["name"], format!("filter {NASTY}"));
    let trace: Value = serde_json::from_str(&profile.to_trace()).unwrap();
    assert_eq!(trace["otherData"]["title"], NASTY);
}

#[test]
fn the_object_has_everything() {
    let profile = sample();
    let json: Value = serde_json::from_str(&profile.to_json()).unwrap();
    let number = |value: &Value| value.as_u64().unwrap_or_else(|| panic!("{value}"));
    assert_eq!((number(&json["version"]), number(&json["wall"])), (1, 200_000_000));
    assert_eq!(
        (number(&json["cpu"]), number(&json["other"]), number(&json["idle"])),
        (168_000_000, 2_000_000, 232_000_000)
    );
    let rows = json["rows"].as_array().unwrap();
    assert_eq!(rows.len(), profile.rows.len());
    for (json, row) in rows.iter().zip(&profile.rows) {
        assert_eq!(json["name"], row.name);
        assert_eq!(json["parent"].as_u64(), row.parent.map(|parent| parent as u64));
        assert_eq!((number(&json["time"]), number(&json["total"])), (nanos(row.time), nanos(row.total)));
        assert_eq!((number(&json["bytes"]), number(&json["rows"])), (row.bytes, row.rows));
    }
    assert_eq!((&rows[2]["stage"], &rows[2]["part"]), (&"decode".into(), &"bit-packed".into()));
    assert_eq!(json["roofline"]["limits"][0]["resource"], "device");
    assert_eq!(json["roofline"]["verdict"], profile.roofline.unwrap().verdict);
    assert_eq!(json["hardware"].is_null(), !cfg!(feature = "counters"));
}

#[test]
fn a_trace_has_every_scope_on_its_thread() {
    let profile = sample();
    let trace: Value = serde_json::from_str(&profile.to_trace()).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let spans: Vec<_> = events.iter().filter(|event| event["ph"] == "X").collect();
    // One of planning, nine of each thread.
    assert_eq!(spans.len(), 19);
    let of = |event: &Value, key: &str| event[key].as_f64().unwrap();
    let first = spans.iter().find(|event| event["name"] == "AggregateExec: sum(x)").unwrap();
    assert_eq!((of(first, "ts"), of(first, "dur")), (6_000.0, 95_000.0));
    // Within a thread scopes nest: two of them lie within each other, or apart.
    for a in &spans {
        for b in spans.iter().filter(|b| b["tid"] == a["tid"]) {
            let (a, b) = ((of(a, "ts"), of(a, "ts") + of(a, "dur")), (of(b, "ts"), of(b, "ts") + of(b, "dur")));
            assert!(
                a.1 <= b.0 || b.1 <= a.0 || (a.0 <= b.0 && b.1 <= a.1) || (b.0 <= a.0 && a.1 <= b.1),
                "{a:?} {b:?}"
            );
        }
    }
    let threads: Vec<_> =
        events.iter().filter(|event| event["name"] == "thread_name").map(|event| &event["tid"]).collect();
    assert_eq!(threads, [1, 2, 3]);
    // What is kept is bounded, the outermost scopes come first, and what is lost is told.
    let clock = Arc::new(ManualClock::default());
    let profiler = on(&clock, |options| options.spans = 3);
    let outer = profiler.scope(Stage::Output);
    for _ in 0..5 {
        let _gather = scope(Stage::Gather);
        clock.work(1_234);
    }
    let profile = profiler.snapshot();
    drop(outer);
    assert_eq!((profile.spans.len(), profile.spans_lost, profile.rows[1].hits), (3, 3, 5));
    assert_eq!(nanos(profile.spans[0].time), 5 * 1_234);
    assert!(profile.to_trace().contains("\"ts\":1.234,\"dur\":1.234"), "{}", profile.to_trace());
}

#[test]
fn what_the_processor_counted_is_told() {
    let mut profile = sample();
    profile.hardware = Hardware::Counted { cycles: 2_000_000, instructions: 3_000_000, cache_misses: 4_000 };
    assert!(profile.to_text().contains("2.00 M cycles, 1.50 instructions a cycle, 4.00 k cache misses"));
    profile.hardware = Hardware::Refused("not here".into());
    assert!(profile.to_text().contains("hardware counters: not here"));
    let json: Value = serde_json::from_str(&profile.to_json()).unwrap();
    assert_eq!(json["hardware"]["refused"], "not here");
}
