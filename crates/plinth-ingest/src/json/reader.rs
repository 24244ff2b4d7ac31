//! The reader of rows: what the schema is, and the threads that decode.

use std::sync::Arc;

use arrow_schema::{Schema, SchemaRef};

use super::decode::{Decoder, Sampler};
use super::framing::{Framer, FramingOptions};
use super::path::Root;
use super::record::{EXTRA, Rules, VALUE};
use super::rows::{Rows, extra_field};
use super::tokenizer::Scratch;
use crate::bits::Level;
use crate::error::{IngestError, Result};
use crate::format::FileFormat;
use crate::options::{SourceOptions, Unknown};
use crate::stream::ahead::Ahead;
use crate::stream::feed::Feed;
use crate::stream::input::Input;
use crate::stream::output::{Decoded, Plan};
use crate::stream::sample::infer;
use crate::stream::text_source::TextSource;
use crate::values::types::{given_schema, unreadable};

/// Bytes of text in a chunk, about.
const CHUNK_BYTES: usize = 1 << 20;

/// Opens JSON whose columns are the keys of its rows.
pub(super) fn open(inputs: Vec<Arc<Input>>, options: &SourceOptions) -> Result<TextSource> {
    TextSource::open(inputs, options, start)
}

/// Infers the schema unless one is given, and starts to decode.
fn start(inputs: &[Arc<Input>], options: &SourceOptions) -> Result<(Arc<Plan>, Ahead<Decoded, IngestError>)> {
    let framing = framing_options(options)?;
    let feed = |inputs: &[Arc<Input>], target: usize| {
        let framing = FramingOptions { target: framing.target.min(target), ..framing.clone() };
        Feed::new(inputs.to_vec(), move |input| Framer::open(input, framing.clone()))
    };
    let unknown = if options.ignore_extra && options.schema.is_some() { Unknown::Report } else { options.json.unknown };
    let schema = match &options.schema {
        Some(schema) => given_schema(schema),
        None => infer(inputs, options, feed, || Sampler::new(framing.record, framing.level, framing.depth))?,
    };
    let schema = if unknown == Unknown::Extra { with_extra(&schema)? } else { schema };
    let plan = Arc::new(Plan::new(Arc::clone(&schema), options));
    // What lies between others in a record is not the record.
    let bare = match &options.whole {
        Some(whole) => is_bare(whole.names.iter().map(String::as_str)),
        None => is_bare(schema.fields().iter().map(|field| field.name().as_str())),
    };
    let rules = Rules { given: plan.given, bare, unknown };
    let rows = || {
        let rows = Rows::new(&schema, rules, plan.record);
        rows.map_err(|column| unreadable(&schema, column, FileFormat::Ndjson))
    };
    let workers = (0..options.threads.clamp(1, 64))
        .map(|_| {
            let scratch = Scratch::new(framing.depth);
            let scratch = if options.json.validate { scratch } else { scratch.unchecked(framing.level) };
            Ok(Decoder::new(Arc::clone(&plan), rows()?, framing.level, scratch))
        })
        .collect::<Result<Vec<_>>>()?;
    let ahead = Ahead::start(feed(inputs, usize::MAX), options.ahead_bytes, workers).map_err(IngestError::thread)?;
    Ok((plan, ahead))
}

/// Whether records are values as they are.
fn is_bare<'a>(mut names: impl Iterator<Item = &'a str>) -> bool {
    let mut has_value = false;
    names.all(|name| {
        has_value |= name == VALUE;
        name == VALUE || name == EXTRA
    }) && has_value
}

fn framing_options(options: &SourceOptions) -> Result<FramingOptions> {
    let root = options.json.root.as_deref().map(|text| {
        Root::parse(text).map_err(|why| IngestError::Option {
            what: format!("{text:?} is no path to rows: {why}; write it as a.b, $.a.b[*] or /a/b"),
        })
    });
    Ok(FramingOptions {
        target: options.chunk_bytes.unwrap_or(CHUNK_BYTES).max(1),
        record: options.record_bytes.max(1),
        root: root.transpose()?,
        depth: options.json.depth.max(1),
        level: options.level.unwrap_or_else(Level::best),
    })
}

/// A schema with a column for keys that it lacks.
fn with_extra(schema: &SchemaRef) -> Result<SchemaRef> {
    match schema.field_with_name(EXTRA) {
        Ok(field) if field == &extra_field() => Ok(Arc::clone(schema)),
        Ok(_) => {
            let what = format!("column {EXTRA:?} is for unknown keys, as text that may be null");
            Err(IngestError::Option { what })
        }
        Err(_) => {
            let fields = schema.fields().iter().cloned().chain([Arc::new(extra_field())]);
            Ok(Arc::new(Schema::new(fields.collect::<Vec<_>>())))
        }
    }
}
