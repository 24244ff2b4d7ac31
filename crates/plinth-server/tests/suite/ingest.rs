//! Bulk ingestion, and many writers at once.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_flight::encode::FlightDataEncoderBuilder;
use arrow_flight::error::FlightError;
use arrow_flight::sql::{
    CommandStatementIngest, ProstMessageExt, TableDefinitionOptions, TableExistsOption, TableNotExistOption,
};
use arrow_flight::{FlightData, FlightDescriptor};
use futures::{TryStreamExt, stream};
use prost::Message;
use tonic::{Code, Status};

use crate::harness::{Client, Place, READER, WRITER, change, number, run, status};

fn batch(from: i64, rows: i64) -> RecordBatch {
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(from..from + rows));
    let names: ArrayRef = Arc::new(StringArray::from_iter_values((from..from + rows).map(|id| format!("name {id}"))));
    RecordBatch::try_from_iter([("id", ids), ("name", names)]).unwrap()
}

fn into(table: &str, absent: TableNotExistOption, there: TableExistsOption) -> CommandStatementIngest {
    CommandStatementIngest {
        table_definition_options: Some(TableDefinitionOptions { if_not_exist: absent.into(), if_exists: there.into() }),
        table: table.to_owned(),
        schema: None,
        catalog: None,
        temporary: false,
        transaction_id: None,
        options: HashMap::new(),
    }
}

async fn ingest(
    client: &mut Client,
    command: CommandStatementIngest,
    batches: Vec<Result<RecordBatch, FlightError>>,
) -> Result<i64, Status> {
    client.execute_ingest(command, stream::iter(batches)).await.map_err(status)
}

#[test]
fn batches_become_rows() {
    use TableExistsOption::{Append, Fail, Replace};
    use TableNotExistOption::{Create, Fail as Missing};
    run(async {
        let place = Place::new().await;
        let mut client = place.writer().await;
        let some = || (0..10).map(|at| Ok(batch(at * 1000, 1000))).collect::<Vec<_>>();
        assert_eq!(ingest(&mut client, into("a b", Create, Fail), some()).await.unwrap(), 10_000);
        assert_eq!(number(&mut client, "SELECT sum(id) FROM \"a b\"").await, 49_995_000);
        assert_eq!(ingest(&mut client, into("a b", Create, Append), vec![Ok(batch(0, 5))]).await.unwrap(), 5);
        assert_eq!(ingest(&mut client, into("a b", Missing, Append), vec![Ok(batch(0, 5))]).await.unwrap(), 5);
        assert_eq!(number(&mut client, "SELECT count(*) FROM \"a b\"").await, 10_010);
        let refused = ingest(&mut client, into("a b", Create, Fail), some()).await.unwrap_err();
        assert_eq!(refused.code(), Code::AlreadyExists, "{refused}");
        assert_eq!(ingest(&mut client, into("a b", Create, Replace), vec![Ok(batch(0, 7))]).await.unwrap(), 7);
        assert_eq!(number(&mut client, "SELECT count(*) FROM \"a b\"").await, 7);
        let refused = ingest(&mut client, into("nothing", Missing, Append), some()).await.unwrap_err();
        assert_eq!(refused.code(), Code::NotFound, "{refused}");
        let other: ArrayRef = Arc::new(Int64Array::from(vec![1]));
        let other = RecordBatch::try_from_iter([("other", other)]).unwrap();
        let refused = ingest(&mut client, into("a b", Missing, Append), vec![Ok(other)]).await.unwrap_err();
        assert!(refused.message().contains("has no column \"other\"; there are id, name"), "{refused}");
        let mut command = into("t", Create, Fail);
        command.temporary = true;
        assert_eq!(ingest(&mut client, command, some()).await.unwrap_err().code(), Code::Unimplemented);
        let mut command = into("t", Create, Fail);
        command.schema = Some("s".to_owned());
        change(&mut client, "CREATE SCHEMA s").await.unwrap();
        assert_eq!(ingest(&mut client, command, some()).await.unwrap(), 10_000);
        assert_eq!(number(&mut client, "SELECT count(*) FROM s.t").await, 10_000);
    });
}

#[test]
fn rows_that_break_off_leave_nothing() {
    run(async {
        let place = Place::new().await;
        let mut client = place.writer().await;
        let command = || into("t", TableNotExistOption::Create, TableExistsOption::Fail);
        let descriptor = FlightDescriptor::new_cmd(command().as_any().encode_to_vec());
        let encoder = FlightDataEncoderBuilder::new().with_flight_descriptor(Some(descriptor));
        let mut messages: Vec<FlightData> =
            encoder.build(stream::iter((0..100).map(|at| Ok(batch(at * 1000, 1000))))).try_collect().await.unwrap();
        messages.push(FlightData { data_header: vec![1, 2, 3].into(), ..FlightData::default() });
        let mut request = tonic::Request::new(stream::iter(messages));
        request.metadata_mut().insert("authorization", format!("Bearer {WRITER}").parse().unwrap());
        let told = client.inner_mut().do_put(request).await.map(drop).unwrap_err();
        assert!(told.message().contains("the data:"), "{told}");
        crate::harness::until("the statement is over", || place.log().contains("kind=INSERT")).await;
        // The table that was made for them goes, too.
        let mut other = place.writer().await;
        let mut left = 1;
        for _ in 0..300 {
            left = number(&mut other, "SELECT count(*) FROM information_schema.tables WHERE table_name = 't'").await;
            if left == 0 {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        assert_eq!(left, 0);
        assert_eq!(ingest(&mut client, command(), vec![Ok(batch(0, 3))]).await.unwrap(), 3);
        let mut reader = place.client(READER).await;
        let append = into("t", TableNotExistOption::Fail, TableExistsOption::Append);
        assert_eq!(
            ingest(&mut reader, append, vec![Ok(batch(0, 3))]).await.unwrap_err().code(),
            Code::PermissionDenied
        );
        assert_eq!(number(&mut reader, "SELECT count(*) FROM t").await, 3);
    });
}

#[test]
fn rows_are_part_of_a_transaction() {
    run(async {
        let place = Place::new().await;
        let mut client = place.fill(3).await;
        let transaction = client.begin_transaction().await.unwrap();
        let mut append = into("t", TableNotExistOption::Fail, TableExistsOption::Append);
        append.transaction_id = Some(transaction.clone());
        assert_eq!(ingest(&mut client, append, vec![Ok(batch(100, 50))]).await.unwrap(), 50);
        assert_eq!(number(&mut client, "SELECT count(*) FROM t").await, 3);
        client.end_transaction(transaction, arrow_flight::sql::EndTransaction::Commit).await.unwrap();
        assert_eq!(number(&mut client, "SELECT count(*) FROM t").await, 53);
    });
}

#[test]
fn thirty_two_writers_lose_no_row() {
    const WRITERS: i64 = 32;
    const EACH: i64 = 20;
    run(async {
        let place = Place::new().await;
        let mut client = place.writer().await;
        change(&mut client, "CREATE TABLE w (id BIGINT PRIMARY KEY, by BIGINT)").await.unwrap();
        change(&mut client, "CREATE TABLE b (id BIGINT, name TEXT)").await.unwrap();
        let mut writers = Vec::new();
        for writer in 0..WRITERS {
            let mut client = place.writer().await;
            writers.push(tokio::spawn(async move {
                for at in 0..EACH {
                    let sql = format!("INSERT INTO w VALUES ({}, {writer})", writer * EACH + at);
                    assert_eq!(change(&mut client, &sql).await.unwrap(), 1);
                }
                let append = into("b", TableNotExistOption::Fail, TableExistsOption::Append);
                assert_eq!(ingest(&mut client, append, vec![Ok(batch(writer * 100, 100))]).await.unwrap(), 100);
            }));
        }
        for writer in writers {
            writer.await.unwrap();
        }
        assert_eq!(number(&mut client, "SELECT count(*) FROM w").await, WRITERS * EACH);
        assert_eq!(number(&mut client, "SELECT count(DISTINCT id) FROM w").await, WRITERS * EACH);
        assert_eq!(number(&mut client, "SELECT count(DISTINCT id) FROM b").await, WRITERS * 100);
    });
}
