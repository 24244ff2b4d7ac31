//! The end of a folder of files as one table: something else takes the files' place.

use std::path::{Path, PathBuf};

use plinth_format::{FormatError, OpenOptions, Result};
use plinth_io::{IoError, sync_folder};

use crate::folder::{Snapshot, TableFolder};
use crate::journal::Journal;
use crate::listed::Listed;
use crate::lock::{self, Lock};

/// A folder whose files are about to be replaced as a whole. Compactions are kept out until this is dropped; appends are
/// noticed by [`Handover::commit`].
#[derive(Debug)]
pub struct Handover {
    folder: PathBuf,
    files: Snapshot,
    _busy: Lock,
}

impl Handover {
    /// Opens the files of a folder.
    ///
    /// # Errors
    /// If the folder is being compacted, or a file can't be opened.
    pub fn begin(folder: impl AsRef<Path>, options: OpenOptions) -> Result<Self> {
        let folder = folder.as_ref();
        let busy = lock::compacting(folder)?;
        let files = TableFolder::with_options(folder, options).open(None)?;
        Ok(Self { folder: folder.to_path_buf(), files, _busy: busy })
    }

    /// The files that are replaced.
    pub fn files(&self) -> &Snapshot {
        &self.files
    }

    /// Has `place` put, durably, what makes readers look at the files no more, then removes them. The folder is locked meanwhile.
    ///
    /// # Errors
    /// If files were added since [`Handover::begin`], which changes nothing, or `place` fails.
    pub fn commit<E: From<FormatError>>(&self, place: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
        let _alone = lock::exclusive(&self.folder)?;
        self.unchanged()?;
        place()?;
        Ok(self.remove()?)
    }

    fn unchanged(&self) -> Result<()> {
        Journal::finish(&self.folder, &mut |_| Ok(()))?;
        let names = TableFolder::new(&self.folder).names_under(None)?;
        let now = names.into_iter().map(|name| Listed::of(self.folder.join(name))).collect::<Result<Vec<_>, _>>()?;
        if self.files.is_of(&now.into_iter().flatten().collect::<Vec<_>>()) {
            return Ok(());
        }
        let what = format!("{}: others have changed the files meanwhile; try again", self.folder.display());
        Err(FormatError::InvalidArgument(what))
    }

    fn remove(&self) -> Result<()> {
        for file in self.files.files() {
            std::fs::remove_file(&file.path).map_err(|e| IoError::os(&file.path, "remove", e))?;
        }
        Ok(sync_folder(&self.folder)?)
    }
}
