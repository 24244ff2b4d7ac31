//! What the I/O engine has to say goes to standard error, a line each.

use log::{LevelFilter, Log, Metadata, Record};

struct Lines;

impl Log for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("plinth")
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            crate::screen::say(format_args!("plinth: {}", record.args()));
        }
    }

    fn flush(&self) {}
}

/// Prints warnings of Plinth's own crates.
pub(crate) fn to_standard_error() {
    if log::set_logger(&Lines).is_ok() {
        log::set_max_level(LevelFilter::Warn);
    }
}
