//! Where imported rows go.

use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use arrow_schema::Schema;
use plinth_format::{FileSummary, Writer, WriterOptions};
use plinth_io::objects::is_url;
use plinth_io::regular::kind_of;
use plinth_rowstore::Table;
use plinth_table::{Appender, ObjectWriter, TableFolder};

use super::rows::RowImport;
use crate::error::{Failure, Result};
use crate::objects;

/// What an import makes.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    /// A file.
    File {
        /// Its path.
        path: PathBuf,
        /// Whether it may exist.
        replace: bool,
    },
    /// One more file of a table, which is a folder; or rows of one that can be written to.
    Table(PathBuf),
}

/// A target being written.
pub(super) enum Output {
    File(Box<Writer>),
    Table(Box<Appender>),
    Object(Box<ObjectWriter>),
    Rows(RowImport),
}

impl Target {
    /// The path it is named by.
    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::File { path, .. } | Self::Table(path) => path,
        }
    }

    /// The folder that temporary files are in.
    pub(super) fn folder(&self) -> PathBuf {
        match self {
            _ if is_url(self.path()) => std::env::temp_dir(),
            Self::Table(folder) => folder.clone(),
            Self::File { path, .. } => match path.parent() {
                Some(parent) if !parent.as_os_str().is_empty() => parent.to_path_buf(),
                _ => PathBuf::from("."),
            },
        }
    }

    /// A folder for scratch files that is there already.
    pub(super) fn scratch(&self) -> PathBuf {
        let folder = self.folder();
        let there = folder.ancestors().find(|folder| folder.is_dir()).map(Path::to_path_buf);
        there.unwrap_or_else(|| PathBuf::from("."))
    }

    /// Finds out before any input is read what can be known: a name that is taken is the cheapest of it.
    pub(super) fn check(&self) -> Result {
        match self {
            // The store says the rest when it is asked.
            Self::Table(folder) if is_url(folder) => Ok(()),
            Self::Table(folder) => match folder.metadata() {
                Ok(metadata) if !metadata.is_dir() => {
                    let kind = kind_of(metadata.file_type()).unwrap_or("a file");
                    let folder = folder.display();
                    Err(Failure::new(format!(
                        "{folder}: is {kind}, not a folder; --append adds a file to a folder, --to makes one file"
                    )))
                }
                _ => Ok(()),
            },
            Self::File { path, replace } => {
                if is_url(path) && path.to_str().is_some_and(|url| url.ends_with('/')) {
                    let path = path.display();
                    return Err(Failure::new(format!(
                        "{path}: name a file in it ({path}name.plinth), or --append to it"
                    )));
                }
                if path.extension().is_none_or(|e| e != "plinth") {
                    let mut better = path.clone();
                    better.set_extension("plinth");
                    let (path, better) = (path.display(), better.display());
                    let what = format!("{path}: the output's name must end in .plinth (such as {better})");
                    return Err(Failure::new(what));
                }
                if is_url(path) {
                    return Ok(());
                }
                if !replace && path.symlink_metadata().is_ok() {
                    let path = path.display();
                    return Err(Failure::new(format!("{path}: already exists; give --replace to replace it")));
                }
                let folder = self.folder();
                if !folder.is_dir() {
                    return Err(Failure::new(format!("{}: no such directory", folder.display())));
                }
                Ok(())
            }
        }
    }

    pub(super) fn create(&self, schema: &Schema, options: WriterOptions) -> Result<Output> {
        Ok(match self {
            Self::File { path, replace } if is_url(path) => {
                let options = WriterOptions { replace: *replace, ..options };
                Output::Object(Box::new(ObjectWriter::create(objects::stores(), path.clone(), schema, options)?))
            }
            Self::Table(folder) if is_url(folder) => {
                let folder = TableFolder::with_options(folder, objects::options());
                Output::Table(Box::new(Appender::create_in(folder, schema, options)?))
            }
            Self::File { path, replace } => {
                Output::File(Box::new(Writer::create(path, schema, WriterOptions { replace: *replace, ..options })?))
            }
            Self::Table(folder) if Table::is_table(folder) => Output::Rows(RowImport::begin(folder, schema, options)?),
            Self::Table(folder) => Output::Table(Box::new(Appender::create(folder, schema, options)?)),
        })
    }
}

impl Output {
    pub(super) fn write(&mut self, batch: &RecordBatch) -> Result {
        match self {
            Self::File(writer) => writer.write(batch)?,
            Self::Table(appender) => appender.write(batch)?,
            Self::Object(writer) => writer.write(batch)?,
            Self::Rows(import) => import.write(batch)?,
        }
        Ok(())
    }

    pub(super) fn rows(&self) -> u64 {
        match self {
            Self::File(writer) => writer.rows(),
            Self::Table(appender) => appender.rows(),
            Self::Object(writer) => writer.rows(),
            Self::Rows(import) => import.rows(),
        }
    }

    pub(super) fn finish(self) -> Result<FileSummary> {
        Ok(match self {
            Self::File(writer) => writer.finish()?,
            Self::Table(appender) => appender.finish()?,
            Self::Object(writer) => writer.complete()?.send()?,
            Self::Rows(import) => import.finish()?,
        })
    }
}
