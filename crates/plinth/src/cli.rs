//! The arguments of the program.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::units::parse_bytes;

/// Columnar tables on SSD, answered with SQL.
#[derive(Debug, Parser)]
#[command(name = "plinth", version, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Turn Parquet files into a Plinth file
    Import(ImportArgs),
    /// Answer SQL over Plinth, Parquet, CSV and JSON files
    Sql(SqlArgs),
    /// Show where a Plinth file's bytes are
    Inspect(InspectArgs),
    /// Check every checksum of Plinth files and decode every block
    Verify(VerifyArgs),
    /// Try it: make sample data (or take yours) and compare with Parquet
    Demo(DemoArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// Parquet files, directories (searched recursively) or patterns
    #[arg(required = true, value_name = "INPUT")]
    pub(crate) inputs: Vec<PathBuf>,
    /// The file to write
    #[arg(long, value_name = "FILE.plinth")]
    pub(crate) to: PathBuf,
    /// Replace the output if it exists
    #[arg(long)]
    pub(crate) replace: bool,
    /// Import faster, into a larger file
    #[arg(long, conflicts_with = "compact")]
    pub(crate) fast: bool,
    /// Make the file smaller, at the cost of time
    #[arg(long)]
    pub(crate) compact: bool,
    /// Threads that decode and encode [default: all cores]
    #[arg(long, value_name = "N", value_parser = parse_threads)]
    pub(crate) threads: Option<usize>,
    /// Most memory for rows read ahead, such as 512MB or 2GiB [default: 64MiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub(crate) memory: Option<u64>,
    /// No progress bar and no summary
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// Read binary columns as text (they must be UTF-8)
    #[arg(long)]
    pub(crate) binary_as_text: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SqlArgs {
    /// Statements, separated by semicolons; may be given more than once
    #[arg(short, long, value_name = "SQL")]
    pub(crate) command: Vec<String>,
    /// A file of statements, run after those of -c (without either, statements are read from standard input)
    #[arg(short, long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// A folder whose files are tables named by their stems; CREATE TABLE ... AS SELECT writes into it
    #[arg(long, value_name = "DIR")]
    pub(crate) db: Option<PathBuf>,
    /// How to print rows [default: table on a terminal, csv elsewhere]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<Format>,
    /// Most memory for operators, such as 512MB or 2GiB [default: a quarter of the machine's]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub(crate) memory: Option<u64>,
    /// Threads [default: all cores]
    #[arg(long, value_name = "N", value_parser = parse_threads)]
    pub(crate) threads: Option<usize>,
    /// Run the last statement this often; rows are printed once
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) repeat: u32,
    /// Print the seconds of each run of the last statement as the last line on standard error
    #[arg(long, value_name = "FORMAT")]
    pub(crate) timings: Option<Timings>,
}

/// How rows are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Aligned columns, at most 10,000 rows
    Table,
    /// A header line, then a line a row; NULL is empty
    Csv,
    /// One object a line
    Json,
}

/// How timings are printed.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Timings {
    /// {"seconds": [...]}
    Json,
}

#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    /// The file
    pub(crate) file: PathBuf,
    /// Print everything as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// The files
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Threads [default: all cores]
    #[arg(long, value_name = "N", value_parser = parse_threads)]
    pub(crate) threads: Option<usize>,
}

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Your own Parquet files or directories; without any, TPC-H 0.1 and an event log are made
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Where to put the data
    #[arg(long, value_name = "DIR", default_value = "demo-data")]
    pub(crate) dir: PathBuf,
    /// Threads [default: all cores]
    #[arg(long, value_name = "N", value_parser = parse_threads)]
    pub(crate) threads: Option<usize>,
}

fn parse_threads(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(n @ 1..=1024) => Ok(n),
        _ => Err("a number from 1 to 1024 is expected".to_owned()),
    }
}
