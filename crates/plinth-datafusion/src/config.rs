//! Settings of Plinth among the engine's.

use datafusion_common::config::{ConfigExtension, ConfigOptions};
use datafusion_common::{Result, config_err, extensions_options};
use plinth_format::PushdownMode;

extensions_options! {
    /// Settings of Plinth: `SET plinth.NAME = VALUE`.
    pub struct PlinthConfig {
        /// Who scans Parquet files: `plinth` or `datafusion`.
        pub parquet_scan: String, default = "plinth".to_owned()
        /// When filters are evaluated: `auto`, `after-decode`, `interleaved` or `filter-first`.
        pub pushdown: String, default = "auto".to_owned()
        /// Whether own operators take the place of the engine's where they can.
        pub native: bool, default = true
        /// Whether hash joins are among these operators.
        pub native_joins: bool, default = true
        /// Whether statements are profiled; `plinth_profile()` shows the last one's.
        pub profile: bool, default = false
    }
}

impl ConfigExtension for PlinthConfig {
    const PREFIX: &'static str = "plinth";
}

/// Whether Parquet files are scanned by us.
pub(crate) fn scans_parquet(config: &ConfigOptions) -> Result<bool> {
    match config.extensions.get::<PlinthConfig>().map(|settings| settings.parquet_scan.as_str()) {
        None | Some("plinth") => Ok(true),
        Some("datafusion") => Ok(false),
        Some(other) => config_err!("plinth.parquet_scan is {other:?}; it can be 'plinth' or 'datafusion'"),
    }
}

/// Whether own operators take the place of the engine's.
pub(crate) fn is_native(config: &ConfigOptions) -> bool {
    config.extensions.get::<PlinthConfig>().is_some_and(|settings| settings.native)
}

/// Whether an own operator takes the place of the engine's hash join.
pub(crate) fn joins_natively(config: &ConfigOptions) -> bool {
    config.extensions.get::<PlinthConfig>().is_some_and(|settings| settings.native && settings.native_joins)
}

/// When filters are evaluated.
pub(crate) fn pushdown_mode(config: &ConfigOptions) -> Result<PushdownMode> {
    let Some(settings) = config.extensions.get::<PlinthConfig>() else { return Ok(PushdownMode::Auto) };
    let modes = [PushdownMode::Auto, PushdownMode::AfterDecode, PushdownMode::Interleaved, PushdownMode::FilterFirst];
    match modes.into_iter().find(|mode| mode.to_string() == settings.pushdown) {
        Some(mode) => Ok(mode),
        None => {
            let known = modes.map(|mode| format!("'{mode}'")).join(", ");
            config_err!("plinth.pushdown is {:?}; it can be {known}", settings.pushdown)
        }
    }
}
