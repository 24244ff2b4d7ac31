//! Reading a file: its columns, its statistics, its rows.
//!
//! ```text
//! n Int64: 0 to 9999, 0 null
//! square Int64: 0 to 99980001, 0 null
//! 10000 rows, whose last square is 99980001
//! ```

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use plinth::expr::Path;
use plinth::{File, Writer, WriterOptions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    write()?;
    // Opening reads the footer only.
    let file = File::open("squares.plinth")?;
    for field in file.schema().fields() {
        let known = file.statistics(&Path::from(field.name().as_str()))?;
        let (Some((least, _)), Some((most, _))) = (known.min, known.max) else { continue };
        println!("{} {}: {least} to {most}, {} null", field.name(), field.data_type(), known.null_count);
    }
    let mut last = None;
    for batch in file.scan().select(["square"]).build()? {
        let batch = batch?;
        last = batch.column(0).as_primitive::<Int64Type>().values().last().copied().or(last);
    }
    println!("{} rows, whose last square is {}", file.num_rows(), last.unwrap_or_default());
    Ok(())
}

fn write() -> Result<(), Box<dyn std::error::Error>> {
    let n: ArrayRef = Arc::new(Int64Array::from_iter_values(0..10_000));
    let square: ArrayRef = Arc::new(Int64Array::from_iter_values((0..10_000).map(|n| n * n)));
    let rows = RecordBatch::try_from_iter([("n", n), ("square", square)])?;
    let mut writer =
        Writer::create("squares.plinth", &rows.schema(), WriterOptions { replace: true, ..Default::default() })?;
    writer.write(&rows)?;
    writer.finish()?;
    Ok(())
}
