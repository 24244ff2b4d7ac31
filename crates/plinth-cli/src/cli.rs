//! The arguments of the program.

mod values;

use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand, ValueEnum};
use plinth_io::probe::{DeviceProfile, PROFILE_NAME, ProfileError};
use plinth_io::{IoMode, IoOptions};

use plinth_format::Access;
use plinth_format::sort::SortKey;
use plinth_ingest::{Mark, Sample};
use plinth_sql::{parse_character, parse_mark, parse_sample};

use crate::profile::ProfileArgs;
use crate::units::parse_bytes;
use values::{parse_param, parse_path, parse_sort_key, parse_threads};

/// Columnar tables on SSD, answered with SQL.
#[derive(Debug, Parser)]
#[command(name = "plinth", version, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Turn Parquet, CSV and JSON files into a Plinth file
    Import(Box<ImportArgs>),
    /// Write a Plinth table, or foreign files, as Parquet, CSV, TSV or NDJSON
    #[command(visible_alias = "convert")]
    Export(Box<ExportArgs>),
    /// Answer SQL over Plinth, Parquet, CSV and JSON files
    Sql(SqlArgs),
    /// Make tables that can be written to
    #[command(subcommand)]
    Table(TableCommand),
    /// Show where a Plinth file's bytes are, or what a writable table consists of
    Inspect(InspectArgs),
    /// Find values of a column in a Plinth file, and the rows that hold them
    Lookup(LookupArgs),
    /// Check every checksum of Plinth files and writable tables, and decode every block
    Verify(VerifyArgs),
    /// Rewrite the many files of a table's folder as fewer, larger ones
    Compact(CompactArgs),
    /// Measure what the device under a folder can do, and write a profile that readers use
    Probe(ProbeArgs),
    /// Try it: make sample data (or take yours) and compare with Parquet
    Demo(DemoArgs),
}

impl Command {
    /// The memory it may use, where that was said.
    pub(crate) fn memory(&self) -> Option<u64> {
        match self {
            Self::Import(args) => args.memory,
            Self::Export(args) => args.memory,
            Self::Sql(args) => args.memory,
            Self::Compact(args) => args.memory,
            Self::Table(TableCommand::Init(args)) => args.memory,
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
    /// The file to write
    #[arg(long, value_name = "FILE.plinth", required_unless_present = "append")]
    pub(crate) to: Option<PathBuf>,
    /// A folder of Plinth files, which is one table, to add a file to
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["to", "replace"])]
    pub(crate) append: Option<PathBuf>,
    /// Replace the output if it exists
    #[arg(long)]
    pub(crate) replace: bool,
    /// Sort the rows by these columns; COLUMN:desc from the largest value to the smallest
    #[arg(long, value_name = "COLUMN,...", value_delimiter = ',', value_parser = parse_sort_key)]
    pub(crate) sort_by: Vec<SortKey>,
    /// Columns whose values are to lead to their rows at once: each gets a list of rows for each of its values
    #[arg(long, value_name = "COLUMN,...", value_delimiter = ',')]
    pub(crate) index: Vec<String>,
    /// The columns of JSON rows and the paths to their values, such as id,name=$.user.name,city=user.address.city [default: the keys]
    #[arg(long, value_name = "NAME=PATH,...", value_delimiter = ',', value_parser = parse_path)]
    pub(crate) columns: Vec<(String, String)>,
    /// Values as they are: nothing to decode when they are read, in a file as large as memory
    #[arg(long, conflicts_with_all = ["fast", "compact"])]
    pub(crate) plain: bool,
    /// Import faster, into a larger file
    #[arg(long, conflicts_with = "compact")]
    pub(crate) fast: bool,
    /// Make the file smaller, at the cost of time
    #[arg(long)]
    pub(crate) compact: bool,
    /// Threads that decode and encode [default: all cores]
    #[arg(long, value_name = "N", value_parser = parse_threads)]
    pub(crate) threads: Option<usize>,
    /// Most memory, such as 512MB or 2GiB [default: a quarter of the machine's]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub(crate) memory: Option<u64>,
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
    /// The file to write, whose name says the format and, for text, a compression (events.csv.gz); - for standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) to: PathBuf,
    /// The format, whatever the name of the file
    #[arg(long, value_name = "FORMAT")]
    pub(crate) to_format: Option<ForeignFormat>,
    /// The columns to write [default: all]
    #[arg(long, value_name = "COLUMN,...", value_delimiter = ',')]
    pub(crate) columns: Vec<String>,
    /// Replace the output if it exists
    #[arg(long)]
    pub(crate) replace: bool,
    /// Threads that read foreign files [default: all cores]
    #[arg(long, value_name = "N", value_parser = parse_threads)]
    pub(crate) threads: Option<usize>,
    /// Most memory, such as 512MB or 2GiB [default: a quarter of the machine's]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub(crate) memory: Option<u64>,
    /// No progress bar and no summary
    #[arg(long, short)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) source: SourceArgs,
}

/// How foreign files are read.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "How the input is read")]
pub(crate) struct SourceArgs {
    /// The format, whatever the names of the files
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<ForeignFormat>,
    /// The columns and their types as in CREATE TABLE, such as "id BIGINT, name TEXT", or a file that holds them
    #[arg(long, value_name = "COLUMNS")]
    pub(crate) schema: Option<String>,
    /// Pass over columns of the input that --schema lacks
    #[arg(long, requires = "schema")]
    pub(crate) ignore_extra: bool,
    /// Rows that types are inferred from, or "all" [default: 20000]
    #[arg(long, value_name = "ROWS", value_parser = parse_sample)]
    pub(crate) sample: Option<Sample>,
    /// Where the rows are in a JSON document: the path to an array, such as data.rows, $.data.rows[*] or /data/rows
    #[arg(long, value_name = "PATH")]
    pub(crate) root: Option<String>,
    /// What becomes of keys of JSON that the columns lack [default: error, after a second look at all rows]
    #[arg(long, value_name = "WHAT", conflicts_with = "ignore_extra")]
    pub(crate) unknown: Option<UnknownKeys>,
    /// The most bytes a record of text may have, such as 64MB
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub(crate) max_record: Option<u64>,
    /// What separates the fields of CSV [default: told from the file]
    #[arg(long, value_name = "CHARACTER", value_parser = parse_character)]
    pub(crate) delimiter: Option<u8>,
    /// What encloses fields of CSV, or "none" [default: told from the file]
    #[arg(long, value_name = "CHARACTER", value_parser = parse_mark)]
    pub(crate) quote: Option<Mark>,
    /// What quotes within quotes come after, beside another quote, or "none" [default: told from the file]
    #[arg(long, value_name = "CHARACTER", value_parser = parse_mark)]
    pub(crate) escape: Option<Mark>,
    /// The first line of CSV holds the names [default: told from the file]
    #[arg(long, conflicts_with = "no_header")]
    pub(crate) header: bool,
    /// The first line of CSV holds no names
    #[arg(long)]
    pub(crate) no_header: bool,
    /// What stands between groups of three digits of the numbers of CSV
    #[arg(long, value_name = "CHARACTER", value_parser = parse_character)]
    pub(crate) thousands: Option<u8>,
    /// What the fractions of the numbers of CSV come after [default: .]
    #[arg(long, value_name = "CHARACTER", value_parser = parse_character)]
    pub(crate) decimal: Option<u8>,
    /// A field of CSV that stands for NULL, such as NA; may be given more than once [default: the empty field]
    #[arg(long, value_name = "TEXT")]
    pub(crate) null: Vec<String>,
    /// Leave out records that can't be read and write them to this file
    #[arg(long, value_name = "FILE.ndjson")]
    pub(crate) rejects: Option<PathBuf>,
    /// What becomes of text that does not fit [default: skip with --rejects, else fail]
    #[arg(long, value_name = "WHAT")]
    pub(crate) on_error: Option<OnError>,
    /// Stop at more bad records than this
    #[arg(long, value_name = "N", requires = "rejects")]
    pub(crate) max_rejects: Option<u64>,
    /// Read binary columns of Parquet as text (they must be UTF-8)
    #[arg(long)]
    pub(crate) binary_as_text: bool,
}

/// What becomes of keys that the columns lack.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum UnknownKeys {
    /// The record is a bad one
    Error,
    /// Passed over, and counted at the end
    Report,
    /// Kept as JSON in a column _extra
    Extra,
}

/// What becomes of text that does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnError {
    /// The first bad record ends the import
    Fail,
    /// Bad records are left out and written to the file of --rejects
    Skip,
    /// Values that the type of --schema does not hold become NULL; what is broken is as with skip, or fail without --rejects
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
    /// Statements, separated by semicolons; may be given more than once
    #[arg(short, long, value_name = "SQL")]
    pub(crate) command: Vec<String>,
    /// A file of statements, run after those of -c (without either: a shell on a terminal, else statements on standard input)
    #[arg(short, long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// A folder whose files are tables named by their stems; CREATE TABLE ... AS SELECT writes into it
    #[arg(long, value_name = "DIR")]
    pub(crate) db: Option<PathBuf>,
    /// How to print rows [default: as the output file's name says, else table on a terminal, csv elsewhere]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<Format>,
    /// Write rows to a file, which replaces what has its name once it is complete
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// A value for a parameter: 1=42 for $1, name=text for $name; may be given more than once
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_param)]
    pub(crate) param: Vec<(String, String)>,
    /// Most memory, such as 512MB or 2GiB [default: a quarter of the machine's]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub(crate) memory: Option<u64>,
    /// Threads [default: all cores]
    #[arg(long, value_name = "N", value_parser = parse_threads)]
    pub(crate) threads: Option<usize>,
    #[command(flatten)]
    pub(crate) io: IoArgs,
    /// How rows are found by values of columns with an index
    #[arg(long, value_name = "HOW", default_value = "auto")]
    pub(crate) access: HowFound,
    /// Run the last statement this often; rows are printed once
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) repeat: u32,
    /// Print the seconds of each run of the last statement as the last line on standard error
    #[arg(long, value_name = "FORMAT")]
    pub(crate) timings: Option<Timings>,
    #[command(flatten)]
    pub(crate) profile: ProfileArgs,
}

/// How Plinth files are read.
#[derive(Args, Debug)]
pub(crate) struct IoArgs {
    /// How blocks of Plinth files are read
    #[arg(long, value_name = "HOW", default_value = "auto")]
    io: IoHow,
    /// What `plinth probe` wrote about the device [default: DIR/plinth-device.toml of --db, if there is one]
    #[arg(long, value_name = "FILE")]
    device: Option<PathBuf>,
    /// What to do without, to measure what it brings
    #[arg(long, hide = true, value_delimiter = ',')]
    io_without: Vec<IoPart>,
    /// Bytes of one request
    #[arg(long, hide = true, value_parser = parse_bytes)]
    io_request: Option<u64>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum IoHow {
    /// What is in the page cache from there, the rest past it if it is more than fits into memory
    Auto,
    /// Past the page cache by io_uring
    Uring,
    /// Past the page cache by threads
    Direct,
    /// Through the page cache
    Cached,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum IoPart {
    /// Memory that is used again
    Reuse,
    /// Memory that is registered with the ring
    Registration,
    /// Memory in huge pages
    HugePages,
}

impl IoArgs {
    /// For files in `folder`, if they are all there.
    ///
    /// # Errors
    /// If the profile of the device that was asked for can't be read.
    pub(crate) fn options(&self, folder: Option<&Path>) -> Result<IoOptions, ProfileError> {
        let mut default = IoOptions::default();
        if let Some(device) = self.device(folder)? {
            default = default.suited_to(&device);
        }
        let with = |part| !self.io_without.contains(&part);
        Ok(IoOptions {
            mode: match self.io {
                IoHow::Auto => IoMode::Auto,
                IoHow::Uring => IoMode::Uring,
                IoHow::Direct => IoMode::Direct,
                IoHow::Cached => IoMode::Cached,
            },
            fresh_buffers: !with(IoPart::Reuse),
            registered: with(IoPart::Registration),
            huge_pages: with(IoPart::HugePages),
            request_bytes: self.io_request.and_then(|n| usize::try_from(n).ok()).unwrap_or(default.request_bytes),
            ..default
        })
    }

    /// What a probe found of the device.
    ///
    /// # Errors
    /// If its profile was asked for and can't be read.
    pub(crate) fn device(&self, folder: Option<&Path>) -> Result<Option<DeviceProfile>, ProfileError> {
        match &self.device {
            Some(path) => DeviceProfile::read(path).map(Some),
            None => Ok(folder.and_then(device_of)),
        }
    }
}

/// What a probe found of the device of a folder, if it left its profile there.
pub(crate) fn device_of(folder: &Path) -> Option<DeviceProfile> {
    let path = folder.join(PROFILE_NAME);
    // It was not asked for, so that it can't be read is no reason to stop.
    path.exists().then(|| DeviceProfile::read(path).inspect_err(|e| log::warn!("{e}")).ok()).flatten()
}

/// How rows are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Aligned columns; of many rows the first (and, on a terminal, the last)
    Table,
    /// A header line, then a line a row; NULL is empty, empty text is ""
    Csv,
    /// As csv, with tabs
    Tsv,
    /// One object a line
    Json,
    /// A table in Markdown
    Markdown,
    /// A Parquet file of one result
    Parquet,
}

/// How timings are printed.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Timings {
    /// {"seconds": [...]}
    Json,
}

#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    /// The file, or the folder of a writable table
    pub(crate) file: PathBuf,
    /// Print everything as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("question").required(true))]
pub(crate) struct LookupArgs {
    /// The file
    pub(crate) file: PathBuf,
    /// The column; a field of a struct by its names, with dots between
    pub(crate) column: String,
    /// The value that equals this one
    #[arg(long, value_name = "VALUE", group = "question", allow_hyphen_values = true)]
    pub(crate) equals: Option<String>,
    /// The values that begin with this text
    #[arg(long, value_name = "TEXT", group = "question", allow_hyphen_values = true)]
    pub(crate) prefix: Option<String>,
    /// The values that a regular expression is found in
    #[arg(long, value_name = "REGEX", group = "question", allow_hyphen_values = true)]
    pub(crate) matches: Option<String>,
    /// Print the numbers of the rows, from 0; with --values their values, too
    #[arg(long)]
    pub(crate) rows: bool,
    /// Print how many values match and how many rows hold them, which is what is done if nothing else is asked for
    #[arg(long, conflicts_with_all = ["rows", "values"])]
    pub(crate) count: bool,
    /// Print the values that match
    #[arg(long)]
    pub(crate) values: bool,
    /// How rows are found
    #[arg(long, value_name = "HOW", default_value = "auto")]
    pub(crate) access: HowFound,
    /// How to print rows [default: as the output file's name says, else table on a terminal, csv elsewhere]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<Format>,
    /// Write rows to a file, which replaces what has its name once it is complete
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// How rows that hold some values are found.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum HowFound {
    /// By what costs less
    Auto,
    /// All rows are tested, by no index
    Scan,
    /// Their numbers are read from the column's index
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
    /// The files, or folders of writable tables
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Threads [default: all cores]
    #[arg(long, value_name = "N", value_parser = parse_threads)]
    pub(crate) threads: Option<usize>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TableCommand {
    /// Make a table that can be written to of a folder of Plinth files, which are replaced
    Init(InitArgs),
}

#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// The folder
    pub(crate) folder: PathBuf,
    /// The columns of the primary key [default: none: rows are only told apart by what they hold]
    #[arg(long, value_name = "COLUMN,...", value_delimiter = ',')]
    pub(crate) key: Vec<String>,
    /// The columns by which rows without a key are ordered
    #[arg(long, value_name = "COLUMN,...", value_delimiter = ',', conflicts_with = "key")]
    pub(crate) cluster: Vec<String>,
    /// Threads that encode [default: all cores]
    #[arg(long, value_name = "N", value_parser = parse_threads)]
    pub(crate) threads: Option<usize>,
    /// Most memory, such as 512MB or 2GiB [default: a quarter of the machine's]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub(crate) memory: Option<u64>,
    /// No progress bar and no summary
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CompactArgs {
    /// The folder
    pub(crate) folder: PathBuf,
    /// How large files should become, such as 256MB or 4GiB; those of half the size are left as they are [default: 1GiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes, conflicts_with = "all")]
    pub(crate) target_size: Option<u64>,
    /// Make one file of all, however large
    #[arg(long)]
    pub(crate) all: bool,
    /// Threads that encode [default: all cores]
    #[arg(long, value_name = "N", value_parser = parse_threads)]
    pub(crate) threads: Option<usize>,
    /// Most memory, such as 512MB or 2GiB; below 1 GiB the new files get smaller row groups and dictionaries [default: a
    /// quarter of the machine's]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub(crate) memory: Option<u64>,
    /// No progress bar and no summary
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ProbeArgs {
    /// The folder; a file is filled in it, measured, and removed
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
    /// How long to measure [default: 20]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=3_600), conflicts_with = "full")]
    pub(crate) seconds: Option<u64>,
    /// Measure every combination, three minutes, in a file of 2 GiB
    #[arg(long)]
    pub(crate) full: bool,
    /// Who issues the requests
    #[arg(long, value_name = "ENGINE", default_value = "auto")]
    pub(crate) engine: ProbeEngine,
    /// How large the file is, such as 256MiB [default: 512MiB, 128MiB below ten seconds]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub(crate) size: Option<u64>,
    /// Write everything as one JSON object; - for standard output, in the place of the report
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write a line a measurement; - for standard output, in the place of the report
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,
    /// Write heat maps and curves as a page that needs nothing else
    #[arg(long, value_name = "FILE.html")]
    pub(crate) plot: Option<PathBuf>,
    /// Where the profile goes [default: DIR/plinth-device.toml]
    #[arg(long, value_name = "FILE.toml")]
    pub(crate) profile: Option<PathBuf>,
    /// No progress bar
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// Who issues the requests of a probe.
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
