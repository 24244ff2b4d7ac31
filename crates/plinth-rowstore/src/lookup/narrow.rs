//! Which rows of a segment can pass a predicate, when an index knows that they are few.
//!
//! Of the conjuncts those count that bind a column to values or to a range. The columns of an index are bound from the first on,
//! to one of some values each, the last one perhaps to a range: that makes spans of keys.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder};
use arrow_schema::Schema;
use plinth_encoding::expr::{CompareOp, Expr, Path, Scalar};
use plinth_format::Access;

use super::find::behind;
use crate::error::Result;
use crate::index::{Definition, Span, Tree, just_above};
use crate::key::KeyPart;
use crate::snapshot::SegmentRows;

/// A share of a segment's rows beyond which a scan is as good: one of so many.
const FEW: u64 = 512;

/// And of spans, each of which goes down the tree.
const SPANS: u64 = 4096;

/// What an index has found in a segment.
#[derive(Clone, Debug)]
pub struct Narrowed {
    /// The index; `key` is the tree of the table's key.
    pub index: String,
    /// One bit a row of the file, set if the row is there and can pass.
    pub rows: BooleanBuffer,
}

impl SegmentRows {
    /// Whether there are trees that may know of few rows.
    pub fn is_indexed(&self) -> bool {
        !self.indexes.is_empty()
    }

    /// The rows that can pass all of some predicates, if one of the table's indexes knows them and they are few. A row that is
    /// among them may still fail. No index is asked of a table that is opened to be [scanned](Access::Scan), nor one that turns
    /// out to be damaged.
    ///
    /// # Errors
    /// If an index can't be read.
    pub fn narrow(&self, predicates: &[Expr]) -> Result<Option<Narrowed>> {
        if self.file.access() == Access::Scan {
            return Ok(None);
        }
        let rows = self.file.num_rows();
        let (most_rows, most_spans) = ((rows / FEW).max(64), (rows / SPANS).max(64));
        let mut conjuncts = Vec::new();
        predicates.iter().for_each(|predicate| flatten(predicate, &mut conjuncts));
        for index in &self.indexes {
            let Some(spans) = index.spans(self.file.schema(), &conjuncts, most_spans) else { continue };
            let found = self.segment.ask(index.number, |tree| few(tree, &spans, most_rows))?;
            let Some(found) = found.flatten() else { continue };
            let len = usize::try_from(rows).unwrap_or(usize::MAX);
            let mut bits = BooleanBufferBuilder::new(len);
            bits.append_n(len, false);
            for row in found {
                let row = row as usize;
                if row < len && self.kept.as_ref().is_none_or(|kept| kept.value(row)) {
                    bits.set_bit(row, true);
                }
            }
            return Ok(Some(Narrowed { index: index.name.clone(), rows: bits.finish() }));
        }
        Ok(None)
    }
}

/// The rows that have keys of some spans, if they are no more than `most`.
fn few(tree: &Tree, spans: &[Span], most: u64) -> Result<Option<Vec<u32>>> {
    let mut found: Vec<u32> = Vec::new();
    for span in spans {
        tree.entries(span, |_, row| {
            found.push(row);
            Ok(found.len() as u64 <= most)
        })?;
        if found.len() as u64 > most {
            return Ok(None);
        }
    }
    Ok(Some(found))
}

/// The conjuncts of a predicate.
fn flatten<'e>(predicate: &'e Expr, conjuncts: &mut Vec<&'e Expr>) {
    match predicate {
        Expr::And(parts) => parts.iter().for_each(|part| flatten(part, conjuncts)),
        other => conjuncts.push(other),
    }
}

fn part(value: &Scalar) -> Option<KeyPart> {
    match value {
        Scalar::Int(value) => Some(KeyPart::Int(*value)),
        Scalar::Bytes(bytes) => Some(KeyPart::Bytes(bytes.to_vec())),
        Scalar::Bool(_) | Scalar::Float(_) => None,
    }
}

impl Definition {
    /// The keys that rows have that pass; `None` if they may be any, or are of more spans than `most`.
    fn spans(&self, schema: &Arc<Schema>, conjuncts: &[&Expr], most: u64) -> Option<Vec<Span>> {
        let mut prefixes: Vec<Vec<u8>> = vec![Vec::new()];
        let mut bound = 0;
        for (i, position) in self.columns.positions().enumerate() {
            let column = Path::column(schema.fields().get(position)?.name());
            if let Some(values) = values(&column, conjuncts) {
                if (prefixes.len() as u64).saturating_mul(values.len() as u64) > most {
                    return None;
                }
                let mut longer = Vec::with_capacity(prefixes.len() * values.len());
                for prefix in &prefixes {
                    for value in &values {
                        let mut key = prefix.clone();
                        match self.columns.put_part(i, &part(value)?, &mut key) {
                            Ok(()) => longer.push(key),
                            // No row has it.
                            Err(Some(_)) => {}
                            Err(None) => return None,
                        }
                    }
                }
                (prefixes, bound) = (longer, i + 1);
                continue;
            }
            let ranges = conjuncts.iter().filter_map(|conjunct| match conjunct {
                Expr::Compare { column: of, op, value } if *of == column && *op != CompareOp::NotEq => {
                    Some((*op, value))
                }
                _ => None,
            });
            let ranges: Vec<(CompareOp, &Scalar)> = ranges.collect();
            if ranges.is_empty() {
                break;
            }
            let spans = prefixes.iter().map(|prefix| self.range(i, prefix, &ranges));
            return spans.collect::<Option<Vec<_>>>().map(|spans| spans.into_iter().flatten().collect());
        }
        (bound > 0).then(|| {
            prefixes.sort_unstable();
            prefixes.dedup();
            let whole = bound == self.columns.positions().count();
            let span = |key: Vec<u8>| match whole {
                true => Span::one(&key),
                false => Span::new(key.clone(), behind(key)),
            };
            prefixes.into_iter().map(span).collect()
        })
    }

    /// The span behind a prefix in which a column is within all of some ranges. `Some(None)` if it is empty, `None` if a value
    /// is of another kind than the column.
    #[allow(clippy::option_option, reason = "no span is one thing, and any span another")]
    fn range(&self, i: usize, prefix: &[u8], ranges: &[(CompareOp, &Scalar)]) -> Option<Option<Span>> {
        let last = i + 1 == self.columns.positions().count();
        // A null is in no range.
        let values = self.columns.values_behind(i, prefix);
        let (mut from, mut to) = (values.clone(), behind(values));
        for (op, value) in ranges {
            let mut key = prefix.to_vec();
            let beyond = match self.columns.put_part(i, &part(value)?, &mut key) {
                Ok(()) => None,
                Err(Some(beyond)) => Some(beyond),
                Err(None) => return None,
            };
            let lower = matches!(op, CompareOp::Gt | CompareOp::GtEq);
            match (beyond, lower) {
                // All values are on the side that is asked for, or none is.
                (Some(Ordering::Less), true) | (Some(Ordering::Greater), false) => continue,
                (Some(_), _) => return Some(None),
                (None, _) => {}
            }
            let above = || if last { Some(just_above(&key)) } else { behind(key.clone()) };
            match op {
                CompareOp::GtEq => from = from.max(key),
                CompareOp::Gt => match above() {
                    Some(above) => from = from.max(above),
                    None => return Some(None),
                },
                CompareOp::Lt => to = least(to, Some(key)),
                CompareOp::LtEq => to = least(to, above()),
                CompareOp::Eq | CompareOp::NotEq => return None,
            }
        }
        Some(Some(Span::new(from, to)))
    }
}

fn least(a: Option<Vec<u8>>, b: Option<Vec<u8>>) -> Option<Vec<u8>> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// The values of which a column has to have one: the shortest list of all.
fn values<'e>(column: &Path, conjuncts: &[&'e Expr]) -> Option<Vec<&'e Scalar>> {
    conjuncts.iter().filter_map(|conjunct| list(column, conjunct)).min_by_key(Vec::len)
}

/// The values that a predicate allows a column.
fn list<'e>(column: &Path, predicate: &'e Expr) -> Option<Vec<&'e Scalar>> {
    match predicate {
        Expr::Compare { column: of, op: CompareOp::Eq, value } if of == column => Some(vec![value]),
        Expr::In { column: of, values } if of == column => Some(values.iter().collect()),
        Expr::Or(parts) => {
            let lists = parts.iter().map(|part| list(column, part)).collect::<Option<Vec<_>>>()?;
            Some(lists.into_iter().flatten().collect())
        }
        _ => None,
    }
}
