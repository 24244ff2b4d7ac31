//! What the scans of one query have learned of its predicates: in which order they cost least, and how blocks are best decoded.
//!
//! On a few blocks of a hundred (samples) every conjunct is asked about every row. That tells what each costs, and how many
//! rows pass any set of them together, so that the order is chosen by what a conjunct still drops after those before it
//! (Babu et al., "Adaptive Ordering of Pipelined Stream Filters", SIGMOD 2004). On a few others the whole block is
//! decoded before it is filtered, which is better where nearly all rows pass in no order. All threads and files share what is learned.

use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arrow_buffer::BooleanBuffer;
use plinth_core::sync::lock;
use plinth_encoding::expr::Expr;
use plinth_profile::{Anchor, Profiler, Stage};

use super::PushdownMode;
use super::source::Ran;

/// Blocks from one sample to the next.
const SAMPLE: u64 = 64;
const FIRST_SAMPLE: u64 = 1;

/// Where all predicates may rest, the first samples lie side by side, so that what never pays soon does. (Elsewhere what a predicate takes for
/// its first blocks, such as to look through a dictionary, would tell too much of the order.)
const FIRST_SAMPLES: std::ops::Range<u64> = 1..5;

/// Windows that are one block, decoded the way that the others are not: a few early on, and then one of so many.
const TRIALS: [u64; 4] = [3, 6, 12, 24];
const TRIAL: u64 = 32;

/// Conjuncts of which every set is counted; what others pass is taken to be independent.
const COUNTED: usize = 6;

/// What a row that passes costs further on at least: an optional predicate whose time is more for each row that it drops is not worth it.
const ROW_NANOS: f64 = 20.0;

/// What it is taken to cost at most: the thread that takes the rows may do other work between them.
const MOST_ROW_NANOS: f64 = 1_000.0;

/// Rows that samples must have seen before an optional predicate is left out.
const ENOUGH_ROWS: u64 = 1 << 15;

/// What the scans of one query have learned, and how its predicates fared. Counters only grow.
pub struct AdaptiveStats {
    conjuncts: Vec<Conjunct>,
    /// For each set of the first conjuncts the sampled rows that pass all of it.
    together: Vec<AtomicU64>,
    /// Blocks filtered, and those of which no row was left.
    blocks: AtomicU64,
    emptied: AtomicU64,
    windows: AtomicU64,
    /// Rows that were handed over, and the time until the next were asked for.
    taken: AtomicU64,
    taken_nanos: AtomicU64,
    /// Nanoseconds a row, decoding after the filter and before it.
    ways: Mutex<[Mean; 2]>,
    retained_peak: AtomicU64,
}

#[derive(Debug, Default)]
struct Conjunct {
    name: String,
    /// Whether it only saves work: its owner drops the same rows.
    optional: bool,
    rows_in: AtomicU64,
    rows_kept: AtomicU64,
    nanos: AtomicU64,
    sampled_rows: AtomicU64,
    sampled_passed: AtomicU64,
    sampled_nanos: AtomicU64,
    places: [AtomicU64; 5],
}

/// Where a conjunct was decided on blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The zone map rules out every row.
    Nothing,
    /// The zone map, or postings, say that all rows pass that are left.
    Everything,
    Ran(Ran),
}

/// How a conjunct fared.
#[derive(Clone, Debug, PartialEq)]
pub struct ConjunctReport {
    /// The predicate.
    pub name: String,
    /// Rows it was asked about.
    pub rows_in: u64,
    /// Of these, rows that passed.
    pub rows_kept: u64,
    /// Time it took.
    pub time: Duration,
    /// Blocks it ruled out by their zone maps alone.
    pub blocks_ruled_out: u64,
    /// Blocks that it need not be asked about: their zone maps or postings say that all rows pass that are left.
    pub blocks_all_pass: u64,
    /// Blocks it was evaluated on encoded values of, or once per distinct value.
    pub blocks_encoded: u64,
    /// Blocks it was evaluated on decoded values of.
    pub blocks_decoded: u64,
    /// Blocks of whose decoded values it is an opaque function.
    pub blocks_residual: u64,
}

/// A running mean with its spread (Welford).
#[derive(Clone, Copy, Debug, Default)]
struct Mean {
    count: f64,
    mean: f64,
    squares: f64,
}

impl Mean {
    fn add(&mut self, value: f64) {
        self.count += 1.0;
        let off = value - self.mean;
        self.mean += off / self.count;
        self.squares += off * (value - self.mean);
    }

    /// Between what the true mean lies, most probably; unknown with few values.
    fn interval(&self) -> Option<(f64, f64)> {
        let error = 2.0 * (self.squares / (self.count - 1.0) / self.count).sqrt();
        (self.count >= 4.0).then_some((self.mean - error, self.mean + error))
    }
}

/// How the blocks of a window are decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DecodeOrder {
    /// Before they are filtered.
    pub(super) dense: bool,
    /// Only to see how long it takes: one block will do.
    pub(super) trial: bool,
}

/// In which order to ask.
#[derive(Clone, Debug, Default)]
pub(super) struct Order {
    /// The place of each conjunct.
    pub(super) rank: Vec<usize>,
    /// Those that are not worth being asked.
    pub(super) idle: Vec<bool>,
}

impl AdaptiveStats {
    /// Nothing yet, of so many conjuncts; `optional` ones follow.
    pub(super) fn new(names: Vec<String>, optional: usize) -> Self {
        let known = names.into_iter().map(|name| Conjunct { name, ..Conjunct::default() });
        let dynamic = (0..optional).map(|i| Conjunct {
            name: format!("dynamic filter {}", i + 1),
            optional: true,
            ..Conjunct::default()
        });
        let conjuncts: Vec<_> = known.chain(dynamic).collect();
        let together = 1_usize << conjuncts.len().min(COUNTED);
        Self {
            conjuncts,
            together: std::iter::repeat_with(AtomicU64::default).take(together).collect(),
            blocks: AtomicU64::new(0),
            emptied: AtomicU64::new(0),
            windows: AtomicU64::new(0),
            taken: AtomicU64::new(0),
            taken_nanos: AtomicU64::new(0),
            ways: Mutex::default(),
            retained_peak: AtomicU64::new(0),
        }
    }

    /// What is known, if it speaks of these conjuncts and of so many dynamic filters; else nothing yet.
    pub fn shared(known: Option<Arc<Self>>, predicate: &[Expr], dynamic: usize) -> Arc<Self> {
        let names: Vec<String> = predicate.iter().map(ToString::to_string).collect();
        let known = known.filter(|stats| stats.fits(&names, dynamic));
        known.unwrap_or_else(|| Arc::new(Self::new(names, dynamic)))
    }

    /// Whether it speaks of the same conjuncts.
    pub(super) fn fits(&self, names: &[String], optional: usize) -> bool {
        let known = self.conjuncts.iter().filter(|conjunct| !conjunct.optional).map(|conjunct| &conjunct.name);
        known.eq(names) && self.conjuncts.len() == names.len() + optional
    }

    /// What profiles charge a conjunct to.
    pub(super) fn anchor(&self, slot: usize) -> Anchor {
        let name = self.conjuncts.get(slot).map_or("", |conjunct| &conjunct.name);
        Profiler::current().anchor(Stage::Filter, name)
    }

    /// The number of the `i`th dynamic filter.
    pub(super) fn dynamic_slot(&self, i: usize) -> usize {
        self.conjuncts.iter().filter(|conjunct| !conjunct.optional).count() + i
    }

    /// Counts a block; its number.
    pub(super) fn next_block(&self) -> u64 {
        self.blocks.fetch_add(1, Relaxed)
    }

    /// Whether a block is one of those of which everything is asked.
    pub(super) fn is_sample(&self, block: u64) -> bool {
        let all_may_rest = || self.conjuncts.iter().all(|conjunct| conjunct.optional);
        block % SAMPLE == FIRST_SAMPLE || FIRST_SAMPLES.contains(&block) && all_may_rest()
    }

    /// No row of a block was left.
    pub(super) fn emptied(&self) {
        self.emptied.fetch_add(1, Relaxed);
    }

    /// Whether blocks are so rarely emptied that it is not worth waiting for their filters before the rest is read.
    pub(super) fn rarely_empties(&self) -> bool {
        let (blocks, emptied) = (self.blocks.load(Relaxed), self.emptied.load(Relaxed));
        blocks >= 16 && emptied * 20 < blocks
    }

    /// Tells how a conjunct was asked.
    pub(super) fn asked(&self, slot: usize, rows_in: usize, rows_kept: usize, took: Duration, ran: Ran) {
        let Some(conjunct) = self.conjuncts.get(slot) else { return };
        conjunct.rows_in.fetch_add(rows_in as u64, Relaxed);
        conjunct.rows_kept.fetch_add(rows_kept as u64, Relaxed);
        conjunct.nanos.fetch_add(nanos(took), Relaxed);
        self.decided(slot, Place::Ran(ran));
    }

    /// Tells where a conjunct was decided.
    pub(super) fn decided(&self, slot: usize, place: Place) {
        let place = match place {
            Place::Nothing => 0,
            Place::Everything => 1,
            Place::Ran(Ran::Encoded) => 2,
            Place::Ran(Ran::Decoded) => 3,
            Place::Ran(Ran::Residual) => 4,
        };
        if let Some(count) = self.conjuncts.get(slot).and_then(|conjunct| conjunct.places.get(place)) {
            count.fetch_add(1, Relaxed);
        }
    }

    /// Tells of a sample: what each conjunct that was asked about all rows said, and how long it took.
    pub(super) fn sampled(&self, answers: &[(usize, BooleanBuffer, Duration)], rows: &BooleanBuffer) {
        let total = rows.count_set_bits() as u64;
        for (slot, passed, took) in answers {
            let Some(conjunct) = self.conjuncts.get(*slot) else { continue };
            conjunct.sampled_rows.fetch_add(total, Relaxed);
            conjunct.sampled_passed.fetch_add(passed.count_set_bits() as u64, Relaxed);
            conjunct.sampled_nanos.fetch_add(nanos(*took), Relaxed);
        }
        let mut sets: Vec<Option<BooleanBuffer>> = vec![None; self.together.len()];
        for (set, count) in self.together.iter().enumerate() {
            // A set is a smaller one and one conjunct more; one that was not asked drops no row.
            let passed = if set == 0 {
                rows.clone()
            } else {
                let last = set.ilog2() as usize;
                let smaller = sets[set ^ (1 << last)].clone().unwrap_or_else(|| rows.clone());
                match answers.iter().find(|(slot, ..)| *slot == last) {
                    Some((_, passed, _)) => &smaller & passed,
                    None => smaller,
                }
            };
            count.fetch_add(passed.count_set_bits() as u64, Relaxed);
            sets[set] = Some(passed);
        }
    }

    /// Of the rows that pass a set of conjuncts, the share that pass one more.
    fn passes(&self, slot: usize, before: &[usize]) -> f64 {
        let set = |slots: &mut dyn Iterator<Item = usize>| slots.map(|slot| 1_usize << slot).sum::<usize>();
        if slot < COUNTED {
            let mut counted = before.iter().copied().filter(|&slot| slot < COUNTED);
            let before = set(&mut counted);
            let count = |set: usize| self.together.get(set).map_or(0, |count| count.load(Relaxed));
            return share(count(before | 1 << slot), count(before));
        }
        let Some(conjunct) = self.conjuncts.get(slot) else { return 1.0 };
        share(conjunct.sampled_passed.load(Relaxed), conjunct.sampled_rows.load(Relaxed))
    }

    /// The best order now. `guess` is what a conjunct is thought to cost that no sample has told of yet, in nanoseconds a row.
    pub(super) fn order(&self, guess: impl Fn(usize) -> f64) -> Order {
        let count = self.conjuncts.len();
        let mut order = Order { rank: vec![0; count], idle: vec![false; count] };
        let mut before: Vec<usize> = Vec::with_capacity(count);
        let mut left: Vec<usize> = (0..count).collect();
        let mut rows = 1.0;
        while !left.is_empty() {
            // What it costs to drop a row by it.
            let price = |&slot: &usize| {
                let passes = self.passes(slot, &before);
                (self.cost(slot, rows, &guess) / (1.0 - passes).max(1e-6), passes)
            };
            let priced = left.iter().enumerate().map(|(i, slot)| (i, price(slot)));
            let Some((i, (price, passes))) = priced.min_by(|(_, (a, _)), (_, (b, _))| a.total_cmp(b)) else { break };
            let slot = left.remove(i);
            let optional = self
                .conjuncts
                .get(slot)
                .is_some_and(|conjunct| conjunct.optional && conjunct.sampled_rows.load(Relaxed) >= ENOUGH_ROWS);
            if let (Some(rank), Some(idle)) = (order.rank.get_mut(slot), order.idle.get_mut(slot)) {
                (*rank, *idle) = (before.len(), optional && price > self.row_nanos() * rows);
            }
            before.push(slot);
            rows *= passes;
        }
        order
    }

    /// Whether there are predicates that may rest.
    pub(super) fn has_optional(&self) -> bool {
        self.conjuncts.iter().any(|conjunct| conjunct.optional)
    }

    /// Tells how long it was from when rows were handed over to when the next were asked for.
    pub(super) fn taken(&self, rows: usize, took: Duration) {
        self.taken.fetch_add(rows as u64, Relaxed);
        self.taken_nanos.fetch_add(nanos(took), Relaxed);
    }

    /// What a row that passes costs further on, in nanoseconds.
    fn row_nanos(&self) -> f64 {
        let rows = self.taken.load(Relaxed);
        if rows < ENOUGH_ROWS {
            return ROW_NANOS;
        }
        per_row(self.taken_nanos.load(Relaxed), rows).clamp(ROW_NANOS, MOST_ROW_NANOS)
    }

    /// Nanoseconds for each row of a block, of which a share is left: functions of decoded rows are asked about those only.
    fn cost(&self, slot: usize, share: f64, guess: impl Fn(usize) -> f64) -> f64 {
        let Some(conjunct) = self.conjuncts.get(slot) else { return 0.0 };
        let rows = conjunct.sampled_rows.load(Relaxed);
        let cost = if rows == 0 { guess(slot) } else { per_row(conjunct.sampled_nanos.load(Relaxed), rows) };
        let residual = conjunct.places.last().is_some_and(|blocks| blocks.load(Relaxed) > 0);
        if residual { cost * share } else { cost }
    }

    /// Tells how long a block took, for each of its rows, and whether it was decoded before it was filtered.
    pub(super) fn took(&self, rows: usize, took: Duration, dense: bool) {
        let mut ways = lock(&self.ways);
        ways[usize::from(dense)].add(per_row(nanos(took), rows as u64));
    }

    /// Whether blocks are better decoded before they are filtered.
    fn is_dense(&self) -> bool {
        let [after, before] = *lock(&self.ways);
        match (after.interval(), before.interval()) {
            (Some((least, _)), Some((_, most))) => most < least,
            _ => false,
        }
    }

    /// How the blocks of the next window are to be decoded.
    pub(super) fn next_window(&self) -> DecodeOrder {
        let number = self.windows.fetch_add(1, Relaxed);
        // What is known of the other way grows old.
        let trial = TRIALS.contains(&number) || (number > 0 && number.is_multiple_of(TRIAL));
        DecodeOrder { dense: self.is_dense() != trial, trial }
    }

    /// Tells what a scan holds of blocks that wait to be decoded.
    pub(super) fn retains(&self, bytes: u64) {
        self.retained_peak.fetch_max(bytes, Relaxed);
    }

    /// The most bytes one scan held of blocks that waited to be decoded, beyond what it had read.
    pub fn retained_peak(&self) -> u64 {
        self.retained_peak.load(Relaxed)
    }

    /// How blocks are decoded by now.
    pub fn mode(&self) -> PushdownMode {
        match (self.is_dense(), self.rarely_empties()) {
            (true, _) => PushdownMode::AfterDecode,
            (false, true) => PushdownMode::Interleaved,
            (false, false) => PushdownMode::FilterFirst,
        }
    }

    /// How the conjuncts fared, in the order in which they would be asked now; those never met are left out.
    pub fn report(&self) -> Vec<ConjunctReport> {
        let order = self.order(|_| 1.0);
        let mut slots: Vec<usize> = (0..self.conjuncts.len()).collect();
        slots.sort_by_key(|&slot| order.rank.get(slot).copied());
        let report = |slot: usize| {
            let conjunct = self.conjuncts.get(slot)?;
            let [ruled_out, all_pass, encoded, decoded, residual] =
                std::array::from_fn(|i| conjunct.places.get(i).map_or(0, |count| count.load(Relaxed)));
            (ruled_out + all_pass + encoded + decoded + residual > 0).then(|| ConjunctReport {
                name: conjunct.name.clone(),
                rows_in: conjunct.rows_in.load(Relaxed),
                rows_kept: conjunct.rows_kept.load(Relaxed),
                time: Duration::from_nanos(conjunct.nanos.load(Relaxed)),
                blocks_ruled_out: ruled_out,
                blocks_all_pass: all_pass,
                blocks_encoded: encoded,
                blocks_decoded: decoded,
                blocks_residual: residual,
            })
        };
        slots.into_iter().filter_map(report).collect()
    }
}

#[expect(clippy::cast_precision_loss, reason = "an estimate")]
fn per_row(nanos: u64, rows: u64) -> f64 {
    nanos as f64 / rows.max(1) as f64
}

/// Never quite none, never quite all: few rows prove neither.
#[expect(clippy::cast_precision_loss, reason = "an estimate")]
fn share(part: u64, whole: u64) -> f64 {
    (part as f64 + 0.5) / (whole as f64 + 1.0)
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl fmt::Debug for AdaptiveStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdaptiveStats").field("report", &self.report()).finish_non_exhaustive()
    }
}

impl fmt::Display for ConjunctReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = per_row(nanos(self.time), self.rows_in);
        write!(f, "{}: {} of {} rows", self.name, self.rows_kept, self.rows_in)?;
        if self.rows_in > 0 {
            write!(f, ", {nanos:.2} ns a row")?;
        }
        let places = [
            ("ruled out by zone maps", self.blocks_ruled_out),
            ("known to pass", self.blocks_all_pass),
            ("encoded", self.blocks_encoded),
            ("decoded", self.blocks_decoded),
            ("residual", self.blocks_residual),
        ];
        for (i, (place, blocks)) in places.into_iter().filter(|(_, blocks)| *blocks > 0).enumerate() {
            write!(f, "{}{blocks} {place}", if i == 0 { "; blocks " } else { ", " })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
