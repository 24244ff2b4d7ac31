//! Progress on a terminal; silence elsewhere.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use plinth_sql::Done;

use crate::{screen, units};

/// A bar on standard error that shows bytes done of bytes in all, and a text.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    started: Instant,
    total: AtomicU64,
}

impl Progress {
    /// A bar for this many bytes, if standard error is a terminal.
    pub(crate) fn new(total: u64, quiet: bool) -> Self {
        let bar = (!quiet && std::io::stderr().is_terminal())
            .then(|| bar(total.max(1), "{bar:24.cyan/dim} {percent:>3} %  {msg}"));
        Self { bar, started: Instant::now(), total: AtomicU64::new(total) }
    }

    /// Says how many bytes there are, once that is known.
    pub(crate) fn expect(&self, total: u64) {
        self.total.store(total, Ordering::Relaxed);
        if let Some(bar) = &self.bar {
            bar.set_length(total.max(1));
        }
    }

    /// Prints a line above the bar, if there is one.
    pub(crate) fn note(&self, line: &str) {
        if let Some(bar) = &self.bar {
            bar.println(screen::spelled(line));
        }
    }

    /// Time since the start.
    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Shows bytes done, and rows where they are counted.
    pub(crate) fn show(&self, bytes: u64, rows: Option<u64>) {
        let Some(bar) = &self.bar else { return };
        let (elapsed, total) = (self.elapsed(), self.total.load(Ordering::Relaxed));
        let mut text = String::new();
        if let Some(rows) = rows {
            text = format!("{} rows  ", units::count(rows));
        }
        let (done, of) = (units::bytes(bytes), units::bytes(total));
        text.push_str(&format!("{done} of {of}  {}", units::rate(bytes, elapsed)));
        if bytes > 0 && elapsed > Duration::from_millis(500) {
            let left = units::to_f64(total.saturating_sub(bytes)) / units::to_f64(bytes) * elapsed.as_secs_f64();
            text.push_str(&format!("  {} left", units::duration(Duration::from_secs_f64(left.clamp(0.0, 1e7)))));
        }
        bar.set_position(bytes.min(total));
        bar.set_message(text);
    }

    /// Shows how much of the whole is over, 0 to 1, and what is done now.
    pub(crate) fn step(&self, share: f64, text: &str) {
        let Some(bar) = &self.bar else { return };
        let total = self.total.load(Ordering::Relaxed);
        let left = Duration::from_secs_f64(self.elapsed().as_secs_f64() * (1.0 - share).max(0.0) / share.max(0.01));
        bar.set_position(units::whole(share * units::to_f64(total)).min(total));
        bar.set_message(format!("{}  {} left", screen::spelled(text), units::duration(left)));
    }

    /// Shows what happens after the last byte of input.
    pub(crate) fn say(&self, text: &str) {
        if let Some(bar) = &self.bar {
            bar.set_position(self.total.load(Ordering::Relaxed));
            bar.set_message(screen::spelled(text).into_owned());
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

fn bar(total: u64, template: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr_with_hz(10));
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("━╸─"));
    }
    bar
}

/// How far a query is, shown once it takes long.
pub(crate) struct QueryProgress {
    ticker: Mutex<Option<(Sender<()>, JoinHandle<()>)>>,
}

/// A query that is over by then shows nothing.
const LONG: Duration = Duration::from_millis(500);
const TICK: Duration = Duration::from_millis(100);

impl QueryProgress {
    /// Asks how far the query is, and shows it, if standard error is a terminal.
    pub(crate) fn new(done: impl Fn() -> Option<Done> + Send + 'static) -> Self {
        if !std::io::stderr().is_terminal() {
            return Self { ticker: Mutex::new(None) };
        }
        let (stop, stopped) = mpsc::channel();
        let ticker = move || {
            let started = Instant::now();
            if stopped.recv_timeout(LONG) != Err(RecvTimeoutError::Timeout) {
                return;
            }
            let known = done().and_then(|done| done.of_rows).is_some_and(|rows| rows > 0);
            let template =
                if known { "{bar:16.cyan/dim} {percent:>3} %  {wide_msg}" } else { "{spinner:.cyan} {wide_msg}" };
            let bar = bar(1_000, template);
            loop {
                let done = done().unwrap_or_default();
                bar.set_position(per_mille(done));
                bar.set_message(describe(done, started.elapsed()));
                bar.tick();
                if stopped.recv_timeout(TICK) != Err(RecvTimeoutError::Timeout) {
                    break;
                }
            }
            bar.finish_and_clear();
        };
        let thread = std::thread::Builder::new().name("plinth-progress".to_owned()).spawn(ticker);
        // Without a thread there is no bar, and no harm.
        Self { ticker: Mutex::new(thread.ok().map(|thread| (stop, thread))) }
    }

    /// Takes the bar away: what follows has the terminal for itself.
    pub(crate) fn clear(&self) {
        if let Some((stop, thread)) = self.ticker.lock().unwrap_or_else(PoisonError::into_inner).take() {
            drop(stop);
            let _ = thread.join();
        }
    }
}

impl Drop for QueryProgress {
    fn drop(&mut self) {
        self.clear();
    }
}

fn per_mille(done: Done) -> u64 {
    let total = u128::from(done.of_rows.unwrap_or(0).max(1));
    u64::try_from(u128::from(done.rows) * 1_000 / total).unwrap_or(1_000).min(1_000)
}

fn describe(done: Done, elapsed: Duration) -> String {
    let mut text = match done.of_rows {
        // Tables that are not files have no total.
        Some(total) if total > 0 => format!("{} of {} rows", units::count(done.rows.min(total)), units::count(total)),
        _ if done.rows > 0 => format!("{} read", units::counted(done.rows, "row")),
        _ => "working".to_owned(),
    };
    if done.bytes > 0 {
        text.push_str(&format!("  {}", units::bytes(done.bytes)));
    }
    format!("{}  Ctrl-C cancels  {text}", units::duration(elapsed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_tells_how_far_it_is() {
        let done = Done { rows: 1_500, of_rows: Some(6_000), bytes: 2_000_000 };
        assert_eq!(per_mille(done), 250);
        let text = describe(done, Duration::from_millis(1_500));
        assert_eq!(text, "1.50 s  Ctrl-C cancels  1,500 of 6,000 rows  2.00 MB");
        // Several reads of one table: more than all there is.
        let done = Done { rows: 9, of_rows: Some(6), bytes: 0 };
        assert_eq!(per_mille(done), 1_000);
        assert_eq!(describe(done, Duration::from_secs(1)), "1.00 s  Ctrl-C cancels  6 of 6 rows");
        let done = Done { rows: 9, of_rows: None, bytes: 0 };
        assert_eq!(
            (per_mille(done), describe(done, Duration::from_secs(1))),
            (1_000, "1.00 s  Ctrl-C cancels  9 rows read".to_owned())
        );
    }
}
