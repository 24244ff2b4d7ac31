//! Text that keeps much more than itself: views keep the buffers whole that they were picked from. A batch of sorted rows has
//! its text from all over; one of a scan may share a dictionary with all others. An operator that counts or gathers such batches has many
//! times their size.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{BinaryViewType, ByteViewType, StringViewType};
use arrow_array::{Array, ArrayRef, GenericByteViewArray, RecordBatch, RecordBatchOptions};
use arrow_schema::DataType;
use datafusion_common::Result;

/// Text is copied where its buffers are so many times as large.
const WASTE: usize = 2;

/// A batch whose text is copied together where it keeps more than so many bytes beside itself.
///
/// # Errors
/// Never, unless the batch was none.
pub fn dense(batch: RecordBatch, most: usize) -> Result<RecordBatch> {
    let is_view = |column: &ArrayRef| matches!(column.data_type(), DataType::Utf8View | DataType::BinaryView);
    if !batch.columns().iter().any(is_view) {
        return Ok(batch);
    }
    let columns = batch.columns().iter().map(|column| match column.data_type() {
        DataType::Utf8View => gathered(column.as_byte_view::<StringViewType>(), column, most),
        DataType::BinaryView => gathered(column.as_byte_view::<BinaryViewType>(), column, most),
        _ => Arc::clone(column),
    });
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(batch.schema(), columns.collect(), &options)?)
}

fn gathered<T: ByteViewType>(views: &GenericByteViewArray<T>, whole: &ArrayRef, most: usize) -> ArrayRef {
    let held: usize = views.data_buffers().iter().map(|buffer| buffer.capacity()).sum();
    let wasteful = held > most && held > WASTE * views.total_buffer_bytes_used();
    if wasteful { Arc::new(views.gc()) } else { Arc::clone(whole) }
}

#[cfg(test)]
mod tests {
    use arrow_array::StringViewArray;

    use super::*;

    #[test]
    fn text_that_keeps_much_more_than_itself_is_copied() {
        let long = |i: usize| format!("a value too long to lie in its view, {i}");
        let all: StringViewArray = (0..1000).map(|i| Some(long(i))).collect();
        let few: ArrayRef = Arc::new(all.slice(10, 3));
        let all: ArrayRef = Arc::new(all);
        for (array, most, copied) in [(&all, 0, false), (&few, 0, true), (&few, 1 << 20, false)] {
            let batch = RecordBatch::try_from_iter([("s", Arc::clone(array))]).unwrap();
            let copy = dense(batch.clone(), most).unwrap();
            assert_eq!(copy, batch);
            assert_eq!(copy.get_array_memory_size() < batch.get_array_memory_size() / 10, copied);
        }
    }
}
