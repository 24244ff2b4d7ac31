//! A folder of files as one table: each append adds a file, which may have other columns.
//!
//! ```text
//! 2 files, 5 rows, columns day, visits, country
//! ```

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use plinth::WriterOptions;
use plinth::table::{Appender, TableFolder};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let day: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
    let visits: ArrayRef = Arc::new(Int64Array::from(vec![10, 20, 30]));
    append(&RecordBatch::try_from_iter([("day", day), ("visits", visits)])?)?;

    let day: ArrayRef = Arc::new(Int64Array::from(vec![4, 5]));
    let visits: ArrayRef = Arc::new(Int64Array::from(vec![40, 50]));
    let country: ArrayRef = Arc::new(StringArray::from(vec!["DE", "NG"]));
    append(&RecordBatch::try_from_iter([("day", day), ("visits", visits), ("country", country)])?)?;

    let table = TableFolder::new("visits").open(None)?;
    let columns: Vec<_> = table.schema().fields().iter().map(|field| field.name().clone()).collect();
    println!("{} files, {} rows, columns {}", table.files().len(), table.num_rows(), columns.join(", "));
    Ok(())
}

fn append(rows: &RecordBatch) -> Result<(), Box<dyn std::error::Error>> {
    // Published when `finish` succeeds, after all files that are there by then.
    let mut appender = Appender::create("visits", &rows.schema(), WriterOptions::default())?;
    appender.write(rows)?;
    appender.finish()?;
    Ok(())
}
