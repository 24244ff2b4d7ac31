//! The file that pages are in.

use std::fmt::Debug;

use plinth_core::sync::{read, write};
use plinth_io::IoError;

use crate::page::Image;

type Result<T> = std::result::Result<T, IoError>;

/// A page to read.
#[derive(Debug)]
pub struct PageRead {
    /// Where it starts, a multiple of 4,096.
    pub offset: u64,
    /// Where it goes, all of it.
    pub image: Image,
}

/// A file of pages, whose offsets and lengths are multiples of 4,096. It may be longer than its pages: what is behind them is its owner's.
///
/// A write is there for reads at once, and durable once a sync that began after it has succeeded.
pub trait PageFile: Send + Sync + Debug + 'static {
    /// Its name, for errors.
    fn name(&self) -> &str;

    /// Bytes it has.
    ///
    /// # Errors
    /// If the operating system does not tell.
    fn len(&self) -> Result<u64>;

    /// Whether it is empty.
    ///
    /// # Errors
    /// As [`PageFile::len`].
    fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Fills an image.
    ///
    /// # Errors
    /// If the device fails or the file is too short.
    fn read(&self, offset: u64, image: &mut Image) -> Result<()>;

    /// Fills many images, at the same time where the system can.
    ///
    /// # Errors
    /// If one can't be filled.
    fn read_many(&self, reads: &mut [PageRead]) -> Result<()> {
        reads.iter_mut().try_for_each(|read| self.read(read.offset, &mut read.image))
    }

    /// Writes an image.
    ///
    /// # Errors
    /// If the device fails or is full. Then anything may have become of these bytes.
    fn write(&self, offset: u64, image: &Image) -> Result<()>;

    /// Makes durable what was written.
    ///
    /// # Errors
    /// If the device fails. Then what was written may be lost, and a later sync may succeed all the same.
    fn sync(&self) -> Result<()>;
}

pub use local::LocalPages;

mod local {
    use std::fs::{File, OpenOptions};
    use std::path::Path;
    use std::sync::Arc;

    use plinth_io::{IoError, read_exact_at, write_all_at};

    #[cfg(target_os = "linux")]
    use super::PageRead;
    use super::{Image, PageFile, Result};

    /// A file of the operating system's, past its page cache where it lets us: the pool is the cache.
    #[derive(Debug)]
    pub struct LocalPages {
        file: Arc<File>,
        name: String,
    }

    impl LocalPages {
        /// Makes a new, empty file.
        ///
        /// # Errors
        /// If there is one already, or it can't be made.
        pub fn create(path: impl AsRef<Path>) -> Result<Self> {
            Self::with(path.as_ref(), "create", OpenOptions::new().read(true).write(true).create_new(true))
        }

        /// Opens a file.
        ///
        /// # Errors
        /// If it can't be opened.
        pub fn open(path: impl AsRef<Path>) -> Result<Self> {
            Self::with(path.as_ref(), "open", OpenOptions::new().read(true).write(true))
        }

        fn with(path: &Path, action: &str, options: &mut OpenOptions) -> Result<Self> {
            let file = plinth_io::regular::open_with(path, action, options)?;
            // File systems without direct access refuse the flag; then the page cache stands in between.
            #[cfg(target_os = "linux")]
            if let Ok(flags) = rustix::fs::fcntl_getfl(&file) {
                let _ = rustix::fs::fcntl_setfl(&file, flags | rustix::fs::OFlags::DIRECT);
            }
            Ok(Self { file: Arc::new(file), name: path.display().to_string() })
        }

        fn fail(&self, action: String) -> impl FnOnce(std::io::Error) -> IoError {
            move |e| IoError::os(&self.name, action, e)
        }
    }

    impl PageFile for LocalPages {
        fn name(&self) -> &str {
            &self.name
        }

        fn len(&self) -> Result<u64> {
            Ok(self.file.metadata().map_err(self.fail("ask for its length".to_owned()))?.len())
        }

        fn read(&self, offset: u64, image: &mut Image) -> Result<()> {
            let bytes = image.bytes_mut();
            let action = format!("read {} bytes at {offset}", bytes.len());
            read_exact_at(&self.file, bytes, offset).map_err(self.fail(action))
        }

        #[cfg(target_os = "linux")]
        fn read_many(&self, reads: &mut [PageRead]) -> Result<()> {
            if reads.len() > 1 && super::ring::read(&self.file, reads) {
                return Ok(());
            }
            reads.iter_mut().try_for_each(|read| self.read(read.offset, &mut read.image))
        }

        fn write(&self, offset: u64, image: &Image) -> Result<()> {
            let bytes = image.bytes();
            write_all_at(&self.file, bytes, offset)
                .map_err(self.fail(format!("write {} bytes at {offset}", bytes.len())))
        }

        fn sync(&self) -> Result<()> {
            self.file.sync_data().map_err(self.fail("sync".to_owned()))
        }
    }
}

/// Many reads at once, by a ring of the calling thread.
#[cfg(target_os = "linux")]
mod ring {
    use std::cell::RefCell;
    use std::fs::File;
    use std::sync::Arc;

    use plinth_io::{Direction, HUGE_PAGE, Ring, Slab, Transfer};

    use super::PageRead;

    struct Lane {
        ring: Ring<usize>,
        slab: Arc<Slab>,
    }

    thread_local! {
        /// None if rings are forbidden, or one failed.
        static LANE: RefCell<Option<Option<Lane>>> = const { RefCell::new(None) };
    }

    fn lane() -> Option<Lane> {
        let mut ring = Ring::new(HUGE_PAGE).ok()?;
        let slab = Slab::new(HUGE_PAGE, false).ok()?;
        // Registered or not, reads work.
        let _ = ring.register(&slab);
        Some(Lane { ring, slab })
    }

    /// Whether all were read. If not, nothing is said of any: each is to be read again, which will tell why.
    pub(super) fn read(file: &Arc<File>, reads: &mut [PageRead]) -> bool {
        LANE.with_borrow_mut(|slot| {
            let Some(lane) = slot.get_or_insert_with(lane) else { return false };
            let whole = pump(lane, file, reads);
            if whole.is_err() {
                *slot = Some(None);
            }
            whole.unwrap_or(false)
        })
    }

    fn pump(lane: &mut Lane, file: &Arc<File>, reads: &mut [PageRead]) -> std::io::Result<bool> {
        let (mut next, mut done, mut whole) = (0, 0, true);
        while done < reads.len() {
            while let Some(read) = reads.get(next) {
                let len = read.image.bytes().len();
                let Some(extent) = lane.slab.take(len) else { break };
                let (file, offset) = (Arc::clone(file), read.offset);
                lane.ring.start(Transfer { file, offset, extent, len, direction: Direction::Read, token: next });
                next += 1;
            }
            if lane.ring.transfers() == 0 {
                return Ok(false);
            }
            lane.ring.turn(true, |transfer, moved| {
                done += 1;
                let to = reads.get_mut(transfer.token).map(|read| read.image.bytes_mut());
                match (to, transfer.extent.get(..transfer.len)) {
                    (Some(to), Some(from)) if moved.is_ok_and(|n| n == from.len()) => to.copy_from_slice(from),
                    _ => whole = false,
                }
            })?;
        }
        Ok(whole)
    }
}

/// A file in memory.
#[derive(Debug)]
pub struct MemoryPages {
    name: String,
    units: std::sync::RwLock<Vec<Image>>,
}

impl MemoryPages {
    /// An empty one. The name is for errors.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), units: std::sync::RwLock::default() }
    }

    fn unit(offset: u64) -> usize {
        crate::bits::index(offset) / crate::page::UNIT
    }
}

impl PageFile for MemoryPages {
    fn name(&self) -> &str {
        &self.name
    }

    fn len(&self) -> Result<u64> {
        let units = read(&self.units);
        Ok((units.len() * crate::page::UNIT) as u64)
    }

    fn read(&self, offset: u64, image: &mut Image) -> Result<()> {
        let units = read(&self.units);
        let first = Self::unit(offset);
        let bytes = image.bytes_mut();
        for (i, to) in bytes.chunks_exact_mut(crate::page::UNIT).enumerate() {
            let Some(from) = units.get(first + i) else {
                let (wanted, len) = (to.len() as u64, (units.len() * crate::page::UNIT) as u64);
                return Err(IoError::PastEnd { path: self.name.clone(), offset, wanted, len });
            };
            to.copy_from_slice(from.bytes());
        }
        Ok(())
    }

    fn write(&self, offset: u64, image: &Image) -> Result<()> {
        let mut units = write(&self.units);
        let first = Self::unit(offset);
        let more = image.bytes().chunks_exact(crate::page::UNIT);
        if units.len() < first + more.len() {
            units.resize(first + more.len(), Image::new(0));
        }
        for (i, from) in more.enumerate() {
            if let Some(to) = units.get_mut(first + i) {
                to.bytes_mut().copy_from_slice(from);
            }
        }
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }
}
