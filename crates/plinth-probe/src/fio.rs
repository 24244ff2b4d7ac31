//! fio, the reference: users check against it, so where it is installed it measures, and its command is told.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use plinth_core::units;
use plinth_io::Result;
use serde_json::Value;

use crate::backend::{Backend, Window};
use crate::cell::{Cell, Latency, Order, Row};
use crate::target::Target;

/// fio as it is installed here.
#[derive(Clone, Debug)]
pub struct Fio {
    name: String,
    engine: &'static str,
    direct: bool,
    /// Bytes of huge pages that wait to be used.
    huge: u64,
}

impl Fio {
    /// Finds fio, to work through a ring if the kernel grants one, past the page cache or through it.
    pub fn find(ring: bool, direct: bool) -> Option<Self> {
        let output = Command::new("fio").arg("--version").stdin(Stdio::null()).output().ok()?;
        let version = String::from_utf8(output.stdout).ok()?;
        let version = version.trim().strip_prefix("fio-").filter(|_| output.status.success())?;
        let engine = if ring { "io_uring" } else { "libaio" };
        Some(Self { name: format!("fio {version} {engine}"), engine, direct, huge: free_huge_pages() })
    }

    /// Its arguments for a cell. Buffers that are huge pages spare the device scattered ones.
    fn arguments(&self, cell: &Cell, file: &Path, bytes: u64, window: Window) -> Vec<String> {
        let buffers = cell.size * u64::from(cell.depth) + (4 << 20);
        let huge = (buffers <= self.huge).then(|| "--iomem=mmaphuge".to_owned());
        let mut arguments = vec![
            "--name=cell".to_owned(),
            // A colon separates files.
            format!("--filename={}", file.display().to_string().replace(':', "\\:")),
            format!("--size={bytes}"),
            format!("--ioengine={}", self.engine),
            format!("--direct={}", u8::from(self.direct)),
            format!("--rw={}", verb(cell)),
            format!("--bs={}k", cell.size >> 10),
            format!("--iodepth={}", cell.depth),
            "--time_based".to_owned(),
            format!("--ramp_time={}ms", window.warm_up.as_millis().max(1)),
            format!("--runtime={}ms", window.measured.as_millis().max(1)),
            "--norandommap".to_owned(),
            format!("--randseed={}", window.seed),
            "--lat_percentiles=1".to_owned(),
            "--clat_percentiles=0".to_owned(),
            "--percentile_list=50:90:99:99.9".to_owned(),
        ];
        if !matches!(cell.reads, 0 | 100) {
            arguments.extend([format!("--rwmixread={}", cell.reads), "--unified_rw_reporting=mixed".to_owned()]);
        }
        arguments.extend(huge);
        arguments
    }

    fn command(&self, cell: &Cell, target: &Target, window: Window) -> String {
        let arguments = self.arguments(cell, &target.stand_in(), target.byte_len(), window);
        let quoted = arguments.iter().map(|argument| quote(argument));
        ["fio".to_owned()].into_iter().chain(quoted).collect::<Vec<_>>().join(" ")
    }
}

/// The command of fio for a cell that another engine measured.
pub(crate) fn command_line(cell: &Cell, target: &Target, direct: bool, window: Window) -> String {
    Fio { name: String::new(), engine: "io_uring", direct, huge: 0 }.command(cell, target, window)
}

fn verb(cell: &Cell) -> &'static str {
    match (cell.order, cell.reads) {
        (Order::Sequential, 100) => "read",
        (Order::Sequential, 0) => "write",
        (Order::Sequential, _) => "rw",
        (Order::Random, 100) => "randread",
        (Order::Random, 0) => "randwrite",
        (Order::Random, _) => "randrw",
    }
}

/// An argument as a shell takes it.
fn quote(text: &str) -> String {
    let plain = text.chars().all(|c| c.is_alphanumeric() || "/._-+:,@%=".contains(c));
    if plain { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

/// Bytes of huge pages that were reserved and are free.
fn free_huge_pages() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    };
    field("HugePages_Free:").zip(field("Hugepagesize:")).map_or(0, |(pages, kib)| pages.saturating_mul(kib << 10))
}

impl Backend for Fio {
    fn name(&self) -> &str {
        &self.name
    }

    fn overhead(&self) -> Duration {
        // It looks every 100 ms whether a job is over.
        Duration::from_millis(300)
    }

    fn run(&self, cell: &Cell, target: &Target, window: Window, stop: &AtomicBool) -> Result<Row> {
        let failed = |e| target.failed(&format!("measure {cell} with fio"), e);
        let mut command = Command::new("fio");
        command.args(self.arguments(cell, target.path(), target.byte_len(), window));
        command.args(["--allow_file_create=0", "--output-format=json"]);
        let limit = window.warm_up + window.measured + Duration::from_secs(20);
        let output = output_of(&mut command, limit, stop).map_err(failed)?;
        let command = self.command(cell, target, window);
        if output.is_empty() && stop.load(Ordering::Relaxed) {
            let (engine, latency) = (self.name.clone(), Latency::default());
            return Ok(Row { cell: *cell, engine, command, operations: 0, iops: 0.0, bandwidth: 0.0, latency });
        }
        let mut row = parse(&output, *cell).map_err(|what| failed(std::io::Error::other(what)))?;
        (row.engine, row.command) = (self.name.clone(), command);
        Ok(row)
    }
}

/// What a program prints. It is killed when it takes too long, or when the answer is not wanted any more.
fn output_of(command: &mut Command, limit: Duration, stop: &AtomicBool) -> std::io::Result<Vec<u8>> {
    let started = Instant::now();
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    std::thread::scope(|scope| {
        let out = scope.spawn(|| drain(stdout));
        let err = scope.spawn(|| drain(stderr));
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break Some(status);
            }
            if stop.load(Ordering::Relaxed) || started.elapsed() > limit {
                let _ = child.kill();
                let _ = child.wait();
                break None;
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        let (out, err) = (out.join().unwrap_or_default(), err.join().unwrap_or_default());
        match status {
            Some(status) if !status.success() => {
                let text = String::from_utf8_lossy(&err).into_owned() + &String::from_utf8_lossy(&out);
                let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("it says nothing").trim();
                Err(std::io::Error::other(format!("fio failed ({status}): {line}")))
            }
            None if !stop.load(Ordering::Relaxed) => {
                Err(std::io::Error::new(std::io::ErrorKind::TimedOut, "fio did not end in time"))
            }
            None => Ok(Vec::new()),
            Some(_) => Ok(out),
        }
    })
}

fn drain(pipe: Option<impl Read>) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        // A cell's report has 15 kB; what is cut short is no JSON.
        let _ = pipe.take(16 << 20).read_to_end(&mut bytes);
    }
    bytes
}

/// Reads the report of one job. Notes may stand before it.
fn parse(output: &[u8], cell: Cell) -> std::result::Result<Row, String> {
    let start = output.iter().position(|byte| *byte == b'{').ok_or("its output is no JSON")?;
    let report: Value = serde_json::from_slice(&output[start..]).map_err(|e| format!("its output is no JSON: {e}"))?;
    let job = &report["jobs"][0];
    match job["error"].as_i64() {
        Some(0) => {}
        Some(code) => {
            return Err(format!("it reports {}", std::io::Error::from_raw_os_error(i32::try_from(code).unwrap_or(0))));
        }
        None => return Err("its output has no jobs[0].error".to_owned()),
    }
    let part = match cell.reads {
        100 => "read",
        0 => "write",
        _ => "mixed",
    };
    let number = |value: &Value, name: &str| value.as_f64().ok_or_else(|| format!("its output has no {part}.{name}"));
    let part_of_job = &job[part];
    let latency = &part_of_job["lat_ns"];
    // Its own "iops" counts what was submitted after the warm-up, while its bytes and latencies are those of what completed,
    // which is more by the depth.
    let completed = number(&latency["N"], "lat_ns.N")?;
    let seconds = number(&part_of_job["runtime"], "runtime")? / 1e3;
    let operations = units::whole(completed);
    let percentile = |name: &str| match latency["percentile"][name].as_f64() {
        Some(value) => Ok(units::whole(value)),
        None if operations == 0 => Ok(0),
        None => Err(format!("its output has no {part}.lat_ns.percentile.{name}")),
    };
    Ok(Row {
        cell,
        engine: String::new(),
        command: String::new(),
        operations,
        iops: if seconds > 0.0 { completed / seconds } else { 0.0 },
        bandwidth: number(&part_of_job["bw_bytes"], "bw_bytes")?,
        latency: Latency {
            mean: units::whole(number(&latency["mean"], "lat_ns.mean")?),
            p50: percentile("50.000000")?,
            p90: percentile("90.000000")?,
            p99: percentile("99.000000")?,
            p999: percentile("99.900000")?,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sanity;

    const REPORT: &str = r#"fio: a note that stands before the report
{"fio version": "fio-3.33", "jobs": [{"jobname": "cell", "error": 0,
  "read": {"total_ios": 599, "runtime": 200, "iops": 2995.0, "bw_bytes": 12288000,
    "lat_ns": {"min": 9, "max": 99, "mean": 333333.3, "stddev": 1.0, "N": 600,
      "percentile": {"50.000000": 300000, "90.000000": 400000, "99.000000": 900000, "99.900000": 950000}}},
  "write": {"total_ios": 0, "runtime": 0, "iops": 0.0, "bw_bytes": 0, "lat_ns": {"mean": 0.0, "N": 0}}}]}"#;

    #[test]
    fn a_report_becomes_a_row() {
        let row = parse(REPORT.as_bytes(), Cell::LONE_READ).unwrap();
        assert_eq!((row.operations, row.iops, row.bandwidth), (600, 3000.0, 12_288_000.0));
        let latency = Latency { mean: 333_333, p50: 300_000, p90: 400_000, p99: 900_000, p999: 950_000 };
        assert_eq!(row.latency, latency);
        assert!(sanity::broken(&row).is_empty());
        let none = parse(REPORT.as_bytes(), Cell::SEQUENTIAL_WRITE).unwrap();
        assert_eq!((none.operations, none.latency), (0, Latency::default()));
    }

    #[test]
    fn what_is_missing_is_named() {
        for (text, part) in [
            ("fio: no such engine", "no JSON"),
            ("{", "no JSON"),
            ("{}", "jobs[0].error"),
            (&REPORT.replace("\"error\": 0", "\"error\": 28"), "No space left"),
            (&REPORT.replace("99.900000", "99.800000"), "read.lat_ns.percentile.99.900000"),
            (&REPORT.replace("bw_bytes", "bw"), "read.bw_bytes"),
        ] {
            let error = parse(text.as_bytes(), Cell::LONE_READ).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
        assert!(parse(REPORT.as_bytes(), Cell { reads: 50, ..Cell::KEY }).unwrap_err().contains("mixed."));
    }

    #[test]
    fn the_command_says_what_is_measured() {
        let fio = Fio { name: String::new(), engine: "io_uring", direct: true, huge: 40 << 20 };
        let window = Window { warm_up: Duration::from_millis(20), measured: Duration::from_millis(150), seed: 7 };
        let cell = Cell { order: Order::Random, reads: 70, size: 256 << 10, depth: 64 };
        let arguments = fio.arguments(&cell, Path::new("/a:b/f"), 1 << 30, window).join(" ");
        for part in [
            "--filename=/a\\:b/f --size=1073741824 --ioengine=io_uring --direct=1 --rw=randrw --bs=256k --iodepth=64",
            "--ramp_time=20ms --runtime=150ms",
            "--rwmixread=70 --unified_rw_reporting=mixed --iomem=mmaphuge",
        ] {
            assert!(arguments.contains(part), "{arguments}");
        }
        let large = Cell { size: 1 << 20, ..cell };
        let arguments = fio.arguments(&large, Path::new("f"), 1 << 30, window).join(" ");
        assert!(!arguments.contains("mmaphuge"), "more than there are huge pages");
        assert_eq!(quote("--filename=/a b/it's"), r"'--filename=/a b/it'\''s'");
    }

    #[test]
    fn a_program_that_fails_or_hangs_is_an_error_and_one_that_is_stopped_is_not() {
        let go = AtomicBool::new(false);
        let shell = |script: &str, limit, stop: &AtomicBool| {
            output_of(Command::new("sh").args(["-c", script]), Duration::from_millis(limit), stop)
        };
        assert_eq!(shell("printf '{}'", 60_000, &go).unwrap(), b"{}");
        let error = shell("echo 'no device' >&2; exit 3", 60_000, &go).unwrap_err().to_string();
        assert!(error.contains("no device"), "{error}");
        assert!(shell("exec sleep 600", 50, &go).unwrap_err().to_string().contains("in time"));
        assert!(shell("exec sleep 600", 60_000, &AtomicBool::new(true)).unwrap().is_empty());
    }
}
