//! Bytes of objects on the local drive, for this process and those after it.
//!
//! An object's bytes never change: its key has the store's own name for them. So pieces of it are written to files, as they
//! came, in places of their own: a region of 64 MiB of an object is one sparse file, and an index beside it tells which pieces
//! are there, each with its checksum. Processes share both: a piece is written first and told of by one append, and what was
//! written twice is the same bytes. Whatever is damaged or half written is not there, and its region goes.
//!
//! A range is admitted when it is asked for the second time: a table of short hashes in a file remembers the first. The files
//! that were not used for longest go when there are more bytes than allowed.

mod region;

use std::fs::{DirBuilder, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use plinth_core::sync::lock;
use plinth_core::wire::checksum;
use plinth_io::Object;

use region::Region;

/// Bytes of an object in one file.
const REGION: u64 = 64 << 20;

/// Regions that are open.
const OPEN: usize = 128;

/// Places of the table of what was asked for once, four bytes each.
const ASKED: u64 = 1 << 18;

/// Files that belong here end so.
const DATA: &str = "bytes";
const INDEX: &str = "index";

/// Where bytes are kept, and how many.
#[derive(Clone, Debug)]
pub struct DriveOptions {
    /// A folder of its own.
    pub folder: PathBuf,
    /// The most bytes.
    pub bytes: u64,
    /// Whether a range is kept when it is read for the first time, instead of the second.
    pub at_once: bool,
}

/// The most bytes that are kept for a user who did not say how many.
const USUAL: u64 = 10 << 30;

impl DriveOptions {
    /// The folder that the environment names (`PLINTH_OBJECT_CACHE`; `off` for none), else one below the user's caches; as many
    /// bytes as `PLINTH_OBJECT_CACHE_BYTES` says, else 10 GiB.
    pub fn of_user() -> Option<Self> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let named = variable("PLINTH_OBJECT_CACHE");
        if named.as_deref() == Some("off") {
            return None;
        }
        let caches = || variable("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
        let home = || Some(PathBuf::from(variable("HOME").or_else(|| variable("LOCALAPPDATA"))?).join(".cache"));
        let folder = match named {
            Some(named) => PathBuf::from(named),
            None => caches().or_else(home)?.join("plinth").join("objects"),
        };
        let bytes = match variable("PLINTH_OBJECT_CACHE_BYTES").map(|text| plinth_core::units::parse_bytes(&text)) {
            Some(Ok(bytes)) => bytes,
            Some(Err(error)) => {
                log::warn!("PLINTH_OBJECT_CACHE_BYTES: {error}; no bytes of objects are kept");
                return None;
            }
            None => USUAL,
        };
        Some(Self { folder, bytes, at_once: false })
    }
}

/// What an object's bytes are kept under.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ObjectKey {
    /// All that tells it from others.
    text: Arc<str>,
    hash: u64,
}

impl ObjectKey {
    /// The key of an object; `None` if its store does not tell one version of it from another.
    pub(crate) fn of(object: &Object) -> Option<Self> {
        let since = |at: SystemTime| at.duration_since(SystemTime::UNIX_EPOCH).ok().map(|age| age.as_micros());
        let modified = object.identity.modified().and_then(since).filter(|micros| *micros > 0);
        let version = match (&object.tag, modified) {
            (Some(tag), _) => tag.clone(),
            (None, Some(micros)) => micros.to_string(),
            (None, None) => return None,
        };
        let text = format!("{}\n{}\n{version}", object.url, object.identity.len);
        Some(Self { hash: checksum(text.as_bytes()), text: Arc::from(text) })
    }
}

/// A region's object, as a hash, and its number in the object.
type Name = (u64, u64);

/// The bytes of objects that are kept in a folder.
#[derive(Debug)]
pub struct DriveCache {
    options: DriveOptions,
    /// Those that are open, the one that was used last at the end.
    regions: Mutex<Vec<(Name, Arc<Region>)>>,
    asked: Mutex<Option<File>>,
    /// Bytes that were written since the folder was last counted.
    written: AtomicU64,
    /// Set when the drive refused: then nothing more is kept by this process.
    off: AtomicBool,
}

impl DriveCache {
    /// A folder's bytes; it is made when there is something to keep.
    pub fn new(options: DriveOptions) -> Self {
        // What is there already is counted before the first of this process has grown much.
        let written = AtomicU64::new(options.bytes);
        Self { options, regions: Mutex::default(), asked: Mutex::default(), written, off: AtomicBool::new(false) }
    }

    /// Fills `to` with the object's bytes from `start` on; false if not all are there, or some are damaged.
    pub(crate) fn get(&self, key: &ObjectKey, start: u64, to: &mut [u8]) -> bool {
        if self.off.load(Relaxed) {
            return false;
        }
        let mut rest = to;
        let mut at = start;
        while !rest.is_empty() {
            let (number, within) = (at / REGION, at % REGION);
            let count = rest.len().min(usize::try_from(REGION - within).unwrap_or(usize::MAX));
            let (here, behind) = rest.split_at_mut(count);
            let Some(region) = self.region(key, number, false) else { return false };
            match region.read(within, here) {
                Ok(true) => {}
                Ok(false) => return false,
                Err(error) => {
                    self.forget(key, number, &region, &error);
                    return false;
                }
            }
            rest = behind;
            at += count as u64;
        }
        true
    }

    /// Whether a range that was not there is to be kept now that it has come.
    pub(crate) fn admits(&self, key: &ObjectKey, start: u64, len: usize) -> bool {
        if self.off.load(Relaxed) || len == 0 || len as u64 > self.options.bytes / 4 {
            return false;
        }
        self.options.at_once || self.was_asked(key.hash, start).unwrap_or(false)
    }

    /// Whether the end of an object of this name was put here before; from now on it is taken to be.
    pub(crate) fn has_end(&self, url: &str) -> bool {
        !self.off.load(Relaxed) && self.was_asked(checksum(url.as_bytes()), u64::MAX).unwrap_or(false)
    }

    /// Keeps bytes of an object.
    pub(crate) fn put(&self, key: &ObjectKey, start: u64, bytes: &[u8]) {
        let mut rest = bytes;
        let mut at = start;
        while !rest.is_empty() && !self.off.load(Relaxed) {
            let (number, within) = (at / REGION, at % REGION);
            let (here, behind) = rest.split_at(rest.len().min(usize::try_from(REGION - within).unwrap_or(usize::MAX)));
            let Some(region) = self.region(key, number, true) else { return };
            if let Err(error) = region.write(within, here) {
                self.forget(key, number, &region, &error);
                if !matches!(error.kind(), std::io::ErrorKind::InvalidData) {
                    self.give_up(&error);
                }
                return;
            }
            rest = behind;
            at += here.len() as u64;
        }
        let written = self.written.fetch_add(bytes.len() as u64, Relaxed) + bytes.len() as u64;
        if written > self.options.bytes / 16 {
            self.written.store(0, Relaxed);
            if let Err(error) = self.shrink() {
                self.give_up(&error);
            }
        }
    }

    fn give_up(&self, error: &std::io::Error) {
        if !self.off.swap(true, Relaxed) {
            log::warn!("{}: bytes of objects are not kept any more: {error}", self.options.folder.display());
        }
    }

    /// A region, opened; made if it is to be written.
    fn region(&self, key: &ObjectKey, number: u64, make: bool) -> Option<Arc<Region>> {
        let name = (key.hash, number);
        let mut open = lock(&self.regions);
        if let Some(at) = open.iter().position(|(known, region)| *known == name && region.is_of(&key.text)) {
            let found = open.remove(at);
            let region = Arc::clone(&found.1);
            open.push(found);
            return Some(region);
        }
        let base = self.base(name);
        let region = match Region::open(&base, &key.text, make) {
            Ok(region) => Arc::new(region?),
            Err(error) if error.kind() == std::io::ErrorKind::InvalidData => {
                Region::remove(&base);
                return None;
            }
            Err(error) => {
                self.give_up(&error);
                return None;
            }
        };
        if open.len() >= OPEN {
            open.remove(0);
        }
        open.push((name, Arc::clone(&region)));
        Some(region)
    }

    fn base(&self, (hash, number): Name) -> PathBuf {
        self.options.folder.join(format!("{:02x}", hash >> 56)).join(format!("{hash:016x}-{number}"))
    }

    /// Takes a region away that can't be read.
    fn forget(&self, key: &ObjectKey, number: u64, region: &Arc<Region>, error: &std::io::Error) {
        log::warn!("{}: damaged, and fetched again: {error}", self.base((key.hash, number)).display());
        lock(&self.regions).retain(|(_, other)| !Arc::ptr_eq(other, region));
        Region::remove(&self.base((key.hash, number)));
    }

    /// Whether a range was asked for before; from now on it was.
    fn was_asked(&self, key: u64, start: u64) -> std::io::Result<bool> {
        let mut asked = lock(&self.asked);
        let file = match asked.as_mut() {
            Some(file) => file,
            None => {
                private_folder(&self.options.folder)?;
                let path = self.options.folder.join("asked");
                let file = File::options().read(true).write(true).create(true).truncate(false).open(path)?;
                file.set_len(ASKED * 4)?;
                asked.insert(file)
            }
        };
        let hash = checksum(&[key.to_le_bytes(), start.to_le_bytes()].concat());
        let place = SeekFrom::Start(hash % ASKED * 4);
        let [_, _, _, _, mark @ ..] = hash.to_le_bytes();
        let mut known = [0; 4];
        file.seek(place)?;
        file.read_exact(&mut known)?;
        if known == mark {
            return Ok(true);
        }
        file.seek(place)?;
        file.write_all(&mark)?;
        Ok(false)
    }

    /// Removes what was not used for longest, until there is a tenth less than allowed.
    fn shrink(&self) -> std::io::Result<()> {
        let mut all = Vec::new();
        let mut bytes = 0;
        for folder in std::fs::read_dir(&self.options.folder)? {
            let folder = folder?.path();
            if !folder.is_dir() {
                continue;
            }
            for entry in std::fs::read_dir(&folder)? {
                let path = entry?.path();
                if path.extension().is_some_and(|extension| extension == INDEX) {
                    // Another process may have removed it meanwhile.
                    let Ok(metadata) = path.metadata() else { continue };
                    let base = path.with_extension("");
                    let size = metadata.len() + stored_bytes(&base.with_extension(DATA));
                    bytes += size;
                    all.push((metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH), size, base));
                }
            }
        }
        if bytes <= self.options.bytes {
            return Ok(());
        }
        all.sort();
        let most = self.options.bytes / 10 * 9;
        for (_, size, base) in all {
            if bytes <= most {
                break;
            }
            Region::remove(&base);
            bytes -= size;
            let removed = base.file_name().and_then(|name| name.to_str()).map(str::to_owned);
            lock(&self.regions).retain(|((hash, number), _)| removed != Some(format!("{hash:016x}-{number}")));
        }
        Ok(())
    }
}

/// Bytes that a file takes on the drive.
fn stored_bytes(path: &Path) -> u64 {
    let Ok(metadata) = path.metadata() else { return 0 };
    #[cfg(unix)]
    {
        std::os::unix::fs::MetadataExt::blocks(&metadata) * 512
    }
    #[cfg(not(unix))]
    metadata.len()
}

/// Makes a folder that only its owner can look into: objects may be private.
fn private_folder(path: &Path) -> std::io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

#[cfg(test)]
mod tests;
