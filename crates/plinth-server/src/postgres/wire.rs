//! The messages of a connection, one after the other; before them TLS, if there is.

use std::io::Result;
use std::sync::Arc;

use futures::StreamExt;
use pgwire::api::{ClientInfo, DefaultClient, NoopHandler, PgWireConnectionState};
use pgwire::messages::PgWireFrontendMessage;
use pgwire::tokio::server::{PgWireMessageServerCodec, process_error, process_message};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_util::codec::Framed;

use super::client::Client;
use super::queries::{Extended, Simple};
use crate::tls::Tls;

/// What asks for TLS, and for the encryption of Kerberos, which is not spoken here: a length and a number.
const TLS: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];
const KERBEROS: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 48];

/// Serves a connection until it ends.
///
/// # Errors
/// Those of the connection.
pub(super) async fn serve(client: Arc<Client>, mut stream: TcpStream, tls: Option<Tls>) -> Result<()> {
    let mut first = [0; 8];
    // Each is asked for once at most, and nothing is read behind it: what comes in plain text is no part of what TLS protects.
    for _ in 0..3 {
        stream.read_exact(&mut first).await?;
        match (first, &tls) {
            (TLS, Some(tls)) => {
                stream.write_all(b"S").await?;
                let stream = tls.acceptor().accept(stream).await?;
                return talk(client, stream, true, &[]).await;
            }
            (TLS | KERBEROS, _) => stream.write_all(b"N").await?,
            _ => return talk(client, stream, false, &first).await,
        }
    }
    Ok(())
}

async fn talk<S>(client: Arc<Client>, stream: S, is_secure: bool, first: &[u8]) -> Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + Sync + 'static,
{
    let codec = PgWireMessageServerCodec::new(DefaultClient::new(client.peer, is_secure));
    let mut socket = Framed::new(stream, codec).into_parts();
    socket.read_buf.extend_from_slice(first);
    let mut socket = Framed::from_parts(socket);
    socket.set_state(PgWireConnectionState::AwaitingStartup);
    let (texts, kept) = (Arc::new(Simple(Arc::clone(&client))), Arc::new(Extended::new(Arc::clone(&client))));
    let copies = Arc::new(NoopHandler);
    while let Some(Ok(message)) = socket.next().await {
        if matches!(message, PgWireFrontendMessage::Terminate(_)) {
            break;
        }
        let until_sync = message.is_extended_query();
        let (start, texts, kept) = (Arc::clone(&client), Arc::clone(&texts), Arc::clone(&kept));
        let (copies, cancel) = (Arc::clone(&copies), Arc::clone(&client));
        if let Err(error) = process_message(message, &mut socket, start, texts, kept, copies, cancel).await {
            // Whatever failed, a text that is none, values that do not fit: the client is told that the transaction has failed, and it may have
            // begun in the same text.
            client.ended(true);
            socket.set_transaction_status(client.status());
            process_error(&mut socket, error, until_sync).await?;
        }
    }
    Ok(())
}
