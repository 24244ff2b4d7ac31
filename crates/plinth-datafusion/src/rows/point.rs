//! Which keys a query asks for, if it asks for keys.

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{Schema, SchemaRef};
use datafusion_common::{DFSchema, Result, ScalarValue};
use datafusion_expr::Expr;
use datafusion_expr::utils::conjunction;
use datafusion_physical_expr::utils::{Guarantee, LiteralGuarantee};
use datafusion_session::Session;

/// Keys beyond which a scan is as good.
const MOST: usize = 1024;

/// The keys that a row must have one of to pass all filters, as a batch of the key's columns; `None` if they may be any, or many.
///
/// Each column of the key has to be equal to a value, or to one of a list; what the filters say beside that does not matter.
pub(super) fn keys(
    session: &dyn Session,
    schema: &SchemaRef,
    key: &[String],
    filters: &[Expr],
) -> Result<Option<RecordBatch>> {
    let named = |filter: &&Expr| filter.column_refs().iter().any(|column| key.contains(&column.name));
    let Some(filter) = conjunction(filters.iter().filter(named).cloned()) else { return Ok(None) };
    let filter = session.create_physical_expr(filter, &DFSchema::try_from(Schema::clone(schema))?)?;
    let guarantees = LiteralGuarantee::analyze(&filter);
    let mut columns: Vec<Vec<ScalarValue>> = Vec::with_capacity(key.len());
    let mut rows = 1;
    for name in key {
        let data_type = schema.field_with_name(name)?.data_type();
        let lists = guarantees.iter().filter(|g| g.guarantee == Guarantee::In && g.column.name == *name);
        let Some(list) = lists.min_by_key(|guarantee| guarantee.literals.len()) else { return Ok(None) };
        // A literal of another type may be equal in a way that its cast is not.
        let same = |value: &ScalarValue| same_kind(&value.data_type(), data_type);
        if !list.literals.iter().all(same) {
            return Ok(None);
        }
        let values = list.literals.iter().filter(|value| !value.is_null()).map(|value| value.cast_to(data_type));
        let values = values.collect::<Result<Vec<_>>>()?;
        rows *= values.len();
        if rows > MOST {
            return Ok(None);
        }
        columns.push(values);
    }
    let fields: Vec<_> = key.iter().map(|name| schema.field_with_name(name).cloned()).collect::<Result<_, _>>()?;
    let wanted = std::sync::Arc::new(Schema::new(fields));
    if rows == 0 {
        return Ok(Some(RecordBatch::new_empty(wanted)));
    }
    // Every combination of the columns' values.
    let mut arrays: Vec<ArrayRef> = Vec::with_capacity(columns.len());
    let mut every = 1;
    for values in &columns {
        let all = (0..rows).filter_map(|row| values.get(row / every % values.len())).cloned();
        arrays.push(ScalarValue::iter_to_array(all)?);
        every *= values.len();
    }
    Ok(Some(RecordBatch::try_new(wanted, arrays)?))
}

/// Whether values of one type are those of the other, however they are laid out.
fn same_kind(literal: &arrow_schema::DataType, column: &arrow_schema::DataType) -> bool {
    let text = |data_type: &arrow_schema::DataType| data_type.is_string();
    let bytes = |data_type: &arrow_schema::DataType| {
        use arrow_schema::DataType::{Binary, BinaryView, LargeBinary};
        matches!(data_type, Binary | LargeBinary | BinaryView)
    };
    literal == column || (text(literal) && text(column)) || (bytes(literal) && bytes(column))
}
