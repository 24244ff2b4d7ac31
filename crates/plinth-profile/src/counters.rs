//! What the processor counts in user mode, thread by thread, between the moments a thread begins and ends to work for a profiler.
//!
//! Virtual machines and containers often have no such counters; then a profile says so, and is otherwise the same.

use std::sync::Mutex;

use plinth_core::sync::lock;

use crate::profile::Hardware;
use crate::tally::Tally;

/// Cycles, instructions, misses of the last cache.
type Counts = [u64; 3];

/// What was counted on a thread for a profiler.
#[derive(Debug, Default)]
pub(crate) struct Tallies {
    counts: [Tally; 3],
    refused: Mutex<Option<String>>,
}

impl Tallies {
    /// Adds what was counted on this thread since the last time anybody asked.
    pub(crate) fn add(&self) {
        match machine::since() {
            Ok(counts) => self.counts.iter().zip(counts).for_each(|(tally, count)| tally.add(count)),
            Err(why) => {
                lock(&self.refused).get_or_insert(why);
            }
        }
    }
}

/// Leaves out what was counted until now.
pub(crate) fn skip() {
    // The next to add is told why there is nothing.
    let _ = machine::since();
}

/// What all threads counted; if some could not, the reason is all there is to say, for the rest means nothing.
pub(crate) fn sum<'a>(threads: impl Iterator<Item = &'a Tallies>) -> Hardware {
    let mut sum: Counts = [0; 3];
    for tallies in threads {
        if let Some(why) = lock(&tallies.refused).clone() {
            return Hardware::Refused(why);
        }
        sum.iter_mut().zip(&tallies.counts).for_each(|(sum, tally)| *sum += tally.get());
    }
    let [cycles, instructions, cache_misses] = sum;
    Hardware::Counted { cycles, instructions, cache_misses }
}

#[cfg(target_os = "linux")]
mod machine {
    use std::cell::RefCell;

    use perf_event::events::Hardware;
    use perf_event::{Builder, Counter, Group};

    use super::Counts;

    thread_local! {
        /// Opened when the thread first asks. An error stays.
        static COUNTERS: RefCell<Option<Result<Counters, String>>> = const { RefCell::new(None) };
    }

    struct Counters {
        group: Group,
        counters: [Counter; 3],
        last: Counts,
    }

    pub(super) fn since() -> Result<Counts, String> {
        let counts = COUNTERS.try_with(|counters| {
            let mut counters = counters.try_borrow_mut().map_err(|e| e.to_string())?;
            match counters.get_or_insert_with(|| Counters::open().map_err(|e| format!("the kernel refuses: {e}"))) {
                Ok(counters) => counters.since().map_err(|e| format!("cannot be read: {e}")),
                Err(why) => Err(why.clone()),
            }
        });
        counts.unwrap_or_else(|_| Err("the thread is ending".to_owned()))
    }

    impl Counters {
        fn open() -> std::io::Result<Self> {
            let mut group = Group::new()?;
            let mut add = |event| group.add(&Builder::new(event));
            let counters = [add(Hardware::CPU_CYCLES)?, add(Hardware::INSTRUCTIONS)?, add(Hardware::CACHE_MISSES)?];
            group.enable()?;
            Ok(Self { group, counters, last: [0; 3] })
        }

        fn since(&mut self) -> std::io::Result<Counts> {
            let data = self.group.read()?;
            let now = self.counters.each_ref().map(|counter| data.get(counter).map_or(0, |entry| entry.value()));
            let since = std::array::from_fn(|at| {
                now.get(at).zip(self.last.get(at)).map_or(0, |(now, last): (&u64, &u64)| now.saturating_sub(*last))
            });
            self.last = now;
            Ok(since)
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod machine {
    pub(super) fn since() -> Result<super::Counts, String> {
        Err("they are read on Linux only".to_owned())
    }
}
