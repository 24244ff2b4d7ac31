//! Execution on encoded values: how rows are grouped, joined and ordered without undoing their encoding.
//!
//! - [`vector`]: what operators exchange, columns of which some are still codes.
//! - [`numbers`], [`domain`], [`domains`]: values as integers; byte strings by numbering them as they come, and that kept for the next query.
//! - [`decimal`]: sums and products of decimals in 64 bits.
//! - [`memo`]: functions of a text column, computed once for each of its values.
//! - [`layout`], [`key`]: several integers packed into one or two words, in as many bits as their ranges take.
//! - [`words`], [`rows`]: the groups in memory, found by address or by hash.
//! - [`aggregate`]: what is kept of each group.
//! - [`grouping`]: a thread's groups, and those of several threads merged.
//! - [`join`]: the rows of one side of a join by their keys, where those of the other side find them.
//! - [`sort`]: rows in an order, however many.
//! - [`top`]: the first rows of an order.
//!
//! Everything here is synchronous and knows no engine: rows are pushed, groups come out.

pub mod aggregate;
pub mod decimal;
pub mod domain;
pub mod domains;
pub mod error;
pub mod grouping;
pub mod join;
pub mod key;
pub mod layout;
pub mod memo;
pub mod numbers;
pub mod rows;
pub mod sort;
pub mod top;
pub mod vector;
pub mod words;

pub use error::{ExecError, Result};
