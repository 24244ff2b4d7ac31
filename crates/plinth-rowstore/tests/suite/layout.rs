//! A table's files taken apart and put together again with other contents and right checksums, so that only the reader's own
//! checks stand between it and harm. Knows the files by FORMAT.md, not by the reader's code.

use super::*;
use crate::forge::checksum;

fn seal(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(checksum(bytes))
}

/// A cursor over bytes that are right.
struct Wire<'a>(&'a [u8]);

impl<'a> Wire<'a> {
    fn take(&mut self, len: usize) -> &'a [u8] {
        let (head, rest) = self.0.split_at(len);
        self.0 = rest;
        head
    }

    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take(8).try_into().unwrap())
    }

    fn varint(&mut self) -> u64 {
        let (mut value, mut shift) = (0, 0);
        loop {
            let byte = self.take(1)[0];
            value |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                return value;
            }
        }
    }

    fn bytes(&mut self) -> Vec<u8> {
        let len = self.varint();
        self.take(usize::try_from(len).unwrap()).to_vec()
    }

    fn list<T>(&mut self, mut one: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let count = self.varint();
        (0..count).map(|_| one(self)).collect()
    }
}

fn put_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    put_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// What a version file says of a segment.
#[derive(Clone)]
pub(crate) struct Entry {
    /// Number, rows, bytes of the rows, bytes of the keys.
    pub(crate) numbers: [u64; 4],
    pub(crate) seal: u64,
    pub(crate) keys_seal: u64,
    pub(crate) deletes: Vec<u64>,
}

/// What a version file says of an index.
#[derive(Clone)]
pub(crate) struct Index {
    pub(crate) number: u64,
    pub(crate) name: Vec<u8>,
    pub(crate) unique: u8,
    pub(crate) columns: Vec<u64>,
}

/// A table whose files can be changed.
#[derive(Clone)]
pub(crate) struct Forged {
    /// Revision, sequence, number of the version, its length, its checksum, and of the log: newest file, sequence and checksum at
    /// its beginning and at its end.
    pub(crate) slot: [u64; 10],
    pub(crate) columns: Vec<u8>,
    pub(crate) key: Vec<u64>,
    pub(crate) numbered: u8,
    /// The next row, the next file, the first file of the log, the first sequence, the checksum before it.
    pub(crate) next: [u64; 5],
    pub(crate) segments: Vec<Entry>,
    pub(crate) indexes: Vec<Index>,
    /// The files of the log, and the payloads of each.
    pub(crate) logs: Vec<Vec<Vec<u8>>>,
}

const SLOT: usize = 4096;

impl Forged {
    /// Takes a table apart.
    pub(crate) fn new(disk: &SimDisk) -> Self {
        let manifest = bytes_of(disk, "_manifest");
        let slot = |half: usize| {
            let mut wire = Wire(&manifest[half * SLOT + 8..]);
            let version = u64::from(u32::from_le_bytes(wire.take(4).try_into().unwrap()));
            std::array::from_fn(|i| if i == 0 { version } else { wire.u64() })
        };
        let slot: [u64; 10] = [slot(0), slot(1)].into_iter().max_by_key(|slot: &[u64; 10]| slot[1]).unwrap();
        let version = bytes_of(disk, &version_name(slot[2]));
        let mut wire = Wire(&version);
        let columns = wire.bytes();
        let key = wire.list(Wire::varint);
        let numbered = wire.take(1)[0];
        let next = std::array::from_fn(|i| if i < 4 { wire.varint() } else { wire.u64() });
        let segments = wire.list(|wire| Entry {
            numbers: std::array::from_fn(|_| wire.varint()),
            seal: wire.u64(),
            keys_seal: wire.u64(),
            deletes: wire.list(Wire::varint),
        });
        let indexes = wire.list(|wire| Index {
            number: wire.varint(),
            name: wire.bytes(),
            unique: wire.take(1)[0],
            columns: wire.list(Wire::varint),
        });
        assert!(wire.0.is_empty());
        let (mut sequence, mut previous) = (next[3], next[4]);
        let mut logs = Vec::new();
        for file in next[2]..=slot[5] {
            let bytes = bytes_of(disk, &log_name(file));
            let mut payloads = Vec::new();
            let mut at = 0;
            while at + 40 <= bytes.len() {
                let mut wire = Wire(&bytes[at..]);
                let fields: [u64; 5] = std::array::from_fn(|_| wire.u64());
                let len = usize::try_from(fields[4]).unwrap_or(usize::MAX);
                if (fields[1], fields[2]) != (sequence, previous) || len > wire.0.len() {
                    break;
                }
                payloads.push(wire.take(len).to_vec());
                (sequence, previous) = (sequence + 1, fields[0]);
                at = (at + 40 + len).next_multiple_of(SLOT);
            }
            logs.push(payloads);
        }
        Self { slot, columns, key, numbered, next, segments, indexes, logs }
    }

    /// The bytes of the version file.
    pub(crate) fn version(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_bytes(&self.columns, &mut out);
        put_varint(self.key.len() as u64, &mut out);
        self.key.iter().for_each(|&column| put_varint(column, &mut out));
        out.push(self.numbered);
        self.next[..4].iter().for_each(|&number| put_varint(number, &mut out));
        out.extend_from_slice(&self.next[4].to_le_bytes());
        put_varint(self.segments.len() as u64, &mut out);
        for entry in &self.segments {
            entry.numbers.iter().for_each(|&number| put_varint(number, &mut out));
            out.extend_from_slice(&entry.seal.to_le_bytes());
            out.extend_from_slice(&entry.keys_seal.to_le_bytes());
            put_varint(entry.deletes.len() as u64, &mut out);
            entry.deletes.iter().for_each(|&row| put_varint(row, &mut out));
        }
        put_varint(self.indexes.len() as u64, &mut out);
        for index in &self.indexes {
            put_varint(index.number, &mut out);
            put_bytes(&index.name, &mut out);
            out.push(index.unique);
            put_varint(index.columns.len() as u64, &mut out);
            index.columns.iter().for_each(|&column| put_varint(column, &mut out));
        }
        out
    }

    /// Puts the log together, and what the manifest knows of it; `header` may change the fields of a frame.
    pub(crate) fn write_logs(&mut self, disk: &SimDisk, mut header: impl FnMut(usize, &mut [u64; 4])) {
        let (first, mut sequence, mut previous) =
            (self.slot[5] + 1 - self.logs.len() as u64, self.next[3], self.next[4]);
        let mut frames = 0;
        for (file, payloads) in (first..).zip(&self.logs) {
            self.slot[6..8].copy_from_slice(&[sequence, previous]);
            let mut bytes = Vec::new();
            for payload in payloads {
                let mut fields = [sequence, previous, sequence, payload.len() as u64];
                header(frames, &mut fields);
                let mut frame: Vec<u8> = fields.iter().flat_map(|field| field.to_le_bytes()).collect();
                frame.extend_from_slice(payload);
                let sealed = usize::try_from(fields[3]).unwrap_or(usize::MAX).saturating_add(32).min(frame.len());
                previous = seal(&frame[..sealed]);
                bytes.extend_from_slice(&previous.to_le_bytes());
                bytes.extend_from_slice(&frame);
                bytes.resize(bytes.len().next_multiple_of(SLOT), 0);
                sequence = sequence.wrapping_add(1);
                frames += 1;
            }
            self.slot[8..].copy_from_slice(&[sequence, previous]);
            put(disk, &log_name(file), &bytes);
        }
    }

    /// Puts a version file there, and makes the manifest name it.
    pub(crate) fn write_version(&mut self, disk: &SimDisk, version: &[u8]) {
        put(disk, &version_name(self.slot[2]), version);
        self.slot[3..5].copy_from_slice(&[version.len() as u64, seal(version)]);
    }

    /// Puts both slots there.
    pub(crate) fn write_slots(&self, disk: &SimDisk) {
        let mut slot = b"PLINTHT\n".to_vec();
        slot.extend_from_slice(&(self.slot[0] as u32).to_le_bytes());
        self.slot[1..].iter().for_each(|field| slot.extend_from_slice(&field.to_le_bytes()));
        slot.resize(SLOT - 8, 0);
        slot.extend_from_slice(&checksum(&slot));
        put(disk, "_manifest", &[slot.clone(), slot].concat());
    }

    /// Gives a segment other rows.
    pub(crate) fn set_rows(&mut self, disk: &SimDisk, at: usize, bytes: &[u8]) {
        let entry = &mut self.segments[at];
        put(disk, &segment_name(entry.numbers[0]), bytes);
        (entry.numbers[2], entry.seal) = (bytes.len() as u64, seal(&bytes[bytes.len().saturating_sub(52)..]));
    }

    /// Gives a segment another file of keys.
    pub(crate) fn set_keys(&mut self, disk: &SimDisk, at: usize, bytes: &[u8]) {
        let entry = &mut self.segments[at];
        put(disk, &keys_name(entry.numbers[0]), bytes);
        (entry.numbers[3], entry.keys_seal) = (bytes.len() as u64, seal(bytes));
    }
}

fn version_name(number: u64) -> String {
    format!("_version-{number:06}")
}

fn log_name(number: u64) -> String {
    format!("_log-{number:06}")
}

pub(crate) fn segment_name(number: u64) -> String {
    format!("_segment-{number:06}.plinth")
}

pub(crate) fn keys_name(number: u64) -> String {
    format!("_keys-{number:06}")
}

/// The file of a tree after a change of its root page, all checksums right. `None` if there is no root where one should be.
pub(crate) fn forged_tree(bytes: &[u8], change: impl FnOnce(&mut [u8])) -> Option<Vec<u8>> {
    let mut bytes = bytes.to_vec();
    let word = |bytes: &[u8], at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let half = usize::from(word(&bytes, SLOT + 24) > word(&bytes, 24));
    let root = word(&bytes, half * SLOT + 40);
    let unit = usize::try_from(root & ((1 << 36) - 1)).unwrap();
    let at = unit * SLOT..(unit + (1 << (root >> 60 & 7))) * SLOT;
    let page = bytes.get_mut(at)?;
    change(page);
    let sum = twox_hash::XxHash3_64::oneshot_with_seed(unit as u64, &page[8..]);
    page[..8].copy_from_slice(&sum.to_le_bytes());
    let root = root & !(((1 << 24) - 1) << 36) | (sum & ((1 << 24) - 1)) << 36;
    let slot = &mut bytes[half * SLOT..][..SLOT];
    slot[40..48].copy_from_slice(&root.to_le_bytes());
    let sum = twox_hash::XxHash3_64::oneshot_with_seed(half as u64, &slot[8..]);
    slot[..8].copy_from_slice(&sum.to_le_bytes());
    Some(bytes)
}
