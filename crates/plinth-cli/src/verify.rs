//! `plinth verify`: is every byte what was written?

use std::io::Write;
use std::path::{Path, PathBuf};

use plinth_rowstore::Table;
use plinth_table::TableFolder;

use crate::cli::VerifyArgs;
use crate::error::{Failure, Result};
use crate::progress::Progress;
use crate::{objects, screen, store, units};

/// Runs the command. Stops at the first file that fails.
pub(crate) fn run(args: &VerifyArgs) -> Result {
    let threads = args.threads.threads();
    for path in files(&args.files)? {
        let path = path.as_path();
        let (progress, bytes, rows);
        if args.format {
            conformance(path, threads)?;
            continue;
        }
        if Table::is_table(path) {
            progress = Progress::new(0, false);
            (bytes, rows) = store::verify(path, threads)?;
        } else {
            let file = objects::open(path)?;
            progress = Progress::new(file.byte_len(), false);
            (bytes, rows) = (file.verify(threads, &|bytes| progress.show(bytes, None))?, file.num_rows());
        }
        let elapsed = progress.elapsed();
        drop(progress);
        let name = path.display().to_string();
        writeln!(
            std::io::stdout(),
            "{}: ok, {}, {} in {} ({})",
            screen::spelled(&name),
            units::counted(rows, "row"),
            units::bytes(bytes),
            units::duration(elapsed),
            units::rate(bytes, elapsed)
        )?;
    }
    Ok(())
}

/// The paths, with the files of a folder of Plinth files in its place.
fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut all = Vec::new();
    for path in paths {
        match folder(path)? {
            Some(files) => all.extend(files),
            None => all.push(path.clone()),
        }
    }
    Ok(all)
}

/// The files of a folder of Plinth files, which is one table. None if the path is anything else.
pub(crate) fn folder(path: &Path) -> Result<Option<Vec<PathBuf>>> {
    if let Some(files) = objects::several(path)? {
        return Ok(Some(files));
    }
    if !path.is_dir() || Table::is_table(path) || !TableFolder::new(path).has_files()? {
        return Ok(None);
    }
    Ok(Some(TableFolder::new(path).list()?.into_iter().map(|listed| listed.path).collect()))
}

/// Whether a file is as FORMAT.md wants it.
fn conformance(path: &Path, threads: usize) -> Result {
    if Table::is_table(path) {
        let what = format!("{}: --format looks at files; name the table's, which end in .plinth", path.display());
        return Err(Failure::new(what));
    }
    let found = objects::open(path)?.conformance(threads)?;
    let name = path.display().to_string();
    let (name, mut out) = (screen::spelled(&name), std::io::stdout());
    for departure in &found {
        writeln!(out, "{name}: {}", screen::spelled(departure))?;
    }
    if !found.is_empty() {
        return Err(Failure::new(format!(
            "{name}: departs from the format in {}",
            units::counted(found.len() as u64, "place")
        )));
    }
    writeln!(out, "{name}: as the format wants it")?;
    Ok(())
}
