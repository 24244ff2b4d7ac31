//! One query over two sessions: equal answers first, then times.

use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::DataType;
use futures::StreamExt;

use plinth_sql::{Session, parse};

use crate::error::{Failure, Result};

/// Timed runs of each query on each side; without optimisation times mean nothing, and one will do.
pub(super) const RUNS: usize = if cfg!(debug_assertions) { 1 } else { 5 };

/// How far float sums may lie apart: the sides add in different orders.
const TOLERANCE: f64 = 1e-9;

/// A query that is timed.
#[derive(Debug)]
pub(super) struct Query {
    pub(super) title: String,
    pub(super) sql: String,
}

/// What came out.
#[derive(Debug)]
pub(super) struct Comparison {
    pub(super) title: String,
    pub(super) rows: u64,
    pub(super) parquet: Duration,
    pub(super) plinth: Duration,
}

/// Runs a query on both sides.
///
/// # Errors
/// If it fails on a side or the answers differ.
pub(super) async fn compare(query: Query, parquet: &Session, plinth: &Session) -> Result<Comparison> {
    let (_, expected) = run(parquet, &query.sql).await?;
    let (_, got) = run(plinth, &query.sql).await?;
    let rows = expected.iter().map(RecordBatch::num_rows).sum::<usize>() as u64;
    if !equal(rows_of(&expected)?, rows_of(&got)?) {
        return Err(Failure::new(format!("{}: Plinth's answer differs from Parquet's; please report it", query.title)));
    }
    let (mut times, mut others) = (Vec::with_capacity(RUNS), Vec::with_capacity(RUNS));
    for _ in 0..RUNS {
        times.push(run(parquet, &query.sql).await?.0);
        others.push(run(plinth, &query.sql).await?.0);
    }
    Ok(Comparison { title: query.title, rows, parquet: median(times), plinth: median(others) })
}

async fn run(session: &Session, sql: &str) -> Result<(Duration, Vec<RecordBatch>)> {
    let started = Instant::now();
    let mut batches = Vec::new();
    for statement in parse(sql)? {
        let mut stream = session.execute(statement).await?;
        while let Some(batch) = stream.next().await {
            batches.push(batch?);
        }
    }
    Ok((started.elapsed(), batches))
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

#[derive(Clone, Debug, PartialEq, PartialOrd)]
enum Cell {
    Null,
    Float(f64),
    Text(String),
}

fn rows_of(batches: &[RecordBatch]) -> Result<Vec<Vec<Cell>>> {
    let options = FormatOptions::new();
    let mut rows = Vec::new();
    for batch in batches {
        let columns = batch.columns();
        let formatters: Vec<_> =
            columns.iter().map(|c| ArrayFormatter::try_new(c, &options)).collect::<std::result::Result<_, _>>()?;
        for row in 0..batch.num_rows() {
            let cells = columns.iter().zip(&formatters).map(|(column, formatter)| {
                if column.is_null(row) {
                    return Ok(Cell::Null);
                }
                let text = formatter.value(row).try_to_string()?;
                Ok(match (column.data_type(), text.parse()) {
                    (DataType::Float16 | DataType::Float32 | DataType::Float64, Ok(float)) => Cell::Float(float),
                    _ => Cell::Text(text),
                })
            });
            rows.push(cells.collect::<Result<Vec<_>>>()?);
        }
    }
    Ok(rows)
}

/// Whether the answers hold the same rows; in the same order, or, where the query leaves it open, in any.
fn equal(mut a: Vec<Vec<Cell>>, mut b: Vec<Vec<Cell>>) -> bool {
    if a.len() == b.len() && a.iter().zip(&b).all(|(a, b)| rows_equal(a, b)) {
        return true;
    }
    // Floats that differ in the last place must not decide the order.
    let key = |row: &[Cell]| row.iter().filter(|c| !matches!(c, Cell::Float(_))).cloned().collect::<Vec<_>>();
    let order = |x: &Vec<Cell>, y: &Vec<Cell>| {
        let by_key = key(x).partial_cmp(&key(y)).unwrap_or(std::cmp::Ordering::Equal);
        by_key.then(x.partial_cmp(y).unwrap_or(std::cmp::Ordering::Equal))
    };
    a.sort_by(order);
    b.sort_by(order);
    a.len() == b.len() && a.iter().zip(&b).all(|(a, b)| rows_equal(a, b))
}

fn rows_equal(a: &[Cell], b: &[Cell]) -> bool {
    a.len() == b.len()
        && a.iter().zip(b).all(|pair| match pair {
            (Cell::Float(x), Cell::Float(y)) => {
                x == y || (x.is_nan() && y.is_nan()) || (x - y).abs() <= TOLERANCE * x.abs().max(y.abs())
            }
            (x, y) => x == y,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(text: &str, float: f64) -> Vec<Cell> {
        vec![Cell::Text(text.into()), Cell::Float(float)]
    }

    #[test]
    fn answers_are_equal_up_to_order_and_the_last_digits_of_floats() {
        let a = vec![row("a", 1.0), row("b", 0.1 + 0.2), row("c", f64::NAN)];
        assert!(equal(a.clone(), vec![row("c", f64::NAN), row("a", 1.0), row("b", 0.3)]));
        assert!(!equal(a.clone(), vec![row("a", 1.0), row("b", 0.3)]));
        assert!(!equal(a.clone(), vec![row("a", 1.0), row("b", 0.300_001), row("c", f64::NAN)]));
        assert!(!equal(a, vec![row("a", 1.0), vec![Cell::Text("b".into()), Cell::Null], row("c", f64::NAN)]));
    }

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median([3, 1, 2].map(Duration::from_secs).to_vec()), Duration::from_secs(2));
    }
}
