//! The first and the last rows of a result of any length.

use std::collections::VecDeque;

use arrow_array::{Array, RecordBatch};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::{ArrowError, SchemaRef};

use super::grid::{Cell, Column, Grid};
use super::shown::shown;

/// How many rows to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) first: usize,
    pub(crate) last: usize,
}

/// Keeps the first rows and, of those after them, the last.
pub(crate) struct Gather {
    limits: Limits,
    head: Vec<RecordBatch>,
    head_rows: usize,
    tail: VecDeque<RecordBatch>,
    tail_rows: usize,
    rows: u64,
}

impl Gather {
    pub(crate) fn new(limits: Limits) -> Self {
        Self { limits, head: Vec::new(), head_rows: 0, tail: VecDeque::new(), tail_rows: 0, rows: 0 }
    }

    /// Takes more rows.
    pub(crate) fn push(&mut self, batch: &RecordBatch) {
        let rows = batch.num_rows();
        self.rows += rows as u64;
        let head = rows.min(self.limits.first - self.head_rows);
        if head > 0 {
            self.head.push(batch.slice(0, head));
            self.head_rows += head;
        }
        if rows > head && self.limits.last > 0 {
            let last = (rows - head).min(self.limits.last);
            self.tail.push_back(batch.slice(rows - last, last));
            self.tail_rows += last;
            // What more than enough came after is never shown.
            while let Some(oldest) = self.tail.front()
                && self.tail_rows - oldest.num_rows() >= self.limits.last
            {
                self.tail_rows -= oldest.num_rows();
                self.tail.pop_front();
            }
        }
    }

    /// Rows taken so far.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// Whether rows came that can't be shown; more would not change what is.
    pub(crate) fn is_full(&self) -> bool {
        self.limits.last == 0 && self.rows > self.head_rows as u64
    }

    /// The rows as texts, none wider than the limit.
    ///
    /// # Errors
    /// If a type can't be shown.
    pub(crate) fn grid(mut self, schema: &SchemaRef, limit: Option<usize>) -> Result<Grid, ArrowError> {
        if let Some(oldest) = self.tail.front_mut() {
            let surplus = self.tail_rows.saturating_sub(self.limits.last);
            *oldest = oldest.slice(surplus, oldest.num_rows() - surplus);
            self.tail_rows -= surplus;
        }
        let columns = schema
            .fields()
            .iter()
            .map(|field| Column { name: Cell::new(field.name(), limit), right: field.data_type().is_numeric() });
        let mut grid = Grid { columns: columns.collect(), ..Grid::default() };
        for batch in self.head.iter().chain(&self.tail) {
            add_rows(&mut grid, &shown(batch)?, limit)?;
        }
        let left_out = self.rows - (self.head_rows + self.tail_rows) as u64;
        grid.gap = (left_out > 0).then_some((self.head_rows, left_out));
        Ok(grid)
    }
}

fn add_rows(grid: &mut Grid, batch: &RecordBatch, limit: Option<usize>) -> Result<(), ArrowError> {
    use std::fmt::Write;
    let options = FormatOptions::new().with_null("NULL").with_display_error(true);
    let formatters: Vec<_> = batch
        .columns()
        .iter()
        .map(|column| Ok((ArrayFormatter::try_new(column.as_ref(), &options)?, column.logical_nulls())))
        .collect::<Result<_, ArrowError>>()?;
    let mut text = String::new();
    for row in 0..batch.num_rows() {
        let mut cells = Vec::with_capacity(formatters.len());
        for (formatter, nulls) in &formatters {
            if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
                cells.push(Cell::null());
                continue;
            }
            text.clear();
            // Errors are part of the text.
            let _ = write!(text, "{}", formatter.value(row));
            cells.push(Cell::new(&text, limit));
        }
        grid.rows.push(cells);
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::cast_possible_wrap, clippy::cast_sign_loss)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Int64Array};
    use proptest::prelude::*;

    use super::*;
    use crate::sql::grid::Paint;

    proptest! {
        #[test]
        fn the_first_and_the_last_rows_are_kept(
            sizes in proptest::collection::vec(0usize..12, 0..12), first in 0usize..20, last in 0usize..20,
        ) {
            let mut gather = Gather::new(Limits { first, last });
            let mut next = 0i64;
            let mut schema = None;
            for size in sizes {
                let end = next + i64::try_from(size).unwrap();
                let column: ArrayRef = Arc::new((next..end).collect::<Int64Array>());
                let batch = RecordBatch::try_from_iter([("n", column)]).unwrap();
                schema = Some(batch.schema());
                gather.push(&batch);
                next = end;
            }
            let Some(schema) = schema else { return Ok(()) };
            let rows = usize::try_from(next).unwrap();
            prop_assert_eq!(gather.rows(), next as u64);
            let grid = gather.grid(&schema, None).unwrap();
            let (lines, _) = grid.table(None, Paint::default());
            let shown: Vec<i64> = lines.iter().skip(2).filter_map(|line| line.trim().parse().ok()).collect();
            let expected: Vec<i64> =
                (0..next).filter(|&n| n < first as i64 || n >= next - last as i64).collect();
            prop_assert_eq!(&shown, &expected);
            let left_out = (rows - expected.len()) as u64;
            prop_assert_eq!(grid.gap.map_or(0, |(_, n)| n), left_out);
        }
    }
}
