use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, Int32Array, ListArray, RecordBatch, StringArray, StructArray};
use arrow_buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, Schema};
use plinth_encoding::Effort;
use plinth_encoding::expr::Path;
use plinth_format::{File, FormatError, Writer, WriterOptions};

use crate::data::{assert_same, expected, read_all, small, wide_batch, write};

#[test]
fn every_type_comes_back_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    for (seed, (rows, percent)) in
        [(0, 0), (1, 0), (1, 100), (1023, 10), (1024, 0), (10_000, 5), (9_000, 60), (5000, 100)].into_iter().enumerate()
    {
        for effort in [Effort::Plain, Effort::Fast, Effort::Balanced, Effort::Compact] {
            let batch = wide_batch(seed as u64, rows, percent);
            let path = dir.path().join(format!("{seed}-{effort:?}.plinth"));
            let file = write(&path, &batch, WriterOptions { effort, ..small() });
            assert_same(&read_all(file.scan().build().unwrap()), &expected(&batch, &file));
            let blocks: u64 = file.report().unwrap().columns.iter().map(|column| column.block_bytes).sum();
            assert!(file.verify(2, &|_| {}).unwrap() >= blocks);
        }
    }
}

#[test]
fn many_small_batches_are_one_table() {
    let dir = tempfile::tempdir().unwrap();
    let batch = wide_batch(77, 9_999, 20);
    let mut writer = Writer::create(dir.path().join("t.plinth"), &batch.schema(), small()).unwrap();
    for from in (0..batch.num_rows()).step_by(37) {
        writer.write(&batch.slice(from, 37.min(batch.num_rows() - from))).unwrap();
    }
    writer.finish().unwrap();
    let file = File::open(dir.path().join("t.plinth")).unwrap();
    assert_eq!(file.row_groups().iter().map(|g| g.rows).collect::<Vec<_>>(), [4096, 4096, 1807]);
    assert_same(&read_all(file.scan().batch_rows(777).build().unwrap()), &expected(&batch, &file));
}

#[test]
fn a_struct_field_can_be_read_alone_and_is_null_where_its_struct_is() {
    let a = Arc::new(Int32Array::from(vec![1, 2, 3, 4])) as ArrayRef;
    let fields = vec![Field::new("a", DataType::Int32, false)];
    let s = StructArray::new(fields.into(), vec![a], Some(NullBuffer::from(vec![true, false, true, false])));
    let schema = Schema::new(vec![Field::new("s", s.data_type().clone(), true)]);
    let batch = RecordBatch::try_new(Arc::new(schema), vec![Arc::new(s)]).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let file = write(&dir.path().join("t.plinth"), &batch, small());
    let path = Path::column("s").child("a");
    let read = read_all(file.scan().project(vec![path.clone()]).build().unwrap());
    assert_eq!(
        read.column(0).as_ref(),
        &Int32Array::from(vec![Some(1), None, Some(3), None]) as &dyn arrow_array::Array
    );
    assert_eq!(file.statistics(&path).unwrap().null_count, 2);
    assert_eq!(file.statistics(&Path::column("s")).unwrap().null_count, 2);
    assert!(file.scan().project(vec![Path::column("s").child("b")]).build().is_err());
}

#[test]
fn items_hidden_beneath_null_lists_are_left_behind() {
    let items = StringArray::from(vec!["seen", "hidden", "hidden too", "also seen"]);
    let offsets = OffsetBuffer::new(ScalarBuffer::from(vec![0, 1, 3, 4]));
    let item = Arc::new(Field::new("item", DataType::Utf8, true));
    let list = ListArray::new(item, offsets, Arc::new(items), Some(NullBuffer::from(vec![true, false, true])));
    let schema = Schema::new(vec![Field::new("l", list.data_type().clone(), true)]);
    let batch = RecordBatch::try_new(Arc::new(schema), vec![Arc::new(list)]).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let file = write(&dir.path().join("t.plinth"), &batch, small());
    assert_same(&read_all(file.scan().build().unwrap()), &expected(&batch, &file));
    let items = &file.report().unwrap().columns[1];
    assert_eq!((items.path.as_str(), items.values), ("l[]", 2));
}

#[test]
fn what_does_not_fit_is_refused_before_anything_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.plinth");
    let union = DataType::Union(arrow_schema::UnionFields::empty(), arrow_schema::UnionMode::Dense);
    let schema = Schema::new(vec![Field::new("good", DataType::Int8, true), Field::new("bad", union, true)]);
    let error = Writer::create(&path, &schema, small()).unwrap_err();
    assert!(matches!(&error, FormatError::Unsupported { column, .. } if column == "bad"), "{error}");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);

    let schema = Arc::new(Schema::new(vec![Field::new("n", DataType::Int32, false)]));
    let mut writer = Writer::create(&path, &schema, small()).unwrap();
    let other = Arc::new(Schema::new(vec![Field::new("n", DataType::Utf8, true)]));
    let text = RecordBatch::try_new(other, vec![Arc::new(StringArray::from(vec!["x"]))]).unwrap();
    assert!(writer.write(&text).unwrap_err().to_string().contains("\"n\""));
    let nullable = Arc::new(Schema::new(vec![Field::new("n", DataType::Int32, true)]));
    let null = RecordBatch::try_new(nullable, vec![Arc::new(Int32Array::from(vec![None]))]).unwrap();
    assert!(writer.write(&null).unwrap_err().to_string().contains("without nulls"));
    drop(writer);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn a_cancelled_writer_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let options = small();
    let batch = wide_batch(3, 5_000, 0);
    let mut writer = Writer::create(dir.path().join("t.plinth"), &batch.schema(), options.clone()).unwrap();
    writer.write(&batch).unwrap();
    options.cancelled.store(true, std::sync::atomic::Ordering::Relaxed);
    assert!(matches!(writer.finish(), Err(FormatError::Cancelled)));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn views_into_large_buffers_come_back_as_they_were() {
    let dir = tempfile::tempdir().unwrap();
    let all = arrow_array::StringViewArray::from_iter_values((0..5_000).map(|i| format!("{i:0200}")));
    let few: arrow_array::BooleanArray = (0..5_000).map(|i| Some(i % 500 == 7)).collect();
    let few = arrow_select::filter::filter(&all, &few).unwrap();
    let batch = arrow_array::RecordBatch::try_from_iter_with_nullable([("s", few, true)]).unwrap();
    let file = crate::data::write(&dir.path().join("few.plinth"), &batch, crate::data::small());
    let back = crate::data::read_all(file.scan().build().unwrap());
    crate::data::assert_same(&back, &crate::data::expected(&batch, &file));
}

#[test]
fn null_among_the_values_of_dictionaries_is_null() {
    use arrow_array::types::Int32Type;
    use arrow_array::{DictionaryArray, Int64Array};
    let rows = 10_000;
    let texts: Vec<Option<String>> =
        (0..700).map(|value| (value % 7 != 3).then(|| format!("a text of its own, {value}"))).collect();
    let numbers: Vec<Option<i64>> = (0..700).map(|value| (value % 5 != 2).then_some(value)).collect();
    let key = |row: i32| (row % 11 != 0).then_some(row * 31 % 700);
    let keys = Int32Array::from_iter((0..rows).map(key));
    let of = |values: ArrayRef| Arc::new(DictionaryArray::<Int32Type>::new(keys.clone(), values)) as ArrayRef;
    let text = of(Arc::new(StringArray::from(texts.clone())));
    let items = Field::new_list_field(text.data_type().clone(), true);
    let one_each = OffsetBuffer::from_lengths(vec![1; keys.len()]);
    let list: ArrayRef = Arc::new(ListArray::new(Arc::new(items), one_each, Arc::clone(&text), None));
    let batch =
        RecordBatch::try_from_iter([("t", text), ("n", of(Arc::new(Int64Array::from(numbers.clone())))), ("l", list)]);
    let batch = batch.unwrap();
    let dir = tempfile::tempdir().unwrap();
    // Within a dictionary of the column, and beyond one.
    for dictionary_values in [0, 2_000_000] {
        let options = WriterOptions { dictionary_values, replace: true, ..small() };
        let read = read_all(write(&dir.path().join("t.plinth"), &batch, options).scan().build().unwrap());
        let value = |row: usize| key(i32::try_from(row).unwrap()).map(|key| usize::try_from(key).unwrap());
        let items = read.column(2).as_list::<i32>().values();
        for row in 0..read.num_rows() {
            let expected = value(row).and_then(|value| texts[value].as_deref());
            for found in [read.column(0).as_string_view(), items.as_string_view()] {
                assert_eq!(found.is_valid(row).then(|| found.value(row)), expected, "row {row}");
            }
            let number = read.column(1).as_primitive::<arrow_array::types::Int64Type>();
            assert_eq!(number.is_valid(row).then(|| number.value(row)), value(row).and_then(|value| numbers[value]));
        }
    }
}
