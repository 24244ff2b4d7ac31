//! Foreign files to record batches.
