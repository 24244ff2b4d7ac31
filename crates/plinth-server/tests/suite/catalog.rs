//! Catalogs, schemas, tables, keys, types, and what the server says of itself.

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_flight::sql::{
    ActionCreatePreparedStatementRequest, ActionCreatePreparedStatementResult, Any, CommandGetDbSchemas,
    CommandGetExportedKeys, CommandGetPrimaryKeys, CommandGetTables, CommandGetXdbcTypeInfo,
    CommandPreparedStatementQuery, CommandStatementQuery, ProstMessageExt, SqlInfo,
};
use arrow_flight::{Action, FlightDescriptor, FlightInfo};
use arrow_schema::{DataType, Schema};
use bytes::Bytes;
use prost::Message;
use tonic::{Code, Status};

use crate::harness::{Client, Place, READER, ask, change, fetch, number, request, rows, run, status, texts};

async fn told(client: &mut Client, info: FlightInfo) -> Vec<arrow_array::RecordBatch> {
    // The columns are those that were told before.
    let schema = info.clone().try_decode_schema().unwrap();
    let batches = fetch(client, info).await.unwrap();
    assert!(batches.iter().all(|batch| *batch.schema() == schema));
    batches
}

fn tables(pattern: Option<&str>, types: &[&str], with_schema: bool) -> CommandGetTables {
    CommandGetTables {
        catalog: None,
        db_schema_filter_pattern: None,
        table_name_filter_pattern: pattern.map(str::to_owned),
        table_types: types.iter().map(|kind| (*kind).to_owned()).collect(),
        include_schema: with_schema,
    }
}

#[test]
fn what_there_is_is_told() {
    run(async {
        let place = Place::new().await;
        let mut client = place.fill(3).await;
        for sql in [
            "CREATE VIEW v AS SELECT id FROM t",
            "CREATE SCHEMA s",
            "CREATE TABLE s.u (a BIGINT, b TEXT, PRIMARY KEY (b, a))",
        ] {
            change(&mut client, sql).await.unwrap();
        }
        // A reader is told the same.
        for mut client in [client, place.client(READER).await] {
            let info = client.get_catalogs().await.unwrap();
            assert_eq!(texts(&told(&mut client, info).await, "catalog_name"), ["datafusion"]);
            let all = CommandGetDbSchemas { catalog: None, db_schema_filter_pattern: None };
            let info = client.get_db_schemas(all).await.unwrap();
            assert_eq!(texts(&told(&mut client, info).await, "db_schema_name"), ["public", "s"]);
            let info = client.get_tables(tables(None, &[], false)).await.unwrap();
            assert_eq!(texts(&told(&mut client, info).await, "table_name"), ["t", "v", "u"]);
            let info = client.get_tables(tables(Some("t%"), &[], true)).await.unwrap();
            let found = told(&mut client, info).await;
            assert_eq!(texts(&found, "table_name"), ["t"]);
            let bytes = found[0].column_by_name("table_schema").unwrap().as_binary::<i32>().value(0).to_vec();
            let columns = Schema::try_from(arrow_flight::IpcMessage(bytes.into())).unwrap();
            assert_eq!(columns.fields().iter().map(|field| field.name().as_str()).collect::<Vec<_>>(), ["id", "name"]);
            let info = client.get_tables(tables(None, &["VIEW"], false)).await.unwrap();
            assert_eq!(texts(&told(&mut client, info).await, "table_name"), ["v"]);
            let info = client.get_table_types().await.unwrap();
            assert_eq!(texts(&told(&mut client, info).await, "table_type"), ["BASE TABLE", "VIEW"]);
            let of = |schema: Option<&str>, table: &str| CommandGetPrimaryKeys {
                catalog: None,
                db_schema: schema.map(str::to_owned),
                table: table.to_owned(),
            };
            let info = client.get_primary_keys(of(Some("s"), "u")).await.unwrap();
            let keys = told(&mut client, info).await;
            assert_eq!(texts(&keys, "column_name"), ["b", "a"]);
            let numbers = keys[0].column_by_name("key_sequence").unwrap().as_primitive::<Int32Type>();
            assert_eq!(numbers.values(), &[1, 2]);
            assert_eq!(status(client.get_primary_keys(of(None, "nothing")).await.unwrap_err()).code(), Code::NotFound);
            let none = CommandGetExportedKeys { catalog: None, db_schema: None, table: "t".to_owned() };
            let info = client.get_exported_keys(none).await.unwrap();
            assert_eq!(rows(&told(&mut client, info).await), 0);
            let info =
                client.get_sql_info(vec![SqlInfo::FlightSqlServerName, SqlInfo::FlightSqlServerCancel]).await.unwrap();
            assert_eq!(rows(&told(&mut client, info).await), 2);
            let info = client.get_xdbc_type_info(CommandGetXdbcTypeInfo { data_type: None }).await.unwrap();
            let names = texts(&told(&mut client, info).await, "type_name");
            assert!(names.contains(&"BIGINT".to_owned()) && names.len() > 10, "{names:?}");
            let info = client.get_xdbc_type_info(CommandGetXdbcTypeInfo { data_type: Some(12) }).await.unwrap();
            assert_eq!(texts(&told(&mut client, info).await, "type_name"), ["VARCHAR"]);
        }
    });
}

async fn columns(client: &mut Client, command: impl ProstMessageExt) -> Result<Schema, Status> {
    let descriptor = FlightDescriptor::new_cmd(command.as_any().encode_to_vec());
    let told = client.inner_mut().get_schema(request(descriptor)).await?;
    Ok((&told.into_inner()).try_into().unwrap())
}

#[test]
fn columns_are_told_of_what_does_not_run() {
    run(async {
        let place = Place::new().await;
        let mut client = place.fill(3).await;
        let query = |sql: &str| CommandStatementQuery { query: sql.to_owned(), transaction_id: None };
        let prepared = |handle: &Bytes| CommandPreparedStatementQuery { prepared_statement_handle: handle.clone() };

        let schema = columns(&mut client, query("SELECT id, name AS n FROM t WHERE id = ?")).await.unwrap();
        assert_eq!(schema.fields().iter().map(|field| field.name().as_str()).collect::<Vec<_>>(), ["id", "n"]);
        assert_eq!(schema.field(1).data_type(), &DataType::Utf8);

        // What changes rows is looked at alone.
        columns(&mut client, query("DELETE FROM t")).await.unwrap();
        columns(&mut client, query("CREATE TABLE u (a INT)")).await.unwrap();
        assert_eq!(number(&mut client, "SELECT count(*) FROM t").await, 3);
        assert!(ask(&mut client, "FROM u").await.is_err());

        let asked = ActionCreatePreparedStatementRequest {
            query: "SELECT max(id) AS m FROM t".to_owned(),
            transaction_id: None,
        };
        let action =
            Action { r#type: "CreatePreparedStatement".to_owned(), body: asked.as_any().encode_to_vec().into() };
        let mut answers = client.inner_mut().do_action(request(action)).await.unwrap().into_inner();
        let answer = Any::decode(answers.message().await.unwrap().unwrap().body).unwrap();
        let handle = answer.unpack::<ActionCreatePreparedStatementResult>().unwrap().unwrap().prepared_statement_handle;
        assert_eq!(columns(&mut client, prepared(&handle)).await.unwrap().field(0).name(), "m");

        // Of calls of the catalog, and without a ticket that waits to be fetched.
        let of_tables = columns(&mut client, tables(None, &[], true)).await.unwrap();
        assert_eq!(of_tables.field(4).name(), "table_schema");

        for (sql, what) in
            [("SELECT nope FROM t", "nope"), ("SELECT 1; SELECT 2", "one statement"), ("", "no statement")]
        {
            let refused = columns(&mut client, query(sql)).await.unwrap_err();
            assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
            assert!(refused.message().contains(what), "{refused}");
        }
        let refused = columns(&mut client, prepared(&Bytes::from_static(b"other"))).await.unwrap_err();
        assert_eq!(refused.code(), Code::NotFound, "{refused}");
        let nothing = client.inner_mut().get_schema(request(FlightDescriptor::new_path(vec!["t".to_owned()]))).await;
        assert_eq!(nothing.unwrap_err().code(), Code::Unimplemented);
        let mut stranger = place.stranger().await;
        let unknown = stranger
            .inner_mut()
            .get_schema(FlightDescriptor::new_cmd(query("SELECT 1").as_any().encode_to_vec()))
            .await;
        assert_eq!(unknown.unwrap_err().code(), Code::Unauthenticated);
    });
}
