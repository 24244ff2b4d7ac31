//! Parquet files scanned by Plinth's executor give the same rows in the same order as by DataFusion's source.

mod bugs;
mod data;
mod differential;
mod scans;
mod stored;
#[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss, reason = "tests")]
#[path = "../../../plinth-ingest/tests/suite/stored_rows.rs"]
mod stored_rows;
