//! The session of a command: its folder, which is made if it is new, and the files that are its tables.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use plinth_sql::{Session, SessionOptions};

use crate::error::{Failure, Result};
use crate::screen;

/// A session with its files by name, and its folder.
pub(crate) struct Opened {
    pub(crate) session: Arc<Session>,
    /// The names of the files that were given.
    pub(crate) names: Vec<String>,
    // After the session, which may write into it.
    _made: Option<Made>,
}

impl Opened {
    /// Opens a session whose folder is made if there is none, and in which each file is a table.
    ///
    /// # Errors
    /// If the folder can't be made or read, or a file is not there.
    pub(crate) fn new(options: &SessionOptions, files: &[PathBuf]) -> Result<Self> {
        let made = options.db.as_deref().filter(|folder| !folder.exists()).map(Made::new).transpose()?;
        let session = Arc::new(Session::new(options)?);
        let mut names: Vec<String> = Vec::new();
        for path in files {
            let pattern = path.to_str().is_some_and(|text| text.contains(['*', '?', '[']));
            if !pattern && !path.exists() {
                return Err(no_file(path));
            }
            let name = name_of(path, &names);
            // What the session lists is named from wherever it is.
            let path = if pattern { path.clone() } else { path.canonicalize().unwrap_or_else(|_| path.clone()) };
            session.name_path(&name, &path)?;
            names.push(name);
        }
        Ok(Self { session, names, _made: made })
    }
}

/// That a file is not there, with the name of one that may be meant.
fn no_file(path: &Path) -> Failure {
    let near = plinth_sql::near_path(path).map_or(String::new(), |near| format!("; is {near} meant?"));
    Failure::new(format!("{}: no such file{near}", path.display()))
}

/// The stem of a file, or the name of a folder; a number behind it where others have it already.
fn name_of(path: &Path, taken: &[String]) -> String {
    let whole = path.file_name().or_else(|| path.parent()?.file_name()).and_then(|name| name.to_str()).unwrap_or("");
    let stem = if path.is_dir() { whole } else { whole.split('.').find(|part| !part.is_empty()).unwrap_or("") };
    let letters: String = stem.chars().filter(|c| !matches!(c, '*' | '?' | '[' | ']')).collect();
    let folder = || path.parent().and_then(Path::file_name).and_then(|name| name.to_str()).map(str::to_owned);
    let stem = if letters.is_empty() { folder().unwrap_or_else(|| "files".to_owned()) } else { letters };
    let free = |name: &String| !taken.iter().any(|other| other.eq_ignore_ascii_case(name));
    std::iter::once(stem.clone()).chain((2..).map(|n| format!("{stem}_{n}"))).find(free).unwrap_or(stem)
}

/// A folder that this command made, and removes again if nothing was written into it.
struct Made(PathBuf);

impl Made {
    fn new(folder: &Path) -> Result<Self> {
        std::fs::create_dir(folder)
            .map_err(|e| Failure::new(format!("database folder {}: can't be made: {e}", folder.display())))?;
        screen::say(format_args!("{}: a new folder", folder.display()));
        Ok(Self(folder.to_path_buf()))
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        // One that holds something stays.
        let _ = std::fs::remove_dir(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_called_by_their_stems() {
        let mut taken = Vec::new();
        for (path, name) in [
            ("a/events.csv.gz", "events"),
            ("Events.parquet", "Events_2"),
            ("logs/*.csv", "logs"),
            ("logs/2024-*.csv", "2024-"),
            (".hidden.csv", "hidden"),
        ] {
            let found = name_of(Path::new(path), &taken);
            assert_eq!(found, name, "{path}");
            taken.push(found);
        }
    }
}
