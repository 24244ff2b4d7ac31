//! A check on what the scan promises: that nothing is decoded twice.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use plinth_format::ScanMetrics;

/// The rows of a column that were decoded, whoever asked for them and whatever became of them.
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
mod tests {
    use super::*;

    #[test]
    fn rows_are_counted_the_second_time() {
        let metrics = Arc::<ScanMetrics>::default();
        let mut decodes = Decodes::new(Arc::clone(&metrics));
        let mut decode = |rows| {
            decodes.decoded(rows);
            let known: Vec<_> = decodes.rows.iter().map(|rows| (rows.start, rows.end)).collect();
            (metrics.blocks_decoded_again.load(Relaxed), known)
        };
        assert_eq!(decode(10..20), (0, vec![(10, 20)]));
        assert_eq!(decode(30..40), (0, vec![(10, 20), (30, 40)]));
        assert_eq!(decode(20..25), (0, vec![(10, 25), (30, 40)]));
        assert_eq!(decode(0..5), (0, vec![(0, 5), (10, 25), (30, 40)]));
        assert_eq!(decode(24..26), (1, vec![(0, 5), (10, 26), (30, 40)]));
        assert_eq!(decode(26..30), (1, vec![(0, 5), (10, 40)]));
        assert_eq!(decode(3..50), (2, vec![(0, 50)]));
    }
}
