//! What a store does: how soon its first byte comes, how fast bytes do, of one request and of many at once, and how long a list takes.
//!
//! What a probe asks for at most is known before ([`StorePlan::most`]): requests cost money. What follows for reads is told by the
//! same formula that reads use ([`Pace`]).

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use futures::StreamExt;
use object_store::path::Path as Location;
use object_store::{GetOptions, GetRange, ObjectMeta, ObjectStore, ObjectStoreExt};
use plinth_core::random::Random;
use plinth_io::{IoError, Result};
use tokio::time::timeout;

use crate::connected::Connected;
use crate::counters::Traffic;
use crate::error::{failed, late, refused};
use crate::pace::Pace;
use crate::runtime::wait;
use crate::stores::ObjectStores;
use crate::url::{ObjectUrl, Scheme};

/// Names of a list that are looked at: those of one answer.
const NAMES: usize = 1000;

/// Requests of 4 KiB, one after the other, whose first bytes are timed.
const SMALL: u64 = 4 << 10;
const SMALL_REQUESTS: u64 = 32;

/// What is measured behind them: bytes of a request, requests in flight, requests. The most telling come first.
const ROWS: [(u64, usize, u64); 6] =
    [(1 << 20, 1, 8), (1 << 20, 4, 8), (1 << 20, 16, 32), (64 << 10, 1, 8), (8 << 20, 1, 2), (1 << 20, 64, 64)];

/// What a probe may take.
#[derive(Clone, Copy, Debug)]
pub struct StorePlan {
    /// The most bytes that are read.
    pub bytes: u64,
    /// The most time.
    pub time: Duration,
}

impl StorePlan {
    /// The rows that there are bytes for: bytes of a request, requests in flight, requests.
    fn rows(&self) -> impl Iterator<Item = (u64, usize, u64)> {
        let mut left = self.bytes.saturating_sub(SMALL * SMALL_REQUESTS);
        ROWS.into_iter().filter(move |(size, _, requests)| match left.checked_sub(size * requests) {
            Some(less) => {
                left = less;
                true
            }
            None => false,
        })
    }

    /// The most requests that are sent, unless the store refuses some for the moment, and the most bytes that are read.
    pub fn most(&self) -> (u64, u64) {
        let rows =
            self.rows().fold((0, 0), |(all, bytes), (size, _, requests)| (all + requests, bytes + size * requests));
        (rows.0 + SMALL_REQUESTS + 1, rows.1 + SMALL * SMALL_REQUESTS)
    }
}

/// Requests of one kind.
#[derive(Clone, Copy, Debug)]
pub struct StoreRow {
    /// Bytes of a request.
    pub request_bytes: u64,
    /// Requests under way at once.
    pub in_flight: usize,
    /// Requests that were answered.
    pub requests: u64,
    /// Bytes that came.
    pub bytes: u64,
    /// From the first request to the last byte.
    pub took: Duration,
    /// Time to the first byte that half of the requests, and that ninety of a hundred, are not above.
    pub first_byte: [Duration; 2],
}

impl StoreRow {
    /// Bytes a second, of all requests together.
    pub fn rate(&self) -> f64 {
        #[allow(clippy::cast_precision_loss, reason = "a rate")]
        let bytes = self.bytes as f64;
        bytes / self.took.as_secs_f64().max(1e-9)
    }
}

/// What was found.
#[derive(Clone, Debug)]
pub struct StoreFindings {
    /// What was asked for.
    pub url: String,
    /// Objects in the first answer of a list, whether there are more, and its time; none of a single object.
    pub listing: Option<(usize, bool, Duration)>,
    /// Objects that were read from, and the bytes that they have together.
    pub objects: (usize, u64),
    /// The rows that were measured: the first is that of small requests.
    pub rows: Vec<StoreRow>,
    /// Rows that there was no time for.
    pub left_out: usize,
    /// Bytes a second of one request, from its first byte to its last.
    pub rate: f64,
    /// The bytes between two ranges that are read rather than asked around.
    pub gap: u64,
    /// The bytes that come in the time to the first.
    pub bytes_a_wait: u64,
    /// What it took.
    pub traffic: Traffic,
}

impl ObjectStores {
    /// Measures the store of a URL by what lies below it.
    ///
    /// # Errors
    /// If nothing lies there, the store refuses, or `stop` is set.
    pub fn probe(
        &self,
        url: &str,
        plan: &StorePlan,
        stop: &AtomicBool,
        progress: &dyn Fn(f64, &str),
    ) -> Result<StoreFindings> {
        let parsed = ObjectUrl::parse(url)?;
        let (store, before, began) = (self.connected(&parsed)?, self.traffic(), Instant::now());
        progress(0.0, "listing");
        let (from, name) = (store.clone(), url.to_owned());
        let (listing, objects) = wait(async move { objects_of(&from, &parsed, &name).await })?;
        let (mut first_bytes, mut streamed, mut streaming) = (Vec::new(), 0, Duration::ZERO);
        let (mut rows, mut left_out) = (Vec::new(), 0);
        let planned: Vec<_> = std::iter::once((SMALL, 1, SMALL_REQUESTS)).chain(plan.rows()).collect();
        let count = planned.len();
        for (done, (size, in_flight, requests)) in planned.into_iter().enumerate() {
            let left = plan.time.saturating_sub(began.elapsed());
            if left.is_zero() {
                left_out += 1;
                continue;
            }
            if stop.load(Relaxed) {
                return Err(IoError::os(url, "probe", std::io::ErrorKind::Interrupted.into()));
            }
            #[allow(clippy::cast_precision_loss, reason = "a share")]
            progress(done as f64 / count as f64, &format!("{in_flight} in flight"));
            let (from, objects, name) = (store.clone(), objects.clone(), url.to_owned());
            let limits = self.limits;
            let measured = wait(async move {
                let row = row(&from, &objects, size, in_flight, requests, done as u64);
                let allowed = limits.allowed(size * requests);
                timeout(allowed, row).await.map_err(|_| late(&name, "probe", allowed.as_secs_f64()))?
            })?;
            let (row, waits) = measured;
            if in_flight == 1 {
                // Of few bytes the time is that of the clock.
                if size >= 1 << 20 {
                    streamed += row.bytes;
                    streaming += row.took.saturating_sub(waits.iter().sum());
                }
                first_bytes.extend(waits);
            }
            rows.push(row);
        }
        #[allow(clippy::cast_precision_loss, reason = "a rate")]
        let rate = streamed as f64 / streaming.as_secs_f64().max(1e-6);
        let pace = if streamed > 0 { Pace::of(&first_bytes, rate) } else { Pace::default() };
        Ok(StoreFindings {
            url: url.to_owned(),
            listing,
            objects: (objects.len(), objects.iter().map(|(_, len)| len).sum()),
            rows,
            left_out,
            rate: pace.measured().1,
            gap: pace.gap(),
            bytes_a_wait: pace.bytes_a_wait(),
            traffic: self.traffic().since(before),
        })
    }
}

type Listing = Option<(usize, bool, Duration)>;

/// What there is to read: one object, or those of the first answer of a list.
async fn objects_of(store: &Connected, url: &ObjectUrl, name: &str) -> Result<(Listing, Vec<(Location, u64)>)> {
    let began = Instant::now();
    let one = |meta: ObjectMeta| (meta.location, meta.size);
    if !url.is_several() {
        let found = store.client.head(&url.location()?).await;
        match found {
            Ok(meta) if meta.size > 0 => return Ok((None, vec![one(meta)])),
            Ok(_) => return Err(refused(name, "the object has no bytes to read".to_owned())),
            // The name of a folder, perhaps.
            Err(object_store::Error::NotFound { .. }) if url.scheme != Scheme::Http => {}
            Err(error) => return Err(failed(name, "probe", &error)),
        }
    }
    if url.scheme == Scheme::Http {
        return Err(refused(name, "a web server does not tell which files it has; name one of them".to_owned()));
    }
    if plinth_io::objects::is_pattern(&url.key) {
        return Err(refused(name, "a probe takes a folder or an object, no pattern".to_owned()));
    }
    let prefix = url.key.trim_end_matches('/');
    let prefix = if prefix.is_empty() { None } else { Some(url.location_of(prefix)?) };
    let mut listed = store.client.list(prefix.as_ref());
    let (mut found, mut count) = (Vec::new(), 0);
    while count < NAMES {
        match listed.next().await {
            Some(Ok(meta)) => {
                count += 1;
                if meta.size > 0 {
                    found.push(one(meta));
                }
            }
            Some(Err(error)) => return Err(failed(name, "list", &error)),
            None => break,
        }
    }
    let took = began.elapsed();
    if found.is_empty() {
        return Err(refused(name, "no object with bytes lies below it; a probe reads what is there".to_owned()));
    }
    Ok((Some((count, count == NAMES, took)), found))
}

/// Sends requests, so many at once, for ranges of the objects that have the bytes, else for whole objects.
async fn row(
    store: &Connected,
    objects: &[(Location, u64)],
    size: u64,
    in_flight: usize,
    requests: u64,
    seed: u64,
) -> Result<(StoreRow, Vec<Duration>)> {
    let large: Vec<&(Location, u64)> = objects.iter().filter(|(_, len)| *len >= size).collect();
    let largest = || objects.iter().max_by_key(|(_, len)| *len).into_iter().collect();
    let from = if large.is_empty() { largest() } else { large };
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut ranges: Vec<(Location, Range<u64>)> = Vec::new();
    for _ in 0..requests {
        let at = usize::try_from(random.below(from.len() as u64)).unwrap_or(0);
        let Some((location, len)) = from.get(at) else { break };
        let start = random.below(len.saturating_sub(size) + 1);
        ranges.push((location.clone(), start..len.min(&(start + size)).to_owned()));
    }
    let began = Instant::now();
    let asked = ranges.into_iter().map(|(location, range)| one(store.clone(), location, range));
    let mut answers = futures::stream::iter(asked).buffer_unordered(in_flight);
    let (mut bytes, mut first_bytes) = (0, Vec::new());
    while let Some(answer) = answers.next().await {
        let (came, first) = answer?;
        bytes += came;
        first_bytes.push(first);
    }
    let took = began.elapsed();
    first_bytes.sort();
    let at = |percent: usize| first_bytes.get(first_bytes.len().saturating_sub(1) * percent / 100).copied();
    let first_byte = [at(50).unwrap_or_default(), at(90).unwrap_or_default()];
    let requests = first_bytes.len() as u64;
    Ok((StoreRow { request_bytes: size, in_flight, requests, bytes, took, first_byte }, first_bytes))
}

/// The bytes of one request, and the time to its first.
async fn one(store: Connected, location: Location, range: Range<u64>) -> Result<(u64, Duration)> {
    let name = store.url(&location);
    let action = format!("read {} bytes at {}", range.end - range.start, range.start);
    let options = GetOptions { range: Some(GetRange::Bounded(range)), ..GetOptions::default() };
    let began = Instant::now();
    let got = store.client.get_opts(&location, options).await.map_err(|e| failed(&name, &action, &e))?;
    let (first, mut body, mut bytes) = (began.elapsed(), got.into_stream(), 0);
    while let Some(part) = body.next().await {
        let part = part.map_err(|e| failed(&name, &action, &e))?;
        store.counters.came(part.len());
        bytes += part.len() as u64;
    }
    Ok((bytes, first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_says_what_it_takes_at_most() {
        let plan = |bytes| StorePlan { bytes, time: Duration::from_secs(1) };
        let (requests, bytes) = plan(256 << 20).most();
        assert_eq!(
            (requests, bytes),
            (33 + 122, (32 * (4 << 10)) + (8 << 20) * 2 + (32 << 20) + (512 << 10) + (16 << 20) + (64 << 20))
        );
        for bytes in [0, 1 << 20, 10 << 20, 40 << 20, 128 << 20] {
            assert!(plan(bytes).most().1 <= bytes.max(SMALL * SMALL_REQUESTS), "{bytes}");
        }
        assert_eq!(plan(0).most(), (33, 131_072));
    }
}
