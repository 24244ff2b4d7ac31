//! How far figures are to be trusted, and why no further.

use plinth_core::units;

use crate::cache::CacheTest;
use crate::cell::{Cell, Row};
use crate::profile::Grade;
use crate::sanity;
use crate::system::{Environment, Load};

/// A grade with its reasons.
#[derive(Clone, Debug, PartialEq)]
pub struct Trust {
    /// The worst that any reason asks for; A without reasons.
    pub grade: Grade,
    /// Why it is no better, worst first.
    pub reasons: Vec<String>,
    /// How far the key cell's means at start, middle and end lie apart, as a share of the smallest.
    pub drift: Option<f64>,
    /// How far two runs of the key cell in a row lie apart, as a share of the smaller: the worst of them.
    pub noise: Option<f64>,
}

/// What there is to judge by.
pub(crate) struct Evidence<'a> {
    pub(crate) environment: &'a Environment,
    pub(crate) direct: bool,
    pub(crate) seconds: u64,
    pub(crate) rows: &'a [Row],
    /// Repetitions of the key cell: two at the start, two in the middle, two at the end.
    pub(crate) repetitions: &'a [[Row; 2]],
    pub(crate) cache: &'a CacheTest,
    pub(crate) load: Load,
}

/// How far apart the largest and the smallest are, as a share of the smallest.
fn spread(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let smallest = values.clone().fold(f64::INFINITY, f64::min);
    let largest = values.fold(0.0, f64::max);
    if largest > 0.0 { largest / smallest - 1.0 } else { 0.0 }
}

/// The grade for a share: above each limit one further down.
fn by_limits(value: f64, limits: [f64; 3]) -> Grade {
    match limits.iter().filter(|limit| value > **limit).count() {
        0 => Grade::A,
        1 => Grade::B,
        2 => Grade::C,
        _ => Grade::D,
    }
}

impl Trust {
    pub(crate) fn judge(evidence: &Evidence<'_>) -> Self {
        let pairs = evidence.repetitions;
        let means = pairs.iter().map(|[a, b]| f64::midpoint(a.bandwidth, b.bandwidth));
        let drift = (pairs.len() > 1).then(|| spread(means));
        let noise = pairs.iter().map(|[a, b]| spread([a.bandwidth, b.bandwidth].into_iter())).reduce(f64::max);

        let mut found: Vec<(Grade, String)> = of_place(evidence);
        let mut add = |grade, reason: String| found.push((grade, reason));
        let percent = |share: f64| format!("{:.0} %", share * 100.0);
        for (what, value) in [("drift", drift), ("noise", noise)] {
            let value = value.unwrap_or(0.0);
            let reason = format!("{what}: {} moves by {} between repetitions", Cell::KEY, percent(value));
            add(by_limits(value, [0.1, 0.25, 0.6]), reason);
        }
        let Load { others, stolen } = evidence.load;
        add(by_limits(others, [0.2, 0.5, 2.0]), format!("other programs took {} of the processors", percent(others)));
        add(
            by_limits(stolen, [0.02, 0.1, 2.0]),
            format!("the hypervisor took {} of the processors away", percent(stolen)),
        );
        let cache = evidence.cache;
        if evidence.direct && cache.remembers() {
            let (again, hot) = (cache.again_ratio(), cache.hot_ratio());
            let reason = format!(
                "a cache answers, the host's or the drive's: re-reads are {again:.1}x, the same 1 MiB {hot:.1}x as fast as first reads"
            );
            add(Grade::C, reason);
        }
        let broken = evidence.rows.iter().filter(|row| !sanity::broken(row).is_empty()).count() as u64;
        let share = units::to_f64(broken) / units::to_f64(evidence.rows.len().max(1) as u64);
        add(
            by_limits(share, [0.1, 0.5, 2.0]),
            format!("{} of the rows break a law: the engine is the limit", percent(share)),
        );
        if small_beats_large(evidence.rows) {
            add(
                Grade::C,
                "small reads move more bytes than large ones: one of both was not what the device can do".to_owned(),
            );
        }
        if evidence.seconds < 10 {
            let reason = format!("a run of {} s sees neither bursts nor pauses", evidence.seconds);
            add(Grade::B, reason);
        }
        found.retain(|(grade, _)| *grade > Grade::A);
        found.sort_by_key(|(grade, _)| std::cmp::Reverse(*grade));
        let grade = found.first().map_or(Grade::A, |(grade, _)| *grade);
        Self { grade, reasons: found.into_iter().map(|(_, reason)| reason).collect(), drift, noise }
    }
}

/// What the place alone allows.
fn of_place(evidence: &Evidence<'_>) -> Vec<(Grade, String)> {
    let environment = evidence.environment;
    let mut found = Vec::new();
    if !evidence.direct {
        found.push((Grade::D, "the page cache answered: no device was measured".to_owned()));
    }
    match &environment.device {
        None if matches!(environment.file_system.as_str(), "tmpfs" | "ramfs") => {
            found.push((Grade::D, format!("{} is memory, no device", environment.file_system)));
        }
        None => found.push((Grade::C, format!("no block device is known below {}", environment.file_system))),
        Some(device) => {
            let made = device.is_virtual();
            if let Some(machine) = &environment.virtual_machine {
                let grade = if made { Grade::C } else { Grade::B };
                let title = device.title();
                found.push((
                    grade,
                    format!("virtual machine ({machine}): figures are those of {title} in this VM, not of an SSD"),
                ));
            } else if made {
                found.push((Grade::C, format!("{} is a virtual device", device.title())));
            }
        }
    }
    found
}

/// A sanity rule: random 4 KiB reads can't move more than the best of all reads do, but for noise.
fn small_beats_large(rows: &[Row]) -> bool {
    let best = |small: bool| {
        let reads = rows.iter().filter(|row| row.cell.reads == 100 && (row.cell.size == Cell::LONE_READ.size) == small);
        reads.map(|row| row.bandwidth).fold(0.0, f64::max)
    };
    best(false) > 0.0 && best(true) > 1.1 * best(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sanity::tests::lawful;
    use crate::system::BlockDevice;

    fn pair(a: f64, b: f64) -> [Row; 2] {
        [lawful(Cell::KEY, a), lawful(Cell::KEY, b)]
    }

    #[test]
    fn a_quiet_device_gets_an_a_and_each_flaw_is_named() {
        let device = BlockDevice { name: "nvme0n1".into(), model: "KIOXIA CM7-R".into(), ..BlockDevice::default() };
        let real = Environment { file_system: "xfs".into(), device: Some(device), ..Environment::default() };
        let steady = [pair(4000.0, 4100.0), pair(4050.0, 4000.0), pair(4020.0, 4080.0)];
        let cold = CacheTest { first: 1e9, again: 1e9, spread: 80_000, hot: 80_000 };
        let rows = [lawful(Cell::SEQUENTIAL_READ, 1_700.0), lawful(Cell::DEEP_READ, 60_000.0)];
        let good = || Evidence {
            environment: &real,
            direct: true,
            seconds: 20,
            rows: &rows,
            repetitions: &steady,
            cache: &cold,
            load: Load::default(),
        };
        let trust = Trust::judge(&good());
        assert_eq!((trust.grade, trust.reasons.len()), (Grade::A, 0), "{trust:?}");
        assert!(trust.drift.unwrap() < 0.03 && trust.noise.unwrap() < 0.03);

        let check = |evidence: Evidence<'_>, grade, part: &str| {
            let trust = Trust::judge(&evidence);
            assert_eq!(trust.grade, grade, "{trust:?}");
            assert!(trust.reasons[0].contains(part), "{part}: {trust:?}");
        };
        check(Evidence { direct: false, ..good() }, Grade::D, "page cache");
        check(Evidence { seconds: 2, ..good() }, Grade::B, "2 s");
        check(Evidence { load: Load { others: 0.3, stolen: 0.0 }, ..good() }, Grade::B, "30 %");
        check(Evidence { load: Load { others: 0.0, stolen: 0.2 }, ..good() }, Grade::C, "hypervisor");
        check(Evidence { cache: &CacheTest { hot: 20_000, ..cold }, ..good() }, Grade::C, "4.0x");
        let drifting = [pair(4000.0, 4000.0), pair(3000.0, 3000.0), pair(2000.0, 2000.0)];
        check(Evidence { repetitions: &drifting, ..good() }, Grade::D, "drift: random read 256 KiB x 4 moves by 100 %");
        let noisy = [pair(4000.0, 3400.0), pair(3400.0, 4000.0)];
        check(Evidence { repetitions: &noisy, ..good() }, Grade::B, "noise");
        let vm = Environment { virtual_machine: Some("Firecracker".into()), ..real.clone() };
        check(Evidence { environment: &vm, ..good() }, Grade::B, "this VM");
        let vda = Some(BlockDevice { name: "vda".into(), ..BlockDevice::default() });
        check(Evidence { environment: &Environment { device: vda, ..vm }, ..good() }, Grade::C, "vda in this VM");
        let memory = Environment { file_system: "tmpfs".into(), ..Environment::default() };
        check(Evidence { environment: &memory, ..good() }, Grade::D, "tmpfs");
        let starved = [lawful(Cell::SEQUENTIAL_READ, 1_700.0), Row { bandwidth: 1.0, ..lawful(Cell::DEEP_READ, 6e4) }];
        check(Evidence { rows: &starved, ..good() }, Grade::B, "50 % of the rows");
        let odd = [lawful(Cell::SEQUENTIAL_READ, 100.0), lawful(Cell::DEEP_READ, 60_000.0)];
        check(Evidence { rows: &odd, ..good() }, Grade::C, "small reads");
    }
}
