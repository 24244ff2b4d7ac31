//! The ends of objects, which are read in the place of asking whether they are there.
//!
//! The footer of a Plinth file is at its end, and the answer that brings it tells the object's length and version as well: a
//! file is opened by one request.

use std::collections::{HashSet, VecDeque};
use std::sync::Mutex;

use bytes::Bytes;
use object_store::path::Path as Location;
use object_store::{GetOptions, GetRange, ObjectMeta, ObjectStore};
use plinth_core::sync::lock;
use plinth_io::Object;

use crate::url::ObjectUrl;

/// Bytes of an end: as many as hold the metadata of a file of 100 MB, and come sooner than the answer to a further request.
pub(crate) const END: u64 = 1 << 20;

/// Ends that wait for their objects to be opened.
const WAITING: usize = 4;

/// Names whose ends were read, at most: of one that is looked for once more only its version is wanted.
const NAMES: usize = 4096;

/// Ends of objects that were found and not opened yet.
#[derive(Debug, Default)]
pub(crate) struct Ends(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<(Object, Bytes)>,
    seen: HashSet<String>,
}

impl Ends {
    /// Whether the end of an object is worth reading with the answer that it is there.
    pub(crate) fn wants(&self, url: &ObjectUrl) -> bool {
        let is_file = std::path::Path::new(&url.key).extension().is_some_and(|end| end.eq_ignore_ascii_case("plinth"));
        is_file && !lock(&self.0).seen.contains(&url.to_string())
    }

    /// Keeps an end until the object is opened.
    pub(crate) fn keep(&self, object: &Object, end: Bytes) {
        let mut state = lock(&self.0);
        if state.seen.len() >= NAMES {
            state.seen.clear();
        }
        state.seen.insert(object.url.clone());
        if state.waiting.len() >= WAITING {
            state.waiting.pop_front();
        }
        state.waiting.push_back((object.clone(), end));
    }

    /// The end of an object that is opened now.
    pub(crate) fn take(&self, object: &Object) -> Option<Bytes> {
        let mut state = lock(&self.0);
        let at = state.waiting.iter().position(|(known, _)| known == object)?;
        state.waiting.remove(at).map(|(_, end)| end)
    }
}

/// What a store says of an object, and its end. None where the store can't be asked so, or refuses: then it says why when it
/// is asked for the object alone.
pub(crate) async fn read(client: &dyn ObjectStore, location: &Location) -> Option<(ObjectMeta, Bytes)> {
    let options = GetOptions { range: Some(GetRange::Suffix(END)), ..GetOptions::default() };
    let got = client.get_opts(location, options).await.ok()?;
    let (meta, range) = (got.meta.clone(), got.range.clone());
    let end = got.bytes().await.ok()?;
    (range.end == meta.size && range.end - range.start == end.len() as u64).then_some((meta, end))
}
