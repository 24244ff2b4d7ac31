//! Which encoding a node of integers gets: the smallest, once its decode cost is added as a share of its size.
//!
//! Integers are cheap to look at, so sizes are computed from all of them rather than from a sample; only composite
//! encodings that look promising are written out to be weighed.

use super::{delta, distinct, elias_fano, mixed, packed, patched, pcodec, put_constant, runs, zstd_ints};
use crate::bitpack::VECTOR;
use crate::encoding::{Effort, Encoding, cost};
use crate::physical::IntKind;
use crate::recipe::Choice;
use crate::wire::{put_align64, put_int, wide};

/// A candidate and what it would cost.
enum Candidate {
    Plain,
    Packed,
    Mixed(mixed::Plan),
    Patched(patched::Plan),
    EliasFano(elias_fano::Plan),
    /// Already written.
    Written(Vec<u8>),
}

/// Writes a node as another of its column was, if nothing speaks against it; else writes nothing and says so.
pub(crate) fn encode_as(
    like: &Choice,
    values: &[u64],
    kind: IntKind,
    depth: u8,
    effort: Effort,
    start: usize,
    out: &mut Vec<u8>,
) -> bool {
    let Some(&first) = values.first() else { return false };
    let runs = count_runs(values);
    if runs == 1 {
        put_constant(first, kind, out);
        return true;
    }
    let at = out.len();
    let packed = packed::plan(values, kind);
    let most = cost(Encoding::BitPacked, packed.size, effort);
    match like.encoding {
        Encoding::Plain | Encoding::BitPacked | Encoding::Mixed => {
            // Runs, and an order of which differences say more.
            if runs * 2 <= values.len() || differs_less(values, kind) {
                return false;
            }
            let plain = cost(Encoding::Plain, values.len() * usize::from(kind.width), effort);
            let mixed = (like.encoding == Encoding::Mixed && kind == IntKind::U32)
                .then(|| mixed::plan(&packed, values.len()))
                .flatten();
            match mixed {
                Some(plan) => mixed::encode(values, plan, kind, out),
                None if like.encoding != Encoding::Plain => packed::encode(values, kind, &packed, out),
                None if plain > most => return false,
                None => encode_plain(values, kind, depth, start, out),
            }
            return true;
        }
        Encoding::Patched | Encoding::Sparse if depth < 2 => match patched::plan(values, kind) {
            Some(plan) => patched::encode(values, plan, kind, depth, effort, out),
            None => return false,
        },
        Encoding::EliasFano if depth > 0 => match elias_fano::plan(values, kind) {
            Some(plan) => elias_fano::encode(values, plan, kind, out),
            None => return false,
        },
        Encoding::RunLength if depth < 2 => runs::encode(values, kind, depth, effort, &like.inner, out),
        Encoding::Delta if depth < 2 => {
            delta::encode(values, &delta::deltas(values, kind), kind, depth, effort, &like.inner, out);
        }
        Encoding::Distinct if depth < 2 => distinct::encode(values, kind, depth, effort, &like.inner, out),
        Encoding::Pco if depth == 0 => match pcodec::compress_ints(values, kind) {
            Some(file) => {
                out.push(Encoding::Pco.tag());
                pcodec::put(&file, out);
            }
            None => return false,
        },
        Encoding::Zstd => match zstd_ints::compress(values, kind, effort, packed.size) {
            Some((bytes, _)) => {
                out.push(Encoding::Zstd.tag());
                out.extend_from_slice(&bytes);
            }
            None => return false,
        },
        _ => return false,
    }
    let written = out.get(at).and_then(|&tag| Encoding::try_from(tag).ok()).unwrap_or(like.encoding);
    let worth = cost(written, out.len() - at, effort) < most;
    if !worth {
        out.truncate(at);
    }
    worth
}

/// How many runs of equal values there are.
fn count_runs(values: &[u64]) -> usize {
    1 + values.windows(2).filter(|pair| pair[0] != pair[1]).count()
}

/// Whether the differences of a first vector's values take less than these.
fn differs_less(values: &[u64], kind: IntKind) -> bool {
    let first = values.get(..VECTOR).unwrap_or(values);
    let deltas = delta::deltas(first, kind);
    packed::plan(&deltas, delta::delta_kind(kind)).size < packed::plan(first, kind).size
}

/// Writes a node of integers as they are.
pub(crate) fn encode_plain(values: &[u64], kind: IntKind, depth: u8, start: usize, out: &mut Vec<u8>) {
    out.push(Encoding::Plain.tag());
    if depth == 0 {
        put_align64(out, start);
    }
    values.iter().for_each(|&value| put_int(out, value, kind.width));
}

/// Writes a node of `values` (raw integers). `start` is where the block begins in `out`.
pub(crate) fn encode(values: &[u64], kind: IntKind, depth: u8, effort: Effort, start: usize, out: &mut Vec<u8>) {
    let Some(&first) = values.first() else {
        put_constant(0, kind, out);
        return;
    };
    let run_count = count_runs(values);
    if run_count == 1 {
        put_constant(first, kind, out);
        return;
    }
    let plain_size = values.len() * usize::from(kind.width);
    let mut best = (Candidate::Plain, cost(Encoding::Plain, plain_size, effort));
    let offer = |best: &mut (Candidate, usize), candidate: Candidate, cost: usize| {
        if cost < best.1 {
            *best = (candidate, cost);
        }
    };
    let packed = packed::plan(values, kind);
    offer(&mut best, Candidate::Packed, cost(Encoding::BitPacked, packed.size, effort));
    if kind == IntKind::U32
        && let Some(plan) = mixed::plan(&packed, values.len())
    {
        offer(&mut best, Candidate::Mixed(plan), cost(Encoding::Mixed, plan.size, effort));
    }
    // At the top it would have to be decoded from its start for any of its vectors.
    if depth > 0
        && let Some(plan) = elias_fano::plan(values, kind)
    {
        offer(&mut best, Candidate::EliasFano(plan), cost(Encoding::EliasFano, plan.size, effort));
    }
    if depth < 2 {
        if let Some(plan) = patched::plan(values, kind) {
            offer(&mut best, Candidate::Patched(plan), cost(plan.encoding(), plan.size, effort));
        }
        // Where runs end takes a bit a value at most; what repeats must be worth twice that, and an eighth of the values.
        let repeats = values.len() - run_count;
        let saved = best.1 / 1000 / values.len().div_ceil(repeats.max(1));
        if run_count * 2 <= values.len() || (repeats * 8 >= values.len() && saved * 4 > values.len()) {
            let mut written = vec![];
            runs::encode(values, kind, depth, effort, &[], &mut written);
            let cost = cost(Encoding::RunLength, written.len(), effort);
            offer(&mut best, Candidate::Written(written), cost);
        }
        let deltas = delta::deltas(values, kind);
        let delta_kind = delta::delta_kind(kind);
        let mut estimate = packed::plan(&deltas, delta_kind).size;
        if depth == 0 {
            estimate = patched::plan(&deltas, delta_kind).map_or(estimate, |plan| plan.size.min(estimate));
        }
        if cost(Encoding::Delta, estimate, effort) < best.1 {
            let mut written = vec![];
            delta::encode(values, &deltas, kind, depth, effort, &[], &mut written);
            let cost = cost(Encoding::Delta, written.len(), effort);
            offer(&mut best, Candidate::Written(written), cost);
        }
        if matches!(effort, Effort::Balanced | Effort::Compact)
            && let Some(size) = distinct::estimate(values, packed.span, kind)
            && cost(Encoding::Distinct, size, effort) < best.1
        {
            let mut written = vec![];
            distinct::encode(values, kind, depth, effort, &[], &mut written);
            let cost = cost(Encoding::Distinct, written.len(), effort);
            offer(&mut best, Candidate::Written(written), cost);
        }
        if effort == Effort::Compact
            && depth == 0
            && let Some(file) = pcodec::compress_ints(values, kind)
        {
            let mut written = vec![Encoding::Pco.tag()];
            pcodec::put(&file, &mut written);
            let cost = cost(Encoding::Pco, written.len(), effort);
            offer(&mut best, Candidate::Written(written), cost);
        }
    }
    if matches!(effort, Effort::Balanced | Effort::Compact)
        && let Some((bytes, inside)) =
            zstd_ints::compress(values, kind, effort, best.1 / cost(Encoding::Zstd, 1, effort))
    {
        // What comes out has to be gone through, however little goes in.
        let cost = cost(Encoding::Zstd, bytes.len() + inside / 32, effort);
        let mut written = vec![Encoding::Zstd.tag()];
        written.extend_from_slice(&bytes);
        offer(&mut best, Candidate::Written(written), cost);
    }
    match best.0 {
        Candidate::Plain => encode_plain(values, kind, depth, start, out),
        Candidate::Packed => packed::encode(values, kind, &packed, out),
        Candidate::Mixed(plan) => mixed::encode(values, plan, kind, out),
        Candidate::Patched(plan) => patched::encode(values, plan, kind, depth, effort, out),
        Candidate::EliasFano(plan) => elias_fano::encode(values, plan, kind, out),
        Candidate::Written(bytes) => out.extend_from_slice(&bytes),
    }
    debug_assert!(wide(values.len()) <= u64::from(u32::MAX));
}
