//! A prefix code for bytes (Huffman, 1952, of at most [`DEEPEST`] bits, canonical).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::dictionary::alphabet::{BitWriter, peek};
use crate::dictionary::wire::low_byte;
use crate::wire::wide;
use plinth_core::wire::{Reader, put_varint};

/// The longest code, in bits.
const DEEPEST: u8 = 12;

/// How many bits each byte takes; 0 for those that do not occur.
pub(crate) struct Code([u8; 256]);

impl Code {
    /// The best code for bytes that occur so often, unless leaving them as they are takes less room with its description.
    pub(crate) fn choose(counts: &[usize; 256]) -> Self {
        let plain = Self([8; 256]);
        let mut weights = *counts;
        let best = loop {
            let bits = huffman(&weights);
            if bits.iter().all(|&bits| bits <= DEEPEST) {
                break Self(bits);
            }
            // Flatter counts give a shallower tree.
            weights.iter_mut().filter(|weight| **weight > 0).for_each(|weight| *weight = *weight / 2 + 1);
        };
        let size =
            |code: &Self| counts.iter().zip(code.0).map(|(&count, bits)| count * usize::from(bits)).sum::<usize>();
        let mut described = Vec::new();
        best.write(&mut described);
        if size(&best).div_ceil(8) + described.len() < size(&plain).div_ceil(8) { best } else { plain }
    }

    /// Appends the number of bytes that have codes, those bytes, and the bits of each in a nibble; just 0 where each byte
    /// stands for itself.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        if self.0 == [8; 256] {
            out.push(0);
            return;
        }
        let used: Vec<usize> = (0..256).filter(|&byte| self.0[byte] > 0).collect();
        put_varint(out, wide(used.len()));
        out.extend(used.iter().map(|&byte| low_byte(byte)));
        out.extend(used.chunks(2).map(|two| two.iter().rev().fold(0, |both, &byte| both << 4 | self.0[byte])));
    }

    /// Appends the codes of `bytes`, filled to a whole byte.
    pub(crate) fn encode(&self, bytes: &[u8], out: &mut Vec<u8>) {
        let codes = canonical(&self.0);
        let mut writer = BitWriter::new(out);
        for &byte in bytes {
            let byte = usize::from(byte);
            writer.put(u64::from(codes[byte]), u32::from(self.0[byte]));
        }
        writer.finish();
    }
}

/// The depth of each symbol in a Huffman tree; 1 for a symbol that is alone.
fn huffman(counts: &[usize; 256]) -> [u8; 256] {
    // Leaves are numbered by their symbols, inner nodes from 256 on in the order they are made, children before parents.
    let mut parents = [0usize; 512];
    let leaves = counts.iter().enumerate().filter(|&(_, &count)| count > 0);
    let mut heap: BinaryHeap<Reverse<(usize, usize)>> =
        leaves.map(|(symbol, &count)| Reverse((count, symbol))).collect();
    let mut bits = [0; 256];
    if let (1, Some(&Reverse((_, symbol)))) = (heap.len(), heap.peek()) {
        bits[symbol] = 1;
        return bits;
    }
    let mut next = 256;
    while let (Some(Reverse((a, left))), Some(Reverse((b, right)))) = (heap.pop(), heap.pop()) {
        (parents[left], parents[right]) = (next, next);
        heap.push(Reverse((a + b, next)));
        if heap.len() == 1 {
            break;
        }
        next += 1;
    }
    let mut depths = [0u8; 512];
    for node in (0..next).rev().filter(|&node| parents[node] > 0) {
        depths[node] = depths[parents[node]].saturating_add(1);
    }
    bits.copy_from_slice(&depths[..256]);
    bits
}

/// Codes in the order of their lengths, then of the bytes they stand for; what does not fit is cut off.
fn canonical(bits: &[u8; 256]) -> [u16; 256] {
    let (mut codes, mut next) = ([0; 256], 0u16);
    for depth in 1..=DEEPEST {
        next <<= 1;
        for (code, _) in codes.iter_mut().zip(bits).filter(|&(_, &bits)| bits == depth) {
            *code = next;
            next = next.wrapping_add(1);
        }
    }
    codes
}

/// A code to read with: the byte that any next few bits begin with, and how many of them it takes, 0 for none.
#[derive(Debug)]
pub(crate) struct CodeTable {
    width: u32,
    entries: Vec<(u8, u8)>,
}

impl CodeTable {
    /// Reads what [`Code::write`] wrote, and gives how many bytes it is.
    pub(crate) fn read(bytes: &[u8]) -> Option<(Self, usize)> {
        let cursor = &mut Reader::new(bytes);
        let used = cursor.length().ok()?;
        let mut bits = [8; 256];
        if used > 0 {
            bits = [0; 256];
            let bytes = cursor.take(used).ok()?;
            let nibbles = cursor.take(used.div_ceil(2)).ok()?;
            if !bytes.is_sorted_by(|a, b| a < b) {
                return None;
            }
            for (i, &byte) in bytes.iter().enumerate() {
                bits[usize::from(byte)] = nibbles[i / 2] >> (i % 2 * 4) & 15;
            }
            if bytes.iter().any(|&byte| !(1..=DEEPEST).contains(&bits[usize::from(byte)])) {
                return None;
            }
        }
        let width = bits.iter().copied().max().unwrap_or(1);
        let mut entries = vec![(0, 0); 1 << width];
        let room: usize = bits.iter().filter(|&&bits| bits > 0).map(|&bits| 1usize << (width - bits)).sum();
        if room > entries.len() {
            return None;
        }
        for ((byte, &bits), code) in (0..=u8::MAX).zip(&bits).zip(canonical(&bits)) {
            if bits > 0 {
                let first = usize::from(code) << (width - bits);
                entries.get_mut(first..first + (1 << (width - bits)))?.fill((byte, bits));
            }
        }
        Some((Self { width: u32::from(width), entries }, cursor.position()))
    }

    /// Appends `count` bytes and gives where in `bytes` their codes, which begin at `at`, end. `None` where bits begin no
    /// code or there are too few.
    pub(crate) fn decode(&self, bytes: &[u8], at: usize, count: usize, out: &mut Vec<u8>) -> Option<usize> {
        let mut bit = at * 8;
        out.reserve(count);
        for _ in 0..count {
            let (byte, bits) = *self.entries.get(usize::try_from(peek(bytes, bit) >> (64 - self.width)).ok()?)?;
            if bits == 0 {
                return None;
            }
            bit += usize::from(bits);
            out.push(byte);
        }
        let end = bit.div_ceil(8);
        (end <= bytes.len()).then_some(end)
    }

    /// Bytes held.
    pub(crate) fn memory(&self) -> usize {
        self.entries.capacity() * size_of::<(u8, u8)>()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests;
