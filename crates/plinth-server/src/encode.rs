//! Batches as they travel: with types that every client knows.
//!
//! Views of text become text: many clients know no views, and a batch that shares a large heap of them would be sent with the whole heap.

use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_cast::cast;
use arrow_flight::encode::FlightDataEncoderBuilder;
use arrow_flight::error::FlightError;
use arrow_flight::{FlightData, IpcMessage, SchemaAsIpc};
use arrow_ipc::writer::IpcWriteOptions;
use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef};
use bytes::Bytes;
use futures::{Stream, TryStreamExt};
use tonic::Status;

use crate::failure::{arrow, internal};

/// A type without views.
fn plain_type(data_type: &DataType) -> DataType {
    let field = |field: &FieldRef| Arc::new(plain_field(field));
    match data_type {
        DataType::Utf8View => DataType::Utf8,
        DataType::BinaryView => DataType::Binary,
        DataType::List(item) | DataType::ListView(item) => DataType::List(field(item)),
        DataType::LargeList(item) | DataType::LargeListView(item) => DataType::LargeList(field(item)),
        DataType::FixedSizeList(item, size) => DataType::FixedSizeList(field(item), *size),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(field).collect()),
        DataType::Map(entries, sorted) => DataType::Map(field(entries), *sorted),
        DataType::Dictionary(_, values) => plain_type(values),
        other => other.clone(),
    }
}

fn plain_field(field: &Field) -> Field {
    field.clone().with_data_type(plain_type(field.data_type()))
}

/// The columns as they are sent.
pub(crate) fn plain_schema(schema: &Schema) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| plain_field(field)).collect::<Vec<_>>();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

/// A batch with these columns.
pub(crate) fn plain(batch: RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, Status> {
    let columns = batch.columns().iter().zip(schema.fields()).map(|(column, field)| {
        match column.data_type() == field.data_type() {
            true => Ok(Arc::clone(column)),
            false => cast(column, field.data_type()),
        }
    });
    let columns = columns.collect::<Result<Vec<_>, _>>().map_err(arrow)?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options).map_err(arrow)
}

/// Batches as messages, one after the other as they are taken.
pub(crate) fn messages(
    schema: SchemaRef,
    batches: impl Stream<Item = Result<RecordBatch, Status>> + Send + 'static,
) -> impl Stream<Item = Result<FlightData, Status>> + Send {
    FlightDataEncoderBuilder::new().with_schema(schema).build(batches.map_err(FlightError::from)).map_err(|e| match e {
        FlightError::Tonic(status) => *status,
        FlightError::Arrow(error) => arrow(error),
        other => internal(other),
    })
}

/// A schema as a message.
pub(crate) fn schema_bytes(schema: &Schema) -> Result<Bytes, Status> {
    let options = IpcWriteOptions::default();
    let IpcMessage(bytes) = SchemaAsIpc::new(schema, &options).try_into().map_err(arrow)?;
    Ok(bytes)
}
