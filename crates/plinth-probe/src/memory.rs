//! How fast one thread is where no device is in the way.

use std::hint::black_box;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use plinth_core::random::Random;
use plinth_core::{units, wire};
use plinth_io::Result;
use rustix::fs::{Advice, OFlags, fadvise};

use crate::target::Target;

/// Bytes a second of one thread.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MemorySpeeds {
    /// Memory summed up, larger than caches.
    pub read: f64,
    /// Memory copied, counted once.
    pub copy: f64,
    /// Resident file read in pieces of 256 KiB.
    pub page_cache: f64,
    /// Checksummed as the format does, XXH3-64 over pieces of 64 KiB.
    pub checksum: f64,
}

/// Larger than the caches of one core's share.
const BYTES: usize = 128 << 20;
/// What is read back through the page cache.
const RESIDENT: u64 = 64 << 20;

impl MemorySpeeds {
    /// Measures each for a quarter of `time`.
    ///
    /// # Errors
    /// If the file can't be read.
    pub fn measure(target: &Target, time: Duration) -> Result<Self> {
        let each = time / 4;
        let (mut from, mut to) = (vec![1_u64; BYTES / 8], vec![2_u64; BYTES / 8]);
        let read = speed(BYTES as u64 / 8, each, |part| {
            let words = from.len() / 8;
            let words = from.get(part * words..(part + 1) * words).unwrap_or_default();
            black_box(words.iter().fold(0_u64, |sum, word| sum.wrapping_add(*word)));
        });
        let copy = speed(BYTES as u64 / 8, each, |part| {
            let words = from.len() / 8;
            let part = part * words..(part + 1) * words;
            if let (Some(to), Some(from)) = (to.get_mut(part.clone()), from.get(part)) {
                to.copy_from_slice(from);
            }
            black_box(&mut to);
        });
        from.clear();
        let mut block = vec![0; 64 << 10];
        Random(5).fill(&mut block);
        let checksum = speed(block.len() as u64 * 16, each, |_| {
            for _ in 0..16 {
                black_box(wire::checksum(black_box(&block)));
            }
        });
        Ok(Self { read, copy, page_cache: page_cache(target, each)?, checksum })
    }
}

/// Repeats eight parts of so many bytes each until the time is over, twice at least: the first round is a warm-up.
fn speed(bytes: u64, time: Duration, mut work: impl FnMut(usize)) -> f64 {
    (0..8).for_each(&mut work);
    let started = Instant::now();
    let mut done = 0;
    for part in (0..8).cycle() {
        work(part);
        done += bytes;
        if part == 7 && started.elapsed() >= time {
            break;
        }
    }
    units::per_second(done, started.elapsed())
}

fn page_cache(target: &Target, time: Duration) -> Result<f64> {
    let file = target.open_direct(false)?;
    let resident = target.byte_len().min(RESIDENT);
    let mut buffer = vec![0; 256 << 10];
    let (mut started, mut done) = (Instant::now(), 0);
    // The first round makes it resident.
    for round in 0.. {
        for at in (0..resident).step_by(buffer.len()) {
            file.read_exact_at(&mut buffer, at).map_err(|e| target.failed("read through the page cache", e))?;
            done += buffer.len() as u64;
        }
        if round == 0 {
            (started, done) = (Instant::now(), 0);
        } else if started.elapsed() >= time {
            break;
        }
    }
    let speed = units::per_second(done, started.elapsed());
    // What follows shall find nothing resident; a hint that may be ignored.
    let _ = target.open(OFlags::empty()).map(|file| fadvise(file, 0, None, Advice::DontNeed));
    Ok(speed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_speed_is_measured() {
        let dir = tempfile::tempdir().unwrap();
        let target = Target::fill(dir.path(), 16 << 20, Duration::ZERO).unwrap();
        let speeds = MemorySpeeds::measure(&target, Duration::ZERO).unwrap();
        for speed in [speeds.read, speeds.copy, speeds.page_cache, speeds.checksum] {
            assert!(speed.is_finite() && speed > 1e6, "{speeds:?}");
        }
    }
}
