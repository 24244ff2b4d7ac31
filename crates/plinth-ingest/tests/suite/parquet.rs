//! Parquet files in, the same rows out.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    Array, ArrayRef, BinaryArray, DictionaryArray, Int8Array, Int64Array, ListArray, RecordBatch, StringArray,
    StringViewArray, StructArray,
};
use arrow_buffer::OffsetBuffer;
use arrow_cast::cast;
use arrow_schema::{DataType, Field, Schema};
use arrow_select::concat::concat_batches;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding};
use parquet::file::properties::{WriterProperties, WriterVersion};
use plinth_ingest::{BatchSource, ParquetOptions, ParquetSource, inputs};
use proptest::prelude::*;

fn write(path: &Path, batch: &RecordBatch, properties: WriterProperties) {
    let file = std::fs::File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
}

fn properties(row_group: usize) -> WriterProperties {
    WriterProperties::builder()
        .set_max_row_group_row_count(Some(row_group))
        .set_compression(Compression::SNAPPY)
        .build()
}

fn open(files: &[PathBuf], threads: usize, binary_as_text: bool) -> Result<ParquetSource, String> {
    let options = ParquetOptions { threads, ahead_bytes: 100_000, binary_as_text, ..ParquetOptions::default() };
    ParquetSource::open(files, &options).map_err(|e| e.to_string())
}

/// All rows, dictionaries decoded; also how many arrays were dictionaries.
fn read(source: &mut ParquetSource) -> Result<(RecordBatch, usize), String> {
    let schema = Arc::clone(source.schema());
    let mut dictionaries = 0;
    let mut batches = Vec::new();
    while let Some(batch) = source.next_batch().map_err(|e| e.to_string())? {
        let columns = batch.columns().iter().zip(schema.fields()).map(|(array, field)| {
            dictionaries += usize::from(array.data_type() != field.data_type());
            cast(array, field.data_type()).unwrap()
        });
        batches.push(RecordBatch::try_new(Arc::clone(&schema), columns.collect()).unwrap());
        assert!(source.position().bytes <= source.totals().bytes.unwrap());
    }
    let all = concat_batches(&schema, &batches).unwrap();
    assert_eq!(Some(all.num_rows() as u64), source.totals().rows);
    assert_eq!((source.position().rows, Some(source.position().bytes)), (all.num_rows() as u64, source.totals().bytes));
    Ok((all, dictionaries))
}

fn texts(values: &[Option<String>]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn rows_come_back_in_order_whatever_the_row_groups_and_threads(
        values in prop::collection::vec(prop::option::weighted(0.8, "[a-c]{0,3}|[a-z]{12,20}"), 0..400),
        row_group in 1usize..200,
        threads in 1usize..4,
        dictionary in any::<bool>(),
        dictionary_limit in 20usize..2_000,
    ) {
        let dir = tempfile::tempdir().unwrap();
        let numbers: ArrayRef = Arc::new((0..values.len() as i64).collect::<Int64Array>());
        let bytes: ArrayRef = Arc::new(values.iter().map(|v| v.as_ref().map(String::as_bytes)).collect::<BinaryArray>());
        let batch = RecordBatch::try_from_iter_with_nullable([
            ("n", numbers, false), ("text", texts(&values), true), ("bytes", bytes, true),
        ]).unwrap();
        let properties = WriterProperties::builder()
            .set_max_row_group_row_count(Some(row_group))
            .set_dictionary_enabled(dictionary)
            .set_dictionary_page_size_limit(dictionary_limit)
            .set_write_batch_size(16)
            .build();
        // The same rows in two files.
        let (a, b) = (dir.path().join("a.parquet"), dir.path().join("b.parquet"));
        let half = values.len() / 2;
        write(&a, &batch.slice(0, half), properties.clone());
        write(&b, &batch.slice(half, values.len() - half), properties);
        for binary_as_text in [false, true] {
            let mut source = open(&[a.clone(), b.clone()], threads, binary_as_text).unwrap();
            let (got, dictionaries) = read(&mut source).unwrap();
            prop_assert!(dictionary || dictionaries == 0);
            for (array, field) in batch.columns().iter().zip(got.columns()) {
                prop_assert_eq!(&cast(array, field.data_type()).unwrap(), field);
            }
            let bytes_type = if binary_as_text { DataType::Utf8View } else { DataType::BinaryView };
            prop_assert_eq!(got.column(2).data_type(), &bytes_type);
        }
    }

    #[test]
    fn damaged_files_give_errors_or_rows(at in 0.0..1.0f64, bits in 1u8..=255, cut in any::<bool>()) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.parquet");
        let values: Vec<_> = (0..500).map(|i| (i % 7 != 0).then(|| format!("value {}", i % 50))).collect();
        let batch = RecordBatch::try_from_iter_with_nullable([("text", texts(&values), true)]).unwrap();
        write(&path, &batch, properties(100));
        let mut bytes = std::fs::read(&path).unwrap();
        #[allow(clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "a position in a small file")]
        let at = (at * bytes.len() as f64) as usize;
        if cut { bytes.truncate(at) } else { bytes[at] ^= bits }
        std::fs::write(&path, bytes).unwrap();
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| {}));
        let result = open(std::slice::from_ref(&path), 2, false).and_then(|mut source| {
            while source.next_batch().map_err(|e| e.to_string())?.is_some() {}
            Ok(())
        });
        std::panic::set_hook(hook);
        if let Err(message) = result {
            prop_assert!(message.contains("a.parquet") && !message.contains('\n'), "{}", message);
        } else {
            prop_assert!(!cut);
        }
    }
}

#[test]
fn a_chunk_stored_through_a_dictionary_shares_one_array_of_values() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.parquet");
    let values: Vec<_> = (0..200_000).map(|i| Some(format!("value number {}", i % 97))).collect();
    let batch = RecordBatch::try_from_iter([("text", texts(&values))]).unwrap();
    write(&path, &batch, properties(150_000));
    let mut source = open(&[path], 1, false).unwrap();
    let mut arrays: Vec<ArrayRef> = Vec::new();
    while let Some(batch) = source.next_batch().unwrap() {
        let array = batch.column(0).as_any().downcast_ref::<DictionaryArray<Int32Type>>().unwrap();
        assert_eq!((array.values().data_type(), array.values().len()), (&DataType::Utf8View, 97));
        if arrays.last().is_none_or(|last| !Arc::ptr_eq(last, array.values())) {
            arrays.push(Arc::clone(array.values()));
        }
    }
    assert_eq!(arrays.len(), 2, "one for each row group");
}

#[test]
fn columns_unite_by_name_with_nulls_and_wider_integers() {
    let dir = tempfile::tempdir().unwrap();
    let (a, b) = (dir.path().join("a.parquet"), dir.path().join("b.parquet"));
    let small: ArrayRef = Arc::new(Int8Array::from(vec![-1, 2]));
    let large: ArrayRef = Arc::new(Int64Array::from(vec![i64::MAX]));
    let text: ArrayRef = Arc::new(StringArray::from(vec!["x"]));
    write(&a, &RecordBatch::try_from_iter([("n", small)]).unwrap(), properties(10));
    write(&b, &RecordBatch::try_from_iter([("t", Arc::clone(&text)), ("n", large)]).unwrap(), properties(10));
    let files = inputs::expand(&[dir.path()]).unwrap();
    let (got, _) = read(&mut open(&files, 2, false).unwrap()).unwrap();
    let expected: [ArrayRef; 2] = [
        Arc::new(Int64Array::from(vec![-1, 2, i64::MAX])),
        Arc::new(StringViewArray::from(vec![None, None, Some("x")])),
    ];
    assert_eq!(got.columns(), expected);

    write(&a, &RecordBatch::try_from_iter([("n", text)]).unwrap(), properties(10));
    let message = open(&files, 1, false).unwrap_err();
    assert!(message.contains("column \"n\" is Utf8View in") && message.contains("b.parquet"), "{message}");
}

#[test]
fn nested_columns_come_as_values() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.parquet");
    let tags = ListArray::from_iter_primitive::<Int32Type, _, _>([Some(vec![Some(1), None]), None, Some(vec![])]);
    let name: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None, Some("a long enough value to share")]));
    let raw: ArrayRef = Arc::new(BinaryArray::from(vec![Some(&b"a"[..]), None, Some(b"b")]));
    let inner = StructArray::from(vec![
        (Arc::new(Field::new("name", DataType::Utf8, true)), name),
        (Arc::new(Field::new("raw", DataType::Binary, true)), raw),
    ]);
    let dictionary: DictionaryArray<Int32Type> = vec![Some("p"), None, Some("p")].into_iter().collect();
    let columns: [(&str, ArrayRef); 3] =
        [("tags", Arc::new(tags)), ("s", Arc::new(inner)), ("d", Arc::new(dictionary))];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    write(&path, &batch, properties(2));
    for binary_as_text in [false, true] {
        let (got, _) = read(&mut open(std::slice::from_ref(&path), 1, binary_as_text).unwrap()).unwrap();
        for (array, field) in batch.columns().iter().zip(got.columns()) {
            assert_eq!(&cast(array, field.data_type()).unwrap(), field);
        }
        let DataType::Struct(fields) = got.column(1).data_type() else { panic!() };
        let raw = if binary_as_text { DataType::Utf8View } else { DataType::BinaryView };
        assert_eq!((fields[0].data_type(), fields[1].data_type()), (&DataType::Utf8View, &raw));
        assert_eq!(got.column(2).data_type(), &DataType::Utf8View);
    }
}

#[test]
fn binaries_that_are_no_text_are_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    for dictionary in [true, false] {
        let path = dir.path().join("a.parquet");
        let raw: ArrayRef = Arc::new(BinaryArray::from(vec![&b"fine"[..], b"\xff\xfe"]));
        let properties = WriterProperties::builder().set_dictionary_enabled(dictionary).build();
        write(&path, &RecordBatch::try_from_iter([("raw", raw)]).unwrap(), properties);
        let message = read(&mut open(&[path], 1, true).unwrap()).unwrap_err();
        assert!(message.contains("column \"raw\": holds bytes that are not UTF-8"), "{message}");
        assert!(message.contains("without --binary-as-text"), "{message}");
    }
}

#[test]
fn no_rows_and_no_files_are_fine() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.parquet");
    let schema = Arc::new(Schema::new(vec![Field::new("x", DataType::Int64, true)]));
    write(&path, &RecordBatch::new_empty(schema), properties(10));
    assert_eq!(read(&mut open(&[path], 2, false).unwrap()).unwrap().0.num_rows(), 0);
    assert!(open(&[], 1, false).unwrap().next_batch().unwrap().is_none());
}

#[test]
fn what_is_not_parquet_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.parquet");
    for bytes in [&b""[..], b"PAR1", b"a,b\n1,2\n3,4\n5,6\n"] {
        std::fs::write(&path, bytes).unwrap();
        let message = open(std::slice::from_ref(&path), 1, false).unwrap_err();
        assert!(message.contains("a.parquet: not a readable Parquet file: "), "{message}");
    }
}

/// By the header of a page, room for 8 GB of values was made and filled.
#[test]
fn a_dictionary_has_no_more_values_than_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.parquet");
    let values = Int8Array::from_iter_values(0..100);
    let list = ListArray::new(
        Arc::new(Field::new("item", DataType::Int8, true)),
        OffsetBuffer::from_lengths([1; 100]),
        Arc::new(values.clone()),
        None,
    );
    let properties = WriterProperties::builder().set_compression(Compression::UNCOMPRESSED).build();
    let columns: [(&str, ArrayRef); 2] = [("plain", Arc::new(values)), ("list", Arc::new(list))];
    for (name, column) in columns {
        write(&path, &RecordBatch::try_from_iter([(name, column)]).unwrap(), properties.clone());
        let mut bytes = std::fs::read(&path).unwrap();
        // The header of the dictionary's page: field 7, in which field 1 are 100 values.
        let header = [0x4C, 0x15, 0xC8, 0x01];
        let at = bytes.windows(4).position(|window| window == header).unwrap();
        bytes[at + 2..at + 4].copy_from_slice(&[0xFE, 0x7F]);
        std::fs::write(&path, &bytes).unwrap();
        let message = read(&mut open(std::slice::from_ref(&path), 1, false).unwrap()).unwrap_err();
        assert!(message.contains("a dictionary of 8191 values has 400 bytes"), "{message}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn texts_come_back_whose_lengths_are_packed(
        values in prop::collection::vec(prop::option::weighted(0.8, "[ab]{0,40}"), 0..600),
        nullable in any::<bool>(),
        listed in any::<bool>(),
        second in any::<bool>(),
        prefixes in any::<bool>(),
        rows_of_page in 1_usize..300,
    ) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.parquet");
        let values: Vec<_> = values.into_iter().map(|value| if nullable { value } else { value.or(Some(String::new())) }).collect();
        let column = texts(&values);
        let column: ArrayRef = match listed {
            true => {
                let item = Arc::new(Field::new("item", column.data_type().clone(), nullable));
                let lengths = (0..values.len()).map(|at| usize::from(at % 3 != 1) + usize::from(at % 3 == 2));
                let lengths = OffsetBuffer::<i32>::from_lengths(lengths.scan(values.len(), |left, length| {
                    let length = length.min(*left);
                    *left -= length;
                    Some(length)
                }));
                let used = usize::try_from(*lengths.last().unwrap()).unwrap();
                Arc::new(ListArray::new(item, lengths, column.slice(0, used), None))
            }
            false => column,
        };
        let encoding = if prefixes { Encoding::DELTA_BYTE_ARRAY } else { Encoding::DELTA_LENGTH_BYTE_ARRAY };
        let properties = WriterProperties::builder()
            .set_dictionary_enabled(false)
            .set_encoding(encoding)
            .set_writer_version(if second { WriterVersion::PARQUET_2_0 } else { WriterVersion::PARQUET_1_0 })
            .set_data_page_row_count_limit(rows_of_page)
            .set_write_batch_size(rows_of_page)
            .set_compression(Compression::SNAPPY)
            .build();
        let batch = RecordBatch::try_from_iter_with_nullable([("x", column, nullable)]).unwrap();
        write(&path, &batch, properties);
        let (read, _) = read(&mut open(&[path], 1, false).unwrap()).unwrap();
        let expected = cast(batch.column(0), read.column(0).data_type()).unwrap();
        prop_assert_eq!(read.column(0), &expected);
    }
}
