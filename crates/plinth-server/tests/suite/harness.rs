//! A server within the test, its users, and clients.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt64Type};
use arrow_flight::FlightInfo;
use arrow_flight::sql::client::FlightSqlServiceClient;
use futures::TryStreamExt;
use plinth_server::{Log, Server, ServerOptions, Users};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tonic::transport::Channel;
use tonic::{Code, Request, Status};

pub(crate) type Client = FlightSqlServiceClient<Channel>;

pub(crate) const WRITER: &str = "writers-token-0123456789";
pub(crate) const READER: &str = "readers-token-0123456789";
pub(crate) const OTHER: &str = "others-token-00123456789";

/// All tokens: none of them is ever shown.
pub(crate) const TOKENS: [&str; 3] = [WRITER, READER, OTHER];

/// A server, and the folder that it serves.
pub(crate) struct Place {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) address: SocketAddr,
    postgres: Option<SocketAddr>,
    lines: Arc<Mutex<Vec<String>>>,
    end: Option<oneshot::Sender<()>>,
    served: Option<JoinHandle<()>>,
}

/// Threads with room for statements.
pub(crate) fn runtime() -> Runtime {
    plinth_sql::start_runtime(2).unwrap()
}

/// Runs a test on such threads.
pub(crate) fn run(test: impl Future<Output = ()>) {
    runtime().block_on(test);
}

impl Place {
    pub(crate) async fn new() -> Self {
        Self::with(|options, _| options).await
    }

    /// With other options than usual; the folder of the test has `db`, `root` and `out` in it.
    pub(crate) async fn with(change: impl FnOnce(ServerOptions, &std::path::Path) -> ServerOptions) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["db", "root", "out"] {
            std::fs::create_dir(dir.path().join(folder)).unwrap();
        }
        let users = format!("writer {WRITER} write\nreader {READER} read\nother {OTHER} read\n");
        let mut options = ServerOptions::new(dir.path().join("db"), Users::parse(&users).unwrap());
        options.memory = 256 << 20;
        options.threads = 2;
        options.limits.grace = Duration::from_secs(2);
        let lines = Arc::<Mutex<Vec<String>>>::default();
        let log = Arc::clone(&lines);
        options.log = Log::to(move |line| log.lock().unwrap().push(line.to_owned()));
        let server = Server::bind(change(options, dir.path()), "127.0.0.1:0").await.unwrap();
        let (address, (end, asked)) = (server.address(), oneshot::channel());
        let postgres = server.postgres_address();
        let served = tokio::spawn(server.run(async move {
            let _ = asked.await;
        }));
        Self { dir, address, postgres, lines, end: Some(end), served: Some(served) }
    }

    /// With PostgreSQL's protocol at another port.
    pub(crate) async fn with_postgres() -> Self {
        Self::with(|mut options, _| {
            options.postgres = Some("127.0.0.1:0".to_owned());
            options
        })
        .await
    }

    /// Where that is.
    pub(crate) fn postgres(&self) -> SocketAddr {
        self.postgres.unwrap()
    }

    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.dir.path().join(below)
    }

    /// What was logged.
    pub(crate) fn log(&self) -> String {
        self.lines.lock().unwrap().join("\n")
    }

    /// Asks it to end.
    pub(crate) fn ask_to_end(&mut self) {
        let _ = self.end.take().unwrap().send(());
    }

    /// Waits until it has ended.
    pub(crate) async fn ended(&mut self) {
        self.served.take().unwrap().await.unwrap();
    }

    /// A client that shows nothing.
    pub(crate) async fn stranger(&self) -> Client {
        let channel = Channel::from_shared(format!("http://{}", self.address)).unwrap();
        FlightSqlServiceClient::new(channel.connect().await.unwrap())
    }

    /// A client with a token.
    pub(crate) async fn client(&self, token: &str) -> Client {
        let mut client = self.stranger().await;
        client.set_token(token.to_owned());
        client
    }

    pub(crate) async fn writer(&self) -> Client {
        self.client(WRITER).await
    }

    /// A table with rows from 1 to `rows`, of which there are copies in the root and beside it.
    pub(crate) async fn fill(&self, rows: u64) -> Client {
        let mut client = self.writer().await;
        change(&mut client, "CREATE TABLE t (id BIGINT PRIMARY KEY, name TEXT)").await.unwrap();
        let sql = format!("INSERT INTO t SELECT value, 'name ' || value FROM generate_series(1, {rows})");
        assert_eq!(change(&mut client, &sql).await.unwrap(), i64::try_from(rows).unwrap());
        for folder in ["root", "out"] {
            std::fs::write(self.path(folder).join("a.csv"), "id,name\n1,x\n2,y\n").unwrap();
        }
        client
    }
}

/// The status of what a client of Flight SQL was told.
pub(crate) fn status(error: arrow_flight::error::FlightError) -> Status {
    match error {
        arrow_flight::error::FlightError::Tonic(status) => *status,
        other => panic!("no status: {other}"),
    }
}

/// A request with a writer's token, for calls that go past the client, which adds it.
pub(crate) fn request<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.metadata_mut().insert("authorization", format!("Bearer {WRITER}").parse().unwrap());
    request
}

/// The rows of what was planned.
pub(crate) async fn fetch(client: &mut Client, info: FlightInfo) -> Result<Vec<RecordBatch>, Status> {
    let mut all = Vec::new();
    for endpoint in info.endpoint {
        let stream = client.do_get(endpoint.ticket.unwrap()).await.map_err(status)?;
        all.extend(stream.try_collect::<Vec<_>>().await.map_err(status)?);
    }
    Ok(all)
}

/// The rows of a query.
pub(crate) async fn ask(client: &mut Client, sql: &str) -> Result<Vec<RecordBatch>, Status> {
    let info = client.execute(sql.to_owned(), None).await.map_err(status)?;
    fetch(client, info).await
}

/// The rows that a statement changed.
pub(crate) async fn change(client: &mut Client, sql: &str) -> Result<i64, Status> {
    client.execute_update(sql.to_owned(), None).await.map_err(status)
}

/// The one number that a query gives.
pub(crate) async fn number(client: &mut Client, sql: &str) -> i64 {
    one(&ask(client, sql).await.unwrap())
}

/// The one number that there is.
pub(crate) fn one(batches: &[RecordBatch]) -> i64 {
    let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
    assert_eq!(rows, 1);
    let batch = batches.iter().find(|batch| batch.num_rows() == 1).unwrap();
    let column = batch.column(0);
    match column.as_primitive_opt::<Int64Type>() {
        Some(numbers) => numbers.value(0),
        None => i64::try_from(column.as_primitive::<UInt64Type>().value(0)).unwrap(),
    }
}

pub(crate) fn rows(batches: &[RecordBatch]) -> usize {
    batches.iter().map(RecordBatch::num_rows).sum()
}

/// Texts of a column.
pub(crate) fn texts(batches: &[RecordBatch], column: &str) -> Vec<String> {
    let of = |batch: &RecordBatch| {
        let column = batch.column_by_name(column).unwrap().as_string::<i32>();
        column.iter().map(|text| text.unwrap_or("NULL").to_owned()).collect::<Vec<_>>()
    };
    batches.iter().flat_map(of).collect()
}

/// A query that never ends by itself.
pub(crate) const ENDLESS: &str = "SELECT sum(value % 7) AS n FROM generate_series(1, 1000000000000000)";

/// Waits until something is so; a minute is for slow machines.
pub(crate) async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "never: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

pub(crate) fn code<T: std::fmt::Debug>(result: Result<T, Status>) -> Code {
    result.unwrap_err().code()
}

/// An answer of HTTP.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

/// Asks for a page, with more headers, and a form if there is one.
pub(crate) async fn page(address: SocketAddr, method: &str, path: &str, headers: &str, form: &str) -> Page {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{headers}Content-Length: {}\r\n\r\n{form}",
        form.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Page { status, head: head.to_owned(), body: body.to_owned() }
}

/// The header of a user's name and token, as a browser sends it.
pub(crate) fn basic(name: &str, token: &str) -> String {
    use base64::Engine;
    let text = base64::prelude::BASE64_STANDARD.encode(format!("{name}:{token}"));
    format!("Authorization: Basic {text}\r\n")
}
