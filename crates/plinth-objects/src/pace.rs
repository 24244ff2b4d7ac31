//! How fast a store answers, as it was seen, and what follows for the next requests.

use std::sync::Mutex;
use std::time::Duration;

use plinth_core::sync::lock;

/// What requests may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Requests of one store under way.
    pub in_flight: usize,
    /// Time of one read, from when it was asked for to its last byte, beside what its bytes take at 64 KiB/s.
    pub deadline: Duration,
    /// Time without a byte after which a request is given up and begun again where it was.
    pub stall: Duration,
    /// How often a request that the store refuses for the moment (503, reset connections) is sent again.
    pub tries: usize,
    /// The most bytes of a request.
    pub request_bytes: u64,
    /// The share of requests, in percent, that are not late: those beyond are sent once more. 100 turns that off.
    pub percentile: u8,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            in_flight: 64,
            deadline: Duration::from_secs(60),
            stall: Duration::from_secs(10),
            tries: 6,
            request_bytes: 8 << 20,
            percentile: 95,
        }
    }
}

/// Bytes a second that a read or a write may be as slow as.
const SLOWEST: u64 = 64 << 10;

impl Limits {
    /// The time that a read or a write may take which has moved so many bytes.
    pub(crate) fn allowed(&self, bytes: u64) -> Duration {
        self.deadline + Duration::from_secs(bytes / SLOWEST)
    }
}

/// Requests whose times are remembered.
const REMEMBERED: usize = 128;

/// Requests before the times of a store are known well enough.
const ENOUGH: usize = 20;

/// No request is called late before.
const PATIENCE: Duration = Duration::from_millis(20);

/// What is taken for a store's first byte and its rate before any was measured: those of S3 from within its region.
const LATENCY: f64 = 0.03;
const RATE: f64 = 80e6;

/// The bytes between two ranges that are read rather than asked around, at least and at most.
const GAPS: (f64, f64) = (16_384.0, 262_144.0);

/// The bytes that are read rather than waited for the answer whether they are needed, at least and at most.
const WAITS: (f64, f64) = (65_536.0, 4_194_304.0);

/// Requests share the way to a store, so that the wait for one is filled by others: of a request's wait this part counts.
const SHARE: f64 = 0.03125;

/// Times of a store.
#[derive(Debug)]
pub struct Pace {
    seen: Mutex<Seen>,
}

#[derive(Debug)]
struct Seen {
    /// Seconds to the first byte, of the last requests.
    first_byte: Vec<f64>,
    next: usize,
    /// Bytes a second of one request.
    rate: f64,
    requests: u64,
    hedged: u64,
}

impl Default for Pace {
    fn default() -> Self {
        let seen = Seen { first_byte: Vec::new(), next: 0, rate: RATE, requests: 0, hedged: 0 };
        Self { seen: Mutex::new(seen) }
    }
}

impl Pace {
    /// Times that were measured for their own sake: to the first bytes, and bytes a second of one request.
    pub(crate) fn of(first_bytes: &[Duration], rate: f64) -> Self {
        let pace = Self::default();
        first_bytes.iter().for_each(|first| pace.answered(*first));
        lock(&pace.seen).rate = rate;
        pace
    }

    /// A request's first byte came after so long.
    pub(crate) fn answered(&self, after: Duration) {
        let mut seen = lock(&self.seen);
        let seconds = after.as_secs_f64();
        seen.requests += 1;
        if seen.first_byte.len() < REMEMBERED {
            seen.first_byte.push(seconds);
        } else {
            let at = seen.next;
            if let Some(slot) = seen.first_byte.get_mut(at) {
                *slot = seconds;
            }
            seen.next = (at + 1) % REMEMBERED;
        }
    }

    /// A request's bytes took so long from the first to the last.
    pub(crate) fn streamed(&self, bytes: u64, took: Duration) {
        // Of few bytes the time is that of the clock.
        if bytes >= 1 << 18 && took > Duration::from_micros(100) {
            let mut seen = lock(&self.seen);
            #[allow(clippy::cast_precision_loss, reason = "a rate")]
            let rate = bytes as f64 / took.as_secs_f64();
            seen.rate += (rate - seen.rate) / 8.0;
        }
    }

    /// Seconds to the first byte of the request in the middle, and bytes a second of one request.
    pub fn measured(&self) -> (f64, f64) {
        let seen = lock(&self.seen);
        (at_percent(&seen.first_byte, 50).unwrap_or(LATENCY), seen.rate)
    }

    /// Bytes between two ranges that cost less to read than a further request.
    pub fn gap(&self) -> u64 {
        let (latency, rate) = self.measured();
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within bounds")]
        let gap = (latency * rate * SHARE).clamp(GAPS.0, GAPS.1) as u64;
        gap
    }

    /// Bytes of one request that come in the time to its first.
    pub fn bytes_a_wait(&self) -> u64 {
        let (latency, rate) = self.measured();
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within bounds")]
        let bytes = (latency * rate).clamp(WAITS.0, WAITS.1) as u64;
        bytes
    }

    /// After how long a request is late; `None` while that is not known.
    pub(crate) fn late_after(&self, percentile: u8) -> Option<Duration> {
        let seen = lock(&self.seen);
        if percentile >= 100 || seen.first_byte.len() < ENOUGH {
            return None;
        }
        Some(Duration::from_secs_f64(at_percent(&seen.first_byte, percentile)?).max(PATIENCE))
    }

    /// Whether one more request may be sent beside one that is late: so many are rare, or the store is slow altogether.
    pub(crate) fn may_hedge(&self, percentile: u8) -> bool {
        let mut seen = lock(&self.seen);
        let most = 2 + seen.requests * u64::from(100 - percentile.min(100)) / 100;
        let may = seen.hedged < most;
        seen.hedged += u64::from(may);
        may
    }
}

/// The value that so many percent are not above.
fn at_percent(values: &[f64], percent: u8) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = sorted.len().saturating_sub(1) * usize::from(percent) / 100;
    sorted.get(at).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_far_is_asked_less_often() {
        let (near, far) = (Pace::default(), Pace::default());
        for _ in 0..200 {
            near.answered(Duration::from_micros(200));
            far.answered(Duration::from_millis(150));
        }
        assert!(near.gap() < Pace::default().gap() && Pace::default().gap() < far.gap());
        assert_eq!(near.gap(), 16_384);
    }

    #[test]
    fn late_is_what_few_are_and_few_are_sent_twice() {
        let pace = Pace::default();
        assert_eq!(pace.late_after(95), None);
        for i in 0..100 {
            pace.answered(Duration::from_millis(if i % 20 == 0 { 900 } else { 30 }));
        }
        let late = pace.late_after(95).unwrap();
        assert!(late >= Duration::from_millis(30) && late <= Duration::from_millis(900), "{late:?}");
        assert_eq!(pace.late_after(100), None);
        let hedged = (0..100).filter(|_| pace.may_hedge(95)).count();
        assert_eq!(hedged, 7);
    }
}
