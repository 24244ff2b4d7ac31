//! The engine's operators and the budget.

use std::collections::HashMap;
use std::convert::Infallible;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};

use datafusion_common::{DataFusionError, Result};
use datafusion_execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation};
use plinth_core::sync::lock;
use plinth_io::{MemoryBudget, OutOfMemory, Reservation};

/// A pool that reserves what operators ask for in a [`MemoryBudget`], so that they share it with everything else.
///
/// Operators that can spill get a share each of what others leave, so that the first to come does not starve those
/// behind it (the idea of DataFusion's `FairSpillPool`): those that keep what they gather get more than those that pass it on,
/// so that what is spilled is few large runs. Those that can't spill get what is left, and else fail with an error that
/// says which operator that was, how much it wanted and what to do.
///
/// What is left is what is not reserved or, if that is less, what is not in use in truth ([`MemoryBudget::measure`]):
/// state that an operator does not ask memory for makes it spill all the same.
#[derive(Debug)]
pub struct BudgetPool {
    budget: Arc<MemoryBudget>,
    /// Bytes that those that can spill leave to those that can't.
    reserve: u64,
    state: Mutex<State>,
}

/// Who asks, and the sums of that, so that a request costs the same however many there are.
#[derive(Debug, Default)]
struct State {
    consumers: HashMap<usize, Consumer>,
    /// Those that can spill, each with a share, by the first of their consumers.
    groups: HashMap<usize, Members>,
    /// Sorts whose merge has not come yet, by partition. It comes at once, from the same thread.
    unpaired: HashMap<String, Vec<usize>>,
    /// Bytes that all groups hold, and those that can't spill.
    held: u64,
    plain: u64,
    /// Parts of all groups.
    parts: u64,
}

/// An operator, or a sort together with the merge of what it gathered: a sort asks for twice what its rows take, and gives
/// that back as its merge asks for what it needs.
#[derive(Debug, Default)]
struct Members {
    count: usize,
    held: u64,
    /// What it gets of each so many parts.
    parts: u64,
}

#[derive(Debug)]
struct Consumer {
    /// Those that can spill share by groups.
    group: Option<usize>,
    /// Tenths of what it asks for that it is counted as.
    weight: u64,
    /// What it asked for.
    asked: u64,
    /// What that is counted as.
    held: Reservation,
}

impl Consumer {
    /// What it would be counted as had it asked for so many bytes.
    fn counted(&self, asked: u64) -> u64 {
        asked.saturating_mul(self.weight) / 10
    }
}

impl State {
    fn group_of(&mut self, consumer: &MemoryConsumer) -> Option<usize> {
        let (id, name) = (consumer.id(), consumer.name());
        if let Some(partition) = name.strip_prefix("ExternalSorterMerge") {
            return Some(self.unpaired.get_mut(partition).and_then(Vec::pop).unwrap_or(id));
        }
        if let Some(partition) = name.strip_prefix("ExternalSorter") {
            self.unpaired.entry(partition.to_owned()).or_default().push(id);
        }
        consumer.can_spill().then_some(id)
    }

    fn join(&mut self, id: usize, name: &str, consumer: Consumer) {
        if let Some(group) = consumer.group {
            let members = self.groups.entry(group).or_default();
            members.count += 1;
            if members.count == 1 {
                members.parts = parts(name);
                self.parts += members.parts;
            }
        }
        self.consumers.insert(id, consumer);
    }

    fn leave(&mut self, id: usize) {
        let Some(Consumer { group, held, .. }) = self.consumers.remove(&id) else { return };
        let Some(group) = group else {
            self.plain -= held.bytes();
            return;
        };
        let Some(members) = self.groups.get_mut(&group) else { return };
        members.count -= 1;
        members.held -= held.bytes();
        self.held -= held.bytes();
        if members.count == 0 {
            self.parts -= members.parts;
            self.groups.remove(&group);
            self.unpaired.values_mut().for_each(|sorts| sorts.retain(|sort| *sort != group));
        }
    }

    /// Lets a consumer have asked for so many bytes, by way of its reservation.
    fn change<E>(
        &mut self,
        id: usize,
        asked: impl FnOnce(u64) -> u64,
        hold: impl FnOnce(&mut Reservation, u64) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some(consumer) = self.consumers.get_mut(&id) else { return Ok(()) };
        let (asked, before) = (asked(consumer.asked), consumer.held.bytes());
        let counted = consumer.counted(asked);
        hold(&mut consumer.held, counted)?;
        consumer.asked = asked;
        let after = consumer.held.bytes();
        match consumer.group.and_then(|group| self.groups.get_mut(&group)) {
            Some(members) => {
                members.held = members.held + after - before;
                self.held = self.held + after - before;
            }
            None => self.plain = self.plain + after - before,
        }
        Ok(())
    }
}

/// Operators hold more than they ask for: batches on their way, rows being compared, tables while they grow, and what the
/// allocator keeps between pieces. Sorts and joins of tables many times the limit were seen to hold half as much again, groups
/// by text up to twice as much: what they spill is sorted first, and is there twice meanwhile. Aggregates without groups
/// hold sets (for `count(DISTINCT x)`) that double their tables first and ask for the memory afterwards, when they have
/// the old and the new one. Merges ask for all that they hold, the rows as keys too, and what they lack the sort before them, which
/// was counted as more, can't write to disk any more. Own sorts count what they hold.
fn weight(operator: &str) -> u64 {
    if operator.starts_with("AggregateStream") {
        30
    } else if operator.contains("Aggregate") {
        20
    } else if operator.starts_with("ExternalSorterMerge") || operator.starts_with("Sorter") {
        10
    } else {
        15
    }
}

/// What an operator that can spill gets, compared with others. Aggregates before an exchange and the exchange itself pass rows
/// on when they have no more room; all others write what they hold to disk, sorted, and merge it later: the less they have,
/// the more often, and the more runs there are to merge.
fn parts(operator: &str) -> u64 {
    let passes_on = operator.starts_with("Repartition") || operator.contains("Partial");
    if passes_on { 1 } else { 4 }
}

/// Of the limit, what an operator that can spill may always hold: the least that it can get on with, such as a batch and the
/// batches it is merged with; so may the merge of partitions, whose sorts have taken all there is.
const LEAST: u64 = 16;
/// The same of all others, for the value of a lone group and such.
const LITTLE: u64 = 256;
/// Of the limit, what operators that can spill leave to those that can't and come when these have gathered all they may: what
/// writes a file of sorted rows.
const RESERVE: u64 = 8;
/// Of the limit, what all of them together may hold above it for that.
const ABOVE: u64 = 8;

impl BudgetPool {
    /// A pool over a budget.
    pub fn new(budget: Arc<MemoryBudget>) -> Self {
        let reserve = budget.limit() / RESERVE;
        Self { budget, reserve, state: Mutex::default() }
    }

    /// What a group of so many parts may hold.
    fn share(&self, state: &State, parts: u64) -> u64 {
        let others = self.budget.in_use().saturating_sub(state.held);
        let reserve = self.reserve.saturating_sub(state.plain);
        let left = self.budget.limit().saturating_sub(others).saturating_sub(reserve);
        left.saturating_mul(parts) / state.parts.max(1)
    }

    /// What a group of so many parts may hold that wants so much, once caches have given back what it lacks.
    fn share_for(&self, state: &State, parts: u64, wanted: u64) -> u64 {
        let share = self.share(state, parts);
        if wanted <= share {
            return share;
        }
        // What they give back is shared, too.
        self.budget.reclaim((wanted - share).saturating_mul(state.parts) / parts.max(1));
        self.share(state, parts)
    }

    /// Whether someone may hold so many bytes, a part of the limit, whatever others do: they could not get on otherwise.
    fn needs(&self, after: u64, more: u64, part: u64) -> bool {
        let limit = self.budget.limit();
        after <= limit / part && self.budget.in_use().saturating_add(more) <= limit.saturating_add(limit / ABOVE)
    }

    /// What this locks is whole at any moment.
    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl MemoryPool for BudgetPool {
    fn name(&self) -> &'static str {
        "budget"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        let (name, mut state) = (consumer.name(), self.state());
        let known = Consumer {
            group: state.group_of(consumer),
            weight: weight(name),
            asked: 0,
            held: self.budget.open(&operator(name)),
        };
        state.join(consumer.id(), name, known);
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        self.state().leave(consumer.id());
    }

    /// Operators grow like this when they have the memory already.
    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        let _ = self.state().change(reservation.consumer().id(), |asked| asked + additional as u64, charge);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        let give_back = |held: &mut Reservation, counted: u64| {
            held.shrink(held.bytes().saturating_sub(counted));
            Ok::<(), Infallible>(())
        };
        let less = |asked: u64| asked.saturating_sub(shrink as u64);
        let _ = self.state().change(reservation.consumer().id(), less, give_back);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        let (id, additional) = (reservation.consumer().id(), additional as u64);
        let mut state = self.state();
        let Some(consumer) = state.consumers.get(&id) else { return Ok(()) };
        let asked = consumer.asked.saturating_add(additional);
        let hold = |held: &mut Reservation, counted: u64| held.try_grow(counted.saturating_sub(held.bytes()));
        let more = consumer.counted(asked).saturating_sub(consumer.held.bytes());
        let Some(members) = consumer.group.and_then(|group| state.groups.get(&group)) else {
            let after = consumer.held.bytes().saturating_add(more);
            let merges = reservation.consumer().name().starts_with("SortPreservingMerge");
            return match state.change(id, |_| asked, hold) {
                Err(_) if self.needs(after, more, if merges { LEAST } else { LITTLE }) => {
                    let _ = state.change(id, |_| asked, charge);
                    Ok(())
                }
                result => result.map_err(|error| refused(false, &error)),
            };
        };
        let after = members.held.saturating_add(more);
        let share = self.share_for(&state, members.parts, after);
        let left = share.saturating_sub(members.held);
        let refusal = (after > share).then(|| OutOfMemory { left, ..consumer.held.refusal(more) });
        match refusal.map_or_else(|| state.change(id, |_| asked, hold), Err) {
            Err(_) if self.needs(after, more, LEAST) => {
                let _ = state.change(id, |_| asked, charge);
                Ok(())
            }
            result => result.map_err(|error| refused(true, &error)),
        }
    }

    fn reserved(&self) -> usize {
        let bytes = self.state().consumers.values().map(|consumer| consumer.held.bytes()).sum::<u64>();
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }

    fn memory_limit(&self) -> MemoryLimit {
        MemoryLimit::Finite(usize::try_from(self.budget.limit()).unwrap_or(usize::MAX))
    }
}

impl fmt::Display for BudgetPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "budget({} of {} bytes)", self.budget.used(), self.budget.limit())
    }
}

/// Counts what is held, whatever the limit.
fn charge(held: &mut Reservation, counted: u64) -> Result<(), Infallible> {
    held.charge(counted.saturating_sub(held.bytes()));
    Ok(())
}

fn refused(can_spill: bool, error: &OutOfMemory) -> DataFusionError {
    // Those that can spill take this as the word to do so; it is shown only where even that does not help.
    let hint = if can_spill { "" } else { "; this can't spill to disk" };
    DataFusionError::ResourcesExhausted(format!("{error}{hint}"))
}

/// A consumer of the engine in the words of a query's author.
pub(crate) fn operator(consumer: &str) -> String {
    let name = consumer.split(['[', '(']).next().unwrap_or(consumer).trim();
    match name {
        "HashJoinInput" => "hash join (build side)",
        "HashJoinExec" => "hash join",
        "SMJStream" | "SortMergeJoinExec" => "sort-merge join",
        "CrossJoinExec" => "cross join",
        "SymmetricHashJoinStream" => "symmetric hash join",
        "PiecewiseMergeJoinInput" => "piecewise merge join",
        "ExternalSorter" | "SortExec" | "Sorter" => "sort",
        "ExternalSorterMerge" => "sort (merging)",
        "SortPreservingMergeExec" => "merge of sorted partitions",
        "RepartitionExec" => "repartitioning",
        name if name.starts_with("NestedLoopJoin") => "nested loop join",
        "AggregateStream" => "aggregate (DISTINCT)",
        "AggregateExec" => "aggregate",
        "WindowAggExec" | "BoundedWindowAggExec" => "window",
        "UnnestExec" => "unnest",
        name if name.contains("TopK") => "ORDER BY with LIMIT",
        name if name.contains("Aggregate") => "GROUP BY",
        name if name.starts_with("RecursiveQuery") => "recursive query",
        name if name.starts_with("ParquetSink") => "Parquet writer",
        name => name,
    }
    .to_owned()
}

#[cfg(test)]
mod tests;
