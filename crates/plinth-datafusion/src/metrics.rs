//! What a scan did, where EXPLAIN ANALYZE shows it.

use std::sync::atomic::{AtomicU64, Ordering};

use datafusion_physical_plan::metrics::{
    Count, ExecutionPlanMetricsSet, MetricBuilder, MetricCategory, MetricType, PruningMetrics,
};
use plinth_format::{File, ScanMetrics};

/// One partition's counters, fed by all the scans it runs.
#[derive(Clone, Debug)]
pub(crate) struct PartitionMetrics {
    bytes_read: Count,
    metadata_read: Count,
    metadata_total: Count,
    rows_in: Count,
    rows_matched: Count,
    blocks_decoded: Count,
    blocks_decoded_again: Count,
    blocks_evaluated: Count,
    blocks_counted: Count,
    postings_rows: Count,
    postings_bytes: Count,
    index_rows: Count,
    row_groups: PruningMetrics,
    blocks: PruningMetrics,
}

impl PartitionMetrics {
    pub(crate) fn new(set: &ExecutionPlanMetricsSet, partition: usize) -> Self {
        let builder = || MetricBuilder::new(set).with_type(MetricType::Summary);
        let bytes = |name| builder().with_category(MetricCategory::Bytes).counter(name, partition);
        let rows = |name| builder().with_category(MetricCategory::Rows).counter(name, partition);
        Self {
            bytes_read: bytes("bytes_read"),
            metadata_read: bytes("metadata_bytes"),
            metadata_total: bytes("metadata_bytes_of_files"),
            rows_in: rows("rows_scanned"),
            rows_matched: rows("rows_matched"),
            blocks_decoded: builder().counter("blocks_decoded", partition),
            // Nought: shown where all metrics are asked for.
            blocks_decoded_again: MetricBuilder::new(set)
                .with_type(MetricType::Dev)
                .counter("blocks_decoded_again", partition),
            blocks_evaluated: builder().counter("blocks_evaluated_encoded", partition),
            blocks_counted: builder().counter("blocks_counted", partition),
            postings_rows: rows("rows_from_postings"),
            postings_bytes: bytes("postings_bytes"),
            index_rows: rows("rows_from_indexes"),
            row_groups: builder().pruning_metrics("row_groups", partition),
            blocks: builder().pruning_metrics("blocks", partition),
        }
    }
}

impl PartitionMetrics {
    /// An index of a writable table has found so many rows, and all others are not looked at.
    pub(crate) fn found_by_index(&self, rows: usize) {
        self.index_rows.add(rows);
    }
}

/// Feeds one scan's counters to its partition: those that only grow as they grow, pruning when the scan is over.
#[derive(Debug)]
pub(crate) struct ScanReporter {
    partition: PartitionMetrics,
    scan: std::sync::Arc<ScanMetrics>,
    /// The file, if this scan speaks for its metadata: of the scans of one file only the one with its first byte does.
    file: Option<File>,
    reported: [u64; 9],
}

impl ScanReporter {
    pub(crate) fn new(partition: PartitionMetrics, scan: std::sync::Arc<ScanMetrics>, file: Option<File>) -> Self {
        Self { partition, scan, file, reported: [0; 9] }
    }

    pub(crate) fn report(&mut self) {
        let (to, from) = (&self.partition, &self.scan);
        let counters = [
            (&to.bytes_read, &from.bytes_read),
            (&to.rows_in, &from.rows_in),
            (&to.rows_matched, &from.rows_out),
            (&to.blocks_decoded, &from.blocks_decoded),
            (&to.blocks_decoded_again, &from.blocks_decoded_again),
            (&to.blocks_evaluated, &from.blocks_evaluated),
            (&to.blocks_counted, &from.blocks_counted),
            (&to.postings_rows, &from.postings_rows),
            (&to.postings_bytes, &from.postings_bytes),
        ];
        for ((count, now), reported) in counters.into_iter().zip(&mut self.reported) {
            let now = now.load(Ordering::Relaxed);
            count.add(size(now.saturating_sub(*reported)));
            *reported = now;
        }
    }
}

impl Drop for ScanReporter {
    fn drop(&mut self) {
        self.report();
        if let Some(file) = &self.file {
            self.partition.metadata_read.add(size(file.metadata_bytes_read()));
            self.partition.metadata_total.add(size(file.metadata_bytes()));
        }
        let report = |metrics: &PruningMetrics, total: &AtomicU64, pruned: &AtomicU64| {
            let (total, pruned) = (total.load(Ordering::Relaxed), pruned.load(Ordering::Relaxed));
            metrics.add_pruned(size(pruned));
            metrics.add_matched(size(total.saturating_sub(pruned)));
        };
        report(&self.partition.row_groups, &self.scan.row_groups_total, &self.scan.row_groups_pruned);
        report(&self.partition.blocks, &self.scan.blocks_total, &self.scan.blocks_pruned);
    }
}

fn size(n: u64) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}
