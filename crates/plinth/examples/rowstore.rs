//! A table that can be written to: keys, transactions, snapshots.
//!
//! ```text
//! 3 rows before, 2 after
//! account 2 has 150
//! ```

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use plinth::rowstore::{Table, TableOptions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let first = accounts(vec![1, 2, 3], vec![100, 100, 100])?;
    let table = Table::create("accounts", &first.schema(), &["id"], TableOptions::default())?;
    // Durable when it returns.
    table.insert(&first)?;
    let before = table.snapshot();

    // Both changes or none: an error if another commit has written one of these keys since the transaction began.
    let mut transfer = table.begin();
    transfer.upsert(&accounts(vec![1, 2], vec![50, 150])?)?;
    transfer.delete(&[3_i64.into()])?;
    transfer.commit()?;

    println!("{} rows before, {} after", before.num_rows(), table.snapshot().num_rows());
    if let Some(row) = table.get(2_i64)? {
        println!("account 2 has {}", row.column(1).as_primitive::<Int64Type>().value(0));
    }
    table.close()?;
    Ok(())
}

fn accounts(ids: Vec<i64>, amounts: Vec<i64>) -> Result<RecordBatch, Box<dyn std::error::Error>> {
    let ids: ArrayRef = Arc::new(Int64Array::from(ids));
    let amounts: ArrayRef = Arc::new(Int64Array::from(amounts));
    Ok(RecordBatch::try_from_iter([("id", ids), ("amount", amounts)])?)
}
