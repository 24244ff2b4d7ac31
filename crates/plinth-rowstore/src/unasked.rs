//! Files of writable tables that a pattern matches by accident.

use std::path::Path;

use crate::segment::number;

/// What is to be said of a pattern that matches files of rows of writable tables, and does not ask for such (`_segment-*.plinth`): rows
/// may have been deleted from them, and others are in the table's log.
pub fn unasked_segments(pattern: &str, mut found: impl Iterator<Item = impl AsRef<Path>>) -> Option<String> {
    let last = pattern.rsplit(['/', std::path::MAIN_SEPARATOR]).next().unwrap_or(pattern);
    if last.starts_with('_') {
        return None;
    }
    let is_segment = |path: &Path| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with("_segment-") && number(name).is_some())
    };
    let segment = found.find(|path| is_segment(path.as_ref()))?;
    let folder = segment.as_ref().parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Some(format!(
        "{pattern}: {} is a table that can be changed row by row, whose log and deletes lie beside the files of its rows; name the \
         folder for the table, or _segment-*.plinth for these files as they are",
        folder.display()
    ))
}
