//! Taking a file apart and putting it together again with other contents and right checksums, so that only the reader's
//! own checks stand between it and harm. Knows the format by FORMAT.md, not by the reader's code. The fuzz targets use it
//! too.

use std::ops::Range;
use std::sync::Arc;

use plinth_encoding::expr::{Path, col};
use plinth_format::{File, Result};
use plinth_io::MemorySource;

/// Bytes of the tail.
const TAIL: usize = 52;

/// Bytes of a stream's entry in the footer's directory.
const ENTRY: usize = 20;

/// What a checksum in a stream's metadata covers.
#[derive(Clone, Debug)]
pub struct Sealed {
    pub bytes: Range<usize>,
    /// Where the checksum is in the metadata.
    checksum: usize,
}

/// A cursor over metadata.
struct Wire<'a>(&'a [u8], usize);

impl Wire<'_> {
    fn u8(&mut self) -> u8 {
        self.1 += 1;
        self.0[self.1 - 1]
    }

    fn varint(&mut self) -> u128 {
        let (mut value, mut shift) = (0, 0);
        loop {
            let byte = self.u8();
            value |= u128::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                return value;
            }
        }
    }

    fn bytes(&mut self) {
        self.1 += self.varint() as usize;
    }

    fn section(&mut self) -> Sealed {
        let (offset, len) = (self.varint() as usize, self.varint() as usize);
        self.1 += 8;
        Sealed { bytes: offset..offset + len, checksum: self.1 - 8 }
    }

    fn zone(&mut self) {
        match self.u8() {
            0 => {}
            1 => {
                self.varint();
                self.varint();
            }
            2 => self.1 += 16,
            3 => {
                self.u8();
                self.bytes();
                self.bytes();
            }
            _ => self.1 += 1,
        }
    }
}

/// A file whose contents can be changed.
#[derive(Clone)]
pub struct Forged {
    /// Everything before the footer.
    pub body: Vec<u8>,
    pub footer: Vec<u8>,
    /// What the tail says a reader must know.
    pub features: u32,
    streams: usize,
}

pub fn checksum(bytes: &[u8]) -> [u8; 8] {
    plinth_core::wire::checksum(bytes).to_le_bytes()
}

impl Forged {
    /// Takes apart a file of so many streams.
    pub fn new(file: &[u8], streams: usize) -> Self {
        let tail = file.len() - TAIL;
        let footer = u64::from_le_bytes(file[tail..tail + 8].try_into().unwrap()) as usize;
        let features = u32::from_le_bytes(file[tail + 32..tail + 36].try_into().unwrap());
        Self { body: file[..footer].to_vec(), footer: file[footer..tail].to_vec(), features, streams }
    }

    /// The place of a stream's entry in the footer.
    fn entry(&self, stream: usize) -> usize {
        self.footer.len() - (self.streams - stream) * ENTRY
    }

    /// Where a stream's metadata is.
    pub fn metadata(&self, stream: usize) -> Range<usize> {
        let at = self.entry(stream);
        let offset = u64::from_le_bytes(self.footer[at..at + 8].try_into().unwrap()) as usize;
        let len = u32::from_le_bytes(self.footer[at + 8..at + 12].try_into().unwrap()) as usize;
        offset..offset + len
    }

    /// All that a stream's checksums cover, if the stream has one value a row (`rows` a row group) or says how many.
    pub fn sealed(&self, stream: usize, rows: &[u64], block_rows: u64, one_value_a_row: bool) -> Vec<Sealed> {
        let mut wire = Wire(&self.body[self.metadata(stream)], 0);
        let mut found = Vec::new();
        for _ in 0..3 {
            wire.varint();
        }
        wire.zone();
        let flags = wire.u8();
        for _ in 0..(flags >> 3 & 1) + (flags >> 4 & 1) {
            wire.varint();
        }
        for _ in 0..wire.varint() {
            wire.varint();
            found.push(wire.section());
        }
        for _ in 0..wire.varint() {
            wire.varint();
            found.push(wire.section());
            for _ in 0..wire.varint() {
                found.push(wire.section());
            }
            if wire.u8() == 1 {
                wire.varint();
                wire.varint();
                found.push(wire.section());
            }
        }
        wire.bytes();
        for rows in rows {
            wire.varint();
            let mut position = wire.varint() as usize;
            for _ in 0..rows.div_ceil(block_rows) {
                let len = wire.varint() as usize;
                if !one_value_a_row {
                    wire.varint();
                }
                wire.varint();
                let plain = wire.u8() == 2;
                position = position.next_multiple_of(if len >= 4096 && plain { 64 } else { 8 });
                found.push(Sealed { bytes: position..position + len, checksum: wire.1 });
                position += len;
                wire.1 += 8;
                wire.zone();
            }
        }
        assert_eq!(wire.1, wire.0.len(), "metadata of stream {stream}");
        found
    }

    /// Changes bytes and their checksum, and those of the metadata that holds it.
    pub fn set_sealed(&mut self, stream: usize, sealed: &Sealed, change: impl FnOnce(&mut [u8])) {
        change(&mut self.body[sealed.bytes.clone()]);
        let sum = checksum(&self.body[sealed.bytes.clone()]);
        let metadata = self.metadata(stream);
        let at = metadata.start + sealed.checksum;
        self.body[at..at + 8].copy_from_slice(&sum);
        let (entry, sum) = (self.entry(stream), checksum(&self.body[metadata]));
        self.footer[entry + 12..entry + 20].copy_from_slice(&sum);
    }

    /// Gives a stream other metadata, at the end of the body.
    pub fn set_metadata(&mut self, stream: usize, bytes: &[u8]) {
        let at = self.entry(stream);
        self.footer[at..at + 8].copy_from_slice(&(self.body.len() as u64).to_le_bytes());
        self.footer[at + 8..at + 12].copy_from_slice(&(bytes.len() as u32).to_le_bytes());
        self.footer[at + 12..at + 20].copy_from_slice(&checksum(bytes));
        self.body.extend_from_slice(bytes);
    }

    /// Replaces the one place of the footer that holds `from`.
    pub fn replace(&mut self, from: &[u8], to: &[u8]) {
        let places: Vec<_> = (0..self.footer.len()).filter(|&at| self.footer[at..].starts_with(from)).collect();
        assert_eq!(places.len(), 1, "{from:?} occurs at {places:?}");
        self.footer.splice(places[0]..places[0] + from.len(), to.iter().copied());
    }

    /// The file.
    pub fn seal(&self) -> Vec<u8> {
        let mut file = self.body.clone();
        file.extend_from_slice(&self.footer);
        let mut tail = (self.body.len() as u64).to_le_bytes().to_vec();
        tail.extend_from_slice(&(self.footer.len() as u32).to_le_bytes());
        tail.extend_from_slice(&checksum(&self.footer));
        tail.extend_from_slice(&((file.len() + TAIL) as u64).to_le_bytes());
        tail.extend_from_slice(&1u32.to_le_bytes());
        tail.extend_from_slice(&self.features.to_le_bytes());
        let sum = checksum(&tail);
        tail.extend_from_slice(&sum);
        tail.extend_from_slice(b"\nplinth\0");
        file.extend_from_slice(&tail);
        file
    }
}

/// A file to start from, and what [`Forged::sealed`] needs to know of it.
pub struct Sample {
    pub file: Forged,
    pub rows: Vec<u64>,
    pub block_rows: u64,
    /// Of each stream.
    pub one_value_a_row: Vec<bool>,
}

impl Sample {
    /// The file after a few changes, all checksums right. `random` gives numbers of any size; few of them are used.
    pub fn mutated(&self, random: &mut impl FnMut() -> u64) -> Vec<u8> {
        let mut forged = self.file.clone();
        let streams = self.one_value_a_row.len();
        let below = |n: usize, random: &mut dyn FnMut() -> u64| (random() % n.max(1) as u64) as usize;
        for _ in 0..1 + below(3, random) {
            let kind = random() % 8;
            let stream = below(streams, random);
            if kind < 4 && streams > 0 && forged.metadata(stream) == self.file.metadata(stream) {
                let sealed = self.file.sealed(stream, &self.rows, self.block_rows, self.one_value_a_row[stream]);
                if let Some(sealed) = sealed.get(below(sealed.len(), random)) {
                    forged.set_sealed(stream, sealed, |bytes| change(bytes, random));
                }
            } else if kind < 6 && streams > 0 {
                let mut meta = forged.body[forged.metadata(stream)].to_vec();
                if kind == 5 {
                    resize(&mut meta, random);
                }
                change(&mut meta, random);
                forged.set_metadata(stream, &meta);
            } else if kind == 6 {
                change(&mut forged.footer, random);
                // What follows would look for the directory.
                break;
            } else {
                resize(&mut forged.footer, random);
                break;
            }
        }
        forged.seal()
    }
}

/// Bytes that lengths, widths and signs turn on.
const EDGES: [u8; 10] = [0, 1, 2, 3, 0x0f, 0x3f, 0x40, 0x7f, 0x80, 0xff];

pub fn change(bytes: &mut [u8], random: &mut impl FnMut() -> u64) {
    if bytes.is_empty() {
        return;
    }
    let choice = random();
    // What is at the front decides most.
    let reach = if choice & 1 == 0 { bytes.len().min(24) } else { bytes.len() };
    let at = (random() % reach as u64) as usize;
    match choice >> 1 & 3 {
        0 => bytes[at] ^= 1 << (choice >> 8 & 7),
        1 => bytes[at] = EDGES[(choice >> 8) as usize % EDGES.len()],
        2 => bytes[at] = (choice >> 8) as u8,
        _ => {
            let from = (choice >> 8) as usize % bytes.len();
            let len = (1 + (choice >> 40) as usize % 8).min(bytes.len() - from.max(at));
            bytes.copy_within(from..from + len, at);
        }
    }
}

pub fn resize(bytes: &mut Vec<u8>, random: &mut impl FnMut() -> u64) {
    let choice = random();
    let at = choice as usize % (bytes.len() + 1);
    let len = 1 + (choice >> 32) as usize % 9;
    if choice >> 48 & 1 == 0 {
        bytes.splice(at..at, std::iter::repeat_n((choice >> 50) as u8, len));
    } else {
        bytes.drain(at..(at + len).min(bytes.len()));
    }
}

/// Does all that can be done with a file. Anything may fail; nothing may panic, hang or take memory it did not earn.
pub fn exercise(bytes: &[u8]) -> Result<()> {
    let file = File::from_source(Arc::new(MemorySource::new("forged.plinth", bytes)))?;
    let report = file.report().map(drop);
    let verified = file.verify(1, &|_| {}).map(drop);
    let names: Vec<String> = file.schema().fields().iter().map(|field| field.name().clone()).collect();
    for name in &names {
        let _ = file.statistics(&Path::column(name));
        let predicates = [
            col(name).eq(7),
            col(name).lt("c"),
            col(name).gt(0.5),
            col(name).is_null(),
            col(name).is_in([1.into(), 5.into(), 90.into()]),
        ];
        for predicate in predicates {
            let scan = file.scan().filter(predicate).limit(500).build();
            let _ = scan.and_then(|mut scan| scan.try_for_each(|batch| batch.map(drop)));
        }
    }
    let all = file.scan().build().and_then(|mut scan| scan.try_for_each(|batch| batch.map(drop)));
    report.and(verified).and(all)
}
