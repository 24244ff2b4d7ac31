//! A probe from start to end, within the time that was given.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use plinth_core::units;
use plinth_io::{IoError, Result};

use crate::backend::{Backend, Window};
use crate::cache::CacheTest;
use crate::capabilities::{self, Step};
use crate::cell::{Cell, Order, Row, grid};
use crate::fio::Fio;
use crate::knee_points::{Knees, knees};
use crate::memory::MemorySpeeds;
use crate::profile::DeviceProfile;
use crate::sync::{self, SyncCost};
use crate::system::{Environment, Load, Ticks};
use crate::target::Target;
use crate::threads::Threads;
use crate::trust::{Evidence, Trust};
use crate::uring::Uring;

/// Who measures the cells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Engine {
    /// fio if it is installed and there is time for it, else the best of Plinth's own.
    #[default]
    Auto,
    /// fio.
    Fio,
    /// A ring, past the page cache.
    Uring,
    /// A thread a request, past the page cache.
    Direct,
    /// A thread a request, through the page cache.
    Cached,
}

/// What to probe and for how long.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The folder.
    pub folder: PathBuf,
    /// Who measures.
    pub engine: Engine,
    /// Bytes of the file that is filled.
    pub bytes: u64,
    /// How long all of it may take.
    pub time: Duration,
}

/// What a probe found.
#[derive(Clone, Debug)]
pub struct Report {
    /// Seconds since 1970.
    pub measured_at: u64,
    /// Where.
    pub environment: Environment,
    /// Bytes of the file.
    pub bytes: u64,
    /// Bytes a second at which it was filled.
    pub filled: f64,
    /// Who measured the rows.
    pub engine: String,
    /// The cells that were measured, the headlines first.
    pub rows: Vec<Row>,
    /// Those for which there was no time.
    pub left_out: Vec<Cell>,
    /// The fastest of the reads again, for longer: a device gives more for a moment than it does for a second.
    pub lasting: Option<Row>,
    /// The same cell by another engine beside the row it belongs to.
    pub compared: Vec<[Row; 2]>,
    /// The key cell at start, middle and end, twice each.
    pub repetitions: Vec<[Row; 2]>,
    /// What the kernel grants.
    pub ladder: Vec<Step>,
    /// What durability costs.
    pub syncs: Vec<SyncCost>,
    /// Whether a cache answers.
    pub cache: CacheTest,
    /// How fast memory is.
    pub memory: MemorySpeeds,
    /// How busy the machine was otherwise.
    pub load: Load,
    /// Where more stops helping.
    pub knees: Option<Knees>,
    /// How far to trust all this.
    pub trust: Trust,
    /// How long it took.
    pub elapsed: Duration,
}

/// Probes a folder. `progress` hears what is done next and how much of the time is over, 0 to 1.
///
/// Once `stop` is set the probe ends soon, with an error of the kind `Interrupted`; the file is gone either way.
///
/// # Errors
/// If the folder can't be written to, has too little space, or the engine asked for can't work there.
pub fn run(plan: &Plan, stop: &AtomicBool, progress: &dyn Fn(&str, f64)) -> Result<Report> {
    let started = Instant::now();
    let ticks = Ticks::now();
    let environment = Environment::of(&plan.folder)?;
    let say = |what: &str| {
        progress(what, (started.elapsed().as_secs_f64() / plan.time.as_secs_f64().max(1e-3)).min(1.0));
        let interrupted = || IoError::os(&plan.folder, "probe it", std::io::ErrorKind::Interrupted.into());
        if stop.load(Ordering::Relaxed) { Err(interrupted()) } else { Ok(()) }
    };
    say("filling a file")?;
    let target = Target::fill(&plan.folder, plan.bytes, plan.time.mul_f64(0.15))?;
    let environment = environment.with_alignment_of(target.path());
    let ladder = capabilities::climb(&target, &environment);
    let (backend, other) = choose(plan, &target, capabilities::has_ring(&ladder))?;
    // More time would not make these any better.
    let share = |part: f64| plan.time.mul_f64(part).min(Duration::from_secs(4));
    say("reading for the first time")?;
    let cache = CacheTest::measure(&target, share(0.05))?;
    say("memory, page cache, checksums")?;
    let memory = MemorySpeeds::measure(&target, share(0.04))?;
    say("syncs")?;
    let syncs = SyncCost::measure(&target, share(0.04))?;

    let cells = grid();
    let lasting = plan.time.mul_f64(LASTING).min(Duration::from_secs(5));
    let pace = Pace::new(plan.time.saturating_sub(started.elapsed() + lasting), cells.len(), backend.overhead());
    let measure_for = |time: Duration, backend: &dyn Backend, cell: &Cell, seed: u64| {
        say(&cell.to_string())?;
        backend.run(cell, &target, Window::of(time, seed), stop)
    };
    let measure = |backend: &dyn Backend, cell: &Cell, seed: u64| measure_for(pace.cell, backend, cell, seed);
    let repeat = |seed: u64| -> Result<[Row; 2]> {
        Ok([measure(backend.as_ref(), &Cell::KEY, seed)?, measure(backend.as_ref(), &Cell::KEY, seed + 1)?])
    };
    let mut repetitions = vec![repeat(1_001)?];
    let (mut rows, mut compared, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
    // What is still to come after the grid.
    let reserve = pace.step(backend.overhead()) * 2 + backend.overhead() + lasting;
    for (at, cell) in cells.iter().enumerate() {
        let left = plan.time.saturating_sub(started.elapsed());
        let headline = Cell::HEADLINES.contains(cell);
        if !headline && left < reserve + pace.step(backend.overhead()) {
            left_out.push(*cell);
            continue;
        }
        let row = measure(backend.as_ref(), cell, at as u64)?;
        if let Some(other) = other.as_ref().filter(|_| headline && left > reserve) {
            compared.push([row.clone(), measure(other.as_ref(), cell, at as u64 + 500)?]);
        }
        rows.push(row);
        if repetitions.len() == 1 && started.elapsed() > plan.time.mul_f64(0.6) {
            repetitions.push(repeat(1_003)?);
        }
    }
    repetitions.push(repeat(1_005)?);
    let reads = rows.iter().filter(|row| row.cell.reads == 100);
    let fastest = reads.max_by(|a, b| a.bandwidth.total_cmp(&b.bandwidth)).map(|row| row.cell);
    let lasting =
        fastest.map(|cell| measure_for(lasting.max(pace.cell), backend.as_ref(), &cell, 2_001)).transpose()?;
    say("done")?;
    let load = ticks.until(Ticks::now());
    let direct = target.is_direct() && plan.engine != Engine::Cached;
    let evidence = Evidence {
        environment: &environment,
        direct,
        seconds: plan.time.as_secs(),
        rows: &rows,
        repetitions: &repetitions,
        cache: &cache,
        load,
    };
    let trust = Trust::judge(&evidence);
    Ok(Report {
        measured_at: SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs()),
        bytes: target.byte_len(),
        filled: target.filled(),
        engine: backend.name().to_owned(),
        knees: knees(&rows),
        environment,
        rows,
        left_out,
        lasting,
        compared,
        repetitions,
        ladder,
        syncs,
        cache,
        memory,
        load,
        trust,
        elapsed: started.elapsed(),
    })
}

type Chosen = (Box<dyn Backend>, Option<Box<dyn Backend>>);

/// The share of the time in which the fastest read is measured again.
const LASTING: f64 = 0.06;

/// fio needs a third of a second a cell that it does not measure: a shorter probe has no time for it.
const SHORT: Duration = Duration::from_secs(5);

/// Who measures, and who is compared with it.
fn choose(plan: &Plan, target: &Target, ring: bool) -> Result<Chosen> {
    let refused = |why: &str| {
        let e = std::io::Error::new(std::io::ErrorKind::Unsupported, why.to_owned());
        IoError::os(&plan.folder, "measure it as --engine says", e)
    };
    let direct = target.is_direct();
    let own = || -> Box<dyn Backend> { if ring { Box::new(Uring) } else { Box::new(Threads { direct }) } };
    let fio = || Fio::find(ring, direct).map(|fio| Box::new(fio) as Box<dyn Backend>);
    // Beside one of Plinth's own, if there is time for it.
    let beside = || fio().filter(|_| plan.time >= SHORT);
    Ok(match plan.engine {
        Engine::Auto if plan.time < SHORT => (own(), None),
        Engine::Auto => fio().map_or_else(|| (own(), None), |fio| (fio, Some(own()))),
        Engine::Fio => {
            (fio().ok_or_else(|| refused("fio is not installed; install it or choose another"))?, Some(own()))
        }
        Engine::Uring if !ring => return Err(refused("the kernel grants no ring; direct needs none")),
        Engine::Uring => (Box::new(Uring), beside()),
        Engine::Direct if !direct => {
            return Err(refused("the file system does not let requests pass by the page cache; choose cached"));
        }
        Engine::Direct => (Box::new(Threads { direct }), beside()),
        Engine::Cached => (Box::new(Threads { direct: false }), None),
    })
}

/// How long each cell is measured.
struct Pace {
    cell: Duration,
}

impl Pace {
    /// All cells in the time that is left, if each gets enough of it; at least so long that a few dozen slow requests fit,
    /// and then some are left out.
    fn new(left: Duration, cells: usize, overhead: Duration) -> Self {
        // Beside the grid: six repetitions of the key cell and four comparisons.
        let share = left / u32::try_from(cells + 10).unwrap_or(u32::MAX);
        let least = (left / 160).clamp(Duration::from_millis(20), Duration::from_millis(120));
        Self { cell: share.saturating_sub(overhead).clamp(least, Duration::from_secs(5)) }
    }

    fn step(&self, overhead: Duration) -> Duration {
        self.cell + overhead
    }
}

impl Report {
    /// The row of a cell, if it was measured.
    pub fn row(&self, cell: &Cell) -> Option<&Row> {
        self.rows.iter().find(|row| row.cell == *cell)
    }

    /// What readers need to know. `decode` is added by callers: bytes of values a second by encoding.
    pub fn profile(&self, decode: Vec<(String, u64)>) -> DeviceProfile {
        let best = |of: fn(&Row) -> f64, which: &dyn Fn(&Cell) -> bool| {
            let rows = self.rows.iter().filter(|row| which(&row.cell));
            rows.map(of).max_by(f64::total_cmp).map(units::whole)
        };
        let small = |cell: &Cell| cell.order == Order::Random && cell.size == Cell::LONE_READ.size;
        let sync = sync::cheapest(&self.syncs);
        DeviceProfile {
            measured_at: self.measured_at,
            engine: self.engine.clone(),
            device: self.environment.device.as_ref().map_or_else(|| "none".to_owned(), |device| device.title()),
            file_system: self.environment.file_system.clone(),
            virtual_machine: self.environment.virtual_machine.clone(),
            grade: self.trust.grade,
            reasons: self.trust.reasons.clone(),
            read_bandwidth: self.lasting.as_ref().map_or(0, |row| units::whole(row.bandwidth)),
            read_iops: best(|row| row.iops, &|cell| small(cell) && cell.reads == 100).unwrap_or(0),
            read_latency: self.row(&Cell::LONE_READ).map_or(0, |row| row.latency.p50),
            write_bandwidth: best(|row| row.bandwidth, &|cell| cell.reads == 0).unwrap_or(0),
            write_iops: best(|row| row.iops, &|cell| small(cell) && cell.reads == 0),
            request_bytes: self.knees.map_or(Cell::KEY.size, |knees| knees.size),
            depth: self.knees.map_or(Cell::KEY.depth, |knees| knees.depth).into(),
            p99_doubles_at: self.knees.and_then(|knees| knees.p99_doubles).map(u64::from),
            sync_method: sync.map_or("fdatasync", |cost| cost.method).to_owned(),
            sync_latency: sync.map_or(0, |cost| cost.latency.p50),
            memory_read: units::whole(self.memory.read),
            memory_copy: units::whole(self.memory.copy),
            page_cache: units::whole(self.memory.page_cache),
            checksum: units::whole(self.memory.checksum),
            decode,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(folder: PathBuf, engine: Engine) -> Plan {
        Plan { folder, engine, bytes: 16 << 20, time: Duration::from_millis(300) }
    }

    #[test]
    fn a_short_probe_is_whole_and_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let told = std::cell::RefCell::new(Vec::new());
        let go = AtomicBool::new(false);
        let plan = plan(dir.path().to_path_buf(), Engine::Cached);
        let report = run(&plan, &go, &|what, share| told.borrow_mut().push((what.to_owned(), share))).unwrap();
        assert!(Cell::HEADLINES.iter().all(|cell| report.row(cell).is_some()));
        assert_eq!(report.rows.len() + report.left_out.len(), grid().len());
        assert_eq!(report.trust.grade, crate::Grade::D, "the page cache answered: {:?}", report.trust);
        assert!(report.repetitions.len() >= 2 && report.knees.is_some());
        let lasting = report.lasting.as_ref().unwrap();
        assert!(report.rows.iter().any(|row| row.cell == lasting.cell) && lasting.cell.reads == 100);
        assert_eq!(report.profile(Vec::new()).read_bandwidth, units::whole(lasting.bandwidth));
        assert!(told.borrow().iter().all(|(_, share)| (0.0..=1.0).contains(share)));
        assert_eq!(told.borrow().last().map(|(what, _)| what.as_str()), Some("done"));
        let profile = report.profile(vec![("plain".into(), 5)]);
        let path = dir.path().join("p.toml");
        profile.write(&path).unwrap();
        assert_eq!(DeviceProfile::read(&path).unwrap(), profile);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_stopped_probe_says_so_and_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let stop = AtomicBool::new(false);
        let plan = Plan { time: Duration::from_secs(3_600), ..plan(dir.path().to_path_buf(), Engine::Cached) };
        let error = run(&plan, &stop, &|what, _| {
            if what == "reading for the first time" {
                stop.store(true, Ordering::Relaxed);
            }
        });
        assert!(matches!(error, Err(IoError::Os { source, .. }) if source.kind() == std::io::ErrorKind::Interrupted));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn the_pace_fits_the_time() {
        let all = grid().len();
        let second = Duration::from_secs(1);
        let own = Pace::new(16 * second, all, Duration::from_millis(5));
        assert!((own.step(Duration::from_millis(5)) * 154).as_secs_f64() <= 24.0, "{:?}", own.cell);
        let full = Pace::new(150 * second, all, Duration::from_millis(300));
        assert!((full.step(Duration::from_millis(300)) * 154) <= 150 * second, "all cells fit");
        assert_eq!(Pace::new(Duration::ZERO, all, second).cell, Duration::from_millis(20));
    }
}
