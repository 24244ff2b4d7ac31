//! The table of the left side's keys, made by several threads: keys are packed piece by piece, then each part is made of all pieces.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use datafusion_common::{Result, internal_datafusion_err};
use plinth_exec::join::{Builder, Packed, Table};
use plinth_exec::key::{Bounds, Meaning};
use plinth_exec::{ExecError, Result as ExecResult};
use plinth_io::MemoryBudget;

use super::Join;
use super::build::Piece;
use crate::error::from_exec;
use crate::native::input::Input;
use crate::native::plan::range;
use crate::profile::spawn_blocking;

/// A table that is to be made.
pub(super) struct Making {
    builder: Builder,
    threads: usize,
}

impl Making {
    /// Of so many rows of the left side, by so many threads.
    pub(super) fn new(
        join: &Join,
        input: &Input,
        rows: usize,
        threads: usize,
        budget: &Arc<MemoryBudget>,
    ) -> Result<Self> {
        let meaning = |data_type| {
            let meaning = Meaning::of(data_type, budget);
            meaning.ok_or_else(|| internal_datafusion_err!("values of {data_type} are no keys"))
        };
        let meanings = join.types.iter().map(meaning).collect::<Result<Vec<_>>>()?;
        let ranges = join.left.iter().zip(&meanings).map(|(key, meaning)| range(key, meaning, input));
        let ranges = ranges.collect::<Result<Vec<Bounds>>>()?;
        let builder = Builder::new(meanings, &ranges, join.nulls_match, rows, threads, budget).map_err(from_exec)?;
        Ok(Self { builder, threads })
    }

    /// The table of the rows of some pieces, in their order.
    pub(super) async fn table(self, pieces: &Arc<Vec<Piece>>) -> ExecResult<Table> {
        let Self { mut builder, threads } = self;
        let first = |from: &mut usize, piece: &Piece| Some(std::mem::replace(from, *from + piece.rows.num_rows()));
        let firsts: Arc<Vec<usize>> = Arc::new(pieces.iter().scan(0, |from, piece| first(from, piece)).collect());
        let count = pieces.len();
        // Once, unless a key lies outside of what was expected.
        let packed = loop {
            let (of, pieces, firsts) = (builder.clone(), Arc::clone(pieces), Arc::clone(&firsts));
            let pack = move |at: usize| {
                let (piece, from) = (pieces.get(at), firsts.get(at).and_then(|from| u32::try_from(*from).ok()));
                let (Some(piece), Some(from)) = (piece, from) else {
                    return Err(ExecError::internal("rows of a join without a place"));
                };
                of.pack(&piece.keys, piece.rows.num_rows(), from)
            };
            let packed: Vec<Packed> = side_by_side(threads, count, pack).await?;
            if !builder.widen(&packed) {
                break packed;
            }
        };
        let (of, packed) = (builder.clone(), Arc::new(packed));
        let parts = builder.parts();
        let made = side_by_side(threads, parts, move |at| of.part(at, &packed)).await?;
        Ok(builder.finish(made)?)
    }
}

/// What so many pieces of work give, in their order, done by so many threads.
async fn side_by_side<T: Send + 'static>(
    threads: usize,
    count: usize,
    work: impl Fn(usize) -> ExecResult<T> + Send + Sync + 'static,
) -> ExecResult<Vec<T>> {
    if threads.min(count) < 2 {
        return (0..count).map(work).collect();
    }
    let (work, next) = (Arc::new(work), Arc::new(AtomicUsize::new(0)));
    let thread = |_| {
        let (work, next) = (Arc::clone(&work), Arc::clone(&next));
        spawn_blocking(move || {
            let numbers = std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed)).take_while(|at| *at < count);
            numbers.map(|at| Ok((at, work(at)?))).collect::<ExecResult<Vec<_>>>()
        })
    };
    let waiting: Vec<_> = (0..threads.min(count)).map(thread).collect();
    let mut all: Vec<Option<T>> = std::iter::repeat_with(|| None).take(count).collect();
    // All of them end before anything is said: what they read may be wanted for something else.
    let mut ended = Vec::with_capacity(waiting.len());
    for thread in waiting {
        ended.push(thread.await.map_err(ExecError::source).flatten());
    }
    for made in ended {
        for (at, made) in made? {
            if let Some(place) = all.get_mut(at) {
                *place = Some(made);
            }
        }
    }
    let missing = || ExecError::internal("a part of a join's table was not made");
    all.into_iter().map(|made| made.ok_or_else(missing)).collect()
}
