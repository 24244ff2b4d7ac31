//! TLS and plain text, and connections that do not come in.

use std::path::Path;
use std::time::Duration;

use arrow_flight::sql::client::FlightSqlServiceClient;
use plinth_server::{Server, ServerOptions, Tls, Users};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tonic::transport::{Certificate, Channel, ClientTlsConfig};

use crate::harness::{Place, WRITER, ask, number, run, until};

fn data(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

async fn with_tls() -> Place {
    Place::with(|mut options, _| {
        options.tls = Some(Tls::read_files(&data("cert.pem"), &data("key.pem")).unwrap());
        options.limits.handshake = Duration::from_millis(500);
        options
    })
    .await
}

#[test]
fn tls_is_spoken_and_nothing_else() {
    run(async {
        let place = with_tls().await;
        let trusted = Certificate::from_pem(std::fs::read(data("cert.pem")).unwrap());
        let config = ClientTlsConfig::new().ca_certificate(trusted).domain_name("localhost");
        let channel = Channel::from_shared(format!("https://{}", place.address)).unwrap().tls_config(config).unwrap();
        let mut client = FlightSqlServiceClient::new(channel.connect().await.unwrap());
        client.set_token(WRITER.to_owned());
        assert_eq!(number(&mut client, "SELECT 1").await, 1);
        // One who does not know the certificate does not trust it.
        let config = ClientTlsConfig::new().domain_name("localhost");
        let channel = Channel::from_shared(format!("https://{}", place.address)).unwrap().tls_config(config).unwrap();
        assert!(channel.connect().await.is_err());
        // Plain text is no TLS: nothing is answered, and no token is looked at.
        let mut plain = TcpStream::connect(place.address).await.unwrap();
        let request = format!("GET / HTTP/1.1\r\nHost: x\r\n{}\r\n", crate::harness::basic("writer", WRITER));
        plain.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        let _ = plain.read_to_end(&mut answer).await;
        assert!(!String::from_utf8_lossy(&answer).contains("HTTP"), "{answer:?}");
        let channel = Channel::from_shared(format!("http://{}", place.address)).unwrap();
        if let Ok(channel) = channel.connect().await {
            let mut client = FlightSqlServiceClient::new(channel);
            client.set_token(WRITER.to_owned());
            assert!(ask(&mut client, "SELECT 1").await.is_err());
        }
        until("it is refused", || place.log().contains("why=tls")).await;
        // Versions before 1.2 are not spoken: a hello of SSL 3.
        let mut old = TcpStream::connect(place.address).await.unwrap();
        old.write_all(&[0x16, 3, 0, 0, 47, 1, 0, 0, 43, 3, 0]).await.unwrap();
        old.write_all(&[0; 41]).await.unwrap();
        let mut answer = Vec::new();
        let _ = old.read_to_end(&mut answer).await;
        assert!(answer.first() != Some(&0x16), "a handshake goes on: {answer:?}");
        assert_eq!(number(&mut client, "SELECT 2").await, 2);
    });
}

#[test]
fn plain_text_stays_on_this_machine_unless_it_is_asked_for_by_name() {
    run(async {
        let dir = tempfile::tempdir().unwrap();
        let options = || ServerOptions::new(dir.path().to_path_buf(), Users::owner(WRITER).unwrap());
        for address in ["0.0.0.0:0", "[::]:0"] {
            let refused = Server::bind(options(), address).await.unwrap_err().to_string();
            assert!(refused.contains("plain text") && refused.contains("--insecure-plaintext"), "{refused}");
        }
        assert!(Server::bind(options(), "127.0.0.1:0").await.is_ok());
        let anywhere = ServerOptions { plaintext_anywhere: true, ..options() };
        assert!(Server::bind(anywhere, "0.0.0.0:0").await.is_ok());
        let tls = Tls::read_files(&data("cert.pem"), &data("key.pem")).unwrap();
        assert!(Server::bind(ServerOptions { tls: Some(tls), ..options() }, "0.0.0.0:0").await.is_ok());
        for address in ["nonsense", "127.0.0.1", "127.0.0.1:99999"] {
            let refused = Server::bind(options(), address).await.unwrap_err().to_string();
            assert!(refused.contains("is no address"), "{refused}");
        }
        for (certificate, key) in [("key.pem", "key.pem"), ("cert.pem", "cert.pem"), ("nothing", "key.pem")] {
            assert!(Tls::read_files(&data(certificate), &data(key)).is_err(), "{certificate} {key}");
        }
    });
}

#[test]
fn who_does_not_come_in_is_sent_away() {
    run(async {
        let place = Place::with(|mut options, _| {
            (options.limits.handshake, options.limits.connections) = (Duration::from_millis(300), 4);
            options
        })
        .await;
        let mut silent = Vec::new();
        for _ in 0..4 {
            silent.push(TcpStream::connect(place.address).await.unwrap());
        }
        // There is no place for more, until those who say nothing are sent away.
        for stream in &mut silent {
            let mut answer = Vec::new();
            let _ = tokio::time::timeout(Duration::from_secs(20), stream.read_to_end(&mut answer)).await.unwrap();
        }
        assert!(place.log().matches("why=slow").count() >= 1, "{}", place.log());
        let mut client = place.writer().await;
        assert_eq!(number(&mut client, "SELECT 1").await, 1);
        // One who came in stays.
        tokio::time::sleep(Duration::from_millis(800)).await;
        assert_eq!(number(&mut client, "SELECT 2").await, 2);
        let tls = with_tls().await;
        let mut silent = TcpStream::connect(tls.address).await.unwrap();
        let mut answer = Vec::new();
        let _ = tokio::time::timeout(Duration::from_secs(20), silent.read_to_end(&mut answer)).await.unwrap();
        until("it is sent away", || tls.log().contains("why=slow")).await;
    });
}
