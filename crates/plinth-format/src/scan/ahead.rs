//! What a scan of a far file asks for together, where one thing after the other would each be waited for.

use std::collections::HashMap;
use std::ops::Range;

use plinth_encoding::expr::{Expr, Path};
use plinth_io::Prefetch;

use crate::error::Result;
use crate::file::Inner;
use crate::meta::{BlockMeta, Section};

/// How a scan asks a column's dictionaries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Asks {
    /// For a few values, if at all.
    Some,
    /// For each.
    All,
}

/// What will be read of a file before its first block.
#[derive(Debug)]
pub(super) struct Ahead {
    streams: HashMap<usize, Asks>,
}

impl Ahead {
    /// Of a scan with these columns and filters. None if the file is near.
    pub(super) fn new(file: &Inner, columns: &[Path], filters: &[Expr]) -> Result<Option<Self>> {
        if !file.source.is_far() {
            return Ok(None);
        }
        let mut streams = HashMap::new();
        let mut add = |path: &Path, asks: Asks| -> Result<()> {
            for stream in file.node(path)?.0.streams() {
                let known = streams.entry(stream).or_insert(asks);
                *known = asks.max(*known);
            }
            Ok(())
        };
        columns.iter().try_for_each(|path| add(path, Asks::Some))?;
        for filter in filters {
            let asks = if matches!(filter, Expr::Function(function) if function.columns.len() == 1) {
                Asks::All
            } else {
                Asks::Some
            };
            filter.columns().iter().try_for_each(|path| add(path, asks))?;
        }
        Ok(Some(Self { streams }))
    }

    /// Reads the metadata of the columns, all at once.
    pub(super) fn metadata(&self, file: &Inner) -> Result<()> {
        let missing = self.streams.keys().filter(|&&stream| !file.stream(stream).is_known());
        let ranges: Vec<_> =
            missing.filter_map(|&stream| file.footer.streams.get(stream)).map(Section::range).collect();
        let _under_way = file.source.prefetch(&ranges);
        self.streams.keys().try_for_each(|&stream| file.stream_meta(stream).map(drop))
    }

    /// Begins to read what the scan of some row groups needs first: indexes of dictionaries, and dictionaries of which each value is
    /// asked for. Then, smallest first, what comes sooner than the answer whether it is needed: dictionaries, and the blocks of
    /// all columns if these are few. `bounded` is a scan that may end with its first rows.
    pub(super) fn begin(&self, file: &Inner, groups: Range<usize>, bounded: bool) -> Result<Prefetch> {
        let (mut ranges, mut maybe, mut blocks) = (Vec::new(), Vec::new(), Vec::new());
        for (&stream, &asks) in &self.streams {
            let meta = file.stream_meta(stream)?;
            let chunks = meta.chunks.get(groups.clone()).unwrap_or_default();
            for (at, dictionary) in meta.dictionaries.iter().enumerate() {
                let used = chunks.iter().any(|chunk| chunk.dictionary == Some(at));
                if !used || file.has_opened(stream, at) {
                    continue;
                }
                ranges.push(dictionary.index.range());
                let values: Vec<_> = dictionary.blocks.iter().map(Section::range).collect();
                if asks == Asks::All { ranges.extend(values) } else { maybe.push(values) }
            }
            let missing = chunks.iter().flat_map(|chunk| &chunk.blocks);
            blocks.extend(missing.filter(|block| file.cached_block(block.offset).is_none()).map(BlockMeta::range));
        }
        if !bounded {
            maybe.push(blocks);
        }
        let bytes = |ranges: &[Range<u64>]| ranges.iter().map(|range| range.end - range.start).sum::<u64>();
        maybe.sort_by_key(|ranges| bytes(ranges));
        let mut spare = file.source.bytes_a_wait();
        for more in maybe {
            match spare.checked_sub(bytes(&more)) {
                Some(rest) => spare = rest,
                None => break,
            }
            ranges.extend(more);
        }
        Ok(file.source.prefetch(&ranges))
    }
}
