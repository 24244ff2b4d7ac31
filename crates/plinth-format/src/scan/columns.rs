//! The columns of a Plinth file as the executor sees them.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use arrow_array::{Array, ArrayRef, BooleanArray, new_null_array};
use arrow_buffer::{BooleanBuffer, NullBuffer, ScalarBuffer};
use plinth_encoding::dictionary::Dictionary;
use plinth_encoding::expr::{ColumnFunction, Function, Path};
use plinth_encoding::{Column, EncodingError, IntSet, Mask, Physical, Test, Values, Verdict, evaluate_column};

use plinth_io::Need;

use super::blocks::{Blocks, Fetch};
use super::predicate::scatter;
use super::source::{BlockId, ColumnId, ColumnSource, LeafExpr, Possible, ScanColumn};
use crate::assemble::{DecodeStream, assemble, leaf};
use crate::error::{FormatError, Result};
use crate::types::Node;

/// A file's columns while one scan reads them.
#[derive(Debug)]
pub(super) struct FileColumns {
    blocks: Blocks,
    nodes: Vec<Node>,
}

/// A prepared predicate on one column.
#[derive(Debug)]
pub(super) struct Leaf {
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
        truth: OnceLock<SharedTruth>,
    },
}

/// Answers over a dictionary that the scans of a query share; `None` inside if the function fails for some value.
type SharedTruth = Arc<OnceLock<Option<Truth>>>;

/// The answers of a function over a dictionary.
#[derive(Debug)]
pub(super) struct Truth {
    is_true: Test,
    /// Absent if it is never unknown.
    is_null: Option<Test>,
    of_null: Option<bool>,
}

/// Functions already evaluated over dictionaries, for as long as one of the scans that asked lives.
#[derive(Debug, Default)]
pub(crate) struct FunctionCache(Mutex<Vec<CachedTruth>>);

#[derive(Debug)]
struct CachedTruth {
    function: Weak<dyn ColumnFunction>,
    stream: usize,
    truth: SharedTruth,
}

impl FunctionCache {
    fn entry(&self, function: &Arc<dyn ColumnFunction>, stream: usize) -> SharedTruth {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        entries.retain(|entry| entry.function.strong_count() > 0);
        let same = |entry: &&CachedTruth| {
            let same = |known: Arc<dyn ColumnFunction>| Arc::ptr_eq(&known, function) || known.same_as(&**function);
            entry.stream == stream && entry.function.upgrade().is_some_and(same)
        };
        if let Some(entry) = entries.iter().find(same) {
            return Arc::clone(&entry.truth);
        }
        let truth = Arc::new(OnceLock::new());
        entries.push(CachedTruth { function: Arc::downgrade(function), stream, truth: Arc::clone(&truth) });
        truth
    }
}

impl FileColumns {
    pub(super) fn new(blocks: Blocks) -> Self {
        Self { blocks, nodes: Vec::new() }
    }

    fn dictionary(&self, stream: usize) -> Result<&Arc<Dictionary>> {
        self.blocks.file.dictionary(stream)?.ok_or_else(|| {
            let what = format!("column {:?}: codes without a dictionary", self.blocks.file.stream(stream).name);
            FormatError::Corrupt { file: self.blocks.file.source.name().to_owned(), what }
        })
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

    /// A test on a block: on encoded data where its encoding can, else decoded, and kept.
    fn evaluate_test(&mut self, stream: usize, at: BlockId, test: &Test) -> Result<Mask> {
        let fail = self.blocks.fail(stream, at);
        if !self.blocks.is_decoded(stream, at) {
            let (opened, _) = self.blocks.open(stream, at)?;
            if let Some(mask) = opened.evaluate(test).map_err(&fail)? {
                self.blocks.metrics.blocks_evaluated.fetch_add(1, Relaxed);
                return Ok(mask);
            }
        }
        let coded = self.blocks.chunk(stream, at.group)?.coded;
        let physical = if coded { Physical::CODES } else { self.blocks.file.stream(stream).physical };
        let column = self.blocks.whole(stream, at)?;
        evaluate_column(physical, column, test).map_err(fail)
    }

    fn evaluate_null(&self, stream: usize, at: BlockId) -> Result<Mask> {
        let fail = self.blocks.fail(stream, at);
        let (opened, _) = self.blocks.open(stream, at)?;
        let node_is_presence = self.nodes.iter().any(|node| node.stream == stream && is_presence(node));
        let rows = self.blocks.meta(stream, at)?.values as usize;
        let is_true = if node_is_presence {
            match opened.decode(None).map_err(fail)?.values {
                Values::Bool(present) => !&present,
                _ => BooleanBuffer::new_unset(rows),
            }
        } else {
            let nulls = opened.nulls().map_err(fail)?;
            nulls.map_or_else(|| BooleanBuffer::new_unset(rows), |nulls| !nulls.inner())
        };
        self.blocks.metrics.blocks_evaluated.fetch_add(1, Relaxed);
        Ok(Mask { is_true, is_null: None })
    }

    /// A function of one column: once per distinct value where there is a dictionary, else on decoded rows.
    fn evaluate_function(
        &mut self,
        leaf: &Leaf,
        function: &Function,
        truth: &OnceLock<SharedTruth>,
        at: BlockId,
        selection: &BooleanBuffer,
    ) -> Result<Mask> {
        let node = &self.nodes[leaf.column];
        if node.is_leaf() && self.blocks.chunk(leaf.stream, at.group)?.coded {
            let shared = truth.get_or_init(|| self.blocks.file.functions.entry(&function.function, leaf.stream));
            if shared.get().is_none() {
                let truth = self.truth(node, function)?;
                let _ = shared.set(truth);
            }
            if let Some(Some(truth)) = shared.get() {
                return self.apply(leaf.stream, at, truth);
            }
        }
        // All rows at once when most are selected: one decode then serves the output too.
        let dense = selection.count_set_bits() * 4 > selection.len();
        if dense {
            let decoded = self.decode_kept(leaf.column, at)?;
            let array = self.values(leaf.column, decoded)?;
            if let Ok(answers) = call(function, &array) {
                return Ok(scatter(&answers, None));
            }
        }
        let decoded = self.decode(leaf.column, at, Some(selection))?;
        let array = self.values(leaf.column, decoded)?;
        let answers = call(function, &array).map_err(FormatError::Function)?;
        Ok(scatter(&answers, Some(selection)))
    }

    /// Decodes a column whole; a leaf's values stay for the output.
    fn decode_kept(&mut self, column: ColumnId, at: BlockId) -> Result<ScanColumn> {
        let node = &self.nodes[column];
        if node.is_leaf() {
            let stream = node.stream;
            self.blocks.whole(stream, at)?;
        }
        self.decode(column, at, None)
    }

    /// A function's answers over the distinct values and null; `None` if it fails for some.
    fn truth(&self, node: &Node, function: &Function) -> Result<Option<Truth>> {
        let dictionary = self.dictionary(node.stream)?;
        let place = format!("column {:?}: dictionary", self.blocks.file.stream(node.stream).name);
        let fail = |e| FormatError::at(self.blocks.file.source.name(), &place, e);
        let null = new_null_array(&node.arrow_type(), 1);
        let Ok(of_null) = call(function, &null) else { return Ok(None) };
        let ask = |column: Column| -> Result<Option<Mask>> {
            let values = leaf(node, column).map_err(fail)?;
            Ok(call(function, &values).ok().map(|answers| scatter(&answers, None)))
        };
        let mut answers = Vec::new();
        match dictionary.values_within().map_err(fail)? {
            Some(decoded) => answers.push(ask(decoded.column())?),
            None => {
                // There is no room for all values at once.
                for block in 0..dictionary.blocks() {
                    answers.push(ask(dictionary.block_values(block).map_err(fail)?)?);
                }
            }
        }
        let Some(answers) = answers.into_iter().collect::<Option<Vec<_>>>() else { return Ok(None) };
        let Mask { is_true, is_null } = Mask::concat(&answers);
        let bits = |bits: BooleanBuffer| Test::IntSet(Arc::new(IntSet::Bits(bits)));
        Ok(Some(Truth {
            is_true: bits(is_true),
            is_null: is_null.map(bits),
            of_null: of_null.is_valid(0).then(|| of_null.value(0)),
        }))
    }

    fn apply(&mut self, stream: usize, at: BlockId, truth: &Truth) -> Result<Mask> {
        let Mask { mut is_true, is_null: nulls } = self.evaluate_test(stream, at, &truth.is_true)?;
        let mut is_null = match &truth.is_null {
            Some(test) => Some(self.evaluate_test(stream, at, test)?.is_true),
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

fn call(function: &Function, array: &ArrayRef) -> Result<BooleanArray, String> {
    let answers = function.function.evaluate(std::slice::from_ref(array))?;
    if answers.len() == array.len() {
        Ok(answers)
    } else {
        Err(format!("{} answered {} rows of {}", function.function.name(), answers.len(), array.len()))
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

    fn evaluate(&mut self, leaf: &Leaf, at: BlockId, selection: &BooleanBuffer) -> Result<Mask> {
        match &leaf.kind {
            Kind::IsNull => self.evaluate_null(leaf.stream, at),
            Kind::Test { values, codes } => {
                let coded = self.blocks.chunk(leaf.stream, at.group)?.coded;
                let test = self.test_for(leaf, values, codes, coded)?;
                self.evaluate_test(leaf.stream, at, test)
            }
            Kind::Function { function, truth } => self.evaluate_function(leaf, function, truth, at, selection),
        }
    }

    fn decode(&mut self, column: ColumnId, at: BlockId, selection: Option<&BooleanBuffer>) -> Result<ScanColumn> {
        let node = self.nodes[column].clone();
        if node.is_leaf() && self.blocks.chunk(node.stream, at.group)?.coded {
            let Column { len, values, nulls } = self.blocks.column(node.stream, at, selection)?;
            let Values::Fixed(codes) = values else {
                return Err(self.blocks.fail(node.stream, at)(EncodingError::corrupt("codes that are no integers")));
            };
            let dictionary = Arc::clone(self.dictionary(node.stream)?);
            return Ok(ScanColumn::Codes { ids: ScalarBuffer::new(codes, 0, len), nulls, dictionary });
        }
        let fail = self.blocks.fail(node.stream, at);
        let array = assemble(&node, selection, &mut BlockStreams { columns: self, at }).map_err(fail)?;
        Ok(ScanColumn::Arrow(array))
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
    columns: &'a FileColumns,
    at: BlockId,
}

impl DecodeStream for BlockStreams<'_> {
    fn shape(&mut self, node: &Node, selection: Option<&BooleanBuffer>) -> plinth_encoding::Result<Column> {
        self.columns.blocks.column(node.stream, self.at, selection).map_err(wrap)
    }

    fn leaf(&mut self, node: &Node, selection: Option<&BooleanBuffer>) -> plinth_encoding::Result<ArrayRef> {
        let coded = self.columns.blocks.chunk(node.stream, self.at.group).map_err(wrap)?.coded;
        let column = self.columns.blocks.column(node.stream, self.at, selection).map_err(wrap)?;
        if !coded {
            return leaf(node, column);
        }
        let Values::Fixed(codes) = column.values else {
            return Err(EncodingError::corrupt("codes that are no integers"));
        };
        let ids = ScalarBuffer::new(codes, 0, column.len);
        let dictionary = self.columns.dictionary(node.stream).map_err(wrap)?;
        from_codes(node, &ids, column.nulls, dictionary)
    }
}

/// A file-level error on its way through the decoder, which hands it back as it is.
fn wrap(error: FormatError) -> EncodingError {
    EncodingError::Fetch(Arc::new(error))
}
