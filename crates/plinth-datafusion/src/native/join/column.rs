//! Columns of the side of a join that was gathered.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, UInt32Array, new_empty_array};
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;
use arrow_select::concat::concat;
use arrow_select::take::take;
use datafusion_common::Result;
use plinth_exec::Result as ExecResult;
use plinth_exec::vector::{Coded, Vector, nulls_of};

use super::build::Piece;

/// Buffers of a column of text above which its values are put into one: each batch of results names all of them.
const BUFFERS: usize = 8;

/// Rows up to which they are codes: what comes next may keep a number for each of them.
const CODES: usize = 1 << 20;

/// The values of a column, by the numbers of its rows.
#[derive(Debug)]
struct Column(ArrayRef);

impl Coded for Column {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn identity(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    fn is_ordered(&self) -> bool {
        false
    }

    fn values(&self, codes: &[u32], nulls: Option<&NullBuffer>) -> ExecResult<ArrayRef> {
        Ok(take(&self.0, &UInt32Array::try_new(codes.to_vec().into(), nulls.cloned())?, None)?)
    }
}

/// A column whose rows can stand for its values: one of byte strings, which are compared and gathered at some cost.
pub(super) fn coded(array: &ArrayRef) -> Option<Arc<dyn Coded>> {
    let bytes = array.data_type().is_string() || array.data_type().is_binary();
    (bytes && array.len() <= CODES).then(|| Arc::new(Column(Arc::clone(array))) as Arc<dyn Coded>)
}

/// Some of its rows.
pub(super) fn numbered(array: &ArrayRef, dictionary: &Arc<dyn Coded>, rows: &UInt32Array) -> Vector {
    let nulls = nulls_of(array.nulls(), rows.values());
    Vector::Codes { ids: rows.values().clone(), nulls, dictionary: Arc::clone(dictionary) }
}

/// The values of a column in all pieces, side by side; there may be no piece to tell the type.
pub(super) fn joined(pieces: &[Piece], column: usize, data_type: &DataType) -> Result<ArrayRef> {
    if pieces.is_empty() {
        return Ok(new_empty_array(data_type));
    }
    let arrays: Vec<&dyn Array> = pieces.iter().map(|piece| piece.rows.column(column).as_ref()).collect();
    compact(&concat(&arrays)?)
}

/// Views of values in few buffers.
fn compact(column: &ArrayRef) -> Result<ArrayRef> {
    Ok(match column.data_type() {
        DataType::Utf8View if column.as_string_view().data_buffers().len() > BUFFERS => {
            Arc::new(column.as_string_view().gc())
        }
        DataType::BinaryView if column.as_binary_view().data_buffers().len() > BUFFERS => {
            Arc::new(column.as_binary_view().gc())
        }
        _ => Arc::clone(column),
    })
}
