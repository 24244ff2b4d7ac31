//! Whether what a file says of its values is so, beyond what a reader has to check: for files that another writer made.
//!
//! Readers believe zone maps, flags, sums and counts of distinct values, and look no further than where they have to; here all
//! of it is compared with the values themselves.

use plinth_encoding::sketch::Sketch;
use plinth_encoding::summary::{Order, order, sum};
use plinth_encoding::{Block, Column, Physical, Values, bounds};
use rayon::prelude::*;

use crate::error::{FormatError, Result};
use crate::file::File;
use crate::footer::HEADER_LEN;
use crate::meta::{BlockMeta, StreamMeta, Zone, less, widen};
use crate::sorted::SortedRun;
use crate::types::Node;
use crate::wire::verify;

/// Departures that are told of; with more, the file is another format.
const MOST: usize = 100;

/// What the values of some chunks are, in the file's order.
#[derive(Debug)]
struct Seen {
    /// None if they are not sorted.
    run: Option<SortedRun>,
    zone: Option<Option<Zone>>,
    /// Of each block; none if one has none.
    sums: Option<Vec<i128>>,
    sketch: Sketch,
}

impl Default for Seen {
    fn default() -> Self {
        Self { run: Some(SortedRun::empty()), zone: None, sums: Some(Vec::new()), sketch: Sketch::default() }
    }
}

impl Seen {
    fn add(&mut self, physical: Physical, column: &Column) {
        let has_values = column.nulls.as_ref().map_or(0, |nulls| nulls.null_count()) < column.len;
        let zone = bounds(physical, column).map(Zone::exact);
        let here = SortedRun::of(order(physical, column), zone.as_ref(), has_values);
        self.run = self.run.take().and_then(|run| run.then(here?));
        widen(&mut self.zone, zone.as_ref(), has_values);
        match (&mut self.sums, sum(physical, column)) {
            (Some(sums), Some(sum)) => sums.push(sum),
            (sums, _) => *sums = None,
        }
        self.sketch.add(physical, column);
    }

    fn sum(&self) -> Option<i128> {
        self.sums.as_ref()?.iter().try_fold(0_i128, |all, sum| all.checked_add(*sum))
    }
}

impl File {
    /// Where the file departs from the format, or says of its values what is not so: one sentence each, at most a hundred. Reads
    /// the whole file, twice. Damage, which [`File::verify`] finds, is an error.
    ///
    /// # Errors
    /// If the file can't be read or is damaged.
    pub fn conformance(&self, threads: usize) -> Result<Vec<String>> {
        self.verify(threads, &|_| {})?;
        let mut found = Vec::new();
        let header = self.0.source.read(std::slice::from_ref(&(0..HEADER_LEN)))?;
        if header.first().is_none_or(|header| header.as_slice().iter().skip(8).any(|&byte| byte != 0)) {
            found.push("header: bytes 8 to 63 are not all zeros".to_owned());
        }
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads.max(1))
            .build()
            .map_err(|e| FormatError::InvalidArgument(format!("cannot start {threads} threads: {e}")))?;
        let streams: Vec<usize> = (0..self.0.footer.streams.len()).collect();
        let each = pool
            .install(|| streams.par_iter().map(|&stream| self.stream_conformance(stream)).collect::<Result<Vec<_>>>());
        found.extend(each?.into_iter().flatten());
        found.truncate(MOST);
        Ok(found)
    }

    fn stream_conformance(&self, stream: usize) -> Result<Vec<String>> {
        let known = self.0.stream(stream);
        let meta = self.0.stream_meta(stream)?;
        let leaf = self.0.footer.tree.node_of(stream).is_some_and(Node::is_leaf);
        let mut found = Vec::new();
        let mut seen = Seen::default();
        let mut used: Vec<Vec<bool>> =
            meta.dictionaries.iter().map(|dictionary| vec![false; dictionary.values as usize]).collect();
        for (group, chunk) in meta.chunks.iter().enumerate() {
            for (at, block) in chunk.blocks.iter().enumerate() {
                let place = format!("column {:?}, row group {group}, block {at} (offset {})", known.name, block.offset);
                let physical = if chunk.dictionary.is_some() { Physical::CODES } else { known.physical };
                let presence = !leaf && physical == Physical::Bool;
                let column = self.block(physical, block, presence, &place, &mut found)?;
                if leaf || chunk.dictionary.is_some() {
                    check_zone(
                        block.zone.as_ref(),
                        bounds(physical, &column).map(Zone::exact).as_ref(),
                        &place,
                        &mut found,
                    );
                } else if block.zone.is_some() {
                    found.push(format!("{place}: a zone map of what is no value"));
                }
                let column = match chunk.dictionary {
                    None => column,
                    Some(dictionary) => {
                        let Values::Fixed(codes) = &column.values else { continue };
                        let codes = arrow_buffer::ScalarBuffer::<u32>::new(codes.clone(), 0, column.len);
                        let valid = |row: usize| column.nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
                        let mut safe = Vec::with_capacity(codes.len());
                        for (row, &code) in codes.iter().enumerate() {
                            safe.push(if valid(row) { code } else { 0 });
                            if let (true, Some(used)) = (valid(row), used.get_mut(dictionary)) {
                                used.get_mut(code as usize).into_iter().for_each(|used| *used = true);
                            }
                        }
                        let opened = self.0.dictionary(stream, dictionary)?;
                        if opened.is_empty() {
                            continue;
                        }
                        let place = || self.0.dictionary_place(stream, dictionary);
                        let values = opened.gather(&safe).map_err(|e| FormatError::at(self.name(), place(), e))?;
                        Column { len: column.len, values, nulls: column.nulls }
                    }
                };
                seen.add(known.physical, &column);
                if found.len() > MOST {
                    return Ok(found);
                }
            }
        }
        for (dictionary, used) in used.iter().enumerate() {
            let unused = used.iter().filter(|used| !**used).count();
            if unused > 0 {
                let place = self.0.dictionary_place(stream, dictionary);
                found.push(format!("{place}: no row has {unused} of its {} values", used.len()));
            }
        }
        let place = format!("column {:?}", known.name);
        if leaf {
            self.check_summary(stream, meta, &seen, &place, &mut found)?;
        } else if meta.order != Order::NONE || meta.sum.is_some() || meta.distinct.is_some() || meta.zone.is_some() {
            found.push(format!("{place}: order, sum, distinct values or a zone map of what is no value"));
        }
        Ok(found)
    }

    /// A block, whose metadata is compared with what it is.
    fn block(
        &self,
        physical: Physical,
        meta: &BlockMeta,
        presence: bool,
        place: &str,
        found: &mut Vec<String>,
    ) -> Result<Column> {
        let bytes = self.0.source.read(std::slice::from_ref(&meta.range()))?;
        let bytes = bytes.into_iter().next().ok_or_else(|| FormatError::internal("nothing was read"))?;
        verify(self.name(), &place, &bytes, meta.checksum)?;
        let fail = |e| FormatError::at(self.name(), place, e);
        let block = Block::open(physical, &bytes, meta.values as usize).map_err(fail)?;
        if block.encoding() as u8 != meta.encoding {
            found.push(format!(
                "{place}: the metadata says encoding {}, the block has {}",
                meta.encoding,
                block.encoding() as u8
            ));
        }
        let unsaid = block.features() & !self.0.features;
        if unsaid != 0 {
            found.push(format!("{place}: needs features that the tail does not name (bits {unsaid:#b})"));
        }
        let column = block.decode(None).map_err(fail)?;
        let nulls = match &column.values {
            // Presence: what is absent counts as null.
            Values::Bool(present) if presence => column.len - present.count_set_bits(),
            _ => column.nulls.as_ref().map_or(0, |nulls| nulls.null_count()),
        };
        if nulls != meta.nulls as usize {
            found.push(format!("{place}: the metadata says {} nulls, the block has {nulls}", meta.nulls));
        }
        Ok(column)
    }

    fn check_summary(
        &self,
        stream: usize,
        meta: &StreamMeta,
        seen: &Seen,
        place: &str,
        found: &mut Vec<String>,
    ) -> Result<()> {
        check_zone(meta.zone.as_ref(), seen.zone.clone().flatten().as_ref(), place, found);
        let order = seen.run.as_ref().map_or(Order::NONE, |run| run.order);
        if meta.order.and(order) != meta.order {
            found.push(format!("{place}: its rows are not in the order that the metadata says"));
        }
        if let Some(said) = meta.sum
            && seen.sum() != Some(said)
        {
            let is = seen.sum().map_or("none that fits".to_owned(), |sum| sum.to_string());
            found.push(format!("{place}: the metadata says a sum of {said}, the values make {is}"));
        }
        let exact = meta.only_dictionary().map(|dictionary| u64::from(dictionary.values));
        if let (Some(said), Some(exact)) = (meta.distinct, exact)
            && said != exact
        {
            found.push(format!("{place}: the metadata says {said} distinct values, the dictionary has {exact}"));
        }
        let details = self.0.details(stream)?;
        if let Some(sketch) = details.sketch
            && seen.sketch.folded(sketch.precision()) != sketch
        {
            found.push(format!("{place}: the sketch of the distinct values is not that of the values"));
        }
        if details.sums.is_some() && details.sums != seen.sums {
            found.push(format!("{place}: the sums of the blocks are not those of the values"));
        }
        Ok(())
    }
}

/// Compares what a zone map says with the bounds of the values. A text bound may be cut, and a zone map may be missing.
fn check_zone(said: Option<&Zone>, is: Option<&Zone>, place: &str, found: &mut Vec<String>) {
    let Some(said) = said else { return };
    let Some(is) = is else {
        return found.push(format!("{place}: a zone map of no values"));
    };
    let (said_min, said_max, min, max) = (&said.bounds.min, &said.bounds.max, &is.bounds.min, &is.bounds.max);
    let beyond = less(min, said_min) || less(said_max, max);
    let loose = (said.exact.0 && less(said_min, min)) || (said.exact.1 && less(max, said_max));
    if beyond || loose {
        let said = format!("{said_min} to {said_max}");
        found.push(format!("{place}: the zone map says {said}, the values are {min} to {max}"));
    }
}
