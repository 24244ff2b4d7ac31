//! The arguments of the program.

mod entry;
mod io;
mod limits;
mod profile;
mod serve;
mod values;
mod worker;

use std::path::PathBuf;

use clap::builder::{PathBufValueParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use plinth_core::text::nearest;
use plinth_format::Access;
use plinth_format::sort::SortKey;
use plinth_ingest::{Mark, Sample};
use plinth_sql::{parse_character, parse_mark, parse_sample};

use crate::units::parse_bytes;
pub(crate) use io::{IoArgs, device_of};
pub(crate) use limits::{LimitArgs, ThreadArgs};
pub(crate) use profile::{ProfileArgs, ProfileFormat};
pub(crate) use serve::ServeArgs;
use values::{check_folder, parse_param, parse_path, parse_sort_key};
pub(crate) use worker::{ClusterArgs, WorkerArgs};

/// Columnar tables on SSD, answered with SQL.
#[derive(Debug, Parser)]
#[command(name = "plinth", version, args_conflicts_with_subcommands = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    sql: SqlArgs,
}

impl Cli {
    /// What is to be done: without a command, SQL.
    ///
    /// # Errors
    /// If the first word is neither a command nor a file.
    pub(crate) fn command(self) -> Result<Command, String> {
        if let Some(command) = self.command {
            return Ok(command);
        }
        let is_word = |path: &&PathBuf| path.to_str().is_some_and(|name| !name.contains(['/', '.', '*', '?', '[']));
        match self.sql.files.first().filter(is_word).filter(|path| !path.exists()) {
            None => Ok(Command::Sql(self.sql)),
            Some(word) => Err(no_command(&word.display().to_string())),
        }
    }
}

/// What is said of a word that is no command.
fn no_command(word: &str) -> String {
    let commands = Cli::command_names();
    match nearest(word, commands.iter().map(String::as_str)) {
        Some(command) => format!("{word}: no such command and no such file; is {command} meant?"),
        None => format!("{word}: no such command and no such file; plinth --help lists the commands"),
    }
}

impl Cli {
    /// All commands by all of their names.
    fn command_names() -> Vec<String> {
        let cli = <Self as clap::CommandFactory>::command();
        let names = |command: &clap::Command| {
            std::iter::once(command.get_name()).chain(command.get_all_aliases()).map(str::to_owned).collect::<Vec<_>>()
        };
        cli.get_subcommands().flat_map(names).collect()
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Import Parquet, CSV and JSON files into a Plinth file
    Import(Box<ImportArgs>),
    /// Export a Plinth table, or foreign files, to Parquet, CSV, TSV or NDJSON
    #[command(visible_alias = "convert")]
    Export(Box<ExportArgs>),
    /// Run SQL over Plinth, Parquet, CSV and JSON files
    Sql(SqlArgs),
    /// Make writable tables
    #[command(subcommand)]
    Table(TableCommand),
    /// Show the columns, encodings and bytes of a Plinth file, or the parts of a writable table
    Inspect(InspectArgs),
    /// Serve the tables of a folder to clients elsewhere: Arrow Flight SQL, and a page that shows what runs
    Serve(Box<ServeArgs>),
    /// Run parts of queries for processes elsewhere, which name this one with --workers
    Worker(Box<WorkerArgs>),
    /// Find values of a column in a Plinth file, and the rows that hold them
    Lookup(LookupArgs),
    /// Check every checksum of Plinth files and writable tables, and decode every block
    Verify(VerifyArgs),
    /// Merge the files of a table's folder into fewer, larger ones
    Compact(CompactArgs),
    /// Measure the device under a folder, and write a profile that readers use
    Probe(ProbeArgs),
    /// Compare sample data, or your own, with Parquet: sizes and times
    Demo(DemoArgs),
}

impl Command {
    /// The memory it may use, where that was said.
    pub(crate) fn memory(&self) -> Option<u64> {
        match self {
            Self::Import(args) => args.limits.given_memory(),
            Self::Export(args) => args.limits.given_memory(),
            Self::Sql(args) => args.limits.given_memory(),
            Self::Compact(args) => args.limits.given_memory(),
            Self::Serve(args) => args.limits.given_memory(),
            Self::Worker(args) => args.limits.given_memory(),
            Self::Table(TableCommand::Init(args)) => args.limits.given_memory(),
            _ => None,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// Parquet, CSV, TSV or JSON files (.gz, .zst, .lz4 or .bz2 as well), directories (searched recursively), patterns,
    /// or - for standard input
    #[arg(required = true, value_name = "INPUT")]
    pub(crate) inputs: Vec<PathBuf>,
    /// Output file
    #[arg(long, short = 'o', visible_alias = "output", value_name = "FILE.plinth", required_unless_present = "append")]
    pub(crate) to: Option<PathBuf>,
    /// Folder of Plinth files (one table) to add a file to
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["to", "replace"])]
    pub(crate) append: Option<PathBuf>,
    /// Replace the output if it exists
    #[arg(long)]
    pub(crate) replace: bool,
    /// Columns to sort by; COLUMN:desc for descending order
    #[arg(long, value_name = "COLUMN,...", value_delimiter = ',', value_parser = parse_sort_key)]
    pub(crate) sort_by: Vec<SortKey>,
    /// Columns to index, for searching: each gets postings, the rows of each of its values
    #[arg(long, value_name = "COLUMN,...", value_delimiter = ',')]
    pub(crate) index: Vec<String>,
    /// Columns of JSON rows and the paths to their values, such as id,name=$.user.name,city=user.address.city [default: the keys]
    #[arg(long, value_name = "NAME=PATH,...", value_delimiter = ',', value_parser = parse_path)]
    pub(crate) columns: Vec<(String, String)>,
    /// No encoding: nothing to decode on reads, in a file as large as the values in memory
    #[arg(long, conflicts_with_all = ["fast", "compact"])]
    pub(crate) plain: bool,
    /// Faster import, larger file
    #[arg(long, conflicts_with = "compact")]
    pub(crate) fast: bool,
    /// Smaller file, slower import
    #[arg(long)]
    pub(crate) compact: bool,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
    /// No progress bar and no summary
    #[arg(long, short)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) profile: ProfileArgs,
    #[command(flatten)]
    pub(crate) source: SourceArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// Plinth files, or a folder of them; or files that import reads, or - for standard input
    #[arg(required = true, value_name = "INPUT")]
    pub(crate) inputs: Vec<PathBuf>,
    /// Output file; its extension chooses the format and, for text, a compression (events.csv.gz); - for standard output
    #[arg(long, short = 'o', visible_alias = "output", value_name = "FILE")]
    pub(crate) to: PathBuf,
    /// Output format, whatever the extension
    #[arg(long, value_name = "FORMAT")]
    pub(crate) to_format: Option<ForeignFormat>,
    /// Columns to write [default: all]
    #[arg(long, value_name = "COLUMN,...", value_delimiter = ',')]
    pub(crate) columns: Vec<String>,
    /// Replace the output if it exists
    #[arg(long)]
    pub(crate) replace: bool,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
    /// No progress bar and no summary
    #[arg(long, short)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) source: SourceArgs,
}

/// Options of foreign files.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Input options")]
pub(crate) struct SourceArgs {
    /// Input format, whatever the extensions
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<ForeignFormat>,
    /// Columns and types as in CREATE TABLE, such as "id BIGINT, name TEXT", or a file with them [default: inferred]
    #[arg(long, value_name = "COLUMNS")]
    pub(crate) schema: Option<String>,
    /// Skip columns of the input that --schema lacks
    #[arg(long, requires = "schema")]
    pub(crate) ignore_extra: bool,
    /// Columns of the files alone: names of folders such as year=2024 are no columns
    #[arg(long)]
    pub(crate) no_hive: bool,
    /// Rows to infer types from, or "all" [default: 20000]
    #[arg(long, value_name = "ROWS", value_parser = parse_sample)]
    pub(crate) sample: Option<Sample>,
    /// Path to the array of rows in a JSON document, such as data.rows, $.data.rows[*] or /data/rows
    #[arg(long, value_name = "PATH")]
    pub(crate) root: Option<String>,
    /// Handling of JSON keys that the columns lack [default: error, after a second look at all rows]
    #[arg(long, value_name = "WHAT", conflicts_with = "ignore_extra")]
    pub(crate) unknown: Option<UnknownKeys>,
    /// Largest record of text, such as 64MB
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub(crate) max_record: Option<u64>,
    /// Delimiter of CSV fields [default: detected from the file]
    #[arg(long, value_name = "CHARACTER", value_parser = parse_character)]
    pub(crate) delimiter: Option<u8>,
    /// Quote character of CSV, or "none" [default: detected from the file]
    #[arg(long, value_name = "CHARACTER", value_parser = parse_mark)]
    pub(crate) quote: Option<Mark>,
    /// Escape character of CSV, beside a doubled quote, or "none" [default: detected from the file]
    #[arg(long, value_name = "CHARACTER", value_parser = parse_mark)]
    pub(crate) escape: Option<Mark>,
    /// Column names in the first line of CSV [default: detected from the file]
    #[arg(long, conflicts_with = "no_header")]
    pub(crate) header: bool,
    /// No column names in the first line of CSV
    #[arg(long)]
    pub(crate) no_header: bool,
    /// Thousands separator of CSV numbers [default: none]
    #[arg(long, value_name = "CHARACTER", value_parser = parse_character)]
    pub(crate) thousands: Option<u8>,
    /// Decimal separator of CSV numbers [default: .]
    #[arg(long, value_name = "CHARACTER", value_parser = parse_character)]
    pub(crate) decimal: Option<u8>,
    /// CSV field that stands for NULL, such as NA; may be given more than once [default: the empty field]
    #[arg(long, value_name = "TEXT")]
    pub(crate) null: Vec<String>,
    /// File for bad records, which are left out of the import
    #[arg(long, value_name = "FILE.ndjson")]
    pub(crate) rejects: Option<PathBuf>,
    /// Handling of bad records [default: skip with --rejects, else fail]
    #[arg(long, value_name = "WHAT")]
    pub(crate) on_error: Option<OnError>,
    /// Limit of bad records; more are an error [default: none]
    #[arg(long, value_name = "N", requires = "rejects")]
    pub(crate) max_rejects: Option<u64>,
    /// Binary columns of Parquet as text (they must be UTF-8)
    #[arg(long)]
    pub(crate) binary_as_text: bool,
}

/// Handling of keys that the columns lack.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum UnknownKeys {
    /// Such a record is a bad record
    Error,
    /// Such keys are skipped, and counted at the end
    Report,
    /// Such keys are kept as JSON in a column _extra
    Extra,
}

/// Handling of bad records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnError {
    /// The first bad record ends the import
    Fail,
    /// Bad records are left out and written to the file of --rejects
    Skip,
    /// Values that do not fit the types of --schema become NULL; broken records are left out as with skip, or end the import without --rejects
    Null,
}

/// A foreign file format.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ForeignFormat {
    Parquet,
    Csv,
    Tsv,
    #[value(alias = "json", alias = "jsonl")]
    Ndjson,
}

#[derive(Debug, Args)]
pub(crate) struct SqlArgs {
    /// Files, and folders of Plinth files, that are tables named by their stems
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Statements, separated by semicolons; may be given more than once
    #[arg(short, long, value_name = "SQL")]
    pub(crate) command: Vec<String>,
    /// File of statements, run after those of -c (without either: a shell on a terminal, else statements on standard input)
    #[arg(short, long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Folder whose files are tables named by their stems; CREATE TABLE writes into it; a new one is made
    #[arg(long, value_name = "DIR", value_parser = PathBufValueParser::new().try_map(check_folder))]
    pub(crate) db: Option<PathBuf>,
    /// Output format [default: by the extension of the output file, else table on a terminal, csv elsewhere]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<Format>,
    /// Output file, which is there once it is complete
    #[arg(long, short, visible_alias = "to", value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Replace the output if it exists
    #[arg(long, requires = "output")]
    pub(crate) replace: bool,
    /// Value of a parameter: 1=42 for $1, name=text for $name; may be given more than once
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_param)]
    pub(crate) param: Vec<(String, String)>,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
    #[command(flatten)]
    pub(crate) io: IoArgs,
    /// Access path to rows by values of columns with postings
    #[arg(long, value_name = "HOW", default_value = "auto")]
    pub(crate) access: HowFound,
    /// Number of runs of the last statement; rows are printed once
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) repeat: u32,
    /// Seconds of each run of the last statement, and of its planning, as the last line on standard error
    #[arg(long, value_name = "FORMAT")]
    pub(crate) timings: Option<Timings>,
    #[command(flatten)]
    pub(crate) profile: ProfileArgs,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
}

/// Output formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Aligned columns; of many rows the first (and, on a terminal, the last)
    Table,
    /// A header line, then a line a row; NULL is empty, empty text is ""
    Csv,
    /// As csv, with tabs
    Tsv,
    /// One object a line
    #[value(alias = "ndjson", alias = "jsonl")]
    Json,
    /// A table in Markdown
    Markdown,
    /// A Parquet file of one result
    Parquet,
    /// A stream of one result in Arrow's IPC format
    Arrow,
}

/// Formats of timings.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Timings {
    /// {"seconds": [...], "planning": [...]}
    Json,
}

#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    /// File, or folder of a table
    pub(crate) file: PathBuf,
    /// Output as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("question").required(true))]
pub(crate) struct LookupArgs {
    /// File
    pub(crate) file: PathBuf,
    /// Column; a field of a struct by its names, with dots between
    pub(crate) column: String,
    /// Value to find
    #[arg(long, value_name = "VALUE", group = "question", allow_hyphen_values = true)]
    pub(crate) equals: Option<String>,
    /// Prefix of the values to find
    #[arg(long, value_name = "TEXT", group = "question", allow_hyphen_values = true)]
    pub(crate) prefix: Option<String>,
    /// Regular expression to find within values
    #[arg(long, value_name = "REGEX", group = "question", allow_hyphen_values = true)]
    pub(crate) matches: Option<String>,
    /// Print the numbers of the rows, from 0; with --values their values, too
    #[arg(long)]
    pub(crate) rows: bool,
    /// Print the numbers of matching values and of their rows (the default)
    #[arg(long, conflicts_with_all = ["rows", "values"])]
    pub(crate) count: bool,
    /// Print the matching values
    #[arg(long)]
    pub(crate) values: bool,
    /// Access path to rows
    #[arg(long, value_name = "HOW", default_value = "auto")]
    pub(crate) access: HowFound,
    /// Output format [default: by the extension of the output file, else table on a terminal, csv elsewhere]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<Format>,
    /// Output file, which is there once it is complete
    #[arg(long, short, visible_alias = "to", value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Replace the output if it exists
    #[arg(long, requires = "output")]
    pub(crate) replace: bool,
}

/// Access paths to rows that hold some values.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum HowFound {
    /// The one that costs less
    Auto,
    /// A test of all rows, without postings
    Scan,
    /// The column's postings
    Postings,
}

impl From<HowFound> for Access {
    fn from(how: HowFound) -> Self {
        match how {
            HowFound::Auto => Self::Auto,
            HowFound::Scan => Self::Scan,
            HowFound::Postings => Self::Postings,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// Files, or folders of tables
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Compare what files say of their values with these, as FORMAT.md wants it: for files that another program wrote
    #[arg(long)]
    pub(crate) format: bool,
    #[command(flatten)]
    pub(crate) threads: ThreadArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TableCommand {
    /// Turn a folder of Plinth files into a writable table
    Init(InitArgs),
}

#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// Folder of Plinth files
    pub(crate) folder: PathBuf,
    /// Columns of the primary key [default: no key]
    #[arg(long, value_name = "COLUMN,...", value_delimiter = ',')]
    pub(crate) key: Vec<String>,
    /// Columns to sort rows by, of a table without a key
    #[arg(long, value_name = "COLUMN,...", value_delimiter = ',', conflicts_with = "key")]
    pub(crate) cluster: Vec<String>,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
    /// No progress bar and no summary
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CompactArgs {
    /// Folder of Plinth files
    pub(crate) folder: PathBuf,
    /// Target size of files, such as 256MB or 4GiB; files of at least half the size are left as they are [default: 1GiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes, conflicts_with = "all")]
    pub(crate) target_size: Option<u64>,
    /// One file of all, however large
    #[arg(long)]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
    /// No progress bar and no summary
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ProbeArgs {
    /// Folder on the device; a file is filled in it, measured, and removed. Or an object store: s3://bucket/prefix, of which
    /// objects are read
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
    /// Seconds to measure [default: 20; of a store at most 60]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=3_600), conflicts_with = "full")]
    pub(crate) seconds: Option<u64>,
    /// All combinations: three minutes, a file of 2 GiB
    #[arg(long)]
    pub(crate) full: bool,
    /// Program that issues the requests
    #[arg(long, value_name = "ENGINE", default_value = "auto")]
    pub(crate) engine: ProbeEngine,
    /// Size of the measured file, such as 256MiB [default: 512MiB, 128MiB below ten seconds]; of a store the most bytes that
    /// are read [default: 160MiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub(crate) size: Option<u64>,
    /// JSON output file; - for standard output, in the place of the report
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// CSV output file, a line for each measurement; - for standard output, in the place of the report
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,
    /// HTML output file with heat maps and curves, complete in itself
    #[arg(long, value_name = "FILE.html")]
    pub(crate) plot: Option<PathBuf>,
    /// Output file of the profile [default: DIR/plinth-device.toml]
    #[arg(long, value_name = "FILE.toml")]
    pub(crate) profile: Option<PathBuf>,
    /// No progress bar
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// Programs that issue the requests of a probe.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ProbeEngine {
    /// fio if it is installed and there are five seconds, else uring, else direct
    Auto,
    /// fio
    Fio,
    /// Plinth's io_uring, past the page cache
    Uring,
    /// Threads that read and write, past the page cache
    Direct,
    /// Threads that read and write, through the page cache
    Cached,
}

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Parquet files or directories to compare [default: TPC-H 0.1 and an event log, which are made]
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Folder for the data
    #[arg(long, value_name = "DIR", default_value = "demo-data")]
    pub(crate) dir: PathBuf,
    #[command(flatten)]
    pub(crate) threads: ThreadArgs,
}
