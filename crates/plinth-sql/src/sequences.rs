//! Sequences: numbers that are handed out once each.
//!
//! Those of a folder are in its catalog, which is written anew as numbers are taken: what was handed out is not again, whatever
//! becomes of the statement or of the process. What is TEMP, or of no folder, lasts as long as the session.

mod functions;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, Weak};

use datafusion::common::{ResolvedTableReference, Result, exec_err};
use plinth_core::sync::lock;

pub(crate) use functions::{NEXTVAL, functions};

use crate::catalog::{Name, Sequence};
use crate::database::Database;
use crate::error::SqlError;
use crate::grants::Grants;
use crate::schemas::Schemas;

/// Most numbers that are taken at once for the rows of a statement.
const MOST_AHEAD: usize = 1 << 16;

/// The sequences that a session knows.
#[derive(Debug)]
pub(crate) struct Sequences {
    /// Weakly, for views are planned by what a session keeps, and schemas keep views.
    schemas: Weak<Schemas>,
    /// Those of the session.
    own: Mutex<BTreeMap<ResolvedTableReference, Sequence>>,
    handed: Mutex<Handed>,
    /// Whether numbers of folders may be taken.
    grants: Grants,
}

/// What has been taken of sequences.
#[derive(Debug, Default)]
struct Handed {
    /// Statements that write rows, and the rows that they are about to write.
    statements: usize,
    rows: usize,
    /// Numbers of folders' sequences for these rows.
    ahead: HashMap<ResolvedTableReference, Ahead>,
    /// The number that the session got last.
    last: HashMap<ResolvedTableReference, i64>,
}

/// Numbers that were taken and not handed out, and the sequence as it was behind them.
#[derive(Debug, Default)]
struct Ahead {
    numbers: VecDeque<i64>,
    behind: Option<Sequence>,
}

/// While there is one, numbers for the rows of a statement are taken together; those that are left over are given back.
pub(crate) struct Numbers(Arc<Sequences>);

impl Drop for Numbers {
    fn drop(&mut self) {
        self.0.give_back();
    }
}

impl Sequences {
    /// Those of the schemas of a session.
    pub(crate) fn of(schemas: &Arc<Schemas>, grants: Grants) -> Self {
        Self { schemas: Arc::downgrade(schemas), own: Mutex::default(), handed: Mutex::default(), grants }
    }

    /// Says that a statement is about to write so many rows.
    pub(crate) fn for_rows(self: &Arc<Self>, rows: usize) -> Numbers {
        let mut handed = lock(&self.handed);
        handed.statements += 1;
        handed.rows = handed.rows.saturating_add(rows).min(MOST_AHEAD);
        Numbers(Arc::clone(self))
    }

    fn give_back(&self) {
        let mut handed = lock(&self.handed);
        handed.statements = handed.statements.saturating_sub(1);
        if handed.statements > 0 {
            return;
        }
        handed.rows = 0;
        for (name, Ahead { numbers, behind }) in std::mem::take(&mut handed.ahead) {
            let Some(next) = numbers.front() else { continue };
            let Ok(Some((database, key))) = self.of_folder(&name) else { continue };
            let Some(catalog) = database.catalog() else { continue };
            // Numbers that can't be given back are left out, as those that another has taken numbers behind.
            let _ = catalog.change(|contents| {
                if let Some(sequence) =
                    contents.sequences.get_mut(&key).filter(|sequence| behind.as_ref() == Some(&**sequence))
                {
                    sequence.go_back_to(*next);
                }
                Ok(())
            });
        }
    }

    /// The schema of a folder that has a sequence, or would have it, and its name in the catalog.
    fn of_folder(&self, name: &ResolvedTableReference) -> Result<Option<(Arc<Database>, Name)>> {
        let Some(schemas) = self.schemas.upgrade() else { return Ok(None) };
        let Some(database) = schemas.of_folder(name)? else { return Ok(None) };
        let key = (database.name().to_owned(), name.table.to_string());
        Ok(Some((database, key)))
    }

    /// Makes one.
    pub(crate) fn create(
        &self,
        statement: &str,
        name: ResolvedTableReference,
        sequence: Sequence,
        (temporary, if_not_exists): (bool, bool),
    ) -> Result<()> {
        let exists = || exec_err!("{statement}: there is one already; DROP SEQUENCE removes it");
        let of_folder = if temporary { None } else { self.of_folder(&name)? };
        let Some((database, key)) = of_folder else {
            let mut own = lock(&self.own);
            if own.contains_key(&name) {
                return if if_not_exists { Ok(()) } else { exists() };
            }
            own.insert(name, sequence);
            return Ok(());
        };
        let Some(catalog) = database.catalog() else { return Ok(()) };
        let made = catalog.change(|contents| {
            let known = contents.sequences.contains_key(&key);
            if !known {
                contents.sequences.insert(key, sequence);
            }
            Ok(!known)
        })?;
        if made || if_not_exists { Ok(()) } else { exists() }
    }

    /// Removes one; whether there was one.
    pub(crate) fn remove(&self, name: &ResolvedTableReference) -> Result<bool> {
        let mut handed = lock(&self.handed);
        handed.ahead.remove(name);
        handed.last.remove(name);
        if lock(&self.own).remove(name).is_some() {
            return Ok(true);
        }
        let Some((database, key)) = self.of_folder(name)? else { return Ok(false) };
        let Some(catalog) = database.catalog() else { return Ok(false) };
        Ok(catalog.change(|contents| Ok(contents.sequences.remove(&key).is_some()))?)
    }

    /// Whether there is one.
    pub(crate) fn has(&self, name: &ResolvedTableReference) -> Result<bool> {
        if lock(&self.own).contains_key(name) {
            return Ok(true);
        }
        let Some((database, key)) = self.of_folder(name)? else { return Ok(false) };
        let contents = database.catalog().map(|catalog| catalog.read()).transpose()?;
        Ok(contents.is_some_and(|contents| contents.sequences.contains_key(&key)))
    }

    /// The next numbers.
    fn next(&self, name: &ResolvedTableReference, count: usize) -> Result<Vec<i64>> {
        let mut handed = lock(&self.handed);
        let Handed { rows, ahead, last, .. } = &mut *handed;
        let numbers: Vec<i64> = if let Some(sequence) = lock(&self.own).get_mut(name) {
            (0..count).map_while(|_| sequence.take()).collect()
        } else {
            let kept = ahead.entry(name.clone()).or_default();
            if kept.numbers.len() < count {
                let missing = count.max(*rows).saturating_sub(kept.numbers.len());
                let (numbers, behind) = self.taken(name, missing)?;
                kept.numbers.extend(numbers);
                kept.behind = Some(behind);
            }
            *rows = rows.saturating_sub(count);
            let count = count.min(kept.numbers.len());
            let numbers = kept.numbers.drain(..count).collect();
            if kept.numbers.is_empty() {
                ahead.remove(name);
            }
            numbers
        };
        if numbers.len() < count {
            return exec_err!("nextval: sequence {} has no more numbers", name.table);
        }
        if let Some(number) = numbers.last() {
            last.insert(name.clone(), *number);
        }
        Ok(numbers)
    }

    /// Takes numbers from a folder's sequence, and says what it is behind them.
    fn taken(&self, name: &ResolvedTableReference, count: usize) -> Result<(Vec<i64>, Sequence)> {
        self.grants.changes("nextval")?;
        let missing = || SqlError::new(missing(name));
        let (database, key) = self.of_folder(name)?.ok_or_else(missing)?;
        let catalog = database.catalog().ok_or_else(missing)?;
        let taken = catalog.change(|contents| {
            let sequence = contents.sequences.get_mut(&key).ok_or_else(missing)?;
            let numbers = (0..count).map_while(|_| sequence.take()).collect();
            Ok((numbers, sequence.clone()))
        });
        Ok(taken?)
    }

    /// The number that the session got last.
    fn last(&self, name: &ResolvedTableReference) -> Result<i64> {
        match lock(&self.handed).last.get(name) {
            Some(number) => Ok(*number),
            None if self.has(name)? => {
                exec_err!("currval: nextval has not been called for {} in this session", name.table)
            }
            None => Err(SqlError::new(missing(name)).into()),
        }
    }
}

/// What is said where there is none.
pub(crate) fn missing(name: &ResolvedTableReference) -> String {
    format!("sequence {:?} not found; CREATE SEQUENCE makes one", name.table.as_ref())
}
