#![allow(clippy::unwrap_used, clippy::panic)]

use std::path::Path;

use arrow_schema::{DataType, Field, Schema};

use super::*;
use crate::error::BadRecord;
use crate::json::record::Rules;
use crate::options::{Rejects, SourceOptions, Unknown};
use crate::stream::output::{BATCH_BYTES, BATCH_ROWS};

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
    let rejects = if collect { Rejects::Collect { to: "unused".into(), max: None } } else { Rejects::Error };
    let options = SourceOptions { rejects, schema: Some(Arc::clone(&schema)), ..SourceOptions::default() };
    let rows = Rows::new(&schema, Rules { given: true, bare: false, unknown: Unknown::Error }, 1 << 20).unwrap();
    Decoder::new(Arc::new(Plan::new(schema, &options)), rows, Level::best(), Scratch::new(1_024))
}

fn chunk(text: String) -> Chunk {
    let path = Arc::from(Path::new("x.ndjson"));
    Chunk { path, line: 1, offset: 0, stored: 7, bytes: text.into_bytes().into(), framing: Framing::Lines }
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
        let result = decoder(false).run(&chunk(text.clone()), &mut give);
        assert_eq!(given, vec![rows; wanted.min(3)]);
        // Nor is anything decoded that is not wanted.
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
        decoder_of(fields, false).run(&chunk(line.repeat(lines)), &mut give).unwrap();
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
    decoder.run(&chunk((0..300).map(line).collect()), &mut give).unwrap();
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
    decoder_of(fields, false).run(&chunk(text), &mut give).unwrap();
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
    decoder(true).run(&chunk(format!("{{\"{key}\":1}}\n")), &mut give).unwrap();
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
    decoder(true).run(&chunk("x\n".repeat(100_000)), &mut give).unwrap();
    assert_eq!(count, 100_000);
    assert!(items > 1, "{items}");
}
