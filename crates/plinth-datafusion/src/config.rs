//! Settings of Plinth among the engine's.

use std::fmt;

use datafusion_common::config::{ConfigExtension, ConfigOptions};
use datafusion_common::{Result, config_err, config_field, extensions_options};
use plinth_format::PushdownMode;

/// Who scans Parquet files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ParquetReader {
    /// Plinth.
    #[default]
    Plinth,
    /// The engine's own reader.
    DataFusion,
}

impl fmt::Display for ParquetReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Plinth => "plinth",
            Self::DataFusion => "datafusion",
        })
    }
}

/// When filters are evaluated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pushdown(pub PushdownMode);

impl fmt::Display for Pushdown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

// What a setting can't be is refused where it is set.
config_field!(ParquetReader, value => one_of("plinth.parquet_scan", [ParquetReader::Plinth, ParquetReader::DataFusion], value)?);
config_field!(Pushdown, value => one_of("plinth.pushdown", MODES.map(Pushdown), value)?);

const MODES: [PushdownMode; 4] =
    [PushdownMode::Auto, PushdownMode::AfterDecode, PushdownMode::Interleaved, PushdownMode::FilterFirst];

/// The value that is written so.
fn one_of<T: fmt::Display, const N: usize>(setting: &str, values: [T; N], written: &str) -> Result<T> {
    let known = values.iter().map(|value| format!("'{value}'")).collect::<Vec<_>>().join(", ");
    match values.into_iter().find(|value| value.to_string() == written) {
        Some(value) => Ok(value),
        None => config_err!("{setting} is {written:?}; it can be {known}"),
    }
}

extensions_options! {
    /// Settings of Plinth: `SET plinth.NAME = VALUE`.
    pub struct PlinthConfig {
        /// Who scans Parquet files: `plinth` or `datafusion`.
        pub parquet_scan: ParquetReader, default = ParquetReader::Plinth
        /// When filters are evaluated: `auto`, `after-decode`, `interleaved` or `filter-first`.
        pub pushdown: Pushdown, default = Pushdown::default()
        /// Whether own operators take the place of the engine's where they can.
        pub native: bool, default = true
        /// Whether hash joins are among these operators.
        pub native_joins: bool, default = true
        /// Whether joins are put in the order that costs least by estimates.
        pub join_order: bool, default = true
        /// Whether statements are profiled; `plinth_profile()` shows the last one's.
        pub profile: bool, default = false
    }
}

impl ConfigExtension for PlinthConfig {
    const PREFIX: &'static str = "plinth";
}

/// Whether Parquet files are scanned by us.
pub(crate) fn scans_parquet(config: &ConfigOptions) -> bool {
    let settings = config.extensions.get::<PlinthConfig>();
    settings.is_none_or(|settings| settings.parquet_scan == ParquetReader::Plinth)
}

/// Whether own operators take the place of the engine's.
pub(crate) fn is_native(config: &ConfigOptions) -> bool {
    config.extensions.get::<PlinthConfig>().is_some_and(|settings| settings.native)
}

/// Whether an own operator takes the place of the engine's hash join.
pub(crate) fn joins_natively(config: &ConfigOptions) -> bool {
    config.extensions.get::<PlinthConfig>().is_some_and(|settings| settings.native && settings.native_joins)
}

/// Whether joins are put in another order than the written one.
pub(crate) fn orders_joins(config: &ConfigOptions) -> bool {
    config.extensions.get::<PlinthConfig>().is_some_and(|settings| settings.join_order)
}

/// When filters are evaluated.
pub(crate) fn pushdown_mode(config: &ConfigOptions) -> PushdownMode {
    config.extensions.get::<PlinthConfig>().map_or(PushdownMode::Auto, |settings| settings.pushdown.0)
}
