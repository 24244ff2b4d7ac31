//! The files of a table at one moment.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use arrow_schema::SchemaRef;
use plinth_format::{File, FormatError, OpenOptions, Result};
use plinth_io::{Identity, IoError};

use crate::far::FarFolder;
use crate::journal::Journal;
use crate::listed::Listed;
use crate::lock::{Shared, shared};
use crate::names;
use crate::union::SchemaUnion;

/// How often a folder is looked at again because it changed meanwhile, before that is an error.
const ATTEMPTS: usize = 100;

/// Files opened by one thread before a second is worth its start.
const FILES_A_THREAD: usize = 32;

/// Threads that open objects, which wait for the network: as many as requests of a store may be under way.
const THREADS_FAR: usize = 64;

/// A folder of Plinth files, of this machine or below the prefix of an object store.
#[derive(Clone, Debug)]
pub struct TableFolder {
    path: PathBuf,
    options: OpenOptions,
}

/// A file of a snapshot.
#[derive(Clone, Debug)]
pub struct TableFile {
    /// Where it is.
    pub path: PathBuf,
    /// Which file that was.
    pub identity: Identity,
    /// Open.
    pub file: File,
}

/// The files of a table at one moment, open, in the order of their rows.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    files: Vec<TableFile>,
    union: SchemaUnion,
}

impl TableFolder {
    /// The table in a folder.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self::with_options(path, OpenOptions::default())
    }

    /// The table in a folder, whose files are opened like this.
    pub fn with_options(path: impl Into<PathBuf>, options: OpenOptions) -> Self {
        Self { path: path.into(), options }
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How its files are opened.
    pub(crate) fn options(&self) -> &OpenOptions {
        &self.options
    }

    /// The folder in an object store, if its path is a URL.
    pub(crate) fn far(&self) -> Result<Option<FarFolder>> {
        FarFolder::of(&self.path, self.options.objects.as_ref())
    }

    /// Whether there is a file at all, which takes no complete listing to know.
    ///
    /// # Errors
    /// If the folder can't be listed.
    pub fn has_files(&self) -> Result<bool> {
        if let Some(far) = self.far()? {
            return Ok(!far.list()?.is_empty());
        }
        let failed = |e| FormatError::from(IoError::os(&self.path, "list", e));
        for entry in std::fs::read_dir(&self.path).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if names::is_visible(&entry.file_name()) && entry.path().is_file() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The files of the table at one moment: all appends up to it and none after, and of files that were compacted either
    /// those or what replaced them.
    ///
    /// # Errors
    /// If the folder can't be listed.
    pub fn list(&self) -> Result<Vec<Listed>> {
        if let Some(far) = self.far()? {
            return far.list();
        }
        let mut gone = None;
        for _ in 0..ATTEMPTS {
            let Some(names) = self.names()? else { continue };
            let listed = names.into_iter().map(|name| Listed::of(self.path.join(name)));
            match listed.collect::<Result<Vec<Option<Listed>>>>() {
                Ok(listed) => return Ok(listed.into_iter().flatten().collect()),
                // Compacted after its name was read.
                Err(FormatError::Io(e)) if e.is_not_found() => gone = Some(e.into()),
                Err(e) => return Err(e),
            }
        }
        Err(gone.unwrap_or_else(|| self.restless()))
    }

    /// Opens the table as it is at one moment. What `before` has open already is not opened again.
    ///
    /// # Errors
    /// If the folder can't be listed, a file can't be read, or two disagree about a column's type.
    pub fn open(&self, before: Option<&Snapshot>) -> Result<Snapshot> {
        let mut gone = None;
        for _ in 0..ATTEMPTS {
            match Snapshot::open_with(self.list()?, before, &self.options) {
                Err(FormatError::Io(e)) if e.is_not_found() => gone = Some(e.into()),
                other => return other,
            }
        }
        Err(gone.unwrap_or_else(|| self.restless()))
    }

    /// The names of the files that count, in order; `None` if they changed while they were read.
    fn names(&self) -> Result<Option<Vec<OsString>>> {
        let lock = shared(&self.path);
        let journal = Journal::read(&self.path)?;
        let names = self.names_under(journal.as_ref())?;
        let steady = match lock {
            Shared::Held { .. } => true,
            Shared::NeverLocked => matches!(shared(&self.path), Shared::NeverLocked),
            Shared::Unlockable => Journal::read(&self.path)? == journal,
        };
        Ok(steady.then_some(names))
    }

    /// As [`TableFolder::names`] for those who hold a lock.
    pub(crate) fn names_under(&self, journal: Option<&Journal>) -> Result<Vec<OsString>> {
        let failed = |e| FormatError::from(IoError::os(&self.path, "list", e));
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.path).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            if names::is_visible(&name) {
                names.push(name);
            }
        }
        if let Some(journal) = journal {
            journal.apply(&mut names, |name| name.as_os_str());
        }
        names.sort_by(|a, b| names::order(a, b));
        Ok(names)
    }

    fn restless(&self) -> FormatError {
        FormatError::InvalidArgument(format!("{}: changes faster than it can be read; try again", self.path.display()))
    }
}

impl Snapshot {
    /// Opens files in the order given.
    ///
    /// # Errors
    /// If a file can't be read, or two disagree about a column's type.
    pub fn open(listed: Vec<Listed>, before: Option<&Self>) -> Result<Self> {
        Self::open_with(listed, before, &OpenOptions::default())
    }

    /// As [`Snapshot::open`], with options for the files that are opened.
    ///
    /// # Errors
    /// As [`Snapshot::open`].
    pub fn open_with(listed: Vec<Listed>, before: Option<&Self>, options: &OpenOptions) -> Result<Self> {
        let known: HashMap<&Path, &TableFile> = before
            .map(|before| before.files.iter().map(|file| (file.path.as_path(), file)).collect())
            .unwrap_or_default();
        let files = open_all(listed, |listed| match known.get(listed.path.as_path()) {
            Some(known) if known.identity == listed.identity => Ok((*known).clone()),
            _ => {
                let file = match &listed.object {
                    Some(object) => File::open_object(object, options)?,
                    None => File::open_with(&listed.path, options)?,
                };
                Ok(TableFile { path: listed.path.clone(), identity: listed.identity, file })
            }
        })?;
        // Most often files were only added.
        let same = |(a, b): (&TableFile, &TableFile)| a.path == b.path && a.identity == b.identity;
        let kept = before.filter(|b| b.files.len() <= files.len() && b.files.iter().zip(&files).all(same));
        let mut union = kept.map(|before| before.union.clone()).unwrap_or_default();
        for table_file in files.iter().skip(kept.map_or(0, |before| before.files.len())) {
            union.add(table_file.file.name(), table_file.file.schema())?;
        }
        Ok(Self { files, union })
    }

    /// Opens files by their paths, in the order given.
    ///
    /// # Errors
    /// As [`Snapshot::open`].
    pub fn of_paths(paths: Vec<PathBuf>, options: &OpenOptions) -> Result<Self> {
        Self::open_with(Listed::all(paths, options.objects.as_ref())?, None, options)
    }

    /// The files in order.
    pub fn files(&self) -> &[TableFile] {
        &self.files
    }

    /// The columns of all files.
    pub fn schema(&self) -> SchemaRef {
        self.union.schema()
    }

    /// The columns of all files, to which others can be added.
    pub fn union(&self) -> &SchemaUnion {
        &self.union
    }

    /// Rows of all files.
    pub fn num_rows(&self) -> u64 {
        self.files.iter().map(|file| file.file.num_rows()).sum()
    }

    /// Bytes of all files.
    pub fn byte_len(&self) -> u64 {
        self.files.iter().map(|file| file.identity.len).sum()
    }

    /// Whether these are the files that were opened.
    pub fn is_of(&self, listed: &[Listed]) -> bool {
        self.files.len() == listed.len()
            && self.files.iter().zip(listed).all(|(a, b)| a.identity == b.identity && a.path == b.path)
    }
}

/// Opens all, on several threads if there are many.
fn open_all(listed: Vec<Listed>, open: impl Fn(Listed) -> Result<TableFile> + Sync) -> Result<Vec<TableFile>> {
    let threads = match listed.first().is_some_and(|first| first.object.is_some()) {
        true => listed.len().min(THREADS_FAR),
        false => std::thread::available_parallelism().map_or(1, usize::from).min(listed.len() / FILES_A_THREAD),
    };
    if threads <= 1 {
        return listed.into_iter().map(open).collect();
    }
    let share = listed.len().div_ceil(threads);
    let (open, mut rest) = (&open, listed.into_iter());
    std::thread::scope(|scope| {
        let shares =
            std::iter::from_fn(|| Some(rest.by_ref().take(share).collect::<Vec<_>>()).filter(|s| !s.is_empty()));
        let threads: Vec<_> =
            shares.map(|share| scope.spawn(move || share.into_iter().map(open).collect::<Result<Vec<_>>>())).collect();
        let mut all = Vec::new();
        for thread in threads {
            let died = |_| FormatError::InvalidArgument("a thread that opened files died".into());
            all.extend(thread.join().map_err(died)??);
        }
        Ok(all)
    })
}
