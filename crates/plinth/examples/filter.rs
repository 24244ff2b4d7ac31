//! Filtering: what zone maps exclude is not read, and the rest is asked as it is encoded.
//!
//! ```text
//! 3 rows: berlin at 17, berlin at 10017, berlin at 20017
//! 24576 of 30000 rows asked, 3 out
//! ```

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use plinth::expr::col;
use plinth::{File, Writer, WriterOptions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    write()?;
    let file = File::open("visits.plinth")?;
    let scan = file.scan().filter(col("city").eq("berlin")).filter(col("at").lt(25_000)).build()?;
    let metrics = Arc::clone(scan.metrics());
    let mut found = Vec::new();
    for batch in scan {
        let batch = batch?;
        let (at, city) = (batch.column(0).as_primitive::<Int64Type>(), batch.column(1).as_string_view());
        found.extend(at.values().iter().zip(city).map(|(at, city)| format!("{} at {at}", city.unwrap_or_default())));
    }
    println!("{} rows: {}", found.len(), found.join(", "));
    let (asked, out) = (metrics.rows_in.load(Relaxed), metrics.rows_out.load(Relaxed));
    println!("{asked} of {} rows asked, {out} out", file.num_rows());
    Ok(())
}

/// 30,000 visits, of which three in 30,000 are to Berlin.
fn write() -> Result<(), Box<dyn std::error::Error>> {
    let city = |n: i64| if n % 10_000 == 17 { "berlin".to_owned() } else { format!("city {}", n % 100) };
    let at: ArrayRef = Arc::new(Int64Array::from_iter_values(0..30_000));
    let cities: ArrayRef = Arc::new(StringArray::from_iter_values((0..30_000).map(city)));
    let rows = RecordBatch::try_from_iter([("at", at), ("city", cities)])?;
    let options = WriterOptions { replace: true, ..WriterOptions::default() };
    let mut writer = Writer::create("visits.plinth", &rows.schema(), options)?;
    writer.write(&rows)?;
    writer.finish()?;
    Ok(())
}
