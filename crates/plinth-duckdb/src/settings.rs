//! What `SET plinth_...` says of scans: memory, and the ways of reading that the experiments compare.

use duckdb_neo::connection::{Context, FFILink, HasFactory, SettingScope};
use duckdb_neo::connection_options::Config;
use duckdb_neo::custom_option::{CustomOptionBuilder, CustomOptionCallbacks};
use duckdb_neo::extension::Extension;
use duckdb_neo::value::Value;
use duckdb_neo::{DuckDBType, ToValue};
use plinth_format::PushdownMode;
use plinth_io::{IoMode, IoOptions};

use crate::failure::{Result, guarded, refused};

/// Bytes that scans have at least.
const LEAST_MEMORY: u64 = 64 << 20;

/// Scans take one part in so many of what DuckDB may take, beside it, unless they are given another number of bytes.
const SHARE_OF_MEMORY: u64 = 4;

/// How a statement's scans read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Settings {
    pub(crate) engine: EngineSettings,
    pub(crate) pushdown: Pushdown,
}

/// What an engine of reads is made with: scans of statements that agree on it share one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EngineSettings {
    pub(crate) memory: u64,
    pub(crate) mode: IoMode,
    pub(crate) fresh_buffers: bool,
    pub(crate) read_ahead: bool,
}

/// Which filters are taken from DuckDB, and when they are evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pushdown {
    /// DuckDB filters.
    Off,
    /// The scan does.
    On(PushdownMode),
}

impl EngineSettings {
    /// Options of an engine. Without reading ahead, one request is made after the other, when a thread needs it.
    pub(crate) fn options(self) -> IoOptions {
        let options = IoOptions { mode: self.mode, fresh_buffers: self.fresh_buffers, ..IoOptions::default() };
        if self.read_ahead { options } else { IoOptions { arena_bytes: Some(0), depth: 1, ..options } }
    }
}

impl Settings {
    /// Those of a statement.
    ///
    /// # Errors
    /// If DuckDB does not tell them.
    pub(crate) fn of(context: &Context) -> Result<Self> {
        let config = context.config()?;
        let memory = match number(&config, "plinth_memory")? {
            0 => memory_limit(&config)? / SHARE_OF_MEMORY,
            given => given,
        };
        let mode = text(&config, "plinth_io")?;
        let pushdown = text(&config, "plinth_pushdown")?;
        Ok(Self {
            engine: EngineSettings {
                memory: memory.max(LEAST_MEMORY),
                mode: io_mode(&mode).ok_or_else(|| unknown("plinth_io", &mode, IO_MODES))?,
                fresh_buffers: flag(&config, "plinth_fresh_buffers")?,
                read_ahead: flag(&config, "plinth_read_ahead")?,
            },
            pushdown: pushdown_of(&pushdown).ok_or_else(|| unknown("plinth_pushdown", &pushdown, PUSHDOWN_MODES))?,
        })
    }
}

const IO_MODES: &str = "auto, uring, direct or cached";
const PUSHDOWN_MODES: &str = "auto, after-decode, interleaved, filter-first or off";

fn io_mode(name: &str) -> Option<IoMode> {
    Some(match name {
        "auto" => IoMode::Auto,
        "uring" => IoMode::Uring,
        "direct" => IoMode::Direct,
        "cached" => IoMode::Cached,
        _ => return None,
    })
}

fn pushdown_of(name: &str) -> Option<Pushdown> {
    Some(Pushdown::On(match name {
        "off" => return Some(Pushdown::Off),
        "auto" => PushdownMode::Auto,
        "after-decode" => PushdownMode::AfterDecode,
        "interleaved" => PushdownMode::Interleaved,
        "filter-first" => PushdownMode::FilterFirst,
        _ => return None,
    }))
}

fn unknown(setting: &str, value: &str, known: &str) -> duckdb_neo::Error {
    refused(format!("{setting} can't be {value:?}: it is {known}"))
}

fn value(config: &Config<'_>, name: &str) -> Result<Value> {
    Ok(config.get_value(name)?.0)
}

fn number(config: &Config<'_>, name: &str) -> Result<u64> {
    Ok(value(config, name)?.get::<u64>()?.unwrap_or_default())
}

fn flag(config: &Config<'_>, name: &str) -> Result<bool> {
    Ok(value(config, name)?.get::<bool>()?.unwrap_or_default())
}

fn text(config: &Config<'_>, name: &str) -> Result<String> {
    Ok(value(config, name)?.get::<String>()?.unwrap_or_default())
}

/// Bytes that DuckDB may take, which it tells as text: `18.6 GiB`.
fn memory_limit(config: &Config<'_>) -> Result<u64> {
    let text = value(config, "memory_limit")?.to_string();
    Ok(bytes_of(&text).unwrap_or_else(plinth_io::default_memory))
}

fn bytes_of(text: &str) -> Option<u64> {
    let text = text.trim_matches('\'');
    let (number, unit) = text.split_at(text.find(|c: char| c.is_ascii_alphabetic())?);
    let (whole, part) = number.trim().split_once('.').unwrap_or((number.trim(), "0"));
    let unit: u64 = match unit.trim() {
        "bytes" | "byte" | "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        "TiB" => 1 << 40,
        "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "TB" => 1_000_000_000_000,
        _ => return None,
    };
    let tenths = part.chars().next()?.to_digit(10)?;
    whole.parse::<u64>().ok()?.checked_mul(unit)?.checked_add(unit / 10 * u64::from(tenths))
}

/// A setting that takes what `accepts` lets pass.
struct Checked {
    name: &'static str,
    known: &'static str,
    accepts: fn(&str) -> bool,
}

impl CustomOptionCallbacks for Checked {
    fn update(&self, _: &Context, value: Value, _: SettingScope, _: bool) -> Result<Value> {
        guarded(|| {
            let text = value.get::<String>()?.unwrap_or_default();
            if (self.accepts)(&text) { Ok(value) } else { Err(unknown(self.name, &text, self.known)) }
        })
    }
}

/// A setting that takes all values of its type but NULL.
struct Plain(&'static str);

impl CustomOptionCallbacks for Plain {
    fn update(&self, _: &Context, value: Value, _: SettingScope, _: bool) -> Result<Value> {
        guarded(|| if value.is_null()? { Err(refused(format!("{} can't be NULL", self.0))) } else { Ok(value) })
    }
}

/// Makes the settings known.
///
/// # Errors
/// If DuckDB refuses one.
pub(crate) fn register(extension: &Extension) -> Result<()> {
    option(extension, "plinth_memory", MEMORY, 0_u64, Plain("plinth_memory"))?;
    let checked = Checked { name: "plinth_io", known: IO_MODES, accepts: |name| io_mode(name).is_some() };
    option(extension, checked.name, "How blocks are read: auto, uring, direct or cached", "auto", checked)?;
    let checked =
        Checked { name: "plinth_pushdown", known: PUSHDOWN_MODES, accepts: |name| pushdown_of(name).is_some() };
    option(extension, checked.name, PUSHDOWN, "auto", checked)?;
    let fresh = Plain("plinth_fresh_buffers");
    option(
        extension,
        fresh.0,
        "Whether each read gets memory of its own, to measure what sharing brings",
        false,
        fresh,
    )?;
    let ahead = Plain("plinth_read_ahead");
    option(extension, ahead.0, "Whether blocks are read before a thread needs them", true, ahead)
}

const MEMORY: &str =
    "Bytes that scans of Plinth files take at most, beside DuckDB's own; 0 is a quarter of memory_limit";
const PUSHDOWN: &str =
    "When filters are evaluated: auto, after-decode, interleaved, filter-first; off leaves them to DuckDB";

fn option<T: DuckDBType + ToValue + Copy>(
    extension: &Extension,
    name: &str,
    description: &str,
    default: T,
    callbacks: impl CustomOptionCallbacks,
) -> Result<()>
where
    Extension: FFILink + HasFactory,
{
    CustomOptionBuilder::new(name, description, T::logical_type(extension)?, callbacks)
        .default_value(default.value(extension)?)
        .register(extension)
}

#[cfg(test)]
mod tests {
    use super::bytes_of;

    #[test]
    fn memory_is_read_as_duckdb_writes_it() {
        for (text, bytes) in [
            ("18.6 GiB", Some((18 << 30) + (1 << 30) / 10 * 6)),
            ("256.0 MiB", Some(256 << 20)),
            ("244.1 MiB", Some((244 << 20) + (1 << 20) / 10)),
            ("100 bytes", Some(100)),
            ("1.5GB", Some(1_500_000_000)),
            ("", None),
            ("many", None),
            ("99999999999 TiB", None),
        ] {
            assert_eq!(bytes_of(text), bytes, "{text}");
        }
    }
}
