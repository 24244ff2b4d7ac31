//! Rivals of the branch-free binary search over sorted keys, for searches within a page and within large arrays that never
//! change. All answer how many keys are below one.
#![allow(unsafe_code)]

use std::hint::select_unpredictable;

/// Brings an element towards the core.
fn prefetch<T>(values: &[T], at: usize) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch reads nothing, wherever it points.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(values.as_ptr().wrapping_add(at).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (values, at);
}

/// A way to lay out and search sorted keys.
pub trait Layout {
    const NAME: &'static str;
    fn build(sorted: &[i32]) -> Self;
    fn rank(&self, key: i32) -> usize;
}

/// The standard library's search.
pub struct Standard(Vec<i32>);

impl Layout for Standard {
    const NAME: &'static str = "partition_point (std)";
    fn build(sorted: &[i32]) -> Self {
        Self(sorted.to_vec())
    }
    fn rank(&self, key: i32) -> usize {
        self.0.partition_point(|k| *k < key)
    }
}

/// With branches that the processor has to guess.
pub struct Branching(Vec<i32>);

impl Layout for Branching {
    const NAME: &'static str = "binary, branches";
    fn build(sorted: &[i32]) -> Self {
        Self(sorted.to_vec())
    }
    fn rank(&self, key: i32) -> usize {
        let (mut low, mut high) = (0, self.0.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if std::hint::black_box(self.0[middle] < key) { low = middle + 1 } else { high = middle }
        }
        low
    }
}

/// What the index does, with or without fetching both halves' middles.
pub struct BranchFree<const PREFETCH: bool>(Vec<i32>);

impl<const PREFETCH: bool> Layout for BranchFree<PREFETCH> {
    const NAME: &'static str = if PREFETCH { "binary, branch-free, prefetch" } else { "binary, branch-free" };
    fn build(sorted: &[i32]) -> Self {
        Self(sorted.to_vec())
    }
    fn rank(&self, key: i32) -> usize {
        let (mut base, mut len) = (0, self.0.len());
        while len > 1 {
            let half = len / 2;
            if PREFETCH {
                let next = (len - half) / 2;
                prefetch(&self.0, base + next);
                prefetch(&self.0, base + half + next);
            }
            base = select_unpredictable(self.0[base + half - 1] < key, base + half, base);
            len -= half;
        }
        base + usize::from(len == 1 && self.0[base] < key)
    }
}

/// The order of a binary heap: the children of `i` are `2i` and `2i + 1`.
pub struct Eytzinger<const PREFETCH: bool> {
    keys: Vec<i32>,
    ranks: Vec<u32>,
}

impl<const PREFETCH: bool> Layout for Eytzinger<PREFETCH> {
    const NAME: &'static str = if PREFETCH { "Eytzinger, prefetch" } else { "Eytzinger" };

    fn build(sorted: &[i32]) -> Self {
        fn fill(sorted: &[i32], keys: &mut [i32], ranks: &mut [u32], next: &mut usize, at: usize) {
            if at < keys.len() {
                fill(sorted, keys, ranks, next, 2 * at);
                (keys[at], ranks[at]) = (sorted[*next], u32::try_from(*next).unwrap());
                *next += 1;
                fill(sorted, keys, ranks, next, 2 * at + 1);
            }
        }
        let mut keys = vec![0; sorted.len() + 1];
        let mut ranks = vec![u32::try_from(sorted.len()).unwrap(); sorted.len() + 1];
        fill(sorted, &mut keys, &mut ranks, &mut 0, 1);
        ranks[0] = u32::try_from(sorted.len()).unwrap();
        Self { keys, ranks }
    }

    fn rank(&self, key: i32) -> usize {
        let mut at = 1;
        while at < self.keys.len() {
            if PREFETCH {
                // The line that holds all four generations from here.
                prefetch(&self.keys, at * 16);
            }
            at = 2 * at + usize::from(self.keys[at] < key);
        }
        // Up to where it last went left.
        at >>= at.trailing_ones() + 1;
        self.ranks[at] as usize
    }
}

/// The van Emde Boas order: the upper half of the levels, then each lower tree, recursively.
pub struct VanEmdeBoas {
    /// Key, and the places of both children.
    nodes: Vec<(i32, u32, u32)>,
    ranks: Vec<u32>,
    root: u32,
    len: usize,
}

const NONE: u32 = u32::MAX;

impl Layout for VanEmdeBoas {
    const NAME: &'static str = "van Emde Boas";

    fn build(sorted: &[i32]) -> Self {
        /// Places the nodes of a perfect tree of some height below a heap number, in van Emde Boas order.
        fn place(root: usize, height: u32, len: usize, order: &mut Vec<usize>) {
            if root > len {
                return;
            }
            if height == 1 {
                order.push(root);
                return;
            }
            let top = height / 2;
            place(root, top, len, order);
            for below in 0..1 << top {
                place((root << top) + below, height - top, len, order);
            }
        }
        let len = sorted.len();
        let height = usize::BITS - len.leading_zeros();
        let mut order = Vec::with_capacity(len);
        place(1, height.max(1), len, &mut order);
        let eytzinger = Eytzinger::<false>::build(sorted);
        let mut places = vec![NONE; 2 * len + 2];
        for (at, &heap) in order.iter().enumerate() {
            places[heap] = u32::try_from(at).unwrap();
        }
        let nodes = order.iter().map(|&heap| (eytzinger.keys[heap], places[2 * heap], places[2 * heap + 1])).collect();
        let ranks = order.iter().map(|&heap| eytzinger.ranks[heap]).collect();
        Self { nodes, ranks, root: places.get(1).copied().unwrap_or(NONE), len }
    }

    fn rank(&self, key: i32) -> usize {
        let (mut at, mut last) = (self.root, NONE);
        while at != NONE {
            let (here, left, right) = self.nodes[at as usize];
            let below = here < key;
            last = select_unpredictable(below, last, at);
            at = select_unpredictable(below, right, left);
        }
        if last == NONE { self.len } else { self.ranks[last as usize] as usize }
    }
}

/// An S-tree (Slotin; Groot Koerkamp): nodes of 16 keys, 17 children, compared side by side. Sixteen `i32` are four SSE2
/// registers, which every x86-64 has, or what the compiler makes of the loop elsewhere.
pub struct Blocks {
    /// Levels from the root, each in blocks; the last is the keys.
    levels: Vec<Vec<i32>>,
    len: usize,
}

const B: usize = 16;

impl Layout for Blocks {
    const NAME: &'static str = "SIMD blocks of 16 (S+ tree)";

    fn build(sorted: &[i32]) -> Self {
        let pad = |mut level: Vec<i32>| {
            level.resize(level.len().next_multiple_of(B).max(B), i32::MAX);
            level
        };
        let mut levels = vec![pad(sorted.to_vec())];
        // The smallest key below each child but the first.
        let mut span = B;
        while levels[0].len() > B {
            let blocks = levels[0].len() / B;
            let mut level = Vec::new();
            for node in 0..blocks.div_ceil(B + 1) {
                let first = |child: usize| {
                    let at = (node * (B + 1) + child) * span;
                    sorted.get(at).copied().unwrap_or(i32::MAX)
                };
                level.extend((1..=B).map(first));
            }
            levels.insert(0, level);
            span *= B + 1;
        }
        Self { levels, len: sorted.len() }
    }

    fn rank(&self, key: i32) -> usize {
        let mut block = 0;
        let (last, inner) = self.levels.split_last().unwrap();
        for level in inner {
            block = block * (B + 1) + below(level, block, key);
        }
        (block * B + below(last, block, key)).min(self.len)
    }
}

/// How many of a block's keys are below.
fn below(level: &[i32], block: usize, key: i32) -> usize {
    let Some(keys) = level.get(block * B..).and_then(|rest| rest.first_chunk::<B>()) else { return 0 };
    keys.iter().map(|k| usize::from(*k < key)).sum()
}
