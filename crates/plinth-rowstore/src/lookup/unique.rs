//! Whether two rows have the same values where an index says that they may not.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_schema::Schema;

use crate::commit::WriteSet;
use crate::error::{Result, TableError};
use crate::index::{Definition, Span, Tree};
use crate::segment::Segment;
use crate::version::{Place, Version};

impl Definition {
    pub(super) fn refuse<T>(&self, schema: &Schema, key: &[u8]) -> Result<T> {
        Err(TableError::NotUnique { index: self.name.clone(), key: self.show(schema, key) })
    }

    /// Whether it may be that a row can't come. Numbers are never too long.
    pub(super) fn limits(&self) -> bool {
        self.unique || self.columns.width().is_none_or(|width| width > plinth_index::MAX_KEY)
    }

    pub(super) fn check_length(&self, key: &[u8]) -> Result<()> {
        if key.len() <= plinth_index::MAX_KEY {
            return Ok(());
        }
        let long = plinth_index::IndexError::KeyTooLong { len: key.len() };
        Err(TableError::invalid(format!("index {:?}: {long}", self.name)))
    }

    /// A commit may be made to a version: the values it brings are short enough and, where they must be, unique. `going` are
    /// the rows that go with it.
    pub(crate) fn check(
        &self,
        version: &Version,
        schema: &Schema,
        set: &WriteSet,
        going: &HashSet<Place>,
    ) -> Result<()> {
        if !self.limits() {
            return Ok(());
        }
        let mut there: HashSet<Vec<u8>> = HashSet::new();
        let taken = |key: &[u8]| Ok::<_, TableError>(!set.all_go && self.is_taken(version, going, key)?);
        if let Some(rows) = &set.rows {
            for key in self.keys(rows)?.0.iter() {
                self.check_length(key)?;
                if !self.unique || self.columns.has_null(key) {
                    continue;
                }
                if !there.insert(key.to_vec()) || taken(key)? {
                    return self.refuse(schema, key);
                }
            }
        }
        if !self.unique {
            return Ok(());
        }
        for (i, segment) in set.segments.iter().enumerate() {
            let before = set.segments.get(..i).unwrap_or_default();
            let mut last = Last::default();
            self.tree(segment)?.entries(&Span::all(), |key, _| {
                if self.columns.has_null(key) {
                    return Ok(true);
                }
                let same = last.replace(key) || there.contains(key);
                if same || self.has(before, key)? || taken(key)? {
                    return self.refuse(schema, key);
                }
                Ok(true)
            })?;
        }
        Ok(())
    }

    fn tree(&self, segment: &Segment) -> Result<Arc<Tree>> {
        let missing = || TableError::invalid(format!("a segment has no tree of the index {:?}", self.name));
        segment.trees.get(self.number).ok_or_else(missing)
    }

    fn has(&self, segments: &[Arc<Segment>], key: &[u8]) -> Result<bool> {
        let mut found = false;
        for segment in segments {
            self.tree(segment)?.entries(&Span::one(key), |_, _| {
                found = true;
                Ok(false)
            })?;
        }
        Ok(found)
    }

    /// Whether a row that stays has a key.
    pub(super) fn is_taken(&self, version: &Version, going: &HashSet<Place>, key: &[u8]) -> Result<bool> {
        // Newest parts first: a row that changes often leaves many entries of its key, and only the last is of one that is there.
        for part in version.parts().iter().rev() {
            if let Some(place) = part.only(self, key)? {
                return Ok(!going.contains(&place));
            }
        }
        Ok(false)
    }

    /// No two rows of a version have the same key: entries that lie beside each other within a part, and those of each part
    /// in the larger ones.
    pub(crate) fn check_all(&self, version: &Version, schema: &Schema) -> Result<()> {
        let mut parts = version.parts();
        parts.sort_by_key(|part| std::cmp::Reverse(part.rows()));
        for (i, part) in parts.iter().enumerate() {
            let mut last = Last::default();
            part.entries(self, &Span::all(), &mut |key, _| {
                if self.columns.has_null(key) {
                    return Ok(true);
                }
                let mut same = last.replace(key);
                for larger in parts.iter().take(i) {
                    larger.entries(self, &Span::one(key), &mut |_, _| {
                        same = true;
                        Ok(false)
                    })?;
                }
                if same { self.refuse(schema, key) } else { Ok(true) }
            })?;
        }
        Ok(())
    }
}

/// The key before.
#[derive(Default)]
struct Last(Option<Vec<u8>>);

impl Last {
    /// Whether a key is the same as the one before, which it replaces.
    fn replace(&mut self, key: &[u8]) -> bool {
        let same = self.0.as_deref() == Some(key);
        let last = self.0.get_or_insert_default();
        last.clear();
        last.extend_from_slice(key);
        same
    }
}
