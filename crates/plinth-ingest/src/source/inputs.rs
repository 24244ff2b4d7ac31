//! What the user names, as a list of files.

use std::collections::HashSet;
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use plinth_io::objects::{self, is_url};
use plinth_io::{Object, Objects};

use crate::error::{IngestError, Result};
use crate::format;
use crate::format::FileFormat;

/// The input that stands for standard input.
pub const STDIN: &str = "-";

/// How patterns match: as in a shell a name that begins with a dot must be asked for.
const MATCHING: glob::MatchOptions =
    glob::MatchOptions { case_sensitive: true, require_literal_separator: false, require_literal_leading_dot: true };

/// Expands files, directories (searched recursively, hidden entries left out) and globs into a list of files. The order
/// of the inputs is kept, what one input expands to is sorted by path, and a file named twice is listed once.
///
/// # Errors
/// If an input is missing, a directory holds no importable file, a pattern matches none, or a file's extension is not
/// that of a known format.
pub fn expand<P: AsRef<Path>>(inputs: &[P]) -> Result<Vec<PathBuf>> {
    expand_as(inputs, None)
}

/// As [`expand`]; where the format is told, extensions do not matter and directories are taken with all they hold.
///
/// # Errors
/// As [`expand`].
pub fn expand_as<P: AsRef<Path>>(inputs: &[P], told: Option<FileFormat>) -> Result<Vec<PathBuf>> {
    Ok(find(inputs, told, None)?.into_iter().map(|file| file.path).collect())
}

/// A file, and the folder that was named: that of a pattern is the one before its first wildcard.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) path: PathBuf,
    root: PathBuf,
    /// As its store told of it, if it is an object.
    pub(super) object: Option<Object>,
}

impl Found {
    /// The names of the folders between the one that was named and the file.
    pub(super) fn within(&self) -> impl Iterator<Item = &str> {
        let below = self.path.strip_prefix(&self.root).unwrap_or(&self.path).parent();
        below.into_iter().flat_map(Path::components).filter_map(|part| part.as_os_str().to_str())
    }
}

/// As [`expand_as`], with the folder that each file was found in.
///
/// # Errors
/// As [`expand`].
pub(super) fn find<P: AsRef<Path>>(
    inputs: &[P],
    told: Option<FileFormat>,
    stores: Option<&Arc<dyn Objects>>,
) -> Result<Vec<Found>> {
    let mut found = Vec::new();
    for input in inputs {
        let (mut files, input) = (Vec::new(), input.as_ref());
        if is_url(input) {
            found.extend(find_objects(input, told, stores)?);
            continue;
        }
        expand_one(input, told, &mut files)?;
        let root: PathBuf = match input.is_dir() {
            true => input.to_path_buf(),
            false if input.exists() => input.parent().map(Path::to_path_buf).unwrap_or_default(),
            false => input.components().take_while(|part| !is_pattern(part.as_ref())).collect(),
        };
        found.extend(files.into_iter().map(|path| Found { path, root: root.clone(), object: None }));
    }
    let mut seen = HashSet::new();
    let mut unique = Vec::with_capacity(found.len());
    for file in found {
        let identity = match &file.object {
            Some(_) => file.path.clone(),
            None => file.path.canonicalize().map_err(|e| IngestError::os(&file.path, "open", e))?,
        };
        if seen.insert(identity) {
            unique.push(file);
        }
    }
    Ok(unique)
}

/// The objects of a URL.
fn find_objects(input: &Path, told: Option<FileFormat>, stores: Option<&Arc<dyn Objects>>) -> Result<Vec<Found>> {
    let url = input.to_str().unwrap_or_default();
    found_at(url, objects::given(stores, input)?.find(url)?, told)
}

/// As [`find`], of the objects that a store has at a URL.
///
/// # Errors
/// If none of them can be read, or one that a pattern names can't.
pub(super) fn found_at(url: &str, objects: Vec<Object>, told: Option<FileFormat>) -> Result<Vec<Found>> {
    let several = url.ends_with('/') || objects::is_pattern(url);
    let root: String = match several {
        true => url.split_inclusive('/').take_while(|part| !objects::is_pattern(part) && part.ends_with('/')).collect(),
        false => url.rsplit_once('/').map_or(url, |(folder, _)| folder).to_owned(),
    };
    let mut found = Vec::new();
    for object in objects {
        let path = PathBuf::from(&object.url);
        // Of a folder only what can be read is asked for.
        if !url.ends_with('/') {
            check_extension(&path, told)?;
        } else if !is_importable(&path, told) {
            continue;
        }
        found.push(Found { path, root: PathBuf::from(&root), object: Some(object) });
    }
    if found.is_empty() {
        let url = url.to_owned();
        return Err(match objects::is_pattern(&url) {
            true => IngestError::NoMatch { pattern: url },
            false => IngestError::NothingIn { directory: url },
        });
    }
    Ok(found)
}

fn expand_one(input: &Path, told: Option<FileFormat>, files: &mut Vec<PathBuf>) -> Result<()> {
    match std::fs::metadata(input) {
        Ok(metadata) if metadata.is_dir() => expand_directory(input, told, files),
        Ok(metadata) => add_file(input, &metadata, told, files),
        // A name that exists is itself even where it looks like a pattern.
        Err(_) if is_pattern(input) => expand_pattern(input, told, files),
        Err(e) => Err(IngestError::os(input, "open", e)),
    }
}

fn add_file(path: &Path, metadata: &Metadata, told: Option<FileFormat>, files: &mut Vec<PathBuf>) -> Result<()> {
    // What can be read once only would be empty the second time, and opening a pipe waits for its writer.
    if !metadata.is_file() {
        let what = format!("{}: not a regular file; pipe it in, as -", path.display());
        return Err(IngestError::Option { what });
    }
    check_extension(path, told)?;
    files.push(path.to_path_buf());
    Ok(())
}

fn is_pattern(input: &Path) -> bool {
    input.to_str().is_some_and(|text| text.contains(['*', '?', '[']))
}

fn is_importable(path: &Path, told: Option<FileFormat>) -> bool {
    told.is_some() || format::of_name(path).0.is_some()
}

fn is_hidden(path: &Path) -> bool {
    // Spark and Hive mark what is not data with an underscore.
    path.file_name().and_then(|n| n.to_str()).is_some_and(|name| name.starts_with(['.', '_']))
}

fn check_extension(path: &Path, told: Option<FileFormat>) -> Result<()> {
    if is_importable(path, told) {
        return Ok(());
    }
    Err(IngestError::UnknownExtension {
        path: path.display().to_string(),
        extension: path.extension().map(|e| e.to_string_lossy().into_owned()).unwrap_or_default(),
        known: format::known(),
    })
}

fn expand_directory(directory: &Path, told: Option<FileFormat>, files: &mut Vec<PathBuf>) -> Result<()> {
    let before = files.len();
    let mut open = vec![directory.to_path_buf()];
    while let Some(folder) = open.pop() {
        let entries = std::fs::read_dir(&folder).map_err(|e| IngestError::os(&folder, "list", e))?;
        for entry in entries {
            let entry = entry.map_err(|e| IngestError::os(&folder, "list", e))?;
            let path = entry.path();
            if is_hidden(&path) {
                continue;
            }
            let kind = entry.file_type().map_err(|e| IngestError::os(&path, "read the type of", e))?;
            // Links to directories are not followed, so that a cycle can't be walked for ever.
            if kind.is_dir() {
                open.push(path);
            } else if is_importable(&path, told) {
                // A link that leads nowhere is data that is missing.
                let metadata = std::fs::metadata(&path).map_err(|e| IngestError::os(&path, "open", e))?;
                if metadata.is_file() {
                    files.push(path);
                }
            }
        }
    }
    if files.len() == before {
        return Err(IngestError::NothingIn { directory: directory.display().to_string() });
    }
    files.get_mut(before..).unwrap_or_default().sort();
    Ok(())
}

fn expand_pattern(pattern: &Path, told: Option<FileFormat>, files: &mut Vec<PathBuf>) -> Result<()> {
    let text = pattern.display().to_string();
    let paths = glob::glob_with(&text, MATCHING)
        .map_err(|e| IngestError::BadPattern { pattern: text.clone(), reason: e.msg.to_owned() })?;
    let before = files.len();
    let mut matches = Vec::new();
    for path in paths {
        matches.push(path.map_err(|e| {
            let path = e.path().to_path_buf();
            IngestError::os(&path, "list", e.into())
        })?);
    }
    matches.sort();
    for path in matches {
        let metadata = std::fs::metadata(&path).map_err(|e| IngestError::os(&path, "open", e))?;
        if metadata.is_dir() {
            // A directory among the matches may hold nothing as long as another match does.
            match expand_directory(&path, told, files) {
                Ok(()) | Err(IngestError::NothingIn { .. }) => {}
                Err(e) => return Err(e),
            }
        } else {
            add_file(&path, &metadata, told, files)?;
        }
    }
    if files.len() == before {
        return Err(IngestError::NoMatch { pattern: text });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
