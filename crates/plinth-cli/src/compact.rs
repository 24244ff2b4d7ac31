//! `plinth compact`: the many files of a table as fewer, larger ones.

use plinth_format::{OpenOptions, WriterOptions};
use plinth_io::objects::is_url;
use plinth_io::{Io, IoOptions, MemoryBudget};
use plinth_rowstore::Table;
use plinth_table::{CompactOptions, CompactSummary, TableFolder, compact};

use crate::cli::CompactArgs;
use crate::error::{Failure, Result};
use crate::progress::Progress;
use crate::{interrupt, objects, screen, units};

/// Runs the command.
pub(crate) fn run(args: &CompactArgs) -> Result {
    let is_far = is_url(&args.folder);
    if !is_far {
        plinth_sql::expect_folder(&args.folder)?;
    }
    if !is_far && Table::is_table(&args.folder) {
        let folder = args.folder.display();
        return Err(Failure::new(format!(
            "{folder}: a writable table merges its files by itself; VACUUM makes one of all"
        )));
    }
    interrupt::listen()?;
    interrupt::writes_into(if is_far { std::env::temp_dir() } else { args.folder.clone() });
    let writer =
        WriterOptions { threads: args.limits.threads(), cancelled: interrupt::flag(), ..WriterOptions::default() };
    let budget = MemoryBudget::new(args.limits.memory());
    let mut options = CompactOptions {
        all: args.all,
        // The rest is for what is kept of the files that are read.
        writer: writer.charged_to(&budget, budget.limit() / 4 * 3, 1),
        open: OpenOptions { io: Io::new(&budget, IoOptions::default()), ..objects::options() },
        ..CompactOptions::default()
    };
    if let Some(size) = args.target_size {
        options.target_bytes = size;
    }
    let listed = TableFolder::with_options(&args.folder, options.open.clone()).list()?;
    let progress = Progress::new(listed.iter().map(|file| file.identity.len).sum(), args.quiet);
    let summary = compact(&args.folder, &options, &mut |now| progress.show(now.bytes, Some(now.rows)))?;
    let elapsed = progress.elapsed();
    drop(progress);
    if !args.quiet {
        screen::say(format_args!("{}: {}", args.folder.display(), line(&summary, elapsed)));
    }
    Ok(())
}

/// The summary.
fn line(summary: &CompactSummary, elapsed: std::time::Duration) -> String {
    if summary.files_before == summary.files_after {
        return format!("{}, nothing to compact", units::counted(summary.files_before, "file"));
    }
    format!(
        "{} -> {} in {}; {} rewritten, {} -> {}",
        units::counted(summary.files_before, "file"),
        units::count(summary.files_after),
        units::duration(elapsed),
        units::counted(summary.rows, "row"),
        units::bytes(summary.bytes_before),
        units::bytes(summary.bytes_after),
    )
}
