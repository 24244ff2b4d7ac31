//! The columns of a Plinth file as the executor sees them.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock};

use arrow_array::{ArrayRef, new_null_array};
use arrow_buffer::{BooleanBuffer, NullBuffer, ScalarBuffer};
use plinth_encoding::dictionary::Dictionary;
use plinth_encoding::expr::{Function, Path};
use plinth_encoding::postings::Codes;
use plinth_encoding::{Column, EncodingError, Mask, Physical, Test, Values, Verdict, evaluate_column};

use plinth_io::Need;
use plinth_profile::{Stage, scope};

use super::blocks::{Blocks, Decoded, Depth, Fetch};
use super::predicate::call_on;
use super::source::{BlockId, ColumnId, ColumnSource, LeafExpr, Located, Possible, Ran, Rows, ScanColumn};
use super::truth::{SharedTruth, Truth};
use crate::assemble::{DecodeStream, assemble, leaf};
use crate::error::{FormatError, Result};
use crate::lookup::{Access, located, pays, scan_cost};
use crate::shred::VIEW_BYTES;
use crate::types::{Logical, Node};

/// A file's columns while one scan reads them.
#[derive(Debug)]
pub struct FileColumns {
    blocks: Blocks,
    nodes: Vec<Node>,
    /// The streams that the output needs.
    needed: HashMap<usize, Depth>,
    access: Access,
}

/// A prepared predicate on one column.
#[derive(Debug)]
pub struct Leaf {
    column: ColumnId,
    stream: usize,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// On values, and on codes once the dictionary was asked.
    Test {
        values: Test,
        codes: OnceLock<Test>,
    },
    IsNull,
    Function {
        function: Function,
        truth: OnceLock<Arc<SharedTruth>>,
    },
}

/// What can be dropped of a node's stream with rows; `None` if it is not the node's.
fn depth_of(node: &Node, stream: usize) -> Option<Depth> {
    // Which items the selected rows own is told by the lengths of all rows.
    let is_list = matches!(node.logical, Logical::List | Logical::Map { .. });
    if node.stream == stream {
        return Some(if is_list { Depth::Whole } else { Depth::Rows });
    }
    let below = node.children.iter().find_map(|child| depth_of(child, stream))?;
    Some(if matches!(node.logical, Logical::Struct) { below } else { Depth::Whole })
}

impl FileColumns {
    pub(super) fn new(blocks: Blocks, access: Access) -> Self {
        Self { blocks, nodes: Vec::new(), needed: HashMap::new(), access }
    }

    fn dictionary(&self, stream: usize) -> Result<&Arc<Dictionary>> {
        dictionary(&self.blocks, stream)
    }

    /// A test as the chunk's blocks understand it.
    fn test_for<'a>(
        &self,
        leaf: &'a Leaf,
        values: &'a Test,
        codes: &'a OnceLock<Test>,
        coded: bool,
    ) -> Result<&'a Test> {
        if !coded {
            return Ok(values);
        }
        if let Some(test) = codes.get() {
            return Ok(test);
        }
        let place = format!("column {:?}: dictionary", self.blocks.file.stream(leaf.stream).name);
        let test = self
            .dictionary(leaf.stream)?
            .translate(values)
            .map_err(|e| FormatError::at(self.blocks.file.source.name(), place, e))?;
        Ok(codes.get_or_init(|| test))
    }

    /// A test on a block: on encoded data where its encoding can, else on decoded rows.
    fn evaluate_test(&mut self, stream: usize, rows: &Rows<'_>, test: &Test) -> Result<Mask> {
        let at = rows.at;
        let fail = self.blocks.fail(stream, at);
        let mut scope = Cow::Borrowed(rows.scope);
        if self.blocks.decoded(stream, at).is_none() {
            let (opened, _) = self.blocks.open(stream, at)?;
            let comes_out = self.needed.contains_key(&stream);
            if !(comes_out && opened.evaluates_by_decoding())
                && let Some(mask) = opened.evaluate(test).map_err(&fail)?
            {
                self.blocks.metrics.blocks_evaluated.fetch_add(1, Relaxed);
                return Ok(mask);
            }
            if rows.narrows
                && let Some(candidates) = opened.candidates(test).map_err(&fail)?
            {
                scope = Cow::Owned(rows.scope & &candidates);
            }
        }
        rows.ran(Ran::Decoded);
        let coded = self.blocks.chunk(stream, at.group)?.coded;
        let physical = if coded { Physical::CODES } else { self.blocks.file.stream(stream).physical };
        let Decoded { column, under } = self.blocks.look(stream, at, Some(&scope))?;
        let mask = evaluate_column(physical, column, test).map_err(fail)?;
        Ok(match under {
            Some(under) => mask.spread(under),
            None => mask,
        })
    }

    fn evaluate_null(&mut self, column: ColumnId, rows: &Rows<'_>) -> Result<Mask> {
        let (stream, at) = (self.nodes[column].stream, rows.at);
        let fail = self.blocks.fail(stream, at);
        let len = self.blocks.meta(stream, at)?.values as usize;
        let is_true = if is_presence(&self.nodes[column]) {
            match &self.blocks.look(stream, at, None)?.column.values {
                Values::Bool(present) => !present,
                _ => BooleanBuffer::new_unset(len),
            }
        } else {
            let nulls = self.blocks.open(stream, at)?.0.nulls().map_err(fail)?;
            nulls.map_or_else(|| BooleanBuffer::new_unset(len), |nulls| !nulls.inner())
        };
        self.blocks.metrics.blocks_evaluated.fetch_add(1, Relaxed);
        Ok(Mask { is_true, is_null: None })
    }

    /// A function of one column: once per distinct value where there is a dictionary, else on decoded rows.
    fn evaluate_function(
        &mut self,
        leaf: &Leaf,
        function: &Function,
        truth: &OnceLock<Arc<SharedTruth>>,
        rows: &Rows<'_>,
    ) -> Result<Mask> {
        let node = &self.nodes[leaf.column];
        if node.is_leaf()
            && self.blocks.chunk(leaf.stream, rows.at.group)?.coded
            && let Some(truth) = self.truth(node, function, truth)?
        {
            return self.apply(leaf.stream, rows, truth);
        }
        let decoded = self.look(leaf.column, rows.at, Some(rows.scope))?;
        let array = self.values(leaf.column, decoded)?;
        call_on(function, vec![array], rows)
    }

    /// A function's answers over the dictionary, which the scans of a query work out together.
    fn truth<'a>(
        &self,
        node: &Node,
        function: &Function,
        truth: &'a OnceLock<Arc<SharedTruth>>,
    ) -> Result<Option<&'a Truth>> {
        let file = &self.blocks.file;
        let shared = truth.get_or_init(|| file.functions.entry(&function.function, node.stream));
        let answers = match shared.known() {
            Some(known) => return Ok(known),
            None => shared.work_out(node, self.dictionary(node.stream)?, function),
        };
        let place = || format!("column {:?}: dictionary", file.stream(node.stream).name);
        answers.map_err(|e| FormatError::at(file.source.name(), place(), e))
    }

    /// Selected rows of a column. To look at them is to keep them for those who ask later.
    fn decoded(
        &mut self,
        column: ColumnId,
        at: BlockId,
        selection: Option<&BooleanBuffer>,
        keep: bool,
    ) -> Result<ScanColumn> {
        let node = self.nodes[column].clone();
        let mut streams = BlockStreams { blocks: &mut self.blocks, at, keep };
        if node.is_leaf() && streams.blocks.chunk(node.stream, at.group)?.coded {
            let Column { len, values, nulls } = streams.column(&node, selection)?;
            let Values::Fixed(codes) = values else {
                return Err(self.blocks.fail(node.stream, at)(EncodingError::corrupt("codes that are no integers")));
            };
            let dictionary = Arc::clone(self.dictionary(node.stream)?);
            return Ok(ScanColumn::Codes { ids: ScalarBuffer::new(codes, 0, len), nulls, dictionary });
        }
        let array = assemble(&node, selection, &mut streams);
        Ok(ScanColumn::Arrow(array.map_err(self.blocks.fail(node.stream, at))?))
    }

    fn apply(&mut self, stream: usize, rows: &Rows<'_>, truth: &Truth) -> Result<Mask> {
        let Mask { mut is_true, is_null: nulls } = self.evaluate_test(stream, rows, &truth.is_true)?;
        let mut is_null = match &truth.is_null {
            Some(test) => Some(self.evaluate_test(stream, rows, test)?.is_true),
            None => None,
        };
        if let Some(nulls) = nulls {
            match truth.of_null {
                Some(true) => is_true = &is_true | &nulls,
                Some(false) => {}
                None => is_null = Some(is_null.map_or_else(|| nulls.clone(), |known| &known | &nulls)),
            }
        }
        Ok(Mask { is_true, is_null })
    }
}

fn is_presence(node: &Node) -> bool {
    !node.is_leaf() && node.physical() == Physical::Bool
}

impl ColumnSource for FileColumns {
    type Leaf = Leaf;
    type Fetch = Fetch;

    fn resolve(&mut self, path: &Path) -> Result<ColumnId> {
        let (node, _) = self.blocks.file.node(path)?;
        if let Some(known) = self.nodes.iter().position(|known| known.stream == node.stream) {
            return Ok(known);
        }
        self.nodes.push(node.clone());
        Ok(self.nodes.len() - 1)
    }

    fn name(&self, column: ColumnId) -> &str {
        &self.blocks.file.stream(self.nodes[column].stream).name
    }

    fn prepare(&self, column: ColumnId, leaf: &LeafExpr) -> Result<Leaf> {
        let node = &self.nodes[column];
        let fail = |e: EncodingError| FormatError::InvalidArgument(format!("column {:?}: {e}", node.name));
        let test = |test: plinth_encoding::Result<Test>| {
            if node.is_leaf() {
                Ok(Kind::Test { values: test.map_err(fail)?, codes: OnceLock::new() })
            } else {
                let what = format!("column {:?}: a {} can't be compared with a constant", node.name, node.type_name());
                Err(FormatError::InvalidArgument(what))
            }
        };
        let kind = match leaf {
            LeafExpr::Compare(op, value) => test(Test::compare(node.physical(), *op, value))?,
            LeafExpr::In(values) => test(Test::any_of(node.physical(), values))?,
            LeafExpr::IsNull => Kind::IsNull,
            LeafExpr::Function(function) => Kind::Function { function: function.clone(), truth: OnceLock::new() },
        };
        Ok(Leaf { column, stream: node.stream, kind })
    }

    fn both(&self, one: &Leaf, other: &Leaf) -> Option<Leaf> {
        match (&one.kind, &other.kind) {
            (Kind::Test { values: a, .. }, Kind::Test { values: b, .. }) if one.stream == other.stream => {
                let kind = Kind::Test { values: a.of_both(b)?, codes: OnceLock::new() };
                Some(Leaf { column: one.column, stream: one.stream, kind })
            }
            _ => None,
        }
    }

    fn codes(&self, leaf: &Leaf) -> Result<Option<(ColumnId, Codes)>> {
        let meta = self.blocks.file.stream_meta(leaf.stream)?;
        if meta.postings.is_none() {
            return Ok(None);
        }
        let values = self.dictionary(leaf.stream)?.len();
        let of = |test: &Test| Codes::of(test, u32::try_from(values).unwrap_or(u32::MAX));
        let codes = match &leaf.kind {
            Kind::IsNull => return Ok(None),
            Kind::Test { values, codes } => of(self.test_for(leaf, values, codes, true)?),
            Kind::Function { function, truth } => match self.truth(&self.nodes[leaf.column], function, truth)? {
                Some(truth) if truth.of_null != Some(true) || meta.nulls == 0 => of(&truth.is_true),
                _ => return Ok(None),
            },
        };
        Ok(Some((leaf.column, codes)))
    }

    fn weigh(&self, column: ColumnId, codes: &Codes, groups: Range<usize>) -> Result<Option<u64>> {
        let (file, stream) = (&self.blocks.file, self.nodes[column].stream);
        let Some(postings) = file.postings(stream)? else { return Ok(None) };
        let cost = postings.cost(codes);
        let asked = match self.access {
            Access::Scan => false,
            Access::Postings => true,
            Access::Auto => pays(&cost, scan_cost(file, stream, groups)?),
        };
        Ok(asked.then_some(cost.rows))
    }

    fn locate(&self, column: ColumnId, codes: &Codes, groups: Range<usize>) -> Result<Option<Located>> {
        let (file, stream) = (&self.blocks.file, self.nodes[column].stream);
        let Some(postings) = file.postings(stream)? else { return Ok(None) };
        let within = file.first_row(groups.start)..file.first_row(groups.end);
        let place = format!("column {:?}: postings", file.stream(stream).name);
        match located(postings, codes, within, file.io().budget()) {
            Ok((rows, memory)) => Ok(Some(Located { rows, memory, bytes: postings.cost(codes).bytes })),
            Err(error) => match FormatError::at(file.source.name(), place, error) {
                FormatError::Memory(_) => Ok(None),
                error => Err(error),
            },
        }
    }

    fn is_coded(&self, column: ColumnId, group: usize) -> Result<bool> {
        Ok(self.blocks.chunk(self.nodes[column].stream, group)?.coded)
    }

    fn first_row(&self, at: BlockId) -> Result<u64> {
        let file = &self.blocks.file;
        Ok(file.first_row(at.group) + at.block as u64 * u64::from(file.footer.block_rows))
    }

    fn block_rows(&self, group: usize) -> Result<Vec<usize>> {
        let rows = self.blocks.file.footer.row_groups.get(group).copied();
        let rows = rows.ok_or_else(|| FormatError::InvalidArgument(format!("there is no row group {group}")))?;
        let block_rows = u64::from(self.blocks.file.footer.block_rows);
        Ok((0..rows.div_ceil(block_rows))
            .map(|i| usize::try_from((rows - i * block_rows).min(block_rows)).unwrap_or(usize::MAX))
            .collect())
    }

    fn possible(&self, leaf: &Leaf, at: BlockId) -> Result<Possible> {
        let chunk = self.blocks.chunk(leaf.stream, at.group)?;
        let meta = self.blocks.meta(leaf.stream, at)?;
        let is_null = meta.nulls > 0;
        match &leaf.kind {
            Kind::IsNull => Ok(Possible { is_true: is_null, is_false: meta.nulls < meta.values, is_null: false }),
            Kind::Test { values, codes } => {
                if meta.nulls == meta.values {
                    return Ok(Possible { is_true: false, is_false: false, is_null });
                }
                let verdict = match &meta.zone {
                    Some(zone) => self.test_for(leaf, values, codes, chunk.coded)?.verdict(&zone.bounds),
                    None => Verdict::Some,
                };
                Ok(Possible { is_true: verdict != Verdict::None, is_false: verdict != Verdict::All, is_null })
            }
            Kind::Function { .. } => Ok(Possible::ANYTHING),
        }
    }

    fn size(&self, column: ColumnId, at: BlockId) -> Result<u64> {
        self.nodes[column].streams().map(|stream| Ok(u64::from(self.blocks.meta(stream, at)?.len))).sum()
    }

    fn start(&self, wanted: &[(ColumnId, BlockId)], need: Need) -> Result<Option<Fetch>> {
        let streams =
            |&(column, at): &(ColumnId, BlockId)| self.nodes[column].streams().map(move |stream| (stream, at));
        self.blocks.start(wanted.iter().flat_map(streams), need)
    }

    fn finish(&mut self, fetch: Fetch) -> Result<()> {
        self.blocks.finish(fetch)
    }

    fn evaluate(&mut self, leaf: &Leaf, rows: &Rows<'_>) -> Result<Mask> {
        match &leaf.kind {
            Kind::IsNull => self.evaluate_null(leaf.column, rows),
            Kind::Test { values, codes } => {
                let coded = self.blocks.chunk(leaf.stream, rows.at.group)?.coded;
                let test = self.test_for(leaf, values, codes, coded)?;
                self.evaluate_test(leaf.stream, rows, test)
            }
            Kind::Function { function, truth } => self.evaluate_function(leaf, function, truth, rows),
        }
    }

    fn look(&mut self, column: ColumnId, at: BlockId, scope: Option<&BooleanBuffer>) -> Result<ScanColumn> {
        self.decoded(column, at, scope, true)
    }

    fn put_out(&mut self, output: &[ColumnId]) {
        let streams = output.iter().flat_map(|&column| {
            let node = &self.nodes[column];
            node.streams().filter_map(move |stream| Some((stream, depth_of(node, stream)?)))
        });
        self.needed = streams.collect();
    }

    fn keeps_at_most(&self, column: ColumnId, at: BlockId) -> Result<u64> {
        let needed = |stream: &usize| self.needed.contains_key(stream);
        let streams = self.nodes[column].streams().filter(needed);
        streams.map(|stream| self.blocks.decoded_at_most(stream, at)).sum()
    }

    fn settle(&mut self, at: BlockId, selection: &BooleanBuffer, wait: bool) -> Result<u64> {
        let needed = &self.needed;
        self.blocks.settle(at, selection, wait, |stream| needed.get(&stream).copied())
    }

    fn decode(&mut self, column: ColumnId, at: BlockId, selection: Option<&BooleanBuffer>) -> Result<ScanColumn> {
        self.decoded(column, at, selection, false)
    }

    fn values(&self, column: ColumnId, decoded: ScanColumn) -> Result<ArrayRef> {
        match decoded {
            ScanColumn::Arrow(array) => Ok(array),
            ScanColumn::Codes { ids, nulls, dictionary } => {
                let node = &self.nodes[column];
                let place = format!("column {:?}: dictionary", self.blocks.file.stream(node.stream).name);
                from_codes(node, &ids, nulls, &dictionary)
                    .map_err(|e| FormatError::at(self.blocks.file.source.name(), place, e))
            }
        }
    }

    fn release(&mut self, at: BlockId) {
        self.blocks.release(at);
    }
}

/// The values codes stand for. Null rows may hold any code, so they must not reach the dictionary.
fn from_codes(
    node: &Node,
    ids: &ScalarBuffer<u32>,
    nulls: Option<NullBuffer>,
    dictionary: &Dictionary,
) -> plinth_encoding::Result<ArrayRef> {
    let len = ids.len();
    let gather = scope(Stage::Gather);
    gather.rows(len as u64);
    gather.bytes((len * node.physical().fixed_width().unwrap_or(VIEW_BYTES)) as u64);
    let values = match &nulls {
        Some(nulls) if nulls.null_count() == len => return Ok(new_null_array(&node.arrow_type(), len)),
        Some(nulls) => {
            let ids: Vec<u32> = ids.iter().zip(nulls.iter()).map(|(&id, valid)| if valid { id } else { 0 }).collect();
            dictionary.gather(&ids)?
        }
        None => dictionary.gather(ids)?,
    };
    leaf(node, Column { len, values, nulls })
}

/// The streams of one block, for `assemble`.
struct BlockStreams<'a> {
    blocks: &'a mut Blocks,
    at: BlockId,
    /// Whether to keep what is decoded.
    keep: bool,
}

impl BlockStreams<'_> {
    fn column(&mut self, node: &Node, selection: Option<&BooleanBuffer>) -> Result<Column> {
        if self.keep {
            self.blocks.look(node.stream, self.at, selection)?;
        }
        self.blocks.column(node.stream, self.at, selection)
    }
}

impl DecodeStream for BlockStreams<'_> {
    fn shape(&mut self, node: &Node, selection: Option<&BooleanBuffer>) -> plinth_encoding::Result<Column> {
        self.column(node, selection).map_err(wrap)
    }

    fn leaf(&mut self, node: &Node, selection: Option<&BooleanBuffer>) -> plinth_encoding::Result<ArrayRef> {
        let coded = self.blocks.chunk(node.stream, self.at.group).map_err(wrap)?.coded;
        let column = self.column(node, selection).map_err(wrap)?;
        if !coded {
            return leaf(node, column);
        }
        let Values::Fixed(codes) = column.values else {
            return Err(EncodingError::corrupt("codes that are no integers"));
        };
        let ids = ScalarBuffer::new(codes, 0, column.len);
        let dictionary = dictionary(self.blocks, node.stream).map_err(wrap)?;
        from_codes(node, &ids, column.nulls, dictionary)
    }
}

/// The dictionary of a stream that holds codes.
fn dictionary(blocks: &Blocks, stream: usize) -> Result<&Arc<Dictionary>> {
    blocks.file.dictionary(stream)?.ok_or_else(|| {
        let what = format!("column {:?}: codes without a dictionary", blocks.file.stream(stream).name);
        FormatError::Corrupt { file: blocks.file.source.name().to_owned(), what }
    })
}

/// A file-level error on its way through the decoder, which hands it back as it is.
fn wrap(error: FormatError) -> EncodingError {
    EncodingError::Fetch(Arc::new(error))
}
