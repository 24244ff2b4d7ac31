//! Where rows go: standard output, or a file that appears when it is complete.

use std::io::{BufWriter, Stdout, Write};
use std::path::Path;

use plinth_io::AtomicFile;

use crate::cli::Format;
use crate::error::{Failure, Result};
use crate::interrupt;

/// A place for bytes.
pub(crate) struct Output {
    out: BufWriter<Sink>,
}

enum Sink {
    Stdout {
        out: Stdout,
        /// Nobody reads it any more. The writers above turn its errors into text, so it is remembered here.
        broken: bool,
    },
    File(AtomicFile),
    /// Something that can't be replaced by a file: a device, a pipe.
    Other(std::fs::File),
}

impl Output {
    /// Standard output.
    pub(crate) fn stdout() -> Self {
        Self::new(Sink::Stdout { out: std::io::stdout(), broken: false })
    }

    /// A file, which replaces what has its name once it is complete.
    pub(crate) fn file(path: &Path) -> Result<Self> {
        let failed = |e: std::io::Error| Failure::new(format!("{}: can't write: {e}", path.display()));
        let sink = match path.metadata() {
            Ok(metadata) if !metadata.is_file() && !metadata.is_dir() => {
                Sink::Other(std::fs::File::options().write(true).open(path).map_err(failed)?)
            }
            // The file that a link leads to is replaced, not the link.
            Ok(_) => Self::atomic(&path.canonicalize().map_err(failed)?)?,
            Err(_) => Self::atomic(path)?,
        };
        Ok(Self::new(sink))
    }

    fn new(sink: Sink) -> Self {
        Self { out: BufWriter::with_capacity(1 << 16, sink) }
    }

    fn atomic(path: &Path) -> Result<Sink> {
        let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        interrupt::writes_into(folder.to_path_buf());
        Ok(Sink::File(AtomicFile::create(path, true).map_err(Failure::new)?))
    }

    /// Whether rows go to whoever reads standard output, rather than to a file.
    pub(crate) fn is_stdout(&self) -> bool {
        matches!(self.out.get_ref(), Sink::Stdout { .. })
    }

    /// Whether whoever read the output went away.
    pub(crate) fn is_broken(&self) -> bool {
        matches!(self.out.get_ref(), Sink::Stdout { broken: true, .. })
    }

    /// Writes what is left; a file gets its name.
    pub(crate) fn finish(mut self) -> Result {
        self.out.flush()?;
        match self.out.into_inner().map_err(|e| e.into_error())? {
            Sink::File(file) => file.commit().map(drop).map_err(Failure::new),
            Sink::Stdout { .. } | Sink::Other(_) => Ok(()),
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.out.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self {
            Self::Stdout { out, broken } => note(out.write(bytes), broken),
            Self::File(file) => file.write_all(bytes).map(|()| bytes.len()).map_err(std::io::Error::other),
            Self::Other(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        match self {
            Self::Stdout { out, broken } => note(out.flush(), broken),
            Self::File(_) => Ok(()),
            Self::Other(file) => file.flush(),
        }
    }
}

fn note<T>(result: std::io::Result<T>, broken: &mut bool) -> std::io::Result<T> {
    if result.as_ref().is_err_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe) {
        *broken = true;
    }
    result
}

/// The format a file's name asks for.
pub(crate) fn format_of(path: &Path) -> Option<Format> {
    let extension = path.extension()?.to_str()?.to_ascii_lowercase();
    Some(match extension.as_str() {
        "csv" => Format::Csv,
        "tsv" => Format::Tsv,
        "json" | "jsonl" | "ndjson" => Format::Json,
        "parquet" => Format::Parquet,
        "md" => Format::Markdown,
        _ => return None,
    })
}
