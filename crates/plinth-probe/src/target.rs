//! The file that is measured.

use std::fs::File;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use plinth_core::random::Random;
use plinth_core::units;
use plinth_io::{AtomicFile, Extent, IoError, PAGE, Result, Slab};
use rustix::fs::{FallocateFlags, OFlags, fallocate, fstatvfs};

const CHUNK: usize = 1 << 20;

/// `count` pieces of huge pages, each of `len` bytes: a device is faster where memory lies together.
pub(crate) fn pieces(len: usize, count: u32) -> std::io::Result<Vec<Extent>> {
    let none = || std::io::Error::from(std::io::ErrorKind::OutOfMemory);
    let count = usize::try_from(count).map_err(|_| none())?;
    let slab = Slab::new(len.checked_mul(count).ok_or_else(none)?, true)?;
    (0..count).map(|_| slab.take(len).ok_or_else(none)).collect()
}

/// Such pieces of random bytes.
pub(crate) fn noise(len: usize, count: u32) -> std::io::Result<Vec<Extent>> {
    let (mut pieces, mut random) = (pieces(len, count)?, Random(1));
    pieces.iter_mut().for_each(|piece| random.fill(piece));
    Ok(pieces)
}

/// Makes every 4 KiB differ from what was written before, so that a device that looks for duplicates finds none.
pub(crate) fn stamp(bytes: &mut [u8], random: &mut Random) {
    for page in bytes.chunks_mut(PAGE) {
        if let Some(head) = page.first_chunk_mut::<8>() {
            *head = random.next_u64().to_le_bytes();
        }
    }
}

/// A file of random bytes in the folder that is probed, with the name and the lock of an unfinished one: it is removed
/// when this is dropped, and by the next writer if the process is killed.
#[derive(Debug)]
pub struct Target {
    file: AtomicFile,
    bytes: u64,
    direct: bool,
    filled: f64,
}

impl Target {
    /// Fills a file with `bytes` bytes, or with what is written in `time`, but no less than 16 MiB.
    ///
    /// # Errors
    /// If that is more than half of what is free, or the folder can't be written to.
    pub fn fill(folder: &Path, bytes: u64, time: Duration) -> Result<Self> {
        match std::fs::metadata(folder) {
            Ok(metadata) if !metadata.is_dir() => {
                return Err(IoError::os(folder, "probe it", std::io::ErrorKind::NotADirectory.into()));
            }
            Ok(_) => {}
            Err(e) => return Err(IoError::os(folder, "probe it", e)),
        }
        let file = AtomicFile::create(folder.join("plinth-probe"), true)?;
        let mut target = Self { file, bytes: 0, direct: true, filled: 0.0 };
        let failed = |action: &str, e: std::io::Error| IoError::os(folder, action, e);
        let open = target.open(OFlags::empty()).map_err(|e| failed("open the probe's file in it", e))?;
        let free = fstatvfs(&open).map(|stat| stat.f_bavail.saturating_mul(stat.f_frsize));
        let free = free.map_err(|e| failed("ask how much is free", e.into()))?;
        if bytes > free / 2 {
            let what = format!(
                "the probe's file of {} MiB would take more than half of the {} MiB that are free; free some, or give a smaller --size",
                bytes >> 20,
                free >> 20
            );
            return Err(failed("probe it", std::io::Error::new(std::io::ErrorKind::StorageFull, what)));
        }
        // Where it can't be done, writing does it.
        let _ = fallocate(&open, FallocateFlags::empty(), 0, bytes);
        let direct = target.open(OFlags::DIRECT);
        target.direct = direct.is_ok();
        let to = direct.unwrap_or(open);
        let mut random = Random(bytes);
        let mut buffers = noise(CHUNK, 1).map_err(|e| failed("get memory to probe it", e))?;
        let started = Instant::now();
        while target.bytes < bytes && (target.bytes < 16 << 20 || started.elapsed() < time) {
            for chunk in &mut buffers {
                stamp(chunk, &mut random);
                to.write_all_at(chunk, target.bytes).map_err(|e| failed("write the probe's file", e))?;
                target.bytes += CHUNK as u64;
            }
        }
        to.set_len(target.bytes).and_then(|()| to.sync_all()).map_err(|e| failed("write the probe's file", e))?;
        target.filled = units::to_f64(target.bytes) / started.elapsed().as_secs_f64().max(1e-9);
        Ok(target)
    }

    /// The folder's file.
    pub fn path(&self) -> &Path {
        self.file.temporary()
    }

    /// Its length: a multiple of 1 MiB.
    pub fn byte_len(&self) -> u64 {
        self.bytes
    }

    /// Whether the file system lets requests pass by the page cache.
    pub fn is_direct(&self) -> bool {
        self.direct
    }

    /// Bytes a second at which it was filled, one request at a time and the final sync included.
    pub fn filled(&self) -> f64 {
        self.filled
    }

    /// What fio can call the file that it makes itself for the same measurement.
    pub(crate) fn stand_in(&self) -> PathBuf {
        self.path().with_file_name("plinth-probe.dat")
    }

    pub(crate) fn open(&self, flags: OFlags) -> std::io::Result<File> {
        let flags = i32::try_from(flags.bits()).map_err(std::io::Error::other)?;
        File::options().read(true).write(true).custom_flags(flags).open(self.path())
    }

    /// Opens it past the page cache if that was asked for.
    pub(crate) fn open_direct(&self, direct: bool) -> Result<File> {
        let flags = if direct { OFlags::DIRECT } else { OFlags::empty() };
        self.open(flags).map_err(|e| self.failed(if direct { "open past the page cache" } else { "open" }, e))
    }

    pub(crate) fn failed(&self, action: &str, e: std::io::Error) -> IoError {
        IoError::os(self.path(), action, e)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_filled_with_noise_and_leaves_with_its_owner() {
        let dir = tempfile::tempdir().unwrap();
        let target = Target::fill(dir.path(), 20 << 20, Duration::from_secs(60)).unwrap();
        assert_eq!(target.byte_len(), 20 << 20);
        let bytes = std::fs::read(target.path()).unwrap();
        assert_eq!(bytes.len(), 20 << 20);
        let pages: std::collections::HashSet<&[u8]> = bytes.chunks(PAGE).collect();
        assert_eq!(pages.len(), bytes.len() / PAGE, "no two pages are equal");
        assert!(target.filled() > 0.0);
        drop(target);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);

        let short = Target::fill(dir.path(), 64 << 20, Duration::ZERO).unwrap();
        assert_eq!(short.byte_len(), 16 << 20, "no time for more");
        assert_eq!(std::fs::metadata(short.path()).unwrap().len(), 16 << 20);
    }

    #[test]
    fn what_cannot_be_probed_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("f");
        std::fs::write(&file, "x").unwrap();
        for (folder, bytes, part) in [
            (dir.path().join("none"), 1 << 20, "none: cannot probe it: "),
            (file, 1 << 20, "f: cannot probe it: not a directory"),
            (dir.path().to_path_buf(), 1 << 62, "more than half of the "),
        ] {
            let message = Target::fill(&folder, bytes, Duration::ZERO).unwrap_err().to_string();
            assert!(message.contains(part), "{message}");
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "nothing is left");
    }
}
