//! Transactions: changes that are seen together, or never.

use arrow_flight::sql::client::FlightSqlServiceClient;
use arrow_flight::sql::{ActionBeginSavepointRequest, EndTransaction, ProstMessageExt};
use bytes::Bytes;
use prost::Message;
use tonic::Code;
use tonic::transport::Channel;

use crate::harness::{Place, READER, fetch, number, one, run, status};

type Client = FlightSqlServiceClient<Channel>;

async fn counted(client: &mut Client, transaction: &Bytes) -> i64 {
    let info = client.execute("SELECT count(*) FROM t".to_owned(), Some(transaction.clone())).await.unwrap();
    one(&fetch(client, info).await.unwrap())
}

async fn insert(client: &mut Client, id: i64, transaction: &Bytes) -> Result<i64, tonic::Status> {
    let sql = format!("INSERT INTO t VALUES ({id}, 'x')");
    client.execute_update(sql, Some(transaction.clone())).await.map_err(status)
}

#[test]
fn changes_are_seen_together_or_never() {
    run(async {
        let place = Place::new().await;
        let mut client = place.fill(3).await;
        let (kept, undone) = (client.begin_transaction().await.unwrap(), client.begin_transaction().await.unwrap());
        assert_eq!(insert(&mut client, 10, &kept).await.unwrap(), 1);
        assert_eq!(insert(&mut client, 11, &kept).await.unwrap(), 1);
        assert_eq!(insert(&mut client, 20, &undone).await.unwrap(), 1);
        // Each sees its own, the session neither.
        assert_eq!((counted(&mut client, &kept).await, counted(&mut client, &undone).await), (5, 4));
        assert_eq!(number(&mut client, "SELECT count(*) FROM t").await, 3);
        client.end_transaction(kept.clone(), EndTransaction::Commit).await.unwrap();
        client.end_transaction(undone, EndTransaction::Rollback).await.unwrap();
        assert_eq!(number(&mut client, "SELECT count(*) FROM t").await, 5);
        assert_eq!(number(&mut client, "SELECT count(*) FROM t WHERE id = 20").await, 0);
        // One that has ended is none.
        assert_eq!(insert(&mut client, 12, &kept).await.unwrap_err().code(), Code::NotFound);
        let again = client.end_transaction(kept, EndTransaction::Commit).await.unwrap_err();
        assert_eq!(status(again).code(), Code::NotFound);
    });
}

#[test]
fn a_transaction_is_its_users_alone_and_ends_with_the_session() {
    run(async {
        let place = Place::new().await;
        let mut client = place.fill(3).await;
        let transaction = client.begin_transaction().await.unwrap();
        insert(&mut client, 10, &transaction).await.unwrap();
        let mut reader = place.client(READER).await;
        let told = reader.execute("SELECT 1".to_owned(), Some(transaction.clone())).await.unwrap_err();
        assert_eq!(status(told).code(), Code::NotFound);
        let told = reader.end_transaction(transaction.clone(), EndTransaction::Commit).await.unwrap_err();
        assert_eq!(status(told).code(), Code::NotFound);
        drop(client);
        crate::harness::until("the session is closed", || place.log().contains("user=writer state=closed")).await;
        let mut later = place.writer().await;
        assert_eq!(number(&mut later, "SELECT count(*) FROM t").await, 3);
        assert_eq!(insert(&mut later, 11, &transaction).await.unwrap_err().code(), Code::NotFound);
    });
}

#[test]
fn writers_of_the_same_row_are_told() {
    run(async {
        let place = Place::new().await;
        let mut client = place.fill(3).await;
        let (first, second) = (client.begin_transaction().await.unwrap(), client.begin_transaction().await.unwrap());
        for (transaction, name) in [(&first, "first"), (&second, "second")] {
            let sql = format!("UPDATE t SET name = '{name}' WHERE id = 1");
            client.execute_update(sql, Some(transaction.clone())).await.unwrap();
        }
        client.end_transaction(first, EndTransaction::Commit).await.unwrap();
        let refused = status(client.end_transaction(second, EndTransaction::Commit).await.unwrap_err());
        assert_eq!(refused.code(), Code::Aborted, "{refused}");
        assert_eq!(number(&mut client, "SELECT count(*) FROM t WHERE name = 'first'").await, 1);
    });
}

#[test]
fn savepoints_are_refused_by_a_sentence() {
    run(async {
        let place = Place::new().await;
        let mut client = place.fill(1).await;
        let transaction_id = client.begin_transaction().await.unwrap();
        let body = ActionBeginSavepointRequest { transaction_id, name: "s".to_owned() }.as_any().encode_to_vec();
        let action = arrow_flight::Action { r#type: "BeginSavepoint".to_owned(), body: body.into() };
        let refused = status(client.do_action(tonic::Request::new(action)).await.unwrap_err());
        assert_eq!(
            (refused.code(), refused.message().contains("no savepoints")),
            (Code::Unimplemented, true),
            "{refused}"
        );
    });
}
