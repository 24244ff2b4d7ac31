//! Plinth's predicates, evaluated row by row in the most obvious way.

use std::cmp::Ordering;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, RecordBatch, StructArray, make_array};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::common::ScalarValue;
use plinth_datafusion::to_plinth;
use plinth_encoding::expr::{CompareOp, Expr, Function, Path, Scalar};

/// The truth of a predicate for each row.
pub(crate) fn evaluate(expr: &Expr, batch: &RecordBatch) -> Vec<Option<bool>> {
    let rows = batch.num_rows();
    match expr {
        Expr::Literal(truth) => vec![*truth; rows],
        Expr::Compare { column, op, value } => {
            each(column, batch, |found| found.map(|found| holds(*op, compare(&found, value))))
        }
        Expr::In { column, values } => {
            each(column, batch, |found| found.map(|found| values.iter().any(|value| compare(&found, value).is_eq())))
        }
        Expr::Keys { column, keys } => each(column, batch, |found| match found? {
            Scalar::Int(value) => Some(i64::try_from(value).is_ok_and(|value| keys.contains(value))),
            other => panic!("{other} among keys"),
        }),
        Expr::IsNull(column) => {
            let array = column_of(column, batch);
            (0..rows).map(|row| Some(array.is_null(row))).collect()
        }
        Expr::Not(inner) => evaluate(inner, batch).into_iter().map(|truth| truth.map(|truth| !truth)).collect(),
        Expr::And(parts) => fold(parts, batch, true),
        Expr::Or(parts) => fold(parts, batch, false),
        Expr::Function(function) => call(function, batch),
    }
}

/// AND for `neutral` true, OR for false.
fn fold(parts: &[Expr], batch: &RecordBatch, neutral: bool) -> Vec<Option<bool>> {
    let mut result = vec![Some(neutral); batch.num_rows()];
    for part in parts {
        for (all, one) in result.iter_mut().zip(evaluate(part, batch)) {
            *all = match (*all, one) {
                (Some(a), _) if a != neutral => Some(a),
                (_, Some(b)) if b != neutral => Some(b),
                (Some(_), Some(_)) => Some(neutral),
                _ => None,
            };
        }
    }
    result
}

fn each(column: &Path, batch: &RecordBatch, answer: impl Fn(Option<Scalar>) -> Option<bool>) -> Vec<Option<bool>> {
    let array = column_of(column, batch);
    let value = |row| {
        let value = ScalarValue::try_from_array(&array, row).unwrap();
        if value.is_null() { None } else { Some(to_plinth(&value, array.data_type()).unwrap()) }
    };
    (0..batch.num_rows()).map(|row| answer(value(row))).collect()
}

/// A column or struct field, null where any struct around it is.
pub(crate) fn column_of(path: &Path, batch: &RecordBatch) -> ArrayRef {
    let (first, rest) = path.parts().split_first().unwrap();
    let mut array = Arc::clone(batch.column_by_name(first).unwrap_or_else(|| panic!("no column {path}")));
    for name in rest {
        let parent = array.as_any().downcast_ref::<StructArray>().unwrap().clone();
        let child = parent.column_by_name(name).unwrap_or_else(|| panic!("no field {path}"));
        let nulls = NullBuffer::union(parent.nulls(), child.nulls());
        array = make_array(child.to_data().into_builder().nulls(nulls).build().unwrap());
    }
    array
}

/// A function, with all rows at once; each row on its own must answer the same.
fn call(function: &Function, batch: &RecordBatch) -> Vec<Option<bool>> {
    let columns: Vec<ArrayRef> = function.columns.iter().map(|path| column_of(path, batch)).collect();
    let all: Vec<Option<bool>> = function.function.evaluate(&columns).unwrap().iter().collect();
    for row in (0..batch.num_rows()).step_by(7) {
        let one: Vec<ArrayRef> = columns.iter().map(|column| column.slice(row, 1)).collect();
        assert_eq!(
            function.function.evaluate(&one).unwrap().iter().next().unwrap(),
            all[row],
            "{}",
            function.function.name()
        );
    }
    all
}

fn compare(a: &Scalar, b: &Scalar) -> Ordering {
    match (a, b) {
        (Scalar::Bool(a), Scalar::Bool(b)) => a.cmp(b),
        (Scalar::Int(a), Scalar::Int(b)) => a.cmp(b),
        (Scalar::Float(a), Scalar::Float(b)) => a.total_cmp(b),
        (Scalar::Bytes(a), Scalar::Bytes(b)) => a.cmp(b),
        _ => panic!("cannot compare {a:?} with {b:?}"),
    }
}

fn holds(op: CompareOp, ordering: Ordering) -> bool {
    match op {
        CompareOp::Eq => ordering.is_eq(),
        CompareOp::NotEq => ordering.is_ne(),
        CompareOp::Lt => ordering.is_lt(),
        CompareOp::LtEq => ordering.is_le(),
        CompareOp::Gt => ordering.is_gt(),
        CompareOp::GtEq => ordering.is_ge(),
    }
}
