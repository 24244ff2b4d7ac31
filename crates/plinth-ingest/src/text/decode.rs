//! Pieces of CSV to batches, and to what a schema is inferred from.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, StringViewArray};
use arrow_schema::DataType;

use super::COLUMNS;
use super::csv::{Boundaries, Fields, without_line_end};
use super::infer::Objects;
use super::lines;
use super::out::{Decoded, Out, Place, Plan, panicked};
use super::rows::Rows;
use super::scalar::column;
use super::split::{Cutting, Piece};
use crate::ahead::{Item, Worker};
use crate::error::{IngestError, Result};
use crate::json::UnknownKeys;

/// The columns, and how to find them in a file.
#[derive(Debug)]
pub(super) struct Layout {
    plan: Arc<Plan>,
    by_name: HashMap<String, usize>,
    ignore_extra: bool,
    cutting: Cutting,
    nulls: Vec<String>,
}

impl Layout {
    pub(super) fn new(plan: Arc<Plan>, ignore_extra: bool, cutting: Cutting, nulls: Vec<String>) -> Self {
        let by_name = plan.schema.fields().iter().enumerate().map(|(at, f)| (f.name().clone(), at)).collect();
        Self { plan, by_name, ignore_extra, cutting, nulls }
    }

    /// Where the fields of a file's records go.
    pub(super) fn columns(&self, path: &Path, names: &[String]) -> Result<Positions> {
        let column = |name: &String| match self.by_name.get(name) {
            Some(at) => {
                self.plan.saw(*at);
                Ok(Some(*at))
            }
            None if self.ignore_extra => Ok(None),
            None => Err(IngestError::ExtraColumn { path: path.display().to_string(), column: name.clone() }),
        };
        names.iter().map(column).collect()
    }

    /// The values of a piece whose lines are values as they are.
    fn lines(&self, piece: &Piece, columns: &[Option<usize>]) -> Option<Vec<StringViewArray>> {
        let plain = self.plan.schema.fields().len() == 1
            && self.plan.schema.fields().iter().all(|field| field.data_type() == &DataType::Utf8View)
            && columns == [Some(0)]
            && self.nulls.iter().all(String::is_empty);
        if plain { lines::values(piece, self.cutting, self.plan.batch_rows) } else { None }
    }
}

/// Per field of a file's records, its column.
type Positions = Vec<Option<usize>>;

/// Goes through the records of a piece; the callback answers whether it wants more.
fn records(piece: &Piece, cutting: Cutting, mut record: impl FnMut(u64, u64, &[u8]) -> Result<bool>) -> Result<()> {
    let bytes = &*piece.bytes;
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

/// Whether a line stands for no record. The only field of one may be empty.
fn is_blank(record: &[u8], columns: usize) -> bool {
    columns != 1 && record.is_empty()
}

/// The text of a record, if it is one of the right size.
fn text(record: &[u8], cutting: Cutting) -> Result<&str, String> {
    if record.len() > cutting.record {
        return Err(too_large(cutting.record));
    }
    std::str::from_utf8(record).map_err(|e| format!("not UTF-8 text (at byte {} of the record)", e.valid_up_to()))
}

fn too_large(limit: usize) -> String {
    format!("larger than the {limit} bytes a record may have (--max-record)")
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
        let columns = match columns {
            Some((of, columns)) if Arc::ptr_eq(of, &piece.names) => columns,
            _ => &mut columns.insert((Arc::clone(&piece.names), layout.columns(&piece.path, &piece.names)?)).1,
        };
        let mut out = Out::new(&layout.plan, &piece.path, piece.stored, give);
        if let Some(len) = piece.oversized {
            let place = Place { line: piece.line, offset: piece.offset, raw: &piece.bytes, len };
            out.broken(place, too_large(cutting.record))?;
            out.give_batch(None, UnknownKeys::default());
            return Ok(());
        }
        if let Some(arrays) = layout.lines(piece, columns) {
            for array in arrays {
                let batch = RecordBatch::try_new(Arc::clone(&layout.plan.schema), vec![Arc::new(array)]);
                out.give_batch(
                    Some(batch.map_err(|e| IngestError::damaged(&piece.path, e.to_string()))?),
                    UnknownKeys::default(),
                );
                if !out.wanted {
                    break;
                }
            }
            return Ok(());
        }
        records(piece, cutting, |line, offset, record| {
            if is_blank(record, columns.len()) {
                return Ok(true);
            }
            let place = || Place { line, offset, raw: record, len: record.len() as u64 };
            let taken = text(record, cutting).and_then(|text| {
                split_fields(fields, text, cutting, columns.len())?;
                Ok(rows.push(fields.iter(text), columns, &layout.nulls))
            });
            match taken {
                Ok(None) => out.keep.append_non_null(),
                Ok(Some(fault)) => out.row(fault, place)?,
                Err(why) => out.broken(place(), why)?,
            }
            if out.is_full(rows.len(), 0) {
                out.give(Ok(rows.finish()), UnknownKeys::default())?;
            }
            Ok(out.wanted)
        })?;
        if out.is_wanting(rows.len()) {
            out.give(Ok(rows.finish()), UnknownKeys::default())?;
        }
        Ok(())
    }
}

impl Worker<Piece, Decoded, IngestError> for Decoder {
    fn run(&mut self, piece: &Piece, give: &mut dyn FnMut(Item<Decoded>) -> bool) -> Result<()> {
        self.decode(piece, give)
    }

    fn panicked(&self, piece: Option<&Piece>) -> IngestError {
        panicked(piece.map(|piece| (piece.path.as_ref(), piece.line)))
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
        for name in piece.names.iter() {
            let _ = to.column(name);
        }
        let mut taken = 0;
        if piece.oversized.is_some() {
            return 1;
        }
        // The callback raises no errors.
        let _ = records(piece, *cutting, |_, _, record| {
            if is_blank(record, piece.names.len()) {
                return Ok(true);
            }
            taken += 1;
            if let Ok(text) = text(record, *cutting)
                && split_fields(fields, text, *cutting, piece.names.len()).is_ok()
            {
                for (name, field) in piece.names.iter().zip(fields.iter(text)) {
                    let null = !field.quoted && nulls.iter().any(|null| null == field.text);
                    if let Some(seen) = to.column(name).filter(|_| !null) {
                        seen.field(field.text);
                    }
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
        panicked(piece.map(|piece| (piece.path.as_ref(), piece.line)))
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
