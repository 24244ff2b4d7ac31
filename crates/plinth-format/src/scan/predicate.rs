//! A predicate bound to a source: each leaf prepared, three-valued logic in between.

use arrow_array::{ArrayRef, BooleanArray};
use arrow_buffer::BooleanBuffer;
use arrow_select::filter::filter;
use plinth_encoding::expr::{Expr, Function, Path};
use plinth_encoding::{Mask, Physical, ValueSet, ZoneMapResult};

use super::source::{BlockId, ColumnCodes, ColumnId, ColumnPredicate, ColumnSource, Leaf, Ran, Rows};
use crate::error::{FormatError, Result};

/// A bound predicate; `S` is what the source remembers of a leaf.
#[derive(Debug)]
pub(super) enum Bound<S> {
    Literal(Option<bool>),
    Leaf {
        leaf: Leaf<S>,
        cost: u8,
    },
    /// A function of several columns (or none), evaluated on decoded rows.
    Function {
        columns: Vec<ColumnId>,
        function: Function,
    },
    Not(Box<Bound<S>>),
    And(Vec<Bound<S>>),
    Or(Vec<Bound<S>>),
}

/// Binds a predicate on one column.
fn bind_leaf<S: ColumnSource>(
    path: &Path,
    source: &mut S,
    cost: u8,
    predicate: impl FnOnce(&S, ColumnId) -> Result<ColumnPredicate>,
) -> Result<Bound<S::LeafState>> {
    let column = source.resolve(path)?;
    let predicate = predicate(source, column)?;
    Ok(Bound::Leaf { leaf: Leaf::new(column, predicate), cost })
}

/// Binds a comparison with constants.
fn bind_set<S: ColumnSource>(
    path: &Path,
    source: &mut S,
    cost: u8,
    set: impl FnOnce(Physical) -> plinth_encoding::Result<ValueSet>,
) -> Result<Bound<S::LeafState>> {
    let fail = |e| FormatError::InvalidArgument(format!("column {:?}: {e}", path.to_string()));
    bind_leaf(path, source, cost, |source, column| set(source.physical(column)?).map(ColumnPredicate::In).map_err(fail))
}

/// Binds a predicate.
pub(super) fn bind<S: ColumnSource>(expr: &Expr, source: &mut S) -> Result<Bound<S::LeafState>> {
    match expr {
        Expr::Literal(value) => Ok(Bound::Literal(*value)),
        Expr::Compare { column, op, value } => {
            bind_set(column, source, 1, |physical| ValueSet::compare(physical, *op, value))
        }
        Expr::In { column, values } => bind_set(column, source, 2, |physical| ValueSet::any_of(physical, values)),
        Expr::Keys { column, keys } => bind_set(column, source, 2, |physical| ValueSet::of_keys(physical, keys)),
        Expr::IsNull(column) => bind_leaf(column, source, 0, |_, _| Ok(ColumnPredicate::IsNull)),
        Expr::Not(inner) => Ok(Bound::Not(Box::new(bind(inner, source)?))),
        Expr::And(parts) => {
            let mut parts: Vec<_> = bind_all(parts, source)?.into_iter().map(|(_, part)| part).collect();
            parts.sort_by_key(Bound::cost);
            Ok(Bound::And(parts))
        }
        Expr::Or(parts) => Ok(Bound::Or(parts.iter().map(|part| bind(part, source)).collect::<Result<_>>()?)),
        Expr::Function(function) => match function.columns.as_slice() {
            [column] => bind_leaf(column, source, 3, |_, _| Ok(ColumnPredicate::Function(function.clone()))),
            columns => {
                let columns = columns.iter().map(|path| source.resolve(path)).collect::<Result<_>>()?;
                Ok(Bound::Function { columns, function: function.clone() })
            }
        },
    }
}

/// Binds predicates that must all be true, the two bounds of a range as one; each with the number of the first it stands for.
pub(super) fn bind_all<S: ColumnSource>(exprs: &[Expr], source: &mut S) -> Result<Vec<(usize, Bound<S::LeafState>)>> {
    let mut all: Vec<(usize, Bound<S::LeafState>)> = Vec::with_capacity(exprs.len());
    for (number, expr) in exprs.iter().enumerate() {
        let next = bind(expr, source)?;
        let joined = all.iter().enumerate().find_map(|(i, (_, known))| Some((i, known.with(&next)?)));
        match joined {
            Some((i, both)) => all[i].1 = both,
            None => all.push((number, next)),
        }
    }
    Ok(all)
}

/// Splits a predicate into the conjuncts that must all be true.
pub(super) fn conjuncts(expr: &Expr, out: &mut Vec<Expr>) {
    match expr {
        Expr::And(parts) => parts.iter().for_each(|part| conjuncts(part, out)),
        other => out.push(other.clone()),
    }
}

impl<L: Default> Bound<L> {
    /// One predicate for two that must both be true, if there is such.
    fn with(&self, other: &Self) -> Option<Self> {
        match (self, other) {
            (Self::Leaf { leaf, cost }, Self::Leaf { leaf: other, .. }) => {
                Some(Self::Leaf { leaf: leaf.both(other)?, cost: *cost })
            }
            _ => None,
        }
    }
}

impl<L> Bound<L> {
    /// Cheaper predicates run first: comparisons on encoded data, then functions once per distinct value, then
    /// functions of decoded rows.
    pub(super) fn cost(&self) -> u8 {
        match self {
            Self::Literal(_) => 0,
            Self::Leaf { cost, .. } => *cost,
            Self::Function { .. } => 10,
            Self::Not(inner) => inner.cost(),
            Self::And(parts) | Self::Or(parts) => parts.iter().map(Self::cost).max().unwrap_or(0).saturating_add(1),
        }
    }

    /// The codes of the one column it reads for which it is true, if postings may be asked; it is true for no null.
    pub(super) fn codes<S: ColumnSource<LeafState = L>>(&self, source: &S) -> Result<Option<(ColumnId, ColumnCodes)>> {
        let (parts, join): (_, fn(&ColumnCodes, &ColumnCodes) -> ColumnCodes) = match self {
            Self::Leaf { leaf, .. } => return source.codes(leaf),
            Self::And(parts) => (parts, ColumnCodes::and),
            Self::Or(parts) => (parts, ColumnCodes::or),
            _ => return Ok(None),
        };
        let mut all: Option<(ColumnId, ColumnCodes)> = None;
        for part in parts {
            let Some((column, codes)) = part.codes(source)? else { return Ok(None) };
            all = match all {
                None => Some((column, codes)),
                Some((known, before)) if known == column => Some((column, join(&before, &codes))),
                Some(_) => return Ok(None),
            };
        }
        Ok(all)
    }

    /// The columns it reads.
    pub(super) fn columns(&self, out: &mut Vec<ColumnId>) {
        match self {
            Self::Literal(_) => {}
            Self::Leaf { leaf, .. } => out.push(leaf.column),
            Self::Function { columns, .. } => out.extend(columns),
            Self::Not(inner) => inner.columns(out),
            Self::And(parts) | Self::Or(parts) => parts.iter().for_each(|part| part.columns(out)),
        }
    }

    /// The answers that zone maps leave for a block.
    pub(super) fn zone_map_result<S: ColumnSource<LeafState = L>>(
        &self,
        source: &S,
        at: BlockId,
    ) -> Result<ZoneMapResult> {
        let all =
            |parts: &[Self]| parts.iter().map(|part| part.zone_map_result(source, at)).collect::<Result<Vec<_>>>();
        Ok(match self {
            Self::Literal(value) => ZoneMapResult::of_literal(*value),
            Self::Leaf { leaf, .. } => source.zone_map_result(leaf, at)?,
            Self::Function { .. } => ZoneMapResult::ANYTHING,
            Self::Not(inner) => inner.zone_map_result(source, at)?.negated(),
            Self::And(parts) => ZoneMapResult::all_of(&all(parts)?),
            Self::Or(parts) => ZoneMapResult::any_of(&all(parts)?),
        })
    }

    /// The answer for each row of a block whose columns were fetched.
    pub(super) fn evaluate<S: ColumnSource<LeafState = L>>(&self, source: &mut S, rows: &Rows<'_>) -> Result<Mask> {
        let len = rows.selection.len();
        match self {
            Self::Literal(value) => Ok(Mask {
                is_true: if *value == Some(true) { BooleanBuffer::new_set(len) } else { BooleanBuffer::new_unset(len) },
                is_null: value.is_none().then(|| BooleanBuffer::new_set(len)),
            }),
            Self::Leaf { leaf, .. } => source.evaluate(leaf, rows),
            Self::Function { columns, function } => evaluate_rows(columns, function, source, rows),
            Self::Not(inner) => {
                let Mask { is_true, is_null } = inner.evaluate(source, &rows.only(rows.selection))?;
                let is_true = match &is_null {
                    Some(nulls) => !&(&is_true | nulls),
                    None => !&is_true,
                };
                Ok(Mask { is_true, is_null })
            }
            Self::And(parts) => {
                let mut all = Mask { is_true: BooleanBuffer::new_set(len), is_null: None };
                for part in parts {
                    // What is false already stays false: only rows true or unknown so far need the rest.
                    let undecided = rows.selection & &or_null(&all);
                    if undecided.count_set_bits() == 0 {
                        break;
                    }
                    let part = part.evaluate(source, &rows.only(&undecided))?;
                    let (left, right) = (or_null(&all), or_null(&part));
                    let is_true = &all.is_true & &part.is_true;
                    let is_null =
                        (all.is_null.is_some() || part.is_null.is_some()).then(|| &(&left & &right) & &!&is_true);
                    all = Mask { is_true, is_null };
                }
                Ok(all)
            }
            Self::Or(parts) => {
                let mut any = Mask { is_true: BooleanBuffer::new_unset(len), is_null: None };
                for part in parts {
                    let undecided = rows.selection & &!&any.is_true;
                    if undecided.count_set_bits() == 0 {
                        break;
                    }
                    let part = part.evaluate(source, &rows.only(&undecided))?;
                    // Rows that were true need no answer from this part, and may have got any.
                    let is_true = &any.is_true | &(&part.is_true & &undecided);
                    let nulls = [&any.is_null, &part.is_null].into_iter().flatten().cloned().reduce(|a, b| &a | &b);
                    any = Mask { is_null: nulls.map(|nulls| &nulls & &!&is_true), is_true };
                }
                Ok(any)
            }
        }
    }
}

/// Rows that are true or unknown.
fn or_null(mask: &Mask) -> BooleanBuffer {
    match &mask.is_null {
        Some(nulls) => &mask.is_true | nulls,
        None => mask.is_true.clone(),
    }
}

/// A function of several columns, on the selected rows.
fn evaluate_rows<S: ColumnSource>(
    columns: &[ColumnId],
    function: &Function,
    source: &mut S,
    rows: &Rows<'_>,
) -> Result<Mask> {
    let arrays = columns
        .iter()
        .map(|&column| {
            let decoded = source.decode_cached(column, rows.at, Some(rows.scope))?;
            source.values(column, decoded)
        })
        .collect::<Result<Vec<ArrayRef>>>()?;
    call_on(function, arrays, rows)
}

/// Calls a function with values of the rows in scope, for those of them that are selected.
pub(super) fn call_on(function: &Function, mut arrays: Vec<ArrayRef>, rows: &Rows<'_>) -> Result<Mask> {
    rows.ran(Ran::Residual);
    if rows.selection != rows.scope {
        let inside = BooleanArray::new(rank_bits(rows.selection, rows.scope), None);
        let narrow = |array: &ArrayRef| filter(array, &inside).map_err(|e| FormatError::InvalidArgument(e.to_string()));
        arrays = arrays.iter().map(narrow).collect::<Result<_>>()?;
    }
    let answers = function.call(&arrays, rows.selection.count_set_bits()).map_err(FormatError::Function)?;
    Ok(Mask::of(&answers).spread(rows.selection))
}

/// Of some rows (`outer`), which are among others (`inner`): a bit for each of the former.
pub(super) fn rank_bits(inner: &BooleanBuffer, outer: &BooleanBuffer) -> BooleanBuffer {
    BooleanBuffer::from_iter(outer.set_indices().map(|row| inner.value(row)))
}
