//! `plinth demo`: the same data as Parquet and as Plinth, the same queries over both, side by side.

mod compare;
mod events;
mod own;
mod sample;

use std::io::Write;
use std::path::{Path, PathBuf};

use plinth_encoding::Effort;
use plinth_ingest::{SourceOptions, inputs};
use plinth_profile::Profiler;
use plinth_sql::Session;

use crate::cli::DemoArgs;
use crate::error::{Failure, Result};
use crate::import::{Job, Target};
use crate::session::{self, block_on};
use crate::table::{Align, Table};
use crate::{interrupt, machine, screen, units};
use compare::{Comparison, Query, compare};

/// A table in both formats.
struct Pair {
    name: String,
    parquet: Vec<PathBuf>,
    plinth: PathBuf,
    rows: u64,
    parquet_bytes: u64,
    plinth_bytes: u64,
}

/// Runs the command.
pub(crate) fn run(args: &DemoArgs) -> Result {
    interrupt::listen()?;
    let threads = args.threads.threads();
    let plinth_dir = args.dir.join("plinth");
    create_dir(&plinth_dir)?;
    let sample = args.paths.is_empty();
    let inputs = if sample {
        let parquet_dir = args.dir.join("parquet");
        create_dir(&parquet_dir)?;
        say(&format!("making TPC-H 0.1 and an event log in {}", parquet_dir.display()));
        sample::generate(&parquet_dir)?
    } else {
        own::inputs(&args.paths)?
    };
    say(&format!("importing into {}", plinth_dir.display()));
    let mut pairs = Vec::with_capacity(inputs.len());
    for (name, files) in inputs {
        pairs.push(import(name, files, &plinth_dir, threads)?);
    }
    let queries = if sample { sample::queries() } else { own::queries(&pairs)? };
    say(&format!("running {} queries over both: answers compared, then timed", queries.len()));
    let options = session::options(machine::default_memory(), threads);
    let comparisons = block_on(threads, async {
        let (parquet, plinth) = (Session::new(&options)?, Session::new(&options)?);
        // Compared is what DataFusion makes of Parquet, not what our scan does.
        parquet.context().sql("SET plinth.parquet_scan = 'datafusion'").await?;
        for pair in &pairs {
            parquet.register_parquet(&pair.name, &pair.parquet).await?;
            plinth.register_plinth(&pair.name, pair.plinth.clone())?;
        }
        let mut comparisons = Vec::with_capacity(queries.len());
        for query in queries {
            comparisons.push(compare(query, &parquet, &plinth).await?);
        }
        Ok(comparisons)
    })?;
    let mut out = screen::stdout();
    for line in report(&pairs, &comparisons, threads, sample, &args.dir) {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

fn say(line: &str) {
    screen::say(line);
}

fn create_dir(path: &Path) -> Result {
    std::fs::create_dir_all(path)
        .map_err(|e| Failure::new(format!("{}: can't make the directory: {e}", path.display())))
}

fn import(name: String, files: Vec<PathBuf>, folder: &Path, threads: usize) -> Result<Pair> {
    let plinth = folder.join(format!("{name}.plinth"));
    let parquet = inputs::expand(&files)?;
    let job = Job {
        inputs: parquet.clone(),
        source: SourceOptions::default(),
        target: Target::File { path: plinth.clone(), replace: true },
        effort: Effort::Balanced,
        threads,
        memory: machine::default_memory(),
        sort_by: Vec::new(),
        index: Vec::new(),
        quiet: false,
        profiler: Profiler::off(),
    };
    let report = job.run()?;
    Ok(Pair {
        name,
        parquet,
        plinth,
        rows: report.rows,
        parquet_bytes: report.input_bytes,
        plinth_bytes: report.output_bytes,
    })
}

fn report(pairs: &[Pair], comparisons: &[Comparison], threads: usize, sample: bool, dir: &Path) -> Vec<String> {
    let ratio = |a: u64, b: u64| units::ratio(units::to_f64(a), units::to_f64(b));
    let mut sizes = Table::new(&[
        ("size", Align::Left),
        ("rows", Align::Right),
        ("Parquet", Align::Right),
        ("Plinth", Align::Right),
        ("smaller", Align::Right),
    ]);
    for pair in pairs {
        sizes.row(vec![
            pair.name.clone(),
            units::count(pair.rows),
            units::bytes(pair.parquet_bytes),
            units::bytes(pair.plinth_bytes),
            ratio(pair.parquet_bytes, pair.plinth_bytes),
        ]);
    }
    let sum = |part: fn(&Pair) -> u64| pairs.iter().map(part).sum::<u64>();
    let (parquet, plinth) = (sum(|p| p.parquet_bytes), sum(|p| p.plinth_bytes));
    if pairs.len() > 1 {
        sizes.row(vec![
            "all".to_owned(),
            units::count(sum(|p| p.rows)),
            units::bytes(parquet),
            units::bytes(plinth),
            ratio(parquet, plinth),
        ]);
    }
    let mut times = Table::new(&[
        ("time", Align::Left),
        ("rows", Align::Right),
        ("Parquet", Align::Right),
        ("Plinth", Align::Right),
        ("faster", Align::Right),
    ]);
    for c in comparisons {
        times.row(vec![
            c.title.clone(),
            units::count(c.rows),
            units::duration(c.parquet),
            units::duration(c.plinth),
            units::ratio(c.parquet.as_secs_f64(), c.plinth.as_secs_f64()),
        ]);
    }
    let logs = comparisons.iter().map(|c| (c.parquet.as_secs_f64() / c.plinth.as_secs_f64().max(1e-9)).ln());
    let mean = (logs.sum::<f64>() / units::to_f64(comparisons.len().max(1) as u64)).exp();
    times.row(vec!["geometric mean".into(), String::new(), String::new(), String::new(), units::ratio(mean, 1.0)]);

    let mut lines = vec![String::new()];
    lines.extend(sizes.lines());
    lines.push(String::new());
    lines.extend(times.lines());
    lines.push(String::new());
    let made = if sample { "zstd level 3" } else { "as given" };
    lines.push(format!(
        "Parquet ({made}) is read by DataFusion 55 with its defaults, in the same process, {threads} threads."
    ));
    let how = if compare::RUNS == 1 {
        "those of one warm run".to_owned()
    } else {
        format!("medians of {} warm runs, taken in turn", compare::RUNS)
    };
    lines.push(format!("Times are {how}. Every answer was compared: all are equal."));
    if cfg!(debug_assertions) {
        lines.push("This is a build without optimisation: its times mean nothing. Use cargo run --release.".to_owned());
    }
    lines.push(String::new());
    lines.push("Next:".to_owned());
    lines.extend(next_steps(pairs, sample, dir).into_iter().map(|line| format!("  {line}")));
    lines
}

fn next_steps(pairs: &[Pair], sample: bool, dir: &Path) -> Vec<String> {
    let program = std::env::args().next().unwrap_or_else(|| "plinth".to_owned());
    let db = dir.join("plinth");
    let mut lines = Vec::new();
    if sample {
        lines.push(format!(
            "{program} sql --db {} -c \"SELECT country, count(*) FROM events GROUP BY country\"",
            shell(&db)
        ));
    } else if let Some(pair) = pairs.first() {
        lines.push(format!("{program} sql --db {} -c 'SELECT * FROM \"{}\" LIMIT 10'", shell(&db), pair.name));
    }
    if let Some(pair) = pairs.iter().max_by_key(|pair| pair.plinth_bytes) {
        lines.push(format!("{program} inspect {}", shell(&pair.plinth)));
    }
    if sample {
        lines.push(format!("{program} demo YOUR.parquet"));
    }
    lines.push(format!("{program} import YOUR.parquet --to your.plinth"));
    lines
}

/// A path as a shell takes it.
fn shell(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = text.chars().all(|c| c.is_alphanumeric() || "/._-+:,@%".contains(c));
    if plain { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}
