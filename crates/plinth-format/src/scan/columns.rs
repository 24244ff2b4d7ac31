//! The columns of a Plinth file as the executor sees them.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock};

use arrow_array::ArrayRef;
use arrow_buffer::{BooleanBuffer, Buffer, ScalarBuffer};
use plinth_encoding::dictionary::Dictionary;
use plinth_encoding::expr::{Function, Path, Scalar};
use plinth_encoding::postings::{Codes, Postings};
use plinth_encoding::{
    Column, DictionaryAnswers, EncodingError, Mask, Physical, ValueSet, Values, ZoneMapResult, evaluate_column,
};
use plinth_io::{Prefetch, Priority};

use super::blocks::{Blocks, Decoded, Depth, Fetch};
use super::codes::{CodeValues, from_codes};
use super::postings::{cost, located, pays, scan_cost};
use super::predicate::call_on;
use super::source::{
    BlockId, ColumnCodes, ColumnId, ColumnPredicate, ColumnSource, Leaf, Located, Ran, Rows, ScanColumn,
};
use super::totals::{ColumnTotal, TotalOf};
use crate::access::Access;
use crate::answers::SharedAnswers;
use crate::assemble::{DecodeStream, assemble, leaf as leaf_array};
use crate::error::{FormatError, Result};
use crate::meta::Zone;
use crate::types::{Logical, Node};

/// A file's columns while one scan reads them.
#[derive(Debug)]
pub struct FileColumns {
    blocks: Blocks,
    nodes: Vec<Node>,
    /// The streams that the output needs.
    needed: HashMap<usize, Depth>,
    access: Access,
    /// Whether decimals of 128 bits come out in 64 where they are stored so.
    narrows: bool,
    /// What was begun to be read of the file for these columns.
    _under_way: Prefetch,
}

/// What a scan remembers of a predicate on one column.
#[derive(Debug, Default)]
pub struct LeafState {
    /// Of each of the column's dictionaries.
    dictionaries: OnceLock<Vec<DictionaryState>>,
    /// Of a function, the values it is true for, where text without a dictionary can be asked whether it has them.
    matching: OnceLock<Option<ValueSet>>,
}

/// What a scan remembers of a predicate on one dictionary.
#[derive(Debug, Default)]
struct DictionaryState {
    /// The codes of its values, once the dictionary was asked.
    codes: OnceLock<ValueSet>,
    /// A function's answers for the values of the dictionary, once it was asked about them.
    answers: OnceLock<Arc<SharedAnswers>>,
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
    pub(super) fn new(blocks: Blocks, access: Access, under_way: Prefetch) -> Self {
        Self { blocks, nodes: Vec::new(), needed: HashMap::new(), access, narrows: false, _under_way: under_way }
    }

    /// Has decimals of 128 bits come out in 64 where they are stored so.
    pub(super) fn narrowing(self) -> Self {
        Self { narrows: true, ..self }
    }

    /// What the codes of a column stand for.
    pub(super) fn code_values(&self, column: ColumnId, dictionary: &Arc<Dictionary>) -> Option<CodeValues> {
        let node = self.nodes.get(column)?;
        let file = &self.blocks.file;
        Some(CodeValues::new(file.source.name(), &file.stream(node.stream).name, node, Arc::clone(dictionary)))
    }

    fn stream(&self, leaf: &Leaf<LeafState>) -> usize {
        self.nodes[leaf.column].stream
    }

    /// What is remembered of a predicate on one of its column's dictionaries.
    fn state<'a>(&self, leaf: &'a Leaf<LeafState>, dictionary: usize) -> Result<&'a DictionaryState> {
        let (file, stream) = (&self.blocks.file, self.stream(leaf));
        let all = file.stream_meta(stream)?.dictionaries.len();
        let states = leaf.state.dictionaries.get_or_init(|| (0..all).map(|_| DictionaryState::default()).collect());
        states
            .get(dictionary)
            .ok_or_else(|| FormatError::internal(format!("nothing is known of dictionary {dictionary}")))
    }

    /// A set as the blocks of a chunk understand it, which hold values or the codes of a dictionary.
    fn set_for<'a>(
        &self,
        leaf: &'a Leaf<LeafState>,
        values: &'a ValueSet,
        dictionary: Option<usize>,
    ) -> Result<&'a ValueSet> {
        let Some(dictionary) = dictionary else { return Ok(values) };
        let state = self.state(leaf, dictionary)?;
        if let Some(codes) = state.codes.get() {
            return Ok(codes);
        }
        let (file, stream) = (&self.blocks.file, self.stream(leaf));
        let translated = file.dictionary(stream, dictionary)?.translate(values);
        let codes = translated
            .map_err(|e| FormatError::at(file.source.name(), file.dictionary_place(stream, dictionary), e))?;
        Ok(state.codes.get_or_init(|| codes))
    }

    /// The postings of a column's dictionaries, those that have chunks in some row groups, with codes of each; `None` if one has none.
    fn listed<'a>(
        &'a self,
        column: ColumnId,
        codes: &'a ColumnCodes,
        groups: Range<usize>,
    ) -> Result<Option<Vec<(&'a Postings, &'a Codes)>>> {
        let (file, stream) = (&self.blocks.file, self.nodes[column].stream);
        let chunks = file.stream_meta(stream)?.chunks.get(groups).unwrap_or_default();
        let mut used = vec![false; codes.0.len()];
        for dictionary in chunks.iter().filter_map(|chunk| chunk.dictionary) {
            used.get_mut(dictionary).into_iter().for_each(|used| *used = true);
        }
        let mut listed = Vec::new();
        for (dictionary, codes) in codes.0.iter().enumerate().filter(|(dictionary, _)| used[*dictionary]) {
            let Some(postings) = file.postings(stream, dictionary)? else { return Ok(None) };
            listed.push((&**postings, codes));
        }
        Ok(Some(listed))
    }

    /// Which rows of a block are in a set: on encoded data where its encoding can, else on decoded rows.
    fn evaluate_set(&mut self, stream: usize, rows: &Rows<'_>, set: &ValueSet) -> Result<Mask> {
        let at = rows.at;
        let fail = self.blocks.fail(stream, at);
        let mut scope = Cow::Borrowed(rows.scope);
        if self.blocks.decoded(stream, at).is_none() {
            let opened = self.blocks.open(stream, at)?;
            // What is likely in no row is asked of a few runs or words; what is found is decoded once more.
            let decodes = self.needed.contains_key(&stream) && opened.evaluates_by_decoding();
            if (!decodes || self.blocks.is_rare(stream, at, set)?)
                && let Some(mask) = opened.evaluate_selected(set, Some(rows.selection)).map_err(&fail)?
            {
                self.blocks.metrics.blocks_evaluated.fetch_add(1, Relaxed);
                return Ok(mask);
            }
            if rows.narrows
                && let Some(candidates) = opened.candidates(set).map_err(&fail)?
            {
                scope = Cow::Owned(rows.scope & &candidates);
            }
        }
        rows.ran(Ran::Decoded);
        let Decoded { column, physical, under } = self.blocks.decode_cached(stream, at, Some(&scope))?;
        let mask = evaluate_column(*physical, column, set).map_err(fail)?;
        Ok(match under {
            Some(under) => mask.spread(under),
            None => mask,
        })
    }

    fn evaluate_null(&mut self, column: ColumnId, rows: &Rows<'_>) -> Result<Mask> {
        let (stream, at) = (self.nodes[column].stream, rows.at);
        let fail = self.blocks.fail(stream, at);
        let len = self.blocks.meta(stream, at)?.values as usize;
        self.blocks.metrics.blocks_evaluated.fetch_add(1, Relaxed);
        if is_presence(&self.nodes[column]) {
            let Decoded { column, under, .. } = self.blocks.decode_cached(stream, at, None)?;
            let is_true = match &column.values {
                Values::Bool(present) => !present,
                _ => BooleanBuffer::new_unset(column.len),
            };
            let mask = Mask { is_true, is_null: None };
            // It may have been decoded before, for fewer rows.
            return Ok(match under {
                Some(under) => mask.spread(under),
                None => mask,
            });
        }
        let nulls = self.blocks.open(stream, at)?.nulls().map_err(fail)?;
        let is_true = nulls.map_or_else(|| BooleanBuffer::new_unset(len), |nulls| !nulls.inner());
        Ok(Mask { is_true, is_null: None })
    }

    /// A function of one column: once per distinct value where there is a dictionary, else on text as it is encoded if it asks
    /// for a pattern, else on decoded rows.
    fn evaluate_function(&mut self, leaf: &Leaf<LeafState>, function: &Function, rows: &Rows<'_>) -> Result<Mask> {
        let node = &self.nodes[leaf.column];
        let stream = node.stream;
        if node.is_leaf() {
            if let Some(dictionary) = self.blocks.chunk(stream, rows.at.group)?.dictionary {
                if let Some(answers) = self.answers(leaf, function, dictionary)? {
                    return self.apply(stream, rows, answers);
                }
            } else if let Some(set) = matching(leaf, function, node.physical()) {
                return self.evaluate_set(stream, rows, set);
            }
        }
        let decoded = self.decode_cached(leaf.column, rows.at, Some(rows.scope))?;
        let array = self.values(leaf.column, decoded)?;
        call_on(function, vec![array], rows)
    }

    /// A function's answers over a dictionary, which the scans of a query work out together.
    fn answers<'a>(
        &self,
        leaf: &'a Leaf<LeafState>,
        function: &Function,
        dictionary: usize,
    ) -> Result<Option<&'a DictionaryAnswers>> {
        let (file, node) = (&self.blocks.file, &self.nodes[leaf.column]);
        let shared = &self.state(leaf, dictionary)?.answers;
        let shared = shared.get_or_init(|| file.functions.entry(&function.function, node.stream, dictionary));
        let answers = match shared.known() {
            Some(known) => return Ok(known),
            None => shared.work_out(node, file.dictionary(node.stream, dictionary)?, function),
        };
        let place = || file.dictionary_place(node.stream, dictionary);
        answers.map_err(|e| FormatError::at(file.source.name(), place(), e))
    }

    /// Selected rows of a column, cached for later questions if it is to `keep` them.
    fn decoded(
        &mut self,
        column: ColumnId,
        at: BlockId,
        selection: Option<&BooleanBuffer>,
        keep: bool,
    ) -> Result<ScanColumn> {
        let node = self.nodes[column].clone();
        let mut streams = BlockStreams { blocks: &mut self.blocks, at, keep };
        if node.is_leaf()
            && let Some(dictionary) = streams.blocks.chunk(node.stream, at.group)?.dictionary
        {
            let (Column { len, values, nulls }, _) = streams.column(&node, selection)?;
            let Values::Fixed(codes) = values else {
                return Err(self.blocks.fail(node.stream, at)(EncodingError::corrupt("codes that are no integers")));
            };
            let dictionary = Arc::clone(self.blocks.file.dictionary(node.stream, dictionary)?);
            return Ok(ScanColumn::Codes { ids: ScalarBuffer::new(codes, 0, len), nulls, dictionary });
        }
        if streams.blocks.narrow.contains(&node.stream) {
            let (column, physical) = streams.column(&node, selection)?;
            return match (physical, column.values) {
                (Physical::Int { .. }, Values::Fixed(values)) => {
                    Ok(ScanColumn::Narrow { values: words(values, column.len), nulls: column.nulls })
                }
                (_, values) => {
                    let array = leaf_array(&node, Column { values, ..column });
                    Ok(ScanColumn::Arrow(array.map_err(self.blocks.fail(node.stream, at))?))
                }
            };
        }
        let array = assemble(&node, selection, &mut streams);
        Ok(ScanColumn::Arrow(array.map_err(self.blocks.fail(node.stream, at))?))
    }

    fn apply(&mut self, stream: usize, rows: &Rows<'_>, answers: &DictionaryAnswers) -> Result<Mask> {
        let is_true = self.evaluate_set(stream, rows, &answers.is_true)?;
        let unknown = match &answers.is_null {
            Some(codes) => Some(self.evaluate_set(stream, rows, codes)?.is_true),
            None => None,
        };
        Ok(answers.merge(is_true, unknown))
    }
}

/// Integers of 64 bits, which lie as these must.
fn words(values: Buffer, len: usize) -> ScalarBuffer<i64> {
    if values.as_ptr().addr().is_multiple_of(align_of::<i64>()) {
        return ScalarBuffer::new(values, 0, len);
    }
    values.as_chunks::<8>().0.iter().map(|value| i64::from_le_bytes(*value)).collect()
}

/// The values that a function is true for, if it asks whether text is of a pattern.
fn matching<'a>(leaf: &'a Leaf<LeafState>, function: &Function, physical: Physical) -> Option<&'a ValueSet> {
    let is_text = physical == Physical::Bytes { utf8: true };
    let set = || {
        let (pattern, negated) = function.function.pattern()?;
        let set = ValueSet::BytesLike(pattern);
        Some(if negated { ValueSet::Not(Box::new(set)) } else { set })
    };
    leaf.state.matching.get_or_init(|| set().filter(|_| is_text)).as_ref()
}

fn is_presence(node: &Node) -> bool {
    !node.is_leaf() && node.physical() == Physical::Bool
}

impl ColumnSource for FileColumns {
    type LeafState = LeafState;
    type Fetch = Fetch;

    fn bytes_a_wait(&self) -> u64 {
        self.blocks.file.source.bytes_a_wait()
    }

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

    fn physical(&self, column: ColumnId) -> Result<Physical> {
        let node = &self.nodes[column];
        if node.is_leaf() {
            return Ok(node.physical());
        }
        let what = format!("column {:?}: a {} can't be compared with a constant", self.name(column), node.type_name());
        Err(FormatError::InvalidArgument(what))
    }

    fn codes(&self, leaf: &Leaf<LeafState>) -> Result<Option<(ColumnId, ColumnCodes)>> {
        let meta = self.blocks.file.stream_meta(self.stream(leaf))?;
        if meta.dictionaries.is_empty() || meta.dictionaries.iter().any(|dictionary| dictionary.postings.is_none()) {
            return Ok(None);
        }
        let mut codes = Vec::with_capacity(meta.dictionaries.len());
        for (at, dictionary) in meta.dictionaries.iter().enumerate() {
            let of = |set: &ValueSet| Codes::of(set, dictionary.values);
            codes.push(match &leaf.predicate {
                ColumnPredicate::IsNull => return Ok(None),
                ColumnPredicate::In(values) => of(self.set_for(leaf, values, Some(at))?),
                ColumnPredicate::Function(function) => match self.answers(leaf, function, at)? {
                    Some(answers) if answers.of_null != Some(true) || meta.nulls == 0 => of(&answers.is_true),
                    _ => return Ok(None),
                },
            });
        }
        Ok(Some((leaf.column, ColumnCodes(codes))))
    }

    fn estimate_rows(&self, column: ColumnId, codes: &ColumnCodes, groups: Range<usize>) -> Result<Option<u64>> {
        let (file, stream) = (&self.blocks.file, self.nodes[column].stream);
        let Some(listed) = self.listed(column, codes, groups.clone())? else { return Ok(None) };
        let cost = cost(&listed);
        let asked = match self.access {
            Access::Scan => false,
            Access::Postings => true,
            Access::Auto => pays(&cost, scan_cost(file, stream, groups)?),
        };
        Ok(asked.then_some(cost.rows))
    }

    fn locate(&self, column: ColumnId, codes: &ColumnCodes, groups: Range<usize>) -> Result<Option<Located>> {
        let (file, stream) = (&self.blocks.file, self.nodes[column].stream);
        let Some(listed) = self.listed(column, codes, groups.clone())? else { return Ok(None) };
        let within = file.first_row(groups.start)..file.first_row(groups.end);
        let place = format!("column {:?}: postings", file.stream(stream).name);
        match located(&listed, within, file.io().budget()) {
            Ok((rows, memory)) => Ok(Some(Located { rows, memory, bytes: cost(&listed).bytes })),
            Err(error) => match FormatError::at(file.source.name(), place, error) {
                FormatError::Memory(_) => Ok(None),
                error => Err(error),
            },
        }
    }

    fn is_coded(&self, column: ColumnId, group: usize) -> Result<bool> {
        Ok(self.blocks.chunk(self.nodes[column].stream, group)?.dictionary.is_some())
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

    fn zone_map_result(&self, leaf: &Leaf<LeafState>, at: BlockId) -> Result<ZoneMapResult> {
        let stream = self.stream(leaf);
        let chunk = self.blocks.chunk(stream, at.group)?;
        let meta = self.blocks.meta(stream, at)?;
        let (nulls, rows) = (Some(u64::from(meta.nulls)), u64::from(meta.values));
        match &leaf.predicate {
            ColumnPredicate::IsNull => Ok(ZoneMapResult::of_is_null(nulls, rows)),
            ColumnPredicate::In(values) => {
                let of_values = match &meta.zone {
                    // Where all is null the dictionary need not be asked.
                    Some(zone) if meta.nulls < meta.values => {
                        self.set_for(leaf, values, chunk.dictionary)?.zone_map_result(&zone.bounds)
                    }
                    _ => ZoneMapResult::ANYTHING,
                };
                Ok(of_values.beside_nulls(nulls, rows))
            }
            ColumnPredicate::Function(_) => Ok(ZoneMapResult::ANYTHING),
        }
    }

    fn total(&self, column: ColumnId, of: &TotalOf, at: BlockId) -> Result<Option<ColumnTotal>> {
        let node = &self.nodes[column];
        // What is null because a struct around it is is not counted with the field's blocks.
        if !node.is_leaf() || of.column.parts().len() != 1 {
            return Ok(None);
        }
        let meta = self.blocks.meta(node.stream, at)?;
        let values = u64::from(meta.values.saturating_sub(meta.nulls));
        let mut total = ColumnTotal { values, ..ColumnTotal::default() };
        if of.sum {
            match self.blocks.file.block_sum(node.stream, at.group, at.block)? {
                Some(sum) => total.sum = sum,
                None => return Ok(None),
            }
        }
        if of.bounds && values > 0 {
            let coded = self.blocks.chunk(node.stream, at.group)?.dictionary.is_some();
            total.bounds = match meta.zone.as_ref().filter(|zone| !coded && zone.exact == (true, true)) {
                Some(Zone { bounds, .. }) => match (&bounds.min, &bounds.max) {
                    (Scalar::Int(min), Scalar::Int(max)) => Some((*min, *max)),
                    _ => return Ok(None),
                },
                None => return Ok(None),
            };
        }
        Ok(Some(total))
    }

    fn size(&self, column: ColumnId, at: BlockId) -> Result<u64> {
        self.nodes[column].streams().map(|stream| Ok(u64::from(self.blocks.meta(stream, at)?.len))).sum()
    }

    fn start(&self, wanted: &[(ColumnId, BlockId)], priority: Priority) -> Result<Option<Fetch>> {
        let streams =
            |&(column, at): &(ColumnId, BlockId)| self.nodes[column].streams().map(move |stream| (stream, at));
        self.blocks.start(wanted.iter().flat_map(streams), priority)
    }

    fn finish(&mut self, fetch: Fetch) -> Result<()> {
        self.blocks.finish(fetch)
    }

    fn evaluate(&mut self, leaf: &Leaf<LeafState>, rows: &Rows<'_>) -> Result<Mask> {
        match &leaf.predicate {
            ColumnPredicate::IsNull => self.evaluate_null(leaf.column, rows),
            ColumnPredicate::In(values) => {
                let stream = self.stream(leaf);
                let dictionary = self.blocks.chunk(stream, rows.at.group)?.dictionary;
                let set = self.set_for(leaf, values, dictionary)?;
                self.evaluate_set(stream, rows, set)
            }
            ColumnPredicate::Function(function) => self.evaluate_function(leaf, function, rows),
        }
    }

    fn decode_cached(&mut self, column: ColumnId, at: BlockId, scope: Option<&BooleanBuffer>) -> Result<ScanColumn> {
        self.decoded(column, at, scope, true)
    }

    fn set_output(&mut self, output: &[ColumnId]) {
        let streams = output.iter().flat_map(|&column| {
            let node = &self.nodes[column];
            node.streams().filter_map(move |stream| Some((stream, depth_of(node, stream)?)))
        });
        self.needed = streams.collect();
        if self.narrows {
            let is_wide = |node: &&Node| node.is_leaf() && node.physical() == Physical::Wide { width: 16 };
            let wide = output.iter().filter_map(|&column| self.nodes.get(column)).filter(is_wide);
            self.blocks.narrow = wide.map(|node| node.stream).collect();
        }
    }

    fn max_retained_bytes(&self, column: ColumnId, at: BlockId) -> Result<u64> {
        let needed = |stream: &usize| self.needed.contains_key(stream);
        let streams = self.nodes[column].streams().filter(needed);
        streams.map(|stream| self.blocks.decoded_at_most(stream, at)).sum()
    }

    fn retain_selected(&mut self, at: BlockId, selection: &BooleanBuffer, wait: bool) -> Result<u64> {
        let needed = &self.needed;
        self.blocks.retain_selected(at, selection, wait, |stream| needed.get(&stream).copied())
    }

    fn decode(&mut self, column: ColumnId, at: BlockId, selection: Option<&BooleanBuffer>) -> Result<ScanColumn> {
        self.decoded(column, at, selection, false)
    }

    fn values(&self, column: ColumnId, decoded: ScanColumn) -> Result<ArrayRef> {
        match decoded {
            ScanColumn::Arrow(array) => Ok(array),
            ScanColumn::Narrow { values, nulls } => {
                let node = &self.nodes[column];
                let narrow = Column { len: values.len(), values: Values::Fixed(values.into_inner()), nulls };
                let place = || format!("column {:?}", self.blocks.file.stream(node.stream).name);
                let array = leaf_array(node, narrow.widened());
                array.map_err(|e| FormatError::at(self.blocks.file.source.name(), place(), e))
            }
            ScanColumn::Codes { ids, nulls, dictionary } => {
                let node = &self.nodes[column];
                let place = format!("column {:?}: dictionary", self.blocks.file.stream(node.stream).name);
                from_codes(node, &ids, nulls, |codes| dictionary.gather(codes))
                    .map_err(|e| FormatError::at(self.blocks.file.source.name(), place, e))
            }
        }
    }

    fn release(&mut self, at: BlockId) {
        self.blocks.release(at);
    }
}

/// The streams of one block, for `assemble`.
struct BlockStreams<'a> {
    blocks: &'a mut Blocks,
    at: BlockId,
    /// Whether to keep what is decoded.
    keep: bool,
}

impl BlockStreams<'_> {
    fn column(&mut self, node: &Node, selection: Option<&BooleanBuffer>) -> Result<(Column, Physical)> {
        if self.keep {
            self.blocks.decode_cached(node.stream, self.at, selection)?;
        }
        self.blocks.column(node.stream, self.at, selection)
    }
}

impl DecodeStream for BlockStreams<'_> {
    fn shape(&mut self, node: &Node, selection: Option<&BooleanBuffer>) -> plinth_encoding::Result<Column> {
        Ok(self.column(node, selection).map_err(wrap)?.0)
    }

    fn leaf(&mut self, node: &Node, selection: Option<&BooleanBuffer>) -> plinth_encoding::Result<ArrayRef> {
        let dictionary = self.blocks.chunk(node.stream, self.at.group).map_err(wrap)?.dictionary;
        let (column, physical) = self.column(node, selection).map_err(wrap)?;
        let Some(dictionary) = dictionary else {
            // A field of a struct may come alone, and within it.
            let is_narrow = physical != node.physical();
            return leaf_array(node, if is_narrow { column.widened() } else { column });
        };
        let Values::Fixed(codes) = column.values else {
            return Err(EncodingError::corrupt("codes that are no integers"));
        };
        let ids = ScalarBuffer::new(codes, 0, column.len);
        let dictionary = self.blocks.file.dictionary(node.stream, dictionary).map_err(wrap)?;
        from_codes(node, &ids, column.nulls, |codes| dictionary.gather(codes))
    }
}

/// A file-level error on its way through the decoder, which hands it back as it is.
fn wrap(error: FormatError) -> EncodingError {
    EncodingError::Fetch(Arc::new(error))
}
