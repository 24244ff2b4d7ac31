//! The same on the machine's own clocks, with wide bounds.

use std::hint::black_box;
use std::time::{Duration, Instant};

use plinth_profile::{Profiler, ProfilerOptions, Stage, scope};

use crate::{check, row};

/// Keeps the processor busy for so much time of this thread's own, whatever else the machine does.
fn burn(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        black_box((0..1_000_u64).sum::<u64>());
    }
}

#[test]
fn scopes_take_the_time_they_take() {
    let each = Duration::from_millis(20);
    for detailed in [false, true] {
        let profiler = Profiler::start(ProfilerOptions { threads: 1, detailed, ..ProfilerOptions::default() });
        let started = Instant::now();
        {
            let _operator = profiler.scope(Stage::Operator.nth(0));
            burn(each);
            {
                let _decode = scope(Stage::Decode);
                burn(each);
            }
            let _wait = scope(Stage::Wait);
            std::thread::sleep(each);
        }
        let most = started.elapsed();
        let profile = profiler.finish();
        check(&profile);
        for name in ["operator 0", "decode", "wait"] {
            let time = row(&profile.rows, name).time;
            // The counter is calibrated to within a hundredth.
            assert!(time >= each.mul_f64(0.98) && time <= most.mul_f64(1.02), "{name}: {time:?} of {most:?}");
        }
        let wait = row(&profile.rows, "wait");
        assert!(wait.cpu < each / 2, "{wait:?}");
        assert!(profile.waited >= each.mul_f64(0.5));
        if cfg!(target_os = "linux") {
            assert!(profile.cpu.unwrap() > Duration::ZERO && profile.named > Duration::ZERO);
            assert!(profile.named <= most.mul_f64(1.02));
        }
    }
}

#[test]
#[cfg(target_os = "linux")]
fn page_faults_are_seen() {
    let profiler = Profiler::start(ProfilerOptions { detailed: true, ..ProfilerOptions::default() });
    {
        let _build = profiler.scope(Stage::Build);
        // Larger than an allocator keeps, and touched: at the least one fault of a huge page.
        let mut pages = vec![0_u8; 64 << 20];
        pages.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
        black_box(&pages);
    }
    let profile = profiler.finish();
    check(&profile);
    let faults = row(&profile.rows, "build").faults;
    assert!(faults.minor >= 32 && profile.faults.minor >= faults.minor, "{faults:?} of {:?}", profile.faults);
}

#[test]
#[cfg(feature = "counters")]
fn the_processor_counts_or_says_why_not() {
    use plinth_profile::Hardware;
    let profiler = Profiler::start(ProfilerOptions::default());
    {
        let _decode = profiler.scope(Stage::Decode);
        burn(Duration::from_millis(20));
    }
    let profile = profiler.finish();
    check(&profile);
    match profile.hardware {
        Hardware::Counted { cycles, instructions, .. } => assert!(cycles > 10_000 && instructions > 10_000),
        Hardware::Refused(why) => {
            assert!(!why.is_empty() && !why.contains('\n'));
            eprintln!("skipped: no hardware counters here: {why}");
        }
        Hardware::NotAsked => panic!("the feature is there"),
    }
}
