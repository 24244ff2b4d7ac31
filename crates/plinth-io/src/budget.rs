//! One budget of memory, shared by everything that holds much of it.
//!
//! Holders of many bytes reserve them first and give them back by dropping the [`Reservation`]. Growing and
//! shrinking take no lock. Before a reservation is refused, caches that registered with [`MemoryBudget::register`] are asked
//! to give back what they can.

mod spare;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, Weak};

use plinth_core::sync::lock;
use plinth_core::units;
use plinth_profile::Holder;

use crate::machine::default_memory;
use crate::slab::Extent;
use spare::Spare;
pub use spare::Zeroed;

/// So many bytes for everyone.
pub struct MemoryBudget {
    limit: u64,
    used: AtomicU64,
    peak: AtomicU64,
    accounts: Mutex<BTreeMap<Arc<str>, Weak<Account>>>,
    caches: Mutex<Vec<Weak<dyn Reclaim>>>,
    /// Held while caches are asked: who comes meanwhile waits for what they give back.
    reclaiming: Mutex<()>,
    meter: OnceLock<Meter>,
    /// Beside all that is reserved.
    spare: Spare,
    outer: Option<Outer>,
}

/// The budget that another is part of.
struct Outer {
    budget: Arc<MemoryBudget>,
    /// What the part holds, as one consumer of the whole.
    account: Arc<Account>,
}

impl Outer {
    fn add(&self, bytes: u64) {
        let before = self.account.used.fetch_add(bytes, Relaxed);
        self.account.peak.fetch_max(before.saturating_add(bytes), Relaxed);
    }
}

/// What is in use in truth, whatever was reserved of it.
#[derive(Debug)]
struct Meter {
    /// Bytes of the allocator and of slabs.
    held: fn() -> u64,
    /// What there was at the start.
    before: u64,
}

/// Bytes beside reservations that are not held against anybody: statements, plans, batches on their way.
const BESIDE: u64 = 16 << 20;

/// A cache that can give memory back.
pub trait Reclaim: Send + Sync {
    /// Gives back at least `bytes` bytes if it can, by shrinking or dropping its own [`Reservation`]s, and returns how many
    /// it gave.
    ///
    /// Called on the thread that needs the memory, possibly while it holds a lock of this very cache: it must not
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
    units::bytes(*wanted), Holding(*holds), units::bytes(*left), units::bytes(*limit), Largest(largest.as_ref()))]
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
        Self::part_of(None, limit)
    }

    /// A part of this budget: of no more than `limit` bytes, each of which is one of the whole, too. The whole has all of it as one
    /// consumer of this name, and asks its caches before it refuses the part anything.
    pub fn within(self: &Arc<Self>, name: &str, limit: u64) -> Arc<Self> {
        let outer = Outer { budget: Arc::clone(self), account: self.account(name) };
        Self::part_of(Some(outer), limit)
    }

    fn part_of(outer: Option<Outer>, limit: u64) -> Arc<Self> {
        Arc::new(Self {
            limit,
            outer,
            used: AtomicU64::new(0),
            peak: AtomicU64::new(0),
            accounts: Mutex::default(),
            caches: Mutex::default(),
            reclaiming: Mutex::default(),
            meter: OnceLock::new(),
            spare: Spare::default(),
        })
    }

    /// Has the budget know what is in use in truth, from a program that counts what it allocates and maps. What is held without
    /// having been reserved is then no longer there for others.
    pub fn measure(&self, held: fn() -> u64) {
        // A program has one allocator, so the first to count is the only one.
        let _ = self.meter.set(Meter { held, before: held() });
    }

    /// The default budget: [`default_memory`] bytes for the process, set up when first asked for.
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

    /// Bytes that are neither reserved nor held without having been.
    pub fn left(&self) -> u64 {
        let own = self.limit.saturating_sub(self.in_use());
        self.outer.as_ref().map_or(own, |outer| own.min(outer.budget.left()))
    }

    /// Bytes that are reserved or, if that is more, in use in truth, as far as the program counts what it allocates.
    pub fn in_use(&self) -> u64 {
        self.used().max(self.measured().saturating_sub(BESIDE))
    }

    /// What is in use in truth. 0 if the program does not count.
    fn measured(&self) -> u64 {
        let held = self.meter.get().map_or(0, |meter| (meter.held)().saturating_sub(meter.before));
        held.saturating_sub(self.spare.bytes())
    }

    pub(crate) fn spare(&self) -> &Spare {
        self.outer.as_ref().map_or(&self.spare, |outer| outer.budget.spare())
    }

    /// Keeps memory for the next that takes some, as far as none needs it now.
    pub(crate) fn keep(&self, extent: Extent) {
        if let Some(outer) = &self.outer {
            return outer.budget.keep(extent);
        }
        // It is held in truth, still.
        let room = self.limit.saturating_sub(self.in_use());
        self.spare.keep(extent, self.limit, room);
    }

    /// Gives back what is kept of the memory that is in use by now.
    fn yield_spare(&self) {
        if self.spare.bytes() > 0 {
            self.spare.shrink_to(self.limit.saturating_sub(self.in_use()));
        }
    }

    /// Whether so many bytes may come to be beside all that is reserved and held, once caches have given back what they can.
    ///
    /// # Errors
    /// If not.
    pub fn check(self: &Arc<Self>, consumer: &str, bytes: u64) -> Result<(), OutOfMemory> {
        if bytes <= self.left() {
            return Ok(());
        }
        if bytes <= self.limit {
            self.reclaim(bytes - self.left());
        }
        if bytes <= self.left() { Ok(()) } else { Err(self.open(consumer).refusal(bytes)) }
    }

    /// Whether what is held in truth is still near the limit: a tenth above it is for operators that have been told to spill
    /// and have not yet done so.
    ///
    /// # Errors
    /// If more is held, and no cache gives it back.
    pub fn check_held(self: &Arc<Self>, consumer: &str) -> Result<(), OutOfMemory> {
        // Who counts what it allocates counts for all parts.
        if let Some(outer) = &self.outer {
            return outer.budget.check_held(consumer);
        }
        let most = self.limit.saturating_add(self.limit / 10).saturating_add(2 * BESIDE);
        let held = self.measured();
        if held <= most {
            return Ok(());
        }
        self.reclaim(held - most);
        let held = self.measured();
        if held <= most { Ok(()) } else { Err(self.open(consumer).refusal(held - most)) }
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
        let (account, holder) = (self.account(consumer), Holder::current());
        Reservation { budget: Arc::clone(self), account, bytes: 0, holder }
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
        if bytes > 0 && self.in_use() > self.limit {
            return false;
        }
        let fits = |used: u64| used.checked_add(bytes).filter(|&sum| sum <= self.limit);
        let taken = self.used.fetch_update(Relaxed, Relaxed, fits);
        let Ok(before) = taken else { return false };
        if let Some(outer) = &self.outer {
            if !outer.budget.take(bytes) && !outer.budget.take_reclaimed(bytes) {
                self.used.fetch_sub(bytes, Relaxed);
                return false;
            }
            outer.add(bytes);
        }
        self.peak.fetch_max(before.saturating_add(bytes), Relaxed);
        self.yield_spare();
        true
    }

    /// Counts bytes that are held already.
    fn charge(&self, bytes: u64) {
        let before = self.used.fetch_add(bytes, Relaxed);
        self.peak.fetch_max(before.saturating_add(bytes), Relaxed);
        if let Some(outer) = &self.outer {
            outer.budget.charge(bytes);
            outer.add(bytes);
        }
        self.yield_spare();
    }

    /// Takes bytes that are no longer held off the count.
    fn give_back(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Relaxed);
        if let Some(outer) = &self.outer {
            outer.account.used.fetch_sub(bytes, Relaxed);
            outer.budget.give_back(bytes);
        }
    }

    /// Asks caches to give back so many bytes, and returns how many they gave.
    pub fn reclaim(&self, bytes: u64) -> u64 {
        let mut given = 0;
        self.ask(|cache| {
            given += cache.reclaim(bytes - given);
            given >= bytes
        });
        match &self.outer {
            Some(outer) if given < bytes => given + outer.budget.reclaim(bytes - given),
            _ => given,
        }
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
                    let over = self.in_use().saturating_sub(self.limit);
                    given += cache.reclaim(bytes.saturating_add(over).saturating_sub(self.left()));
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
    /// The operator that asked for them, where a statement is profiled.
    holder: Holder,
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
        self.budget.charge(more);
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
        self.holder.give_back(less);
        self.account.used.fetch_sub(less, Relaxed);
        self.budget.give_back(less);
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
        // The whole may be short of what its part would give.
        let own = self.budget.limit.saturating_sub(self.budget.in_use());
        let short =
            self.budget.outer.as_ref().map(|outer| &outer.budget).filter(|whole| whole.left() < own.min(wanted));
        let short = short.unwrap_or(&self.budget);
        let other = short.usage().into_iter().find(|u| u.used > 0 && u.consumer != self.account.name);
        let other = other.map(|u| (u.consumer, u.used));
        let uncounted = short.in_use().saturating_sub(short.used());
        let other = match other {
            Some((_, most)) if most >= uncounted => other,
            other if uncounted == 0 => other,
            _ => Some((Arc::from("what no operator has asked for"), uncounted)),
        };
        OutOfMemory {
            consumer: Arc::clone(&self.account.name),
            wanted,
            holds: self.account.used.load(Relaxed),
            left: short.left(),
            limit: short.limit,
            largest: other,
        }
    }

    fn add(&mut self, more: u64) {
        self.bytes += more;
        self.holder.hold(more);
        let before = self.account.used.fetch_add(more, Relaxed);
        self.account.peak.fetch_max(before.saturating_add(more), Relaxed);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.shrink(self.bytes);
    }
}

struct Holding(u64);

impl fmt::Display for Holding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 { Ok(()) } else { write!(f, " than its {}", units::bytes(self.0)) }
    }
}

struct Largest<'a>(Option<&'a (Arc<str>, u64)>);

impl fmt::Display for Largest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |(name, bytes)| write!(f, " ({name} holds {})", units::bytes(*bytes)))
    }
}

#[cfg(test)]
mod tests;
