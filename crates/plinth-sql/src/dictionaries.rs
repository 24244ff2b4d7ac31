//! Dictionaries that come from elsewhere.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, make_array};
use arrow_schema::{ArrowError, DataType};

/// A batch whose dictionaries have NULL as a key. Arrow lets a key stand for NULL among the values as well, which some of its own casts
/// take for a text of nothing.
///
/// # Errors
/// If Arrow finds a dictionary damaged.
pub fn with_null_keys(batch: RecordBatch) -> Result<RecordBatch, ArrowError> {
    let has_null_value = |column: &ArrayRef| match column.data_type() {
        DataType::Dictionary(..) => column.as_any_dictionary().values().null_count() > 0,
        _ => false,
    };
    if !batch.columns().iter().any(has_null_value) {
        return Ok(batch);
    }
    let columns = batch.columns().iter().map(|column| {
        if !has_null_value(column) {
            return Ok(Arc::clone(column));
        }
        let keyed = column.to_data().into_builder().nulls(column.logical_nulls()).build()?;
        Ok(make_array(keyed))
    });
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(batch.schema(), columns.collect::<Result<_, ArrowError>>()?, &options)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use arrow_array::types::Int8Type;
    use arrow_array::{DictionaryArray, Int8Array, StringArray};
    use arrow_cast::cast;

    use super::*;

    #[test]
    fn nulls_among_values_are_nulls_of_keys() {
        let keys = Int8Array::from(vec![Some(0), Some(1), None, Some(0)]);
        let column = DictionaryArray::<Int8Type>::new(keys, Arc::new(StringArray::from(vec![None, Some("a")])));
        let batch = RecordBatch::try_from_iter([("c", Arc::new(column.slice(1, 3)) as ArrayRef)]).unwrap();
        let keyed = with_null_keys(batch).unwrap();
        let texts = cast(keyed.column(0), &DataType::Utf8View).unwrap();
        let texts: Vec<Option<&str>> = texts.as_string_view().iter().collect();
        assert_eq!(texts, [Some("a"), None, None]);
    }
}
