//! Groups that are complete before all rows are read: where rows come in the order of what tells the groups apart.
//!
//! A thread's groups then leave as soon as a greater key comes, and their table stays small. The first and the last groups of each piece of a
//! scan may have rows in other pieces; they are kept, and merged in the end as all groups are elsewhere.

use arrow_schema::DataType;
use datafusion_common::{DataFusionError, Result, internal_datafusion_err};
use plinth_exec::numbers::Numbers;
use plinth_exec::vector::Vector;
use plinth_format::FormatError;

use super::input::{Input, Rows};
use super::plan::Plan;
use crate::error::{from_exec, from_format};

/// Rows after which groups leave: their table lies in a core's cache.
const ROWS: usize = 1 << 15;

/// With fewer groups than these there is nothing to win.
const MANY: usize = 1 << 16;

/// A key column by which rows are ordered.
#[derive(Clone, Debug)]
pub(super) struct Ordered {
    /// Its place among the keys.
    pub(super) key: usize,
    /// The column of the input.
    column: usize,
    /// From the least to the greatest number of so many rows as leave at once, or more.
    span: i64,
    /// Its file and its name.
    named: (String, String),
}

impl Ordered {
    /// The key of a plan that orders the rows of its input, if it is the only one that tells groups apart, and these are many.
    pub(super) fn of(plan: &Plan, input: &Input) -> Result<Option<Self>> {
        let Some((key, column)) = plan.only_key() else { return Ok(None) };
        let (distinct, rows) = input.distinct(&[Some(column)]);
        let Some(distinct) = distinct.first().copied().flatten().filter(|distinct| *distinct >= MANY) else {
            return Ok(None);
        };
        let Some((least, greatest)) = input.integers(column)?.filter(|_| rows.is_some_and(|rows| rows >= distinct))
        else {
            return Ok(None);
        };
        if !input.data_type(column).is_some_and(|data_type| is_signed(&data_type)) {
            return Ok(None);
        }
        let Some(file) = input.ascending(column)? else { return Ok(None) };
        let share = (greatest - least) / i128::try_from(rows.unwrap_or(1).max(1)).unwrap_or(1) + 1;
        let span = i64::try_from(share * 2 * ROWS as i128).unwrap_or(i64::MAX);
        Ok(Some(Self { key, column, span, named: (file, input.name(column)) }))
    }

    /// The error that says what is not as the file tells.
    fn wrong(&self, what: &str) -> DataFusionError {
        let (file, column) = self.named.clone();
        from_format(FormatError::Corrupt { file, what: format!("column {column}: {what}") })
    }

    /// The numbers that are expected from one on.
    pub(super) fn range(&self, from: i64) -> (i64, i64) {
        (from, from.saturating_add(self.span))
    }
}

/// How far a thread is.
pub(super) struct Progress {
    ordered: Ordered,
    piece: Option<usize>,
    /// Rows since groups left.
    rows: usize,
    /// Whether none of this piece have left.
    first: bool,
    last: i64,
    numbers: Vec<Vec<i64>>,
}

/// What is to be done before rows are grouped.
pub(super) struct Step {
    /// They are of another piece than the ones before: the groups there are, are kept.
    pub(super) begins: bool,
    /// The least key of these rows.
    pub(super) from: i64,
    /// Groups leave before so many of the rows, of which the next has this key; whether they are kept.
    pub(super) cut: Option<Cut>,
}

/// Where groups leave.
pub(super) struct Cut {
    pub(super) at: usize,
    pub(super) key: i64,
    /// They are the first of the piece.
    pub(super) kept: bool,
}

impl Progress {
    pub(super) fn new(ordered: &Ordered) -> Self {
        let (ordered, numbers) = (ordered.clone(), vec![Vec::new()]);
        Self { ordered, piece: None, rows: 0, first: true, last: i64::MIN, numbers }
    }

    /// What is to be done before some rows of a piece are grouped.
    pub(super) fn step(&mut self, (count, columns): &Rows, piece: usize) -> Result<Step> {
        let key = columns.get(self.ordered.column);
        let key = key.ok_or_else(|| internal_datafusion_err!("rows are ordered by a column that they have not"))?;
        self.read(key)?;
        let numbers = self.numbers.first().map_or(&[][..], Vec::as_slice);
        let begins = self.piece != Some(piece);
        if begins {
            // A thread takes pieces in their order: what it has seen is less than what comes.
            (self.piece, self.rows, self.first) = (Some(piece), 0, true);
        }
        let (Some(&from), Some(&to)) = (numbers.first(), numbers.last()) else {
            return Ok(Step { begins, from: 0, cut: None });
        };
        // Else a key may come again whose group has left.
        if from < self.last || !numbers.is_sorted() {
            return Err(self.ordered.wrong("its rows are not in the order that the metadata says"));
        }
        self.last = to;
        let at = numbers.partition_point(|number| *number < to);
        let cut = (at > 0 && self.rows + at >= ROWS).then_some(Cut { at, key: to, kept: self.first });
        if cut.is_some() {
            (self.rows, self.first) = (count - at, false);
        } else {
            self.rows += count;
        }
        Ok(Step { begins, from, cut })
    }

    fn read(&mut self, key: &Vector) -> Result<()> {
        let array = key.array().map_err(from_exec)?;
        let numbers = Numbers::of(array.data_type()).filter(|_| is_signed(array.data_type()));
        let numbers = numbers.ok_or_else(|| internal_datafusion_err!("rows are ordered by what is no integer"))?;
        if key.nulls().is_some() {
            return Err(self.ordered.wrong("a null where the metadata says that there is none"));
        }
        numbers.read(array.as_ref(), &mut self.numbers).map_err(from_exec)
    }
}

/// Whether values of a type are integers with a sign, of 64 bits at most.
fn is_signed(data_type: &DataType) -> bool {
    matches!(Numbers::of(data_type), Some(Numbers::Signed(_)))
}

/// The rows before one, and those from it on.
pub(super) fn parted((count, columns): &Rows, at: usize) -> (Rows, Rows) {
    let slice = |from: usize, len: usize| (len, columns.iter().map(|column| column.slice(from, len)).collect());
    (slice(0, at), slice(at, count - at))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::cast_possible_wrap, reason = "tests")]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Int64Array};

    use super::*;

    fn progress() -> Progress {
        let named = ("a file".to_owned(), "k".to_owned());
        Progress::new(&Ordered { key: 0, column: 0, span: 1, named })
    }

    fn rows(numbers: impl Iterator<Item = i64>) -> Rows {
        let array: ArrayRef = Arc::new(numbers.collect::<Int64Array>());
        (array.len(), vec![Vector::Array(array)])
    }

    #[test]
    fn groups_leave_where_a_greater_key_begins() {
        let mut progress = progress();
        let size = 8192;
        let (mut cuts, mut since) = (Vec::new(), 0);
        for chunk in 0..24 {
            // Keys of seven rows, in two pieces of the same length.
            let numbers = rows((0..size).map(|row| (chunk * size + row) / 7));
            let step = progress.step(&numbers, usize::from(chunk >= 12)).unwrap();
            assert_eq!((step.begins, step.from), (chunk % 12 == 0, chunk * size / 7));
            since = if step.begins { 0 } else { since };
            let Some(cut) = step.cut else {
                since += size;
                continue;
            };
            let row = chunk * size + cut.at as i64;
            assert!(cut.key == row / 7 && (row - 1) / 7 < cut.key && since + cut.at as i64 >= ROWS as i64);
            let (before, behind) = parted(&numbers, cut.at);
            assert_eq!((before.0, before.0 + behind.0), (cut.at, numbers.0));
            cuts.push(cut.kept);
            since = size - cut.at as i64;
        }
        assert_eq!(cuts, [true, false, true, false]);
    }

    #[test]
    fn one_key_stays_whole() {
        let mut progress = progress();
        for _ in 0..24 {
            assert!(progress.step(&rows((0..8192).map(|_| 5)), 0).unwrap().cut.is_none());
        }
    }

    #[test]
    fn rows_out_of_order_are_no_answer() {
        let wrong = "a file: column k: its rows are not in the order that the metadata says";
        let error = |mut progress: Progress, numbers: Vec<i64>| {
            let error = progress.step(&rows(numbers.into_iter()), 0).map(|_| ()).unwrap_err().to_string();
            assert!(error.contains(wrong), "{error}");
        };
        error(progress(), vec![1, 3, 2]);
        let mut begun = progress();
        begun.step(&rows([1, 9].into_iter()), 0).unwrap();
        error(begun, vec![8, 10]);
        let nulls: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None]));
        let error = progress().step(&(2, vec![Vector::Array(nulls)]), 0).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("column k: a null where"), "{error}");
    }
}
