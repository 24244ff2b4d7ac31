//! What an open transaction holds of the values of unique indexes.
//!
//! A commit is checked as a whole. A statement of a transaction is to fail by itself, so what the rows of the transaction hold is
//! kept from statement to statement: each is checked against the rows that there were when the transaction began, without
//! those that go, and against the transaction's own.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::Schema;

use crate::error::Result;
use crate::index::{Definition, Indexes};
use crate::key::{KeyColumns, Keys, hash};
use crate::version::{Place, Version};

/// What rows of a transaction hold.
#[derive(Debug, Default)]
pub(crate) struct Claims {
    /// The rows of the version that the transaction replaces or removes.
    going: HashSet<Place>,
    /// For each index how many of the transaction's rows have some values.
    held: HashMap<u64, HashMap<Box<[u8]>, usize>>,
}

/// What a statement changes of a transaction.
#[derive(Debug, Default)]
pub(crate) struct Step {
    /// The keys that the transaction had not changed before.
    pub(crate) new: Keys,
    /// The transaction's rows that go again.
    pub(crate) gone: Option<RecordBatch>,
    /// Its rows that come.
    pub(crate) come: Option<RecordBatch>,
}

impl Indexes {
    /// Those that limit which rows may come.
    pub(crate) fn limiting(&self) -> Vec<Arc<Definition>> {
        self.all().iter().filter(|index| index.limits()).map(Arc::clone).collect()
    }
}

impl Claims {
    /// Whether these are all that there is to hold.
    pub(crate) fn are_of(&self, indexes: &[Arc<Definition>]) -> bool {
        self.held.len() == indexes.len() && indexes.iter().all(|index| self.held.contains_key(&index.number))
    }

    /// Takes a statement's changes in. After an error they are of no use.
    ///
    /// # Errors
    /// If a row has values that another has, of an index that is unique, or values that are too long.
    pub(crate) fn step(
        &mut self,
        indexes: &[Arc<Definition>],
        version: &Version,
        columns: &KeyColumns,
        schema: &Schema,
        step: &Step,
    ) -> Result<()> {
        for key in step.new.iter() {
            self.going.extend(version.find(columns, key, hash(key))?);
        }
        for index in indexes {
            let held = self.held.entry(index.number).or_default();
            if let Some(gone) = &step.gone {
                for key in index.keys(gone)?.0.iter() {
                    match held.get_mut(key) {
                        Some(1) | None => drop(held.remove(key)),
                        Some(count) => *count -= 1,
                    }
                }
            }
            if let Some(come) = &step.come {
                for key in index.keys(come)?.0.iter() {
                    index.check_length(key)?;
                    if !index.unique || index.columns.has_null(key) {
                        continue;
                    }
                    let count = held.entry(Box::from(key)).or_default();
                    *count += 1;
                    if *count > 1 || index.is_taken(version, &self.going, key)? {
                        return index.refuse(schema, key);
                    }
                }
            }
        }
        Ok(())
    }
}
