//! Small enough to run where every access is checked (`cargo xtask miri`); `tests/suite` has the large ones.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use plinth_io::{IoError, MemoryBudget};

use crate::page::{HEADER, Page};
use crate::pool::frame::Writing;
use crate::{Bytes, Image, Index, IndexError, MemoryPages, Options, PageFile, Pool};
use plinth_core::random::trials;

fn pool(pages: u64) -> Arc<Pool> {
    Pool::new(&MemoryBudget::new(1 << 30), pages * 4200).unwrap()
}

#[test]
fn threads_share_few_pages() {
    let index: Index<i64> = Index::create(&pool(6), MemoryPages::new("few"), Options::default()).unwrap();
    let most = trials("PLINTH_INDEX_OPS", 4000);
    std::thread::scope(|scope| {
        for thread in 0..2_u64 {
            let index = &index;
            scope.spawn(move || {
                for i in 0..most {
                    let n = (i * 7919 + thread) % most * 2 + thread;
                    let key = i64::try_from(n).unwrap();
                    index.insert(key, n).unwrap();
                    assert_eq!(index.get(key).unwrap(), Some(n));
                    if i % 3 == 0 {
                        assert!(index.remove(key, n).unwrap());
                    }
                    if i % 50 == 0 {
                        index.checkpoint(i).unwrap();
                    }
                }
            });
        }
    });
    let found: Vec<(i64, u64)> = index.range(..).collect::<Result<_, _>>().unwrap();
    assert!(found.iter().all(|(key, row)| u64::try_from(*key).unwrap() == *row));
    assert_eq!(found.len() as u64, index.len());
}

#[test]
fn strings_of_all_lengths() {
    let index: Index<Bytes> = Index::create(&pool(40), MemoryPages::new("strings"), Options::default()).unwrap();
    let mut model = BTreeMap::new();
    for i in 0..trials("PLINTH_INDEX_OPS", 4000).min(500) {
        let len = usize::try_from(i * i * 31 % 2500).unwrap();
        let key: Vec<u8> = format!("{:03}", i % 200).into_bytes().into_iter().chain(vec![b'x'; len]).collect();
        assert_eq!(index.insert(&key, i).unwrap(), model.get(&key).copied());
        model.entry(key).or_insert(i);
    }
    let found: Vec<(Vec<u8>, u64)> = index.range_back(..).collect::<Result<_, _>>().unwrap();
    assert_eq!(found, model.into_iter().rev().collect::<Vec<_>>());
    index.checkpoint(1).unwrap();
    index.verify().unwrap();
}

#[test]
fn an_anchor_is_never_written() {
    let index: Index<i64> = Index::create(&pool(40), MemoryPages::new("anchor"), Options::default()).unwrap();
    let anchor = index.anchor().unwrap();
    let (writes, bytes) = (index.pool.counters().writes, index.file_bytes());
    Writing::begin(anchor).dirty();
    assert!(!index.pool.clean(anchor, index.owner, &index.store).unwrap());
    assert_eq!((index.pool.counters().writes, index.file_bytes()), (writes, bytes));
}

#[test]
fn a_damaged_page_is_not_written() {
    let index: Index<Bytes> = Index::create(&pool(40), MemoryPages::new("damaged"), Options::default()).unwrap();
    (0..20).for_each(|i| assert_eq!(index.insert(format!("key {i}").as_bytes(), i).unwrap(), None));
    index.checkpoint(1).unwrap();
    let harms: [fn(Page<'_>); 5] = [
        |page| page.set(2, 5),
        |page| page.set(2, page.get(2) + 1),
        |page| page.set_count(page.count() + 1),
        |page| page.set(HEADER, page.get(HEADER) | 0xffff),
        |page| page.set(1, page.get(1) ^ 1 << 24),
    ];
    for (i, harm) in harms.into_iter().enumerate() {
        let root = index.pool.child(index.anchor().unwrap().page.get(HEADER)).unwrap();
        let before: Vec<u64> = (0..root.page.len()).map(|at| root.page.get(at)).collect();
        let writing = Writing::begin(root);
        harm(root.page);
        writing.dirty();
        drop(writing);
        let error = index.checkpoint(2).unwrap_err();
        assert!(matches!(error, IndexError::Internal { .. }), "{i}: {error}");
        assert_eq!(index.verify().unwrap().entries, 20, "{i}: what was written before is there");
        let writing = Writing::begin(root);
        (0..).zip(before).for_each(|(at, word)| root.page.set(at, word));
        drop(writing);
        index.checkpoint(3).unwrap();
        assert_eq!(index.verify().unwrap().entries, 20);
    }
}

type Act = Box<dyn FnOnce() + Send>;

/// A file that does something once, when it is told to sync.
#[derive(Clone)]
struct Watched {
    pages: Arc<MemoryPages>,
    on_sync: Arc<Mutex<Option<Act>>>,
}

impl std::fmt::Debug for Watched {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.pages.fmt(f)
    }
}

impl PageFile for Watched {
    fn name(&self) -> &str {
        self.pages.name()
    }
    fn len(&self) -> Result<u64, IoError> {
        self.pages.len()
    }
    fn read(&self, offset: u64, image: &mut Image) -> Result<(), IoError> {
        self.pages.read(offset, image)
    }
    fn write(&self, offset: u64, image: &Image) -> Result<(), IoError> {
        self.pages.write(offset, image)
    }
    fn sync(&self) -> Result<(), IoError> {
        let act = self.on_sync.lock().unwrap().take();
        act.map_or(Ok(()), |act| {
            act();
            Ok(())
        })
    }
}

/// A page may become dirty without a change: by who still takes its frame for another page's, or because of a child that
/// left. If it is written then, between a checkpoint's last write of a page and its switch, the checkpoint does not know.
#[test]
fn a_page_is_written_while_a_checkpoint_switches() {
    let file = Watched { pages: Arc::new(MemoryPages::new("watched")), on_sync: Arc::default() };
    let index: Arc<Index<i64>> = Arc::new(Index::create(&pool(100), file.clone(), Options::default()).unwrap());
    // More than a leaf holds, and not much more where every access is checked.
    let keys = if cfg!(miri) { 300 } else { 600 };
    for key in 0..keys {
        index.insert(key, 0).unwrap();
    }
    index.checkpoint(1).unwrap();
    index.insert(keys, 0).unwrap();
    let late = Arc::downgrade(&index);
    *file.on_sync.lock().unwrap() = Some(Box::new(move || {
        let index = late.upgrade().unwrap();
        let root = index.pool.child(index.anchor().unwrap().page.get(HEADER)).unwrap();
        assert_eq!(root.page.level(), 1);
        for entry in [0, root.page.count() - 1] {
            let leaf = index.pool.child(root.page.value(entry)).unwrap();
            Writing::begin(leaf).dirty();
            assert!(index.pool.clean(leaf, index.owner, &index.store).unwrap());
        }
        Writing::begin(root).dirty();
        assert!(index.pool.clean(root, index.owner, &index.store).unwrap());
    }));
    index.checkpoint(2).unwrap();
    assert!(file.on_sync.lock().unwrap().is_none());
    // All that may be written to is.
    for key in keys + 1..keys * 2 {
        index.insert(key, 0).unwrap();
    }
    index.flush(index.anchor().unwrap(), false).unwrap();
    let left: Index<i64> = Index::open(&pool(100), file.clone()).unwrap();
    left.verify().unwrap();
    assert_eq!((left.position(), left.len()), (2, keys.cast_unsigned() + 1));
    // And none of it is lost for ever.
    index.checkpoint(3).unwrap();
    index.checkpoint(4).unwrap();
    let pages = index.verify().unwrap().pages;
    let free = index.store.free_units();
    assert_eq!(free + pages + 2, index.file_bytes() / 4096);
}
