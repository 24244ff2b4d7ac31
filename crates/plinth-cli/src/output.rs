//! Where rows go: standard output, or a file that appears when it is complete.

use std::io::{IsTerminal, Stdout, Write};
use std::path::{Path, PathBuf};

use plinth_io::{AtomicFile, regular};

use crate::cli::Format;
use crate::error::{Failure, Result};
use crate::{interrupt, objects, screen};

/// Bytes of a result that are held back before they are handed on.
const HELD: usize = 1 << 16;

/// A place for bytes.
pub(crate) struct Output {
    sink: Sink,
    /// What was written and is still here. What is written at once is handed on at once, so that a reader gets no part
    /// of a row that a failure cuts off.
    held: Vec<u8>,
    /// Something was handed on since the result began.
    sent: bool,
    /// What is written is shown on a terminal.
    terminal: bool,
}

enum Sink {
    Stdout {
        out: Stdout,
        /// The pipe is closed. The writers above turn its errors into text, so it is remembered here.
        broken: bool,
    },
    File(AtomicFile),
    /// Something that can't be replaced by a file: a device, a pipe.
    Other {
        file: std::fs::File,
        path: PathBuf,
    },
}

impl Output {
    /// Standard output.
    pub(crate) fn stdout() -> Self {
        let out = std::io::stdout();
        let terminal = out.is_terminal();
        Self { terminal, ..Self::new(Sink::Stdout { out, broken: false }) }
    }

    /// As [`Output::file`], unless there is a file of this name that is not to be replaced.
    pub(crate) fn new_file(path: &Path, replace: bool) -> Result<Self> {
        check_name(path)?;
        objects::local(path)?;
        if !replace && path.is_file() {
            return Err(Failure::new(format!("{}: already exists; give --replace to replace it", path.display())));
        }
        Self::file(path)
    }

    /// A file, which replaces what has its name once it is complete.
    pub(crate) fn file(path: &Path) -> Result<Self> {
        let failed = |e: std::io::Error| Failure::new(format!("{}: can't write: {e}", path.display()));
        match path.metadata() {
            Ok(metadata) if !metadata.is_file() && !metadata.is_dir() => {
                let other = regular::open_sink(path).map_err(Failure::new)?;
                let terminal = other.is_terminal();
                Ok(Self { terminal, ..Self::new(Sink::Other { file: other, path: path.to_path_buf() }) })
            }
            // The file that a link leads to is replaced, not the link.
            Ok(_) => Ok(Self::new(Self::atomic(&path.canonicalize().map_err(failed)?)?)),
            Err(_) => Ok(Self::new(Self::atomic(path)?)),
        }
    }

    fn new(sink: Sink) -> Self {
        Self { sink, held: Vec::new(), sent: false, terminal: false }
    }

    fn atomic(path: &Path) -> Result<Sink> {
        let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        interrupt::writes_into(folder.to_path_buf());
        Ok(Sink::File(AtomicFile::create(path, true).map_err(Failure::new)?))
    }

    /// Whether rows go to standard output, rather than to a file.
    pub(crate) fn is_stdout(&self) -> bool {
        matches!(self.sink, Sink::Stdout { .. })
    }

    /// Whether the pipe that was written to is closed.
    pub(crate) fn is_broken(&self) -> bool {
        matches!(self.sink, Sink::Stdout { broken: true, .. })
    }

    /// Whether what was written can be taken back as a whole until the output is finished.
    fn is_provisional(&self) -> bool {
        matches!(self.sink, Sink::File(_))
    }

    /// Begins a result, which is handed on as a whole or by whole rows.
    pub(crate) fn begin(&mut self) -> std::io::Result<()> {
        self.flush()?;
        self.sent = false;
        Ok(())
    }

    /// Forgets what is held of the result. Whether a part of it is with the reader already.
    pub(crate) fn forget(&mut self) -> bool {
        self.held.clear();
        self.sent && !self.is_provisional()
    }

    /// Writes a line that was made of spelled out text and the program's own colours.
    pub(crate) fn painted(&mut self, line: &str) -> std::io::Result<()> {
        self.make_room(line.len() + 1)?;
        self.held.extend_from_slice(line.as_bytes());
        self.held.push(b'\n');
        Ok(())
    }

    /// Writes what is left; a file gets its name.
    pub(crate) fn finish(mut self) -> Result {
        self.flush()?;
        match self.sink {
            Sink::File(file) => file.commit().map(drop).map_err(Failure::new),
            Sink::Stdout { .. } | Sink::Other { .. } => Ok(()),
        }
    }

    fn make_room(&mut self, more: usize) -> std::io::Result<()> {
        if self.held.is_empty() || self.held.len() + more <= HELD { Ok(()) } else { self.send() }
    }

    fn send(&mut self) -> std::io::Result<()> {
        self.sent |= !self.held.is_empty();
        let result = self.sink.write_all(&self.held);
        self.held.clear();
        result
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.make_room(bytes.len())?;
        if self.terminal {
            screen::Clean::new(true, &mut self.held).write_all(bytes)?;
        } else {
            self.held.extend_from_slice(bytes);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.send()?;
        self.sink.flush()
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self {
            Self::Stdout { out, broken } => {
                note(out.write(bytes), broken).map_err(|e| at(Path::new("standard output"), &e))
            }
            Self::File(file) => file.write_all(bytes).map(|()| bytes.len()).map_err(std::io::Error::other),
            Self::Other { file, path } => file.write(bytes).map_err(|e| at(path, &e)),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        match self {
            Self::Stdout { out, broken } => note(out.flush(), broken).map_err(|e| at(Path::new("standard output"), &e)),
            Self::File(_) => Ok(()),
            Self::Other { file, path } => file.flush().map_err(|e| at(path, &e)),
        }
    }
}

/// An error with the place that it is about.
fn at(path: &Path, e: &std::io::Error) -> std::io::Error {
    std::io::Error::new(e.kind(), format!("{}: can't write: {e}", path.display()))
}

fn note<T>(result: std::io::Result<T>, broken: &mut bool) -> std::io::Result<T> {
    if result.as_ref().is_err_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe) {
        *broken = true;
    }
    result
}

/// Whether two paths lead to one file, be it there or not.
pub(crate) fn is_same_place(a: &Path, b: &Path) -> bool {
    let place = |path: &Path| {
        path.canonicalize().ok().or_else(|| {
            let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
            Some(folder.canonicalize().ok()?.join(path.file_name()?))
        })
    };
    a == b || place(a).is_some_and(|a| place(b).is_some_and(|b| a == b))
}

/// An error if a file's name promises what would not be in it.
pub(crate) fn check_name(path: &Path) -> Result {
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default().to_ascii_lowercase();
    let what = match extension.as_str() {
        "plinth" => "COPY (SELECT ...) TO writes Plinth files, --output does not",
        "arrow" | "feather" => "Arrow is written as a stream: give it a name that ends in .arrows",
        "gz" | "zst" | "zstd" | "bz2" | "xz" | "lz4" | "br" | "zip" => {
            "rows are written uncompressed: leave out the last part of the name, or pipe them through a program"
        }
        "xlsx" | "xls" | "ods" | "html" | "htm" | "xml" | "pdf" | "yaml" | "yml" | "toml" | "docx" | "orc" | "avro"
        | "sqlite" | "sqlite3" | "duckdb" | "db" | "sql" => {
            "no such file is written: give it a name that ends in .csv, .tsv, .json, .md, .parquet or .arrows"
        }
        _ => return Ok(()),
    };
    Err(Failure::new(format!("{}: {what}", path.display())))
}

/// The format a file's name asks for.
pub(crate) fn format_of(path: &Path) -> Option<Format> {
    let extension = path.extension()?.to_str()?.to_ascii_lowercase();
    Some(match extension.as_str() {
        "csv" => Format::Csv,
        "tsv" => Format::Tsv,
        "json" | "jsonl" | "ndjson" => Format::Json,
        "parquet" => Format::Parquet,
        "arrows" => Format::Arrow,
        "md" => Format::Markdown,
        _ => return None,
    })
}
