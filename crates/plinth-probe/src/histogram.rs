//! Latencies by count.

use plinth_core::units;

use crate::cell::Latency;

/// Buckets a power of two: values are kept to within 1/64.
const STEPS: u64 = 64;
const BITS: u32 = STEPS.trailing_zeros();

/// How often each latency occurred, in log-linear buckets as in HdrHistogram: 64 of equal width for each power of two,
/// so that every percentile is right to within 1.6 %, whatever its size, in 30 kB.
#[derive(Clone, Debug)]
pub struct Histogram {
    counts: Vec<u64>,
    count: u64,
    sum: u128,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: vec![0; bucket(u64::MAX) + 1], count: 0, sum: 0 }
    }
}

fn bucket(value: u64) -> usize {
    let shift = (u64::BITS - value.leading_zeros()).saturating_sub(BITS + 1);
    // Below 64 a bucket is a value; above, the bits after the first one choose among the 64 of its power of two.
    usize::try_from(u64::from(shift) * STEPS + (value >> shift)).unwrap_or(0)
}

/// The middle of a bucket.
fn value(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    let shift = (bucket / STEPS).saturating_sub(1);
    let lowest = (bucket - shift * STEPS) << shift;
    lowest + ((1 << shift) - 1) / 2
}

impl Histogram {
    /// Counts a value.
    pub fn record(&mut self, value: u64) {
        if let Some(count) = self.counts.get_mut(bucket(value)) {
            *count += 1;
            self.count += 1;
            self.sum += u128::from(value);
        }
    }

    /// Adds what another counted.
    pub fn merge(&mut self, other: &Self) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(count, more)| *count += more);
        self.count += other.count;
        self.sum += other.sum;
    }

    /// How many values were counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Their mean, exactly; zero if there are none.
    pub fn mean(&self) -> f64 {
        let sum = u64::try_from(self.sum).unwrap_or(u64::MAX);
        units::to_f64(sum) / units::to_f64(self.count.max(1))
    }

    /// The smallest value that `parts` of 10,000 do not exceed: 9,990 is p99.9. Zero if there are none.
    pub fn percentile(&self, parts: u64) -> u64 {
        let rank = (u128::from(self.count) * u128::from(parts)).div_ceil(10_000).max(1);
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += u128::from(*count);
            if seen >= rank {
                return value(bucket);
            }
        }
        0
    }

    /// The mean and the percentiles that are reported.
    pub fn latency(&self) -> Latency {
        Latency {
            mean: units::whole(self.mean()),
            p50: self.percentile(5_000),
            p90: self.percentile(9_000),
            p99: self.percentile(9_900),
            p999: self.percentile(9_990),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plinth_core::random::Random;

    #[test]
    fn percentiles_are_those_of_the_sorted_values_to_within_a_bucket() {
        let mut random = Random(3);
        for spread in [1, 6, 20, 40, 63] {
            let (mut values, mut one, mut two) = (Vec::new(), Histogram::default(), Histogram::default());
            for i in 0..5_000 {
                let v = random.next_u64() >> (63 - random.below(spread + 1));
                values.push(v);
                if i % 3 == 0 { one.record(v) } else { two.record(v) }
            }
            one.merge(&two);
            values.sort_unstable();
            assert_eq!(one.count(), 5_000);
            for parts in [1, 100, 5_000, 9_000, 9_900, 9_990, 10_000] {
                let rank = (5_000_u64 * parts).div_ceil(10_000).max(1);
                let (exact, found) = (values[usize::try_from(rank).unwrap() - 1], one.percentile(parts));
                assert!(exact.abs_diff(found) <= exact / 64, "{spread} {parts}: {exact} {found}");
            }
            let mean = values.iter().map(|v| units::to_f64(*v)).sum::<f64>() / 5_000.0;
            if spread < 40 {
                assert!((one.mean() / mean - 1.0).abs() < 1e-9, "{mean}");
            }
        }
    }

    #[test]
    fn extremes_have_buckets_and_nothing_is_zero() {
        for v in (0..200).chain([u64::MAX, u64::MAX - 1, 1 << 63, (1 << 63) - 1]) {
            assert!(value(bucket(v)).abs_diff(v) <= v / 64, "{v}");
            assert!(v == 0 || bucket(v - 1) <= bucket(v));
        }
        let empty = Histogram::default();
        assert_eq!((empty.percentile(5_000), empty.mean(), empty.count()), (0, 0.0, 0));
        let mut large = Histogram::default();
        large.record(u64::MAX);
        assert!(large.percentile(5_000) > u64::MAX / 64 * 63);
    }
}
