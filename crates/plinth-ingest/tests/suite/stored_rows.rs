//! Parquet files of types that other writers have: INT96, intervals, and repeated fields that no list is around.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Int32Type, IntervalDayTimeType, IntervalMonthDayNanoType, TimestampMicrosecondType, TimestampNanosecondType,
};
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, IntervalUnit, TimeUnit};
use parquet::data_type::{ByteArray, FixedLenByteArray, FixedLenByteArrayType, Int32Type as Int32, Int96, Int96Type};
use parquet::file::metadata::{ColumnChunkMetaDataBuilder, ParquetMetaDataReader, ParquetMetaDataWriter};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

const SCHEMA: &str = "message m {
    required int32 id;
    optional fixed_len_byte_array(12) i (INTERVAL);
    optional int96 t;
    repeated int32 r;
    repeated group g { required int32 x; optional int96 t; }
    optional group s { optional fixed_len_byte_array(12) i (INTERVAL); }
    optional group l (LIST) { repeated group list { optional int96 element; } }
}";

/// Months, days and milliseconds.
pub(crate) type Interval = [u32; 3];

/// A row of such a file; moments are nanoseconds since 1970.
#[derive(Clone, Debug, Default)]
pub(crate) struct Row {
    pub(crate) i: Option<Interval>,
    pub(crate) t: Option<i128>,
    pub(crate) r: Vec<i32>,
    pub(crate) g: Vec<(i32, Option<i128>)>,
    pub(crate) s: Option<Option<Interval>>,
    pub(crate) l: Option<Vec<Option<i128>>>,
}

impl Row {
    /// A row by numbers that `below` draws; without months if there are to be none.
    pub(crate) fn random(below: &mut dyn FnMut(usize) -> usize, months: bool) -> Self {
        let interval = |below: &mut dyn FnMut(usize) -> usize| {
            let months = if months { below(500) as u32 } else { 0 };
            [months, below(4) as u32 * 1_000, below(1 << 31) as u32]
        };
        let moment = |below: &mut dyn FnMut(usize) -> usize| (below(1 << 40) as i128 - (1 << 39)) * 1_000_000 + 7;
        let maybe = |below: &mut dyn FnMut(usize) -> usize| (below(4) > 0).then(|| moment(below));
        Self {
            i: (below(4) > 0).then(|| interval(below)),
            t: maybe(below),
            r: (0..below(4)).map(|_| below(9) as i32).collect(),
            g: (0..below(3)).map(|_| (below(9) as i32, maybe(below))).collect(),
            s: (below(3) > 0).then(|| (below(3) > 0).then(|| interval(below))),
            l: (below(3) > 0).then(|| (0..below(4)).map(|_| maybe(below)).collect()),
        }
    }

    /// The row as [`cells`] has it.
    pub(crate) fn cells(&self, id: usize) -> String {
        let or = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        let interval = |[months, days, millis]: Interval| format!("{months}/{days}/{}", u64::from(millis) * 1_000_000);
        let moment = |moment: Option<i128>| or(moment.map(|moment| moment.to_string()));
        let r = self.r.iter().map(i32::to_string).collect::<Vec<_>>().join(",");
        let g = self.g.iter().map(|(x, t)| format!("({x},{})", moment(*t))).collect::<Vec<_>>().join(",");
        let l = |l: &Vec<Option<i128>>| format!("[{}]", l.iter().map(|t| moment(*t)).collect::<Vec<_>>().join(","));
        format!(
            "{id} {} {} [{r}] [{g}] {} {}",
            or(self.i.map(interval)),
            moment(self.t),
            or(self.s.map(|i| format!("({})", or(i.map(interval))))),
            or(self.l.as_ref().map(l))
        )
    }
}

/// The rows of a batch as text.
pub(crate) fn cells(batch: &RecordBatch) -> Vec<String> {
    let row = |row| batch.columns().iter().map(|column| cell(column, row)).collect::<Vec<_>>().join(" ");
    (0..batch.num_rows()).map(row).collect()
}

fn cell(array: &dyn Array, row: usize) -> String {
    if array.is_null(row) {
        return "-".to_owned();
    }
    let all = |array: &dyn Array| (0..array.len()).map(|row| cell(array, row)).collect::<Vec<_>>().join(",");
    match array.data_type() {
        DataType::Int32 => array.as_primitive::<Int32Type>().value(row).to_string(),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            array.as_primitive::<TimestampNanosecondType>().value(row).to_string()
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            (i128::from(array.as_primitive::<TimestampMicrosecondType>().value(row)) * 1_000).to_string()
        }
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            let value = array.as_primitive::<IntervalMonthDayNanoType>().value(row);
            format!("{}/{}/{}", value.months, value.days, value.nanoseconds)
        }
        DataType::Interval(IntervalUnit::DayTime) => {
            let value = array.as_primitive::<IntervalDayTimeType>().value(row);
            format!("0/{}/{}", value.days, i64::from(value.milliseconds) * 1_000_000)
        }
        DataType::List(_) => format!("[{}]", all(array.as_list::<i32>().value(row).as_ref())),
        DataType::Struct(_) => {
            let columns = array.as_struct().columns();
            format!("({})", columns.iter().map(|column| cell(column, row)).collect::<Vec<_>>().join(","))
        }
        other => panic!("{other}"),
    }
}

fn twelve([months, days, millis]: Interval) -> FixedLenByteArray {
    let bytes: Vec<u8> = [months, days, millis].iter().flat_map(|part| part.to_le_bytes()).collect();
    ByteArray::from(bytes).into()
}

fn int96(moment: i128) -> Int96 {
    let (day, nanos) = (moment.div_euclid(86_400_000_000_000) + 2_440_588, moment.rem_euclid(86_400_000_000_000));
    Int96::from(vec![nanos as u32, (nanos >> 32) as u32, day as i32 as u32])
}

/// Levels and values of a column.
#[derive(Default)]
struct Column<T> {
    values: Vec<T>,
    definitions: Vec<i16>,
    repetitions: Vec<i16>,
}

impl<T> Column<T> {
    fn put(&mut self, definition: i16, repetition: i16, value: Option<T>) {
        self.definitions.push(definition);
        self.repetitions.push(repetition);
        self.values.extend(value);
    }

    /// The items of a list at a level; `empty` if there are none.
    fn list(&mut self, empty: i16, items: impl IntoIterator<Item = (i16, Option<T>)>) {
        let mut repetition = 0;
        for (definition, value) in items {
            self.put(definition, repetition, value);
            repetition = 1;
        }
        if repetition == 0 {
            self.put(empty, 0, None);
        }
    }
}

fn put<D: parquet::data_type::DataType>(group: &mut SerializedRowGroupWriter<'_, File>, of: Column<D::T>) {
    let mut column = group.next_column().unwrap().unwrap();
    let levels = (Some(of.definitions.as_slice()), Some(of.repetitions.as_slice()));
    column.typed::<D>().write_batch(&of.values, levels.0, levels.1).unwrap();
    column.close().unwrap();
}

/// Writes rows, so many to a row group, through dictionaries or not.
pub(crate) fn write(path: &Path, rows: &[Row], group_rows: usize, dictionary: bool) {
    let schema = Arc::new(parse_message_type(SCHEMA).unwrap());
    let properties = WriterProperties::builder().set_dictionary_enabled(dictionary).build();
    let mut writer = SerializedFileWriter::new(File::create(path).unwrap(), schema, Arc::new(properties)).unwrap();
    for (at, rows) in rows.chunks(group_rows).enumerate() {
        let mut group = writer.next_row_group().unwrap();
        let (mut id, mut i, mut t, mut r) =
            (Column::default(), Column::default(), Column::default(), Column::default());
        let (mut x, mut gt, mut s, mut l) =
            (Column::default(), Column::default(), Column::default(), Column::default());
        for (row, of) in rows.iter().enumerate() {
            id.put(0, 0, Some((at * group_rows + row) as i32));
            i.put(of.i.is_some().into(), 0, of.i.map(twelve));
            t.put(of.t.is_some().into(), 0, of.t.map(int96));
            r.list(0, of.r.iter().map(|r| (1, Some(*r))));
            x.list(0, of.g.iter().map(|(x, _)| (1, Some(*x))));
            gt.list(0, of.g.iter().map(|(_, t)| (1 + i16::from(t.is_some()), t.map(int96))));
            let inner = of.s.flatten();
            s.put(i16::from(of.s.is_some()) + i16::from(inner.is_some()), 0, inner.map(twelve));
            let items = of.l.iter().flatten().map(|t| (2 + i16::from(t.is_some()), t.map(int96)));
            l.list(of.l.is_some().into(), items);
        }
        put::<Int32>(&mut group, id);
        put::<FixedLenByteArrayType>(&mut group, i);
        put::<Int96Type>(&mut group, t);
        put::<Int32>(&mut group, r);
        put::<Int32>(&mut group, x);
        put::<Int96Type>(&mut group, gt);
        put::<FixedLenByteArrayType>(&mut group, s);
        put::<Int96Type>(&mut group, l);
        group.close().unwrap();
    }
    writer.close().unwrap();
}

/// Has the footer say that there are dictionaries at offset 0, as some writers do where there are none.
pub(crate) fn with_dictionaries_at_zero(path: &Path) {
    with_chunks(path, |chunk| chunk.set_dictionary_page_offset(Some(0)));
}

/// Has the footer say something else of each chunk.
pub(crate) fn with_chunks(path: &Path, change: impl Fn(ColumnChunkMetaDataBuilder) -> ColumnChunkMetaDataBuilder) {
    let bytes = std::fs::read(path).unwrap();
    let metadata = ParquetMetaDataReader::new().parse_and_finish(&File::open(path).unwrap()).unwrap();
    let footer = u32::from_le_bytes(bytes[bytes.len() - 8..bytes.len() - 4].try_into().unwrap()) as usize;
    let mut builder = metadata.into_builder();
    let groups = builder.take_row_groups().into_iter().map(|group| {
        let chunks = group.columns().to_vec().into_iter();
        let chunks = chunks.map(|chunk| change(chunk.into_builder()).build().unwrap());
        let chunks = chunks.collect();
        group.into_builder().set_column_metadata(chunks).build().unwrap()
    });
    let groups: Vec<_> = groups.collect();
    let metadata = builder.set_row_groups(groups).build();
    let mut out = bytes[..bytes.len() - 8 - footer].to_vec();
    ParquetMetaDataWriter::new(&mut out, &metadata).finish().unwrap();
    std::fs::write(path, out).unwrap();
}
