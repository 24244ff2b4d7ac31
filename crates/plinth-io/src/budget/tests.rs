//! Reservations, refusals, caches that give way, and what is measured.

use plinth_core::random::Random;

use super::*;
use std::sync::atomic::AtomicBool;
use std::thread;

/// A cache of equal entries.
struct Entries(Mutex<Vec<Reservation>>);

impl Entries {
    fn filled(budget: &Arc<MemoryBudget>, entries: u64, bytes: u64) -> Arc<Self> {
        let entries = (0..entries).map(|_| budget.reserve("cache", bytes).unwrap()).collect();
        let cache = Arc::new(Self(Mutex::new(entries)));
        budget.register(Arc::downgrade(&cache) as Weak<dyn Reclaim>);
        cache
    }
}

impl Reclaim for Entries {
    fn reclaim(&self, bytes: u64) -> u64 {
        let Ok(mut entries) = self.0.try_lock() else { return 0 };
        let mut given = 0;
        while given < bytes
            && let Some(entry) = entries.pop()
        {
            given += entry.bytes();
        }
        given
    }
}

#[test]
fn reservations_add_up_and_are_given_back() {
    let budget = MemoryBudget::new(1000);
    let mut a = budget.reserve("a", 300).unwrap();
    let b = budget.reserve("b", 200).unwrap();
    let again = budget.reserve("a", 100).unwrap();
    assert_eq!((budget.used(), budget.left()), (600, 400));
    a.try_grow(400).unwrap();
    assert!(a.try_grow(1).is_err());
    assert_eq!(a.bytes(), 700);
    a.resize(50).unwrap();
    a.shrink(80);
    assert_eq!((a.bytes(), budget.used()), (0, 300));
    let used: Vec<_> = budget.usage().into_iter().map(|u| (u.consumer.to_string(), u.used, u.peak)).collect();
    assert_eq!(used, [("b".to_owned(), 200, 200), ("a".to_owned(), 100, 800)]);
    drop((a, b, again));
    assert_eq!((budget.used(), budget.peak()), (0, 1000));
    assert!(budget.usage().is_empty());
    assert!(budget.reserve("all", 1000).is_ok() && budget.reserve("none", u64::MAX).is_err());
}

#[test]
fn a_refusal_says_who_wanted_how_much_and_who_holds_the_most() {
    let budget = MemoryBudget::new(64_000_000);
    let _small = budget.reserve("block cache", 1_000_000).unwrap();
    let _large = budget.reserve("sort", 40_000_000).unwrap();
    let mut join = budget.reserve("hash join", 20_000_000).unwrap();
    assert_eq!(
        join.try_grow(4_000_000).unwrap_err().to_string(),
        "hash join needs 4.00 MB more than its 20.0 MB, but 3.00 MB of the memory limit of 64.0 MB are left \
         (sort holds 40.0 MB): raise the limit or use fewer threads"
    );
    assert_eq!(
        MemoryBudget::new(100).reserve("x", 1500).unwrap_err().to_string(),
        "x needs 1.50 kB more, but 100 B of the memory limit of 100 B are left: \
         raise the limit or use fewer threads"
    );
}

#[test]
fn what_is_charged_anyway_is_taken_from_others() {
    let budget = MemoryBudget::new(100);
    let mut held = budget.reserve("held", 50).unwrap();
    held.charge(100);
    assert_eq!((budget.used(), budget.left()), (150, 0));
    assert!(budget.reserve("other", 1).is_err());
    held.shrink(100);
    assert!(budget.reserve("other", 50).is_ok());
}

#[test]
fn what_is_held_without_having_been_asked_for_is_not_there_for_others() {
    static HELD: AtomicU64 = AtomicU64::new(7);
    let limit = 100 << 20;
    let budget = MemoryBudget::new(limit);
    let mut operator = budget.reserve("operator", limit / 2).unwrap();
    budget.measure(|| HELD.load(Relaxed));
    HELD.store(7 + limit / 2, Relaxed);
    operator.try_grow(limit / 4).unwrap();
    HELD.store(7 + limit + 2 * BESIDE, Relaxed);
    assert!(operator.try_grow(1).is_err() && operator.try_grow(0).is_ok());
    let refused = budget.check("repeat", 1).unwrap_err().to_string();
    let start = "repeat needs 1 B more, but 0 B of the memory limit of 105 MB are left (";
    assert!(refused.starts_with(start), "{refused}");
    HELD.store(7 + 2 * limit, Relaxed);
    assert!(budget.check_held("scan").unwrap_err().largest.unwrap().0.contains("no operator has asked for"));
    HELD.store(0, Relaxed);
    operator.try_grow(1).unwrap();
    budget.check_held("scan").unwrap();
    assert!(budget.check("repeat", limit).is_err() && budget.check("repeat", limit / 8).is_ok());
}

#[test]
fn threads_never_get_more_than_there_is() {
    const LIMIT: u64 = 1000;
    let budget = MemoryBudget::new(LIMIT);
    let held = AtomicU64::new(0);
    thread::scope(|scope| {
        for t in 0..8_u64 {
            let (budget, held) = (&budget, &held);
            scope.spawn(move || {
                let mut random = Random(t);
                let mut mine: Vec<Reservation> = Vec::new();
                for _ in 0..5_000 {
                    let bytes = random.below(256);
                    let add = |bytes| {
                        assert!(held.fetch_add(bytes, Relaxed) + bytes <= LIMIT);
                    };
                    match random.below(4) {
                        0 => {
                            if let Ok(r) = budget.reserve(&format!("consumer {}", bytes % 3), bytes) {
                                add(bytes);
                                mine.push(r);
                            }
                        }
                        1 => {
                            if let Some(r) = mine.last_mut()
                                && r.try_grow(bytes).is_ok()
                            {
                                add(bytes);
                            }
                        }
                        2 => {
                            if let Some(r) = mine.last_mut() {
                                let less = bytes.min(r.bytes());
                                held.fetch_sub(less, Relaxed);
                                r.shrink(less);
                            }
                        }
                        _ => {
                            if let Some(r) = mine.pop() {
                                held.fetch_sub(r.bytes(), Relaxed);
                            }
                        }
                    }
                    assert!(budget.used() <= LIMIT);
                }
                for r in mine {
                    held.fetch_sub(r.bytes(), Relaxed);
                }
            });
        }
    });
    assert_eq!((budget.used(), held.into_inner()), (0, 0));
    assert!(budget.peak() <= LIMIT && budget.usage().is_empty());
}

#[test]
fn caches_are_asked_before_anything_is_refused() {
    let budget = MemoryBudget::new(1000);
    let cache = Entries::filled(&budget, 90, 10);
    let first = budget.reserve("query", 250).unwrap();
    assert_eq!((cache.0.lock().unwrap().len(), budget.used()), (75, 1000));
    let second = budget.reserve("query", 750).unwrap();
    assert_eq!(cache.0.lock().unwrap().len(), 0);
    assert!(budget.reserve("query", 1).is_err());
    drop((first, second, cache));
    // A cache that is gone is not asked.
    assert!(budget.reserve("query", 1001).is_err() && budget.reserve("query", 1000).is_ok());
}

#[test]
fn the_holder_of_a_caches_lock_may_reserve() {
    let budget = MemoryBudget::new(100);
    let cache = Entries::filled(&budget, 10, 10);
    let mut entries = cache.0.lock().unwrap();
    assert!(budget.reserve("cache", 10).is_err());
    entries.pop();
    let entry = budget.reserve("cache", 10).unwrap();
    entries.push(entry);
}

#[test]
fn a_cache_that_reserves_while_it_is_asked_is_refused() {
    struct Greedy(Arc<MemoryBudget>, AtomicBool);
    impl Reclaim for Greedy {
        fn reclaim(&self, bytes: u64) -> u64 {
            self.1.store(self.0.reserve("greedy", bytes).is_err(), Relaxed);
            0
        }
    }
    let budget = MemoryBudget::new(10);
    let greedy = Arc::new(Greedy(Arc::clone(&budget), AtomicBool::new(false)));
    budget.register(Arc::downgrade(&greedy) as Weak<dyn Reclaim>);
    let _full = budget.reserve("full", 10).unwrap();
    assert!(budget.reserve("more", 1).is_err());
    assert!(greedy.1.load(Relaxed));
}

#[test]
fn threads_share_what_caches_give_back() {
    let budget = MemoryBudget::new(1600);
    let caches = [Entries::filled(&budget, 80, 10), Entries::filled(&budget, 80, 10)];
    assert_eq!(budget.left(), 0);
    // Sixteen times a hundred: each thread must get its own, whichever thread reclaimed it.
    let got: Vec<Reservation> = thread::scope(|scope| {
        let threads: Vec<_> = (0..16).map(|_| scope.spawn(|| budget.reserve("query", 100).unwrap())).collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    assert_eq!((got.len(), budget.used()), (16, 1600));
    assert!(caches.iter().all(|c| c.0.lock().unwrap().is_empty()));
    drop(got);
    assert_eq!((budget.used(), budget.peak()), (0, 1600));
}

#[test]
fn a_part_has_its_limit_and_counts_for_the_whole() {
    let whole = MemoryBudget::new(100);
    let (a, b) = (whole.within("a", 60), whole.within("b", 60));
    let of_a = a.reserve("sort", 50).unwrap();
    assert_eq!((a.left(), b.left(), whole.used()), (10, 50, 50));
    let refused = a.reserve("join", 20).unwrap_err();
    assert_eq!((refused.left, refused.limit), (10, 60));
    let mut of_b = b.reserve("sort", 50).unwrap();
    // The part has room, the whole has none.
    let refused = b.reserve("join", 5).unwrap_err();
    assert_eq!((refused.left, refused.limit, b.used()), (0, 100, 50));
    assert_eq!(refused.largest, Some(("a".into(), 50)));
    of_b.charge(7);
    let of_whole: Vec<_> = whole.usage().into_iter().map(|usage| (usage.consumer, usage.used)).collect();
    assert_eq!(of_whole, [("b".into(), 57), ("a".into(), 50)]);
    drop((of_a, of_b));
    assert_eq!((a.used(), b.used(), whole.used(), whole.peak()), (0, 0, 0, 107));
}

#[test]
fn caches_of_the_whole_are_asked_for_a_part() {
    let whole = MemoryBudget::new(100);
    let cache = Entries::filled(&whole, 10, 10);
    let part = whole.within("part", 50);
    let reserved = part.reserve("sort", 30).unwrap();
    assert!(cache.0.lock().unwrap().len() <= 7);
    // More than the part may have: no cache is asked for that.
    let left = cache.0.lock().unwrap().len();
    assert!(part.reserve("join", 30).is_err());
    assert_eq!(cache.0.lock().unwrap().len(), left);
    drop(reserved);
}
