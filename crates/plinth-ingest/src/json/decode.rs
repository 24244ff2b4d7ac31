//! Chunks to batches, and to what a schema is inferred from.

use std::borrow::Cow;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use plinth_profile::{Stage, scope};

use super::flaw::Flaw;
use super::framing::{Chunk, Framing};
use super::infer::Samples;
use super::rows::Rows;
use super::template::Runs;
use super::tokenizer::{Scratch, Tokenizer};
use crate::bits::Level;
use crate::bits::brackets::{Between, Scan, Stop};
use crate::error::{IngestError, Result, before};
use crate::stream::ahead::{Item, Worker};
use crate::stream::fault::Fault;
use crate::stream::fault::Place;
use crate::stream::feed::TextChunk;
use crate::stream::output::{ChunkOutput, Decoded, Plan, panicked};
use crate::stream::sample::ChunkSampler;

/// A consumer of records.
trait RecordSink {
    /// Takes the value at the next token.
    fn take(&mut self, tokens: &mut Tokenizer<'_>) -> Result<Option<Fault>, Flaw>;
    /// What became of the record that was taken; answers whether more are wanted.
    fn done<'p>(&mut self, place: impl FnOnce() -> Place<'p>, what: Taken) -> Result<bool>;
    /// May take records after the sound one at `record`, its separator included, and says where the next starts and whether
    /// it is wanted.
    fn more(&mut self, _: &[u8], record: Range<usize>) -> Result<(usize, bool)> {
        Ok((record.end, true))
    }
}

/// What became of a record.
enum Taken {
    Sound,
    /// It was taken, but something is wrong with it.
    Fault(Fault),
    /// It can't be taken, or not as a whole.
    Broken(Cow<'static, str>),
}

fn too_large(limit: usize) -> String {
    format!(
        "larger than the {limit} bytes a record may have (--max-record); if rows are in an array within it, name that with --root"
    )
}

/// Where a record is in its chunk.
#[derive(Clone, Copy, Debug)]
struct Extent {
    /// The first byte after the separator before it.
    start: usize,
    /// Its first byte that is no space.
    first: usize,
    /// The first byte of the separator after it.
    end: usize,
    /// The first byte after that.
    next: usize,
}

/// Goes through the records of a chunk.
struct Records<'a> {
    chunk: &'a Chunk,
    limit: usize,
    level: Level,
    /// Lines before a byte, counted as far as they were needed.
    counted: (usize, u64),
}

impl<'a> Records<'a> {
    fn new(chunk: &'a Chunk, limit: usize, level: Level) -> Self {
        Self { chunk, limit, level, counted: (0, chunk.line) }
    }

    fn run(&mut self, scratch: &mut Scratch, to: &mut impl RecordSink) -> Result<()> {
        if let Framing::Oversized(len) = self.chunk.framing {
            let place = || Place { line: self.chunk.line, offset: self.chunk.offset, raw: &self.chunk.bytes, len };
            return to.done(place, Taken::Broken(too_large(self.limit).into())).map(drop);
        }
        let mut from = 0;
        // Between bytes that are not UTF-8 it goes as it goes without them.
        while let Some(next) = self.stretch(from, scratch, to)? {
            from = next;
        }
        Ok(())
    }

    /// Goes on at `from` to the end of the chunk, or to the end of the next record that is not UTF-8: then says where that is.
    fn stretch(&mut self, from: usize, scratch: &mut Scratch, to: &mut impl RecordSink) -> Result<Option<usize>> {
        let framing = self.chunk.framing;
        let lines = framing == Framing::Lines;
        let bytes = self.chunk.bytes.get(from..).unwrap_or_default();
        let structure = scope(Stage::Structure);
        structure.bytes(bytes.len() as u64);
        let (text, whole) = match simdutf8::compat::from_utf8(bytes) {
            Ok(text) => (text, true),
            Err(e) => {
                let valid = bytes.get(..e.valid_up_to()).map(std::str::from_utf8);
                (valid.and_then(Result::ok).unwrap_or_default(), false)
            }
        };
        drop(structure);
        let mut tokens = Tokenizer::new(text, scratch, lines);
        let mut start = 0;
        // To where what is between brackets is known to be small enough.
        let mut small = 0;
        // In an array a comma promises another element.
        let mut promised =
            from > 0 || !matches!(framing, Framing::Elements { first: true, .. } | Framing::Values | Framing::Lines);
        loop {
            let first = tokens.at();
            if lines && tokens.peek() == b'\n' {
                // A line of nothing; one that is too long would have been passed over by the framer.
                let extent = Extent { start, first, end: line_end(text.as_bytes(), start, first), next: first + 1 };
                if extent.end - start > self.limit && !self.too_large(from, extent, to)? {
                    return Ok(None);
                }
                tokens.pass();
                start = tokens.end();
                continue;
            }
            if first >= text.len() && whole {
                let ends = matches!(framing, Framing::Elements { last: true, .. });
                if ends && promised {
                    let extent = Extent { start, first, end: first, next: first };
                    let why = Taken::Broken("broken JSON: a comma with no value after it".into());
                    to.done(|| self.place(from, extent), why)?;
                }
                return Ok(None);
            }
            // Framing knows no values but those in brackets: what is before one counts as part of it.
            if framing == Framing::Values && start >= small && !matches!(tokens.peek(), b'{' | b'[') {
                small = self.raw(from, start, first).end;
            }
            let taken = match small.saturating_sub(start) > self.limit {
                true => Err(tokens.flaw("expected a JSON object")),
                false => to.take(&mut tokens),
            };
            let end = tokens.end();
            let taken = taken.and_then(|fault| Ok((fault, self.separator(&mut tokens, whole)?)));
            let (what, extent) = match taken {
                Ok((fault, separator)) => {
                    let end = if framing == Framing::Values { end } else { separator };
                    let next = if framing == Framing::Values { end } else { tokens.end().max(separator) };
                    let end = if lines { line_end(text.as_bytes(), start, end) } else { end };
                    (fault.map_or(Taken::Sound, Taken::Fault), Extent { start, first, end, next })
                }
                Err(flaw) => {
                    let extent = self.raw(from, start, first);
                    let (end, at) = (extent.end, flaw.at.saturating_sub(first));
                    let why = match (whole, end > text.len()) {
                        (false, true) => {
                            let at = text.len().saturating_sub(first);
                            format!("not UTF-8 text (at byte {at} of the record)")
                        }
                        _ => format!("broken JSON: {} (at byte {at} of the record)", flaw.what),
                    };
                    (Taken::Broken(why.into()), extent)
                }
            };
            let broken = matches!(what, Taken::Broken(_));
            let sound = matches!(what, Taken::Sound);
            let what = if extent.end.saturating_sub(start) > self.limit {
                // Taken or not, there is a row to be left out.
                Taken::Broken(too_large(self.limit).into())
            } else {
                what
            };
            if !to.done(|| self.place(from, extent), what)? {
                return Ok(None);
            }
            promised = extent.next > extent.end;
            start = extent.next;
            if sound && promised && framing != Framing::Values {
                let (next, wanted) = to.more(text.as_bytes(), extent.start..start)?;
                if !wanted {
                    return Ok(None);
                }
                if next > start {
                    tokens.seek(next);
                    start = next;
                }
            }
            if broken {
                if start > text.len() || (start == text.len() && !whole) {
                    return Ok((from + start < self.chunk.bytes.len() || promised).then_some(from + start));
                }
                tokens.seek(start);
            }
        }
    }

    fn too_large(&mut self, from: usize, extent: Extent, to: &mut impl RecordSink) -> Result<bool> {
        let why = Taken::Broken(too_large(self.limit).into());
        to.done(|| self.place(from, extent), why)
    }

    /// Takes what separates records, and says where it is.
    fn separator(&self, tokens: &mut Tokenizer<'_>, whole: bool) -> Result<usize, Flaw> {
        let at = tokens.at();
        let ended = at >= tokens.text().len();
        match (self.chunk.framing, tokens.peek()) {
            (Framing::Values, _) => return Ok(at),
            (Framing::Lines, b'\n') | (Framing::Elements { .. }, b',') => {
                tokens.pass();
                return Ok(at);
            }
            (Framing::Lines | Framing::Elements { last: true, .. }, _) if ended && whole => return Ok(at),
            _ => {}
        }
        Err(tokens.flaw(match self.chunk.framing {
            Framing::Elements { .. } => "expected a comma or ]",
            _ => "something after the JSON value",
        }))
    }

    /// The extent of a record that is broken, by quotes and brackets alone.
    fn raw(&self, from: usize, start: usize, first: usize) -> Extent {
        let bytes = self.chunk.bytes.get(from..).unwrap_or_default();
        let between = match self.chunk.framing {
            Framing::Lines => {
                let found = memchr::memchr(b'\n', bytes.get(start..).unwrap_or_default());
                let feed = found.map_or(bytes.len(), |at| start + at);
                let next = (feed + 1).min(bytes.len());
                return Extent { start, first, end: line_end(bytes, start, feed), next };
            }
            Framing::Elements { .. } => Between::Commas,
            _ => Between::Nothing,
        };
        match (Scan::new(self.level, between).next(bytes, start, start, true), between) {
            (Stop::Boundary(next), Between::Commas) => Extent { start, first, end: next - 1, next },
            (Stop::Boundary(next), Between::Nothing) => Extent { start, first, end: next, next },
            _ => Extent { start, first, end: bytes.len(), next: bytes.len() },
        }
    }

    /// The place of a record, for people.
    fn place(&mut self, from: usize, extent: Extent) -> Place<'a> {
        let chunk = self.chunk;
        let len = extent.end.saturating_sub(extent.start);
        // Of what is too large, what the framer reads is the same.
        let start = if len > self.limit { extent.start } else { extent.first.min(extent.end) };
        let at = from + start;
        let raw = chunk.bytes.get(at..from + extent.end).unwrap_or_default();
        let raw = if len > self.limit { raw } else { raw.trim_ascii_end() };
        let (counted, line) = self.counted;
        let line = line + memchr::memchr_iter(b'\n', chunk.bytes.get(counted..at).unwrap_or_default()).count() as u64;
        self.counted = (at.max(counted), line);
        Place { line, offset: chunk.offset + at as u64, raw, len: raw.len() as u64 }
    }
}

/// Where a line ends whose line feed is at `feed`.
fn line_end(bytes: &[u8], start: usize, feed: usize) -> usize {
    let return_before = feed > start && bytes.get(feed - 1) == Some(&b'\r');
    feed - usize::from(return_before)
}

/// Decodes chunks on one thread.
pub(super) struct Decoder {
    plan: Arc<Plan>,
    rows: Rows,
    scratch: Scratch,
    level: Level,
    runs: Runs,
}

impl Decoder {
    pub(super) fn new(plan: Arc<Plan>, rows: Rows, level: Level, scratch: Scratch) -> Self {
        Self { plan, rows, scratch, level, runs: Runs::new(level) }
    }
}

/// Records on their way to batches.
struct Decoding<'a> {
    rows: &'a mut Rows,
    runs: &'a mut Runs,
    plan: &'a Plan,
    out: ChunkOutput<'a>,
}

impl RecordSink for Decoding<'_> {
    #[inline]
    fn take(&mut self, tokens: &mut Tokenizer<'_>) -> Result<Option<Fault>, Flaw> {
        self.rows.push(tokens)
    }

    #[inline]
    fn done<'p>(&mut self, place: impl FnOnce() -> Place<'p>, what: Taken) -> Result<bool> {
        // Some records are refused before they are rows.
        let row = self.rows.len() > self.out.keep.len();
        match what {
            Taken::Sound => self.out.keep.append_non_null(),
            Taken::Fault(fault) if row => self.out.row(fault, place)?,
            Taken::Fault(Fault { why, .. }) => self.out.broken(place(), why)?,
            Taken::Broken(why) => {
                if row {
                    self.out.keep.append_null();
                }
                self.out.broken(place(), why)?;
            }
        }
        self.give_if_full()
    }

    #[inline]
    fn more(&mut self, text: &[u8], record: Range<usize>) -> Result<(usize, bool)> {
        if !self.runs.is_due() {
            return Ok((record.end, true));
        }
        let most = self.plan.batch_rows.saturating_sub(self.rows.len());
        let (rows, next) = self.rows.push_run(self.runs, text, record, self.plan.record, most);
        self.out.keep.append_n_non_nulls(rows);
        Ok((next, self.give_if_full()?))
    }
}

impl Decoding<'_> {
    /// Hands on what there is if that is much, and says whether more is wanted.
    #[inline]
    fn give_if_full(&mut self) -> Result<bool> {
        if self.out.is_full(self.rows.len(), self.rows.listed()) {
            let unknown = self.rows.take_unknown();
            self.out.give(|| self.rows.finish(), unknown)?;
        }
        Ok(self.out.wanted)
    }
}

impl Worker<Chunk, Decoded, IngestError> for Decoder {
    fn run(&mut self, chunk: &Chunk, give: &mut dyn FnMut(Item<Decoded>) -> bool) -> Result<()> {
        let Self { plan, rows, scratch, level, runs } = self;
        let out = ChunkOutput::new(plan, &chunk.path, chunk.stored, give);
        let mut decoding = Decoding { rows, runs, plan, out };
        Records::new(chunk, plan.record, *level).run(scratch, &mut decoding)?;
        let Decoding { rows, mut out, .. } = decoding;
        if rows.any() {
            plan.named();
        }
        for (at, seen) in rows.seen().into_iter().enumerate() {
            if seen {
                plan.saw(at);
            }
        }
        if out.is_wanting(rows.len()) {
            let unknown = rows.take_unknown();
            out.give(|| rows.finish(), unknown)?;
        }
        Ok(())
    }

    fn bytes(&self, chunk: &Chunk) -> u64 {
        TextChunk::bytes(chunk)
    }

    fn internal(&self, what: &'static str) -> IngestError {
        IngestError::internal(what)
    }

    fn panicked(&self, chunk: Option<&Chunk>) -> IngestError {
        panicked(chunk.map(|chunk| (chunk.path.as_ref(), chunk.line)))
    }
}

/// Looks at chunks to infer a schema. Records that can't be read are left to the decoder.
pub(super) struct Sampler {
    scratch: Scratch,
    record: usize,
    level: Level,
}

impl Sampler {
    pub(super) fn new(record: usize, level: Level, depth: usize) -> Self {
        Self { scratch: Scratch::new(depth), record, level }
    }
}

impl ChunkSampler<Chunk, Samples> for Sampler {
    fn sample(&mut self, chunk: &Chunk, limit: u64, to: &mut Samples) -> u64 {
        if matches!(chunk.framing, Framing::Elements { .. }) {
            to.array();
        }
        let mut sampling = Sampling { samples: to, path: &chunk.path, taken: 0, limit };
        // It raises no errors.
        let _ = Records::new(chunk, self.record, self.level).run(&mut self.scratch, &mut sampling);
        sampling.taken
    }
}

struct Sampling<'a> {
    samples: &'a mut Samples,
    path: &'a Path,
    taken: u64,
    limit: u64,
}

impl RecordSink for Sampling<'_> {
    fn take(&mut self, tokens: &mut Tokenizer<'_>) -> Result<Option<Fault>, Flaw> {
        // Twice, so that broken records say nothing.
        let start = tokens.at();
        tokens.skip()?;
        tokens.seek(start);
        self.samples.json(tokens)?;
        Ok(None)
    }

    fn done<'p>(&mut self, place: impl FnOnce() -> Place<'p>, what: Taken) -> Result<bool> {
        if let Taken::Broken(why) = what {
            let path = self.path;
            self.samples.broken(|| {
                let Place { line, offset, raw, .. } = place();
                let shown = before(raw);
                IngestError::damaged(path, format!("no columns found: line {line} (byte {offset}): {why}{shown}"))
            });
        }
        self.taken += 1;
        Ok(self.taken < self.limit)
    }
}

impl Worker<Chunk, Samples, IngestError> for Sampler {
    fn run(&mut self, chunk: &Chunk, give: &mut dyn FnMut(Item<Samples>) -> bool) -> Result<()> {
        let mut samples = Samples::default();
        self.sample(chunk, u64::MAX, &mut samples);
        give(Item { bytes: samples.memory(), value: samples });
        Ok(())
    }

    fn bytes(&self, chunk: &Chunk) -> u64 {
        TextChunk::bytes(chunk)
    }

    fn internal(&self, what: &'static str) -> IngestError {
        IngestError::internal(what)
    }

    fn panicked(&self, chunk: Option<&Chunk>) -> IngestError {
        panicked(chunk.map(|chunk| (chunk.path.as_ref(), chunk.line)))
    }
}

#[cfg(test)]
mod tests;
