//! A tree by the width of its keys.
//!
//! Key bytes of one fixed width of at most 16 are a number, whose trees are smaller and faster; all others stay bytes.

use std::ops::Bound;
use std::sync::Arc;

use plinth_index::{Bytes, Index, MemoryPages, Options, PageFile, Pool, Verified};

use super::screen::Screen;
use crate::error::Result;
use crate::key::hash;

/// Keys from one on, up to another and without it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    from: Vec<u8>,
    /// None: to the last.
    to: Option<Vec<u8>>,
    /// The hash of the one key that it can have, if it is only one.
    only: Option<u64>,
}

impl Span {
    /// From a key on, up to another if there is one.
    pub(crate) fn new(from: Vec<u8>, to: Option<Vec<u8>>) -> Self {
        let one = to.as_ref().and_then(|to| to.strip_prefix(from.as_slice())).is_some_and(|more| more == [0]);
        let only = one.then(|| hash(&from));
        Self { from, to, only }
    }

    /// All keys.
    pub(crate) fn all() -> Self {
        Self::new(Vec::new(), None)
    }

    /// One key.
    pub(crate) fn one(key: &[u8]) -> Self {
        Self::new(key.to_vec(), Some(just_above(key)))
    }

    /// Whether a key is among them.
    pub(crate) fn contains(&self, key: &[u8]) -> bool {
        key >= self.from.as_slice() && self.to.as_deref().is_none_or(|to| key < to)
    }
}

/// The least key that is greater.
pub(crate) fn just_above(key: &[u8]) -> Vec<u8> {
    let mut above = Vec::with_capacity(key.len() + 1);
    above.extend_from_slice(key);
    above.push(0);
    above
}

/// Entries of an index: keys and their rows, deleted ones too.
#[derive(Debug)]
pub(crate) struct Tree {
    /// Bytes of each key; those of `Kind::Bytes` are of any length.
    width: usize,
    kind: Kind,
    /// Which keys are not there, if its file says so.
    screen: Option<Arc<Screen>>,
}

#[derive(Debug)]
enum Kind {
    Half(Index<i32, false>),
    Word(Index<u64, false>),
    Double(Index<u128, false>),
    Bytes(Index<Bytes, false>),
}

/// The same of each kind of tree.
macro_rules! of_each {
    ($kind:expr, $index:ident => $what:expr) => {
        match $kind {
            Kind::Half($index) => $what,
            Kind::Word($index) => $what,
            Kind::Double($index) => $what,
            Kind::Bytes($index) => $what,
        }
    };
}

/// Bytes of a fixed number, zeros behind what there is.
fn padded<const W: usize>(key: &[u8]) -> [u8; W] {
    let mut whole = [0; W];
    whole.iter_mut().zip(key).for_each(|(to, from)| *to = *from);
    whole
}

/// The sign bit is turned, so that the order stays.
fn half(key: &[u8]) -> i32 {
    (u32::from_be_bytes(padded(key)) ^ 1 << 31).cast_signed()
}

fn half_bytes(key: i32) -> [u8; 4] {
    (key.cast_unsigned() ^ 1 << 31).to_be_bytes()
}

fn word(key: &[u8]) -> u64 {
    u64::from_be_bytes(padded(key))
}

fn double(key: &[u8]) -> u128 {
    u128::from_be_bytes(padded(key))
}

impl Tree {
    /// An empty one in memory, for keys of a width, if they have one.
    pub(crate) fn in_memory(pool: &Arc<Pool>, width: Option<usize>, name: &str) -> Result<Self> {
        Self::create(pool, width, MemoryPages::new(name))
    }

    pub(crate) fn create(pool: &Arc<Pool>, width: Option<usize>, file: impl PageFile) -> Result<Self> {
        let options = Options::default();
        let kind = match width {
            Some(..=4) => Kind::Half(Index::create(pool, file, options)?),
            Some(..=8) => Kind::Word(Index::create(pool, file, options)?),
            Some(..=16) => Kind::Double(Index::create(pool, file, options)?),
            _ => Kind::Bytes(Index::create(pool, file, options)?),
        };
        Ok(Self { width: width.unwrap_or(0), kind, screen: None })
    }

    /// One that is complete.
    pub(crate) fn open(pool: &Arc<Pool>, width: Option<usize>, file: impl PageFile) -> Result<Self> {
        let kind = match width {
            Some(..=4) => Kind::Half(Index::open(pool, file)?),
            Some(..=8) => Kind::Word(Index::open(pool, file)?),
            Some(..=16) => Kind::Double(Index::open(pool, file)?),
            _ => Kind::Bytes(Index::open(pool, file)?),
        };
        Ok(Self { width: width.unwrap_or(0), kind, screen: None })
    }

    /// With what its file says of keys that are not there.
    pub(crate) fn screened(self, screen: Arc<Screen>) -> Self {
        Self { screen: Some(screen), ..self }
    }

    /// What its file says of keys that are not there.
    pub(crate) fn screen(&self) -> Option<&Screen> {
        self.screen.as_deref()
    }

    pub(crate) fn len(&self) -> u64 {
        of_each!(&self.kind, index => index.len())
    }

    /// What was given to the last checkpoint.
    pub(crate) fn position(&self) -> u64 {
        of_each!(&self.kind, index => index.position())
    }

    pub(crate) fn checkpoint(&self, position: u64) -> Result<()> {
        Ok(of_each!(&self.kind, index => index.checkpoint(position))?)
    }

    /// Checks every page as it lies on storage.
    pub(crate) fn verify(&self) -> Result<Verified> {
        Ok(of_each!(&self.kind, index => index.verify())?)
    }

    pub(crate) fn insert(&self, key: &[u8], row: u32) -> Result<()> {
        let row = u64::from(row);
        match &self.kind {
            Kind::Half(index) => index.insert(half(key), row)?,
            Kind::Word(index) => index.insert(word(key), row)?,
            Kind::Double(index) => index.insert(double(key), row)?,
            Kind::Bytes(index) => index.insert(key, row)?,
        };
        Ok(())
    }

    /// Adds entries that ascend and are above all there are.
    pub(crate) fn append<'k>(&self, entries: impl Iterator<Item = (&'k [u8], u32)>) -> Result<()> {
        /// The entries with their keys as a kind of trees has them.
        macro_rules! of {
            ($key:expr) => {
                entries.map(|(key, row)| plinth_index::Result::<_>::Ok(($key(key), u64::from(row))))
            };
        }
        match &self.kind {
            Kind::Half(index) => index.append(of!(half))?,
            Kind::Word(index) => index.append(of!(word))?,
            Kind::Double(index) => index.append(of!(double))?,
            Kind::Bytes(index) => index.append(of!(<[u8]>::to_vec))?,
        }
        Ok(())
    }

    /// Where a span begins and ends among numbers: bytes that are shorter than keys stand before all that they begin, longer
    /// ones behind what they begin with.
    fn bounds<K>(&self, span: &Span, number: impl Fn(&[u8]) -> K) -> (Bound<K>, Bound<K>) {
        let from = match number(&span.from) {
            key if span.from.len() > self.width => Bound::Excluded(key),
            key => Bound::Included(key),
        };
        let to = match &span.to {
            None => Bound::Unbounded,
            Some(to) if to.len() > self.width => Bound::Included(number(to)),
            Some(to) => Bound::Excluded(number(to)),
        };
        (from, to)
    }

    /// Shows the entries of a span, in order, until `each` says that it is enough.
    pub(crate) fn entries(&self, span: &Span, each: impl FnMut(&[u8], u32) -> Result<bool>) -> Result<()> {
        self.walk(span, false, each)
    }

    /// The same from the last to the first: of a key the newest row comes first.
    pub(crate) fn entries_back(&self, span: &Span, each: impl FnMut(&[u8], u32) -> Result<bool>) -> Result<()> {
        self.walk(span, true, each)
    }

    fn walk(&self, span: &Span, back: bool, mut each: impl FnMut(&[u8], u32) -> Result<bool>) -> Result<()> {
        let absent = |hash| self.screen.as_ref().is_some_and(|screen| !screen.may_have(hash));
        if span.to.as_ref().is_some_and(|to| *to <= span.from) || span.only.is_some_and(absent) {
            return Ok(());
        }
        let mut show = |key: &[u8], row: u64| each(key, u32::try_from(row).unwrap_or(u32::MAX));
        let width = self.width;
        /// Until it is enough.
        macro_rules! walk {
            ($index:ident, $number:ident, $whole:expr) => {{
                let bounds = self.bounds(span, |key| $number(key.get(..width).unwrap_or(key)));
                let range = if back { $index.range_back(bounds) } else { $index.range(bounds) };
                for entry in range {
                    let (key, row) = entry?;
                    if !show($whole(key).get(..width).unwrap_or_default(), row)? {
                        break;
                    }
                }
            }};
        }
        match &self.kind {
            Kind::Half(index) => walk!(index, half, half_bytes),
            Kind::Word(index) => walk!(index, word, u64::to_be_bytes),
            Kind::Double(index) => walk!(index, double, u128::to_be_bytes),
            Kind::Bytes(index) => {
                let from = Bound::Included(span.from.as_slice());
                let to = span.to.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
                let range = if back { index.range_back((from, to)) } else { index.range((from, to)) };
                for entry in range {
                    let (key, row) = entry?;
                    if !show(&key, row)? {
                        break;
                    }
                }
            }
        }
        Ok(())
    }
}
