//! Records that were left out, one JSON object a line.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::error::{BadRecord, IngestError, Result};
use crate::values::json_string::json_string;

/// Writes bad records down.
pub(crate) struct RejectsFile {
    path: PathBuf,
    file: BufWriter<File>,
    max: Option<u64>,
    count: u64,
}

impl RejectsFile {
    /// Creates or empties the file.
    pub(crate) fn create(path: &Path, max: Option<u64>) -> Result<Self> {
        // A pipe or a device takes them as well, as long as it does not keep the import waiting.
        let file = match path.metadata() {
            Ok(metadata) if !metadata.is_file() && !metadata.is_dir() => plinth_io::regular::open_sink(path)?,
            _ => File::create(path).map_err(|e| IngestError::os(path, "create", e))?,
        };
        Ok(Self { path: path.to_path_buf(), file: BufWriter::new(file), max, count: 0 })
    }

    /// Adds a record, unless it is one too many.
    pub(crate) fn add(&mut self, bad: BadRecord) -> Result<()> {
        self.count += 1;
        let mut line = b"{\"file\":".to_vec();
        json_string(&mut line, &bad.path);
        line.extend(format!(",\"line\":{},\"offset\":{},\"column\":", bad.line, bad.offset).bytes());
        match &bad.column {
            Some(column) => json_string(&mut line, column),
            None => line.extend(b"null"),
        }
        line.extend(b",\"reason\":");
        json_string(&mut line, &bad.reason);
        match std::str::from_utf8(&bad.raw) {
            Ok(text) => {
                line.extend(b",\"raw\":");
                json_string(&mut line, text);
            }
            Err(_) => {
                line.extend(b",\"raw_hex\":\"");
                bad.raw.iter().for_each(|byte| line.extend(format!("{byte:02x}").bytes()));
                line.push(b'"');
            }
        }
        if bad.len > bad.raw.len() as u64 {
            line.extend(format!(",\"length\":{}", bad.len).bytes());
        }
        line.extend(b"}\n");
        self.file.write_all(&line).map_err(|e| IngestError::os(&self.path, "write to", e))?;
        match self.max {
            Some(max) if self.count > max => {
                self.flush()?;
                Err(IngestError::TooManyRejects { max, last: Box::new(bad) })
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn flush(&mut self) -> Result<()> {
        self.file.flush().map_err(|e| IngestError::os(&self.path, "write to", e))
    }
}
