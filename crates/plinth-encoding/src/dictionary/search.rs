//! A front-coded block in memory: where a key is, which key is where, and all of them.

use std::cmp::Ordering;

use crate::dictionary::alphabet::Query;
use crate::dictionary::lengths;
use crate::dictionary::pieces::{Context, Pieces, Table, bytes};
use crate::dictionary::scratch::{STEP, Scratch};
use crate::dictionary::wire::{OrCorrupt, corrupt, low_half, prefix8};
use crate::dictionary::{BUCKET, Found};
use crate::error::Result;
use plinth_core::key::common_prefix;
use plinth_core::wire::Reader;

/// Neighbouring buckets that a search looks at together.
const NEAR: usize = 16;

/// A block ready to be searched; [`Context::open`] makes it.
#[derive(Debug)]
pub(super) struct FrontBlock {
    len: usize,
    /// Sum of the keys' lengths, which is only a claim where pieces are compressed.
    decoded: usize,
    common: Vec<u8>,
    /// The first symbols of each bucket's first key, past the common prefix.
    pub(super) prefixes: Vec<u64>,
    spread: Spread,
    /// Where in the data each bucket starts.
    pub(super) starts: Vec<usize>,
    /// Of each bucket sixteen [lengths], what did not fit them, and the pieces end to end, filled to a whole byte.
    pub(super) data: Vec<u8>,
}

/// Where a number is expected among ascending ones if they are evenly spread between the first and the last.
#[derive(Debug, Default)]
struct Spread {
    first: u64,
    /// How far to shift a difference to make it one of 32 bits, and what to multiply that with to get 2^32 times a place.
    shift: u32,
    factor: u64,
    most: usize,
}

impl Spread {
    fn of(numbers: &[u64]) -> Self {
        let (Some(&first), Some(&last)) = (numbers.first(), numbers.last()) else { return Self::default() };
        let most = numbers.len() - 1;
        let shift = 32u32.saturating_sub((last - first).leading_zeros());
        Self { first, shift, factor: ((most as u64) << 32) / (((last - first) >> shift) + 1), most }
    }

    #[inline]
    fn guess(&self, number: u64) -> usize {
        let place = (number.saturating_sub(self.first) >> self.shift).saturating_mul(self.factor) >> 32;
        usize::try_from(place).unwrap_or(usize::MAX).min(self.most)
    }
}

/// What a bucket's keys share with the key before, how many symbols the rest has, and where the first rest starts.
struct Lengths {
    shared: [u32; BUCKET],
    piece: [u32; BUCKET],
    at: usize,
}

impl Lengths {
    /// What a key shares and the length of its piece, for each key.
    #[inline]
    fn iter(&self) -> impl DoubleEndedIterator<Item = (usize, usize)> + ExactSizeIterator {
        self.shared.iter().zip(&self.piece).map(|(&shared, &piece)| (shared as usize, piece as usize))
    }

    /// The length of the first key.
    fn head(&self) -> usize {
        self.piece[0] as usize
    }
}

impl FrontBlock {
    pub(super) fn new(len: usize, decoded: usize, common: &[u8], buckets: usize) -> Self {
        Self {
            len,
            decoded,
            common: common.to_vec(),
            prefixes: Vec::with_capacity(buckets),
            spread: Spread::default(),
            starts: Vec::with_capacity(buckets),
            data: Vec::new(),
        }
    }

    /// Ends the data with room that reads may overshoot into.
    pub(super) fn seal(&mut self) {
        self.spread = Spread::of(&self.prefixes);
        self.data.resize(self.data.len() + STEP, 0);
        self.data.shrink_to_fit();
    }

    /// Bytes held.
    pub(super) fn memory(&self) -> usize {
        self.common.capacity() + self.data.capacity() + 8 * (self.prefixes.capacity() + self.starts.capacity())
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Sum of the keys' lengths, as the block claims.
    pub(super) fn decoded(&self) -> usize {
        self.decoded
    }

    #[inline]
    fn lengths(&self, bucket: usize) -> Result<Lengths> {
        const GONE: &str = "a bucket has no lengths";
        let at = *self.starts.get(bucket).or_corrupt(GONE)?;
        let rest = self.data.get(at..).or_corrupt(GONE)?;
        let bytes = rest.first_chunk::<BUCKET>().or_corrupt(GONE)?;
        let mut lengths = Lengths {
            shared: bytes.map(|byte| u32::from(byte & 15)),
            piece: bytes.map(|byte| u32::from(byte >> 4)),
            at: at + BUCKET,
        };
        if bytes.iter().fold(false, |any, &byte| any | (byte & 15 == 15) | (byte >> 4 == 15)) {
            let mut more = Reader::within(&self.data, lengths.at, self.data.len()).or_corrupt(GONE)?;
            for (i, &byte) in bytes.iter().enumerate() {
                let (shared, piece) = lengths::take(byte, &mut more).or_corrupt(GONE)?;
                // What does not fit was refused when the block was opened.
                (lengths.shared[i], lengths.piece[i]) = (low_half(shared as u64), low_half(piece as u64));
            }
            lengths.at = more.position();
        }
        Ok(lengths)
    }

    /// `len` bytes from bit `bit` on, of pieces that are as they are.
    #[inline]
    fn bytes(&self, bit: usize, len: usize) -> Result<&[u8]> {
        bytes(&self.data, bit, len).or_corrupt("a bucket is cut short")
    }

    /// Where `key` is or would be.
    pub(super) fn locate(&self, context: &Context, key: &[u8]) -> Result<Found> {
        let shared = common_prefix(&self.common, key);
        if shared < self.common.len() {
            let before = key.get(shared).is_none_or(|byte| *byte < self.common[shared]);
            return Ok(Found { rank: if before { 0 } else { self.len }, exact: false });
        }
        let rest = &key[shared..];
        let wanted = match &context.pieces {
            Pieces::Plain => Wanted::Plain(rest),
            Pieces::Compressed(table) => Wanted::Compressed(table, rest),
            Pieces::Packed(alphabet) => {
                Wanted::Packed(alphabet, alphabet.query(rest, context.longest - self.common.len() + 1))
            }
        };
        self.locate_wanted(context.pieces.bits(), &wanted)
    }

    fn locate_wanted(&self, bits: usize, wanted: &Wanted<'_>) -> Result<Found> {
        let prefix = wanted.prefix();
        // The last bucket whose first key is not above the key. Those with a smaller prefix are below; equal prefixes
        // need a closer look.
        let mut low = self.heads_below(prefix);
        let mut high = match self.prefixes.get(low) {
            Some(&head) if head == prefix => low + self.prefixes[low..].partition_point(|&head| head == prefix),
            _ => low,
        };
        while low < high {
            let middle = low + (high - low) / 2;
            let lengths = self.lengths(middle)?;
            match self.compare(wanted, lengths.at * 8, lengths.head(), 0)?.0 {
                Ordering::Less => low = middle + 1,
                Ordering::Equal => return Ok(Found { rank: middle * BUCKET, exact: wanted.is_exact() }),
                Ordering::Greater => high = middle,
            }
        }
        match low.checked_sub(1) {
            None => Ok(Found { rank: 0, exact: false }),
            Some(bucket) => self.locate_in_bucket(bits, bucket, wanted),
        }
    }

    /// How many prefixes are less than this one. Where they are about evenly spread, as random keys' are, all that is looked
    /// at lies around where it is expected.
    #[inline]
    fn heads_below(&self, prefix: u64) -> usize {
        let heads = self.prefixes.as_slice();
        let guess = self.spread.guess(prefix).saturating_sub(NEAR / 2);
        let Some(near) = heads.get(guess..).and_then(|rest| rest.first_chunk::<NEAR>()) else {
            return heads.partition_point(|&head| head < prefix);
        };
        if near[0] >= prefix {
            heads[..guess].partition_point(|&head| head < prefix)
        } else if near[NEAR - 1] < prefix {
            guess + NEAR + heads[guess + NEAR..].partition_point(|&head| head < prefix)
        } else {
            guess + near.iter().map(|&head| usize::from(head < prefix)).sum::<usize>()
        }
    }

    /// The bucket's first key is below the one wanted. Keys are compared without being put together: one that shares more
    /// with the one before than that shares with the one wanted is on the same side of it.
    fn locate_in_bucket(&self, bits: usize, bucket: usize, wanted: &Wanted<'_>) -> Result<Found> {
        let lengths = self.lengths(bucket)?;
        let mut at = lengths.at * 8;
        let (_, mut matched) = self.compare(wanted, at, lengths.head(), 0)?;
        at += lengths.head() * bits;
        let first = bucket * BUCKET;
        let end = (first + BUCKET).min(self.len);
        for (rank, (shared, piece)) in (first..end).zip(lengths.iter()).skip(1) {
            if shared < matched {
                return Ok(Found { rank, exact: false });
            }
            if shared == matched {
                let (order, more) = self.compare(wanted, at, piece, matched)?;
                match order {
                    Ordering::Less => matched += more,
                    Ordering::Equal => return Ok(Found { rank, exact: wanted.is_exact() }),
                    Ordering::Greater => return Ok(Found { rank, exact: false }),
                }
            }
            at += piece * bits;
        }
        Ok(Found { rank: end, exact: false })
    }

    /// How the piece of `len` symbols at bit `at` compares with what is wanted from `from` on, and how many symbols they
    /// share.
    #[inline]
    fn compare(&self, wanted: &Wanted<'_>, at: usize, len: usize, from: usize) -> Result<(Ordering, usize)> {
        Ok(match wanted {
            Wanted::Packed(alphabet, query) => alphabet.compare(&self.data, at, len, query, from),
            Wanted::Plain(key) => {
                let (piece, key) = (self.bytes(at, len)?, key.get(from..).unwrap_or(&[]));
                let shared = common_prefix(piece, key);
                (piece[shared..].first().cmp(&key[shared..].first()), shared)
            }
            Wanted::Compressed(table, key) => {
                let (mut compared, key) = (Compared::default(), key.get(from..).unwrap_or(&[]));
                table
                    .visit(&self.data, at, len, |bytes| compared.with(bytes, key))
                    .or_corrupt("a code has no symbol")?;
                compared.end(key)
            }
        })
    }

    /// Replaces what `out` holds by key `rank` of the block.
    ///
    /// Few pieces of a bucket reach into a given key: only those are copied.
    pub(super) fn get(&self, context: &Context, rank: usize, out: &mut Vec<u8>) -> Result<()> {
        let lengths = self.lengths(rank / BUCKET)?;
        let wanted = rank % BUCKET;
        let (mut reaching, mut needed) = (0u32, usize::MAX);
        for (i, (shared, _)) in lengths.iter().enumerate().take(wanted + 1).rev() {
            if shared < needed {
                reaching |= 1 << i;
                needed = shared;
            }
            if needed == 0 {
                break;
            }
        }
        let room = |piece| match &context.pieces {
            Pieces::Compressed(table) => table.room(piece),
            _ => piece,
        };
        let furthest = lengths.iter().take(wanted + 1).map(|(shared, piece)| shared + room(piece)).max().unwrap_or(0);
        out.clear();
        out.extend_from_slice(&self.common);
        out.resize(self.common.len() + furthest + STEP, 0);
        let rest = &mut out[self.common.len()..];
        let (mut end, mut at) = (0, lengths.at * 8);
        for (i, (shared, piece)) in lengths.iter().enumerate().take(wanted + 1) {
            if reaching >> i & 1 == 1 {
                if shared > end {
                    return Err(corrupt("a value shares more than the value before it has"));
                }
                end = match &context.pieces {
                    Pieces::Packed(alphabet) => {
                        alphabet.unpack(&self.data, at, piece, rest, shared).or_corrupt("a value has no room")?
                    }
                    Pieces::Compressed(table) => {
                        table.decode(&self.data, at, piece, rest, shared).or_corrupt("a code has no symbol")?
                    }
                    Pieces::Plain => {
                        rest[shared..shared + piece].copy_from_slice(self.bytes(at, piece)?);
                        shared + piece
                    }
                };
            }
            at += piece * context.pieces.bits();
        }
        out.truncate(self.common.len() + end);
        if out.len() > context.longest {
            return Err(corrupt("a value is longer than the dictionary says"));
        }
        Ok(())
    }

    /// Decodes all keys.
    pub(super) fn decode(&self, context: &Context, out: &mut Scratch) -> Result<()> {
        out.clear();
        let (common, bits) = (self.common.len(), context.pieces.bits());
        let mut before = 0..0;
        for bucket in 0..self.starts.len() {
            let lengths = self.lengths(bucket)?;
            let mut at = lengths.at * 8;
            let count = BUCKET.min(self.len - bucket * BUCKET);
            for (i, (shared, piece)) in lengths.iter().enumerate().take(count) {
                let start = out.used();
                let shared = if i == 0 {
                    out.literal(&self.common, 0, common);
                    common
                } else {
                    let shared = shared.saturating_add(common);
                    if shared > before.len() {
                        return Err(corrupt("a value shares more than the value before it has"));
                    }
                    out.repeat(before.start, shared);
                    shared
                };
                match &context.pieces {
                    Pieces::Plain => out.literal(&self.data, at / 8, piece),
                    Pieces::Packed(alphabet) => out.unpack(alphabet, &self.data, at, piece)?,
                    Pieces::Compressed(table) => out.decompress(table, &self.data, at, piece)?,
                }
                at += piece * bits;
                let this = start..out.used();
                if this.len() > context.longest || this.end > self.decoded {
                    return Err(corrupt("a value is longer than the dictionary says"));
                }
                if bucket + i > 0 && !out.ascends(before, this.clone(), shared) {
                    return Err(corrupt("values are not in order"));
                }
                out.end_value();
                before = this;
            }
        }
        if out.used() != self.decoded {
            return Err(corrupt("a block decodes to fewer bytes than it says"));
        }
        Ok(())
    }
}

/// A key, past the common prefix, as the pieces it is compared with are.
enum Wanted<'a> {
    Plain(&'a [u8]),
    Packed(&'a super::alphabet::Alphabet, Query<'a>),
    Compressed(&'a Table, &'a [u8]),
}

impl Wanted<'_> {
    /// As the blocks' prefixes are.
    #[inline]
    fn prefix(&self) -> u64 {
        match self {
            Self::Plain(key) | Self::Compressed(_, key) => prefix8(key),
            Self::Packed(_, query) => query.word,
        }
    }

    /// Whether a key that is equal is the one that was asked for.
    #[inline]
    fn is_exact(&self) -> bool {
        match self {
            Self::Plain(_) | Self::Compressed(..) => true,
            Self::Packed(_, query) => query.is_exact(),
        }
    }
}

/// How a piece compares with a key, while its bytes come a few at a time.
struct Compared {
    shared: usize,
    order: Ordering,
}

impl Default for Compared {
    fn default() -> Self {
        Self { shared: 0, order: Ordering::Equal }
    }
}

impl Compared {
    /// Goes on with the next bytes; says whether those after them matter.
    #[inline]
    fn with(&mut self, bytes: &[u8], key: &[u8]) -> bool {
        let rest = &key[self.shared..];
        let same = common_prefix(bytes, rest);
        self.shared += same;
        if same < bytes.len() {
            self.order = bytes[same..].first().cmp(&rest[same..].first());
        }
        self.order.is_eq()
    }

    /// What it came to when there are no more bytes: the order, and how many bytes are shared.
    fn end(self, key: &[u8]) -> (Ordering, usize) {
        let shorter = self.order.is_eq() && self.shared < key.len();
        (if shorter { Ordering::Less } else { self.order }, self.shared)
    }
}
