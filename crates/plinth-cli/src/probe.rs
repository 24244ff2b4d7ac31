//! `plinth probe`: what can the device under a folder, or an object store, do, and how far is that to be trusted?

mod report;
mod store;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use plinth_io::IoError;
use plinth_io::objects::is_url;
use plinth_probe::{Engine, Findings, PROFILE_NAME, Plan};

use crate::cli::{ProbeArgs, ProbeEngine};
use crate::error::{Failure, Result};
use crate::output::Output;
use crate::progress::Progress;
use crate::{interrupt, screen};

/// What a probe takes unless told otherwise.
const SECONDS: u64 = 20;
const FULL_SECONDS: u64 = 180;
/// The least that every size and depth fits into.
const SMALLEST: u64 = 16 << 20;

/// Runs the command.
pub(crate) fn run(args: &ProbeArgs) -> Result {
    let outputs = [&args.json, &args.csv, &args.plot, &args.profile];
    if outputs.into_iter().flatten().filter(|path| path.as_os_str() == "-").count() > 1 {
        return Err(Failure::new("only one of --json, --csv, --plot and --profile can go to standard output"));
    }
    if let Some(url) = args.folder.to_str().filter(|url| is_url(url)) {
        return store::run(args, url);
    }
    let seconds = if args.full { FULL_SECONDS } else { args.seconds.unwrap_or(SECONDS) };
    let bytes = args.size.unwrap_or(match seconds {
        _ if args.full => 2 << 30,
        0..10 => 128 << 20,
        _ => 512 << 20,
    });
    if bytes < SMALLEST {
        return Err(Failure::new(format!("--size: at least {} MiB are needed", SMALLEST >> 20)));
    }
    let folder = args.folder.clone();
    plinth_sql::expect_folder(&folder).map_err(|e| Failure::new(format!("{e}; name a folder on the device")))?;
    interrupt::listen()?;
    interrupt::writes_into(folder.clone());
    // Opened first: what can't be written is known before anything is measured.
    let path = args.profile.clone().unwrap_or_else(|| folder.join(PROFILE_NAME));
    let profile = open(&path)?;
    let open = |path: &Option<PathBuf>| path.as_deref().map(open).transpose();
    let (json, csv, plot) = (open(&args.json)?, open(&args.csv)?, open(&args.plot)?);

    let findings = measure(args, folder, bytes, Duration::from_secs(seconds))?;
    let speeds = findings.decode.iter().map(|speed| (speed.encoding.to_owned(), speed.rate())).collect();
    let report = &findings.report;
    let quiet = [&profile].into_iter().chain(&json).chain(&csv).chain(&plot).any(Output::is_stdout);
    write(profile, &report.profile(speeds).to_toml())?;
    let json = json.map(|output| write(output, &findings.to_json()));
    let csv = csv.map(|output| write(output, &findings.to_csv()));
    let plot = plot.map(|output| write(output, &findings.to_html()));
    [json, csv, plot].into_iter().flatten().collect::<Result>()?;
    if !quiet {
        let mut out = std::io::BufWriter::new(screen::stdout());
        for line in report::lines(&findings, &path) {
            writeln!(out, "{line}")?;
        }
        out.flush()?;
    }
    Ok(())
}

fn measure(args: &ProbeArgs, folder: PathBuf, bytes: u64, time: Duration) -> Result<Findings> {
    let progress = Progress::new(1_000, args.quiet);
    progress.step(0.0, "decoding");
    let decode = plinth_probe::decode_speeds(time.mul_f64(0.04).min(Duration::from_secs(2))).map_err(Failure::new)?;
    interrupt::check()?;
    let left = time.saturating_sub(progress.elapsed());
    let plan = Plan { folder: folder.clone(), engine: args.engine.into(), bytes, time: left };
    let report = plinth_probe::run(&plan, &interrupt::flag(), &|what, share| progress.step(share, what));
    let report = report.map_err(|e| match e {
        IoError::Os { source, .. } if source.kind() == std::io::ErrorKind::Interrupted => Failure::Interrupted,
        e => Failure::new(e),
    })?;
    Ok(Findings { folder, report, decode })
}

fn open(path: &Path) -> Result<Output> {
    if path.as_os_str() == "-" { Ok(Output::stdout()) } else { Output::file(path) }
}

fn write(mut output: Output, text: &str) -> Result {
    output.write_all(text.as_bytes())?;
    output.finish()
}

impl From<ProbeEngine> for Engine {
    fn from(engine: ProbeEngine) -> Self {
        match engine {
            ProbeEngine::Auto => Self::Auto,
            ProbeEngine::Fio => Self::Fio,
            ProbeEngine::Uring => Self::Uring,
            ProbeEngine::Direct => Self::Direct,
            ProbeEngine::Cached => Self::Cached,
        }
    }
}
