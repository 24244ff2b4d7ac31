//! What an argument names: files, patterns, folders of files, writable tables.

use std::path::{Path, PathBuf};

use duckdb_neo::error::DuckDBError;
use plinth_rowstore::{Table, unasked_segments};
use plinth_table::{EXTENSION, TableFolder};

use crate::failure::{Result, error, of_format, refused};

/// What rows come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Files, in the order of their rows.
    Files(Vec<PathBuf>),
    /// A writable table's folder.
    Writable(PathBuf),
}

/// Finds what `named` names, in its order.
///
/// # Errors
/// If something is not there, a pattern matches nothing or is none, or a writable table stands beside others.
pub(crate) fn find(named: &[String]) -> Result<Place> {
    let mut files = Vec::new();
    for name in named {
        match of(name)? {
            Place::Files(more) => files.extend(more),
            table if named.len() == 1 => return Ok(table),
            Place::Writable(path) => {
                let path = path.display();
                return Err(refused(format!(
                    "{path}: is a writable table, which is read alone: UNION ALL joins its rows to others"
                )));
            }
        }
    }
    if files.is_empty() {
        return Err(refused("read_plinth needs a path, a pattern or a list of them"));
    }
    Ok(Place::Files(files))
}

/// Whether a table of this name in FROM is meant for us: a Plinth file, a pattern of such, or a folder that has some.
pub(crate) fn is_ours(name: &str) -> bool {
    let path = Path::new(name);
    let named = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case(EXTENSION));
    if named || !path.is_dir() {
        return named;
    }
    let has_keys = || std::fs::read_dir(path).is_ok_and(|entries| entries.flatten().any(|entry| is_key(&entry.path())));
    Table::is_table(path) || TableFolder::new(path).has_files().unwrap_or(false) || (has_keys() && folder(path).is_ok())
}

/// Whether a path is of a folder named key=value.
fn is_key(path: &Path) -> bool {
    path.is_dir() && path.file_name().is_some_and(|name| name.as_encoded_bytes().contains(&b'='))
}

fn of(name: &str) -> Result<Place> {
    let path = Path::new(name);
    if path.is_dir() {
        return folder(path);
    }
    let is_pattern = name.contains(['*', '?', '[']);
    if !is_pattern || path.exists() {
        plinth_io::regular::check(path).map_err(|failed| of_format(failed.into()))?;
        return Ok(Place::Files(vec![path.to_owned()]));
    }
    let files = matches(name)?;
    if let Some(what) = unasked_segments(name, files.iter()) {
        return Err(refused(what));
    }
    if files.is_empty() {
        return Err(error(DuckDBError::IoFileNotFound, format!("{name}: no file matches the pattern")));
    }
    Ok(Place::Files(files))
}

/// A folder: a writable table, a table of files, or folders of files below it.
fn folder(path: &Path) -> Result<Place> {
    if Table::is_table(path) {
        return Ok(Place::Writable(path.to_owned()));
    }
    let files: Vec<PathBuf> =
        TableFolder::new(path).list().map_err(of_format)?.into_iter().map(|listed| listed.path).collect();
    if !files.is_empty() {
        return Ok(Place::Files(files));
    }
    let below = format!("{}/**/*.{EXTENSION}", glob::Pattern::escape(&path.to_string_lossy()));
    let files = matches(&below)?;
    if files.is_empty() {
        let what =
            format!("{}: the folder has no files that end in .{EXTENSION}, and is no writable table", path.display());
        return Err(error(DuckDBError::IoFileNotFound, what));
    }
    Ok(Place::Files(files))
}

/// Files that match, in the order of their paths. Hidden ones match only what names their dot.
fn matches(pattern: &str) -> Result<Vec<PathBuf>> {
    let options =
        glob::MatchOptions { case_sensitive: true, require_literal_separator: true, require_literal_leading_dot: true };
    let found = glob::glob_with(pattern, options).map_err(|e| refused(format!("{pattern}: is no pattern: {e}")))?;
    let mut files = Vec::new();
    for path in found {
        let path = path.map_err(|e| {
            error(DuckDBError::IoGeneral, format!("{}: can't be listed: {}", e.path().display(), e.error()))
        })?;
        if path.is_file() {
            files.push(path);
        }
    }
    Ok(files)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn names_find_files_patterns_and_folders() {
        let base = std::env::temp_dir().join(format!("plinth-places-{}", std::process::id()));
        for place in ["flat", "deep/year=2024", "deep/year=2025", "none"] {
            std::fs::create_dir_all(base.join(place)).unwrap();
        }
        let files = [
            "flat/a.plinth",
            "flat/b.plinth",
            "flat/.c.plinth",
            "flat/d.csv",
            "deep/year=2024/x.plinth",
            "deep/year=2025/y.plinth",
        ];
        for file in files {
            std::fs::write(base.join(file), "").unwrap();
        }
        let name = |path: &str| base.join(path).to_string_lossy().into_owned();
        let found = |paths: &[&str]| match find(&paths.iter().map(|path| name(path)).collect::<Vec<_>>()) {
            Ok(Place::Files(files)) => Ok(files
                .iter()
                .map(|path| path.strip_prefix(&base).unwrap().to_string_lossy().into_owned())
                .collect::<Vec<_>>()),
            Ok(other) => panic!("{other:?}"),
            Err(e) => Err(e.message),
        };
        assert_eq!(found(&["flat"]).unwrap(), ["flat/a.plinth", "flat/b.plinth"]);
        assert_eq!(found(&["flat/*.plinth"]).unwrap(), ["flat/a.plinth", "flat/b.plinth"]);
        assert_eq!(found(&["flat/b.plinth", "flat/a.plinth"]).unwrap(), ["flat/b.plinth", "flat/a.plinth"]);
        let deep = ["deep/year=2024/x.plinth", "deep/year=2025/y.plinth"];
        assert_eq!(found(&["deep"]).unwrap(), deep);
        assert_eq!(found(&["deep/*/*.plinth"]).unwrap(), deep);
        assert_eq!(found(&["deep/**/*.plinth"]).unwrap(), deep);
        for (bad, says) in [("none", "no files"), ("flat/[", "no file"), ("flat/*.x", "no file")] {
            let said = found(&[bad]).unwrap_err();
            assert!(said.contains(says) || said.contains("pattern") || said.contains("found"), "{bad}: {said}");
        }
        assert!(is_ours(&name("deep")));
        assert!(is_ours(&name("flat")) && is_ours("any/x.PLINTH") && is_ours("a/*.plinth"));
        assert!(!is_ours(&name("none")) && !is_ours("x.parquet") && !is_ours("table"));
        std::fs::remove_dir_all(base).unwrap();
    }
}
