//! A check on what the scan promises: that nothing is decoded twice.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use plinth_format::ScanMetrics;

/// The rows of a column that were decoded, for any question and any use.
#[derive(Debug)]
pub(super) struct Decodes {
    metrics: Arc<ScanMetrics>,
    /// In order, apart from each other.
    rows: Vec<Range<usize>>,
}

impl Decodes {
    pub(super) fn new(metrics: Arc<ScanMetrics>) -> Self {
        Self { metrics, rows: Vec::new() }
    }

    /// Some rows were decoded: counts them if any of them was before.
    pub(super) fn decoded(&mut self, rows: Range<usize>) {
        let first = self.rows.partition_point(|known| known.end < rows.start);
        let last = self.rows.partition_point(|known| known.start <= rows.end);
        let touched = self.rows.get(first..last).unwrap_or_default();
        if touched.iter().any(|known| known.start < rows.end && rows.start < known.end) {
            self.metrics.blocks_decoded_again.fetch_add(1, Relaxed);
        }
        let start = touched.first().map_or(rows.start, |known| known.start.min(rows.start));
        let end = touched.last().map_or(rows.end, |known| known.end.max(rows.end));
        self.rows.splice(first..last, std::iter::once(start..end));
    }
}

#[cfg(test)]
mod tests;
