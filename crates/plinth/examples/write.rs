//! Writing a file from record batches.
//!
//! ```text
//! cities.plinth: 4 rows
//! ```

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use plinth::{Writer, WriterOptions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let names: ArrayRef = Arc::new(StringArray::from(vec!["Berlin", "Lagos", "Lima", "Osaka"]));
    let people: ArrayRef = Arc::new(Int64Array::from(vec![3_755_000, 16_637_000, 11_283_000, 2_754_000]));
    let rows = RecordBatch::try_from_iter([("city", names), ("people", people)])?;

    // The file appears under its name when `finish` succeeds, and never otherwise.
    let options = WriterOptions { replace: true, ..WriterOptions::default() };
    let mut writer = Writer::create("cities.plinth", &rows.schema(), options)?;
    writer.write(&rows)?;
    let summary = writer.finish()?;
    println!("cities.plinth: {} rows", summary.rows);
    Ok(())
}
