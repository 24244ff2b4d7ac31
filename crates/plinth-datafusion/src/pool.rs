//! The engine's operators and the budget.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use datafusion_common::{DataFusionError, Result};
use datafusion_execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation};
use plinth_io::{MemoryBudget, OutOfMemory, Reservation};

/// A pool that reserves what operators ask for in a [`MemoryBudget`], so that they share it with everything else.
///
/// Operators that can spill get an equal share each of what others leave, so that the first to come does not starve those
/// behind it (the idea of DataFusion's `FairSpillPool`). Those that can't get what is left, and else fail with an error that
/// says which operator that was, how much it wanted and what to do.
#[derive(Debug)]
pub struct BudgetPool {
    budget: Arc<MemoryBudget>,
    consumers: Mutex<HashMap<usize, Consumer>>,
}

#[derive(Debug)]
struct Consumer {
    /// Those that can spill share by groups.
    group: Option<Group>,
    /// Whether it merges what another of its group gathered, and so makes no share more.
    merges: bool,
    doubles: bool,
    held: Reservation,
}

/// Who shares: an operator, or all that the sorts of a partition gather and merge, with a share for each sort. (A sort asks for twice
/// what its rows take, and gives that back as its merge asks for what it needs.)
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Group {
    Operator(usize),
    Sorts(String),
}

impl Group {
    fn of(consumer: &MemoryConsumer) -> Option<Self> {
        let name = consumer.name();
        match name.strip_prefix("ExternalSorterMerge").or_else(|| name.strip_prefix("ExternalSorter")) {
            Some(partition) => Some(Self::Sorts(partition.to_owned())),
            None => consumer.can_spill().then_some(Self::Operator(consumer.id())),
        }
    }
}

impl Consumer {
    /// What so many bytes that it asks for are counted as.
    fn counted(&self, bytes: usize) -> u64 {
        let bytes = bytes as u64;
        if self.doubles { bytes.saturating_mul(DOUBLING) } else { bytes.saturating_add(bytes / UNASKED) }
    }
}

/// Operators hold more than they ask for: batches on their way, rows being compared, tables while they grow, and what the
/// allocator keeps between pieces. Sorts and joins of tables many times the limit were seen to hold half as much again.
const UNASKED: u64 = 2;

/// Aggregates without groups hold sets (for `count(DISTINCT x)`) that double their tables first and ask for the memory
/// afterwards, when they have the old and the new one.
const DOUBLING: u64 = 3;

impl BudgetPool {
    /// A pool over a budget.
    pub fn new(budget: Arc<MemoryBudget>) -> Self {
        Self { budget, consumers: Mutex::default() }
    }

    /// What a group may hold, and how many shares there are.
    fn share(&self, consumers: &HashMap<usize, Consumer>, group: &Group) -> (u64, u64) {
        let mut shares: HashMap<&Group, u64> = HashMap::new();
        let mut bytes = 0;
        for consumer in consumers.values() {
            if let Some(group) = &consumer.group {
                *shares.entry(group).or_default() += u64::from(!consumer.merges);
                bytes += consumer.held.bytes();
            }
        }
        // A merge goes on when its sort has gone.
        let count = shares.values().map(|&shares| shares.max(1)).sum::<u64>().max(1);
        let own = shares.get(group).map_or(1, |&shares| shares.max(1));
        let others = self.budget.used().saturating_sub(bytes);
        (self.budget.limit().saturating_sub(others) / count * own, count)
    }

    /// What this locks is whole at any moment.
    fn consumers(&self) -> MutexGuard<'_, HashMap<usize, Consumer>> {
        self.consumers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MemoryPool for BudgetPool {
    fn name(&self) -> &'static str {
        "budget"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        // Nothing is never refused.
        if let Ok(held) = self.budget.reserve(&operator(consumer.name()), 0) {
            let (group, name) = (Group::of(consumer), consumer.name());
            let (merges, doubles) = (name.starts_with("ExternalSorterMerge"), name.starts_with("AggregateStream"));
            self.consumers().insert(consumer.id(), Consumer { group, merges, doubles, held });
        }
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        self.consumers().remove(&consumer.id());
    }

    /// Operators grow like this when they have the memory already.
    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        if let Some(consumer) = self.consumers().get_mut(&reservation.consumer().id()) {
            consumer.held.charge(consumer.counted(additional));
        }
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        if let Some(consumer) = self.consumers().get_mut(&reservation.consumer().id()) {
            consumer.held.shrink(consumer.counted(shrink));
        }
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        let id = reservation.consumer().id();
        let mut consumers = self.consumers();
        let Some(consumer) = consumers.get(&id) else { return Ok(()) };
        let more = consumer.counted(additional);
        if let Some(group) = &consumer.group {
            let of_group = consumers.values().filter(|other| other.group.as_ref() == Some(group));
            let holds: u64 = of_group.map(|other| other.held.bytes()).sum();
            let after = holds.saturating_add(more);
            let (share, shares) = self.share(&consumers, group);
            if after > share {
                // Caches first. What they give back is shared, too.
                self.budget.reclaim((after - share).saturating_mul(shares));
                let (share, _) = self.share(&consumers, group);
                if after > share {
                    let left = share.saturating_sub(holds);
                    return Err(refused(consumer, &OutOfMemory { left, ..consumer.held.refusal(more) }));
                }
            }
        }
        let Some(consumer) = consumers.get_mut(&id) else { return Ok(()) };
        consumer.held.try_grow(more).map_err(|error| refused(consumer, &error))
    }

    fn reserved(&self) -> usize {
        let bytes = self.consumers().values().map(|consumer| consumer.held.bytes()).sum::<u64>();
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

fn refused(consumer: &Consumer, error: &OutOfMemory) -> DataFusionError {
    // Those that can spill take this as the word to do so; it is shown only where even that does not help.
    let hint = if consumer.group.is_some() { "" } else { "; this can't spill to disk" };
    DataFusionError::ResourcesExhausted(format!("{error}{hint}"))
}

/// A consumer of the engine in the words of a query's author.
fn operator(consumer: &str) -> String {
    let name = consumer.split(['[', '(']).next().unwrap_or(consumer).trim();
    match name {
        "HashJoinInput" => "hash join (build side)",
        "SMJStream" => "sort-merge join",
        "CrossJoinExec" => "cross join",
        "SymmetricHashJoinStream" => "symmetric hash join",
        "PiecewiseMergeJoinInput" => "piecewise merge join",
        "ExternalSorter" => "sort",
        "ExternalSorterMerge" => "sort (merging)",
        "SortPreservingMergeExec" => "merge of sorted partitions",
        "RepartitionExec" => "repartitioning",
        name if name.starts_with("NestedLoopJoin") => "nested loop join",
        "AggregateStream" => "aggregate (DISTINCT)",
        name if name.contains("TopK") => "ORDER BY with LIMIT",
        name if name.contains("Aggregate") => "GROUP BY",
        name if name.starts_with("RecursiveQuery") => "recursive query",
        name if name.starts_with("ParquetSink") => "Parquet writer",
        name => name,
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Weak;
    use std::thread;

    use plinth_io::Reclaim;

    fn pool(limit: u64) -> (Arc<MemoryBudget>, Arc<dyn MemoryPool>) {
        let budget = MemoryBudget::new(limit);
        (Arc::clone(&budget), Arc::new(BudgetPool::new(budget)))
    }

    #[test]
    fn operators_that_can_spill_share_what_others_leave() {
        // What is asked for counts for half as much again.
        let (budget, pool) = pool(1500);
        let sort = MemoryConsumer::new("ExternalSorter[0]").with_can_spill(true).register(&pool);
        sort.try_grow(1000).unwrap();
        sort.shrink(500);
        let other = MemoryConsumer::new("ExternalSorter[1]").with_can_spill(true).register(&pool);
        other.try_grow(500).unwrap();
        assert!(sort.try_grow(2).is_err() && other.try_grow(2).is_err());
        other.free();
        let _cache = budget.reserve("cache", 300).unwrap();
        assert!(sort.try_grow(2).is_err(), "its share is 400 now");
        assert!(other.try_grow(402).is_err());
        other.try_grow(300).unwrap();
        drop(other);
        sort.try_grow(300).unwrap();
        assert_eq!((budget.used(), pool.reserved()), (1500, 1200));
        drop(sort);
        assert_eq!((budget.used(), pool.reserved()), (300, 0));
    }

    #[test]
    fn a_refusal_names_operator_and_size_in_one_line() {
        let (budget, pool) = pool(64_000_000);
        let _slabs = budget.reserve("I/O slabs", 48_000_000).unwrap();
        let join = MemoryConsumer::new("HashJoinInput[3]").register(&pool);
        join.try_grow(4_000_000).unwrap();
        assert_eq!(
            join.try_grow(12_000_000).unwrap_err().strip_backtrace(),
            "Resources exhausted: hash join (build side) needs 18.0 MB more than its 6.0 MB, but 10.0 MB of the memory \
             limit of 64.0 MB are left (I/O slabs holds 48.0 MB): raise the limit or use fewer threads; this can't spill \
             to disk"
        );
        // What is held already is counted, whatever the limit.
        join.grow(20_000_000);
        assert_eq!(budget.used(), 84_000_000);
        drop(join);
        assert_eq!(operator("GroupedHashAggregateStream[1] (count(*))"), "GROUP BY");
        assert_eq!(operator("SomethingNew[7]"), "SomethingNew");
    }

    #[test]
    fn a_sort_and_its_merge_have_one_share() {
        let (budget, pool) = pool(1500);
        let other = MemoryConsumer::new("GroupedHashAggregateStream[0]").with_can_spill(true).register(&pool);
        let sort = MemoryConsumer::new("ExternalSorter[0]").with_can_spill(true).register(&pool);
        let merge = MemoryConsumer::new("ExternalSorterMerge[0]").register(&pool);
        sort.try_grow(500).unwrap();
        assert!(merge.try_grow(2).is_err());
        // As rows go from one to the other.
        sort.shrink(200);
        merge.try_grow(100).unwrap();
        sort.free();
        merge.try_grow(400).unwrap();
        assert!(merge.try_grow(2).is_err());
        other.try_grow(500).unwrap();
        assert_eq!(budget.used(), 1500);
        // Two sorts of a partition (of a join's two sides) have two shares.
        merge.free();
        other.free();
        let second = MemoryConsumer::new("ExternalSorter[0]").with_can_spill(true).register(&pool);
        second.try_grow(333).unwrap();
        sort.try_grow(333).unwrap();
        assert!(second.try_grow(3).is_err());
        other.try_grow(333).unwrap();
    }

    #[test]
    fn caches_give_way_to_operators_that_can_spill() {
        struct Cache(Mutex<Reservation>);
        impl Reclaim for Cache {
            fn reclaim(&self, bytes: u64) -> u64 {
                let Ok(mut held) = self.0.try_lock() else { return 0 };
                let before = held.bytes();
                held.shrink(bytes);
                before - held.bytes()
            }
        }
        let (budget, pool) = pool(1500);
        let cache = Arc::new(Cache(Mutex::new(budget.reserve("cache", 1200).unwrap())));
        budget.register(Arc::downgrade(&cache) as Weak<dyn Reclaim>);
        let sort = MemoryConsumer::new("ExternalSorter[0]").with_can_spill(true).register(&pool);
        let _idle = MemoryConsumer::new("ExternalSorter[1]").with_can_spill(true).register(&pool);
        sort.try_grow(400).unwrap();
        assert_eq!((cache.0.lock().unwrap().bytes(), budget.used()), (300, 900));
        sort.try_grow(100).unwrap();
        assert!(sort.try_grow(2).is_err());
    }

    #[test]
    fn operators_side_by_side_stay_within_the_budget() {
        let (budget, pool) = pool(10_000);
        thread::scope(|scope| {
            for i in 0..8 {
                let (budget, pool) = (&budget, &pool);
                scope.spawn(move || {
                    for round in 0..200 {
                        let consumer =
                            MemoryConsumer::new(format!("Op[{i}]")).with_can_spill(i % 2 == 0).register(pool);
                        for bytes in [100, 700, 1300] {
                            if consumer.try_grow(bytes + round).is_err() {
                                consumer.free();
                            }
                            assert!(budget.used() <= 10_000);
                        }
                    }
                });
            }
        });
        assert_eq!((budget.used(), pool.reserved()), (0, 0));
    }
}
