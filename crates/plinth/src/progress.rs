//! Progress on a terminal; silence elsewhere.

use std::cell::Cell;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::units;

/// A bar on standard error that shows bytes done of bytes in all, and a text.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    started: Instant,
    total: Cell<u64>,
}

impl Progress {
    /// A bar for this many bytes, if standard error is a terminal.
    pub(crate) fn new(total: u64, quiet: bool) -> Self {
        let bar = (!quiet && std::io::stderr().is_terminal()).then(|| {
            let bar = ProgressBar::with_draw_target(Some(total.max(1)), ProgressDrawTarget::stderr_with_hz(10));
            if let Ok(style) = ProgressStyle::with_template("{bar:24.cyan/dim} {percent:>3} %  {msg}") {
                bar.set_style(style.progress_chars("━╸─"));
            }
            bar
        });
        Self { bar, started: Instant::now(), total: Cell::new(total) }
    }

    /// Says how many bytes there are, once that is known.
    pub(crate) fn expect(&self, total: u64) {
        self.total.set(total);
        if let Some(bar) = &self.bar {
            bar.set_length(total.max(1));
        }
    }

    /// Prints a line above the bar, if there is one.
    pub(crate) fn note(&self, line: &str) {
        if let Some(bar) = &self.bar {
            bar.println(line);
        }
    }

    /// Time since the start.
    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Shows bytes done, and rows where they are counted.
    pub(crate) fn show(&self, bytes: u64, rows: Option<u64>) {
        let Some(bar) = &self.bar else { return };
        let (elapsed, total) = (self.elapsed(), self.total.get());
        let mut text = String::new();
        if let Some(rows) = rows {
            text = format!("{} rows  ", units::count(rows));
        }
        let (done, total) = (units::bytes(bytes), units::bytes(total));
        text.push_str(&format!("{done} of {total}  {}", units::rate(bytes, elapsed)));
        if bytes > 0 && elapsed > Duration::from_millis(500) {
            let left = units::to_f64(total.saturating_sub(bytes)) / units::to_f64(bytes) * elapsed.as_secs_f64();
            text.push_str(&format!("  {} left", units::duration(Duration::from_secs_f64(left.clamp(0.0, 1e7)))));
        }
        bar.set_position(bytes.min(total));
        bar.set_message(text);
    }

    /// Shows what happens after the last byte of input.
    pub(crate) fn say(&self, text: &str) {
        if let Some(bar) = &self.bar {
            bar.set_position(self.total.get());
            bar.set_message(text.to_owned());
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
