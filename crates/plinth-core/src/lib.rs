//! The floor: small mechanisms that several crates need, each written once.
//!
//! - [`wire`]: the bytes of files, written and read with every length checked.
//! - [`key`]: byte strings that compare as values do, and their first eight bytes as a number.
//! - [`losers`]: the smallest of many heads, for merges.
//! - [`sort`](mod@sort): sorts by exact type.
//! - [`simd`]: which instruction sets this machine has.
//! - [`prefetch`](mod@prefetch): memory that is wanted soon.
//! - [`html`]: pages and text in them.
//! - [`units`]: sizes, rates and times as people read them.
//! - [`sync`]: locks that a panic elsewhere does not break.
//! - [`text`]: text that can be shown.
//! - [`random`]: pseudo-random numbers for tests, benchmarks and made-up data.

pub mod html;
pub mod key;
pub mod losers;
pub mod prefetch;
pub mod random;
pub mod simd;
pub mod sort;
pub mod sync;
pub mod text;
pub mod units;
pub mod wire;
