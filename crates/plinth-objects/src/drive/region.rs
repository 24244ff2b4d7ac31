//! A region of an object on the drive: a sparse file with its bytes where they are in the object, and an index.
//!
//! The index begins with the key of the object: its length (4 bytes), the text, a checksum (8). Then each piece is 24 bytes:
//! where it begins in the region (4), its length (4), the checksum of its bytes (8), and that of these 16 bytes (8); all little-endian.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Error, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use plinth_core::sync::lock;
use plinth_core::wire::checksum;
use plinth_io::{read_exact_at, write_all_at};

use super::{DATA, INDEX, private_folder};

/// Bytes of a piece, at most: what is read to check a part of it.
const PIECE: usize = 256 << 10;

/// Bytes that tell of a piece.
const RECORD: usize = 24;

/// How exactly it is known when a region was used last.
const EXACTNESS: Duration = Duration::from_secs(60);

/// An open region.
#[derive(Debug)]
pub(super) struct Region {
    key: String,
    bytes: File,
    index: Mutex<Index>,
}

#[derive(Debug)]
struct Index {
    file: File,
    /// Where the next record is looked for.
    end: u64,
    /// Pieces by where they begin: length and checksum.
    pieces: BTreeMap<u64, (usize, u64)>,
    used: SystemTime,
}

fn damaged(what: &str) -> Error {
    Error::new(ErrorKind::InvalidData, what.to_owned())
}

impl Region {
    /// Opens a region, or makes it; `None` if there is none and it is not to be made.
    pub(super) fn open(base: &Path, key: &str, make: bool) -> std::io::Result<Option<Self>> {
        let (index, data) = (base.with_extension(INDEX), base.with_extension(DATA));
        if !make && !index.exists() {
            return Ok(None);
        }
        if make && let Some(folder) = base.parent() {
            private_folder(folder)?;
        }
        let mut options = File::options();
        options.read(true).append(true).create(make);
        let found = options.open(&index).and_then(|index| {
            let bytes = File::options().read(true).write(true).create(make).truncate(false).open(&data)?;
            Ok((index, bytes))
        });
        let (mut file, bytes) = match found {
            Ok(found) => found,
            // Taken away meanwhile.
            Err(error) if error.kind() == ErrorKind::NotFound && !make => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut head = (u32::try_from(key.len()).unwrap_or(u32::MAX)).to_le_bytes().to_vec();
        head.extend_from_slice(key.as_bytes());
        head.extend_from_slice(&checksum(key.as_bytes()).to_le_bytes());
        if file.metadata()?.len() == 0 {
            // Of two processes that begin it at once the second finds a head twice: damaged, and begun again.
            file.write_all(&head)?;
        }
        let mut there = vec![0; head.len()];
        file.seek(SeekFrom::Start(0))?;
        file.read_exact(&mut there).map_err(|_| damaged("its head is cut short"))?;
        if there != head {
            return Err(damaged("it is of another object"));
        }
        let index = Index { file, end: head.len() as u64, pieces: BTreeMap::new(), used: SystemTime::UNIX_EPOCH };
        Ok(Some(Self { key: key.to_owned(), bytes, index: Mutex::new(index) }))
    }

    pub(super) fn is_of(&self, key: &str) -> bool {
        self.key == key
    }

    /// Removes a region's files: the index first, so that no piece is told of that is not there.
    pub(super) fn remove(base: &Path) {
        drop(std::fs::remove_file(base.with_extension(INDEX)));
        drop(std::fs::remove_file(base.with_extension(DATA)));
    }

    /// Fills `to` with the bytes at `start`; false if not all are there.
    pub(super) fn read(&self, start: u64, to: &mut [u8]) -> std::io::Result<bool> {
        let mut pieces = Vec::new();
        {
            let mut index = lock(&self.index);
            index.look()?;
            let mut at = start;
            let end = start + to.len() as u64;
            while at < end {
                // The piece that begins last before it may be short, and one before that longer: few lie upon each other.
                let mut before = index.pieces.range(..=at).rev().take(4);
                let over = before.find(|(begin, (len, _))| **begin + *len as u64 > at);
                let Some((begin, (len, sum))) = over else { return Ok(false) };
                pieces.push((*begin, *len, *sum));
                at = begin + *len as u64;
            }
            index.touch();
        }
        let end = start + to.len() as u64;
        let mut piece = Vec::new();
        let mut at = start;
        for (begin, len, sum) in pieces {
            piece.resize(len, 0);
            read_exact_at(&self.bytes, &mut piece, begin)?;
            if checksum(&piece) != sum {
                return Err(damaged(&format!("the checksum of {len} bytes at {begin} is wrong")));
            }
            let until = end.min(begin + len as u64);
            let of = |from: u64, to: u64, base: u64| {
                let at = |position: u64| usize::try_from(position - base).unwrap_or(usize::MAX);
                at(from)..at(to)
            };
            if let (Some(to), Some(from)) = (to.get_mut(of(at, until, start)), piece.get(of(at, until, begin))) {
                to.copy_from_slice(from);
            }
            at = until;
        }
        Ok(true)
    }

    /// Keeps bytes at `start`.
    pub(super) fn write(&self, start: u64, bytes: &[u8]) -> std::io::Result<()> {
        write_all_at(&self.bytes, bytes, start)?;
        let mut records = Vec::new();
        for (number, piece) in bytes.chunks(PIECE).enumerate() {
            let begin = start + (number * PIECE) as u64;
            let mut record = u32::try_from(begin).map_err(Error::other)?.to_le_bytes().to_vec();
            record.extend_from_slice(&u32::try_from(piece.len()).map_err(Error::other)?.to_le_bytes());
            record.extend_from_slice(&checksum(piece).to_le_bytes());
            record.extend_from_slice(&checksum(&record).to_le_bytes());
            records.extend_from_slice(&record);
        }
        // One append: processes do not tear each other's.
        lock(&self.index).file.write_all(&records)
    }
}

impl Index {
    /// Takes in what was told of since, by this process and by others.
    fn look(&mut self) -> std::io::Result<()> {
        let len = self.file.metadata()?.len();
        if len < self.end + RECORD as u64 {
            return Ok(());
        }
        let whole = usize::try_from(len - self.end).map_err(Error::other)? / RECORD * RECORD;
        let mut records = vec![0; whole];
        read_exact_at(&self.file, &mut records, self.end)?;
        for record in records.chunks_exact(RECORD) {
            let (told, sum) = record.split_at(16);
            if checksum(told).to_le_bytes() != sum {
                return Err(damaged("a record of its index is damaged"));
            }
            let number = |at: usize| told.get(at..at + 4).and_then(|b| b.try_into().ok()).map_or(0, u32::from_le_bytes);
            let sum = told.get(8..).and_then(|b| b.try_into().ok()).map_or(0, u64::from_le_bytes);
            let (begin, len) = (u64::from(number(0)), number(4) as usize);
            if len == 0 || len > PIECE {
                return Err(damaged("a piece of it has no length that it can have"));
            }
            let known = self.pieces.entry(begin).or_insert((len, sum));
            if known.0 <= len {
                *known = (len, sum);
            }
        }
        self.end += whole as u64;
        Ok(())
    }

    /// Remembers that it was used.
    fn touch(&mut self) {
        let now = SystemTime::now();
        if now.duration_since(self.used).is_ok_and(|age| age > EXACTNESS) {
            self.used = now;
            drop(self.file.set_modified(now));
        }
    }
}
