//! The filters of the blocks that were read for them, as far ahead as what they leave may be kept.

use std::collections::VecDeque;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use arrow_buffer::BooleanBuffer;

use super::Executor;
use crate::error::Result;
use crate::scan::filter::{FilterTask, filter, sample};
use crate::scan::source::{ColumnId, ColumnSource};
use crate::scan::stages::{Columns, FilteredBlock, Filtering, ReadyWindow};

/// Of a block whose survivors take more, the other columns are read at once, unless reads take long: to let survivors wait is to
/// copy them.
const AT_ONCE_BYTES: u64 = 128 << 10;

/// Blocks after which the order of the conjuncts is thought over.
const REORDER: u64 = 16;

impl<S: ColumnSource> Executor<S> {
    /// Filters blocks of the first window, whose filter columns are there, as far ahead as their survivors may be kept.
    /// False if that is not at all.
    pub(super) fn filter(&mut self) -> Result<bool> {
        let Some(Filtering { mut blocks, fetch }) = self.filtering.pop_front() else { return Ok(false) };
        if let Some(fetch) = fetch {
            self.source.finish(fetch)?;
        }
        let (mut window, mut bytes, mut progress) = (VecDeque::new(), 0, false);
        while let Some(block) = blocks.pop_front() {
            let at = block.at;
            self.refresh()?;
            if block.versions != self.versions && !self.may_still_pass(at)? {
                self.metrics.blocks_pruned.fetch_add(1, Relaxed);
                self.source.release(at);
                progress = true;
                continue;
            }
            let asked = self.columns_asked(&block);
            let most = self.max_retained_bytes(&block, &asked)?;
            let reserved = (!self.ready.is_empty() || !window.is_empty()).then_some(most);
            if reserved.is_some_and(|most| !self.look_ahead.reserve(most)) {
                blocks.push_front(block);
                break;
            }
            progress = true;
            let Some(filtered) = self.filter_block(&block, reserved)? else { continue };
            if self.output.iter().all(|column| asked.contains(column)) {
                // Nothing is to be read for it that could be read for others, too: it is best decoded at once.
                if !window.is_empty() {
                    self.ready.push_back(ReadyWindow { blocks: std::mem::take(&mut window), columns: Columns::Wanted });
                }
                self.ready.push_back(ReadyWindow { blocks: VecDeque::from([filtered]), columns: Columns::NoOther });
                break;
            }
            let share = filtered.selection.count_set_bits() as u64;
            let filtered_bytes = most * share / block.selection.len().max(1) as u64;
            window.push_back(filtered);
            for &column in &self.output {
                bytes += self.source.size(column, at)?;
            }
            if bytes >= self.window_bytes(self.output.len()) {
                self.ready.push_back(ReadyWindow { blocks: std::mem::take(&mut window), columns: Columns::Wanted });
                bytes = 0;
                if !self.waits {
                    break;
                }
            }
            // The first rows of a scan with dynamic filters are what these come from.
            let first = self.versions == 0 && !self.dynamic.is_empty();
            if !self.waits && (first || filtered_bytes > AT_ONCE_BYTES) {
                break;
            }
        }
        if !window.is_empty() {
            self.ready.push_back(ReadyWindow { blocks: window, columns: Columns::Wanted });
        }
        if !blocks.is_empty() {
            self.filtering.push_front(Filtering { blocks, fetch: None });
        }
        Ok(progress)
    }

    /// The columns that filtering a block may have to decode.
    pub(super) fn columns_asked(&self, block: &FilterTask<S::LeafState>) -> Vec<ColumnId> {
        let mut columns = Vec::new();
        block.open.iter().for_each(|conjunct| conjunct.bound.columns(&mut columns));
        if block.dense {
            columns.extend(&self.output);
        }
        columns.sort_unstable();
        columns.dedup();
        columns
    }

    /// The most bytes that filtering a block by these columns may leave.
    pub(super) fn max_retained_bytes(&self, block: &FilterTask<S::LeafState>, asked: &[ColumnId]) -> Result<u64> {
        let mut most = block.selection.len() as u64 / 8;
        for &column in asked {
            most += self.source.max_retained_bytes(column, block.at)?;
        }
        Ok(most)
    }

    /// Filters a block, and lets go of all but its survivors. What was `reserved` for a block that is not next is given back but for what they
    /// take.
    pub(super) fn filter_block(
        &mut self,
        block: &FilterTask<S::LeafState>,
        reserved: Option<u64>,
    ) -> Result<Option<FilteredBlock>> {
        let (at, began) = (block.at, Instant::now());
        self.metrics.rows_in.fetch_add(block.selection.len() as u64, Relaxed);
        let selection = if block.open.is_empty() { block.selection.clone() } else { self.ask(block)? };
        let any = selection.has_true();
        let settled = if any { self.source.retain_selected(at, &selection, reserved.is_some())? } else { 0 };
        let kept = reserved.map_or(0, |reserved| self.look_ahead.keep(reserved, settled, &self.stats));
        if !any {
            self.source.release(at);
            self.stats.emptied();
            self.stats.took(selection.len(), began.elapsed(), block.dense);
            return Ok(None);
        }
        let dense = (!block.open.is_empty()).then_some(block.dense);
        Ok(Some(FilteredBlock { at, selection, kept, dense, took: began.elapsed() }))
    }

    pub(super) fn ask(&mut self, block: &FilterTask<S::LeafState>) -> Result<BooleanBuffer> {
        let number = self.stats.next_block();
        if block.dense {
            for column in self.columns_asked(block) {
                self.source.decode_cached(column, block.at, None)?;
            }
        }
        if number.is_multiple_of(REORDER) || self.order.rank.is_empty() {
            let conjuncts = &self.conjuncts;
            self.order = self.stats.order(|slot| {
                let known = conjuncts.iter().find(|conjunct| conjunct.slot == slot);
                known.map_or(0.0, |conjunct| f64::from(conjunct.bound.cost()))
            });
        }
        let several = block.open.len() > 1 || self.stats.has_optional();
        if several && !self.has_limit && self.stats.is_sample(number) {
            sample(&mut self.source, block, &self.stats)
        } else {
            filter(&mut self.source, block, &self.order, &self.stats)
        }
    }
}
