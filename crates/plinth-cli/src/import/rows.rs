//! Rows that are imported to a table that can be written to.

use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use arrow_array::{RecordBatch, new_null_array};
use arrow_cast::cast;
use arrow_schema::{Schema, SchemaRef};
use plinth_format::{FileSummary, WriterOptions};
use plinth_rowstore::{Table, TableError, TableOptions};
use plinth_sql::takes_rows_as_they_are;

use crate::error::{Failure, Result};

/// Batches that wait to be written.
const AHEAD: usize = 2;

/// An import that is under way. Dropped before it is finished, it has changed nothing.
pub(super) struct RowImport {
    schema: SchemaRef,
    batches: SyncSender<Option<RecordBatch>>,
    thread: JoinHandle<Result<FileSummary>>,
    rows: u64,
}

impl RowImport {
    /// Begins to write rows of some columns, which are the table's by their names.
    pub(super) fn begin(folder: &Path, columns: &Schema, writer: WriterOptions) -> Result<Self> {
        let options = TableOptions { writer, background: false, ..TableOptions::default() };
        let table = Table::open(folder, options).map_err(Failure::new)?;
        let schema = table.schema();
        if let Some(other) = columns.fields().iter().find(|field| schema.index_of(field.name()).is_err()) {
            let (folder, name) = (folder.display(), other.name());
            return Err(Failure::new(format!("{folder}: the table has no column {name:?}")));
        }
        if !takes_rows_as_they_are(&table.notes(), columns) {
            return Err(Failure::new(format!(
                "{0}: the table has DEFAULT or CHECK, which an import does not heed; plinth sql does: INSERT INTO {1} SELECT * FROM \
                 'file'",
                folder.display(),
                folder.file_name().unwrap_or_default().display()
            )));
        }
        let (batches, received) = sync_channel(AHEAD);
        let thread = std::thread::Builder::new().name("plinth-import".into()).spawn(move || import(table, received))?;
        Ok(Self { schema, batches, thread, rows: 0 })
    }

    pub(super) fn write(&mut self, batch: &RecordBatch) -> Result {
        let columns = self.schema.fields().iter().map(|field| match batch.column_by_name(field.name()) {
            Some(column) => cast(column, field.data_type()),
            None => Ok(new_null_array(field.data_type(), batch.num_rows())),
        });
        let rows = RecordBatch::try_new(SchemaRef::clone(&self.schema), columns.collect::<Result<_, _>>()?)?;
        self.rows += rows.num_rows() as u64;
        // If it can't be sent, the receiving thread has the reason, which is told at the end.
        let _ = self.batches.send(Some(rows));
        Ok(())
    }

    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    /// Commits all rows.
    pub(super) fn finish(self) -> Result<FileSummary> {
        let _ = self.batches.send(None);
        self.thread.join().unwrap_or_else(|_| Err(Failure::new("the import was given up")))
    }
}

fn import(table: Table, batches: Receiver<Option<RecordBatch>>) -> Result<FileSummary> {
    let bytes =
        |table: &Table| -> u64 { table.snapshot().segments().iter().map(|segment| segment.file.byte_len()).sum() };
    let before = bytes(&table);
    let rows = std::iter::from_fn(|| match batches.recv() {
        Ok(batch) => batch.map(Ok),
        // It ended before it was finished.
        Err(_) => Some(Err(TableError::ReadOnly)),
    });
    let committed = table.import(rows).map_err(Failure::new)?;
    let file_bytes = bytes(&table).saturating_sub(before);
    table.close().map_err(Failure::new)?;
    Ok(FileSummary { rows: committed.inserted, file_bytes })
}
