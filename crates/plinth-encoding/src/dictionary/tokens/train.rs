//! Which tokens a dictionary's pieces call for, and pieces as the numbers of tokens.
//!
//! Training goes once through a sample. It takes the longest token that is there, and makes a token of two that have met
//! often enough, until there are as many as there may be. Pieces are then cut in the same way.

use super::{Entry, LONGEST, MOST, bits_of, bytes_of, write};
use crate::dictionary::alphabet::BitWriter;
use crate::dictionary::entry::{mix, split};
use crate::dictionary::wire::low_byte;

/// How often two tokens must meet to be made one, and for how many bytes of the sample more often by one.
const OFTEN: usize = 3;
const MORE_OFTEN: usize = 4 << 20;
/// Pieces are taken this far from each other, and so round by round: neighbours are alike, and would be learned by heart.
const STRIDE: usize = 61;
/// Most pairs that are counted at a time.
const PAIRS: usize = 1 << 20;
/// Free slots of a hash table for each that is taken.
const SPARE: usize = 4;

/// Cuts pieces into tokens.
pub(in crate::dictionary) struct Tokenizer {
    longest: Longest,
    /// The number of each token.
    numbers: Vec<u16>,
    /// The tokens in order.
    tokens: Vec<Entry>,
}

impl Tokenizer {
    /// The tokens for pieces like these; `occurring` are all bytes that any piece has.
    pub(in crate::dictionary) fn train(pieces: &[&[u8]], occurring: &[bool; 256]) -> Self {
        let bytes: usize = pieces.iter().map(|piece| piece.len()).sum();
        let often = (bytes / MORE_OFTEN).max(OFTEN);
        let mut longest = Longest::new(occurring, MOST.min(256 + bytes / often));
        let mut pairs = Pairs::new(bytes / 8, often);
        let rounds = (0..STRIDE).flat_map(|first| pieces.iter().skip(first).step_by(STRIDE));
        for piece in rounds {
            if longest.is_full() {
                break;
            }
            learn(piece, &mut longest, &mut pairs);
        }
        let mut order: Vec<u16> = (0..=u16::MAX).take(longest.tokens.len()).collect();
        let entry = |id: u16| longest.token(id).to_le_bytes();
        order.sort_unstable_by(|&a, &b| bytes_of(&entry(a)).cmp(bytes_of(&entry(b))));
        let tokens = order.iter().map(|&id| entry(id)).collect();
        let mut numbers = vec![0; order.len()];
        for (number, &id) in (0..=u16::MAX).zip(&order) {
            numbers[usize::from(id)] = number;
        }
        Self { longest, numbers, tokens }
    }

    /// Bits a number.
    pub(in crate::dictionary) fn bits(&self) -> u32 {
        bits_of(self.tokens.len())
    }

    /// Appends what [`super::Tokens::read`] reads.
    pub(in crate::dictionary) fn write(&self, out: &mut Vec<u8>) {
        write(&self.tokens, out);
    }

    /// Appends the numbers of a piece's tokens and gives how many they are. All its bytes must occur.
    pub(in crate::dictionary) fn pack(&self, piece: &[u8], out: &mut BitWriter<'_>) -> usize {
        let (bits, mut count) = (self.bits(), 0);
        for (id, _) in self.longest.cut(piece) {
            out.put(self.numbers[usize::from(id)].into(), bits);
            count += 1;
        }
        count
    }

    /// Bytes that the numbers of some pieces take.
    pub(in crate::dictionary) fn packed_len(&self, pieces: &[&[u8]]) -> usize {
        let numbers: usize = pieces.iter().map(|piece| self.longest.cut(piece).count()).sum();
        numbers * self.bits() as usize / 8
    }
}

/// Counts the pairs of a piece's tokens, and makes tokens of those that are frequent.
fn learn(piece: &[u8], longest: &mut Longest, pairs: &mut Pairs) {
    let mut before: Option<(u16, usize)> = None;
    let mut at = 0;
    while let Some(rest) = piece.get(at..).filter(|rest| !rest.is_empty()) {
        let (id, len) = longest.find(rest);
        at += len;
        let both = before.filter(|&(first, held)| held + len <= LONGEST && pairs.is_frequent(first, id));
        before = match both.and_then(|(first, held)| Some((longest.join(first, id)?, held + len))) {
            Some(joined) => Some(joined),
            None => Some((id, len)),
        };
    }
}

/// Finds the longest token that some bytes begin with.
///
/// A token is a word of its bytes and, highest, their number: as an [`Entry`] is in memory.
struct Longest {
    tokens: Vec<u128>,
    most: usize,
    /// The token of each byte.
    bytes: [u16; 256],
    /// By the first two bytes, which lengths tokens have that begin with them: a bit for each.
    lengths: Vec<u16>,
    /// The tokens of two bytes and more by their hashes; the first token, which is of one, stands for none.
    slots: Vec<u16>,
}

impl Longest {
    fn new(occurring: &[bool; 256], most: usize) -> Self {
        let mut bytes = [0; 256];
        let mut tokens = Vec::new();
        for (byte, id) in (0..=u8::MAX).zip(&mut bytes).filter(|(byte, _)| occurring[usize::from(*byte)]) {
            *id = u16::from(low_byte(tokens.len()));
            tokens.push(word_of(&[byte]));
        }
        Self { tokens, most, bytes, lengths: vec![0; 1 << 16], slots: vec![0; (SPARE * most).next_power_of_two()] }
    }

    fn is_full(&self) -> bool {
        self.tokens.len() >= self.most
    }

    fn token(&self, id: u16) -> u128 {
        self.tokens.get(usize::from(id)).copied().unwrap_or(0)
    }

    /// The slots that may hold a token, in order.
    #[inline]
    fn places(&self, token: u128) -> impl Iterator<Item = usize> + use<> {
        let last = self.slots.len() - 1;
        let [low, high] = split(token);
        let start = mix(low, high) as usize;
        (start..start + last).map(move |at| at & last)
    }

    /// The token that follows when one follows the other; `None` if there is no room.
    fn join(&mut self, first: u16, second: u16) -> Option<u16> {
        let (first, second) = (self.token(first).to_le_bytes(), self.token(second).to_le_bytes());
        let token = word_of(&[bytes_of(&first), bytes_of(&second)].concat());
        let id = u16::try_from(self.tokens.len()).ok().filter(|_| !self.is_full())?;
        let free = self.places(token).find(|&at| self.slots[at] == 0)?;
        self.slots[free] = id;
        self.tokens.push(token);
        let (head, len) = (token & 0xffff, token >> (8 * LONGEST));
        self.lengths[usize::from(low_16(head))] |= 1 << len;
        Some(id)
    }

    /// The longest token that bytes, of which there is one at least, begin with, and its length.
    #[inline]
    fn find(&self, text: &[u8]) -> (u16, usize) {
        let word = word_at(text);
        let fitting = (2u16 << text.len().min(LONGEST)).wrapping_sub(1);
        let mut lengths = self.lengths[usize::from(low_16(word))] & fitting;
        while let Some(len) = lengths.checked_ilog2() {
            lengths ^= 1 << len;
            let token = word & ((1 << (8 * len)) - 1) | u128::from(len) << (8 * LONGEST);
            for at in self.places(token) {
                match self.slots[at] {
                    0 => break,
                    id if self.token(id) == token => return (id, len as usize),
                    _ => {}
                }
            }
        }
        (text.first().map_or(0, |&byte| self.bytes[usize::from(byte)]), 1)
    }

    /// The tokens that a piece is cut into, and their lengths.
    fn cut<'a>(&'a self, mut piece: &'a [u8]) -> impl Iterator<Item = (u16, usize)> + 'a {
        std::iter::from_fn(move || {
            let (id, len) = if piece.is_empty() { return None } else { self.find(piece) };
            piece = piece.get(len..).unwrap_or(&[]);
            Some((id, len))
        })
    }
}

/// The first bytes of a text, zeros if there are fewer.
#[inline]
fn word_at(text: &[u8]) -> u128 {
    match text.first_chunk::<16>() {
        Some(chunk) => u128::from_le_bytes(*chunk),
        None => {
            let mut padded = [0; 16];
            padded[..text.len()].copy_from_slice(text);
            u128::from_le_bytes(padded)
        }
    }
}

/// The token of at most [`LONGEST`] bytes.
fn word_of(bytes: &[u8]) -> u128 {
    word_at(bytes) | u128::from(low_byte(bytes.len())) << (8 * LONGEST)
}

#[inline]
#[allow(clippy::cast_possible_truncation, reason = "the lowest bits are what is asked for")]
fn low_16(word: u128) -> u16 {
    word as u16
}

/// How often pairs were met: of pairs that want the same slot, the one that comes more often has it in the end.
struct Pairs {
    slots: Vec<(u32, u32)>,
    often: u32,
}

impl Pairs {
    fn new(expected: usize, often: usize) -> Self {
        let slots = expected.clamp(1024, PAIRS).next_power_of_two();
        Self { slots: vec![(0, 0); slots], often: u32::try_from(often).unwrap_or(u32::MAX) }
    }

    /// Counts a pair, and forgets it once it was met often enough.
    #[inline]
    fn is_frequent(&mut self, first: u16, second: u16) -> bool {
        let pair = u32::from(first) << 16 | u32::from(second);
        let at = mix(pair.into(), 0) as usize & (self.slots.len() - 1);
        let Some((held, count)) = self.slots.get_mut(at) else { return false };
        if *held == pair {
            *count += 1;
        } else if *count > 1 {
            *count -= 1;
            return false;
        } else {
            (*held, *count) = (pair, 1);
        }
        let frequent = *count >= self.often;
        if frequent {
            *count = 0;
        }
        frequent
    }
}
