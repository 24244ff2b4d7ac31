//! Buckets by the leading bits that differ.

use std::cmp::Ordering;

use rayon::prelude::*;

/// Fewer values than these are sorted as they are.
const FEW: usize = 1 << 13;
/// Values of a bucket, on average, that fit a core's cache with room to spare.
const BUCKET: usize = 1 << 11;
/// Bits of the number of a bucket, at most: more buckets than a core can write to at the same time cost more than they bring.
const BITS: u32 = 11;
/// Runs this long on average are merged.
const RUN: usize = 32;

/// Sorts: finds order that is there, then scatters by `rank` and sorts each bucket.
pub(crate) fn sort<T: Copy + Send + Sync>(
    values: &mut [T],
    rank: impl Fn(&T) -> u64 + Sync,
    compare: impl Fn(&T, &T) -> Ordering + Sync,
    sort_bucket: impl Fn(&mut [T]) + Sync,
    merge_runs: impl Fn(&mut [T]),
) {
    // One thread gains nothing by buckets: the scatter costs what it saves.
    if values.len() < FEW || rayon::current_num_threads() == 1 {
        return sort_bucket(values);
    }
    match order_of(values, &compare) {
        Found::Ascending => return,
        Found::Descending => return values.reverse(),
        Found::Runs => return merge_runs(values),
        Found::Nothing => {}
    }
    let Some(buckets) = Buckets::of(values, &rank) else { return sort_bucket(values) };
    let parts = rayon::current_num_threads().min(values.len() / FEW).max(1);
    let parts: Vec<Part<T>> =
        values.par_chunks(values.len().div_ceil(parts)).map(|part| Part::scatter(part, buckets, &rank)).collect();
    // The ends of the buckets in what comes out.
    let mut rest = values;
    let mut out = Vec::with_capacity(buckets.count);
    for bucket in 0..buckets.count {
        let len = parts.iter().map(|part| part.bucket(bucket).len()).sum::<usize>().min(rest.len());
        let (first, others) = rest.split_at_mut(len);
        out.push((bucket, first));
        rest = others;
    }
    out.into_par_iter().for_each(|(bucket, out)| {
        let mut at = 0;
        for part in &parts {
            let from = part.bucket(bucket);
            if let Some(to) = out.get_mut(at..at + from.len()) {
                to.copy_from_slice(from);
            }
            at += from.len();
        }
        sort_bucket(out);
    });
}

/// What order there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    Ascending,
    /// Each is below the one before, or equal.
    Descending,
    Runs,
    Nothing,
}

/// Pairs that are looked at before it is asked whether to go on: then they are compared side by side.
const BLOCK: usize = 256;

/// Looks for runs, and gives up as soon as there are too many.
fn order_of<T>(values: &[T], compare: impl Fn(&T, &T) -> Ordering) -> Found {
    // One run is told by a pass that does nothing else; where there are more, it ends with the first.
    if values.is_sorted_by(|a, b| compare(a, b).is_le()) {
        return Found::Ascending;
    }
    if values.is_sorted_by(|a, b| compare(a, b).is_ge()) {
        return Found::Descending;
    }
    let limit = values.len() / RUN;
    let mut falls = 0;
    let seconds = values.get(1..).unwrap_or_default();
    for (a, b) in values.chunks(BLOCK).zip(seconds.chunks(BLOCK)) {
        falls += a.iter().zip(b).filter(|(a, b)| compare(a, b).is_gt()).count();
        if falls >= limit {
            return Found::Nothing;
        }
    }
    Found::Runs
}

/// Which bucket a rank is in.
#[derive(Clone, Copy, Debug)]
struct Buckets {
    lowest: u64,
    shift: u32,
    count: usize,
}

impl Buckets {
    /// None if the ranks are all one, or most of a sample would share a bucket.
    fn of<T: Sync>(values: &[T], rank: &(impl Fn(&T) -> u64 + Sync)) -> Option<Self> {
        let (lowest, highest) = values
            .par_chunks(1 << 16)
            .map(|part| part.iter().map(rank).fold((u64::MAX, 0), |(low, high), r| (low.min(r), high.max(r))))
            .reduce(|| (u64::MAX, 0), |a, b| (a.0.min(b.0), a.1.max(b.1)));
        let bits = u64::BITS - highest.checked_sub(lowest)?.leading_zeros();
        if bits == 0 {
            return None;
        }
        let wanted = (values.len() / BUCKET).next_power_of_two().trailing_zeros().clamp(1, BITS);
        let shift = bits.saturating_sub(wanted);
        let count = usize::try_from((highest - lowest) >> shift).ok()? + 1;
        let buckets = Self { lowest, shift, count };
        let step = (values.len() / 1024).max(1);
        let mut sample = vec![0_usize; count];
        let mut taken = 0;
        for value in values.iter().step_by(step) {
            if let Some(n) = sample.get_mut(buckets.bucket(rank(value))) {
                *n += 1;
            }
            taken += 1;
        }
        let largest = sample.into_iter().max().unwrap_or(0);
        (largest * 2 < taken).then_some(buckets)
    }

    #[inline]
    fn bucket(self, rank: u64) -> usize {
        // At most `count`, which is a length.
        usize::try_from((rank - self.lowest) >> self.shift).unwrap_or(usize::MAX)
    }
}

/// A part of the input, in the order of the buckets.
struct Part<T> {
    values: Vec<T>,
    /// Where each bucket ends.
    ends: Vec<usize>,
}

impl<T: Copy> Part<T> {
    fn scatter(from: &[T], buckets: Buckets, rank: &impl Fn(&T) -> u64) -> Self {
        let mut next = vec![0_usize; buckets.count];
        for value in from {
            if let Some(n) = next.get_mut(buckets.bucket(rank(value))) {
                *n += 1;
            }
        }
        let mut start = 0;
        for n in &mut next {
            let len = *n;
            *n = start;
            start += len;
        }
        // Whatever is in it is overwritten: each place is some value's.
        let mut values = from.to_vec();
        for value in from {
            if let Some(at) = next.get_mut(buckets.bucket(rank(value))) {
                if let Some(to) = values.get_mut(*at) {
                    *to = *value;
                }
                *at += 1;
            }
        }
        Self { values, ends: next }
    }

    fn bucket(&self, bucket: usize) -> &[T] {
        let start = bucket.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        let end = self.ends.get(bucket).copied().unwrap_or(start);
        self.values.get(start..end).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_found() {
        let found = |values: &[i32]| order_of(values, i32::cmp);
        let up: Vec<i32> = (0..1000).collect();
        assert_eq!(found(&up), Found::Ascending);
        assert_eq!(found(&[3; 1000]), Found::Ascending);
        assert_eq!(found(&up.iter().rev().copied().collect::<Vec<_>>()), Found::Descending);
        assert_eq!(found(&up.iter().map(|n| n % 250).collect::<Vec<_>>()), Found::Runs);
        assert_eq!(found(&up.iter().map(|n| n * 7919 % 1000).collect::<Vec<_>>()), Found::Nothing);
    }
}
