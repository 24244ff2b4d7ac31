//! Sessions: by connections and by handshakes, their settings, their ends, and the end of the server.

use std::time::{Duration, Instant};

use prost::Message;
use tonic::Code;

use crate::harness::{ENDLESS, Place, READER, WRITER, ask, change, code, fetch, number, run, status, until};

#[test]
fn a_handshake_gives_a_session_of_its_own() {
    run(async {
        let place = Place::new().await;
        let mut client = place.stranger().await;
        client.handshake("writer", WRITER).await.unwrap();
        assert_ne!(client.token().unwrap(), WRITER);
        change(&mut client, "CREATE TEMP TABLE mine AS SELECT 42 AS a").await.unwrap();
        // It is the same by another connection.
        let mut other = place.client(client.token().unwrap()).await;
        assert_eq!(number(&mut other, "SELECT a FROM mine").await, 42);
        // One of the same user by a connection is another.
        let mut apart = place.writer().await;
        assert!(ask(&mut apart, "SELECT a FROM mine").await.is_err());
        let close = arrow_flight::Action { r#type: "CloseSession".to_owned(), body: Vec::new().into() };
        client.do_action(tonic::Request::new(close)).await.unwrap();
        assert_eq!(code(ask(&mut other, "SELECT 1").await), Code::Unauthenticated);
        assert_eq!(number(&mut apart, "SELECT 1").await, 1);
    });
}

#[test]
fn sessions_end_with_their_connections_or_when_they_are_idle() {
    run(async {
        let place = Place::with(|mut options, _| {
            options.limits.idle = Duration::from_millis(300);
            options
        })
        .await;
        let mut named = place.stranger().await;
        named.handshake("reader", READER).await.unwrap();
        let mut of_connection = place.writer().await;
        assert_eq!(number(&mut of_connection, "SELECT 1").await, 1);
        until("the idle session is over", || place.log().contains("user=reader state=closed")).await;
        assert_eq!(code(ask(&mut named, "SELECT 1").await), Code::Unauthenticated);
        assert_eq!(number(&mut of_connection, "SELECT 1").await, 1);
        drop(of_connection);
        until("the session is over", || place.log().contains("user=writer state=closed")).await;
    });
}

#[test]
fn sessions_are_bounded() {
    run(async {
        let place = Place::with(|mut options, _| {
            options.limits.sessions = 3;
            options
        })
        .await;
        let mut clients = Vec::new();
        for _ in 0..3 {
            let mut client = place.writer().await;
            assert_eq!(number(&mut client, "SELECT 1").await, 1);
            clients.push(client);
        }
        let mut late = place.writer().await;
        let refused = ask(&mut late, "SELECT 1").await.unwrap_err();
        assert_eq!(
            (refused.code(), refused.message().contains("limit here")),
            (Code::ResourceExhausted, true),
            "{refused}"
        );
        clients.pop();
        until("a session is over", || place.log().contains("state=closed")).await;
        assert_eq!(number(&mut late, "SELECT 1").await, 1);
    });
}

/// An option of a session, in the bytes of `Flight.proto`.
fn option(name: &str, value: &str) -> Vec<u8> {
    let field = |number: u8, bytes: &[u8]| {
        let mut field = vec![number << 3 | 2, u8::try_from(bytes.len()).unwrap()];
        field.extend_from_slice(bytes);
        field
    };
    let value = field(1, value.as_bytes());
    field(1, &[field(1, name.as_bytes()), field(2, &value)].concat())
}

#[test]
fn options_of_a_session_are_set_or_refused() {
    #[derive(Clone, PartialEq, Message)]
    struct Failed {
        #[prost(int32, tag = "1")]
        value: i32,
    }
    #[derive(Clone, PartialEq, Message)]
    struct Answer {
        #[prost(map = "string, message", tag = "1")]
        errors: std::collections::HashMap<String, Failed>,
    }
    run(async {
        let place = Place::new().await;
        let mut client = place.fill(1).await;
        change(&mut client, "CREATE SCHEMA s; CREATE TABLE s.u (a BIGINT); INSERT INTO s.u VALUES (5)").await.unwrap();
        let names = ["schema", "plinth.pushdown", "datafusion.runtime.memory_limit", "what", "catalog"];
        let values = ["s", "after-decode", "1T", "x", "elsewhere"];
        let body: Vec<u8> = names.iter().zip(values).flat_map(|(name, value)| option(name, value)).collect();
        let action = arrow_flight::Action { r#type: "SetSessionOptions".to_owned(), body: body.into() };
        let mut results = client.do_action(tonic::Request::new(action)).await.unwrap();
        let answer = Answer::decode(results.message().await.unwrap().unwrap().body).unwrap();
        let mut errors: Vec<_> = answer.errors.iter().map(|(name, error)| (name.as_str(), error.value)).collect();
        errors.sort_unstable();
        assert_eq!(errors, [("catalog", 2), ("datafusion.runtime.memory_limit", 2), ("what", 1)]);
        assert_eq!(number(&mut client, "SELECT a FROM u").await, 5);
    });
}

#[test]
fn at_the_end_statements_may_finish_and_no_other_begins() {
    run(async {
        let mut place = Place::with(|mut options, _| {
            options.limits.grace = Duration::from_secs(60);
            options
        })
        .await;
        let mut client = place.writer().await;
        let info = client.execute("SELECT * FROM generate_series(1, 2000000)".to_owned(), None).await.unwrap();
        let mut rows = client.do_get(info.endpoint[0].ticket.clone().unwrap()).await.unwrap();
        let mut count = futures::StreamExt::next(&mut rows).await.unwrap().unwrap().num_rows();
        place.ask_to_end();
        until("it closes", || place.log().contains("state=closing")).await;
        assert_eq!(code(ask(&mut client, "SELECT 1").await), Code::Unavailable);
        while let Some(batch) = futures::StreamExt::next(&mut rows).await {
            count += batch.unwrap().num_rows();
        }
        assert_eq!(count, 2_000_000);
        drop((rows, client));
        place.ended().await;
        assert!(place.log().ends_with("state=closed"), "{}", place.log());
    });
}

#[test]
fn at_the_end_what_takes_too_long_is_cancelled() {
    run(async {
        let mut place = Place::with(|mut options, _| {
            options.limits.grace = Duration::from_millis(300);
            options
        })
        .await;
        let mut client = place.writer().await;
        let info = client.execute(ENDLESS.to_owned(), None).await.unwrap();
        let running = tokio::spawn(async move { fetch(&mut client, info).await });
        until("it runs", || place.log().contains("state=open")).await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        let begun = Instant::now();
        place.ask_to_end();
        place.ended().await;
        assert!(begun.elapsed() < Duration::from_secs(20));
        let told = running.await.unwrap().unwrap_err();
        assert!([Code::Unavailable, Code::Cancelled, Code::Unknown].contains(&told.code()), "{told}");
    });
}

#[test]
fn an_action_that_is_none_is_refused() {
    run(async {
        let place = Place::new().await;
        let mut client = place.writer().await;
        let action = arrow_flight::Action { r#type: "<script>".to_owned(), body: Vec::new().into() };
        let refused = status(client.do_action(tonic::Request::new(action)).await.unwrap_err());
        assert_eq!(refused.code(), Code::Unimplemented);
    });
}
