//! The engines that measure a cell, and for how long.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use plinth_io::Result;

use crate::cell::{Cell, Row};
use crate::target::Target;

/// How long a cell is measured.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// Time before, whose requests do not count.
    pub warm_up: Duration,
    /// Time in which completions count.
    pub measured: Duration,
    /// Where random offsets begin: the same cell repeated does not read the same bytes.
    pub seed: u64,
}

impl Window {
    /// So much time, the first fifth of which warms up.
    pub(crate) fn of(time: Duration, seed: u64) -> Self {
        let warm_up = time / 5;
        Self { warm_up, measured: time - warm_up, seed }
    }
}

/// Something that measures cells.
pub trait Backend {
    /// What reports call it.
    fn name(&self) -> &str;

    /// What measuring a cell takes beyond its window.
    fn overhead(&self) -> Duration {
        Duration::from_millis(5)
    }

    /// Measures a cell. Ends early, with whatever was counted, once `stop` is set.
    ///
    /// # Errors
    /// If a request fails.
    fn run(&self, cell: &Cell, target: &Target, window: Window, stop: &AtomicBool) -> Result<Row>;
}
