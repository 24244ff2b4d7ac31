//! The right side of a join: a partition's rows, looked up in the table of the left one.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, UInt32Array, new_null_array};
use arrow_buffer::BooleanBuffer;
use arrow_select::take::take;
use datafusion_common::{JoinSide, JoinType, Result, internal_datafusion_err, internal_err};
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_plan::joins::utils::ColumnIndex;
use datafusion_physical_plan::metrics::BaselineMetrics;
use futures::StreamExt;
use plinth_exec::join::{Cursor, NO_ROW, Probe};
use plinth_exec::vector::Vector;

use super::Join;
use super::build::{Gathered, Left, Side};
use crate::error::from_exec;
use crate::native::input::{Rows, Source};

/// A partition of the result.
pub(in crate::native) struct Probing {
    join: Arc<Join>,
    gathered: Arc<Gathered>,
    partition: usize,
    context: Arc<TaskContext>,
    /// Rows of a batch.
    most: usize,
    state: State,
    metrics: BaselineMetrics,
    /// The rows of pairs: of the right side, then of the left one.
    probed: Vec<u32>,
    found: Vec<u32>,
}

/// How far it is.
enum State {
    /// Nothing was read.
    Beginning,
    Reading(Box<Reading>),
    /// The left side was too large: rows come from a join by merging.
    Merging(SendableRecordBatchStream),
    /// Rows of the left side come out, from one on.
    Ending(Arc<Side>, usize),
    Ended,
}

/// What is being read.
struct Reading {
    side: Arc<Side>,
    source: Source,
    probe: Probe,
    chunk: Option<Chunk>,
}

/// Rows of the right side whose pairs come out.
struct Chunk {
    rows: Rows,
    /// Of each the place of its key.
    places: Vec<u32>,
    cursor: Cursor,
    /// Which have a partner, as far as is known and if it matters.
    matched: Vec<bool>,
    /// Whether all pairs have come out.
    paired: bool,
}

impl Probing {
    pub(super) fn new(
        join: &Arc<Join>,
        gathered: Arc<Gathered>,
        partition: usize,
        context: Arc<TaskContext>,
        metrics: BaselineMetrics,
    ) -> Self {
        let most = context.session_config().batch_size();
        let (join, state) = (Arc::clone(join), State::Beginning);
        Self { join, gathered, partition, context, most, state, metrics, probed: Vec::new(), found: Vec::new() }
    }

    /// The next rows. None at the end.
    pub(in crate::native) async fn next(&mut self) -> Result<Option<Rows>> {
        loop {
            let batch = match std::mem::replace(&mut self.state, State::Ended) {
                State::Beginning => {
                    let side = self.gathered.left().await?;
                    self.state = match &*side {
                        Side::Gathered(left) => {
                            // The right side is begun only now: its scans know which keys there are.
                            let source = self.gathered.right.rows(self.partition, &self.context)?;
                            let probe = left.table.probe();
                            State::Reading(Box::new(Reading { side, source, probe, chunk: None }))
                        }
                        Side::Merged(plan) => State::Merging(plan.execute(self.partition, Arc::clone(&self.context))?),
                    };
                    None
                }
                State::Merging(mut batches) => match batches.next().await.transpose()? {
                    Some(batch) => {
                        self.state = State::Merging(batches);
                        let columns = batch.columns().iter().map(|column| Vector::Array(Arc::clone(column)));
                        Some((batch.num_rows(), columns.collect()))
                    }
                    None => None,
                },
                State::Reading(mut reading) => match &mut reading.chunk {
                    Some(chunk) => {
                        // A chunk may have any number of pairs, and the condition may hold for none.
                        tokio::task::consume_budget().await;
                        let (batch, ended) = self.joined(reading.side.gathered()?, chunk)?;
                        if ended {
                            reading.chunk = None;
                        }
                        self.state = State::Reading(reading);
                        batch
                    }
                    None => {
                        tokio::task::consume_budget().await;
                        match reading.source.next().await? {
                            Some(rows) => {
                                let left = reading.side.gathered()?;
                                reading.chunk = Some(self.looked_up(left, &mut reading.probe, rows)?);
                                self.state = State::Reading(reading);
                            }
                            None if self.gathered.ends() && self.join.needs_left_at_end() => {
                                self.state = State::Ending(reading.side, 0);
                            }
                            None => {}
                        }
                        None
                    }
                },
                State::Ending(side, from) => {
                    let left = side.gathered()?;
                    let until = left.rows.num_rows().min(from + self.most);
                    let batch = self.ending(left, from, until)?;
                    if until < left.rows.num_rows() {
                        self.state = State::Ending(side, until);
                    }
                    batch
                }
                State::Ended => return Ok(None),
            };
            if let Some(batch) = batch.filter(|(rows, _)| *rows > 0) {
                self.metrics.record_output(batch.0);
                return Ok(Some(batch));
            }
        }
    }

    /// Rows, with the places of their keys.
    fn looked_up(&self, left: &Left, probe: &mut Probe, rows: Rows) -> Result<Chunk> {
        let _timer = self.metrics.elapsed_compute().timer();
        let (count, columns) = &rows;
        let keys = self.join.right.iter().map(|key| key.evaluate(columns, *count, &self.gathered.memos));
        let keys = keys.collect::<Result<Vec<_>>>()?;
        let mut places = Vec::new();
        probe.places(&left.table, &keys, *count, &mut places).map_err(from_exec)?;
        let matched = if self.join.gives_right() { vec![false; *count] } else { Vec::new() };
        let mut chunk = Chunk { rows, places, cursor: Cursor::default(), matched, paired: false };
        if self.join.condition.is_none() && !self.join.gives_pairs() {
            // That there is a partner is all that matters.
            let places = chunk.places.iter();
            chunk.matched.iter_mut().zip(places).for_each(|(matched, place)| *matched = *place != NO_ROW);
            if self.join.needs_left_at_end() {
                for &place in chunk.places.iter().filter(|place| **place != NO_ROW) {
                    let mut rows = left.table.rows(place).peekable();
                    // All rows of a key or none.
                    if rows.peek().is_some_and(|first| !left.is_visited(*first as usize)) {
                        rows.for_each(|row| left.visit(row));
                    }
                }
            }
            chunk.paired = true;
        }
        Ok(chunk)
    }

    /// The next batch of a chunk, and whether it was the last.
    fn joined(&mut self, left: &Left, chunk: &mut Chunk) -> Result<(Option<Rows>, bool)> {
        let timer = self.metrics.elapsed_compute().clone();
        let _timer = timer.timer();
        if chunk.paired {
            let batch = if self.join.gives_right() { Some(self.rows_of_right(left, chunk)?) } else { None };
            return Ok((batch, true));
        }
        let (mut probed, mut found) = (std::mem::take(&mut self.probed), std::mem::take(&mut self.found));
        chunk.paired = left.table.pairs(&chunk.places, &mut chunk.cursor, self.most, &mut probed, &mut found);
        let (probed, found) = self.passing(left, &chunk.rows, probed, found)?;
        if self.join.gives_right() {
            for &row in probed.values() {
                if let Some(matched) = chunk.matched.get_mut(row as usize) {
                    *matched = true;
                }
            }
        }
        if self.join.needs_left_at_end() {
            found.values().iter().for_each(|row| left.visit(*row));
        }
        let batch = if self.join.gives_pairs() && !found.is_empty() {
            let column = |column: &ColumnIndex| match column.side {
                JoinSide::Left => left.column(column.index, &found),
                JoinSide::Right => of_right(&chunk.rows, column.index, &probed),
                JoinSide::None => internal_err!("pairs have no mark"),
            };
            Some((found.len(), self.join.output.iter().map(column).collect::<Result<_>>()?))
        } else {
            None
        };
        (self.probed, self.found) = (given_back(probed), given_back(found));
        // Rows of the right side come when all is known of them.
        let ended = chunk.paired && !self.join.gives_right();
        Ok((batch, ended))
    }

    /// The pairs that the condition holds for.
    fn passing(
        &self,
        left: &Left,
        right: &Rows,
        probed: Vec<u32>,
        found: Vec<u32>,
    ) -> Result<(UInt32Array, UInt32Array)> {
        let (probed, found) = (UInt32Array::from(probed), UInt32Array::from(found));
        let Some(condition) = self.join.condition.as_ref().filter(|_| !found.is_empty()) else {
            return Ok((probed, found));
        };
        let column = |column: &ColumnIndex| match column.side {
            JoinSide::Left => of_left(left, column.index, &found),
            JoinSide::Right => of_right(right, column.index, &probed)?.array().map_err(from_exec),
            JoinSide::None => internal_err!("a join's condition reads a mark"),
        };
        let columns = condition.column_indices().iter().map(column).collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(found.len()));
        let pairs = RecordBatch::try_new_with_options(Arc::clone(condition.schema()), columns, &options)?;
        let holds = condition.expression().evaluate(&pairs)?.into_array(found.len())?;
        let holds =
            holds.as_boolean_opt().ok_or_else(|| internal_datafusion_err!("a join's filter is no condition"))?;
        let holds = match holds.nulls() {
            Some(nulls) => holds.values() & nulls.inner(),
            None => holds.values().clone(),
        };
        if holds.count_set_bits() == holds.len() {
            return Ok((probed, found));
        }
        let some = |rows: &UInt32Array| UInt32Array::from_iter_values(holds.set_indices().map(|at| rows.value(at)));
        Ok((some(&probed), some(&found)))
    }

    /// Rows of the right side, by whether they have a partner.
    fn rows_of_right(&self, left: &Left, chunk: &Chunk) -> Result<Rows> {
        let all = self.join.kind == JoinType::RightMark;
        let wanted = self.join.kind == JoinType::RightSemi;
        let rows = chunk.matched.iter().enumerate().filter(|(_, matched)| all || **matched == wanted);
        let rows = UInt32Array::from_iter_values(rows.filter_map(|(row, _)| u32::try_from(row).ok()));
        let column = |column: &ColumnIndex| match column.side {
            JoinSide::Left => Ok(Vector::Array(new_null_array(left.rows.column(column.index).data_type(), rows.len()))),
            JoinSide::Right => of_right(&chunk.rows, column.index, &rows),
            JoinSide::None => Ok(Vector::Array(Arc::new(BooleanArray::from(chunk.matched.clone())))),
        };
        Ok((rows.len(), self.join.output.iter().map(column).collect::<Result<_>>()?))
    }

    /// Rows of the left side, by whether they have a partner.
    fn ending(&self, left: &Left, from: usize, until: usize) -> Result<Option<Rows>> {
        let all = self.join.kind == JoinType::LeftMark;
        let wanted = self.join.kind == JoinType::LeftSemi;
        let rows = (from..until).filter(|row| all || left.is_visited(*row) == wanted);
        let rows = UInt32Array::from_iter_values(rows.filter_map(|row| u32::try_from(row).ok()));
        if rows.is_empty() {
            return Ok(None);
        }
        let column = |column: &ColumnIndex| match column.side {
            JoinSide::Left => of_left(left, column.index, &rows),
            JoinSide::Right => Ok(new_null_array(self.join.right_schema.field(column.index).data_type(), rows.len())),
            JoinSide::None => {
                let marks = BooleanBuffer::collect_bool(rows.len(), |at| left.is_visited(rows.value(at) as usize));
                Ok(Arc::new(BooleanArray::new(marks, None)) as ArrayRef)
            }
        };
        let columns = self.join.output.iter().map(|at| column(at).map(Vector::Array)).collect::<Result<_>>()?;
        Ok(Some((rows.len(), columns)))
    }
}

/// Memory of row numbers that are done with, if it is no one else's.
fn given_back(rows: UInt32Array) -> Vec<u32> {
    let (_, values, _) = rows.into_parts();
    values.into_inner().into_vec().unwrap_or_default()
}

/// Some rows of a column of the left side.
fn of_left(left: &Left, column: usize, rows: &UInt32Array) -> Result<ArrayRef> {
    Ok(take(left.rows.column(column), rows, None)?)
}

/// Some rows of a column of the right side; what are codes stay codes.
fn of_right((count, columns): &Rows, column: usize, rows: &UInt32Array) -> Result<Vector> {
    let vector = columns.get(column).ok_or_else(|| internal_datafusion_err!("a join reads a column that is none"))?;
    let every = rows.len() == *count && rows.values().iter().enumerate().all(|(at, row)| at == *row as usize);
    if every { Ok(vector.clone()) } else { vector.rows(rows).map_err(from_exec) }
}
