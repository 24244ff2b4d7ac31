//! Bytes that are no messages, and messages that are no requests: the server says so, and lives.

use arrow_flight::sql::{
    ActionCreatePreparedStatementRequest, CommandStatementQuery, ProstMessageExt, TicketStatementQuery,
};
use arrow_flight::{Action, FlightData, FlightDescriptor, Ticket};
use futures::stream;
use plinth_core::random::Random;
use prost::Message;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tonic::Code;

use crate::harness::{Place, fetch, number, request, run, status};

fn bytes(random: &mut Random, most: u64) -> Vec<u8> {
    let len = random.below(most);
    (0..len).map(|_| u8::try_from(random.below(256)).unwrap()).collect()
}

/// A message with some bits turned, or cut.
fn bent(random: &mut Random, message: &[u8]) -> Vec<u8> {
    let mut bent = message.to_vec();
    for _ in 0..=random.below(3) {
        if bent.is_empty() {
            break;
        }
        let at = usize::try_from(random.below(bent.len() as u64)).unwrap();
        match random.below(3) {
            0 => bent[at] ^= 1 << random.below(8),
            1 => bent.truncate(at),
            _ => bent.insert(at, u8::try_from(random.below(256)).unwrap()),
        }
    }
    bent
}

#[test]
fn tickets_that_were_tampered_with_are_none() {
    run(async {
        let place = Place::new().await;
        let mut client = place.fill(3).await;
        let info = client.execute("SELECT * FROM t".to_owned(), None).await.unwrap();
        let ticket = info.endpoint[0].ticket.clone().unwrap().ticket;
        for at in 0..ticket.len() {
            for bit in [1, 0x80] {
                let mut bent = ticket.to_vec();
                bent[at] ^= bit;
                let told = client.do_get(Ticket { ticket: bent.into() }).await.map(drop);
                let told = status(told.unwrap_err());
                let expected = [Code::NotFound, Code::InvalidArgument, Code::Unimplemented, Code::Internal];
                assert!(expected.contains(&told.code()), "byte {at}: {told}");
            }
        }
        // What is guessed, and what is short or long.
        for handle in [Vec::new(), vec![0; 32], vec![0xff; 1000], ticket.to_vec()] {
            let guess = TicketStatementQuery { statement_handle: handle.into() }.as_any().encode_to_vec();
            let told = status(client.do_get(Ticket { ticket: guess.into() }).await.map(drop).unwrap_err());
            assert_eq!(told.code(), Code::NotFound);
        }
        // The true one is still there.
        assert_eq!(crate::harness::rows(&fetch(&mut client, info).await.unwrap()), 3);
    });
}

#[test]
fn bytes_that_are_no_messages_are_refused() {
    run(async {
        let place = Place::new().await;
        let mut client = place.fill(3).await;
        let mut random = Random(7);
        let query = CommandStatementQuery { query: "SELECT * FROM t".to_owned(), transaction_id: None }
            .as_any()
            .encode_to_vec();
        let prepare = ActionCreatePreparedStatementRequest { query: "SELECT 1".to_owned(), transaction_id: None };
        let prepare = prepare.as_any().encode_to_vec();
        for round in 0..300 {
            let (command, body) = match round % 2 {
                0 => (bytes(&mut random, 200), bytes(&mut random, 200)),
                _ => (bent(&mut random, &query), bent(&mut random, &prepare)),
            };
            let inner = client.inner_mut();
            let _ = inner.get_flight_info(request(FlightDescriptor::new_cmd(command.clone()))).await;
            let _ = inner.get_schema(request(FlightDescriptor::new_cmd(command.clone()))).await;
            let _ = inner.do_get(request(Ticket { ticket: command.clone().into() })).await;
            for kind in [
                "CreatePreparedStatement",
                "BeginTransaction",
                "EndTransaction",
                "CancelQuery",
                "CancelFlightInfo",
                "SetSessionOptions",
                "ClosePreparedStatement",
            ] {
                let _ = inner.do_action(request(Action { r#type: kind.to_owned(), body: body.clone().into() })).await;
            }
            let data = FlightData {
                flight_descriptor: Some(FlightDescriptor::new_cmd(command)),
                data_header: bytes(&mut random, 100).into(),
                app_metadata: bytes(&mut random, 20).into(),
                data_body: body.into(),
            };
            let _ = inner.do_put(request(stream::iter([data.clone(), data]))).await;
        }
        assert_eq!(number(&mut client, "SELECT count(*) FROM t").await, 3);
        assert!(!place.log().contains("state=internal"), "{}", place.log());
    });
}

#[test]
fn data_that_is_bent_adds_no_rows() {
    run(async {
        let place = Place::new().await;
        let mut client = place.fill(3).await;
        let mut random = Random(11);
        let ids: arrow_array::ArrayRef = std::sync::Arc::new(arrow_array::Int64Array::from(vec![1000, 1001]));
        let batch = arrow_array::RecordBatch::try_from_iter([("id", ids)]).unwrap();
        let command = arrow_flight::sql::CommandStatementIngest {
            table_definition_options: None,
            table: "t".to_owned(),
            schema: None,
            catalog: None,
            temporary: false,
            transaction_id: None,
            options: Default::default(),
        };
        let descriptor = FlightDescriptor::new_cmd(command.as_any().encode_to_vec());
        let messages: Vec<FlightData> = {
            use futures::TryStreamExt;
            let encoder =
                arrow_flight::encode::FlightDataEncoderBuilder::new().with_flight_descriptor(Some(descriptor));
            encoder.build(stream::iter([Ok(batch)])).try_collect().await.unwrap()
        };
        for _ in 0..200 {
            let mut bent_messages = messages.clone();
            let at = usize::try_from(random.below(messages.len() as u64)).unwrap();
            // The lengths that it says are those of a header, which is what is bent.
            bent_messages[at].data_header = bent(&mut random, &messages[at].data_header).into();
            bent_messages[at].data_body = bent(&mut random, &messages[at].data_body).into();
            let _ = client.inner_mut().do_put(request(stream::iter(bent_messages))).await;
        }
        // Whatever was understood was rows of ids.
        assert_eq!(number(&mut client, "SELECT count(*) FROM t WHERE id <= 3").await, 3);
        assert_eq!(number(&mut client, "SELECT 1").await, 1);
    });
}

#[test]
fn bytes_that_are_no_http_are_refused() {
    run(async {
        let place = Place::new().await;
        let mut client = place.fill(1).await;
        let mut random = Random(3);
        let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        for round in 0..200 {
            let mut stream = TcpStream::connect(place.address).await.unwrap();
            let mut sent = if round % 2 == 0 { preface.clone() } else { b"GET / HTTP/1.1\r\nHost: ".to_vec() };
            sent.extend(bytes(&mut random, 300));
            let _ = stream.write_all(&sent).await;
            let _ = stream.shutdown().await;
            let mut answer = Vec::new();
            let read = tokio::time::timeout(std::time::Duration::from_secs(30), stream.read_to_end(&mut answer)).await;
            assert!(read.is_ok(), "round {round} hangs");
            assert!(!String::from_utf8_lossy(&answer).contains("200 OK"));
        }
        assert_eq!(number(&mut client, "SELECT 1").await, 1);
    });
}
