//! What `AdbcConnectionGetInfo` tells of this driver and its database, and the kinds of tables.

use std::sync::Arc;

use arrow_array::builder::{Int32Builder, ListBuilder, MapBuilder, MapFieldNames};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Int32Array, Int64Array, RecordBatch, StringArray, UInt32Array, UnionArray,
};
use arrow_buffer::ScalarBuffer;
use arrow_schema::{DataType, Field, Schema, UnionFields};

use crate::error::{Failure, Result};
use crate::run::Answer;

/// A value of the union that the interface has.
enum Info {
    Text(&'static str),
    Truth(bool),
    Number(i64),
}

const ALL: [(u32, Info); 7] = [
    (0, Info::Text("Plinth")),
    (1, Info::Text(env!("CARGO_PKG_VERSION"))),
    // SQL and Substrait.
    (3, Info::Truth(true)),
    (4, Info::Truth(false)),
    (100, Info::Text("ADBC Plinth Driver")),
    (101, Info::Text(env!("CARGO_PKG_VERSION"))),
    // The revision of the interface.
    (103, Info::Number(1_001_000)),
];

fn arrow(error: arrow_schema::ArrowError) -> Failure {
    Failure::internal(error.to_string())
}

/// What is known of these codes, or of all.
pub(crate) fn info(codes: Option<&[u32]>) -> Result<Answer> {
    let asked = ALL.iter().filter(|(code, _)| codes.is_none_or(|codes| codes.contains(code)));
    let (mut names, mut ids, mut offsets) = (Vec::new(), Vec::<i8>::new(), Vec::<i32>::new());
    let (mut texts, mut truths, mut numbers) = (Vec::new(), Vec::new(), Vec::new());
    for (code, value) in asked {
        let (id, at) = match value {
            Info::Text(text) => {
                texts.push(*text);
                (0, texts.len())
            }
            Info::Truth(truth) => {
                truths.push(*truth);
                (1, truths.len())
            }
            Info::Number(number) => {
                numbers.push(*number);
                (2, numbers.len())
            }
        };
        names.push(*code);
        ids.push(id);
        offsets.push(i32::try_from(at - 1).map_err(|e| Failure::internal(e.to_string()))?);
    }
    let lists = ListBuilder::new(arrow_array::builder::StringBuilder::new()).finish();
    let entries = MapFieldNames { entry: "entries".to_owned(), key: "key".to_owned(), value: "value".to_owned() };
    let maps = MapBuilder::new(Some(entries), Int32Builder::new(), ListBuilder::new(Int32Builder::new())).finish();
    let children: Vec<(&str, ArrayRef)> = vec![
        ("string_value", Arc::new(StringArray::from(texts))),
        ("bool_value", Arc::new(BooleanArray::from(truths))),
        ("int64_value", Arc::new(Int64Array::from(numbers))),
        ("int32_bitmask", Arc::new(Int32Array::from(Vec::<i32>::new()))),
        ("string_list", Arc::new(lists)),
        ("int32_to_int32_list_map", Arc::new(maps)),
    ];
    let fields = children.iter().map(|(name, column)| Field::new(*name, column.data_type().clone(), true));
    let fields = UnionFields::try_new(0..6, fields).map_err(arrow)?;
    let children = children.into_iter().map(|(_, column)| column).collect();
    let values = UnionArray::try_new(fields, ScalarBuffer::from(ids), Some(ScalarBuffer::from(offsets)), children);
    let values: ArrayRef = Arc::new(values.map_err(arrow)?);
    let schema = Arc::new(Schema::new(vec![
        Field::new("info_name", DataType::UInt32, false),
        Field::new("info_value", values.data_type().clone(), true),
    ]));
    let batch =
        RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(UInt32Array::from(names)), values]).map_err(arrow)?;
    Ok(Answer::of(schema, vec![batch], None))
}

/// The kinds of tables.
pub(crate) fn table_types() -> Result<Answer> {
    let schema = Arc::new(Schema::new(vec![Field::new("table_type", DataType::Utf8, false)]));
    let kinds = StringArray::from(vec!["BASE TABLE", "VIEW"]);
    let batch = RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(kinds)]).map_err(arrow)?;
    Ok(Answer::of(schema, vec![batch], None))
}

/// The names of statistics beside those of the interface: none.
pub(crate) fn statistic_names() -> Answer {
    let fields =
        vec![Field::new("statistic_name", DataType::Utf8, false), Field::new("statistic_key", DataType::Int16, false)];
    Answer::of(Arc::new(Schema::new(fields)), Vec::new(), None)
}
