//! Looking at all pages: which there are, and whether they are a tree.

use std::cmp::Ordering;
use std::sync::atomic::AtomicU64;

use super::{Index, descend};
use crate::error::Result;
use crate::node::{Key, Nodes};
use crate::page::{Image, Page, Swip, words_of};
use crate::pool::Policy;
use crate::store::Store;

/// What [`Index::verify`] found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// Entries.
    pub entries: u64,
    /// Pages.
    pub pages: u64,
    /// Bytes of the pages.
    pub bytes: u64,
    /// Levels, the leaves' included.
    pub levels: u8,
}

/// Words to look at an image as a page.
fn words(class: usize) -> Vec<AtomicU64> {
    (0..words_of(class)).map(|_| AtomicU64::new(0)).collect()
}

/// Reads a page and checks it on its own.
fn load<K: Key, const U: bool>(store: &Store, home: Swip, above: u8) -> Result<Vec<AtomicU64>> {
    let mut image: Image = store.image(home.class());
    if !store.read(home, &mut image)? {
        return Err(store.corrupt(home.number(), "its checksum is wrong"));
    }
    let words = words(home.class());
    Page::new(&words).fill(&image);
    store.recycle(image);
    descend::check::<K, U>(Page::new(&words), above).map_err(|what| store.corrupt(home.number(), what))?;
    Ok(words)
}

/// Finds the places that a tree on storage uses, by its inner nodes, and tells the store.
pub(crate) fn find_used<K: Key, const U: bool>(store: &Store, root: Swip, level: u8) -> Result<()> {
    let mut used = vec![(root.number(), root.class())];
    let mut waiting = if level > 0 { vec![(root, level)] } else { Vec::new() };
    while let Some((home, level)) = waiting.pop() {
        let words = load::<K, U>(store, home, level + 1)?;
        let page = Page::new(&words);
        for entry in 0..page.count() {
            let child = Swip(page.value(entry));
            used.push((child.number(), child.class()));
            if level > 1 {
                waiting.push((child, level - 1));
            }
        }
    }
    store.set_used(used)
}

impl<K: Key, const U: bool, P: Policy> Index<K, U, P> {
    /// Checks the last checkpoint as it lies on storage: every checksum, that all leaves are equally far from the root, that
    /// every node holds only keys between those its parent divides it by, and that there are as many entries as it says. What
    /// changed since is not looked at. No thread changes the index meanwhile.
    ///
    /// # Errors
    /// That names the first damaged page.
    pub fn verify(&self) -> Result<Verified> {
        let _sequence = self.sequence();
        let _closed = self.gate.close();
        let meta = self.store.newest()?;
        let mut found = Verified { levels: meta.level + 1, ..Verified::default() };
        self.verify_below(meta.root, meta.level + 1, None, None, &mut found)?;
        if found.entries != meta.entries {
            let what = format!("the index has {} entries and says {}", found.entries, meta.entries);
            return Err(self.store.corrupt(meta.sequence % 2, what));
        }
        Ok(found)
    }

    fn verify_below(
        &self,
        home: Swip,
        above: u8,
        from: Option<&(K::Owned, u64)>,
        to: Option<&(K::Owned, u64)>,
        found: &mut Verified,
    ) -> Result<()> {
        let words = load::<K, U>(&self.store, home, above)?;
        let page = Page::new(&words);
        found.pages += 1;
        found.bytes += size_of_val(&*words) as u64;
        let inner = page.level() > 0;
        let entry = |at: usize| (K::key(page, at), <K as Nodes>::row::<U>(page, at));
        let below = |a: &(K::Owned, u64), b: &(K::Owned, u64)| {
            K::compare::<U>((K::borrow(&a.0), a.1), (K::borrow(&b.0), b.1)) == Ordering::Less
        };
        let first = usize::from(inner);
        if first < page.count() {
            let (lowest, highest) = (entry(first), entry(page.count() - 1));
            if from.is_some_and(|from| below(&lowest, from)) || to.is_some_and(|to| !below(&highest, to)) {
                return Err(self.store.corrupt(home.number(), "it holds keys that belong to its neighbours"));
            }
        }
        if !inner {
            found.entries += page.count() as u64;
            return Ok(());
        }
        let divides: Vec<(K::Owned, u64)> = (1..page.count()).map(entry).collect();
        for at in 0..page.count() {
            let lower = at.checked_sub(1).and_then(|at| divides.get(at)).or(from);
            let upper = divides.get(at).or(to);
            self.verify_below(Swip(page.value(at)), page.level(), lower, upper, found)?;
        }
        Ok(())
    }
}
