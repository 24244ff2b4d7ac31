//! Tables to write, and their rows as they should be read.

use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema::SchemaRef;
use plinth_format::{FileSummary, WriterOptions};
use plinth_table::{Appender, Result, Snapshot, TableFolder, widen};

pub(crate) fn options() -> WriterOptions {
    WriterOptions { threads: 1, ..WriterOptions::default() }
}

/// A batch of one column of numbers.
pub(crate) fn numbers(values: impl IntoIterator<Item = i64>) -> RecordBatch {
    batch(&[("n", Arc::new(Int64Array::from_iter_values(values)))])
}

pub(crate) fn batch(columns: &[(&str, ArrayRef)]) -> RecordBatch {
    RecordBatch::try_from_iter(columns.iter().map(|(name, column)| (*name, Arc::clone(column)))).unwrap()
}

pub(crate) fn append(folder: &Path, batch: &RecordBatch) -> Result<FileSummary> {
    let mut appender = Appender::create(folder, &batch.schema(), options())?;
    appender.write(batch)?;
    appender.finish()
}

/// The names of all files of a folder, hidden ones included, but for the locks.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let names = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> =
        names.filter(|name| ![".plinth-lock", ".plinth-compacting"].contains(&name.as_str())).collect();
    names.sort();
    names
}

/// All rows of a table as one batch of its schema.
pub(crate) fn read(folder: &Path) -> RecordBatch {
    rows_of(&TableFolder::new(folder).open(None).unwrap())
}

pub(crate) fn rows_of(table: &Snapshot) -> RecordBatch {
    let schema: SchemaRef = table.schema();
    let mut batches = Vec::new();
    for file in table.files() {
        for batch in file.file.scan().batches().unwrap() {
            let batch = batch.unwrap();
            let columns = schema.fields().iter().map(|field| match batch.column_by_name(field.name()) {
                Some(column) => widen(column, field.data_type()).unwrap(),
                None => arrow_array::new_null_array(field.data_type(), batch.num_rows()),
            });
            batches.push(RecordBatch::try_new(Arc::clone(&schema), columns.collect()).unwrap());
        }
    }
    arrow_select::concat::concat_batches(&schema, &batches).unwrap()
}

/// The column `n` of a table.
pub(crate) fn read_numbers(folder: &Path) -> Vec<i64> {
    use arrow_array::cast::AsArray;
    read(folder).column_by_name("n").unwrap().as_primitive::<arrow_array::types::Int64Type>().values().to_vec()
}
