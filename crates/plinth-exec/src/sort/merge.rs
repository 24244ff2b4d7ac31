//! Runs, merged: a tree of losers finds the next row by one comparison for each doubling of the runs.

use std::cmp::Ordering;

use arrow_array::RecordBatch;
use arrow_row::Rows;

use super::gathered::{bytes_of, pick, prefix};
use super::run::Run;
use super::{Keys, Sort};
use crate::error::{ExecError, Result};

/// Pieces whose rows were all picked and that are kept until these rows are put together.
pub(super) const BEHIND: usize = 4;

/// No run: before all of them while the tree is built.
const NONE: usize = usize::MAX;

/// A run, and its next row.
struct Source {
    run: Run,
    /// Which of the pieces that are held is its piece.
    held: usize,
    keys: Rows,
    row: usize,
    prefix: u64,
    /// Bytes of a row of the piece.
    bytes: usize,
    ended: bool,
}

impl Source {
    fn key(&self) -> &[u8] {
        self.keys.row(self.row).data()
    }

    fn compare(&self, other: &Self) -> Ordering {
        match (self.ended, other.ended) {
            (false, false) => self.prefix.cmp(&other.prefix).then_with(|| self.key().cmp(other.key())),
            (ended, other) => ended.cmp(&other),
        }
    }

    /// Goes to a row, if there is one.
    fn go_to(&mut self, row: usize) -> bool {
        self.row = row;
        let exists = row < self.keys.num_rows();
        if exists {
            self.prefix = prefix(self.key(), 0);
        }
        exists
    }
}

/// Rows of runs in order.
pub(super) struct Merge {
    sources: Vec<Source>,
    /// The source of the next row, and of each match below it the one that lost.
    tree: Vec<usize>,
    /// Pieces of which rows were picked or will be.
    held: Vec<RecordBatch>,
    picked: Vec<(usize, usize)>,
    /// Bytes of what is picked, about.
    bytes: usize,
}

impl Merge {
    pub(super) fn new(runs: Vec<Run>, keys: &Keys, sort: &Sort) -> Result<Self> {
        sort.check()?;
        let mut merge = Self { sources: Vec::new(), tree: Vec::new(), held: Vec::new(), picked: Vec::new(), bytes: 0 };
        for mut run in runs {
            let Some((batch, rows)) = run.next(keys)? else { continue };
            let bytes = bytes_of_row(&batch);
            let mut source = Source { run, held: merge.held.len(), keys: rows, row: 0, prefix: 0, bytes, ended: false };
            source.ended = !source.go_to(0);
            merge.held.push(batch);
            merge.sources.push(source);
        }
        merge.tree = vec![NONE; merge.sources.len()];
        for source in 0..merge.sources.len() {
            merge.play(source);
        }
        Ok(merge)
    }

    /// Bytes of a key, on average of the run with the longest.
    pub(super) fn key(&self) -> usize {
        self.sources.iter().map(|source| source.run.key()).max().unwrap_or(0)
    }

    /// Whether the row of the first comes before that of the second.
    fn comes_before(&self, a: usize, b: usize) -> bool {
        match (self.sources.get(a), self.sources.get(b)) {
            (Some(first), Some(second)) => first.compare(second).then(a.cmp(&b)).is_lt(),
            (first, _) => first.is_none(),
        }
    }

    /// Has a source whose row is another now play against those that lost.
    fn play(&mut self, source: usize) {
        let (mut winner, mut at) = (source, (source + self.sources.len()) / 2);
        while at > 0 {
            let Some(&loser) = self.tree.get(at) else { return };
            if self.comes_before(loser, winner) {
                if let Some(place) = self.tree.get_mut(at) {
                    *place = winner;
                }
                winner = loser;
            }
            at /= 2;
        }
        if let Some(first) = self.tree.first_mut() {
            *first = winner;
        }
    }

    /// The next rows.
    pub(super) fn next(&mut self, keys: &Keys, sort: &Sort) -> Result<Option<RecordBatch>> {
        while let Some(&winner) = self.tree.first() {
            let Some(source) = self.sources.get_mut(winner) else {
                return Err(ExecError::internal("the next row is of no run"));
            };
            if source.ended {
                break;
            }
            self.picked.push((source.held, source.row));
            self.bytes = self.bytes.saturating_add(source.bytes);
            if !source.go_to(source.row + 1) {
                match source.run.next(keys)? {
                    Some((batch, rows)) => {
                        (source.keys, source.bytes, source.held) = (rows, bytes_of_row(&batch), self.held.len());
                        source.ended = !source.go_to(0);
                        self.held.push(batch);
                    }
                    None => source.ended = true,
                }
            }
            self.play(winner);
            let full = self.picked.len() >= sort.rows.max(1) || self.bytes >= sort.piece;
            if full || self.held.len() >= self.sources.len() + BEHIND {
                break;
            }
        }
        if self.picked.is_empty() {
            return Ok(None);
        }
        let batch = pick(sort, &self.held, &self.picked)?;
        self.picked.clear();
        self.bytes = 0;
        self.let_go();
        Ok(Some(batch))
    }

    /// Keeps the pieces alone that have rows to come.
    fn let_go(&mut self) {
        if self.held.len() <= self.sources.len() {
            return;
        }
        let mut held = Vec::with_capacity(self.sources.len());
        for source in &mut self.sources {
            let Some(batch) = self.held.get(source.held).filter(|_| !source.ended) else { continue };
            source.held = held.len();
            held.push(batch.clone());
        }
        self.held = held;
    }
}

fn bytes_of_row(batch: &RecordBatch) -> usize {
    bytes_of(batch) / batch.num_rows().max(1)
}
