//! Rows as blocks without a file around them: what a log carries.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_buffer::{BooleanBuffer, Buffer};
use arrow_schema::{Schema, SchemaRef};
use plinth_encoding::{Block, Column, Effort, EncodeOptions, EncodingError, Physical, encode};

use crate::assemble::{DecodeStream, assemble, leaf};
use crate::error::{FormatError, Result};
use crate::meta::MOST_BLOCK_VALUES;
use crate::shred::{normalise, shred};
use crate::types::{Node, Tree, sorted};
use crate::wire::{WireReader, WireWriter};

/// The columns of a table, and how its rows become bytes and rows again: for each stream the number of its values, the
/// length of its block, and the block, written with as little work as can be.
#[derive(Clone, Debug)]
pub struct RowCodec {
    tree: Arc<Tree>,
    schema: SchemaRef,
}

impl RowCodec {
    /// For rows of these columns.
    ///
    /// # Errors
    /// [`FormatError::Unsupported`] names the first column that can't be stored.
    pub fn new(schema: &Schema) -> Result<Self> {
        Ok(Self::of(Tree::from_arrow(schema)?))
    }

    fn of(tree: Tree) -> Self {
        Self { schema: Arc::new(tree.arrow_schema()), tree: Arc::new(tree) }
    }

    /// The same columns with other metadata of the table.
    #[must_use]
    pub fn with_metadata(&self, metadata: &HashMap<String, String>) -> Self {
        Self::of(Tree { metadata: sorted(metadata), ..Tree::clone(&self.tree) })
    }

    /// The columns as bytes, as a file's footer has them.
    pub fn schema_bytes(&self) -> Vec<u8> {
        let mut out = WireWriter::default();
        self.tree.write(&mut out);
        out.finish()
    }

    /// The columns that [`RowCodec::schema_bytes`] wrote.
    ///
    /// # Errors
    /// If the bytes are none.
    pub fn from_schema_bytes(bytes: &[u8]) -> plinth_encoding::Result<Self> {
        let mut wire = WireReader::new(bytes);
        let tree = Tree::read(&mut wire)?;
        wire.finish()?;
        Ok(Self::of(tree))
    }

    /// The columns as a scan of a file of them emits them.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Brings a batch to [`RowCodec::schema`]. Columns match by position.
    ///
    /// # Errors
    /// If the batch has other columns, or nulls where there are none.
    pub fn normalise(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        if batch.num_columns() != self.tree.columns.len() {
            let what = format!("a batch of {} columns for a table of {}", batch.num_columns(), self.tree.columns.len());
            return Err(FormatError::InvalidArgument(what));
        }
        let columns = self.tree.columns.iter().zip(batch.columns()).map(|(node, array)| {
            if !node.nullable && array.logical_null_count() > 0 {
                let what = format!("column {:?} is declared without nulls, but a batch holds some", node.name);
                return Err(FormatError::InvalidArgument(what));
            }
            normalise(array, &node.arrow_type())
                .map_err(|e| FormatError::InvalidArgument(format!("column {:?}: {e}", node.name)))
        });
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns.collect::<Result<_>>()?, &options)
            .map_err(|e| FormatError::InvalidArgument(e.to_string()))
    }

    /// Appends the bytes of a normalised batch.
    ///
    /// # Errors
    /// If the batch is not one, or too large for a block.
    pub fn encode(&self, batch: &RecordBatch, out: &mut Vec<u8>) -> Result<()> {
        let options = EncodeOptions { effort: Effort::Plain };
        for (node, array) in self.tree.columns.iter().zip(batch.columns()) {
            let fail = |what: String| FormatError::InvalidArgument(format!("column {:?}: {what}", node.name));
            let mut result = Ok(());
            let emit = &mut |node: &Node, column: Column| {
                if result.is_ok() {
                    result = encode_stream(node.physical(), &column, &options, out);
                }
            };
            shred(node, array, None, emit).map_err(|e| fail(e.to_string()))?;
            result.map_err(|e| fail(e.to_string()))?;
        }
        Ok(())
    }

    /// The rows that [`RowCodec::encode`] wrote: so many, of exactly these bytes.
    ///
    /// # Errors
    /// If the bytes are no such rows.
    pub fn decode(&self, bytes: &[u8], rows: usize) -> plinth_encoding::Result<RecordBatch> {
        let mut wire = WireReader::new(bytes);
        let mut streams = Streams { blocks: Vec::with_capacity(self.tree.streams()) };
        for column in &self.tree.columns {
            read_streams(column, &mut wire, &mut streams.blocks)?;
        }
        wire.finish()?;
        let columns = self
            .tree
            .columns
            .iter()
            .map(|node| {
                let array = assemble(node, None, &mut streams)?;
                if array.len() != rows {
                    let what = format!("column {:?} has {} rows of {rows}", node.name, array.len());
                    return Err(EncodingError::corrupt(what));
                }
                Ok(array)
            })
            .collect::<plinth_encoding::Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)
            .map_err(|e| EncodingError::corrupt(e.to_string()))
    }
}

fn encode_stream(
    physical: Physical,
    column: &Column,
    options: &EncodeOptions,
    out: &mut Vec<u8>,
) -> plinth_encoding::Result<()> {
    if column.len > MOST_BLOCK_VALUES as usize {
        let what = format!("{} values at once, more than {MOST_BLOCK_VALUES}; write fewer rows", column.len);
        return Err(EncodingError::invalid(what));
    }
    let mut block = Vec::new();
    encode(physical, column, options, &mut block)?;
    let mut wire = WireWriter::default();
    wire.len(column.len);
    wire.bytes(&block);
    out.extend_from_slice(&wire.finish());
    Ok(())
}

fn read_streams(node: &Node, wire: &mut WireReader<'_>, blocks: &mut Vec<Block>) -> plinth_encoding::Result<()> {
    let values = wire.varint_32()?;
    if values > MOST_BLOCK_VALUES {
        return Err(EncodingError::corrupt(format!("column {:?}: {values} values at once", node.name)));
    }
    // In memory of its own, as blocks want their values aligned.
    let bytes = Buffer::from_slice_ref(wire.bytes()?);
    blocks.push(Block::open(node.physical(), &bytes, values as usize)?);
    node.children.iter().try_for_each(|child| read_streams(child, wire, blocks))
}

/// The streams of some rows, for `assemble`.
struct Streams {
    blocks: Vec<Block>,
}

impl Streams {
    fn column(&self, node: &Node, selection: Option<&BooleanBuffer>) -> plinth_encoding::Result<Column> {
        let block = self.blocks.get(node.stream).ok_or_else(|| EncodingError::corrupt("a stream is missing"))?;
        block.decode(selection)
    }
}

impl DecodeStream for Streams {
    fn shape(&mut self, node: &Node, selection: Option<&BooleanBuffer>) -> plinth_encoding::Result<Column> {
        let mut column = self.column(node, selection)?;
        if let plinth_encoding::Values::Fixed(lengths) = &column.values {
            // Numbers are read aligned.
            let aligned = lengths.as_ptr().align_offset(align_of::<u32>()) == 0;
            if !aligned {
                column.values = plinth_encoding::Values::Fixed(Buffer::from_slice_ref(lengths.as_slice()));
            }
        }
        Ok(column)
    }

    fn leaf(&mut self, node: &Node, selection: Option<&BooleanBuffer>) -> plinth_encoding::Result<ArrayRef> {
        let column = self.column(node, selection)?;
        leaf(node, column)
    }
}
