//! Sorting by the exact type of what is sorted.
//!
//! A comparison that is compiled in costs a fraction of one that is called, so [`sort`] is compiled for each type. On
//! one thread that is all there is to gain, and the standard library sorts (ipnsort). With threads (those of the
//! caller's rayon pool), what is sorted already, backwards, or made of long runs is found out first and costs a pass or
//! a merge (driftsort). Everything else is scattered once into buckets by the leading bits that differ: each thread
//! scatters a part of the input into a buffer of its own, and gathers and sorts some of the buckets, which then fit a
//! core's cache. Nothing is merged, and no thread waits for a lock. A bucket that holds most of the input says that its
//! values hardly differ; then the scatter is not worth making.
//!
//! Sorts are not stable; who needs that compares rows last, as pairs do.

mod scatter;

use rayon::prelude::*;

use crate::key::{HEAD, common_prefix, head};

/// What can be scattered: values whose order a number follows.
pub trait Sortable: Copy + Ord + Send + Sync {
    /// A number that never falls when values rise.
    fn rank(self) -> u64;
}

macro_rules! sortable {
    ($($type:ty: $rank:expr;)*) => {$(
        impl Sortable for $type {
            #[inline]
            fn rank(self) -> u64 {
                $rank(self)
            }
        }
    )*};
}

const SIGN: u64 = 1 << 63;

sortable! {
    u32: u64::from;
    u64: std::convert::identity;
    i32: |value| i64::from(value).cast_unsigned() ^ SIGN;
    i64: |value: i64| value.cast_unsigned() ^ SIGN;
    u128: |value: u128| u64::try_from(value >> 64).unwrap_or(u64::MAX);
    i128: |value: i128| u64::try_from(value.cast_unsigned() >> 64).unwrap_or(u64::MAX) ^ SIGN;
}

/// A key with the row it belongs to: rows with equal keys keep their order.
impl<K: Sortable, R: Copy + Ord + Send + Sync> Sortable for (K, R) {
    #[inline]
    fn rank(self) -> u64 {
        self.0.rank()
    }
}

/// Sorts values by their type's order. Takes as much memory again if it scatters.
pub fn sort<T: Sortable>(values: &mut [T]) {
    scatter::sort(values, |value| value.rank(), T::cmp, |bucket| bucket.sort_unstable(), |runs| runs.sort());
}

/// The order of byte strings: their places, such that what is at the first of them comes first; equal ones keep their order.
/// `key` gives the string at a place.
///
/// Strings are told apart by eight bytes, behind what all have in common, that lie beside their places; of those that agree
/// in these the next eight are fetched, and few of them are looked up.
pub fn order_bytes<'k>(len: u32, key: impl Fn(u32) -> &'k [u8] + Sync) -> Vec<u32> {
    let common = shared_prefix(len, &key);
    let mut heads: Vec<(u64, u32)> = (0..len).map(|at| (head(key(at), common), at)).collect();
    order_heads(&mut heads, common, LEVELS, &key);
    heads.into_iter().map(|(_, at)| at).collect()
}

/// So many strings that agree in a head are compared, rather than told apart by the bytes behind it.
const TIES: usize = 1 << 5;
/// Heads that are looked at, one behind the other, before strings are compared however many agree: this bounds the stack.
const LEVELS: u32 = 1 << 6;

/// Orders strings, which agree up to `from`, by their heads there.
fn order_heads<'k>(heads: &mut [(u64, u32)], from: usize, levels: u32, key: &(impl Fn(u32) -> &'k [u8] + Sync)) {
    sort(heads);
    let behind = from + HEAD;
    heads.par_chunk_by_mut(|a, b| a.0 == b.0).filter(|ties| ties.len() > 1).for_each(|ties| {
        let rest = |at: u32| key(at).get(from..).unwrap_or_default();
        if ties.len() <= TIES || levels == 0 {
            return ties.sort_unstable_by(|a, b| rest(a.1).cmp(rest(b.1)).then(a.1.cmp(&b.1)));
        }
        // Where a string has ended, its head is as if zeros followed, and it comes before those that have them.
        let (mut ended, mut longer) = (Vec::new(), Vec::new());
        for (_, at) in &*ties {
            let key = key(*at);
            if key.len() < behind { ended.push((key.len() as u64, *at)) } else { longer.push((head(key, behind), *at)) }
        }
        ended.sort_unstable();
        order_heads(&mut longer, behind, levels - 1, key);
        for (to, from) in ties.iter_mut().zip(ended.into_iter().chain(longer)) {
            *to = from;
        }
    });
}

/// How many first bytes all have in common.
fn shared_prefix<'k>(len: u32, key: &impl Fn(u32) -> &'k [u8]) -> usize {
    if len == 0 {
        return 0;
    }
    let first = key(0);
    let mut common = first.len();
    for at in 1..len {
        if common == 0 {
            break;
        }
        let other = key(at);
        if other.get(..common) != first.get(..common) {
            common = common.min(common_prefix(first, other));
        }
    }
    common
}
