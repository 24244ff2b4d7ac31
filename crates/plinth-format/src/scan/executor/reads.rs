//! What a scan reads next, and how far ahead.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use arrow_buffer::BooleanBuffer;
use plinth_io::Priority;

use super::{Executor, WINDOW};
use crate::error::{FormatError, Result};
use crate::scan::PushdownMode;
use crate::scan::adaptive::{DecodeOrder, Place};
use crate::scan::filter::FilterTask;
use crate::scan::source::{BlockId, ColumnId, ColumnSource};
use crate::scan::stages::{Columns, Filtering, ReadyWindow};

/// The same while a dynamic filter may rule out the next blocks any moment.
const DYNAMIC_WINDOW: usize = 4;

/// Bytes a window reads at a time, unless a single block needs more.
const WINDOW_BYTES: u64 = 2 << 20;

/// The same of each column while the storage keeps the scan waiting, so that requests are long, and of all columns.
const COLUMN_BYTES: u64 = 512 << 10;

const WAITING_BYTES: u64 = 16 << 20;

/// Windows that are under way while the storage keeps the scan waiting.
const AHEAD: usize = 4;

impl<S: ColumnSource> Executor<S> {
    /// Starts what has to be read next, and more while the storage keeps the scan waiting: then windows that are read are
    /// filtered early, too, for what they let through is to be read next.
    pub(super) fn start_reads(&mut self) -> Result<()> {
        loop {
            let depth = if self.waits { AHEAD.min(self.window) } else { 1 };
            if !self.start_ready(depth)? {
                return Ok(());
            }
            let is_read = self.filtering.front().is_some_and(Filtering::is_read);
            // To filter blocks early is to know early what else is to be read.
            let is_of_use = !self.ready.back().is_some_and(|last| matches!(last.columns, Columns::NoOther));
            if is_read && is_of_use && self.ready.len() < depth {
                if !self.filter()? {
                    return Ok(());
                }
            } else if self.filtering.len() + self.ready.len() >= depth {
                return Ok(());
            } else if self.pruned.is_empty() {
                // Later row groups only while waiting: what is there at once is best decoded at once.
                if !self.waits || !self.next_groups()? {
                    return Ok(());
                }
            } else if !self.start_window()? {
                return Ok(());
            }
        }
    }

    /// Moves to the next row group; of a file that is far to as many as have the blocks of a window. False if there is none.
    pub(super) fn next_groups(&mut self) -> Result<bool> {
        let far = self.source.bytes_a_wait() > 0;
        let mut any = false;
        while self.next_group()? {
            any = true;
            if !far || self.pruned.len() >= self.window {
                break;
            }
        }
        Ok(any)
    }

    /// Starts to read the other columns of the first windows. False if there is no memory to do so ahead.
    pub(super) fn start_ready(&mut self, windows: usize) -> Result<bool> {
        let mut i = 0;
        while i < self.ready.len().min(windows) {
            if matches!(self.ready[i].columns, Columns::Wanted) {
                let wanted: Vec<_> = self.ready[i].blocks.iter().flat_map(|block| self.columns_of(block.at)).collect();
                let fetch = match self.source.start(&wanted, Priority::Ahead)? {
                    Some(fetch) => fetch,
                    None if i > 0 => return Ok(false),
                    None => {
                        // The first rows have to be read now: as few as can be.
                        let rest = self.ready[0].blocks.split_off(1);
                        if !rest.is_empty() {
                            self.ready.insert(1, ReadyWindow { blocks: rest, columns: Columns::Wanted });
                        }
                        self.need(&wanted[..self.output.len()])?
                    }
                };
                self.note(&fetch);
                self.ready[i].columns = Columns::UnderWay(fetch);
            }
            i += 1;
        }
        Ok(true)
    }

    /// Whether the storage keeps the scan waiting is told by its last read.
    pub(super) fn note(&mut self, fetch: &S::Fetch) {
        let reading = fetch.as_ref();
        if !reading.is_empty() {
            self.waits = !reading.is_done();
        }
    }

    /// Starts a read that the scan can't go on without.
    pub(super) fn need(&self, wanted: &[(ColumnId, BlockId)]) -> Result<S::Fetch> {
        let fetch = self.source.start(wanted, Priority::Now)?;
        fetch.ok_or_else(|| FormatError::internal("a read that is needed was not begun"))
    }

    /// Bytes of a window that reads so many columns.
    pub(super) fn window_bytes(&self, columns: usize) -> u64 {
        if self.waits { (columns as u64 * COLUMN_BYTES).clamp(WINDOW_BYTES, WAITING_BYTES) } else { WINDOW_BYTES }
    }

    pub(super) fn columns_of(&self, at: BlockId) -> impl Iterator<Item = (ColumnId, BlockId)> {
        self.output.iter().map(move |&column| (column, at))
    }

    /// Takes the next blocks and starts to read what their predicates need. False if there is no memory to do so ahead.
    pub(super) fn start_window(&mut self) -> Result<bool> {
        if self.refresh()? {
            let before = self.pruned.len();
            let blocks = std::mem::take(&mut self.pruned);
            for live in blocks {
                if self.may_pass(&live)? {
                    self.pruned.push_back(live);
                }
            }
            self.metrics.blocks_pruned.fetch_add((before - self.pruned.len()) as u64, Relaxed);
        }
        let (decode_order, eager) = self.decode_order();
        let far = self.source.bytes_a_wait();
        let most = match (decode_order.trial, self.dynamic.is_empty() || far > 0) {
            (true, _) => 1,
            (false, true) => self.window,
            (false, false) => self.window.min(DYNAMIC_WINDOW),
        };
        let bounded = far > 0 && (self.has_limit || !self.dynamic.is_empty());
        let eager = eager || self.spares_a_wait(most)?;
        let (mut blocks, mut wanted, mut bytes, mut first) = (VecDeque::new(), Vec::new(), 0, 0);
        for live in self.pruned.iter().take(most) {
            let at = live.at;
            let full = self.window_bytes(wanted.len().div_ceil(blocks.len().max(1)));
            if bytes >= if bounded { full.min(far) } else { full } {
                break;
            }
            if live.answered {
                for indexed in self.indexed.iter().flatten() {
                    indexed.answered().for_each(|conjunct| self.stats.decided(conjunct.slot, Place::Everything));
                }
            }
            // A predicate that zone maps prove true everywhere in a block needs no column of it.
            let (mut open, mut columns) = (Vec::new(), Vec::new());
            for conjunct in self.open(live) {
                if conjunct.bound.zone_map_result(&self.source, at)?.always_true() {
                    self.stats.decided(conjunct.slot, Place::Everything);
                } else {
                    open.push(Arc::clone(conjunct));
                    conjunct.bound.columns(&mut columns);
                }
            }
            if eager {
                columns.extend(&self.output);
            }
            columns.sort_unstable();
            columns.dedup();
            for column in columns {
                bytes += self.source.size(column, at)?;
                wanted.push((column, at));
            }
            let selection = live.selection.clone().unwrap_or_else(|| BooleanBuffer::new_set(live.rows));
            let dense = decode_order.dense && !open.is_empty();
            blocks.push_back(FilterTask { at, selection, open, dense, versions: self.versions });
            first = if blocks.len() == 1 { wanted.len() } else { first };
        }
        let fetch = match self.source.start(&wanted, Priority::Ahead)? {
            Some(fetch) => fetch,
            None if !self.filtering.is_empty() || !self.ready.is_empty() => return Ok(false),
            None => {
                blocks.truncate(1);
                self.need(&wanted[..first])?
            }
        };
        self.note(&fetch);
        self.pruned.drain(..blocks.len());
        self.window = (self.window * 2).min(WINDOW);
        self.filtering.push_back(Filtering { blocks, fetch: Some(fetch) });
        Ok(true)
    }

    /// Whether the output's columns of the next blocks come sooner than the answer which of them are needed. So many bytes are read once: later
    /// answers come while others are waited for.
    fn spares_a_wait(&mut self, blocks: usize) -> Result<bool> {
        let mut bytes = 0;
        for live in self.pruned.iter().take(blocks) {
            for &column in &self.output {
                bytes += self.source.size(column, live.at)?;
            }
            if bytes > self.spare {
                return Ok(false);
            }
        }
        self.spare -= bytes;
        Ok(bytes > 0)
    }

    /// How the next window is read and decoded, and whether the output's columns are read together with the filters': to wait for
    /// the filters first pays only if they leave blocks out.
    pub(super) fn decode_order(&self) -> (DecodeOrder, bool) {
        let fixed = |dense| DecodeOrder { dense, trial: false };
        match self.mode {
            PushdownMode::AfterDecode => (fixed(true), true),
            PushdownMode::Interleaved => (fixed(false), true),
            PushdownMode::FilterFirst => (fixed(false), false),
            PushdownMode::Auto if self.has_limit || self.conjuncts.is_empty() => (fixed(false), false),
            PushdownMode::Auto => {
                let order = self.stats.next_window();
                (order, order.dense || (self.waits && self.stats.rarely_empties()))
            }
        }
    }
}
