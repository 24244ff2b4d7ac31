//! Arrays of every type, seeded.

use std::sync::Arc;

use arrow_array::builder::*;
use arrow_array::types::*;
use arrow_array::*;
use arrow_buffer::{IntervalDayTime, IntervalMonthDayNano, NullBuffer, OffsetBuffer, i256};
use arrow_schema::*;
pub use plinth_core::random::Random;
use plinth_format::{File, Writer, WriterOptions};

fn nulls(random: &mut Random, len: usize, percent: u64) -> Option<NullBuffer> {
    (percent > 0).then(|| (0..len).map(|_| !random.chance(percent)).collect())
}

fn primitive<T: ArrowPrimitiveType>(
    data_type: &DataType,
    nulls: Option<NullBuffer>,
    values: impl Iterator<Item = T::Native>,
) -> ArrayRef {
    Arc::new(PrimitiveArray::<T>::new(values.collect::<Vec<_>>().into(), nulls).with_data_type(data_type.clone()))
}

pub fn words(random: &mut Random, len: usize, distinct: u64, long: usize) -> Vec<String> {
    (0..len)
        .map(|_| {
            let n = random.below(distinct);
            let mut word = format!("{n:x}-wörd");
            for i in 0..random.clone().below(3) as usize * long {
                word.push(char::from(b'a' + ((n + i as u64) % 26) as u8));
            }
            if n == 0 { String::new() } else { word }
        })
        .collect()
}

/// Every type, at the top level and nested.
pub fn all_types() -> Vec<DataType> {
    use DataType::*;
    let item = |t: DataType| Arc::new(Field::new("item", t, true));
    let entries = Field::new_struct("entries", vec![Field::new("k", Utf8, false), Field::new("v", Int32, true)], false);
    let mut types = vec![
        Null,
        Boolean,
        Int8,
        Int16,
        Int32,
        Int64,
        UInt8,
        UInt16,
        UInt32,
        UInt64,
        Float16,
        Float32,
        Float64,
        Date32,
        Date64,
        Time32(TimeUnit::Second),
        Time32(TimeUnit::Millisecond),
        Time64(TimeUnit::Microsecond),
        Time64(TimeUnit::Nanosecond),
        Timestamp(TimeUnit::Second, None),
        Timestamp(TimeUnit::Millisecond, Some("UTC".into())),
        Timestamp(TimeUnit::Microsecond, Some("+02:00".into())),
        Timestamp(TimeUnit::Nanosecond, None),
        Duration(TimeUnit::Second),
        Duration(TimeUnit::Nanosecond),
        Interval(IntervalUnit::YearMonth),
        Interval(IntervalUnit::DayTime),
        Interval(IntervalUnit::MonthDayNano),
        Decimal32(9, 2),
        Decimal64(18, -3),
        Decimal128(38, 10),
        Decimal256(76, 0),
        Utf8,
        LargeUtf8,
        Utf8View,
        Binary,
        LargeBinary,
        BinaryView,
        FixedSizeBinary(0),
        FixedSizeBinary(5),
        FixedSizeBinary(16),
        Dictionary(Box::new(Int8), Box::new(Utf8)),
        Dictionary(Box::new(UInt32), Box::new(Int64)),
        RunEndEncoded(Arc::new(Field::new("run_ends", Int32, false)), Arc::new(Field::new("values", Utf8, true))),
    ];
    types.extend([
        List(item(Int32)),
        LargeList(item(Utf8)),
        ListView(item(Int64)),
        LargeListView(item(Float64)),
        FixedSizeList(item(Int16), 3),
        FixedSizeList(item(Utf8), 0),
        Map(Arc::new(entries), false),
        Struct(Fields::empty()),
        Struct(vec![Field::new("a", Int32, false), Field::new("b", Utf8, true)].into()),
        List(item(List(item(Utf8)))),
        List(item(Struct(vec![Field::new("x", Float64, true), Field::new("ys", List(item(Int8)), true)].into()))),
        Struct(
            vec![Field::new_struct("in", vec![Field::new("deep", FixedSizeList(item(Boolean), 2), true)], true)].into(),
        ),
    ]);
    types
}

/// An array of a type; `percent` of the rows are null.
pub fn array(random: &mut Random, data_type: &DataType, len: usize, percent: u64) -> ArrayRef {
    use DataType::*;
    let n = nulls(random, len, percent);
    // Shapes that call for different encodings.
    let shape = random.below(5);
    let base = random.next_u64();
    let mut last = base >> 20;
    let mut r = random.clone();
    let mut number = move || {
        last = match shape {
            0 => r.next_u64(),
            1 => r.below(100),
            2 => last + r.below(10),
            3 => {
                if r.chance(2) {
                    r.next_u64()
                } else {
                    last
                }
            }
            _ => base % 1000 + r.below(3),
        };
        last
    };
    macro_rules! numbers {
        ($type:ty, $native:ty) => {
            primitive::<$type>(data_type, n, (0..len).map(|_| number() as $native))
        };
    }
    let result: ArrayRef = match data_type {
        Null => Arc::new(NullArray::new(len)),
        Boolean => Arc::new(BooleanArray::new((0..len).map(|_| number() % 3 == 0).collect(), n)),
        Int8 => numbers!(Int8Type, i8),
        Int16 => numbers!(Int16Type, i16),
        Int32 => numbers!(Int32Type, i32),
        Int64 => numbers!(Int64Type, i64),
        UInt8 => numbers!(UInt8Type, u8),
        UInt16 => numbers!(UInt16Type, u16),
        UInt32 => numbers!(UInt32Type, u32),
        UInt64 => numbers!(UInt64Type, u64),
        Float16 => primitive::<Float16Type>(data_type, n, (0..len).map(|_| half::f16::from_bits(number() as u16))),
        Float32 => primitive::<Float32Type>(data_type, n, (0..len).map(|_| number() as i32 as f32 / 100.0)),
        Float64 => primitive::<Float64Type>(
            data_type,
            n,
            (0..len).map(|i| match i % 50 {
                0 => -0.0,
                1 => f64::NAN,
                2 => f64::NEG_INFINITY,
                _ => number() as i32 as f64 / 1000.0,
            }),
        ),
        Date32 => numbers!(Date32Type, i32),
        Date64 => numbers!(Date64Type, i64),
        Time32(TimeUnit::Second) => numbers!(Time32SecondType, i32),
        Time32(_) => numbers!(Time32MillisecondType, i32),
        Time64(TimeUnit::Microsecond) => numbers!(Time64MicrosecondType, i64),
        Time64(_) => numbers!(Time64NanosecondType, i64),
        Timestamp(TimeUnit::Second, _) => numbers!(TimestampSecondType, i64),
        Timestamp(TimeUnit::Millisecond, _) => numbers!(TimestampMillisecondType, i64),
        Timestamp(TimeUnit::Microsecond, _) => numbers!(TimestampMicrosecondType, i64),
        Timestamp(TimeUnit::Nanosecond, _) => numbers!(TimestampNanosecondType, i64),
        Duration(TimeUnit::Second) => numbers!(DurationSecondType, i64),
        Duration(_) => numbers!(DurationNanosecondType, i64),
        Interval(IntervalUnit::YearMonth) => numbers!(IntervalYearMonthType, i32),
        Interval(IntervalUnit::DayTime) => primitive::<IntervalDayTimeType>(
            data_type,
            n,
            (0..len).map(|_| IntervalDayTime::new(number() as i32 % 9, number() as i32)),
        ),
        Interval(IntervalUnit::MonthDayNano) => primitive::<IntervalMonthDayNanoType>(
            data_type,
            n,
            (0..len).map(|_| IntervalMonthDayNano::new(number() as i32, 1, number() as i64)),
        ),
        Decimal32(..) => primitive::<Decimal32Type>(data_type, n, (0..len).map(|_| number() as i32 % 1_000_000)),
        Decimal64(..) => primitive::<Decimal64Type>(data_type, n, (0..len).map(|_| number() as i64 % 1_000_000)),
        Decimal128(..) => primitive::<Decimal128Type>(
            data_type,
            n,
            (0..len).map(|i| {
                let value = i128::from(number() as i64);
                if shape == 0 && i % 3 == 0 { value << 60 } else { value }
            }),
        ),
        Decimal256(..) => primitive::<Decimal256Type>(
            data_type,
            n,
            (0..len).map(|i| {
                let value = i256::from_i128(i128::from(number() as i64));
                if shape == 0 && i % 3 == 0 { value.wrapping_mul(i256::from_i128(i128::MAX)) } else { value }
            }),
        ),
        Utf8 | LargeUtf8 | Utf8View | Binary | LargeBinary | BinaryView => {
            let distinct = [3, 200, 1 << 40][shape as usize % 3];
            let words = words(random, len, distinct, if shape == 4 { 60 } else { 5 });
            let text = StringArray::new(
                OffsetBuffer::from_lengths(words.iter().map(String::len)),
                words.concat().into_bytes().into(),
                n,
            );
            arrow_cast::cast(&text, data_type).unwrap()
        }
        FixedSizeBinary(width) => {
            let width = *width as usize;
            let bytes: Vec<u8> = (0..len * width).map(|_| number() as u8).collect();
            Arc::new(FixedSizeBinaryArray::try_new_with_len(width as i32, bytes.into(), n, len).unwrap())
        }
        Dictionary(key, value) => {
            let distinct = 20.min(len.max(1));
            let values = array(random, value, distinct, 0);
            let keys: UInt32Array = (0..len)
                .map(|i| n.as_ref().is_none_or(|n| n.is_valid(i)).then(|| random.below(distinct as u64) as u32))
                .collect();
            let keys = arrow_cast::cast(&keys, key).unwrap();
            match key.as_ref() {
                Int8 => Arc::new(DictionaryArray::<Int8Type>::new(
                    keys.as_any().downcast_ref::<Int8Array>().unwrap().clone(),
                    values,
                )),
                _ => Arc::new(DictionaryArray::<UInt32Type>::new(
                    keys.as_any().downcast_ref::<UInt32Array>().unwrap().clone(),
                    values,
                )),
            }
        }
        RunEndEncoded(..) => {
            let mut builder = StringRunBuilder::<Int32Type>::new();
            (0..len).for_each(|i| builder.append_option((i / 7 % 5 != 4).then(|| format!("run {}", i / 7 % 11))));
            Arc::new(builder.finish())
        }
        List(field) | LargeList(field) | ListView(field) | LargeListView(field) => {
            let lengths: Vec<usize> =
                (0..len).map(|_| if random.chance(30) { 0 } else { random.below(4) as usize }).collect();
            let values = array(random, field.data_type(), lengths.iter().sum(), percent);
            let list = ListArray::new(field.clone(), OffsetBuffer::from_lengths(lengths), values, n);
            arrow_cast::cast(&list, data_type).unwrap()
        }
        FixedSizeList(field, size) => {
            let values = array(random, field.data_type(), len * *size as usize, percent);
            Arc::new(FixedSizeListArray::try_new_with_length(field.clone(), *size, values, n, len).unwrap())
        }
        Map(entries, sorted) => {
            let Struct(fields) = entries.data_type() else { unreachable!() };
            let lengths: Vec<usize> = (0..len).map(|_| random.below(4) as usize).collect();
            let total = lengths.iter().sum();
            let keys = array(random, fields[0].data_type(), total, 0);
            let values = array(random, fields[1].data_type(), total, percent);
            let structs = StructArray::new(fields.clone(), vec![keys, values], None);
            Arc::new(MapArray::new(entries.clone(), OffsetBuffer::from_lengths(lengths), structs, n, *sorted))
        }
        Struct(fields) if fields.is_empty() => Arc::new(StructArray::new_empty_fields(len, n)),
        Struct(fields) => {
            let children = fields
                .iter()
                .map(|f| array(random, f.data_type(), len, if f.is_nullable() { percent } else { 0 }))
                .collect();
            Arc::new(StructArray::new(fields.clone(), children, n))
        }
        other => panic!("no generator for {other}"),
    };
    random.next_u64();
    result
}

/// A column of each type.
pub fn wide_batch(seed: u64, rows: usize, percent: u64) -> RecordBatch {
    let mut random = Random(seed);
    let columns: Vec<(String, ArrayRef)> =
        all_types().iter().enumerate().map(|(i, t)| (format!("c{i}"), array(&mut random, t, rows, percent))).collect();
    let fields: Vec<Field> =
        columns.iter().map(|(name, array)| Field::new(name, array.data_type().clone(), true)).collect();
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options).unwrap()
}

/// Small row groups and blocks, so that small data has many of both.
pub fn small() -> WriterOptions {
    WriterOptions { row_group_rows: 4096, block_rows: 1024, threads: 2, ..WriterOptions::default() }
}

pub fn write(path: &std::path::Path, batch: &RecordBatch, options: WriterOptions) -> File {
    let mut writer = Writer::create(path, &batch.schema(), options).unwrap();
    writer.write(batch).unwrap();
    let summary = writer.finish().unwrap();
    let file = File::open(path).unwrap();
    assert_eq!(summary.rows, batch.num_rows() as u64);
    assert_eq!((file.num_rows(), file.byte_len()), (summary.rows, summary.file_bytes));
    file
}

/// A batch as a scan of its file must give it back.
pub fn expected(batch: &RecordBatch, file: &File) -> RecordBatch {
    let columns =
        batch.columns().iter().zip(file.schema().fields()).map(|(c, f)| match (c.data_type(), f.data_type()) {
            // Arrow's cast loses the rows of lists of no items.
            (DataType::FixedSizeList(_, 0), DataType::FixedSizeList(item, _)) => {
                let values = new_empty_array(item.data_type());
                let list =
                    FixedSizeListArray::try_new_with_length(item.clone(), 0, values, c.nulls().cloned(), c.len());
                Arc::new(list.unwrap()) as ArrayRef
            }
            _ => arrow_cast::cast(c, f.data_type()).unwrap(),
        });
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(file.schema().clone(), columns.collect(), &options).unwrap()
}

pub fn read_all(scan: plinth_format::Scan) -> RecordBatch {
    let schema = scan.schema().clone();
    let batches: Vec<RecordBatch> = scan.map(Result::unwrap).collect();
    arrow_select::concat::concat_batches(&schema, &batches).unwrap()
}

/// Equality of rows: what lies beneath a null does not count.
pub fn assert_same(left: &RecordBatch, right: &RecordBatch) {
    assert_eq!(left.num_rows(), right.num_rows());
    assert_eq!(left.schema().fields(), right.schema().fields());
    for ((a, b), field) in left.columns().iter().zip(right.columns()).zip(left.schema().fields()) {
        if a.to_data() != b.to_data() {
            let row = (0..a.len()).find(|&i| a.slice(i, 1).to_data() != b.slice(i, 1).to_data());
            panic!(
                "{field:?} differs first in row {row:?}: {:?} {:?}",
                row.map(|i| a.slice(i, 1)),
                row.map(|i| b.slice(i, 1))
            );
        }
    }
}
