//! JSON as one stream of batches: lines, values one after the other, arrays, and arrays within a document.
//!
//! One thread at a time reads, decompresses and frames the files ([`framing`], over the bitmaps of [`bits`](crate::bits)):
//! chunks of whole records go to threads side by side, and token by token straight into columns ([`tokenizer`], [`node`]).
//! Records of doubles that follow one template are taken many at a time ([`template`]). What is around an array of rows is
//! checked as it goes by ([`path_reader`]). Memory grows with chunks and records, never with documents.

mod columns;
mod decode;
mod flaw;
mod framing;
mod infer;
mod members;
mod node;
mod number;
mod path;
mod path_reader;
mod reader;
mod record;
mod rows;
mod string;
mod template;
mod tokenizer;

use std::sync::Arc;

use crate::batch_source::BatchSource;
use crate::error::Result;
use crate::options::SourceOptions;
use crate::stream::input::Input;

/// Opens JSON; by its columns' paths if there are any.
pub(crate) fn open(inputs: Vec<Arc<Input>>, options: &SourceOptions) -> Result<Box<dyn BatchSource>> {
    if options.json.columns.is_empty() {
        return Ok(Box::new(reader::open(inputs, options)?));
    }
    columns::open(inputs, options)
}
