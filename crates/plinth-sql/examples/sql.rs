//! SQL in a program that is not asynchronous.
//!
//! ```text
//! Lagos 2
//! Lima 1
//! ```

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use plinth_sql::{Connection, SessionOptions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    std::fs::write("people.csv", "id,name,city\n1,Ada,Lagos\n2,Grace,Lima\n3,Chidi,Lagos\n")?;
    let options = SessionOptions { memory: 1 << 30, ..SessionOptions::default() };
    let mut connection = Connection::open(&options)?;
    connection
        .query("COPY (SELECT * FROM 'people.csv' ORDER BY city) TO 'people.plinth'")?
        .try_for_each(|rows| rows.map(drop))?;

    let sql = "SELECT city, count(*) FROM 'people.plinth' GROUP BY city ORDER BY city";
    for batch in connection.query(sql)? {
        let batch = batch?;
        let (cities, counts) = (batch.column(0).as_string_view(), batch.column(1).as_primitive::<Int64Type>());
        for (city, count) in cities.iter().zip(counts.values()) {
            println!("{} {count}", city.unwrap_or("NULL"));
        }
    }
    Ok(())
}
