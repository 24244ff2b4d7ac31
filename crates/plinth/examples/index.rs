//! An index of a table that can be written to: rows by other columns than the key.
//!
//! ```text
//! in Lagos: Ada, Chidi
//! ```

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use plinth::rowstore::{Table, TableOptions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let ids: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
    let names: ArrayRef = Arc::new(StringArray::from(vec!["Chidi", "Grace", "Ada"]));
    let cities: ArrayRef = Arc::new(StringArray::from(vec!["Lagos", "Lima", "Lagos"]));
    let people = RecordBatch::try_from_iter([("id", ids), ("name", names), ("city", cities)])?;
    let table = Table::create("people", &people.schema(), &["id"], TableOptions::default())?;
    table.insert(&people)?;

    // Kept as rows come and go; rows come in the order of its columns.
    table.create_index("by_city", &["city", "name"], false)?;
    let found = table.snapshot().find("by_city", "Lagos")?;
    let names = arrow_cast::cast(found.column(1), &arrow_schema::DataType::Utf8)?;
    let names: Vec<_> = names.as_string::<i32>().iter().flatten().collect();
    println!("in Lagos: {}", names.join(", "));
    table.close()?;
    Ok(())
}
