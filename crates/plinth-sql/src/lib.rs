//! SQL over Plinth, Parquet, CSV and JSON files, and over tables that can be written to.
//!
//! A [`Session`] answers statements asynchronously; a [`Connection`] is one with threads of its own:
//!
//! ```no_run
//! use plinth_sql::{Connection, SessionOptions};
//!
//! # fn main() -> plinth_sql::Result {
//! let mut connection = Connection::open(&SessionOptions { memory: 1 << 30, ..SessionOptions::default() })?;
//! for batch in connection.query("SELECT URL, count(*) FROM 'hits.plinth' GROUP BY URL ORDER BY 2 DESC LIMIT 10")? {
//!     println!("{} rows", batch?.num_rows());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! The engine below is DataFusion; [`Session::context`] gives what it knows. What SQL means where the engine answers otherwise is a
//! matter of rules here (`meaning`, `numbers`; docs/design/sql-exactness.md).

mod by_key;
mod by_path;
mod catalog;
mod copy;
mod current;
mod cut;
mod database;
mod ddl;
mod definitions;
mod dense;
mod depth;
mod dictionaries;
mod each;
mod engine;
mod error;
mod explain;
mod grants;
mod habits;
mod interrupt;
mod joins;
mod kept;
mod kept_plan;
mod literals;
mod meaning;
mod names;
mod narrow;
mod numbers;
mod overflow;
mod params;
mod place;
mod planning;
mod prepared;
mod profiles;
mod read;
mod readable;
mod rewriter;
mod rows;
mod run;
mod runtime;
mod schemas;
mod sequences;
mod series;
mod session;
mod session_views;
mod shared;
mod show;
mod source;
mod spread;
mod statements;
mod steps;
mod stop;
mod structs;
mod types;
mod values;
mod view_plans;
mod views;
mod watch;

pub use copy::with_names_of_their_own;
pub use database::expect_folder;
pub use datafusion::sql::parser::Statement;
pub use ddl::secret::holds_secret;
pub use dictionaries::with_null_keys;
pub use engine::{IndexOfTable, key_and_indexes, plinth_files};
pub use error::{ErrorKind, Result, SqlError, near_path, one_line};
pub use explain::{Explained, asks_for_tree};
pub use grants::Grants;
pub use interrupt::{Interrupt, Running};
pub use kept_plan::KeptPlan;
pub use meaning::{functions_of_plans, is_of_plans};
pub use params::Params;
pub use place::{Placed, placed, statement_texts};
pub use planning::optimized;
pub use plinth_datafusion::OpenTables;
pub use plinth_objects::{ObjectStoresOptions, Traffic};
pub use profiles::of_stores;
pub use rows::takes_rows_as_they_are;
pub use run::Query;
pub use runtime::{Connection, Rows, block_on, start_runtime};
pub use session::{Session, SessionOptions, Share};
pub use source::{OnError, parse_character, parse_mark, parse_sample, parse_schema, rejects};
pub use spread::{Spread, Spreading};
pub use statements::parse;
pub use steps::{Step, Work, step, work};
pub use stop::stoppable_plan;
pub use types::{type_name, written};
pub use watch::Done;
