//! Scans that are being planned: which of them DuckDB may take for one.

use std::sync::{Arc, Mutex, Weak};
use std::thread::{self, ThreadId};

use plinth_core::sync::lock;

use crate::table::Asked;

/// A scan from its binding to its end.
#[derive(Debug)]
struct Scan {
    asked: Asked,
    /// One thread binds a statement and optimizes its plan.
    thread: ThreadId,
}

/// All there are.
#[derive(Debug, Default)]
pub(crate) struct Plans(Mutex<Vec<Weak<Scan>>>);

/// The place of one, which it has as long as it lives.
#[derive(Debug)]
pub(crate) struct Planned {
    scan: Arc<Scan>,
    plans: Arc<Plans>,
}

impl Planned {
    /// Of a scan that is bound.
    pub(crate) fn new(plans: &Arc<Plans>, asked: &Asked) -> Self {
        let scan = Arc::new(Scan { asked: asked.clone(), thread: thread::current().id() });
        let mut all = lock(&plans.0);
        all.retain(|scan| scan.strong_count() > 0);
        all.push(Arc::downgrade(&scan));
        Self { scan, plans: Arc::clone(plans) }
    }

    /// Whether a scan of the same arguments was bound by the same thread, and lives. (One that waits to be executed counts, too.)
    pub(crate) fn has_peers(&self) -> bool {
        let is_peer = |scan: Arc<Scan>| {
            !Arc::ptr_eq(&scan, &self.scan) && scan.thread == self.scan.thread && scan.asked == self.scan.asked
        };
        lock(&self.plans.0).iter().filter_map(Weak::upgrade).any(is_peer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scans_of_equal_arguments_know_of_each_other_while_they_live() {
        let asked = |name: &str| Asked {
            named: vec![name.into()],
            filename: false,
            hive: None,
            hive_types: true,
            union_by_name: true,
        };
        let plans = Arc::default();
        let first = Planned::new(&plans, &asked("a"));
        let other = Planned::new(&plans, &asked("b"));
        assert!(!first.has_peers() && !other.has_peers());
        let second = Planned::new(&plans, &asked("a"));
        assert!(first.has_peers() && second.has_peers() && !other.has_peers());
        drop(first);
        assert!(!second.has_peers());
        let plans_there = Arc::clone(&plans);
        let elsewhere = thread::spawn(move || Planned::new(&plans_there, &asked("a"))).join();
        assert!(elsewhere.is_ok() && !second.has_peers());
    }
}
