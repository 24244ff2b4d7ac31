//! An open file: the footer at once, a stream's metadata when it is first needed, dictionaries block by block.

use std::ops::Range;
use std::path::Path as FsPath;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use arrow_buffer::Buffer;
use arrow_schema::SchemaRef;
use plinth_encoding::dictionary::{BlockSource, Dictionary};
use plinth_encoding::expr::{Path, Scalar};
use plinth_encoding::postings::Postings;
use plinth_encoding::{EncodingError, Physical};
use plinth_io::{BackingStore, BlockCache, BlockKey, Io, LocalFile, Object, Objects, Prefetch, Source, objects};
use plinth_profile::{Stage, scope};

use crate::access::Access;
use crate::answers::FunctionCache;
use crate::error::{FormatError, Result};
use crate::footer::{Footer, TAIL_LEN, read_tail};
use crate::groups::Groups;
use crate::meta::{DictionaryMeta, Section, Shape, StreamMeta};
use crate::statistics::{ColumnStatistics, Exactness, KnownDetails};
use crate::types::{Logical, Node};
use crate::wire::verify;

/// Read from the end when a file is opened: most footers fit, so that opening is one read.
const FIRST_READ: u64 = 32 << 10;

/// An open file. Cheap to clone and to share between threads; clones share what has been loaded.
#[derive(Clone, Debug)]
pub struct File(pub(crate) Arc<Inner>);

/// A row group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowGroup {
    /// Its rows.
    pub rows: u64,
    /// Rows of the file before it.
    pub first_row: u64,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) source: Arc<dyn Source>,
    pub(crate) footer: Footer,
    /// What the tail says a reader must know.
    pub(crate) features: u32,
    pub(crate) functions: FunctionCache,
    schema: SchemaRef,
    row_groups: Vec<RowGroup>,
    streams: Vec<Stream>,
    footer_len: u64,
    footer_checksum: u64,
    metadata_read: AtomicU64,
    io: Io,
    pub(crate) access: Access,
    /// What its blocks are kept under.
    kept_as: u64,
}

/// How to open a file.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// Who reads the file's blocks. Its budget is asked for the memory of what is kept as long as the file is open: values of
    /// dictionaries. What is refused is decoded whenever it is needed (default: [`Io::shared`]).
    pub io: Io,
    /// How the file's scans find rows, unless they say otherwise ([`crate::ScanBuilder::access`]).
    ///
    /// [`ScanBuilder::access`]: crate::ScanBuilder::access
    pub access: Access,
    /// What a path that is a URL is looked for in; without, such a path is an error (default: none).
    pub objects: Option<Arc<dyn Objects>>,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self { io: Io::shared().clone(), access: Access::Auto, objects: None }
    }
}

/// What is known of a stream.
#[derive(Debug)]
pub(crate) struct Stream {
    /// Dotted path of its node, `[]` for the items of lists.
    pub(crate) name: String,
    pub(crate) physical: Physical,
    pub(crate) one_value_a_row: bool,
    meta: OnceLock<Arc<StreamMeta>>,
    dictionaries: OnceLock<Vec<Opened>>,
    pub(crate) details: OnceLock<KnownDetails>,
}

/// One of a stream's dictionaries, as far as it was opened.
#[derive(Debug, Default)]
struct Opened {
    dictionary: OnceLock<Arc<Dictionary>>,
    postings: OnceLock<Arc<Postings>>,
}

impl Stream {
    /// Whether its metadata was read.
    pub(crate) fn is_known(&self) -> bool {
        self.meta.get().is_some()
    }
}

impl File {
    /// Opens a local file, or an object by its URL.
    ///
    /// # Errors
    /// If it can't be read, is no Plinth file, is damaged at its end, or was written by another version.
    pub fn open(path: impl AsRef<FsPath>) -> Result<Self> {
        Self::open_with(path, &OpenOptions::default())
    }

    /// As [`File::open`], with options.
    ///
    /// # Errors
    /// As [`File::open`].
    pub fn open_with(path: impl AsRef<FsPath>, options: &OpenOptions) -> Result<Self> {
        let path = path.as_ref();
        match objects::one(options.objects.as_ref(), path)? {
            Some(object) => Self::open_object(&object, options),
            None => Self::from_source_with(Arc::new(LocalFile::open_with(path, &options.io)?), options),
        }
    }

    /// Opens an object that was found in a store of the options.
    ///
    /// # Errors
    /// As [`File::open`].
    pub fn open_object(object: &Object, options: &OpenOptions) -> Result<Self> {
        let stores = objects::given(options.objects.as_ref(), object.url.as_ref())?;
        Self::from_source_with(stores.open(object, &options.io)?, options)
    }

    /// Opens whatever can be read at positions.
    ///
    /// # Errors
    /// As [`File::open`].
    pub fn from_source(source: Arc<dyn Source>) -> Result<Self> {
        Self::from_source_with(source, &OpenOptions::default())
    }

    /// As [`File::from_source`], with options.
    ///
    /// # Errors
    /// As [`File::open`].
    pub fn from_source_with(source: Arc<dyn Source>, options: &OpenOptions) -> Result<Self> {
        let _open = scope(Stage::Open);
        let len = source.byte_len();
        let name = source.name().to_owned();
        if len < TAIL_LEN as u64 {
            let what = format!("not a Plinth file: it has only {len} bytes");
            return Err(FormatError::Corrupt { file: name, what });
        }
        let from = len - len.min(FIRST_READ);
        let end = read_one(&*source, from..len)?;
        let (footer_at, features) = read_tail(&name, &end[end.len() - TAIL_LEN..], len)?;
        let bytes = if footer_at.offset >= from {
            let start = usize::try_from(footer_at.offset - from).unwrap_or(usize::MAX);
            end.slice_with_length(start, footer_at.len as usize)
        } else {
            read_one(&*source, footer_at.range())?
        };
        verify(&name, &"footer", &bytes, footer_at.checksum)?;
        let footer = Footer::read(&bytes, len).map_err(|e| FormatError::at(&name, "footer", e))?;
        let mut first_row = 0;
        let row_groups = footer
            .row_groups
            .iter()
            .map(|&rows| {
                first_row += rows;
                RowGroup { rows, first_row: first_row - rows }
            })
            .collect();
        let mut streams = Vec::with_capacity(footer.streams.len());
        footer.tree.columns.iter().for_each(|column| add_streams(column, column.name.clone(), true, &mut streams));
        Ok(Self(Arc::new(Inner {
            schema: Arc::new(footer.tree.arrow_schema()),
            metadata_read: AtomicU64::new(u64::from(footer_at.len) + TAIL_LEN as u64),
            footer_len: u64::from(footer_at.len) + TAIL_LEN as u64,
            footer_checksum: footer_at.checksum,
            functions: FunctionCache::default(),
            kept_as: options.io.cache().map_or(0, BlockCache::new_file),
            io: options.io.clone(),
            access: options.access,
            source,
            features,
            footer,
            row_groups,
            streams,
        })))
    }

    /// Its name, for messages.
    pub fn name(&self) -> &str {
        self.0.source.name()
    }

    /// Whether its reads may wait for a network.
    pub fn is_far(&self) -> bool {
        self.0.source.is_far()
    }

    /// Length in bytes.
    pub fn byte_len(&self) -> u64 {
        self.0.source.byte_len()
    }

    /// What tells its content from any other's: a sum over its footer, which has the sums of all that it leads to.
    pub fn fingerprint(&self) -> u64 {
        self.0.footer_checksum
    }

    /// The Arrow schema of what a scan emits: text is `Utf8View`, binaries are `BinaryView`, lists are `List`, at any
    /// depth, whatever they were when written.
    pub fn schema(&self) -> &SchemaRef {
        &self.0.schema
    }

    /// How scans find rows, unless they say otherwise.
    pub fn access(&self) -> Access {
        self.0.access
    }

    /// Rows in the file.
    pub fn num_rows(&self) -> u64 {
        self.0.first_row(usize::MAX)
    }

    /// Row groups in order.
    pub fn row_groups(&self) -> &[RowGroup] {
        &self.0.row_groups
    }

    /// The row groups that belong to a byte range of the file: those whose share of the file starts in it, when row
    /// groups share the file's bytes equally. Ranges that tile the file tile the row groups. (A row group's real bytes
    /// do not start anywhere: columns with dictionaries lie apart.)
    pub fn row_groups_in(&self, bytes: Range<u64>) -> Range<usize> {
        let (groups, len) = (self.0.row_groups.len() as u128, u128::from(self.byte_len().max(1)));
        // Row group g starts at floor(g * len / groups), so those before a position p are ceil(p * groups / len).
        let before = |position: u64| {
            usize::try_from((u128::from(position) * groups).div_ceil(len).min(groups)).unwrap_or(usize::MAX)
        };
        before(bytes.start)..before(bytes.end).max(before(bytes.start))
    }

    /// Exact statistics of a column or struct field, from its metadata.
    ///
    /// # Errors
    /// If there is no such column, or its metadata is damaged.
    pub fn statistics(&self, column: &Path) -> Result<ColumnStatistics> {
        let (node, _) = self.0.node(column)?;
        let mut stored_bytes = 0;
        let mut value_bytes = 0;
        for stream in node.streams() {
            let meta = self.0.stream_meta(stream)?;
            stored_bytes += meta.block_bytes() + meta.dictionary_bytes() + meta.postings_bytes();
            value_bytes = meta.value_bytes.saturating_add(value_bytes);
        }
        let meta = self.0.stream_meta(node.stream)?;
        let zone = meta.zone.as_ref().filter(|_| node.is_leaf());
        let bound =
            |value: &Scalar, exact: bool| (value.clone(), if exact { Exactness::Exact } else { Exactness::Bound });
        Ok(ColumnStatistics {
            null_count: meta.nulls,
            min: zone.map(|zone| bound(&zone.bounds.min, zone.exact.0)),
            max: zone.map(|zone| bound(&zone.bounds.max, zone.exact.1)),
            // A dictionary is checked where it is read; the count beside it is only believed.
            distinct_count: match meta.only_dictionary() {
                Some(dictionary) => Some((dictionary.values.into(), Exactness::Exact)),
                None if node.is_leaf() && meta.order.differs => {
                    Some((meta.values.saturating_sub(meta.nulls), Exactness::Exact))
                }
                None => meta.distinct.filter(|_| node.is_leaf()).map(|distinct| (distinct, Exactness::Bound)),
            },
            sum: meta.sum.filter(|_| node.is_leaf()),
            order: meta.order,
            stored_bytes,
            value_bytes,
        })
    }

    /// Begins to read the metadata of columns that will be asked for, if the file is far; names of none are passed over.
    pub fn prefetch_metadata<'a>(&self, columns: impl IntoIterator<Item = &'a str>) -> Prefetch {
        if !self.is_far() {
            return Prefetch::default();
        }
        let streams = columns.into_iter().filter_map(|name| Some(self.0.node(&Path::column(name)).ok()?.0.streams()));
        let missing = streams.flatten().filter(|&stream| !self.0.stream(stream).is_known());
        let ranges: Vec<_> =
            missing.filter_map(|stream| self.0.footer.streams.get(stream)).map(Section::range).collect();
        self.0.source.prefetch(&ranges)
    }

    /// Metadata bytes read so far through this handle and its clones, the footer included.
    pub fn metadata_bytes_read(&self) -> u64 {
        self.0.metadata_read.load(Ordering::Relaxed)
    }

    /// Metadata bytes of the whole file: footer and the metadata of every column.
    pub fn metadata_bytes(&self) -> u64 {
        self.0.footer_len + self.0.footer.streams.iter().map(|section| u64::from(section.len)).sum::<u64>()
    }
}

fn add_streams(node: &Node, name: String, one_value_a_row: bool, streams: &mut Vec<Stream>) {
    let list = matches!(node.logical, Logical::List | Logical::Map { .. } | Logical::FixedList(_));
    streams.push(Stream {
        name: name.clone(),
        physical: node.physical(),
        one_value_a_row,
        meta: OnceLock::new(),
        dictionaries: OnceLock::new(),
        details: OnceLock::new(),
    });
    for child in &node.children {
        let name = if list { format!("{name}[]") } else { format!("{name}.{}", child.name) };
        add_streams(child, name, one_value_a_row && !list, streams);
    }
}

/// Reads one range.
fn read_one(source: &dyn Source, range: Range<u64>) -> Result<Buffer> {
    source.read(std::slice::from_ref(&range))?.pop().ok_or_else(|| FormatError::internal("nothing was read"))
}

impl Inner {
    pub(crate) fn stream(&self, stream: usize) -> &Stream {
        &self.streams[stream]
    }

    /// The node at a path, and whether it can be null because it or a struct around it can.
    pub(crate) fn node(&self, path: &Path) -> Result<(&Node, bool)> {
        let mut nodes = &self.footer.tree.columns;
        let mut found: Option<(&Node, bool)> = None;
        for (depth, part) in path.parts().iter().enumerate() {
            // A field below a list has other rows than the file; it is read with its list.
            let here = found.is_none_or(|(node, _)| node.logical == Logical::Struct);
            let node = nodes.iter().find(|node| here && &node.name == part).ok_or_else(|| {
                let parent = Path::new(path.parts()[..depth].iter().cloned());
                let names: Vec<_> = nodes.iter().take(20).map(|node| node.name.as_str()).collect();
                let place = if depth == 0 { "the file".to_owned() } else { format!("column {parent}") };
                FormatError::InvalidArgument(format!(
                    "{}: no column {part:?} in {place}; it has {}{}",
                    self.source.name(),
                    names.join(", "),
                    if nodes.len() > 20 { ", ..." } else { "" }
                ))
            })?;
            found = Some((node, node.nullable || found.is_some_and(|(_, nullable)| nullable)));
            nodes = &node.children;
        }
        found.ok_or_else(|| FormatError::InvalidArgument("an empty column path".into()))
    }

    /// A block that was kept of an earlier read.
    pub(crate) fn cached_block(&self, offset: u64) -> Option<Buffer> {
        self.io.cache()?.get(BlockKey { file: self.kept_as, offset })
    }

    /// Offers a checked block to be kept.
    pub(crate) fn cache_block(&self, offset: u64, bytes: &Buffer, below: BackingStore) {
        if let Some(cache) = self.io.cache() {
            cache.offer(BlockKey { file: self.kept_as, offset }, bytes, below);
        }
    }

    /// Bytes of the blocks of some columns.
    pub(crate) fn bytes_of(&self, paths: &[Path]) -> Result<u64> {
        let mut bytes = 0;
        for path in paths {
            for stream in self.node(path)?.0.streams() {
                bytes += self.stream_meta(stream)?.block_bytes();
            }
        }
        Ok(bytes)
    }

    /// A checksummed section.
    pub(crate) fn section(&self, section: &Section, place: &dyn std::fmt::Display) -> Result<Buffer> {
        let bytes = read_one(&*self.source, section.range())?;
        verify(self.source.name(), place, &bytes, section.checksum)?;
        Ok(bytes)
    }

    /// A stream's metadata, read when it is first asked for.
    pub(crate) fn stream_meta(&self, stream: usize) -> Result<&Arc<StreamMeta>> {
        let known = &self.streams[stream];
        if let Some(meta) = known.meta.get() {
            return Ok(meta);
        }
        let scope = scope(Stage::Metadata);
        let section = &self.footer.streams[stream];
        scope.bytes(u64::from(section.len));
        let place = format!("column {:?}: metadata", known.name);
        let bytes = self.section(section, &place)?;
        self.metadata_read.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        let shape = Shape {
            row_groups: &self.footer.row_groups,
            block_rows: self.footer.block_rows,
            one_value_a_row: known.one_value_a_row,
            value_width: known.physical.fixed_width().unwrap_or(0),
        };
        let meta = StreamMeta::read(&bytes, shape, self.source.byte_len())
            .map_err(|e| FormatError::at(self.source.name(), place, e))?;
        Ok(known.meta.get_or_init(|| Arc::new(meta)))
    }

    /// What is known of one of a stream's dictionaries.
    fn opened(&self, stream: usize, dictionary: usize) -> Result<(&DictionaryMeta, &Opened)> {
        let dictionaries = &self.stream_meta(stream)?.dictionaries;
        let known = &self.streams[stream];
        let opened = known.dictionaries.get_or_init(|| dictionaries.iter().map(|_| Opened::default()).collect());
        dictionaries.get(dictionary).zip(opened.get(dictionary)).ok_or_else(|| {
            FormatError::internal(format!("column {:?} was asked for dictionary {dictionary}", known.name))
        })
    }

    /// One of a stream's dictionaries.
    pub(crate) fn dictionary(&self, stream: usize, dictionary: usize) -> Result<&Arc<Dictionary>> {
        let known = &self.streams[stream];
        let (meta, opened) = self.opened(stream, dictionary)?;
        if let Some(dictionary) = opened.dictionary.get() {
            return Ok(dictionary);
        }
        let scope = scope(Stage::Metadata.of("dictionary"));
        scope.bytes(u64::from(meta.index.len));
        let place = self.dictionary_place(stream, dictionary);
        let index = self.section(&meta.index, &format!("{place} index"))?;
        let blocks =
            DictionaryBlocks { source: Arc::clone(&self.source), place: place.clone(), sections: meta.blocks.clone() };
        let fail = |e| FormatError::at(self.source.name(), &place, e);
        let dictionary = Dictionary::open(known.physical, &index, Box::new(blocks)).map_err(fail)?;
        if dictionary.len() != meta.values as usize || dictionary.blocks() != meta.blocks.len() {
            return Err(fail(EncodingError::corrupt("its index does not fit the column's metadata")));
        }
        Ok(opened.dictionary.get_or_init(|| dictionary.within(self.io.budget())))
    }

    /// Whether one of a stream's dictionaries was opened.
    pub(crate) fn has_opened(&self, stream: usize, dictionary: usize) -> bool {
        let opened = self.streams[stream].dictionaries.get().and_then(|opened| opened.get(dictionary));
        opened.is_some_and(|opened| opened.dictionary.get().is_some())
    }

    /// How messages name one of a stream's dictionaries: by its number where there are several.
    pub(crate) fn dictionary_place(&self, stream: usize, dictionary: usize) -> String {
        let known = &self.streams[stream];
        let several = known.meta.get().is_some_and(|meta| meta.dictionaries.len() > 1);
        let number = if several { format!(" {dictionary}") } else { String::new() };
        format!("column {:?}: dictionary{number}", known.name)
    }

    /// The postings of one of a stream's dictionaries, if it has some.
    pub(crate) fn postings(&self, stream: usize, dictionary: usize) -> Result<Option<&Arc<Postings>>> {
        let known = &self.streams[stream];
        let (dictionary, opened) = self.opened(stream, dictionary)?;
        if let Some(postings) = opened.postings.get() {
            return Ok(Some(postings));
        }
        let Some(at) = &dictionary.postings else { return Ok(None) };
        let _open = scope(Stage::Metadata.of("postings"));
        let place = format!("column {:?}: postings", known.name);
        let directory = self.section(&at.directory, &format!("{place}: directory"))?;
        let groups = Groups { source: Arc::clone(&self.source), place: place.clone(), offset: at.offset };
        let fail = |e| FormatError::at(self.source.name(), &place, e);
        let rows = self.first_row(usize::MAX);
        let postings = Postings::open(dictionary.values, rows, &directory, Box::new(groups)).map_err(fail)?;
        if postings.directory().bytes() != at.bytes {
            return Err(fail(EncodingError::corrupt("the directory does not fit the column's metadata")));
        }
        Ok(Some(opened.postings.get_or_init(|| postings.within(self.io.budget()))))
    }

    /// Rows before a row group; of one beyond the last, all rows.
    pub(crate) fn first_row(&self, group: usize) -> u64 {
        let rows = || self.row_groups.last().map_or(0, |last| last.first_row + last.rows);
        self.row_groups.get(group).map_or_else(rows, |group| group.first_row)
    }

    /// Who reads its blocks.
    pub(crate) fn io(&self) -> &Io {
        &self.io
    }
}

/// Reads a dictionary's blocks from the file.
#[derive(Debug)]
struct DictionaryBlocks {
    source: Arc<dyn Source>,
    place: String,
    sections: Vec<Section>,
}

impl BlockSource for DictionaryBlocks {
    fn block(&self, i: usize) -> plinth_encoding::Result<Buffer> {
        let section = self.sections.get(i).ok_or_else(|| EncodingError::corrupt(format!("there is no block {i}")))?;
        let read = scope(Stage::Metadata.of("dictionary"));
        read.bytes(u64::from(section.len));
        let place = format!("{} block {i} (offset {}, {} bytes)", self.place, section.offset, section.len);
        read_one(&*self.source, section.range())
            .and_then(|bytes| verify(self.source.name(), &place, &bytes, section.checksum).map(|()| bytes))
            .map_err(|e| EncodingError::Fetch(Arc::new(e)))
    }

    fn prefetch(&self, blocks: &mut dyn Iterator<Item = usize>) -> Prefetch {
        if !self.source.is_far() {
            return Prefetch::default();
        }
        let ranges: Vec<_> = blocks.filter_map(|i| self.sections.get(i)).map(Section::range).collect();
        self.source.prefetch(&ranges)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Some(cache) = self.io.cache() {
            cache.forget(self.kept_as);
        }
    }
}

impl StreamMeta {
    /// Bytes of its blocks.
    pub(crate) fn block_bytes(&self) -> u64 {
        self.chunks.iter().flat_map(|chunk| &chunk.blocks).map(|block| u64::from(block.len)).sum()
    }

    /// Bytes of its postings.
    pub(crate) fn postings_bytes(&self) -> u64 {
        let postings = self.dictionaries.iter().filter_map(|dictionary| dictionary.postings.as_ref());
        postings.map(|postings| postings.bytes + u64::from(postings.directory.len)).sum()
    }

    /// Bytes of its dictionaries.
    pub(crate) fn dictionary_bytes(&self) -> u64 {
        let sections =
            self.dictionaries.iter().flat_map(|dictionary| dictionary.blocks.iter().chain([&dictionary.index]));
        sections.map(|section| u64::from(section.len)).sum()
    }

    /// The dictionary that all of its values are in, if there is such a one.
    pub(crate) fn only_dictionary(&self) -> Option<&DictionaryMeta> {
        match self.dictionaries.as_slice() {
            [only] if self.chunks.iter().all(|chunk| chunk.dictionary.is_some()) => Some(only),
            _ => None,
        }
    }
}
