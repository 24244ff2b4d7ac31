//! `plinth probe` where it can't be: what it measures with is Linux's.

use crate::cli::ProbeArgs;
use crate::error::{Failure, Result};

/// Says so.
pub(crate) fn run(args: &ProbeArgs) -> Result {
    Err(Failure::new(format!("{}: can't be probed: plinth probe works on Linux only", args.folder.display())))
}
