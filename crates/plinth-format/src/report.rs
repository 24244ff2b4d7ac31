//! Where a file's bytes are.

use std::collections::BTreeMap;

use plinth_encoding::expr::Scalar;
use plinth_encoding::{Encoding, Physical};

use crate::error::Result;
use crate::file::File;
use crate::footer::VERSION;
use crate::types::{Logical, Node};

/// A file, as `plinth inspect` shows it.
#[derive(Clone, Debug)]
pub struct FileReport {
    /// Format version.
    pub version: u32,
    /// The whole file.
    pub file_bytes: u64,
    /// Rows.
    pub rows: u64,
    /// Row groups.
    pub row_groups: u64,
    /// Most rows of a block.
    pub block_rows: u32,
    /// Footer and metadata of all columns.
    pub metadata_bytes: u64,
    /// One entry a stored column (struct fields and list items on their own), in schema order.
    pub columns: Vec<ColumnReport>,
}

/// One stored column: the values of a leaf, or the shape of a struct or list.
#[derive(Clone, Debug)]
pub struct ColumnReport {
    /// Dotted path; `[]` marks the items of a list.
    pub path: String,
    /// Logical type, as FORMAT.md names it.
    pub data_type: String,
    /// Values: rows, or items of lists.
    pub values: u64,
    /// Those that are null.
    pub nulls: u64,
    /// Blocks.
    pub blocks: u64,
    /// Bytes of the values in memory, as Arrow arrays.
    pub value_bytes: u64,
    /// Bytes of the blocks.
    pub block_bytes: u64,
    /// Its dictionaries, each of some row groups.
    pub dictionaries: u64,
    /// Their bytes.
    pub dictionary_bytes: u64,
    /// Their values: a value that several have is counted in each. `None` without a dictionary.
    pub dictionary_values: Option<u64>,
    /// Bytes of the postings; zero without any.
    pub index_bytes: u64,
    /// What the writer noted: why there are no further dictionaries.
    pub note: Option<String>,
    /// Bytes of the column's metadata.
    pub metadata_bytes: u64,
    /// How its blocks are encoded, most bytes first.
    pub encodings: Vec<EncodingReport>,
    /// Smallest and largest value, printed.
    pub min_max: Option<(String, String)>,
}

/// The blocks of one encoding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodingReport {
    /// The encoding; `dictionary` is put before the encoding of codes.
    pub name: String,
    /// Blocks.
    pub blocks: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl File {
    /// Where the bytes are: columns, encodings, blocks, dictionaries, metadata. Reads all metadata and no block.
    ///
    /// # Errors
    /// If metadata can't be read or is damaged.
    pub fn report(&self) -> Result<FileReport> {
        let mut columns = Vec::new();
        for column in &self.0.footer.tree.columns {
            self.report_node(column, &mut columns)?;
        }
        Ok(FileReport {
            version: VERSION,
            file_bytes: self.byte_len(),
            rows: self.num_rows(),
            row_groups: self.row_groups().len() as u64,
            block_rows: self.0.footer.block_rows,
            metadata_bytes: self.metadata_bytes(),
            columns,
        })
    }

    fn report_node(&self, node: &Node, columns: &mut Vec<ColumnReport>) -> Result<()> {
        let meta = self.0.stream_meta(node.stream)?;
        let mut encodings: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        for chunk in &meta.chunks {
            for block in &chunk.blocks {
                let name = Encoding::try_from(block.encoding).map_or("unknown", |encoding| encoding.name());
                let name = if chunk.dictionary.is_some() { format!("dictionary/{name}") } else { name.to_owned() };
                let entry = encodings.entry(name).or_default();
                entry.0 += 1;
                entry.1 += u64::from(block.len);
            }
        }
        let mut encodings: Vec<_> =
            encodings.into_iter().map(|(name, (blocks, bytes))| EncodingReport { name, blocks, bytes }).collect();
        encodings.sort_by_key(|encoding| std::cmp::Reverse(encoding.bytes));
        let show = |value: &Scalar| show(node, value);
        columns.push(ColumnReport {
            path: self.0.stream(node.stream).name.clone(),
            data_type: node.type_name(),
            values: meta.values,
            nulls: meta.nulls,
            blocks: meta.chunks.iter().map(|chunk| chunk.blocks.len() as u64).sum(),
            value_bytes: meta.value_bytes,
            block_bytes: meta.block_bytes(),
            dictionary_bytes: meta.dictionary_bytes(),
            dictionaries: meta.dictionaries.len() as u64,
            dictionary_values: (!meta.dictionaries.is_empty())
                .then(|| meta.dictionaries.iter().map(|dictionary| u64::from(dictionary.values)).sum()),
            index_bytes: meta.postings_bytes(),
            note: Some(meta.note.clone()).filter(|note| !note.is_empty()),
            metadata_bytes: self.0.footer.streams.get(node.stream).map_or(0, |section| u64::from(section.len)),
            encodings,
            min_max: meta.zone.as_ref().map(|zone| (show(&zone.bounds.min), show(&zone.bounds.max))),
        });
        node.children.iter().try_for_each(|child| self.report_node(child, columns))
    }
}

/// A bound as people write it, where Arrow can print it.
fn show(node: &Node, value: &Scalar) -> String {
    let Scalar::Int(number) = value else { return value.to_string().trim_matches('\'').to_owned() };
    if matches!(node.logical, Logical::Int { .. }) {
        return number.to_string();
    }
    let width = match node.physical() {
        Physical::Int { width, .. } | Physical::Wide { width } => usize::from(width),
        _ => return number.to_string(),
    };
    // The low bytes of a two's complement number are the number at any width that holds it; wider ones extend the sign.
    let mut bytes = number.to_le_bytes().to_vec();
    bytes.resize(width, if *number < 0 { 0xff } else { 0 });
    let array = arrow_data::ArrayData::builder(node.arrow_type())
        .len(1)
        .add_buffer(arrow_buffer::Buffer::from_vec(bytes))
        .align_buffers(true)
        .build();
    let shown =
        array.map(arrow_array::make_array).and_then(|array| arrow_cast::display::array_value_to_string(&array, 0));
    shown.unwrap_or_else(|_| number.to_string())
}
