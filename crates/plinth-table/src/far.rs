//! A table in an object store: its files below a prefix, in the order of its [manifest](crate::manifest).
//!
//! A prefix without a manifest is a table, too, of the files that are there by name: it gets a manifest when Plinth first adds
//! to it. From then on what others put beside does not count.

use std::collections::{BTreeSet, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use plinth_format::{FormatError, Result};
use plinth_io::objects::{is_pattern, is_url};
use plinth_io::{Object, Objects, Version};

use crate::EXTENSION;
use crate::listed::Listed;
use crate::manifest::{self, Entry, Manifest, second};
use crate::scratch::random;

/// How often a manifest is tried to be put in the place of another's, each time after the other was first.
const ATTEMPTS: u32 = 1000;

/// What replaced files may still be read for by those who began before.
const READ_ON: Duration = Duration::from_secs(15 * 60);

/// What a writer may take from its first byte to the manifest: older objects that no manifest names belong to writers that have ended.
const ABANDONED: Duration = Duration::from_secs(24 * 60 * 60);

/// A prefix of a store.
#[derive(Clone, Debug)]
pub(crate) struct FarFolder {
    /// Ends in `/`.
    url: String,
    stores: Arc<dyn Objects>,
}

impl FarFolder {
    /// The folder at a path, if that is the URL of one.
    pub(crate) fn of(path: &Path, stores: Option<&Arc<dyn Objects>>) -> Result<Option<Self>> {
        let Some(url) = path.to_str().filter(|_| is_url(path)) else { return Ok(None) };
        if is_pattern(url) {
            let what = format!("{url}: a pattern names files, not the folder of a table");
            return Err(FormatError::InvalidArgument(what));
        }
        if !url.ends_with('/') && path.extension().is_some_and(|end| end.eq_ignore_ascii_case(EXTENSION)) {
            let what = format!("{url}: is the name of a file; rows are added to a folder, such as {url}/");
            return Err(FormatError::InvalidArgument(what));
        }
        let stores = Arc::clone(plinth_io::objects::given(stores, path)?);
        Ok(Some(Self { url: format!("{}/", url.trim_end_matches('/')), stores }))
    }

    fn manifest_url(&self) -> String {
        format!("{}{}", self.url, manifest::NAME)
    }

    /// The manifest, and which one it is; None if there is none.
    fn manifest(&self) -> Result<Option<(Manifest, Version)>> {
        let url = self.manifest_url();
        let Some((bytes, version)) = self.stores.get(&url, manifest::LONGEST)? else { return Ok(None) };
        let manifest = std::str::from_utf8(&bytes).ok().and_then(Manifest::parse);
        let manifest = manifest.ok_or_else(|| FormatError::Corrupt {
            file: url,
            what: "not the manifest of a table, or one of a newer Plinth".into(),
        })?;
        Ok(Some((manifest, version)))
    }

    /// The files of a prefix that has no manifest.
    fn plain(&self) -> Result<Manifest> {
        let mut found = self.stores.find(&self.url)?;
        // Names that Plinth gives are of writers that have not come to the manifest yet.
        found.retain(|object| {
            let name = object.url.strip_prefix(&self.url).unwrap_or_default();
            let is_file = Path::new(name).extension().is_some_and(|end| end.eq_ignore_ascii_case(EXTENSION));
            is_file && !manifest::is_given(name)
        });
        let files = found.iter().map(|object| Entry::of(&self.url, object)).collect::<Result<_>>()?;
        Ok(Manifest { files, gone: Vec::new() })
    }

    /// The files of the table at one moment, in the order of their rows.
    pub(crate) fn list(&self) -> Result<Vec<Listed>> {
        let manifest = self.manifest()?.map_or_else(|| self.plain(), |(manifest, _)| Ok(manifest))?;
        Ok(self.listed(&manifest))
    }

    /// The name of a file of the table below the folder.
    pub(crate) fn name_of<'a>(&self, path: &'a Path) -> Option<&'a str> {
        path.to_str()?.strip_prefix(&self.url)
    }

    /// The files of a manifest.
    pub(crate) fn listed(&self, manifest: &Manifest) -> Vec<Listed> {
        manifest.files.iter().map(|file| file.listed(&self.url)).collect()
    }

    /// Sends a local file under a name of its own, which no reader sees before [`FarFolder::commit`].
    pub(crate) fn send(&self, file: &Path) -> Result<Entry> {
        let known = self.manifest()?.map_or_else(|| self.plain(), |(manifest, _)| Ok(manifest))?;
        let url = format!("{}{}", self.url, known.next_name(random()));
        self.stores.upload(file, &url, false)?;
        let found = self.stores.find(&url)?;
        let sent = found.first().ok_or_else(|| FormatError::internal("an object that was sent is not there"))?;
        Entry::of(&self.url, sent)
    }

    /// Takes a file back that was sent and is in no manifest.
    pub(crate) fn take_back(&self, sent: &Entry) {
        // What stays is an object that no manifest names, which a compaction removes.
        drop(self.stores.remove(&format!("{}{}", self.url, sent.name)));
    }

    /// Changes the manifest, after all other changes and before those that follow. `change` is asked again whenever another writer was first; a
    /// change that is already there is none.
    ///
    /// # Errors
    /// What `change` says; if the store does not answer or refuses.
    pub(crate) fn commit(&self, mut change: impl FnMut(&mut Manifest) -> Result<()>) -> Result<()> {
        let url = self.manifest_url();
        for attempt in 0..ATTEMPTS {
            let known = self.manifest()?;
            let before = known.as_ref().map_or_else(|| self.plain(), |(manifest, _)| Ok(manifest.clone()))?;
            let mut after = before.clone();
            change(&mut after)?;
            if known.is_some() && after == before {
                return Ok(());
            }
            let version = known.as_ref().map(|(_, version)| version);
            if self.stores.put_if(&url, after.text().into_bytes(), version)?.is_some() {
                return Ok(());
            }
            // Those who were refused together do not come back together.
            let most = 1 + 2 * u64::from(attempt.min(50));
            std::thread::sleep(Duration::from_millis(u64::from(random()) % most));
        }
        let what = format!("{}: is changed by others all the time; try again", self.url);
        Err(FormatError::InvalidArgument(what))
    }

    /// Removes what no reader needs any more: files that were replaced some time ago, and those of writers that have ended in
    /// the middle.
    pub(crate) fn clean(&self, now: SystemTime) -> Result<()> {
        let Some((manifest, _)) = self.manifest()? else { return Ok(()) };
        let is_over = |second_gone: u64| second(now).saturating_sub(second_gone) >= READ_ON.as_secs();
        let over: Vec<&str> =
            manifest.gone.iter().filter(|(gone, _)| is_over(*gone)).map(|(_, name)| name.as_str()).collect();
        for name in &over {
            self.stores.remove(&format!("{}{name}", self.url))?;
        }
        if !over.is_empty() {
            self.commit(|manifest| {
                manifest.gone.retain(|(_, name)| !over.contains(&name.as_str()));
                Ok(())
            })?;
        }
        // Read behind the list: what a writer has added meanwhile is known.
        let found = self.stores.find(&self.url)?;
        let Some((manifest, _)) = self.manifest()? else { return Ok(()) };
        for object in found {
            let Some(name) = object.url.strip_prefix(&self.url) else { continue };
            let age = object.identity.modified().and_then(|modified| now.duration_since(modified).ok());
            let is_known = manifest.has(name) || manifest.gone.iter().any(|(_, gone)| gone == name);
            if manifest::is_given(name) && !is_known && age.is_some_and(|age| age >= ABANDONED) {
                self.stores.remove(&object.url)?;
            }
        }
        Ok(())
    }
}

/// Of objects that were found those that are files of their folders' tables now: one that was compacted may still be there. All files of
/// the folder `whole`, if that is what was looked for.
///
/// # Errors
/// If a folder's manifest can't be read.
pub fn current(mut found: Vec<Object>, whole: Option<&str>, stores: &Arc<dyn Objects>) -> Result<Vec<Object>> {
    // Only Plinth gives such names, and where it does there is a manifest.
    let ours = found.iter().filter_map(|object| object.url.rsplit_once('/'));
    let folders = ours.filter(|(_, name)| manifest::is_given(name)).map(|(folder, _)| format!("{folder}/"));
    for url in folders.collect::<BTreeSet<_>>() {
        let far = FarFolder { url, stores: Arc::clone(stores) };
        let Some((manifest, _)) = far.manifest()? else {
            // Of writers that have not come to it yet.
            found.retain(|object| object.url.strip_prefix(&far.url).is_none_or(|name| !manifest::is_given(name)));
            continue;
        };
        let here: HashSet<String> =
            found.extract_if(.., |object| object.url.starts_with(&far.url)).map(|object| object.url).collect();
        let files = far.listed(&manifest).into_iter().filter_map(|listed| listed.object);
        found.extend(files.filter(|object| whole == Some(far.url.as_str()) || here.contains(&object.url)));
    }
    Ok(found)
}

#[cfg(test)]
#[path = "far_tests.rs"]
mod tests;
