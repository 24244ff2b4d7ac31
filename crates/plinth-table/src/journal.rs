//! The journal of a compaction, which makes replacing many files by one a single step.
//!
//! It is a file of lines: what it is, the name of the new file, the names of those it replaces, and the xxh3-64 of the
//! lines before. It says: *where the new
//! file is there, the others are not part of the table any more.* So it has no effect when it is written; renaming the new
//! file into place is what replaces the others, at once and for everybody; removing them, and then the journal, only tidies
//! up. A process that finds a journal can tell from the folder alone how far its writer got, and finish the work.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::Path;

use plinth_format::{FormatError, Result};
use plinth_io::{AtomicFile, IoError, regular, sync_folder};

use crate::sealed::{sealed, unsealed};

const NAME: &str = ".plinth-compact";
/// Bytes a journal may have: the names of more files than a folder is made for.
const LONGEST: u64 = 256 << 20;
const HEADING: &str = "plinth compaction 2";

/// What a journal says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Journal {
    /// The name of the new file.
    pub(crate) by: String,
    /// The names of the files that it replaces.
    pub(crate) replaced: Vec<String>,
}

impl Journal {
    /// The journal of a folder, if there is one.
    pub(crate) fn read(folder: &Path) -> Result<Option<Self>> {
        let path = folder.join(NAME);
        let text = match regular::read_text(&path, LONGEST) {
            Ok(text) => text,
            Err(e) if e.is_not_found() => return Ok(None),
            Err(e) => return Err(e.into()),
        };
        Self::parse(&text).map(Some).ok_or_else(|| FormatError::Corrupt {
            file: path.display().to_string(),
            what: "not the journal of a compaction, or one of a newer Plinth; if no newer one is in use, remove it"
                .into(),
        })
    }

    fn parse(text: &str) -> Option<Self> {
        let mut lines = unsealed(text)?.split('\n');
        if lines.next()? != HEADING {
            return None;
        }
        let by = lines.next()?.to_owned();
        let replaced: Vec<String> = lines.map(str::to_owned).collect();
        let inside = |name: &String| Self::can_name(name);
        let fine = inside(&by) && !replaced.is_empty() && replaced.iter().all(inside) && !replaced.contains(&by);
        fine.then_some(Self { by, replaced })
    }

    /// Whether a name can stand in a journal: that of a visible file of the folder, in one line.
    pub(crate) fn can_name(name: &str) -> bool {
        crate::names::is_visible(OsStr::new(name)) && !name.contains(['\n', '/', '\\', '\0'])
    }

    /// Writes it, durably. The folder is locked.
    pub(crate) fn write(&self, folder: &Path) -> Result<()> {
        let lines = [HEADING, &self.by].into_iter().chain(self.replaced.iter().map(String::as_str));
        let text = sealed(lines.flat_map(|line| [line, "\n"]).collect());
        let mut file = AtomicFile::create(folder.join(NAME), true)?;
        file.write_all(text.as_bytes())?;
        file.commit()?;
        Ok(())
    }

    /// Takes the files it replaces from a list of names, if it is in effect.
    pub(crate) fn apply<T>(&self, files: &mut Vec<T>, name: impl Fn(&T) -> &OsStr) {
        if files.iter().any(|file| name(file) == OsStr::new(&self.by)) {
            let replaced: std::collections::HashSet<&OsStr> = self.replaced.iter().map(OsStr::new).collect();
            files.retain(|file| !replaced.contains(name(file)));
        }
    }

    /// Finishes the compaction whose journal was left in a folder, if one was. The folder is locked.
    pub(crate) fn finish(folder: &Path, step: &mut dyn FnMut(&'static str) -> Result<()>) -> Result<()> {
        let Some(journal) = Self::read(folder)? else { return Ok(()) };
        let path = folder.join(NAME);
        let by = folder.join(&journal.by);
        if by.try_exists().map_err(|e| IoError::os(&by, "look for", e))? {
            for name in &journal.replaced {
                remove(&folder.join(name))?;
                step("removed a file")?;
            }
            // A journal that was gone while a file it replaces was still there would bring that file's rows back.
            sync_folder(folder)?;
            step("synced the removals")?;
        }
        remove(&path)?;
        step("removed the journal")?;
        Ok(sync_folder(folder)?)
    }
}

/// Removes a file that may be gone already.
fn remove(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(e) if e.kind() != ErrorKind::NotFound => Err(IoError::os(path, "remove", e).into()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_is_read_as_written_and_nothing_else_is() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(Journal::read(dir.path()).unwrap(), None);
        let journal = Journal { by: "1-2.plinth".into(), replaced: vec!["1.plinth".into(), "ä ö.plinth".into()] };
        journal.write(dir.path()).unwrap();
        assert_eq!(Journal::read(dir.path()).unwrap(), Some(journal));
        let text = std::fs::read_to_string(dir.path().join(NAME)).unwrap();
        for cut in 0..text.len() - 1 {
            let Some(part) = text.get(..cut) else { continue };
            assert_eq!(Journal::parse(part), None, "{part:?}");
        }
        for at in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 1;
            let Ok(other) = String::from_utf8(bytes) else { continue };
            assert_eq!(Journal::parse(&other), None, "{other:?}");
        }
        for lines in [
            "plinth compaction 1\na.plinth\nb.plinth\n",
            "plinth compaction 2\na.plinth\n../b.plinth\n",
            "plinth compaction 2\na.plinth\n/b.plinth\n",
            "plinth compaction 2\na.plinth\nb.parquet\n",
            "plinth compaction 2\na.plinth\na.plinth\n",
            "plinth compaction 2\na.plinth\n",
        ] {
            assert_eq!(Journal::parse(&sealed(lines.to_owned())), None, "{lines:?}");
        }
        std::fs::write(dir.path().join(NAME), "something").unwrap();
        assert!(Journal::read(dir.path()).unwrap_err().to_string().contains("not the journal"));
    }
}
