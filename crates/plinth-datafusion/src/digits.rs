//! Decimals that leave their type: the engine reckons with 128 bits, which hold numbers of 39 digits that no DECIMAL has.
//!
//! Within a statement such a number is exact. Where it leaves the statement, to be shown or kept, it is an error: it would be printed
//! without its last digit.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Decimal256Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType};
use datafusion_common::config::ConfigOptions;
use datafusion_common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion_common::{Result, exec_err};
use datafusion_datasource::sink::DataSinkExec;
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_plan::ExecutionPlan;
use datafusion_physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_session::PhysicalOptimizerRule;
use futures::StreamExt;

use crate::around::{Around, AroundExec};

/// The first number of 39 digits.
const BEYOND: i128 = 10_i128.pow(38);

/// Rows whose decimals have the digits that their types have.
///
/// # Errors
/// If a decimal has more, alone or within a list, a struct or a map.
pub fn within_digits(batch: RecordBatch) -> Result<RecordBatch> {
    for (field, column) in batch.schema_ref().fields().iter().zip(batch.columns()) {
        if let Some(beyond) = beyond(column) {
            let (name, data_type) = (field.name(), crate::sql_type_name(&beyond));
            return exec_err!(
                "column {name:?}: a number has more digits than {data_type}; cast to DOUBLE, or to fewer places"
            );
        }
    }
    Ok(batch)
}

/// The type of a decimal that has more digits than it.
fn beyond(column: &ArrayRef) -> Option<DataType> {
    let is_within = match column.data_type() {
        // Of fewer digits the result of an operation has a type for all its results.
        DataType::Decimal128(DECIMAL128_MAX_PRECISION, _) => {
            let decimals = column.as_primitive::<Decimal128Type>();
            let beyond = |value: i128| value <= -BEYOND || value >= BEYOND;
            let any = decimals.values().iter().fold(false, |any, &value| any | beyond(value));
            !any || decimals.iter().flatten().all(|value| !beyond(value))
        }
        DataType::Decimal256(DECIMAL256_MAX_PRECISION, _) => {
            let decimals = column.as_primitive::<Decimal256Type>();
            decimals.validate_decimal_precision(DECIMAL256_MAX_PRECISION).is_ok()
        }
        nested if nested.is_nested() && may_be_beyond(nested) => {
            return parts(column).iter().find_map(beyond);
        }
        _ => true,
    };
    if is_within { None } else { Some(column.data_type().clone()) }
}

/// Whether a type has decimals of all digits within it.
fn may_be_beyond(data_type: &DataType) -> bool {
    use DataType::{FixedSizeList, LargeList, List, Map, Struct};
    match data_type {
        DataType::Decimal128(DECIMAL128_MAX_PRECISION, _) | DataType::Decimal256(DECIMAL256_MAX_PRECISION, _) => true,
        List(item) | LargeList(item) | FixedSizeList(item, _) | Map(item, _) => may_be_beyond(item.data_type()),
        Struct(fields) => fields.iter().any(|field| may_be_beyond(field.data_type())),
        _ => false,
    }
}

/// What the rows of a nested column have within them: what none of them has, or what lies within NULL, does not count.
fn parts(column: &ArrayRef) -> Vec<ArrayRef> {
    let valid = |row: &usize| column.is_valid(*row);
    let rows = || (0..column.len()).filter(valid);
    match column.data_type() {
        DataType::List(_) => rows().map(|row| column.as_list::<i32>().value(row)).collect(),
        DataType::LargeList(_) => rows().map(|row| column.as_list::<i64>().value(row)).collect(),
        DataType::FixedSizeList(..) => rows().map(|row| column.as_fixed_size_list().value(row)).collect(),
        DataType::Map(..) => rows().map(|row| Arc::new(column.as_map().value(row)) as ArrayRef).collect(),
        DataType::Struct(_) if column.null_count() == 0 => column.as_struct().columns().to_vec(),
        DataType::Struct(_) => {
            let columns = column.as_struct().columns();
            rows().flat_map(|row| columns.iter().map(move |part| part.slice(row, 1))).collect()
        }
        _ => Vec::new(),
    }
}

/// Has what is written to files of other formats looked at.
#[derive(Debug)]
pub struct DigitsOfFiles;

impl PhysicalOptimizerRule for DigitsOfFiles {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|plan| {
            let Some(sink) = plan.downcast_ref::<DataSinkExec>() else { return Ok(Transformed::no(plan)) };
            let input = Arc::clone(sink.input());
            if !input.schema().fields().iter().any(|field| may_be_beyond(field.data_type())) {
                return Ok(Transformed::no(plan));
            }
            let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
            Ok(Transformed::yes(plan.replace_children(vec![AroundExec::over(input, Looked)], options)?))
        })
        .data()
    }

    fn name(&self) -> &'static str {
        "digits_of_files"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

#[derive(Clone)]
struct Looked;

impl Around for Looked {
    fn execute(
        &self,
        operator: &Arc<dyn ExecutionPlan>,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let rows = operator.execute(partition, context)?;
        let schema = rows.schema();
        let rows = rows.map(|batch| batch.and_then(within_digits));
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Decimal128Array};

    use super::*;

    #[test]
    fn numbers_of_39_digits_are_refused_and_nulls_are_not() {
        let batch = |values: Vec<Option<i128>>, nulls: bool| {
            let mut decimals = Decimal128Array::from(values).with_precision_and_scale(38, 2).unwrap();
            if nulls {
                let none = arrow_buffer::NullBuffer::new_null(decimals.len());
                decimals = Decimal128Array::new(decimals.values().clone(), Some(none))
                    .with_precision_and_scale(38, 2)
                    .unwrap();
            }
            RecordBatch::try_from_iter([("d", Arc::new(decimals) as ArrayRef)]).unwrap()
        };
        assert!(within_digits(batch(vec![Some(BEYOND - 1), None, Some(1 - BEYOND)], false)).is_ok());
        for beyond in [BEYOND, -BEYOND, i128::MAX, i128::MIN] {
            let error = within_digits(batch(vec![Some(1), Some(beyond)], false)).unwrap_err().to_string();
            assert!(error.contains("DECIMAL(38") && error.contains("\"d\""), "{error}");
            assert!(within_digits(batch(vec![Some(beyond)], true)).is_ok());
        }
    }

    #[test]
    fn numbers_within_lists_and_structs_are_looked_at() {
        let decimals = |values: Vec<i128>| {
            Arc::new(Decimal128Array::from(values).with_precision_and_scale(38, 0).unwrap()) as ArrayRef
        };
        let field = Arc::new(arrow_schema::Field::new_list_field(DataType::Decimal128(38, 0), true));
        let list = |values: Vec<i128>, valid: bool| {
            let ends = arrow_buffer::OffsetBuffer::from_lengths([values.len()]);
            let nulls = arrow_buffer::NullBuffer::from(vec![valid]);
            Arc::new(arrow_array::ListArray::new(Arc::clone(&field), ends, decimals(values), Some(nulls))) as ArrayRef
        };
        let pair = |values: Vec<i128>| {
            let part = Arc::new(arrow_schema::Field::new("x", DataType::Decimal128(38, 0), true));
            Arc::new(arrow_array::StructArray::from(vec![(part, decimals(values))])) as ArrayRef
        };
        let looked = |column: ArrayRef| within_digits(RecordBatch::try_from_iter([("c", column)]).unwrap());
        assert!(looked(list(vec![1, BEYOND - 1], true)).is_ok());
        assert!(looked(list(vec![1, BEYOND], false)).is_ok());
        assert!(looked(list(vec![1, BEYOND], true)).is_err());
        assert!(looked(pair(vec![BEYOND - 1])).is_ok());
        assert!(looked(pair(vec![1, -BEYOND])).is_err());
    }
}
