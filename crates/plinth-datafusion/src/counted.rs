//! Totals of blocks that scans count from metadata and do not read, on their way to who adds them up.

use std::sync::Mutex;

use datafusion_common::{Result, exec_datafusion_err};
use plinth_core::sync::lock;
use plinth_format::{TotalOf, Totals};

use crate::columns::FileColumns;

/// A column of the table, and what is wanted of it beside how many values it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) column: usize,
    pub(crate) sum: bool,
    pub(crate) bounds: bool,
}

/// What the scans of a plan count.
#[derive(Debug)]
pub(crate) struct Counted {
    wanted: Vec<Wanted>,
    /// Of each partition what it has counted since it began.
    so_far: Mutex<Vec<Totals>>,
}

impl Counted {
    pub(crate) fn new(wanted: Vec<Wanted>) -> Self {
        Self { wanted, so_far: Mutex::default() }
    }

    /// A partition's scans begin.
    pub(crate) fn begin(&self, partition: usize) {
        let mut so_far = lock(&self.so_far);
        if so_far.len() <= partition {
            so_far.resize_with(partition + 1, Totals::default);
        }
        so_far[partition] = Totals::default();
    }

    /// What is wanted of a file; none if that has a column in another type than the table.
    pub(crate) fn of_file(&self, columns: &FileColumns) -> Option<Vec<TotalOf>> {
        let of = |wanted: &Wanted| {
            let leaf = columns.whole(wanted.column).filter(|leaf| leaf.stored == *leaf.field.data_type())?;
            Some(TotalOf { column: leaf.path, sum: wanted.sum, bounds: wanted.bounds })
        };
        self.wanted.iter().map(of).collect()
    }

    /// Adds what a scan of a partition has counted.
    ///
    /// # Errors
    /// If a sum has no number.
    pub(crate) fn add(&self, partition: usize, more: &Totals) -> Result<()> {
        if let Some(so_far) = lock(&self.so_far).get_mut(partition) {
            *so_far = so_far
                .and(more)
                .ok_or_else(|| exec_datafusion_err!("a sum is out of range: it has more than 38 digits"))?;
        }
        Ok(())
    }

    /// What a partition has counted, if that is of any rows.
    pub(crate) fn take(&self, partition: usize) -> Option<Totals> {
        let totals = lock(&self.so_far).get_mut(partition).map(std::mem::take)?;
        (totals.rows > 0).then_some(totals)
    }
}
