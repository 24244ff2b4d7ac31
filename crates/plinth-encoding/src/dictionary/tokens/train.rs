//! Which tokens a dictionary's pieces call for, and pieces as the numbers of tokens.
//!
//! Training goes once through a sample. It takes the longest token that is there, and makes a token of two that have met
//! often enough, until there are as many as there may be. Pieces are then cut in the same way.

use super::{Entry, LONGEST, MOST, bits_of, bytes_of, len_of, write};
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
const SPARE: usize = 2;
/// Zeros after a piece: a word less a byte.
const PADDING: usize = LONGEST;

/// By length, the bytes of a word that are so many: a table is faster than shifting 128 bits by an amount known only at run
/// time.
const MASKS: [u128; LONGEST + 1] = {
    let mut masks = [0; LONGEST + 1];
    let mut len = 0;
    while len <= LONGEST {
        masks[len] = (1 << (8 * len)) - 1;
        len += 1;
    }
    masks
};

/// Cuts pieces into tokens.
pub(in crate::dictionary) struct Tokenizer {
    /// Ids of tokens are their numbers.
    longest: Longest,
}

impl Tokenizer {
    /// The tokens for pieces like these; `occurring` are all bytes that any piece has.
    pub(in crate::dictionary) fn train(pieces: &[&[u8]], occurring: &[bool; 256]) -> Self {
        let bytes: usize = pieces.iter().map(|piece| piece.len()).sum();
        let often = (bytes / MORE_OFTEN).max(OFTEN);
        let mut longest = Longest::new(occurring, MOST.min(256 + bytes / often));
        let mut pairs = Pairs::new(bytes / 8, often);
        let rounds = (0..STRIDE).flat_map(|first| pieces.iter().skip(first).step_by(STRIDE));
        let mut padded = Vec::new();
        for piece in rounds {
            if longest.is_full() {
                break;
            }
            learn(piece, &mut longest, &mut pairs, &mut padded);
        }
        longest.number();
        Self { longest }
    }

    /// Bits a number.
    pub(in crate::dictionary) fn bits(&self) -> u32 {
        bits_of(self.longest.tokens.len())
    }

    /// Appends what [`super::Tokens::read`] reads.
    pub(in crate::dictionary) fn write(&self, out: &mut Vec<u8>) {
        let tokens: Vec<Entry> = self.longest.tokens.iter().map(|token| token.to_le_bytes()).collect();
        write(&tokens, out);
    }

    /// Appends the numbers of the tokens of some pieces, and gives how many each has. All their bytes must occur.
    pub(in crate::dictionary) fn pack(&self, pieces: &[&[u8]], out: &mut BitWriter<'_>) -> Vec<usize> {
        let bits = self.bits();
        self.cut(pieces, |number| out.put(number.into(), bits))
    }

    /// Bytes that the numbers of some pieces take.
    pub(in crate::dictionary) fn packed_len(&self, pieces: &[&[u8]]) -> usize {
        self.cut(pieces, |_| {}).iter().sum::<usize>() * self.bits() as usize / 8
    }

    /// Calls `put` with the numbers of the tokens of some pieces, and gives how many each has.
    fn cut(&self, pieces: &[&[u8]], mut put: impl FnMut(u16)) -> Vec<usize> {
        let mut padded = Vec::new();
        let mut lengths = Vec::with_capacity(pieces.len());
        for piece in pieces {
            let mut count = 0;
            pad(piece, &mut padded);
            let mut at = 0;
            while at < piece.len() {
                let (number, len) = self.longest.find(&padded, at);
                put(number);
                at += len;
                count += 1;
            }
            lengths.push(count);
        }
        lengths
    }
}

/// Makes `padded` the piece and zeros, so that there is a word wherever the piece has a byte.
fn pad(piece: &[u8], padded: &mut Vec<u8>) {
    padded.clear();
    padded.extend_from_slice(piece);
    padded.extend_from_slice(&[0; PADDING]);
}

/// Counts the pairs of a piece's tokens, and makes tokens of those that are frequent.
fn learn(piece: &[u8], longest: &mut Longest, pairs: &mut Pairs, padded: &mut Vec<u8>) {
    pad(piece, padded);
    let mut before: Option<(u16, usize)> = None;
    let mut at = 0;
    while at < piece.len() {
        let (id, len) = longest.find(padded, at);
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
    /// Of tokens of 2 and 3 bytes, of 4 to 7, and of 8 and more: by a hash of their first 2, 4 and 8 bytes, which lengths they
    /// have; the lowest three bits of a length say which bit stands for it. With these about one length is tried in vain.
    lengths: [Vec<u8>; 3],
    /// The tokens of two bytes and more by their hashes, themselves and not their ids, as each look elsewhere may miss the
    /// cache; 0 stands for none.
    slots: Vec<u128>,
    /// The ids of these tokens.
    ids: Vec<u16>,
}

impl Longest {
    fn new(occurring: &[bool; 256], most: usize) -> Self {
        let mut bytes = [0; 256];
        let mut tokens = Vec::new();
        for (byte, id) in (0..=u8::MAX).zip(&mut bytes).filter(|(byte, _)| occurring[usize::from(*byte)]) {
            *id = u16::from(low_byte(tokens.len()));
            tokens.push(word_of(&[byte]));
        }
        let lengths = std::array::from_fn(|_| vec![0; 1 << 16]);
        let slots = (SPARE * most).next_power_of_two();
        Self { tokens, most, bytes, lengths, slots: vec![0; slots], ids: vec![0; slots] }
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
        (start..=start + last).map(move |at| at & last)
    }

    /// The token that follows when one follows the other; `None` if there is no room.
    fn join(&mut self, first: u16, second: u16) -> Option<u16> {
        let (first, second) = (self.token(first).to_le_bytes(), self.token(second).to_le_bytes());
        let token = word_of(&[bytes_of(&first), bytes_of(&second)].concat());
        let id = u16::try_from(self.tokens.len()).ok().filter(|_| !self.is_full())?;
        let free = self.places(token).find(|&at| self.slots[at] == 0)?;
        (self.slots[free], self.ids[free]) = (token, id);
        self.tokens.push(token);
        let (head, len) = (split(token)[0], len_of(&token.to_le_bytes()));
        let class = len.ilog2() as usize - 1;
        self.lengths[class][heads(head)[class]] |= 1 << (len % 8);
        Some(id)
    }

    /// The longest token that the bytes from `at` on begin with, and its length.
    #[inline]
    fn find(&self, padded: &[u8], at: usize) -> (u16, usize) {
        let Some(word) = padded.get(at..).and_then(|rest| rest.first_chunk()) else { return (0, 1) };
        let word = u128::from_le_bytes(*word);
        let left = (padded.len() - PADDING - at).min(LONGEST);
        let [two, four, eight] = heads(split(word)[0]);
        let short = self.lengths[0][two] | self.lengths[1][four];
        let mut lengths = u16::from_le_bytes([short, self.lengths[2][eight]]) & (u16::MAX >> (LONGEST - left));
        while let Some(len) = lengths.checked_ilog2() {
            lengths ^= 1 << len;
            let token = word & MASKS[len as usize] | u128::from(len) << (8 * LONGEST);
            for at in self.places(token) {
                match self.slots[at] {
                    0 => break,
                    held if held == token => return (self.ids[at], len as usize),
                    _ => {}
                }
            }
        }
        (self.bytes[usize::from(word.to_le_bytes()[0])], 1)
    }

    /// Gives tokens their places in the order of their bytes as ids.
    fn number(&mut self) {
        let mut order: Vec<(u128, u16)> =
            self.tokens.iter().map(|token| token.swap_bytes()).zip(0..=u16::MAX).collect();
        // As numbers, highest byte first, tokens compare as the strings do: equal but for zeros, the shorter is less.
        order.sort_unstable();
        let mut numbers = vec![0; order.len()];
        for (number, &(_, id)) in (0..=u16::MAX).zip(&order) {
            numbers[usize::from(id)] = number;
        }
        self.tokens = order.into_iter().map(|(token, _)| token.swap_bytes()).collect();
        self.bytes.iter_mut().for_each(|id| *id = numbers.get(usize::from(*id)).copied().unwrap_or(0));
        self.ids.iter_mut().for_each(|id| *id = numbers.get(usize::from(*id)).copied().unwrap_or(0));
    }
}

/// Hashes of a word's first two, four and eight bytes.
#[inline]
fn heads(word: u64) -> [usize; 3] {
    [48, 32, 0].map(|shift| {
        let [.., low, high] = (word << shift).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
        usize::from(u16::from_le_bytes([low, high]))
    })
}

/// The token of at most [`LONGEST`] bytes.
fn word_of(bytes: &[u8]) -> u128 {
    let mut entry: Entry = [0; LONGEST + 1];
    entry[..bytes.len()].copy_from_slice(bytes);
    entry[LONGEST] = low_byte(bytes.len());
    u128::from_le_bytes(entry)
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
