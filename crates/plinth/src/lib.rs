//! Plinth: columnar tables in files that answer filters on their encoded bytes.
//!
//! A [`File`] is read with a [`Scan`], synchronously and without SQL; a [`Writer`] makes one from record batches.
//!
//! ```no_run
//! use plinth::expr::col;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let file = plinth::File::open("hits.plinth")?;
//! println!("{} rows in {} bytes", file.num_rows(), file.byte_len());
//!
//! let scan = file.scan().select(["URL", "UserID"]).filter(col("CounterID").eq(62)).build()?;
//! for batch in scan {
//!     println!("{} rows", batch?.num_rows());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Writing takes a schema and batches; the file appears under its name when it is complete, and never otherwise:
//!
//! ```no_run
//! # use arrow_array::{ArrayRef, Int64Array, RecordBatch};
//! # use std::sync::Arc;
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
//! let batch = RecordBatch::try_from_iter([("n", numbers)])?;
//! let mut writer = plinth::Writer::create("numbers.plinth", &batch.schema(), plinth::WriterOptions::default())?;
//! writer.write(&batch)?;
//! println!("{} bytes", writer.finish()?.file_bytes);
//! # Ok(())
//! # }
//! ```
//!
//! Where the time and the bytes of a scan or an import go, a [`profile::Profiler`] tells:
//!
//! ```no_run
//! use plinth::profile::{Ceilings, Profiler, ProfilerOptions, Stage};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let profiler = Profiler::start(ProfilerOptions { title: "all of UserID".into(), ..Default::default() });
//! {
//!     let _scan = profiler.scope(Stage::Scan); // this thread works for the profiler now
//!     for batch in plinth::File::open("hits.plinth")?.scan().select(["UserID"]).build()? {
//!         batch?;
//!     }
//! }
//! let mut profile = profiler.finish();
//! profile.compare(&Ceilings::measure(profile.threads, std::time::Duration::from_millis(200)));
//! for row in &profile.rows {
//!     println!("{:indent$}{}: {:?}, {} values, {} bytes", "", row.name, row.time, row.rows, row.bytes, indent = 2 * row.depth);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! A [`rowstore::Table`] can be written to: rows that survive a power failure once a commit returns, snapshots, reads by key.
//!
//! ```no_run
//! # use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
//! # use std::sync::Arc;
//! use plinth::rowstore::{Table, TableOptions};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let ids: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
//! let names: ArrayRef = Arc::new(StringArray::from(vec!["Ada", "Grace"]));
//! let rows = RecordBatch::try_from_iter([("id", ids), ("name", names)])?;
//!
//! let table = Table::create("people", &rows.schema(), &["id"], TableOptions::default())?;
//! table.insert(&rows)?;
//! let before = table.snapshot();
//! table.delete(&[1_i64.into()])?;
//! assert!(table.get(1_i64)?.is_none() && before.get(1_i64)?.is_some());
//! for batch in before.scan()? {
//!     println!("{} rows", batch?.num_rows());
//! }
//! table.close()?;
//! # Ok(())
//! # }
//! ```
//!
//! The feature `tracing` makes each stage a span of the `tracing` crate, too.
//!
//! A folder of files is one [`table`]. Parquet, CSV and JSON come in through `ingest`, with the feature of that name. SQL is the part of the crate `plinth-sql`, which
//! brings a query engine; this one has none.

pub use plinth_encoding::expr;
pub use plinth_encoding::{Effort, EncodingError};
pub use plinth_format::*;
#[cfg(feature = "ingest")]
pub use plinth_ingest as ingest;
pub use plinth_io::{Io, IoMode, IoOptions, MemoryBudget};
pub use plinth_profile as profile;
pub use plinth_rowstore as rowstore;
pub use plinth_table as table;
