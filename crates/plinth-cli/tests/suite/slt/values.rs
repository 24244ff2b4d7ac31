//! Whether rows are those that a script expects, however either writes its values.

use std::cmp::Ordering;

use arrow_array::{Array, RecordBatch};
use arrow_cast::display::{ArrayFormatter, FormatOptions};

use super::script::Sort;

/// How far two floats may be apart, of the larger.
const APART: f64 = 1e-6;

/// Rows as texts; `None` is NULL.
pub(crate) type Rows = Vec<Vec<Option<String>>>;

/// The rows of batches as texts.
pub(crate) fn texts(batches: &[RecordBatch]) -> Rows {
    let options = FormatOptions::new().with_null("NULL").with_display_error(true);
    let mut rows = Vec::new();
    for batch in batches {
        let columns: Vec<_> = batch
            .columns()
            .iter()
            .map(|column| (ArrayFormatter::try_new(column.as_ref(), &options).unwrap(), column.logical_nulls()))
            .collect();
        for row in 0..batch.num_rows() {
            let cell = |(formatter, nulls): &(ArrayFormatter<'_>, Option<arrow_buffer::NullBuffer>)| {
                let null = nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
                (!null).then(|| formatter.value(row).to_string())
            };
            rows.push(columns.iter().map(cell).collect());
        }
    }
    rows
}

/// How an answer fares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Same,
    /// The same rows in another order than that of a query that asks for one.
    Reordered,
    Other,
    /// The answer is given as a hash, or in part.
    Unknown,
}

/// Compares rows with the lines of an answer.
pub(crate) fn compare(rows: &Rows, lines: &[String], sort: Sort, ordered: bool) -> Verdict {
    let hashed = lines.len() == 1 && lines[0].contains(" values hashing to ");
    if hashed || lines.iter().any(|line| line.contains("<slt:ignore>")) {
        return Verdict::Unknown;
    }
    let width = rows.first().map_or(1, Vec::len);
    // Values that hold blanks, between blanks: of such rows only the whole can be compared.
    let apart = lines.iter().all(|line| line.split('\t').count() == width || line.split(' ').count() == width);
    if width > 1 && !apart && lines.len() == rows.len() {
        let whole = |row: &Vec<Option<String>>| {
            vec![Some(row.iter().map(|cell| cell.as_deref().unwrap_or("NULL")).collect::<Vec<_>>().join(" "))]
        };
        return compare(&rows.iter().map(whole).collect(), lines, sort, ordered);
    }
    let Some(expected) = expected(lines, rows.len(), width) else { return Verdict::Other };
    let mut ours: Vec<Vec<String>> =
        rows.iter().map(|row| row.iter().map(|cell| canonical(cell.as_deref())).collect()).collect();
    let mut theirs: Vec<Vec<String>> =
        expected.iter().map(|row| row.iter().map(|cell| canonical(theirs_of(cell))).collect()).collect();
    if ours.len() != theirs.len() || theirs.iter().any(|row| row.len() != width && !ours.is_empty()) {
        return Verdict::Other;
    }
    if sort == Sort::Values {
        ours = ours.concat().into_iter().map(|cell| vec![cell]).collect();
        theirs = theirs.concat().into_iter().map(|cell| vec![cell]).collect();
    }
    let same = |ours: &[Vec<String>], theirs: &[Vec<String>]| {
        ours.iter().zip(theirs).all(|(a, b)| a.iter().zip(b).all(|(a, b)| alike(a, b)))
    };
    if same(&ours, &theirs) {
        return Verdict::Same;
    }
    let order = |a: &Vec<String>, b: &Vec<String>| {
        a.iter().zip(b).map(|(a, b)| by_value(a, b)).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    };
    ours.sort_by(order);
    theirs.sort_by(order);
    match same(&ours, &theirs) {
        true if sort == Sort::No && ordered => Verdict::Reordered,
        true => Verdict::Same,
        false => Verdict::Other,
    }
}

/// The cells of an answer: a row a line with tabs or blanks between cells, or a value a line.
fn expected(lines: &[String], rows: usize, width: usize) -> Option<Vec<Vec<String>>> {
    if width > 1 && lines.len() == rows * width && rows > 0 && lines.iter().all(|line| !line.contains('\t')) {
        return Some(lines.chunks(width).map(<[String]>::to_vec).collect());
    }
    let cells = |line: &String| -> Vec<String> {
        if width == 1 {
            return vec![line.clone()];
        }
        let by_tabs: Vec<String> = line.split('\t').map(str::to_owned).collect();
        if by_tabs.len() == width {
            return by_tabs;
        }
        // Tabs that align columns.
        let filled: Vec<String> = by_tabs.into_iter().filter(|cell| !cell.is_empty()).collect();
        if filled.len() == width {
            return filled;
        }
        line.split(' ').map(str::to_owned).collect()
    };
    Some(lines.iter().map(cells).collect())
}

fn theirs_of(cell: &str) -> Option<&str> {
    match cell {
        "NULL" => None,
        "(empty)" => Some(""),
        cell => Some(cell),
    }
}

/// A value without what only its writer chose: quotes, blanks, the letter between a date and a time.
fn canonical(cell: Option<&str>) -> String {
    let Some(cell) = cell else { return "NULL".to_owned() };
    let cell = cell.trim();
    match cell {
        "True" | "TRUE" | "true" | "t" => return "1".to_owned(),
        "False" | "FALSE" | "false" | "f" => return "0".to_owned(),
        _ => {}
    }
    let bytes = cell.as_bytes();
    let is_date =
        bytes.len() >= 10 && bytes[4] == b'-' && bytes[7] == b'-' && bytes[..4].iter().all(u8::is_ascii_digit);
    if is_date && !cell.contains(',') {
        let mut text = cell.replacen('T', " ", 1);
        if let Some(stripped) = text.strip_suffix('Z') {
            text = format!("{stripped}+00");
        }
        text = text.replace("+00:00", "+00");
        if let Some(point) = text.find('.') {
            let end = text[point + 1..].find(|c: char| !c.is_ascii_digit()).map_or(text.len(), |end| point + 1 + end);
            let digits = text[point..end].trim_end_matches('0').trim_end_matches('.').to_owned();
            text.replace_range(point..end, &digits);
        }
        return text.strip_suffix(" 00:00:00").unwrap_or(&text).to_owned();
    }
    if cell.starts_with(['[', '{']) {
        let plain: String = cell.chars().filter(|c| !matches!(c, '\'' | '"' | ' ')).collect();
        return plain.replace('=', ":").replace("null", "NULL").replace("true", "1").replace("false", "0");
    }
    cell.to_owned()
}

fn alike(a: &str, b: &str) -> bool {
    if a == b || a.trim() == b.trim() {
        return true;
    }
    match (number(a), number(b)) {
        (Some(a), Some(b)) => a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= APART * a.abs().max(b.abs()),
        _ => false,
    }
}

fn by_value(a: &str, b: &str) -> Ordering {
    match (number(a), number(b)) {
        (Some(a), Some(b)) => a.total_cmp(&b),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => a.cmp(b),
    }
}

fn number(text: &str) -> Option<f64> {
    match text {
        "inf" | "Infinity" => Some(f64::INFINITY),
        "-inf" | "-Infinity" => Some(f64::NEG_INFINITY),
        "nan" | "NaN" => Some(f64::NAN),
        text if text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.')) => text.parse().ok(),
        _ => None,
    }
}
