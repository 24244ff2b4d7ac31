//! Statements with rows and without, prepared ones, cancelling, and rows that no one takes.

use std::time::Duration;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_flight::sql::client::PreparedStatement;
use arrow_schema::DataType;
use futures::StreamExt;
use std::sync::Arc;
use tonic::Code;
use tonic::transport::Channel;

use crate::harness::{
    Client, ENDLESS, Place, READER, WRITER, ask, change, code, fetch, number, one, page, rows, run, status, texts,
    until,
};

#[test]
fn a_query_gives_its_rows() {
    run(async {
        let place = Place::new().await;
        let mut client = place.fill(20_000).await;
        let batches = ask(&mut client, "SELECT id, name FROM t ORDER BY id").await.unwrap();
        assert_eq!(rows(&batches), 20_000);
        assert_eq!(texts(&batches, "name").last().unwrap(), "name 20000");
        // Views of text travel as text, which every client knows.
        assert_eq!(batches[0].schema().field(1).data_type(), &DataType::Utf8);
        assert_eq!(number(&mut client, "SELECT sum(id) FROM t").await, 200_010_000);
        assert_eq!(
            ask(&mut client, "SELECT id FROM t WHERE false")
                .await
                .unwrap()
                .iter()
                .map(RecordBatch::num_rows)
                .sum::<usize>(),
            0
        );
        // Several statements: the rows are those of the last.
        assert_eq!(
            number(&mut client, "CREATE TABLE u (a BIGINT); INSERT INTO u VALUES (7); SELECT a FROM u").await,
            7
        );
    });
}

#[test]
fn types_come_through() {
    run(async {
        let place = Place::new().await;
        let mut client = place.writer().await;
        let sql = "SELECT 1::SMALLINT AS a, 2.5::DOUBLE AS b, DATE '2024-02-29' AS c, 1.25::DECIMAL(9, 2) AS d, ['x', NULL] AS e, \
                   {'k': 'v'} AS f, TIMESTAMP '2024-01-01 00:00:00' AS g, NULL AS h, true AS i, X'00ff' AS j";
        let batches = ask(&mut client, sql).await.unwrap();
        let schema = batches[0].schema();
        let types: Vec<_> = schema.fields().iter().map(|field| field.data_type().to_string()).collect();
        assert!(!types.join(" ").contains("View"), "{types:?}");
        assert_eq!(rows(&batches), 1);
    });
}

#[test]
fn a_change_says_how_many_rows_it_changed() {
    run(async {
        let place = Place::new().await;
        let mut client = place.fill(10).await;
        assert_eq!(change(&mut client, "UPDATE t SET name = 'x' WHERE id <= 3").await.unwrap(), 3);
        assert_eq!(change(&mut client, "DELETE FROM t WHERE id = 10").await.unwrap(), 1);
        // What has no count.
        assert_eq!(change(&mut client, "CREATE TABLE u (a BIGINT)").await.unwrap(), -1);
        // As a query, once: some clients ask for everything so.
        assert_eq!(one(&ask(&mut client, "INSERT INTO u VALUES (1), (2)").await.unwrap()), 2);
        assert_eq!(number(&mut client, "SELECT count(*) FROM u").await, 2);
        let returned = ask(&mut client, "UPDATE t SET name = 'y' WHERE id = 1 RETURNING id, name").await.unwrap();
        assert_eq!(texts(&returned, "name"), ["y"]);
    });
}

#[test]
fn errors_keep_their_sentence() {
    run(async {
        let place = Place::new().await;
        let mut client = place.fill(3).await;
        for (sql, expected, part) in [
            ("SELEC 1", Code::InvalidArgument, "SELEC"),
            ("", Code::InvalidArgument, "no statement"),
            ("SELECT nothing FROM t", Code::InvalidArgument, "nothing"),
            ("SELECT * FROM tt", Code::InvalidArgument, "no table \"tt\""),
            ("SELECT 1 / (id - 1) FROM t", Code::InvalidArgument, "zero"),
            ("INSERT INTO t VALUES (1, 'again')", Code::AlreadyExists, "1"),
            ("SELECT * FROM 'x.csv'", Code::PermissionDenied, "this session reaches the tables"),
        ] {
            let told = ask(&mut client, sql).await.unwrap_err();
            assert_eq!((told.code(), told.message().contains(part)), (expected, true), "{sql}: {told}");
            assert!(!told.message().contains('\n'), "{told}");
        }
        assert_eq!(number(&mut client, "SELECT count(*) FROM t").await, 3);
    });
}

fn values(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter(columns).unwrap()
}

async fn prepared(client: &mut Client, sql: &str) -> PreparedStatement<Channel> {
    client.prepare(sql.to_owned(), None).await.unwrap()
}

#[test]
fn prepared_statements_take_values() {
    run(async {
        let place = Place::new().await;
        let mut client = place.fill(100).await;
        let mut query = prepared(&mut client, "SELECT id, name FROM t WHERE id > ? AND name <> ? ORDER BY id").await;
        let columns = query.dataset_schema().unwrap();
        assert_eq!(columns.fields().iter().map(|field| field.name().as_str()).collect::<Vec<_>>(), ["id", "name"]);
        let places = query.parameter_schema().unwrap();
        assert_eq!(
            places.fields().iter().map(|field| field.data_type().clone()).collect::<Vec<_>>(),
            [DataType::Int64, DataType::Utf8]
        );
        let batch = values(vec![
            ("1", Arc::new(Int64Array::from(vec![97]))),
            ("2", Arc::new(StringArray::from(vec!["name 99"]))),
        ]);
        query.set_parameters(batch).unwrap();
        for _ in 0..2 {
            let info = query.execute().await.unwrap();
            assert_eq!(texts(&fetch(&mut client, info).await.unwrap(), "name"), ["name 98", "name 100"]);
        }
        // A row of values after the other.
        let batch = values(vec![
            ("1", Arc::new(Int64Array::from(vec![99, 98, 1000]))),
            ("2", Arc::new(StringArray::from(vec!["", "", ""]))),
        ]);
        query.set_parameters(batch).unwrap();
        let info = query.execute().await.unwrap();
        let names = texts(&fetch(&mut client, info).await.unwrap(), "name");
        assert_eq!(names, ["name 100", "name 99", "name 100"]);
        query.close().await.unwrap();

        let mut insert = prepared(&mut client, "INSERT INTO t VALUES (?, ?)").await;
        assert!(insert.dataset_schema().unwrap().fields().is_empty());
        let batch = values(vec![
            ("a", Arc::new(Int64Array::from(vec![101, 102, 103]))),
            ("b", Arc::new(StringArray::from(vec![Some("x"), None, Some("z")]))),
        ]);
        insert.set_parameters(batch).unwrap();
        assert_eq!(insert.execute_update().await.unwrap(), 3);
        // All rows or none: the second is there already.
        let batch = values(vec![
            ("a", Arc::new(Int64Array::from(vec![104, 101]))),
            ("b", Arc::new(StringArray::from(vec!["x", "y"]))),
        ]);
        insert.set_parameters(batch).unwrap();
        assert_eq!(status(insert.execute_update().await.unwrap_err()).code(), Code::AlreadyExists);
        assert_eq!(number(&mut client, "SELECT count(*) FROM t WHERE id > 100").await, 3);

        let mut missing = prepared(&mut client, "SELECT ?").await;
        let refused = status(missing.execute().await.unwrap_err());
        assert!(refused.message().contains("1 places for values, and 0 were bound"), "{refused}");
        let closed = prepared(&mut client, "SELECT 1").await;
        closed.close().await.unwrap();
        let refused = client.prepare("SELECT 1; SELECT 2".to_owned(), None).await.map(drop);
        assert_eq!(status(refused.unwrap_err()).code(), Code::InvalidArgument);
    });
}

#[test]
fn a_statement_that_is_cancelled_ends() {
    run(async {
        let place = Place::new().await;
        let mut client = place.writer().await;
        let info = client.execute(ENDLESS.to_owned(), None).await.unwrap();
        let ticket = info.endpoint[0].ticket.clone().unwrap();
        let mut other = client.clone();
        let running = tokio::spawn(async move {
            let mut rows = other.do_get(ticket).await.unwrap();
            rows.next().await.unwrap().map_err(status)
        });
        let shown =
            || async { page(place.address, "GET", "/", &crate::harness::basic("writer", WRITER), "").await.body };
        while !shown().await.contains("generate_series") {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        // Another user's ticket is none.
        let mut reader = place.client(READER).await;
        assert_eq!(cancel(&mut reader, &info).await.unwrap_err().code(), Code::NotFound);
        assert_eq!(cancel(&mut client, &info).await.unwrap(), 1);
        assert_eq!(code(running.await.unwrap()), Code::Cancelled);
        until("the statement is over", || place.log().contains("kind=SELECT state=cancelled")).await;
        // Rows that no one has fetched yet, and those that are not there any more.
        let info = client.execute("SELECT 1".to_owned(), None).await.unwrap();
        assert_eq!(cancel(&mut client, &info).await.unwrap(), 1);
        assert_eq!(code(fetch(&mut client, info).await), Code::NotFound);
    });
}

/// CancelFlightInfo: its status.
async fn cancel(client: &mut Client, info: &arrow_flight::FlightInfo) -> Result<i32, tonic::Status> {
    use prost::Message;
    let body = arrow_flight::CancelFlightInfoRequest { info: Some(info.clone()) }.encode_to_vec();
    let action = arrow_flight::Action { r#type: "CancelFlightInfo".to_owned(), body: body.into() };
    let mut results = client.do_action(tonic::Request::new(action)).await.map_err(status)?;
    let result = results.message().await?.unwrap();
    Ok(arrow_flight::CancelFlightInfoResult::decode(result.body).unwrap().status)
}

#[test]
fn letting_go_of_the_rows_ends_the_statement() {
    run(async {
        let place = Place::new().await;
        let mut client = place.writer().await;
        let info = client.execute("SELECT * FROM generate_series(1, 1000000000000)".to_owned(), None).await.unwrap();
        let mut rows = client.do_get(info.endpoint[0].ticket.clone().unwrap()).await.unwrap();
        assert!(rows.next().await.unwrap().unwrap().num_rows() > 0);
        drop(rows);
        until("the statement is over", || place.log().contains("state=abandoned")).await;
        // So does a client that goes away.
        let mut gone = place.writer().await;
        let info = gone.execute(ENDLESS.to_owned(), None).await.unwrap();
        let fetching =
            tokio::spawn(async move { gone.do_get(info.endpoint[0].ticket.clone().unwrap()).await.map(|_| gone) });
        let gone = fetching.await.unwrap();
        drop(gone);
        until("the session is over", || place.log().matches("state=closed").count() >= 1).await;
        assert_eq!(number(&mut client, "SELECT 1").await, 1);
    });
}

#[test]
fn a_reader_who_waits_holds_little() {
    run(async {
        let place = Place::with(|mut options, _| {
            options.limits.stalled = Duration::from_secs(2);
            options
        })
        .await;
        let mut client = place.writer().await;
        // Rows of a kilobyte: a gigabyte of them, of which no more than a few batches are made ahead.
        let sql = "SELECT repeat('x', 1000) || value AS text FROM generate_series(1, 1000000)";
        let info = client.execute(sql.to_owned(), None).await.unwrap();
        let before = resident();
        let mut slow = client.do_get(info.endpoint[0].ticket.clone().unwrap()).await.unwrap();
        assert!(slow.next().await.unwrap().unwrap().num_rows() > 0);
        tokio::time::sleep(Duration::from_millis(1000)).await;
        let held = resident().saturating_sub(before);
        assert!(held < 200 << 20, "{held} bytes are held for a reader who has taken one batch");
        // In the end the statement is given up, so that it keeps no turn.
        tokio::time::sleep(Duration::from_millis(2500)).await;
        let shown = page(place.address, "GET", "/", &crate::harness::basic("writer", WRITER), "").await.body;
        assert!(shown.contains("not fetched"), "{shown}");
        let mut last = None;
        while let Some(batch) = slow.next().await {
            last = Some(batch);
        }
        let told = status(last.unwrap().unwrap_err());
        assert_eq!(told.code(), Code::DeadlineExceeded, "{told}");
        assert!(told.message().contains("not fetched"), "{told}");
    });
}

/// Bytes of the process in memory.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = status.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}
