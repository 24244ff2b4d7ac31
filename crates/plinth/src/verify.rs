//! `plinth verify`: is every byte what was written?

use std::io::Write;

use plinth_format::File;

use crate::cli::VerifyArgs;
use crate::error::Result;
use crate::progress::Progress;
use crate::{machine, units};

/// Runs the command. Stops at the first file that fails.
pub(crate) fn run(args: &VerifyArgs) -> Result {
    let threads = args.threads.unwrap_or_else(machine::threads);
    for path in &args.files {
        let file = File::open(path)?;
        let progress = Progress::new(file.byte_len(), false);
        let bytes = file.verify(threads, &|bytes| progress.show(bytes, None))?;
        let elapsed = progress.elapsed();
        drop(progress);
        writeln!(
            std::io::stdout(),
            "{}: ok, {}, {} in {} ({})",
            path.display(),
            units::counted(file.num_rows(), "row"),
            units::bytes(bytes),
            units::duration(elapsed),
            units::rate(bytes, elapsed)
        )?;
    }
    Ok(())
}
