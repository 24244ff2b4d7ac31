//! Who answers: the device, or a cache in front of it?

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use plinth_core::random::Random;
use plinth_core::units;
use plinth_io::{PAGE, Result};

use crate::histogram::Histogram;
use crate::target::{Target, noise};

/// Reads past the page cache that a cache further down would answer faster than a device.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CacheTest {
    /// Bytes a second of the first reads, 1 MiB after another.
    pub first: f64,
    /// Of the same once more.
    pub again: f64,
    /// Median latency in nanoseconds of 4 KiB anywhere in the file.
    pub spread: u64,
    /// Of 4 KiB within 1 MiB, over and over.
    pub hot: u64,
}

/// How much faster is suspicious.
const SUSPICIOUS: f64 = 1.3;
const CHUNK: usize = 1 << 20;

impl CacheTest {
    /// Reads a file that was not read since it was filled. That it was just written may have put it into a cache already:
    /// then both reads are equally fast, and nothing is proved.
    ///
    /// # Errors
    /// If the file can't be read.
    pub fn measure(target: &Target, time: Duration) -> Result<Self> {
        let file = target.open_direct(target.is_direct())?;
        let each = time / 4;
        let chunks = target.byte_len() / CHUNK as u64;
        let failed = |e| target.failed("read", e);
        let mut buffers = noise(CHUNK, 1).map_err(failed)?;
        let mut fetch = |chunk: u64| {
            let mut buffers = buffers.iter_mut();
            buffers.try_for_each(|buffer| file.read_exact_at(buffer, chunk * CHUNK as u64)).map_err(failed)
        };
        let started = Instant::now();
        let mut read = 0;
        while read < chunks && (read == 0 || started.elapsed() < each) {
            fetch(read)?;
            read += 1;
        }
        let first = units::per_second(read * CHUNK as u64, started.elapsed());
        let started = Instant::now();
        (0..read).try_for_each(&mut fetch)?;
        let again = units::per_second(read * CHUNK as u64, started.elapsed());
        let spread = median(&file, target.byte_len(), each).map_err(failed)?;
        let hot = median(&file, CHUNK as u64, each).map_err(failed)?;
        Ok(Self { first, again, spread, hot })
    }

    /// How much faster the second reads were.
    pub fn again_ratio(&self) -> f64 {
        self.again / self.first.max(1.0)
    }

    /// How much faster the same few bytes come than any.
    pub fn hot_ratio(&self) -> f64 {
        units::to_f64(self.spread) / units::to_f64(self.hot.max(1))
    }

    /// Whether something remembers what was read.
    pub fn remembers(&self) -> bool {
        self.again_ratio() >= SUSPICIOUS || self.hot_ratio() >= SUSPICIOUS
    }
}

/// The median latency of random 4 KiB reads within the first `bytes`, one at a time.
fn median(file: &File, bytes: u64, time: Duration) -> std::io::Result<u64> {
    let (mut buffers, mut random) = (noise(PAGE, 1)?, Random(11));
    let mut histogram = Histogram::default();
    let started = Instant::now();
    while histogram.count() == 0 || started.elapsed() < time {
        for buffer in &mut buffers {
            let offset = random.below(bytes / PAGE as u64) * PAGE as u64;
            let begun = Instant::now();
            file.read_exact_at(buffer, offset)?;
            histogram.record(units::nanoseconds(begun.elapsed()));
        }
    }
    Ok(histogram.percentile(5_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_memory_shows_and_a_device_does_not() {
        let device = CacheTest { first: 1e9, again: 1.1e9, spread: 80_000, hot: 75_000 };
        assert!(!device.remembers());
        assert!(CacheTest { again: 1.4e9, ..device }.remembers());
        assert!(CacheTest { hot: 20_000, ..device }.remembers());
        let dir = tempfile::tempdir().unwrap();
        let target = Target::fill(dir.path(), 16 << 20, Duration::ZERO).unwrap();
        let test = CacheTest::measure(&target, Duration::from_millis(20)).unwrap();
        assert!(test.first > 0.0 && test.again > 0.0 && test.spread > 0 && test.hot > 0, "{test:?}");
    }
}
