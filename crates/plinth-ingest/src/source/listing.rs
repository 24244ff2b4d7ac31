//! The files that are read as one table.

use std::path::Path;

use plinth_io::Object;

use super::inputs::{Found, find, found_at};
use super::partitions::Partitions;
use crate::error::{IngestError, Result};
use crate::format::{FileFormat, of_name};
use crate::options::SourceOptions;

/// Files that were found, all of one format, and the columns that the names of their folders are. An import and a query that
/// name the same read the same.
#[derive(Clone, Debug)]
pub struct Listing {
    pub(super) format: FileFormat,
    pub(super) files: Vec<Found>,
    pub(super) partitions: Option<Partitions>,
}

impl Listing {
    /// Those of files, directories and patterns, or of URLs.
    ///
    /// # Errors
    /// If an input is missing, holds nothing that can be read, or is of another format than the others; if the folders of some files
    /// name other columns than those of others.
    pub fn of<P: AsRef<Path>>(inputs: &[P], options: &SourceOptions) -> Result<Self> {
        Self::of_found(find(inputs, options.format, options.objects.as_ref())?, options)
    }

    /// Those of the objects that a store has at a URL.
    ///
    /// # Errors
    /// As [`Listing::of`].
    pub fn of_objects(url: &str, objects: Vec<Object>, options: &SourceOptions) -> Result<Self> {
        Self::of_found(found_at(url, objects, options.format)?, options)
    }

    fn of_found(files: Vec<Found>, options: &SourceOptions) -> Result<Self> {
        let partitions = if options.hive { Partitions::of(&files)? } else { None };
        Ok(Self { format: one_format(&files, options.format)?, files, partitions })
    }

    /// What the files are.
    pub fn format(&self) -> FileFormat {
        self.format
    }

    /// The columns that the names of folders are, in the order of the folders.
    pub fn columns(&self) -> &[String] {
        self.partitions.as_ref().map_or(&[], Partitions::columns)
    }

    /// The files in their order: where they are, as their store told of them if they are objects, and the values of the columns of
    /// their folders.
    pub fn files(&self) -> impl Iterator<Item = (&Path, Option<&Object>, &[Option<String>])> {
        self.files.iter().map(|file| {
            let values = self.partitions.as_ref().map_or(&[][..], |partitions| partitions.values(&file.path));
            (file.path.as_path(), file.object.as_ref(), values)
        })
    }

    /// Checks that no column of the files has the name of one of the folders.
    ///
    /// # Errors
    /// If one has.
    pub fn check_columns<'a>(&self, of_files: impl IntoIterator<Item = &'a str>) -> Result<()> {
        self.partitions.as_ref().map_or(Ok(()), |partitions| partitions.check(of_files))
    }
}

/// The format that all files have.
fn one_format(files: &[Found], told: Option<FileFormat>) -> Result<FileFormat> {
    let mut first: Option<(&Path, FileFormat)> = None;
    for Found { path, .. } in files {
        let (format, compression) = of_name(path);
        let display = || path.display().to_string();
        let format = told.or(format).ok_or_else(|| IngestError::UnknownFormat { path: display() })?;
        if let (FileFormat::Parquet, Some(compression)) = (format, compression) {
            let what = format!("Parquet within .{} can't be read; decompress it first", compression.extension());
            return Err(IngestError::damaged(path, what));
        }
        match first {
            None => first = Some((path, format)),
            Some((other, other_format)) if other_format != format => {
                return Err(IngestError::MixedFormats {
                    first: other.display().to_string(),
                    first_format: other_format,
                    second: display(),
                    second_format: format,
                });
            }
            Some(_) => {}
        }
    }
    first.map(|(_, format)| format).ok_or_else(|| IngestError::Option { what: "no input given".to_owned() })
}
