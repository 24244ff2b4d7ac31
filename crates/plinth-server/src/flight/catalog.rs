//! What there is: catalogs, schemas, tables, keys, and what the server can do.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, RecordBatch, StringArray};
use arrow_flight::sql::metadata::{SqlInfoData, SqlInfoDataBuilder};
use arrow_flight::sql::{
    CommandGetCatalogs, CommandGetDbSchemas, CommandGetPrimaryKeys, CommandGetTableTypes, CommandGetTables, SqlInfo,
    SqlSupportedTransaction,
};
use arrow_schema::{DataType, Field, Schema};
use datafusion::catalog::{SchemaProvider, TableProvider};
use datafusion::datasource::TableType;
use plinth_sql::key_and_indexes;
use tonic::Status;

use crate::encode::plain_schema;
use crate::engine::{CATALOG, SCHEMA};
use crate::failure::{arrow, internal};
use crate::session::Session;

/// Schemas that are none of the user's.
const HIDDEN: [&str; 2] = [SCHEMA, "information_schema"];

const TABLE: &str = "BASE TABLE";
const VIEW: &str = "VIEW";

/// What the server says of itself.
pub(super) fn infos() -> Result<SqlInfoData, arrow_flight::error::FlightError> {
    let mut infos = SqlInfoDataBuilder::new();
    infos.append(SqlInfo::FlightSqlServerName, "Plinth");
    infos.append(SqlInfo::FlightSqlServerVersion, env!("CARGO_PKG_VERSION"));
    infos.append(SqlInfo::FlightSqlServerArrowVersion, "59");
    infos.append(SqlInfo::FlightSqlServerReadOnly, false);
    infos.append(SqlInfo::FlightSqlServerSql, true);
    infos.append(SqlInfo::FlightSqlServerSubstrait, false);
    infos.append(SqlInfo::FlightSqlServerTransaction, SqlSupportedTransaction::Transaction as i32);
    infos.append(SqlInfo::FlightSqlServerCancel, true);
    infos.append(SqlInfo::FlightSqlServerBulkIngestion, true);
    infos.append(SqlInfo::FlightSqlServerIngestTransactionsSupported, true);
    infos.append(SqlInfo::SqlIdentifierQuoteChar, "\"");
    infos.append(SqlInfo::SqlDdlTable, true);
    infos.append(SqlInfo::SqlDdlSchema, true);
    infos.append(SqlInfo::SqlDdlCatalog, false);
    infos.build()
}

fn schemas_of(session: &Session) -> Vec<(String, Arc<dyn SchemaProvider>)> {
    let Some(catalog) = session.engine.session.context().catalog(CATALOG) else { return Vec::new() };
    let names = catalog.schema_names().into_iter().filter(|name| !HIDDEN.contains(&name.as_str()));
    names.filter_map(|name| catalog.schema(&name).map(|schema| (name, schema))).collect()
}

pub(super) fn catalogs(_: &Session, query: CommandGetCatalogs) -> Result<RecordBatch, Status> {
    let mut answer = query.into_builder();
    answer.append(CATALOG);
    answer.build().map_err(internal)
}

pub(super) fn schemas(session: &Session, query: CommandGetDbSchemas) -> Result<RecordBatch, Status> {
    let mut answer = query.into_builder();
    for (name, _) in schemas_of(session) {
        answer.append(CATALOG, name);
    }
    answer.build().map_err(internal)
}

pub(super) async fn tables(session: &Session, query: CommandGetTables) -> Result<RecordBatch, Status> {
    let mut answer = query.into_builder();
    for (schema_name, schema) in schemas_of(session) {
        for name in schema.table_names() {
            // One that can't be read now is no reason to tell nothing of the others.
            let Ok(Some(table)) = schema.table(&name).await else { continue };
            let kind = if table.table_type() == TableType::View { VIEW } else { TABLE };
            let columns = plain_schema(&table.schema());
            answer.append(CATALOG, &schema_name, &name, kind, &columns).map_err(internal)?;
        }
    }
    answer.build().map_err(internal)
}

pub(super) fn table_types(query: CommandGetTableTypes) -> Result<RecordBatch, Status> {
    let mut answer = query.into_builder();
    [TABLE, VIEW].into_iter().for_each(|kind| answer.append(kind));
    answer.build().map_err(internal)
}

async fn table_of(session: &Session, schema: Option<&str>, name: &str) -> Option<(String, Arc<dyn TableProvider>)> {
    let schema = schema.filter(|schema| !schema.is_empty()).unwrap_or("public");
    let (schema, provider) = schemas_of(session).into_iter().find(|(other, _)| other == schema)?;
    let table = provider.table(name).await.ok().flatten()?;
    Some((schema, table))
}

/// The columns of the primary key of a table; none if it has none.
pub(super) async fn primary_keys(session: &Session, query: CommandGetPrimaryKeys) -> Result<RecordBatch, Status> {
    let ours = query.catalog.as_deref().is_none_or(|catalog| catalog.is_empty() || catalog == CATALOG);
    let found = if ours { table_of(session, query.db_schema.as_deref(), &query.table).await } else { None };
    let (schema, table) = found
        .ok_or_else(|| Status::not_found(format!("there is no table {:?}", crate::failure::short(&query.table))))?;
    let key = key_and_indexes(&table).map(|(key, _)| key).unwrap_or_default();
    let all = |text: &str| -> ArrayRef { Arc::new(StringArray::from_iter_values(key.iter().map(|_| text))) };
    let numbers = (1_i32..).take(key.len());
    let text = |name: &str, nullable| Field::new(name, DataType::Utf8, nullable);
    let columns: [(Field, ArrayRef); 6] = [
        (text("catalog_name", true), all(CATALOG)),
        (text("db_schema_name", true), all(&schema)),
        (text("table_name", false), all(&query.table)),
        (text("column_name", false), Arc::new(StringArray::from_iter_values(&key))),
        (Field::new("key_sequence", DataType::Int32, false), Arc::new(Int32Array::from_iter_values(numbers))),
        (text("key_name", true), Arc::new(StringArray::from(vec![None::<&str>; key.len()]))),
    ];
    let (fields, columns): (Vec<Field>, Vec<ArrayRef>) = columns.into_iter().unzip();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).map_err(arrow)
}

/// The foreign keys of whatever: there are none.
pub(super) fn no_foreign_keys() -> Result<RecordBatch, Status> {
    let text = |name: &str, nullable| Field::new(name, DataType::Utf8, nullable);
    let side = |side: &str| {
        [("catalog_name", true), ("db_schema_name", true), ("table_name", false), ("column_name", false)]
            .map(|(name, nullable)| text(&format!("{side}_{name}"), nullable))
    };
    let mut fields = side("pk").to_vec();
    fields.extend(side("fk"));
    fields.push(Field::new("key_sequence", DataType::Int32, false));
    fields.extend([text("fk_key_name", true), text("pk_key_name", true)]);
    fields.extend(["update_rule", "delete_rule"].map(|name| Field::new(name, DataType::UInt8, false)));
    Ok(RecordBatch::new_empty(Arc::new(Schema::new(fields))))
}
