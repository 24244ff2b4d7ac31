//! What clients may ask for, and what becomes of what is beyond.

use std::time::{Duration, Instant};

use tonic::Code;

use crate::harness::{ENDLESS, Place, ask, change, code, fetch, number, run, status, until};

#[test]
fn a_statement_has_its_time() {
    run(async {
        let place = Place::with(|mut options, _| {
            options.limits.statement_time = Duration::from_millis(700);
            options
        })
        .await;
        let mut client = place.writer().await;
        let begun = Instant::now();
        let told = ask(&mut client, ENDLESS).await.unwrap_err();
        assert_eq!((told.code(), told.message().contains("0.7 s")), (Code::DeadlineExceeded, true), "{told}");
        // And one that is over before its rows come.
        let told = change(&mut client, &format!("CREATE TABLE t AS {ENDLESS}")).await.unwrap_err();
        assert_eq!(told.code(), Code::DeadlineExceeded, "{told}");
        assert!(begun.elapsed() < Duration::from_secs(30));
        assert_eq!(
            number(&mut client, "SELECT count(*) FROM information_schema.tables WHERE table_name = 't'").await,
            0
        );
    });
}

#[test]
fn statements_wait_for_their_turn() {
    run(async {
        let place = Place::with(|mut options, _| {
            (options.limits.statements, options.limits.waiting) = (1, 1);
            options
        })
        .await;
        let mut client = place.writer().await;
        let endless = client.execute(ENDLESS.to_owned(), None).await.unwrap();
        let mut one = client.clone();
        let ticket = endless.clone();
        let running = tokio::spawn(async move { fetch(&mut one, ticket).await });
        let shown = || async {
            crate::harness::page(
                place.address,
                "GET",
                "/",
                &crate::harness::basic("writer", crate::harness::WRITER),
                "",
            )
            .await
            .body
        };
        while !shown().await.contains("generate_series") {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let mut two = client.clone();
        let waiting = tokio::spawn(async move { number(&mut two, "SELECT 2").await });
        while !shown().await.contains("waits for its turn") {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let refused = ask(&mut client, "SELECT 3").await.unwrap_err();
        assert_eq!(
            (refused.code(), refused.message().contains("wait for their turn")),
            (Code::ResourceExhausted, true),
            "{refused}"
        );
        assert!(!waiting.is_finished());
        running.abort();
        assert_eq!(waiting.await.unwrap(), 2);
    });
}

#[test]
fn texts_messages_and_handles_are_bounded() {
    run(async {
        let place = Place::with(|mut options, _| {
            (options.limits.statement_bytes, options.limits.message_bytes) = (1000, 20_000);
            options
        })
        .await;
        let mut client = place.writer().await;
        let long = format!("SELECT '{}'", "x".repeat(1000));
        let refused = ask(&mut client, &long).await.unwrap_err();
        assert_eq!(
            (refused.code(), refused.message().contains("1000 are the limit")),
            (Code::ResourceExhausted, true),
            "{refused}"
        );
        let longer = format!("SELECT '{}'", "x".repeat(30_000));
        assert_eq!(code(ask(&mut client, &longer).await), Code::OutOfRange);
        assert_eq!(number(&mut client, "SELECT 1").await, 1);
        for _ in 0..1000 {
            client.prepare("SELECT 1".to_owned(), None).await.unwrap();
        }
        let refused = status(client.prepare("SELECT 1".to_owned(), None).await.map(drop).unwrap_err());
        assert_eq!((refused.code(), refused.message().contains("close")), (Code::ResourceExhausted, true), "{refused}");
        // Another session has its own.
        let mut other = place.writer().await;
        assert_eq!(number(&mut other, "SELECT 1").await, 1);
    });
}

#[test]
fn statements_of_a_session_are_bounded() {
    run(async {
        let place = Place::with(|mut options, _| {
            options.limits.statements_of_session = 2;
            options
        })
        .await;
        let mut client = place.writer().await;
        let mut running = Vec::new();
        for _ in 0..2 {
            let info =
                client.execute("SELECT * FROM generate_series(1, 1000000000000)".to_owned(), None).await.unwrap();
            running.push(client.do_get(info.endpoint[0].ticket.clone().unwrap()).await.unwrap());
        }
        let refused = ask(&mut client, "SELECT 1").await.unwrap_err();
        assert_eq!(
            (refused.code(), refused.message().contains("has 2 statements")),
            (Code::ResourceExhausted, true),
            "{refused}"
        );
        drop(running);
        until("they are over", || place.log().matches("state=abandoned").count() == 2).await;
        assert_eq!(number(&mut client, "SELECT 1").await, 1);
    });
}

#[test]
fn memory_of_a_session_is_bounded() {
    run(async {
        let place = Place::with(|mut options, _| {
            options.limits.session_memory = Some(4 << 20);
            options
        })
        .await;
        let mut client = place.writer().await;
        // A window whose rows depend on how many there are can't spill, and they are more than that. A join can.
        let sql = "SELECT max(s) FROM (SELECT ntile(4) OVER (ORDER BY value) AS s FROM generate_series(1, 3000000))";
        let refused = ask(&mut client, sql).await.unwrap_err();
        assert_eq!((refused.code(), refused.message().contains("memory")), (Code::Aborted, true), "{refused}");
        let join =
            "SELECT count(*) FROM generate_series(1, 300000) a JOIN generate_series(1, 300000) b ON a.value = b.value";
        assert_eq!(number(&mut client, join).await, 300_000);
    });
}

#[test]
fn tickets_expire() {
    run(async {
        let place = Place::with(|mut options, _| {
            options.limits.ticket = Duration::from_millis(200);
            options
        })
        .await;
        let mut client = place.writer().await;
        let info = client.execute("SELECT 1".to_owned(), None).await.unwrap();
        tokio::time::sleep(Duration::from_millis(900)).await;
        assert_eq!(code(fetch(&mut client, info).await), Code::NotFound);
    });
}
