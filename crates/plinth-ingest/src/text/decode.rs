//! Pieces to batches, and to what a schema is inferred from.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_buffer::BooleanBufferBuilder;
use arrow_schema::{DataType, SchemaRef};

use super::csv::{Boundaries, Fields, without_line_end};
use super::infer::Objects;
use super::json::{Cursor, Kind, check};
use super::node::{Fault, RECORD_VALUES, Rows, Rules, width};
use super::scalar::column;
use super::split::{Cutting, EXCERPT, Piece};
use super::{COLUMNS, bad_record};
use crate::ahead::{Item, Worker};
use crate::error::{BadRecord, IngestError, Result};
use crate::open::{Rejects, SourceOptions};

/// Decoded bytes of a batch, about.
const BATCH_BYTES: usize = 8 << 20;

/// The same in values.
const BATCH_VALUES: usize = BATCH_BYTES / 16;

/// Rows of a batch.
const BATCH_ROWS: std::ops::RangeInclusive<usize> = 64..=65_536;

/// Bytes of a bad record that are kept.
const KEPT: usize = 64 << 10;

/// Bytes of the name of its column that are kept.
const KEPT_NAME: usize = 512;

/// The columns, and how to find them in a file.
#[derive(Debug)]
pub(super) struct Layout {
    schema: SchemaRef,
    by_name: HashMap<String, usize>,
    rules: Rules,
    cutting: Cutting,
    nulls: Vec<String>,
    collect: bool,
    batch_rows: usize,
    /// Values the lists and maps of a record may hold. Lists of plain values fit whatever records may be as text.
    record_values: usize,
    /// Whether inference left rows out.
    sampled: bool,
    /// Per column, whether any file had it.
    seen: Vec<AtomicBool>,
}

impl Layout {
    pub(super) fn new(schema: SchemaRef, rules: Rules, cutting: Cutting, options: &SourceOptions) -> Self {
        let columns = schema.fields().len();
        let row = schema.fields().iter().map(|f| width(f.data_type())).fold(1, usize::saturating_add);
        Self {
            by_name: schema.fields().iter().enumerate().map(|(at, f)| (f.name().clone(), at)).collect(),
            rules,
            cutting,
            nulls: options.csv.nulls.clone(),
            collect: matches!(options.rejects, Rejects::Collect { .. }),
            batch_rows: (BATCH_VALUES / row).clamp(*BATCH_ROWS.start(), *BATCH_ROWS.end()),
            record_values: cutting.record.max(RECORD_VALUES),
            sampled: !rules.given,
            seen: (0..columns).map(|_| AtomicBool::new(false)).collect(),
            schema,
        }
    }

    /// Where the fields of a file's records go.
    pub(super) fn columns(&self, path: &Path, names: &[String]) -> Result<Positions> {
        let column = |name: &String| match self.by_name.get(name) {
            Some(at) => {
                self.saw(*at);
                Ok(Some(*at))
            }
            None if self.rules.ignore_extra => Ok(None),
            None => Err(IngestError::ExtraColumn { path: path.display().to_string(), column: name.clone() }),
        };
        names.iter().map(column).collect()
    }

    fn saw(&self, column: usize) {
        if let Some(seen) = self.seen.get(column) {
            seen.store(true, Ordering::Relaxed);
        }
    }

    /// Whether every column was found somewhere.
    pub(super) fn check_all_seen(&self) -> Result<()> {
        let columns = self.schema.fields().iter().zip(&self.seen);
        match columns.into_iter().find(|(_, seen)| self.rules.given && !seen.load(Ordering::Relaxed)) {
            Some((field, _)) => Err(IngestError::MissingColumn { column: field.name().clone() }),
            None => Ok(()),
        }
    }
}

/// Per field of a file's records, its column.
type Positions = Vec<Option<usize>>;

/// What became of a piece.
#[derive(Debug)]
pub(super) struct Decoded {
    pub(super) batch: Option<RecordBatch>,
    pub(super) bad: Vec<BadRecord>,
    /// Bytes of the file as stored.
    pub(super) stored: u64,
}

/// Goes through the records of a piece; the callback answers whether it wants more.
fn records(piece: &Piece, cutting: Cutting, mut record: impl FnMut(u64, u64, &[u8]) -> Result<bool>) -> Result<()> {
    let bytes = piece.bytes.as_slice();
    let mut boundaries = Boundaries::new(cutting.dialect);
    let (mut start, mut line) = (0, piece.line);
    while start < bytes.len() {
        boundaries.quoted = false;
        let end = boundaries.next(bytes, start, true).unwrap_or(bytes.len());
        let whole = bytes.get(start..end).unwrap_or_default();
        let lines = match cutting.dialect.quote {
            None => 1,
            Some(_) => memchr::memchr_iter(b'\n', whole).count() as u64,
        };
        if !record(line, piece.offset + start as u64, without_line_end(whole))? {
            return Ok(());
        }
        line += lines;
        start = end;
    }
    Ok(())
}

/// Whether a line stands for no record.
fn is_blank(record: &[u8], columns: Option<usize>) -> bool {
    match columns {
        // The only field of such a record may be empty.
        Some(1) => false,
        Some(_) => record.is_empty(),
        None => record.trim_ascii().is_empty(),
    }
}

/// The text of a record, if it is one of the right size.
fn text(record: &[u8], cutting: Cutting) -> Result<&str, String> {
    if record.len() > cutting.record {
        return Err(too_large(cutting.record));
    }
    std::str::from_utf8(record).map_err(|e| format!("not UTF-8 text (at byte {} of the record)", e.valid_up_to()))
}

fn too_large(limit: usize) -> String {
    format!("larger than the {limit} bytes a record may have")
}

/// Checks that a record is a JSON object.
fn object(text: &str) -> Result<(), String> {
    check(text).map_err(|(at, what)| format!("broken JSON: {what} (at byte {at} of the record)"))?;
    if Cursor::new(text).kind() == Kind::Object { Ok(()) } else { Err("not a JSON object".to_owned()) }
}

/// Takes the fields of a record apart and counts them.
fn split_fields(fields: &mut Fields, text: &str, cutting: Cutting, expected: usize) -> Result<(), String> {
    fields.parse(text, cutting.dialect, expected)?;
    match fields.count() {
        found if found == expected => Ok(()),
        found => Err(format!("{found} fields where the file has {expected} columns")),
    }
}

/// Decodes pieces on one thread.
pub(super) struct Decoder {
    layout: Arc<Layout>,
    rows: Rows,
    fields: Fields,
    /// Where the fields go, of the file it is at.
    columns: Option<(Arc<[String]>, Positions)>,
}

impl Decoder {
    pub(super) fn new(layout: Arc<Layout>, rows: Rows) -> Self {
        Self { layout, rows, fields: Fields::default(), columns: None }
    }

    fn decode(&mut self, piece: &Piece, give: &mut dyn FnMut(Item<Decoded>) -> bool) -> Result<()> {
        let Self { layout, rows, fields, columns } = self;
        let cutting = layout.cutting;
        if let Some(names) = &piece.names
            && !columns.as_ref().is_some_and(|(of, _)| Arc::ptr_eq(of, names))
        {
            *columns = Some((Arc::clone(names), layout.columns(&piece.path, names)?));
        }
        let columns = columns.as_ref().filter(|_| piece.names.is_some()).map(|(_, columns)| columns.as_slice());
        let mut out = Out { layout, piece, keep: BooleanBufferBuilder::new(0), bad: Vec::new(), bad_bytes: 0, give };
        if let Some(len) = piece.oversized {
            out.reject(piece.line, piece.offset, &piece.bytes, len, broken(too_large(cutting.record)))?;
            let bad = std::mem::take(&mut out.bad);
            (out.give)(Item { bytes: piece.bytes.len(), value: Decoded { batch: None, bad, stored: piece.stored } });
            return Ok(());
        }
        let (mut wanted, mut stored) = (true, Some(piece.stored));
        records(piece, cutting, |line, offset, record| {
            if is_blank(record, columns.map(<[_]>::len)) {
                return Ok(true);
            }
            let taken = text(record, cutting).and_then(|text| match columns {
                Some(columns) => {
                    split_fields(fields, text, cutting, columns.len())?;
                    Ok(rows.push_fields(fields.iter(text), columns, &layout.nulls))
                }
                None => {
                    object(text)?;
                    Ok(rows.push_json(text, layout.record_values))
                }
            });
            let fault = match taken {
                Ok(Ok(())) => {
                    out.keep.append(true);
                    None
                }
                Ok(Err(fault)) => {
                    out.keep.append(false);
                    Some(fault)
                }
                Err(why) => Some(broken(why)),
            };
            if let Some(fault) = fault {
                out.reject(line, offset, record, record.len() as u64, fault)?;
            }
            let full = rows.len() >= layout.batch_rows || rows.listed() >= BATCH_VALUES;
            if full || out.bad_bytes >= BATCH_BYTES {
                wanted = out.give(rows, stored.take())?;
            }
            Ok(wanted)
        })?;
        for (at, seen) in rows.seen().enumerate() {
            if seen {
                layout.saw(at);
            }
        }
        // A piece without a row still says how far the reader has come.
        if wanted && (rows.len() > 0 || !out.bad.is_empty() || stored.is_some()) {
            out.give(rows, stored)?;
        }
        Ok(())
    }
}

/// A column's name for messages: a record may have keys as long as itself.
fn shortened(mut name: String) -> String {
    if name.len() > KEPT_NAME {
        name.truncate(name.floor_char_boundary(KEPT_NAME));
        name.push('\u{2026}');
    }
    name
}

fn broken(why: String) -> Fault {
    Fault { column: Vec::new(), why: why.into(), misfit: false }
}

/// What was decoded of a piece and not handed on yet: rows and bad records go together, so both keep their order however
/// many batches a piece gives.
struct Out<'a> {
    layout: &'a Layout,
    piece: &'a Piece,
    /// Per row, whether it is sound.
    keep: BooleanBufferBuilder,
    bad: Vec<BadRecord>,
    bad_bytes: usize,
    give: &'a mut dyn FnMut(Item<Decoded>) -> bool,
}

impl Out<'_> {
    fn reject(&mut self, line: u64, offset: u64, raw: &[u8], len: u64, fault: Fault) -> Result<()> {
        let record = self.layout.cutting.record;
        // The same whether the record was found too large while cutting or here.
        let kept = if raw.len() > record { EXCERPT.min(record) } else { KEPT };
        let bad = BadRecord {
            path: self.piece.path.display().to_string(),
            line,
            offset,
            column: (!fault.column.is_empty()).then(|| shortened(fault.column.join("."))),
            reason: fault.why.into_owned(),
            raw: raw.get(..raw.len().min(kept)).unwrap_or_default().to_vec(),
            len,
        };
        let surprise = fault.misfit && self.layout.sampled;
        if surprise || !self.layout.collect {
            return Err(bad_record(bad, surprise));
        }
        self.bad_bytes += size_of::<BadRecord>() + bad.path.len() + bad.reason.len() + bad.raw.len() + KEPT_NAME;
        self.bad.push(bad);
        Ok(())
    }

    /// Hands on what there is; answers whether more is wanted.
    fn give(&mut self, rows: &mut Rows, stored: Option<u64>) -> Result<bool> {
        let batch = rows.finish(&mut self.keep);
        let batch = batch.map_err(|e| IngestError::damaged(&self.piece.path, e.to_string()))?;
        let bytes = batch.get_array_memory_size() + std::mem::take(&mut self.bad_bytes);
        let bad = std::mem::take(&mut self.bad);
        Ok((self.give)(Item { bytes, value: Decoded { batch: Some(batch), bad, stored: stored.unwrap_or(0) } }))
    }
}

impl Worker<Piece, Decoded, IngestError> for Decoder {
    fn run(&mut self, piece: &Piece, give: &mut dyn FnMut(Item<Decoded>) -> bool) -> Result<()> {
        self.decode(piece, give)
    }

    fn panicked(&self, piece: Option<&Piece>) -> IngestError {
        panicked(piece)
    }
}

fn panicked(piece: Option<&Piece>) -> IngestError {
    match piece {
        Some(piece) => IngestError::damaged(&piece.path, format!("the reader gave up near line {}", piece.line)),
        None => IngestError::damaged(Path::new("input"), "the reader gave up on damaged data"),
    }
}

/// Looks at pieces to infer a schema. Records that can't be read are left to the decoder.
pub(super) struct Sampler {
    cutting: Cutting,
    nulls: Vec<String>,
    fields: Fields,
}

impl Sampler {
    pub(super) fn new(cutting: Cutting, nulls: Vec<String>) -> Self {
        Self { cutting, nulls, fields: Fields::default() }
    }

    /// Takes at most `limit` records of a piece and says how many it took.
    pub(super) fn look(&mut self, piece: &Piece, limit: u64, to: &mut Objects) -> u64 {
        let Self { cutting, nulls, fields } = self;
        let names = piece.names.as_deref();
        for name in names.unwrap_or_default() {
            let _ = to.column(name);
        }
        let mut taken = 0;
        if piece.oversized.is_some() {
            return 1;
        }
        // The callback raises no errors.
        let _ = records(piece, *cutting, |_, _, record| {
            if is_blank(record, names.map(<[_]>::len)) {
                return Ok(true);
            }
            taken += 1;
            if let Ok(text) = text(record, *cutting) {
                match names {
                    Some(names) if split_fields(fields, text, *cutting, names.len()).is_ok() => {
                        for (name, field) in names.iter().zip(fields.iter(text)) {
                            let null = !field.quoted && nulls.iter().any(|null| null == field.text);
                            if let Some(seen) = to.column(name).filter(|_| !null) {
                                seen.field(field.text);
                            }
                        }
                    }
                    None if object(text).is_ok() => to.json(&mut Cursor::new(text)),
                    _ => {}
                }
            }
            Ok(taken < limit)
        });
        taken
    }
}

impl Worker<Piece, Objects, IngestError> for Sampler {
    fn run(&mut self, piece: &Piece, give: &mut dyn FnMut(Item<Objects>) -> bool) -> Result<()> {
        let mut objects = Objects::new(COLUMNS);
        self.look(piece, u64::MAX, &mut objects);
        give(Item { bytes: objects.memory(), value: objects });
        Ok(())
    }

    fn panicked(&self, piece: Option<&Piece>) -> IngestError {
        panicked(piece)
    }
}

/// Text values as values of a type, as strictly as those of text files.
pub(crate) fn strict_text(values: &ArrayRef, data_type: &DataType) -> Result<ArrayRef, String> {
    let texts = arrow_cast::cast(values, &DataType::Utf8View).map_err(|e| e.to_string())?;
    let texts = arrow_array::cast::AsArray::as_string_view(&texts);
    let mut column = column(data_type, true).ok_or_else(|| format!("text can't become {data_type}"))?;
    for at in 0..texts.len() {
        match texts.is_valid(at) {
            true => column
                .push(texts.value(at))
                .map_err(|why| format!("{why}: {}", crate::error::excerpt(texts.value(at).as_bytes())))?,
            false => column.push_null(),
        }
    }
    Ok(column.finish())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use super::*;
    use crate::text::csv::Dialect;
    use arrow_schema::{Field, Schema};

    /// So many columns that a batch is as short as batches get.
    const COLUMNS: usize = 10_000;

    fn fields() -> arrow_schema::Fields {
        (0..COLUMNS).map(|at| Field::new(format!("c{at}"), DataType::Int64, true)).collect()
    }

    /// A decoder of NDJSON with columns `c0`, `c1` and so on.
    fn decoder(collect: bool) -> Decoder {
        decoder_of(fields(), collect)
    }

    fn decoder_of(fields: arrow_schema::Fields, collect: bool) -> Decoder {
        let schema = Arc::new(Schema::new(fields));
        let rules = Rules { given: true, ignore_extra: false };
        let dialect = Dialect { delimiter: b',', quote: None };
        let cutting = Cutting { target: 1 << 20, record: 1 << 20, dialect, header: None };
        let rejects = if collect { Rejects::Collect { to: "unused".into(), max: None } } else { Rejects::Error };
        let options = SourceOptions { rejects, ..SourceOptions::default() };
        let layout = Arc::new(Layout::new(Arc::clone(&schema), rules, cutting, &options));
        Decoder::new(layout, Rows::new(&schema, rules).unwrap())
    }

    fn piece(text: String) -> Piece {
        let path = Arc::from(Path::new("x.ndjson"));
        Piece { path, names: None, line: 1, offset: 0, stored: 7, bytes: text.into_bytes(), oversized: None }
    }

    #[test]
    fn a_batch_is_given_before_the_next_is_begun() {
        let rows = *BATCH_ROWS.start();
        let text = "{}\n".repeat(3 * rows) + "broken\n";
        // The record that is an error comes after three batches: they are out before it is looked at.
        for wanted in 1..=4 {
            let mut given = Vec::new();
            let mut give = |item: Item<Decoded>| {
                given.push(item.value.batch.unwrap().num_rows());
                given.len() < wanted
            };
            let result = decoder(false).run(&piece(text.clone()), &mut give);
            assert_eq!(given, vec![rows; wanted.min(3)]);
            // Nor is anything decoded that nobody wants.
            assert_eq!(result.is_err(), wanted == 4, "{wanted}");
        }
    }

    #[test]
    fn batches_are_as_short_where_the_columns_are_nested() {
        let rows = *BATCH_ROWS.start();
        let batches = |data_type, line: &str, lines| {
            let mut given = Vec::new();
            let mut give = |item: Item<Decoded>| {
                given.push(item.value.batch.unwrap().num_rows());
                true
            };
            let fields = [Arc::new(Field::new("a", data_type, true))].into_iter().collect();
            decoder_of(fields, false).run(&piece(line.repeat(lines)), &mut give).unwrap();
            given
        };
        let wide = DataType::Struct(fields());
        assert_eq!(batches(wide.clone(), "{}\n", 2 * rows + 1), [rows, rows, 1]);
        let fixed = DataType::FixedSizeList(Arc::new(Field::new_list_field(DataType::Int8, true)), 10_000);
        assert_eq!(batches(fixed, "{}\n", 2 * rows + 1), [rows, rows, 1]);
        // The elements count where the rows are few: two times 27 wide ones make a batch.
        let list = DataType::List(Arc::new(Field::new_list_field(wide, true)));
        let line = format!("{{\"a\":[{}{{}}]}}\n", "{},".repeat(26));
        assert_eq!(batches(list, &line, 5), [2, 2, 1]);
    }

    #[test]
    fn rows_and_bad_records_keep_their_order_in_however_many_batches() {
        let bad = |at: usize| at % 50 == 7;
        let line = |at| if bad(at) { format!("bad {at}\n") } else { format!("{{\"c0\":{at}}}\n") };
        let mut decoder = decoder(true);
        let (mut items, mut lines) = (0, Vec::new());
        let mut stored = Vec::new();
        let mut give = |item: Item<Decoded>| {
            let column = item.value.batch.as_ref().unwrap().column(0);
            let column = arrow_array::cast::AsArray::as_primitive::<arrow_array::types::Int64Type>(column);
            // Within an item rejects are written first; between items nothing is out of order.
            let mut here: Vec<(u64, bool)> = column.values().iter().map(|at| (at.unsigned_abs(), false)).collect();
            here.extend(item.value.bad.iter().map(|bad| (bad.line - 1, true)));
            here.sort_unstable();
            lines.extend(here);
            stored.push(item.value.stored);
            items += 1;
            true
        };
        decoder.run(&piece((0..300).map(line).collect()), &mut give).unwrap();
        assert_eq!(lines, (0..300).map(|at| (at as u64, bad(at))).collect::<Vec<_>>());
        assert_eq!((items, stored), (5, vec![7, 0, 0, 0, 0]));
    }

    #[test]
    fn little_text_in_many_columns_takes_little_memory() {
        let fields = (0..COLUMNS).map(|at| Field::new(format!("c{at}"), DataType::Utf8View, true)).collect();
        let members = (0..COLUMNS).map(|at| format!("\"c{at}\":\"text of twenty bytes\"")).collect::<Vec<_>>();
        let text = format!("{{{}}}\n", members.join(",")).repeat(2);
        let len = text.len();
        let mut bytes = 0;
        let mut give = |item: Item<Decoded>| {
            bytes += item.bytes;
            true
        };
        decoder_of(fields, false).run(&piece(text), &mut give).unwrap();
        // Each array is some two hundred bytes of its own.
        assert!(bytes < 10 * len, "{bytes} of {len}");
    }

    #[test]
    fn keys_as_long_as_the_record_are_shortened() {
        let key = "\u{e9}".repeat(10_000);
        let mut give = |item: Item<Decoded>| {
            let column = item.value.bad[0].column.clone().unwrap();
            assert!(column.len() < 600 && key.starts_with(column.trim_end_matches('\u{2026}')), "{column}");
            true
        };
        decoder(true).run(&piece(format!("{{\"{key}\":1}}\n")), &mut give).unwrap();
    }

    #[test]
    fn bad_records_are_handed_on_before_they_are_many() {
        let most = BATCH_BYTES + size_of::<BadRecord>() + 200;
        let (mut items, mut count) = (0, 0);
        let mut give = |item: Item<Decoded>| {
            items += 1;
            count += item.value.bad.len();
            assert!(item.value.bad.len() * size_of::<BadRecord>() <= most);
            true
        };
        decoder(true).run(&piece("x\n".repeat(100_000)), &mut give).unwrap();
        assert_eq!(count, 100_000);
        assert!(items > 1, "{items}");
    }
}
