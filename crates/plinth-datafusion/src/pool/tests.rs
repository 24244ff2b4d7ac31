//! Memory of operators within a budget.

use super::*;
use std::sync::Weak;
use std::thread;

use plinth_io::Reclaim;

fn pool(limit: u64) -> (Arc<MemoryBudget>, Arc<dyn MemoryPool>) {
    let budget = MemoryBudget::new(limit);
    (Arc::clone(&budget), Arc::new(BudgetPool { reserve: 0, ..BudgetPool::new(budget) }))
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
        "Resources exhausted: hash join (build side) needs 18.0 MB more than its 6.00 MB, but 10.0 MB of the memory \
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
fn who_comes_while_others_hold_too_much_is_counted_all_the_same() {
    let (budget, pool) = pool(1500);
    let mut others = budget.open("others");
    others.charge(2000);
    let join = MemoryConsumer::new("HashJoinInput[0]").register(&pool);
    assert!(join.try_grow(100).is_err());
    drop(others);
    join.try_grow(100).unwrap();
    assert_eq!(budget.used(), 150);
    // In pieces of any size, nothing is left over.
    for _ in 0..99 {
        join.shrink(1);
    }
    assert_eq!(budget.used(), 1);
    join.shrink(1);
    assert_eq!(budget.used(), 0);
}

#[test]
fn a_sort_and_its_merge_have_one_share() {
    let (budget, pool) = pool(1500);
    let other = MemoryConsumer::new("TopK[0]").with_can_spill(true).register(&pool);
    let sort = MemoryConsumer::new("ExternalSorter[0]").with_can_spill(true).register(&pool);
    let merge = MemoryConsumer::new("ExternalSorterMerge[0]").register(&pool);
    sort.try_grow(500).unwrap();
    assert!(merge.try_grow(2).is_err());
    // As rows go from one to the other, whose requests are counted as they are.
    sort.shrink(200);
    merge.try_grow(150).unwrap();
    sort.free();
    merge.try_grow(600).unwrap();
    assert!(merge.try_grow(2).is_err());
    other.try_grow(500).unwrap();
    assert_eq!(budget.used(), 1500);
    // Two sorts of a partition (of a join's two sides) have a share each, and so do their merges once they have gone.
    merge.free();
    other.free();
    let second = MemoryConsumer::new("ExternalSorter[0]").with_can_spill(true).register(&pool);
    let second_merge = MemoryConsumer::new("ExternalSorterMerge[0]").register(&pool);
    sort.try_grow(333).unwrap();
    assert!(sort.try_grow(3).is_err());
    second.try_grow(300).unwrap();
    second_merge.try_grow(50).unwrap();
    assert!(second_merge.try_grow(3).is_err());
    other.try_grow(333).unwrap();
    drop((sort, second));
    merge.try_grow(500).unwrap();
    assert!(merge.try_grow(3).is_err());
    second_merge.try_grow(450).unwrap();
    drop((merge, second_merge, other));
    assert_eq!((budget.used(), pool.reserved()), (0, 0));
}

#[test]
fn what_passes_rows_on_gets_less_than_what_keeps_them() {
    let (budget, pool) = pool(1800);
    let spilling = |name: &str| MemoryConsumer::new(name).with_can_spill(true).register(&pool);
    let first = spilling("PartialHashAggregateStream[0]");
    let exchange = spilling("RepartitionExec[0]");
    let last = spilling("FinalHashAggregateStream[0]");
    // Of six parts of 300 it gets four, and what it asks for counts twice.
    last.try_grow(600).unwrap();
    assert!(last.try_grow(2).is_err());
    first.try_grow(150).unwrap();
    assert!(first.try_grow(2).is_err());
    exchange.try_grow(200).unwrap();
    assert!(exchange.try_grow(2).is_err());
    assert_eq!(budget.used(), 1800);
}

#[test]
fn an_operator_that_can_spill_gets_the_least_it_needs_whatever_others_hold() {
    let (budget, pool) = pool(1600);
    let _others = budget.reserve("others", 1600).unwrap();
    let sort = MemoryConsumer::new("ExternalSorter[0]").with_can_spill(true).register(&pool);
    let merge = MemoryConsumer::new("ExternalSorterMerge[0]").register(&pool);
    let join = MemoryConsumer::new("HashJoinInput").register(&pool);
    assert!(join.try_grow(10).is_err());
    join.try_grow(4).unwrap();
    join.free();
    sort.try_grow(30).unwrap();
    merge.try_grow(54).unwrap();
    assert!(sort.try_grow(2).is_err() && merge.try_grow(2).is_err());
    // All of them together do not get more than an eighth.
    let second = MemoryConsumer::new("ExternalSorter[1]").with_can_spill(true).register(&pool);
    second.try_grow(66).unwrap();
    let third = MemoryConsumer::new("ExternalSorter[2]").with_can_spill(true).register(&pool);
    assert!(third.try_grow(2).is_err());
}

#[test]
fn those_that_can_spill_leave_some_to_those_that_can_not() {
    let budget = MemoryBudget::new(1600);
    let pool: Arc<dyn MemoryPool> = Arc::new(BudgetPool::new(Arc::clone(&budget)));
    let sort = MemoryConsumer::new("TopK[0]").with_can_spill(true).register(&pool);
    assert!(sort.try_grow(934).is_err(), "of 1600 it gets 1400");
    sort.try_grow(933).unwrap();
    let writer = MemoryConsumer::new("ParquetSink").register(&pool);
    writer.try_grow(60).unwrap();
    // What is kept for them, they hold themselves now.
    sort.shrink(533);
    sort.try_grow(533).unwrap();
    writer.try_grow(70).unwrap();
    assert!(writer.try_grow(100).is_err() && sort.try_grow(2).is_err());
    drop((sort, writer));
    assert_eq!((budget.used(), pool.reserved()), (0, 0));
}

#[test]
fn a_merge_of_what_was_sorted_gets_the_least_it_needs() {
    let (budget, pool) = pool(1600);
    let sort = MemoryConsumer::new("ExternalSorterMerge[0]").register(&pool);
    sort.try_grow(1600).unwrap();
    let merge = MemoryConsumer::new("SortPreservingMergeExec[0]").register(&pool);
    merge.try_grow(60).unwrap();
    assert_eq!(budget.used(), 1690);
    assert!(merge.try_grow(10).is_err(), "more than a sixteenth of the limit");
    drop((sort, merge));
    assert_eq!(budget.used(), 0);
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
                    let consumer = MemoryConsumer::new(format!("Op[{i}]")).with_can_spill(i % 2 == 0).register(pool);
                    for bytes in [100, 700, 1300] {
                        if consumer.try_grow(bytes + round).is_err() {
                            consumer.free();
                        }
                        assert!(budget.used() <= 10_000 + 10_000 / ABOVE);
                    }
                }
            });
        }
    });
    assert_eq!((budget.used(), pool.reserved()), (0, 0));
}
