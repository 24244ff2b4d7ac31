//! One way in for every format: what is named, of which format it is, and which reader takes it.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use plinth_io::Io;

use super::inputs::{Found, STDIN};
use super::listing::Listing;
use crate::batch_source::BatchSource;
use crate::error::{IngestError, Result};
use crate::format::{FileFormat, other_format};
use crate::options::{ParquetOptions, Rejects, Sample, SourceOptions};
use crate::parquet::{ParquetFile, ParquetSource};
use crate::stream::input::{Input, Spooled};
use crate::{csv, json};

/// Opens files, directories, patterns, or `-` for standard input, all of one format, as one stream of batches.
///
/// # Errors
/// If an input is missing, damaged or of another format than the others, if a schema can't be inferred or does not meet
/// the files; with one line that says what, where, and what to do.
pub fn open<P: AsRef<Path>>(inputs: &[P], options: &SourceOptions) -> Result<Box<dyn BatchSource>> {
    open_with(inputs, options, std::io::stdin())
}

/// As [`open`], with something else for standard input.
///
/// # Errors
/// As [`open`].
pub fn open_with<P: AsRef<Path>>(
    inputs: &[P],
    options: &SourceOptions,
    stdin: impl Read + Send + 'static,
) -> Result<Box<dyn BatchSource>> {
    if inputs.iter().any(|input| input.as_ref() == Path::new(STDIN)) {
        if inputs.len() > 1 {
            return Err(IngestError::Option {
                what: "standard input (-) can't be read together with files".to_owned(),
            });
        }
        return open_stream(stdin, options);
    }
    open_listing(&Listing::of(inputs, options)?, options)
}

/// Opens files that were listed.
///
/// # Errors
/// As [`open`].
pub fn open_listing(listing: &Listing, options: &SourceOptions) -> Result<Box<dyn BatchSource>> {
    let rejects = match &options.rejects {
        Rejects::Collect { to, .. } => Some((to, "what is left out of it")),
        Rejects::Error => None,
    };
    let written = options.written.iter().map(|to| (to, "what is written"));
    for (to, what) in rejects.into_iter().chain(written) {
        let Ok(place) = to.canonicalize() else { continue };
        if listing.files.iter().any(|file| file.path.canonicalize().is_ok_and(|file| file == place)) {
            let what = format!("{}: is an input; name another file for {what}", to.display());
            return Err(IngestError::Option { what });
        }
    }
    if let Some(first) = listing.files.first() {
        check_meant(&first.path, listing.format, options)?;
    }
    let files = listing.files.clone();
    match &listing.partitions {
        None => open_files(files, listing.format, options),
        Some(partitions) => {
            let inner = open_files(files, listing.format, &partitions.options_of_files(options))?;
            partitions.joined(inner, options.schema.as_ref(), options.ignore_extra)
        }
    }
}

fn open_files(files: Vec<Found>, format: FileFormat, options: &SourceOptions) -> Result<Box<dyn BatchSource>> {
    let far = |file: &Found| Some((file.object.clone()?, Arc::clone(options.objects.as_ref()?)));
    if format == FileFormat::Parquet {
        let file = |file: Found| match far(&file) {
            Some((object, stores)) => Ok(ParquetFile::object(file.path, stores.open(&object, Io::shared())?)),
            None => Ok(ParquetFile::new(file.path)),
        };
        return open_parquet(files.into_iter().map(file).collect::<Result<_>>()?, options);
    }
    let input = |file: Found| match far(&file) {
        Some((object, stores)) => Arc::new(Input::object(object, stores)),
        None => Arc::new(Input::file(file.path)),
    };
    open_text(files.into_iter().map(input).collect(), format, options)
}

/// An error if an option was said that the files' format does not have: it would be ignored.
fn check_meant(path: &Path, format: FileFormat, options: &SourceOptions) -> Result<()> {
    let Some(meant) = options.meant.iter().find(|meant| !meant.formats.contains(&format)) else { return Ok(()) };
    let formats = meant.formats.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let (option, path) = (meant.option, path.display());
    Err(IngestError::Option { what: format!("{option}: is an option of {formats}, and {path} is {format}") })
}

fn open_stream(mut stdin: impl Read + Send + 'static, options: &SourceOptions) -> Result<Box<dyn BatchSource>> {
    let name = Path::new("standard input");
    let mut head = Vec::new();
    stdin.by_ref().take(16).read_to_end(&mut head).map_err(|e| IngestError::os(name, "read", e))?;
    let parquet = head.starts_with(b"PAR1").then_some(FileFormat::Parquet);
    // An object opens nothing but JSON; everything else could be CSV of some kind.
    let json = (head.starts_with(b"{") || options.json.root.is_some()).then_some(FileFormat::Ndjson);
    let format = options.format.or(parquet).or(json);
    let format = format.ok_or_else(|| match other_format(&head) {
        Some(what) => IngestError::damaged(name, what),
        None => IngestError::UnknownFormat { path: name.display().to_string() },
    })?;
    check_meant(name, format, options)?;
    if format == FileFormat::Parquet {
        let spooled = Arc::new(Spooled::copy(&head, stdin, &options.spill)?);
        return open_parquet(vec![ParquetFile::spooled(name.to_path_buf(), spooled)], options);
    }
    if options.schema.is_some() {
        let input = Input::stream(head, Box::new(stdin));
        return open_text(vec![Arc::new(input)], format, options);
    }
    // It can't be read once more if a sample turns out to have been too small.
    let options = SourceOptions { sample: Sample::Everything, ..options.clone() };
    let input = Input::spooled(&head, Spooled::copy(&head, stdin, &options.spill)?);
    open_text(vec![Arc::new(input)], format, &options)
}

fn open_parquet(files: Vec<ParquetFile>, options: &SourceOptions) -> Result<Box<dyn BatchSource>> {
    let parquet = ParquetOptions {
        threads: options.threads,
        ahead_bytes: options.ahead_bytes,
        binary_as_text: options.binary_as_text,
        schema: options.schema.clone(),
        ignore_extra: options.ignore_extra,
    };
    Ok(Box::new(ParquetSource::open_files(files, &parquet)?))
}

fn open_text(inputs: Vec<Arc<Input>>, format: FileFormat, options: &SourceOptions) -> Result<Box<dyn BatchSource>> {
    match format {
        FileFormat::Ndjson => json::open(inputs, options),
        _ => csv::open(inputs, format, options),
    }
}
