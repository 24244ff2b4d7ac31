//! Text that was picked from much keeps only itself.

use arrow_array::{BinaryViewArray, Int64Array, StringViewArray};

use super::*;

#[test]
fn text_that_keeps_much_more_than_itself_is_copied() {
    let long = |i: usize| format!("a value too long to lie in its view, {i}");
    let all: StringViewArray = (0..1000).map(|i| Some(long(i))).collect();
    let few: ArrayRef = Arc::new(all.slice(10, 3));
    let binary: ArrayRef = Arc::new(few.as_string_view().clone().to_binary_view());
    let all: ArrayRef = Arc::new(all);
    for (array, most, copied) in [(&all, 0, false), (&few, 0, true), (&binary, 0, true), (&few, 1 << 20, false)] {
        let found = compact_wasteful(array, most, Buffer::len);
        assert_eq!(&found, array);
        assert_eq!(found.get_buffer_memory_size() < array.get_buffer_memory_size() / 10, copied);
    }
}

#[test]
fn a_batch_keeps_its_rows_and_what_is_no_text() {
    let binary: BinaryViewArray = (0..100).map(|i| Some(vec![i; 100])).collect();
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..3));
    let batch = RecordBatch::try_from_iter([("b", Arc::new(binary.slice(7, 3)) as ArrayRef), ("n", numbers)]).unwrap();
    let found = compact_batch(&batch, compact).unwrap();
    assert_eq!(found, batch);
    assert_eq!(found.column(0).as_binary_view().data_buffers()[0].len(), 300);
    let none = RecordBatch::try_new_with_options(
        Arc::new(arrow_array::RecordBatch::new_empty(batch.schema()).project(&[]).unwrap().schema().as_ref().clone()),
        vec![],
        &RecordBatchOptions::new().with_row_count(Some(5)),
    );
    assert_eq!(compact_batch(&none.unwrap(), compact).unwrap().num_rows(), 5);
}
