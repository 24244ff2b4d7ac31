//! Plinth files as DataFusion tables and file formats.
//!
//! A query reaches a Plinth file in one of three ways, which all end in the same scan: a [`PlinthTable`] over an ordered
//! list of files, a `ListingTable` over the [`PlinthFormat`], or a path in the FROM clause, resolved by [`PathTables`].
//! The plan's leaf is always `DataSourceExec(FileScanConfig(`[`PlinthSource`]`))`: engines that distribute DataFusion's
//! plans know how to split that one and no other.
//!
//! Filters travel in two phases. Logically a table answers `Inexact`, so the optimizer keeps a `FilterExec` whose
//! selectivity it can estimate while it orders joins; physically [`PlinthSource`] then takes each conjunct it can own, and
//! the `FilterExec` goes. What the source has taken it applies in every file, whatever that file's columns: comparisons
//! become [`plinth_encoding::expr::Expr`]s the scan evaluates on encoded data, anything else an opaque function of the
//! columns it mentions.
//!
//! A folder that is a writable table is a [`StoreTable`]: the same scan, beside the rows that are in memory.
//!
//! [`scalar_functions`] and [`aggregate_functions`] are functions of SQL that the engine lacks.
//!
//! Parquet files are scanned by the same executor: the rule [`ParquetScans`], put before those of the engine, replaces the
//! engine's source for them by a [`ParquetScan`].

mod alike;
mod around;
mod checked;
mod columns;
mod config;
mod counted;
mod decimals;
mod dense;
mod digits;
mod dynamic;
mod enlarging;
mod error;
mod evaluated;
mod filled;
mod foreign;
mod format;
mod function;
mod functions;
mod gather;
mod guard;
mod handles;
mod honest;
mod kept;
mod keys;
mod limits;
mod location;
mod merging;
mod metrics;
mod native;
mod objects;
mod opener;
mod order;
mod parquet;
mod paths;
mod pattern;
mod pool;
mod predicate;
mod predicates;
mod profile;
mod projection;
mod rows;
mod scalar;
mod schema;
mod shared;
mod shipped;
mod sink;
mod source;
mod spill;
mod split;
mod statistics;
mod table;
mod windows;

pub use checked::{Which as CheckedPart, checked_arithmetic, checked_sum};
pub use config::{ParquetReader, PlinthConfig, Pushdown};
pub use dense::dense;
pub use digits::{DigitsOfFiles, within_digits};
pub use enlarging::{bounded_concatenation, bounded_functions, enlarges};
pub use error::{from_format, from_table};
pub use filled::FilledSides;
pub use foreign::ForeignTable;
pub use format::{PlinthFormat, PlinthFormatFactory};
#[doc(hidden)]
pub use functions::{Coordinate, distances};
pub use functions::{
    JsonMember, aggregate_functions, bytes_of_texts, json_members, like_pattern, scalar_functions, sql_type_name,
    text_slice, unescaped_bytes,
};
pub use gather::RowsInOrder;
pub use guard::GuardMemory;
pub use honest::honest_aggregates;
pub use limits::{HoldLimits, ReleaseLimits};
pub use merging::merge_join;
pub use native::{CoveredBlocks, ExternalSorts, NativeOperators, NativeSorts, gives_way};
pub use objects::SessionObjects;
pub use order::{JoinOrder, expected_rows};
pub use parquet::{ParquetScan, ParquetScans, ParquetTable};
pub use paths::{CurrentSession, PathTables};
pub use plinth_core::simd::Level;
pub use pool::BudgetPool;
pub use predicate::{PredicateTranslator, can_own};
pub use profile::{ProfileOperators, profile_tasks};
pub use rows::{OpenTables, StoreTable, Stores, Writing};
pub use scalar::{to_plinth, to_scalar_value};
pub use shared::{Occurrences, SharedExec};
pub use shipped::{Piece, Shipped, is_operator, operators_by_name, pieces};
pub use sink::{WriteExec, write_plan, write_streams};
pub use source::PlinthSource;
pub use spill::NamelessSpills;
pub use table::PlinthTable;
pub use windows::{WindowsByPartition, WindowsOfText};

/// How Plinth files are opened and written.
#[derive(Clone, Debug, Default)]
pub struct FileOptions {
    /// How they are opened.
    pub open: plinth_format::OpenOptions,
    /// How new ones are written.
    pub writer: plinth_format::WriterOptions,
}

/// How the names of Plinth files end, without the dot.
pub const EXTENSION: &str = "plinth";
