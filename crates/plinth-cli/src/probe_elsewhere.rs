//! `plinth probe` where it can't be: what it measures with is Linux's.

use std::time::Duration;

use crate::cli::ProbeArgs;
use crate::error::{Failure, Result};

/// Nothing is measured here.
pub(crate) fn decode_speeds(_time: Duration) -> Vec<(String, u64)> {
    Vec::new()
}

/// Says so.
pub(crate) fn run(args: &ProbeArgs) -> Result {
    Err(Failure::new(format!("{}: can't be probed: plinth probe works on Linux only", args.folder.display())))
}
