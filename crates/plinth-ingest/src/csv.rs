//! CSV as one stream of batches.
//!
//! One thread at a time reads, decompresses and frames the files in chunks of whole records ([`framing`]), which are decoded side
//! by side ([`decode`]) and handed over in order.

mod decode;
mod field;
mod framing;
mod lines;
mod numbers;
mod records;
mod rows;
mod sniff;

use std::collections::HashSet;
use std::sync::Arc;

use arrow_schema::SchemaRef;

use crate::batch_source::BatchSource;
use crate::bits::Level;
use crate::error::{IngestError, Result};
use crate::format::FileFormat;
use crate::options::{CsvOptions, SourceOptions};
use crate::stream::ahead::Ahead;
use crate::stream::feed::{Chunks, Feed};
use crate::stream::input::Input;
use crate::stream::output::{Decoded, Plan};
use crate::stream::sample::infer;
use crate::stream::text_source::TextSource;
use crate::values::types::{given_schema, unreadable};
use decode::{Decoder, Layout, Sampler};
use framing::{Framer, FramingOptions};
use numbers::Numbers;
use rows::Rows;
use sniff::SniffOptions;

/// Bytes of text in a chunk, about.
const CHUNK_BYTES: usize = 2 << 20;

/// Opens CSV or TSV.
pub(crate) fn open(
    inputs: Vec<Arc<Input>>,
    format: FileFormat,
    options: &SourceOptions,
) -> Result<Box<dyn BatchSource>> {
    Ok(Box::new(TextSource::open(inputs, options, |inputs, options| start(inputs, format, options))?))
}

/// Starts to decode CSV.
fn start(
    inputs: &[Arc<Input>],
    format: FileFormat,
    options: &SourceOptions,
) -> Result<(Arc<Plan>, Ahead<Decoded, IngestError>)> {
    let framing = framing_options(format, options)?;
    let CsvOptions { nulls, thousands, decimal, .. } = &options.csv;
    let numbers = Numbers { thousands: *thousands, decimal: *decimal };
    let feed = |inputs: &[Arc<Input>], target: usize| {
        let framing = framing.smaller(target);
        Feed::new(inputs.to_vec(), move |input| Framer::open(input, framing.clone()))
    };
    let schema = match &options.schema {
        Some(schema) => given_schema(schema),
        None => infer(inputs, options, feed, || Sampler::new(framing.clone(), nulls.clone(), numbers))?,
    };
    let plan = Arc::new(Plan::new(Arc::clone(&schema), options));
    let ignore_extra = options.ignore_extra && options.schema.is_some();
    let plain = nulls.iter().all(String::is_empty);
    let layout = Arc::new(Layout::new(Arc::clone(&plan), ignore_extra, plain, framing.clone()));
    if plan.given && !inputs.iter().any(|input| input.is_stream()) {
        // Better now than after an hour.
        for input in inputs {
            if let Some(chunk) = Framer::open(Arc::clone(input), framing.smaller(4096))?.next_chunk()? {
                layout.columns(&input.path, &chunk.head.names)?;
            }
        }
        plan.check_all_seen()?;
    }
    let rows = || {
        let rows = Rows::new(&schema, plan.given, nulls.clone(), numbers);
        rows.map_err(|column| unreadable(&schema, column, format))
    };
    let workers = (0..options.threads.clamp(1, 64))
        .map(|_| Ok(Decoder::new(Arc::clone(&layout), rows()?)))
        .collect::<Result<Vec<_>>>()?;
    let ahead = Ahead::start(feed(inputs, usize::MAX), options.ahead_bytes, workers).map_err(IngestError::thread)?;
    Ok((plan, ahead))
}

fn names_of(schema: &SchemaRef) -> HashSet<String> {
    schema.fields().iter().map(|field| field.name().clone()).collect()
}

fn framing_options(format: FileFormat, options: &SourceOptions) -> Result<FramingOptions> {
    let usual = if format == FileFormat::Tsv { b'\t' } else { b',' };
    // Of inferred columns nothing was known when the header was told.
    let names = match &options.whole {
        Some(whole) => (!whole.inferred).then(|| Arc::clone(&whole.names)),
        None => options.schema.as_ref().map(|schema| Arc::new(names_of(schema))),
    };
    let sniffing = SniffOptions::new(&options.csv, usual, names);
    let sniffing = sniffing.map_err(|what| IngestError::Option { what: what.to_owned() })?;
    let level = options.level.unwrap_or_else(Level::best);
    let framing =
        FramingOptions::new(options.chunk_bytes.unwrap_or(CHUNK_BYTES), options.record_bytes, sniffing, level);
    Ok(framing.named(&options.csv.names))
}
