//! The first rows of an order, while they are looked for.
//!
//! Tasks take pieces from one queue. What they find goes into one list; once that is full, its last row is the bound that rows must be below: the
//! scan is told by a dynamic filter, and pieces that cannot have such rows are not begun.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use arrow_array::ArrayRef;
use arrow_buffer::BooleanBuffer;
use datafusion_common::{Result, ScalarValue};
use datafusion_common_runtime::JoinSet;
use datafusion_datasource::PartitionedFile;
use datafusion_expr::Operator;
use datafusion_physical_expr::expressions::{BinaryExpr, DynamicFilterPhysicalExpr, is_not_null, is_null, lit};
use datafusion_physical_expr_common::physical_expr::PhysicalExpr;
use datafusion_physical_expr_common::sort_expr::{LexOrdering, PhysicalSortExpr};
use plinth_core::sync::lock;
use plinth_exec::top::{First, Key, OrderColumn, Ranking};
use plinth_io::Reservation;
use tokio::task::JoinHandle;

use super::input::Piece as Scanned;
use super::pieces::Piece;
use crate::error::{from_exec, from_join};
use crate::evaluated::Memos;
use crate::opener::{PlinthOpener, Started};
use crate::profile::spawn_blocking;

/// Pieces of files that are far which a task begins before their turn.
const AHEAD: usize = 4;

/// Where a row is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// Among the parts of the scan.
    pub(super) part: usize,
    /// In the part's file.
    pub(super) row: u64,
}

/// What the tasks share.
pub(super) struct Search {
    pub(super) parts: Vec<PartitionedFile>,
    pub(super) pieces: Mutex<VecDeque<Piece>>,
    /// Over the columns that the scan gives.
    pub(super) order: LexOrdering,
    pub(super) columns: Vec<OrderColumn>,
    /// Most rows.
    pub(super) count: usize,
    pub(super) first: Mutex<First<Place>>,
    pub(super) filter: Arc<DynamicFilterPhysicalExpr>,
}

/// The first rows in order, and the memory they take.
pub(super) type Found = (Vec<(Key, Place)>, Reservation);

impl Search {
    /// The first rows, found by a task for each opener.
    pub(super) async fn run(self: Arc<Self>, openers: Vec<PlinthOpener>) -> Result<Found> {
        let mut tasks = JoinSet::new();
        let pieces = lock(&self.pieces).len();
        let memos = Arc::new(Memos::new(lock(&self.first).budget()));
        let count = openers.len();
        for opener in openers.into_iter().take(pieces) {
            let (search, memos) = (Arc::clone(&self), Arc::clone(&memos));
            tasks.spawn(async move { search.take_pieces(&opener, count, &memos).await });
        }
        while let Some(ended) = tasks.join_next().await {
            ended.map_err(from_join)??;
        }
        let none = First::new(0, lock(&self.first).budget());
        Ok(std::mem::replace(&mut *lock(&self.first), none).into_rows())
    }

    /// Takes pieces as one of so many tasks.
    async fn take_pieces(&self, opener: &PlinthOpener, tasks: usize, memos: &Memos) -> Result<()> {
        let mut ranking = Ranking::new(self.columns.clone()).map_err(from_exec)?;
        let mut begun = VecDeque::new();
        loop {
            // Ahead as long as there is one for each task.
            while (begun.is_empty() || (begun.len() < AHEAD && lock(&self.pieces).len() >= tasks))
                && let Some(piece) = self.next()
            {
                let far = self.parts.get(piece.part).is_some_and(|part| opener.is_far(part));
                begun.push_back((self.begin(opener, &piece)?, piece));
                if !far {
                    break;
                }
            }
            let Some((started, piece)) = begun.pop_front() else { break };
            if !self.may_have_better(&piece) {
                continue;
            }
            let Some(mut scanned) = started.scanned().await? else { continue };
            while let Some(chunk) = scanned.chunk().await? {
                let at = (chunk.first_row, chunk.selection.clone());
                let (_, columns) = scanned.rows(chunk, memos)?;
                let bound = lock(&self.first).bound().cloned();
                let best = ranking.best(&columns, self.count, bound.as_deref()).map_err(from_exec)?;
                self.take(&ranking, &piece, at, best)?;
                tokio::task::consume_budget().await;
            }
        }
        Ok(())
    }

    /// The next piece that can have better rows than those that are known.
    fn next(&self) -> Option<Piece> {
        loop {
            let piece = lock(&self.pieces).pop_front()?;
            if self.may_have_better(&piece) {
                return Some(piece);
            }
        }
    }

    /// Whether a piece can have better rows than those that are known.
    fn may_have_better(&self, piece: &Piece) -> bool {
        let (first, bound) = (lock(&self.first), piece.bound.as_ref());
        first.bound().zip(bound).is_none_or(|(known, best)| best < known)
    }

    fn begin(&self, opener: &PlinthOpener, piece: &Piece) -> Result<Begun> {
        let Some(part) = self.parts.get(piece.part).cloned() else { return Ok(Begun::Here(None)) };
        let groups = piece.groups.clone();
        let is_far = opener.is_far(&part);
        let begin = move |opener: &PlinthOpener| match groups {
            Some(groups) => opener.begin_at(&part, groups, None).map(Some),
            None => opener.begin(&part),
        };
        if is_far {
            let opener = opener.clone();
            return Ok(Begun::Far(spawn_blocking(move || begin(&opener))));
        }
        begin(opener).map(|started| Begun::Here(started.map(Box::new)))
    }

    /// Takes rows of a chunk that lies somewhere in its file.
    fn take(
        &self,
        ranking: &Ranking,
        piece: &Piece,
        (first_row, selection): (u64, Option<BooleanBuffer>),
        best: Vec<(u32, Key)>,
    ) -> Result<()> {
        if best.is_empty() {
            return Ok(());
        }
        let selected: Option<Vec<usize>> = selection.map(|selection| selection.set_indices().collect());
        let place = |row: u32| {
            let row = row as usize;
            let row = selected.as_ref().map_or(row, |selected| selected.get(row).copied().unwrap_or(row));
            Place { part: piece.part, row: first_row + row as u64 }
        };
        let mut first = lock(&self.first);
        if !first.push(best.into_iter().map(|(row, key)| (key, place(row)))).map_err(from_exec)? {
            return Ok(());
        }
        let bound = first.bound().map(|bound| ranking.values([bound]));
        match bound.transpose().map_err(from_exec)? {
            Some(values) => self.filter.update(before(&self.order, &values)?),
            None => Ok(()),
        }
    }
}

/// A piece whose scan begins.
enum Begun {
    Here(Option<Box<Started>>),
    /// On a thread that waits for the network.
    Far(JoinHandle<Result<Option<Started>>>),
}

impl Begun {
    /// The scan. None if there is nothing to be scanned.
    async fn scanned(self) -> Result<Option<Scanned>> {
        let started = match self {
            Self::Here(started) => started.map(|started| *started),
            Self::Far(started) => started.await.map_err(from_join)??,
        };
        started.map(Scanned::new).transpose()
    }
}

/// The rows that come before some values of an order's columns.
fn before(order: &LexOrdering, values: &[ArrayRef]) -> Result<Arc<dyn PhysicalExpr>> {
    let mut rest: Option<Arc<dyn PhysicalExpr>> = None;
    for (PhysicalSortExpr { expr, options }, value) in order.iter().zip(values).rev() {
        let value = ScalarValue::try_from_array(value, 0)?;
        let compare = |operator| Arc::new(BinaryExpr::new(Arc::clone(expr), operator, lit(value.clone()))) as _;
        let either = |one, other| Arc::new(BinaryExpr::new(one, Operator::Or, other)) as _;
        let before = match (value.is_null(), options.nulls_first) {
            (true, true) => None,
            (true, false) => Some(is_not_null(Arc::clone(expr))?),
            (false, nulls_first) => {
                let before = compare(if options.descending { Operator::Gt } else { Operator::Lt });
                Some(if nulls_first { either(is_null(Arc::clone(expr))?, before) } else { before })
            }
        };
        let equal = if value.is_null() { is_null(Arc::clone(expr))? } else { compare(Operator::Eq) };
        let rest_of_equal = rest.map(|rest| Arc::new(BinaryExpr::new(equal, Operator::And, rest)) as _);
        rest = match (before, rest_of_equal) {
            (Some(before), Some(rest)) => Some(either(before, rest)),
            (before, rest) => before.or(rest),
        };
    }
    Ok(rest.unwrap_or_else(|| lit(false)))
}
