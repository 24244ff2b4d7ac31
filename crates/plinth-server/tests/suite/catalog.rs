//! Catalogs, schemas, tables, keys, types, and what the server says of itself.

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_flight::FlightInfo;
use arrow_flight::sql::{
    CommandGetDbSchemas, CommandGetExportedKeys, CommandGetPrimaryKeys, CommandGetTables, CommandGetXdbcTypeInfo,
    SqlInfo,
};
use arrow_schema::Schema;
use tonic::Code;

use crate::harness::{Client, Place, READER, change, fetch, rows, run, status, texts};

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
