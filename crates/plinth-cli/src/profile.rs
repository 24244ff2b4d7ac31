//! `--profile`: where the time and the bytes of a statement or an import went, and how far that was from what the machine can do.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use plinth_probe::DeviceProfile;
use plinth_profile::{Ceiling, Ceilings, Origin, Profile, Profiler, ProfilerOptions};

use crate::cli::{ProfileArgs, ProfileFormat};
use crate::error::{Failure, Result};
use crate::output::{Output, is_same_place};
use crate::{screen, units};

/// Extensions of files that hold rows: one with such a name is an input, or an output, that was named by mistake.
const ROWS: [&str; 13] =
    ["plinth", "parquet", "parq", "pq", "csv", "tsv", "ndjson", "jsonl", "arrows", "gz", "zst", "lz4", "bz2"];

/// Scopes of each thread that a trace keeps: 12 MB.
const SPANS: usize = 500_000;

/// How long to measure what no probe has.
const MEASURE: Duration = Duration::from_millis(400);

/// What is to be profiled, and how that is shown.
#[derive(Debug)]
pub(crate) struct Profiling {
    format: ProfileFormat,
    to: Option<PathBuf>,
    threads: usize,
    device: Option<DeviceProfile>,
}

impl ProfileArgs {
    /// An error if the file of the profile is another that the command has to do with, or one whose name says that it holds rows.
    pub(crate) fn check_place<'p>(&self, others: impl IntoIterator<Item = &'p Path>) -> Result {
        let Some(to) = &self.profile_to else { return Ok(()) };
        if others.into_iter().any(|other| is_same_place(to, other)) {
            let to = to.display();
            return Err(Failure::new(format!("--profile-to {to}: is a file of this command; name another")));
        }
        let extension = to.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        if ROWS.iter().any(|rows| extension.eq_ignore_ascii_case(rows)) {
            let to = to.display();
            return Err(Failure::new(format!(
                "--profile-to {to}: its name says that it holds rows, and a profile would take their place; end it in .json, .html or \
                 .txt"
            )));
        }
        Ok(())
    }

    /// What was asked for, if anything. `device` looks for what a probe found.
    pub(crate) fn profiling(
        &self,
        threads: usize,
        device: impl FnOnce() -> Result<Option<DeviceProfile>>,
    ) -> Result<Option<Profiling>> {
        if self.profile.is_none() && self.profile_to.is_none() {
            return Ok(None);
        }
        let by_name = |to: &PathBuf| match to.extension().and_then(|extension| extension.to_str()) {
            Some("json") => ProfileFormat::Json,
            Some("html" | "htm") => ProfileFormat::Html,
            _ => ProfileFormat::Text,
        };
        let format = self.profile.flatten().or(self.profile_to.as_ref().map(by_name)).unwrap_or(ProfileFormat::Text);
        Ok(Some(Profiling { format, to: self.profile_to.clone(), threads, device: device()? }))
    }
}

impl Profiling {
    /// Starts to record.
    pub(crate) fn start(&self, title: String) -> Profiler {
        let spans = if self.format == ProfileFormat::Trace { SPANS } else { 0 };
        Profiler::start(ProfilerOptions { title, threads: self.threads, spans, ..ProfilerOptions::default() })
    }

    /// Compares with what the machine can do, and shows.
    pub(crate) fn show(&self, mut profile: Profile) -> Result {
        profile.compare(&ceilings(self.device.as_ref(), self.threads));
        let text = match self.format {
            ProfileFormat::Text => profile.to_text(),
            ProfileFormat::Json => profile.to_json() + "\n",
            ProfileFormat::Html => profile.to_html(),
            ProfileFormat::Trace => profile.to_trace(),
        };
        match &self.to {
            Some(path) => {
                let mut out = Output::file(path)?;
                out.write_all(text.as_bytes())?;
                out.finish()
            }
            None => {
                // A closed standard error is no reason to fail.
                let _ = screen::stderr().write_all(text.as_bytes());
                Ok(())
            }
        }
    }
}

/// What a probe found; without one, what can be found out now.
fn ceilings(device: Option<&DeviceProfile>, threads: usize) -> Ceilings {
    let Some(device) = device else {
        let now = |speed: u64| Ceiling { per_second: units::to_f64(speed), by_thread: true, origin: Origin::Now };
        let decode = decode_speeds(MEASURE / 2).into_iter().map(|(name, speed)| (name, now(speed))).collect();
        let note =
            "measured now, in a moment; `plinth probe DIR` finds the device's, in the folder that is read or written";
        let here = Ceilings { decode, note: Some(note.to_owned()), ..Ceilings::default() };
        return here.or(&Ceilings::measure(threads, MEASURE / 2));
    };
    let shared = |speed: u64| (speed > 0).then(|| Ceiling::shared(units::to_f64(speed)));
    let by_thread = |speed: u64| (speed > 0).then(|| Ceiling::by_thread(units::to_f64(speed)));
    let decode = device.decode.iter().filter_map(|(name, speed)| Some((name.clone(), by_thread(*speed)?)));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let age = Duration::from_secs(now.saturating_sub(device.measured_at));
    let note = format!("plinth probe of {}, grade {}, {} ago", device.device, device.grade, units::duration(age));
    Ceilings {
        device_read: shared(device.read_bandwidth),
        device_write: shared(device.write_bandwidth),
        page_cache: by_thread(device.page_cache),
        memory: by_thread(device.memory_read),
        checksum: by_thread(device.checksum),
        decode: decode.collect(),
        note: Some(note),
    }
}

/// Encodings and the bytes of values that a thread decodes in a second, where that can be measured.
fn decode_speeds(time: Duration) -> Vec<(String, u64)> {
    #[cfg(target_os = "linux")]
    {
        let speeds = plinth_probe::decode_speeds(time).unwrap_or_default();
        speeds.iter().map(|speed| (speed.encoding.to_owned(), speed.rate())).collect()
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = time;
        Vec::new()
    }
}
