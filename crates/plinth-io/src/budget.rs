//! One budget of memory, shared by everything that holds much of it.
//!
//! Whoever is about to hold many bytes reserves them first and gives them back by dropping the [`Reservation`]. Growing and
//! shrinking take no lock. Before a reservation is refused, caches that registered with [`MemoryBudget::register`] are asked
//! to give back what they can.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use crate::machine::default_memory;

/// So many bytes for everyone.
pub struct MemoryBudget {
    limit: u64,
    used: AtomicU64,
    peak: AtomicU64,
    accounts: Mutex<BTreeMap<Arc<str>, Weak<Account>>>,
    caches: Mutex<Vec<Weak<dyn Reclaim>>>,
    /// Held while caches are asked: who comes meanwhile waits for what they give back.
    reclaiming: Mutex<()>,
}

/// A cache that can give memory back.
pub trait Reclaim: Send + Sync {
    /// Gives back at least `bytes` bytes if it can, by shrinking or dropping its own [`Reservation`]s, and returns how many
    /// it gave.
    ///
    /// Called by whoever needs the memory, on their thread, possibly while they hold a lock of this very cache: it must not
    /// wait for a lock (`try_lock`, and 0 where that fails). What it tries to reserve meanwhile is refused.
    fn reclaim(&self, bytes: u64) -> u64;
}

/// What one consumer holds, over all its reservations.
#[derive(Debug)]
struct Account {
    name: Arc<str>,
    used: AtomicU64,
    peak: AtomicU64,
}

/// What one consumer holds, for reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Who.
    pub consumer: Arc<str>,
    /// Bytes now.
    pub used: u64,
    /// Most bytes at once, since the consumer's oldest living reservation was made.
    pub peak: u64,
}

/// There is not that much memory left in the budget.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{consumer} needs {} more{}, but {} of the memory limit of {} are left{}: raise the limit or use fewer threads",
    Bytes(*wanted), Holding(*holds), Bytes(*left), Bytes(*limit), Largest(largest.as_ref()))]
pub struct OutOfMemory {
    /// Who asked.
    pub consumer: Arc<str>,
    /// For how many bytes.
    pub wanted: u64,
    /// What that consumer holds already.
    pub holds: u64,
    /// What there was for it.
    pub left: u64,
    /// The budget.
    pub limit: u64,
    /// Who else holds the most, and how much.
    pub largest: Option<(Arc<str>, u64)>,
}

impl MemoryBudget {
    /// A budget of so many bytes.
    pub fn new(limit: u64) -> Arc<Self> {
        Arc::new(Self {
            limit,
            used: AtomicU64::new(0),
            peak: AtomicU64::new(0),
            accounts: Mutex::default(),
            caches: Mutex::default(),
            reclaiming: Mutex::default(),
        })
    }

    /// The budget of whoever names none: [`default_memory`] bytes for the process, set up when first asked for.
    pub fn shared() -> &'static Arc<Self> {
        static SHARED: OnceLock<Arc<MemoryBudget>> = OnceLock::new();
        SHARED.get_or_init(|| Self::new(default_memory()))
    }

    /// Bytes that may be reserved.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Bytes that are reserved.
    pub fn used(&self) -> u64 {
        self.used.load(Relaxed)
    }

    /// Most bytes that were reserved at once.
    pub fn peak(&self) -> u64 {
        self.peak.load(Relaxed)
    }

    /// Bytes that are not reserved.
    pub fn left(&self) -> u64 {
        self.limit.saturating_sub(self.used())
    }

    /// Reserves bytes for a consumer; reservations of the same name are one account.
    ///
    /// # Errors
    /// If so much is not left, and no cache gives it back.
    pub fn reserve(self: &Arc<Self>, consumer: &str, bytes: u64) -> Result<Reservation, OutOfMemory> {
        let mut reservation = self.open(consumer);
        reservation.try_grow(bytes)?;
        Ok(reservation)
    }

    /// A reservation of nothing, to grow later: there is always room for that, also when others hold more than the limit.
    pub fn open(self: &Arc<Self>, consumer: &str) -> Reservation {
        Reservation { budget: Arc::clone(self), account: self.account(consumer), bytes: 0 }
    }

    /// Asks this cache, as long as it lives, before anything is refused.
    pub fn register(&self, cache: Weak<dyn Reclaim>) {
        let mut caches = lock(&self.caches);
        if caches.len() == caches.capacity() {
            // Only now and then: a table of many files registers each of its dictionaries.
            caches.retain(|c| c.strong_count() > 0);
            let room = caches.len().max(8);
            caches.reserve(room);
        }
        caches.push(cache);
    }

    /// What every consumer holds, the largest first.
    pub fn usage(&self) -> Vec<Usage> {
        let mut usage: Vec<Usage> = lock(&self.accounts)
            .values()
            .filter_map(Weak::upgrade)
            .map(|a| Usage { consumer: Arc::clone(&a.name), used: a.used.load(Relaxed), peak: a.peak.load(Relaxed) })
            .collect();
        usage.sort_by(|a, b| b.used.cmp(&a.used).then_with(|| a.consumer.cmp(&b.consumer)));
        usage
    }

    fn account(&self, name: &str) -> Arc<Account> {
        let mut accounts = lock(&self.accounts);
        if let Some(account) = accounts.get(name).and_then(Weak::upgrade) {
            return account;
        }
        accounts.retain(|_, account| account.strong_count() > 0);
        let name: Arc<str> = Arc::from(name);
        let account = Arc::new(Account { name: Arc::clone(&name), used: AtomicU64::new(0), peak: AtomicU64::new(0) });
        accounts.insert(name, Arc::downgrade(&account));
        account
    }

    /// Takes bytes if they are left.
    fn take(&self, bytes: u64) -> bool {
        let fits = |used: u64| used.checked_add(bytes).filter(|&sum| sum <= self.limit);
        let taken = self.used.fetch_update(Relaxed, Relaxed, fits);
        if let Ok(before) = taken {
            self.peak.fetch_max(before.saturating_add(bytes), Relaxed);
        }
        taken.is_ok()
    }

    /// Asks caches to give back so many bytes, and returns how many they gave.
    pub fn reclaim(&self, bytes: u64) -> u64 {
        let mut given = 0;
        self.ask(|cache| {
            given += cache.reclaim(bytes - given);
            given >= bytes
        });
        given
    }

    /// Takes bytes once caches have given back enough, if they can.
    fn take_reclaimed(&self, bytes: u64) -> bool {
        // Others may take what was given back; they can't do so for ever, or the caches are empty.
        for _ in 0..8 {
            let mut given = 0;
            let mut taken = false;
            self.ask(|cache| {
                taken = self.take(bytes);
                if !taken {
                    given += cache.reclaim(bytes.saturating_sub(self.left()));
                }
                taken
            });
            if taken || self.take(bytes) {
                return true;
            }
            if given == 0 || bytes > self.limit {
                return false;
            }
        }
        false
    }

    /// Calls `ask` with one cache after the other until it is content, while no other thread does.
    fn ask(&self, mut ask: impl FnMut(&dyn Reclaim) -> bool) {
        thread_local!(static ASKING: Cell<bool> = const { Cell::new(false) });
        // A cache that reserves while it is asked: nothing waits for itself.
        if ASKING.replace(true) {
            return;
        }
        {
            let _one_at_a_time = lock(&self.reclaiming);
            // The last owner of a cache may be this list; what its drop reserves is refused, like what it reserves itself.
            let caches: Vec<Arc<dyn Reclaim>> = lock(&self.caches).iter().filter_map(Weak::upgrade).collect();
            let _content = caches.iter().any(|cache| ask(&**cache));
        }
        ASKING.set(false);
    }
}

impl fmt::Debug for MemoryBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryBudget").field("limit", &self.limit).field("used", &self.used()).finish_non_exhaustive()
    }
}

/// Bytes of a budget, given back when dropped.
#[must_use = "the bytes are given back when this is dropped"]
#[derive(Debug)]
pub struct Reservation {
    budget: Arc<MemoryBudget>,
    account: Arc<Account>,
    bytes: u64,
}

impl Reservation {
    /// How many.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The budget they are of.
    pub fn budget(&self) -> &Arc<MemoryBudget> {
        &self.budget
    }

    /// Reserves more.
    ///
    /// # Errors
    /// If so much is not left, and no cache gives it back. Nothing has changed then.
    pub fn try_grow(&mut self, more: u64) -> Result<(), OutOfMemory> {
        if !self.budget.take(more) && !self.budget.take_reclaimed(more) {
            return Err(self.refusal(more));
        }
        self.add(more);
        Ok(())
    }

    /// Counts bytes that are held already and can't be given up, even above the limit: others get less.
    pub fn charge(&mut self, more: u64) {
        let before = self.budget.used.fetch_add(more, Relaxed);
        self.budget.peak.fetch_max(before.saturating_add(more), Relaxed);
        self.add(more);
    }

    /// Gives some back, at most all.
    pub fn shrink(&mut self, less: u64) {
        let less = less.min(self.bytes);
        // The counters are everybody's.
        if less == 0 {
            return;
        }
        self.bytes -= less;
        self.account.used.fetch_sub(less, Relaxed);
        self.budget.used.fetch_sub(less, Relaxed);
    }

    /// Reserves more or gives some back, so that there are so many.
    ///
    /// # Errors
    /// As [`Reservation::try_grow`].
    pub fn resize(&mut self, bytes: u64) -> Result<(), OutOfMemory> {
        if bytes > self.bytes {
            return self.try_grow(bytes - self.bytes);
        }
        self.shrink(self.bytes - bytes);
        Ok(())
    }

    /// The error that says that so many more can't be had.
    pub fn refusal(&self, wanted: u64) -> OutOfMemory {
        let other = self.budget.usage().into_iter().find(|u| u.used > 0 && u.consumer != self.account.name);
        OutOfMemory {
            consumer: Arc::clone(&self.account.name),
            wanted,
            holds: self.account.used.load(Relaxed),
            left: self.budget.left(),
            limit: self.budget.limit,
            largest: other.map(|u| (u.consumer, u.used)),
        }
    }

    fn add(&mut self, more: u64) {
        self.bytes += more;
        let before = self.account.used.fetch_add(more, Relaxed);
        self.account.peak.fetch_max(before.saturating_add(more), Relaxed);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.shrink(self.bytes);
    }
}

/// Nothing panics while it holds one of these locks, and their contents are whole at any moment.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Bytes for people: decimal units.
struct Bytes(u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = |unit: u64| (self.0 / unit, self.0 % unit / (unit / 10));
        let ((whole, tenth), unit) = match self.0 {
            0..1_000 => return write!(f, "{} bytes", self.0),
            1_000..1_000_000 => (tenths(1_000), "kB"),
            1_000_000..1_000_000_000 => (tenths(1_000_000), "MB"),
            _ => (tenths(1_000_000_000), "GB"),
        };
        write!(f, "{whole}.{tenth} {unit}")
    }
}

struct Holding(u64);

impl fmt::Display for Holding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 { Ok(()) } else { write!(f, " than its {}", Bytes(self.0)) }
    }
}

struct Largest<'a>(Option<&'a (Arc<str>, u64)>);

impl fmt::Display for Largest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |(name, bytes)| write!(f, " ({name} holds {})", Bytes(*bytes)))
    }
}

#[cfg(test)]
mod tests {
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
            "hash join needs 4.0 MB more than its 20.0 MB, but 3.0 MB of the memory limit of 64.0 MB are left \
             (sort holds 40.0 MB): raise the limit or use fewer threads"
        );
        assert_eq!(
            MemoryBudget::new(100).reserve("x", 1500).unwrap_err().to_string(),
            "x needs 1.5 kB more, but 100 bytes of the memory limit of 100 bytes are left: \
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
    fn threads_never_get_more_than_there_is() {
        const LIMIT: u64 = 1000;
        let budget = MemoryBudget::new(LIMIT);
        let held = AtomicU64::new(0);
        thread::scope(|scope| {
            for t in 0..8_u64 {
                let (budget, held) = (&budget, &held);
                scope.spawn(move || {
                    let mut random = t + 1;
                    let mut mine: Vec<Reservation> = Vec::new();
                    for _ in 0..5_000 {
                        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                        let bytes = random >> 56;
                        let add = |bytes| {
                            assert!(held.fetch_add(bytes, Relaxed) + bytes <= LIMIT);
                        };
                        match (random >> 40) % 4 {
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
    fn whoever_holds_a_caches_lock_may_reserve() {
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
        // Sixteen times a hundred: each thread must get its own, whoever reclaimed it.
        let got: Vec<Reservation> = thread::scope(|scope| {
            let threads: Vec<_> = (0..16).map(|_| scope.spawn(|| budget.reserve("query", 100).unwrap())).collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        });
        assert_eq!((got.len(), budget.used()), (16, 1600));
        assert!(caches.iter().all(|c| c.0.lock().unwrap().is_empty()));
        drop(got);
        assert_eq!((budget.used(), budget.peak()), (0, 1600));
    }
}
