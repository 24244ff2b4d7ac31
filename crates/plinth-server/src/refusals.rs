//! Wrong tokens, counted.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use plinth_core::sync::lock;

/// How long wrong tokens count.
const WINDOW: Duration = Duration::from_secs(60);

/// Addresses that are remembered at most.
const ADDRESSES: usize = 10_000;

/// Wrong tokens, by the addresses that they came from.
#[derive(Default)]
pub(crate) struct Refusals(Mutex<HashMap<IpAddr, (Instant, u32)>>);

impl Refusals {
    /// How many came from an address of late.
    pub(crate) fn count(&self, address: IpAddr) -> u32 {
        match lock(&self.0).get(&address) {
            Some((since, count)) if since.elapsed() < WINDOW => *count,
            _ => 0,
        }
    }

    /// Counts one more.
    pub(crate) fn add(&self, address: IpAddr) {
        let mut all = lock(&self.0);
        if all.len() >= ADDRESSES {
            all.retain(|_, (since, _)| since.elapsed() < WINDOW);
        }
        if all.len() >= ADDRESSES {
            all.clear();
        }
        let (since, count) = all.entry(address).or_insert((Instant::now(), 0));
        if since.elapsed() >= WINDOW {
            (*since, *count) = (Instant::now(), 0);
        }
        *count = count.saturating_add(1);
    }
}
