//! The directory: where the group of a code is, and how many rows lie before it.

use std::ops::Range;

use arrow_buffer::Buffer;

use super::{GROUP_BITS, GROUP_CODES, corrupt};
use crate::error::Result;
use crate::wire::{Reader, put_varint, wide};

/// Where groups begin, by code, by byte and by row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directory {
    /// The first code of each group.
    firsts: Vec<u32>,
    /// Where each group starts, and where the last ends.
    offsets: Vec<u64>,
    /// Rows before each group, and of all.
    rows: Vec<u64>,
    checksums: Vec<u64>,
}

/// Where a group is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Which group.
    pub group: usize,
    /// Where it starts, counted from the first group.
    pub offset: u64,
    /// Its length in bytes.
    pub len: u32,
    /// The checksum of its bytes.
    pub checksum: u64,
}

impl Default for Directory {
    fn default() -> Self {
        Self { firsts: Vec::new(), offsets: vec![0], rows: vec![0], checksums: Vec::new() }
    }
}

impl Directory {
    /// Adds a group.
    pub fn push(&mut self, first: u32, len: u32, rows: u64, checksum: u64) {
        self.firsts.push(first);
        self.offsets.push(self.bytes() + u64::from(len));
        self.rows.push(self.rows() + rows);
        self.checksums.push(checksum);
    }

    /// Its bytes.
    pub fn write(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_varint(&mut out, wide(self.len()));
        let mut before = 0;
        for group in 0..self.len() {
            let place = self.place(group);
            put_varint(&mut out, u64::from(self.firsts[group] - before));
            put_varint(&mut out, u64::from(place.len));
            out.extend_from_slice(&place.checksum.to_le_bytes());
            put_varint(&mut out, self.group_rows(group));
            before = self.firsts[group];
        }
        out
    }

    /// Reads the directory of the lists of so many codes of a column of so many rows.
    ///
    /// # Errors
    /// If the bytes are no such directory.
    pub fn read(bytes: &Buffer, codes: u32, column_rows: u64) -> Result<Self> {
        let mut reader = Reader::new(bytes);
        let most = reader.left() / 11;
        let groups = reader.count(most, "groups")?;
        let mut directory = Self::default();
        let mut first = 0_u32;
        for group in 0..groups {
            let step = u32::try_from(reader.varint()?).ok().filter(|&step| step as usize <= GROUP_CODES);
            let next = step.and_then(|step| first.checked_add(step)).filter(|&first| first < codes);
            first = next.ok_or_else(|| corrupt("a group of codes that are none"))?;
            let len = u32::try_from(reader.varint()?).map_err(|_| corrupt("a group that is too long"))?;
            let checksum = reader.int(8)?;
            let rows = reader.varint()?;
            if rows > GROUP_BITS || rows > column_rows - directory.rows() {
                return Err(corrupt("a group of more rows than there can be"));
            }
            if (group == 0 && first > 0) || directory.bytes().checked_add(u64::from(len)).is_none() {
                return Err(corrupt("the groups do not begin with the first code"));
            }
            directory.push(first, len, rows, checksum);
        }
        let last = directory.firsts.last().map_or(0, |&first| codes - first);
        if reader.left() > 0 || last as usize > GROUP_CODES || (groups == 0 && codes > 0) {
            return Err(corrupt("the groups do not end with the last code"));
        }
        Ok(directory)
    }

    /// Groups.
    pub fn len(&self) -> usize {
        self.firsts.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.firsts.is_empty()
    }

    /// Bytes of all groups.
    pub fn bytes(&self) -> u64 {
        self.offsets.last().copied().unwrap_or(0)
    }

    /// Rows in all lists.
    pub fn rows(&self) -> u64 {
        self.rows.last().copied().unwrap_or(0)
    }

    /// Where a group is.
    pub fn place(&self, group: usize) -> Place {
        let at = |of: &[u64], i: usize| of.get(i).copied().unwrap_or(0);
        let offset = at(&self.offsets, group);
        let len = u32::try_from(at(&self.offsets, group + 1).saturating_sub(offset)).unwrap_or(u32::MAX);
        Place { group, offset, len, checksum: at(&self.checksums, group) }
    }

    /// The groups with lists, or parts of lists, of some codes.
    #[inline]
    pub(super) fn groups(&self, codes: &Range<u32>) -> Range<usize> {
        if codes.is_empty() || self.is_empty() {
            return 0..0;
        }
        let end = self.firsts.partition_point(|&first| first < codes.end);
        let mut start = self.firsts[..end].partition_point(|&first| first < codes.start);
        // Unless a group begins with the first code, the one before has it.
        if self.firsts.get(start) != Some(&codes.start) {
            start = start.saturating_sub(1);
        }
        start..end
    }

    /// The groups with the list of a code, or parts of it.
    #[inline]
    pub(super) fn parts(&self, code: u32) -> Range<usize> {
        let end = self.firsts.partition_point(|&first| first <= code);
        let mut start = end.saturating_sub(1);
        while start > 0 && self.firsts.get(start) == Some(&code) && self.firsts.get(start - 1) == Some(&code) {
            start -= 1;
        }
        start..end
    }

    /// The first code of a group.
    pub(super) fn first(&self, group: usize) -> u32 {
        self.firsts.get(group).copied().unwrap_or(u32::MAX)
    }

    /// How many codes a group has, where there are `codes` in all.
    pub(super) fn group_codes(&self, group: usize, codes: u32) -> u32 {
        let next = self.firsts.get(group + 1).copied().unwrap_or(codes);
        next.saturating_sub(self.first(group)).max(1)
    }

    /// Rows of a group.
    pub(super) fn group_rows(&self, group: usize) -> u64 {
        self.rows_before(group + 1) - self.rows_before(group)
    }

    /// Rows of the groups before a group.
    pub(super) fn rows_before(&self, group: usize) -> u64 {
        self.rows.get(group).copied().unwrap_or_else(|| self.rows())
    }

    /// Bytes held.
    pub(super) fn memory(&self) -> usize {
        self.len() * (size_of::<u32>() + 3 * size_of::<u64>())
    }
}
