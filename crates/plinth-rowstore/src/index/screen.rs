//! A screen: the [filter](crate::filter) of a tree's keys, which stands in its file behind the pages.
//!
//! A value that is looked for is in few of a table's segments, and going down each one's tree costs a page a level. The filter
//! says of nearly all others that they do not have it, by one line of memory. It is read when it is asked, if nothing else has to
//! go for it, and given back when others need its memory. Without one, or with one that is damaged, the tree is asked.

use std::ops::Range;
use std::sync::{Arc, OnceLock, RwLock, Weak};

use arrow_buffer::Buffer;
use plinth_core::sync::read;
use plinth_core::wire::checksum;
use plinth_io::{MemoryBudget, Reclaim, Reservation, Source};

use crate::error::Result;
use crate::filter::Filter;
use crate::key::hash;

/// What a file with a filter ends with, behind the number of the filter's bytes and the checksum of all before this.
const MAGIC: [u8; 8] = *b"PLINTHFL";

/// Bytes behind the filter.
const TAIL: u64 = 24;

/// The filter of a tree that is built.
pub(crate) struct NewFilter(Option<(Filter, Reservation)>);

/// What a file ends with.
pub(crate) struct Ending {
    pub(crate) bytes: Vec<u8>,
    _memory: Reservation,
}

impl NewFilter {
    /// For so many entries; none if there is no memory for it.
    pub(crate) fn new(budget: &Arc<MemoryBudget>, entries: u64) -> Self {
        let entries = usize::try_from(entries).unwrap_or(usize::MAX);
        // Once as a filter and once as bytes.
        let bytes = Filter::bytes_for_entries(entries).saturating_mul(2).saturating_add(TAIL);
        let memory = budget.reserve("filter of an index that is built", bytes);
        Self(memory.ok().map(|memory| (Filter::for_entries(entries), memory)))
    }

    /// No filter.
    pub(crate) fn none() -> Self {
        Self(None)
    }

    pub(crate) fn insert(&mut self, key: &[u8]) {
        if let Self(Some((filter, _))) = self {
            filter.insert(hash(key));
        }
    }

    /// The filter's words, bytes of them, a checksum, a magic. `identity` is what the tree's position says.
    pub(crate) fn finish(self, identity: u64) -> Option<Ending> {
        let (filter, memory) = self.0?;
        let filter = filter.folded();
        let mut bytes = Vec::new();
        filter.write(&mut bytes);
        bytes.extend_from_slice(&filter.bytes().to_le_bytes());
        bytes.extend_from_slice(&seal(&bytes, identity).to_le_bytes());
        bytes.extend_from_slice(&MAGIC);
        Some(Ending { bytes, _memory: memory })
    }
}

/// The checksum of a filter's words and of how many there are, of the tree that it belongs to.
fn seal(bytes: &[u8], identity: u64) -> u64 {
    checksum(bytes) ^ identity
}

/// Which keys a tree does not have.
#[derive(Debug)]
pub(crate) struct Screen {
    source: Arc<dyn Source>,
    identity: u64,
    budget: Arc<MemoryBudget>,
    /// Bytes of the filter, once the file's end was read; none if it has no filter.
    bytes: OnceLock<Option<u64>>,
    state: RwLock<State>,
}

#[derive(Debug)]
enum State {
    /// Not in memory.
    Away,
    /// Damaged.
    Useless,
    Here {
        filter: Filter,
        memory: Reservation,
    },
}

/// What a file says behind its pages.
pub(crate) enum Told {
    /// Nothing.
    Nothing,
    /// Something that was not written so.
    Damaged,
    Filter(Filter),
}

impl Screen {
    /// The one of a file, whose filter takes memory of a budget's part and gives it back to the `whole`.
    pub(crate) fn new(
        source: Arc<dyn Source>,
        identity: u64,
        part: &Arc<MemoryBudget>,
        whole: &MemoryBudget,
    ) -> Arc<Self> {
        let (bytes, state) = (OnceLock::new(), RwLock::new(State::Away));
        let screen = Arc::new(Self { source, identity, budget: Arc::clone(part), bytes, state });
        let weak: Weak<Self> = Arc::downgrade(&screen);
        whole.register(weak);
        screen
    }

    /// Whether a key of this hash may be in the tree.
    pub(crate) fn may_have(&self, hash: u64) -> bool {
        match &*read(&self.state) {
            State::Here { filter, .. } => return filter.may_have(hash),
            State::Useless => return true,
            State::Away => {}
        }
        // An error of the device is the tree's to tell.
        let bytes = self.bytes.get_or_init(|| self.filter_bytes().ok().flatten());
        let fits = |bytes: u64| self.budget.left() >= bytes.saturating_mul(2);
        bytes.is_none_or(|bytes| !fits(bytes) || self.load(bytes, hash))
    }

    /// Reads the filter and asks it, unless another thread does.
    fn load(&self, bytes: u64, hash: u64) -> bool {
        let Ok(mut state) = self.state.try_write() else { return true };
        if matches!(*state, State::Away) {
            // Once as bytes and once as a filter.
            let Ok(mut memory) = self.budget.reserve("filters of indexes", bytes * 2) else { return true };
            *state = match self.read() {
                Ok(Told::Filter(filter)) => {
                    memory.shrink(bytes);
                    State::Here { filter, memory }
                }
                Ok(Told::Nothing | Told::Damaged) => State::Useless,
                Err(_) => State::Away,
            };
        }
        if let State::Here { filter, .. } = &*state { filter.may_have(hash) } else { true }
    }

    /// Bytes of the filter, if the file's end says that there is one.
    fn filter_bytes(&self) -> Result<Option<u64>> {
        let len = self.source.byte_len();
        let Some(tail) = len.checked_sub(TAIL) else { return Ok(None) };
        let tail = self.bytes(tail..len)?;
        let (words, _) = tail.as_chunks::<8>();
        let [bytes, _, magic] = words else { return Ok(None) };
        Ok((*magic == MAGIC).then(|| u64::from_le_bytes(*bytes)).filter(|&bytes| bytes <= len - TAIL))
    }

    /// What the file says, as it lies there.
    ///
    /// # Errors
    /// If it can't be read.
    pub(crate) fn read(&self) -> Result<Told> {
        let Some(bytes) = self.filter_bytes()? else { return Ok(Told::Nothing) };
        let tail = self.source.byte_len() - TAIL;
        // With the number of bytes and the checksum.
        let whole = self.bytes(tail - bytes..tail + 16)?;
        let Some((rest, sealed)) = whole.split_last_chunk::<8>() else { return Ok(Told::Damaged) };
        let words = rest.split_last_chunk::<8>().map_or(rest, |(words, _)| words);
        let filter = Filter::read(words).filter(|_| u64::from_le_bytes(*sealed) == seal(rest, self.identity));
        Ok(filter.map_or(Told::Damaged, Told::Filter))
    }

    fn bytes(&self, range: Range<u64>) -> Result<Buffer> {
        Ok(self.source.read(std::slice::from_ref(&range))?.pop().unwrap_or_default())
    }
}

impl Reclaim for Screen {
    fn reclaim(&self, _: u64) -> u64 {
        let Ok(mut state) = self.state.try_write() else { return 0 };
        let State::Here { memory, .. } = &*state else { return 0 };
        let bytes = memory.bytes();
        *state = State::Away;
        bytes
    }
}

#[cfg(test)]
mod tests {
    use plinth_io::MemorySource;

    use super::*;

    const IDENTITY: u64 = 0x1234_5678_9abc_def0;

    fn file(keys: u64) -> Vec<u8> {
        let budget = MemoryBudget::new(1 << 20);
        let mut filter = NewFilter::new(&budget, keys);
        (0..keys).for_each(|key| filter.insert(&key.to_be_bytes()));
        let mut file = vec![7; 4096];
        file.extend(filter.finish(IDENTITY).unwrap().bytes);
        file
    }

    fn screen(file: &[u8], identity: u64, budget: u64) -> Arc<Screen> {
        let budget = MemoryBudget::new(budget);
        Screen::new(Arc::new(MemorySource::new("a tree", file)), identity, &budget, &budget)
    }

    fn kept(screen: &Screen, keys: Range<u64>) -> usize {
        keys.filter(|key| screen.may_have(hash(&key.to_be_bytes()))).count()
    }

    #[test]
    fn a_screen_lets_through_what_is_there_and_little_else() {
        let file = file(1_000);
        let found = screen(&file, IDENTITY, 1 << 20);
        assert_eq!(kept(&found, 0..1_000), 1_000);
        assert!(kept(&found, 1_000..11_000) < 200, "{}", kept(&found, 1_000..11_000));
        // Without memory for it, without one, and with another tree's, all goes through.
        for screen in
            [screen(&file, IDENTITY, 100), screen(&file[..4096], IDENTITY, 1 << 20), screen(&file, 1, 1 << 20)]
        {
            assert_eq!(kept(&screen, 1_000..2_000), 1_000);
        }
        // It goes when others need the memory, and comes again.
        let used = found.budget.used();
        assert!(used > 1_000 && found.reclaim(1) == used && found.budget.used() == 0 && found.reclaim(1) == 0);
        assert_eq!(kept(&found, 0..1_000), 1_000);
        assert_eq!(found.budget.used(), used);
        assert!(NewFilter::new(&MemoryBudget::new(100), 1_000).finish(IDENTITY).is_none());
        assert!(NewFilter::none().finish(IDENTITY).is_none());
    }

    #[test]
    fn a_damaged_filter_lets_all_through() {
        let good = file(300);
        for at in 4096..good.len() {
            for flip in [1, 0x10, 0xff] {
                let mut bad = good.clone();
                bad[at] ^= flip;
                let screen = screen(&bad, IDENTITY, 1 << 20);
                assert!(!matches!(screen.read(), Ok(Told::Filter(_)) | Err(_)), "{at}");
                assert_eq!(kept(&screen, 0..1_000), 1_000, "{at}");
            }
        }
        for len in 0..good.len() {
            assert_eq!(kept(&screen(&good[..len], IDENTITY, 1 << 20), 0..1_000), 1_000, "{len}");
        }
    }
}
