//! Which tokens a dictionary's pieces call for, and pieces as the numbers of tokens.
//!
//! Training goes once through a sample. It takes the longest token that is there, and makes a token of two that have met
//! often enough, until there are as many as there may be. Pieces are then cut in the same way. Both work on several pieces side
//! by side, because the tables of tokens and of pairs are larger than the caches next to a processor.

mod cut;
mod learn;
mod search;

use cut::Cut;
use learn::Learner;
use search::side_by_side;

use super::{Entry, LONGEST, MOST, bits_of, bytes_of, len_of, write};
use crate::dictionary::alphabet::BitWriter;
use crate::dictionary::entry::{mix, split};
use crate::dictionary::wire::low_byte;

/// How often two tokens must meet to be made one, and for how many bytes of the sample more often by one.
const OFTEN: usize = 3;
const MORE_OFTEN: usize = 4 << 20;
/// Pieces are taken this far from each other, and so round by round: neighbours are alike, and would be learned by heart.
const STRIDE: usize = 61;
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
        let mut learner = Learner::new(bytes, often);
        let mut rounds = (0..STRIDE).flat_map(|first| pieces.iter().skip(first).step_by(STRIDE).copied());
        let mut together = Vec::new();
        loop {
            together.clear();
            let count = side_by_side(rounds.clone());
            together.extend(rounds.by_ref().take(count));
            if together.is_empty() || longest.is_full() {
                break;
            }
            learner.learn(&mut longest, &together);
        }
        longest.number();
        Self { longest }
    }

    /// That of tokens [learned](Self::learned) before, if all bytes that occur are among them.
    pub(in crate::dictionary) fn of(tokens: &[u128], occurring: &[bool; 256]) -> Option<Self> {
        let longest = Longest::of(tokens);
        let known = |byte: u8| longest.token(longest.bytes[usize::from(byte)]) == word_of(&[byte]);
        (0..=u8::MAX).all(|byte| !occurring[usize::from(byte)] || known(byte)).then_some(Self { longest })
    }

    /// The tokens, to cut other pieces into.
    pub(in crate::dictionary) fn learned(&self) -> &[u128] {
        &self.longest.tokens
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
        let mut lengths = Vec::with_capacity(pieces.len());
        let mut cut = Cut::default();
        let mut rest = pieces;
        while let Some((together, others)) = rest.split_at_checked(side_by_side(rest.iter().copied())) {
            if together.is_empty() {
                break;
            }
            rest = others;
            cut.cut(&self.longest, together);
            for numbers in cut.pieces() {
                numbers.iter().for_each(|&number| put(number));
                lengths.push(numbers.len());
            }
        }
        lengths
    }
}

/// The tokens by what they begin with, for a [`search::Search`] of the longest.
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
        Self { tokens, bytes, ..Self::empty(most) }
    }

    fn empty(most: usize) -> Self {
        let lengths = std::array::from_fn(|_| vec![0; 1 << 16]);
        let slots = (SPARE * most).next_power_of_two();
        Self { tokens: Vec::new(), most, bytes: [0; 256], lengths, slots: vec![0; slots], ids: vec![0; slots] }
    }

    /// That of tokens in the order of their bytes.
    fn of(tokens: &[u128]) -> Self {
        let mut longest = Self::empty(tokens.len());
        for (id, &token) in (0..=u16::MAX).zip(tokens) {
            match token.to_le_bytes() {
                bytes if len_of(&bytes) == 1 => longest.bytes[usize::from(bytes[0])] = id,
                _ => longest.place(token, id),
            }
        }
        longest.tokens = tokens.to_vec();
        longest
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
        let start = self.first_place(token);
        (start..=start + last).map(move |at| at & last)
    }

    /// The first slot that may hold a token, counted on past the last one.
    #[inline]
    fn first_place(&self, token: u128) -> usize {
        let [low, high] = split(token);
        mix(low, high) as usize
    }

    /// The token that follows when one follows the other; `None` if there is no room.
    fn join(&mut self, first: u16, second: u16) -> Option<u16> {
        let (first, second) = (self.token(first).to_le_bytes(), self.token(second).to_le_bytes());
        let token = word_of(&[bytes_of(&first), bytes_of(&second)].concat());
        // Pieces that are learned from side by side may come to the same.
        let known = |&at: &usize| self.slots[at] == 0 || self.slots[at] == token;
        if let Some(at) = self.places(token).find(known).filter(|&at| self.slots[at] == token) {
            return self.ids.get(at).copied();
        }
        let id = u16::try_from(self.tokens.len()).ok().filter(|_| !self.is_full())?;
        self.tokens.push(token);
        self.place(token, id);
        Some(id)
    }

    /// Puts a token of two bytes and more where it is looked for.
    fn place(&mut self, token: u128, id: u16) {
        let Some(free) = self.places(token).find(|&at| self.slots[at] == 0) else { return };
        (self.slots[free], self.ids[free]) = (token, id);
        let (head, len) = (split(token)[0], len_of(&token.to_le_bytes()));
        let class = len.ilog2() as usize - 1;
        self.lengths[class][heads(head)[class]] |= 1 << (len % 8);
    }

    /// The lengths, a bit each, that a token may have that some bytes begin with, of which so many are left.
    #[inline]
    fn lengths_of(&self, word: u128, left: usize) -> u16 {
        let [two, four, eight] = heads(split(word)[0]);
        let short = self.lengths[0][two] | self.lengths[1][four];
        u16::from_le_bytes([short, self.lengths[2][eight]]) & (u16::MAX >> (LONGEST - left.min(LONGEST)))
    }

    /// The token of the byte that some bytes begin with.
    #[inline]
    fn of_byte(&self, word: u128) -> u16 {
        self.bytes[usize::from(word.to_le_bytes()[0])]
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

/// The token of the first `len` bytes of a word.
#[inline]
fn token_of(word: u128, len: u32) -> u128 {
    word & MASKS[len as usize] | u128::from(len) << (8 * LONGEST)
}

/// The token of at most [`LONGEST`] bytes.
fn word_of(bytes: &[u8]) -> u128 {
    let mut entry: Entry = [0; LONGEST + 1];
    entry[..bytes.len()].copy_from_slice(bytes);
    entry[LONGEST] = low_byte(bytes.len());
    u128::from_le_bytes(entry)
}
