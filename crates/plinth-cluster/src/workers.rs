//! The workers of a session: where they are, and how they are spoken to.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use datafusion::arrow::array::RecordBatch;
use datafusion::common::{DataFusionError, Result, exec_datafusion_err};
use datafusion::execution::TaskContext;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion_distributed::grpc::{BoxCloneSyncChannel, create_worker_client};
use datafusion_distributed::{
    ChannelResolver, CoordinatorToWorkerMsg, ExecuteTaskRequest, GetWorkerInfoRequest, GetWorkerInfoResponse,
    SetPlanRequest, WorkerChannel, WorkerResolver, WorkerToCoordinatorMsg,
};
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};
use plinth_core::sync::lock;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};
use tower::ServiceExt;
use tower::util::BoxCloneSyncService;
use url::Url;

use crate::error::ClusterError;
use crate::net::Net;

/// How long a worker may take to take a connection, and to say of which version it is.
const CONNECT: Duration = Duration::from_secs(10);

/// How often a worker is asked whether it is still there, and how long it may take to say so: a frozen one is given up after both.
const ALIVE: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(15));

/// Bytes of a certificate's file at most.
const LARGEST: u64 = 1 << 20;

/// How workers are spoken to.
#[derive(Clone, Default)]
pub struct Credentials {
    /// What lets this process in.
    pub token: Option<String>,
    /// A file of certificates in PEM that vouch for those of workers; with it, connections have TLS.
    pub tls_ca: Option<PathBuf>,
    /// Whether tokens and rows may travel in plain text to other machines.
    pub plaintext_anywhere: bool,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("tls_ca", &self.tls_ca).finish_non_exhaustive()
    }
}

impl Credentials {
    /// The headers of a call.
    pub(crate) fn headers(&self) -> std::result::Result<HeaderMap, ClusterError> {
        let mut headers = HeaderMap::new();
        if let Some(token) = &self.token {
            let value = HeaderValue::from_str(&format!("Bearer {token}"));
            let mut value = value.map_err(|_| ClusterError::new("the token has letters that no header can have"))?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        Ok(headers)
    }
}

/// The address of a worker, `host:port` or a URL.
pub(crate) fn address(text: &str, credentials: &Credentials) -> std::result::Result<Url, ClusterError> {
    let scheme = if credentials.tls_ca.is_some() { "https" } else { "http" };
    let whole = if text.contains("://") { text.to_owned() } else { format!("{scheme}://{text}") };
    let failed = |what: &dyn fmt::Display| ClusterError::new(format!("worker {text}: {what}"));
    let url = Url::parse(&whole).map_err(|e| failed(&format!("is no address: {e}")))?;
    let is_plain = url.scheme() == "http";
    if !is_plain && url.scheme() != "https" {
        return Err(failed(&"is neither HOST:PORT nor a URL that begins with http:// or https://"));
    }
    if url.port().is_none() || !matches!(url.path(), "" | "/") || !url.username().is_empty() || url.query().is_some() {
        return Err(failed(&"is no host and port, such as 10.0.0.7:8816"));
    }
    check(&url, credentials).map_err(|what| failed(&what))?;
    Ok(url)
}

/// Whether a worker may be spoken to as its address says.
fn check(url: &Url, credentials: &Credentials) -> std::result::Result<(), String> {
    if url.scheme() == "https" {
        return match credentials.tls_ca {
            Some(_) => Ok(()),
            None => Err("speaks TLS: --tls-ca names the certificates that vouch for it".to_owned()),
        };
    }
    let is_local = match url.host() {
        Some(url::Host::Ipv4(ip)) => ip.is_loopback(),
        Some(url::Host::Ipv6(ip)) => ip.is_loopback(),
        Some(url::Host::Domain(name)) => name == "localhost",
        None => false,
    };
    if is_local || credentials.plaintext_anywhere {
        return Ok(());
    }
    Err("is on another machine, where the token and rows would travel in plain text: give --tls-ca, or --insecure-plaintext if the \
         network is your own"
        .to_owned())
}

/// Connections to workers, each made once.
#[derive(Clone)]
pub(crate) struct Channels {
    credentials: Credentials,
    certificates: Option<Certificate>,
    known: Arc<Mutex<HashMap<Url, BoxCloneSyncChannel>>>,
    net: Net,
}

impl fmt::Debug for Channels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Channels")
    }
}

impl Channels {
    pub(crate) fn new(credentials: Credentials) -> std::result::Result<Self, ClusterError> {
        let read = |path: &Path| plinth_io::regular::read_text(path, LARGEST).map_err(ClusterError::new);
        let certificates = credentials.tls_ca.as_deref().map(read).transpose()?.map(Certificate::from_pem);
        Ok(Self { credentials, certificates, known: Arc::default(), net: Net::start()? })
    }

    fn channel(&self, url: &Url) -> Result<BoxCloneSyncChannel> {
        if let Some(channel) = lock(&self.known).get(url) {
            return Ok(channel.clone());
        }
        check(url, &self.credentials).map_err(|what| exec_datafusion_err!("worker {}: {what}", name(url)))?;
        let channel = BoxCloneSyncService::new(self.endpoint(url)?.connect_lazy());
        lock(&self.known).insert(url.clone(), channel.clone());
        Ok(channel)
    }

    fn endpoint(&self, url: &Url) -> Result<Endpoint> {
        let failed = |e: tonic::transport::Error| exec_datafusion_err!("worker {}: {}", name(url), causes(&e));
        let mut endpoint: Endpoint = Channel::from_shared(url.to_string())
            .map_err(|e| exec_datafusion_err!("worker {}: {e}", name(url)))?
            .executor(self.net.clone())
            .connect_timeout(CONNECT)
            .tcp_nodelay(true)
            .http2_keep_alive_interval(ALIVE.0)
            .keep_alive_timeout(ALIVE.1)
            .keep_alive_while_idle(true)
            .initial_stream_window_size(4 << 20)
            .initial_connection_window_size(16 << 20);
        if url.scheme() == "https" {
            let mut tls = ClientTlsConfig::new();
            if let Some(certificates) = &self.certificates {
                tls = tls.ca_certificate(certificates.clone());
            }
            endpoint = endpoint.tls_config(tls).map_err(failed)?;
        }
        Ok(endpoint)
    }

    /// Asks a worker of which version it is. A connection of before may have broken, or ended with the threads that it was made by: then it is
    /// made anew.
    pub(crate) async fn version(&self, url: &Url) -> Result<String> {
        match self.version_by(url).await {
            Err(e) if e.to_string().contains("is lost") && lock(&self.known).remove(url).is_some() => {
                self.version_by(url).await
            }
            answered => answered,
        }
    }

    async fn version_by(&self, url: &Url) -> Result<String> {
        let headers = self.credentials.headers()?;
        let mut client = create_worker_client(with_headers(self.channel(url)?, headers));
        let asked = client.get_worker_info(GetWorkerInfoRequest {});
        match tokio::time::timeout(CONNECT, asked).await {
            Ok(Ok(info)) => Ok(info.version),
            Ok(Err(e)) => Err(named(url, e)),
            Err(_) => Err(exec_datafusion_err!("worker {}: does not answer within {} s", name(url), CONNECT.as_secs())),
        }
    }
}

/// A channel whose calls have some headers more.
fn with_headers(channel: BoxCloneSyncChannel, headers: HeaderMap) -> BoxCloneSyncChannel {
    BoxCloneSyncService::new(channel.map_request(move |mut request: http::Request<tonic::body::Body>| {
        request.headers_mut().extend(headers.clone());
        request
    }))
}

impl ChannelResolver for Channels {
    // `async_trait`'s signature, written out.
    fn get_worker_client_for_url<'a: 'c, 'b: 'c, 'c>(
        &'a self,
        url: &'b Url,
    ) -> BoxFuture<'c, Result<Box<dyn WorkerChannel>>> {
        let channel = self.channel(url).map(|channel| {
            Box::new(Named { inner: create_worker_client(channel), url: url.clone() }) as Box<dyn WorkerChannel>
        });
        std::future::ready(channel).boxed()
    }
}

/// Has the errors of a worker say which one it is.
struct Named {
    inner: Box<dyn WorkerChannel>,
    url: Url,
}

type Messages = BoxStream<'static, Result<WorkerToCoordinatorMsg>>;
type Rows = Vec<BoxStream<'static, Result<RecordBatch>>>;

impl WorkerChannel for Named {
    fn coordinator_channel<'a: 'c, 'b: 'c, 'c>(
        &'a mut self,
        headers: HeaderMap,
        request: SetPlanRequest,
        messages: BoxStream<'static, CoordinatorToWorkerMsg>,
        metrics: ExecutionPlanMetricsSet,
        context: &'b Arc<TaskContext>,
    ) -> BoxFuture<'c, Result<Messages>>
    where
        Self: 'c,
    {
        async move {
            let url = self.url.clone();
            let answers = self.inner.coordinator_channel(headers, request, messages, metrics, context).await;
            let answers = answers.map_err(|e| named(&url, e))?;
            Ok(answers.map(move |answer| answer.map_err(|e| named(&url, e))).boxed())
        }
        .boxed()
    }

    fn execute_task<'a: 'c, 'b: 'c, 'c>(
        &'a mut self,
        headers: HeaderMap,
        request: ExecuteTaskRequest,
        metrics: ExecutionPlanMetricsSet,
        context: &'b Arc<TaskContext>,
    ) -> BoxFuture<'c, Result<Rows>>
    where
        Self: 'c,
    {
        async move {
            let url = self.url.clone();
            let streams = self.inner.execute_task(headers, request, metrics, context).await;
            let named_stream = |stream: BoxStream<'static, Result<RecordBatch>>| {
                let url = url.clone();
                stream.map(move |batch| batch.map_err(|e| named(&url, e))).boxed()
            };
            Ok(streams.map_err(|e| named(&url, e))?.into_iter().map(named_stream).collect())
        }
        .boxed()
    }

    fn get_worker_info<'a: 'c, 'c>(
        &'a mut self,
        request: GetWorkerInfoRequest,
    ) -> BoxFuture<'c, Result<GetWorkerInfoResponse>>
    where
        Self: 'c,
    {
        async move { self.inner.get_worker_info(request).await.map_err(|e| named(&self.url, e)) }.boxed()
    }
}

/// A worker as people know it.
pub(crate) fn name(url: &Url) -> String {
    match (url.host_str(), url.port()) {
        (Some(host), Some(port)) => format!("{host}:{port}"),
        _ => url.to_string(),
    }
}

/// An error that says which worker it is of, and in words if it is gone.
fn named(url: &Url, error: DataFusionError) -> DataFusionError {
    let worker = name(url);
    let text = causes(&error);
    if text.contains("worker ") && !text.contains("this worker") {
        // It names one already: another, that this one spoke to.
        return error;
    }
    if LOST.iter().any(|sign| text.contains(sign)) {
        return exec_datafusion_err!("worker {worker}: is lost ({text}); the query did not end: run it again");
    }
    match error.find_root() {
        DataFusionError::ResourcesExhausted(what) => {
            DataFusionError::ResourcesExhausted(format!("worker {worker}: {what}"))
        }
        // What the call came to, or what has to do with that worker; all else would be the same in one process.
        DataFusionError::External(_) | DataFusionError::Internal(_) => exec_datafusion_err!("worker {worker}: {text}"),
        DataFusionError::Execution(what) if what.contains("this worker") => {
            exec_datafusion_err!("worker {worker}: {what}")
        }
        _ => error,
    }
}

/// What the errors of connections that broke have in them.
const LOST: [&str; 9] = [
    "transport error",
    "tcp connect",
    "h2 protocol error",
    "broken pipe",
    "Broken pipe",
    "connection error",
    "connection reset",
    "keep-alive timed out",
    "operation was canceled",
];

/// An error and what is behind it; of a call, the sentence alone.
fn causes(error: &(dyn std::error::Error + 'static)) -> String {
    let mut texts: Vec<String> = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next {
        let text = match (error.downcast_ref::<tonic::Status>(), error.downcast_ref::<DataFusionError>()) {
            (Some(status), _) if !status.message().is_empty() => status.message().to_owned(),
            (_, Some(error)) => error.strip_backtrace(),
            _ => error.to_string(),
        };
        next = error.source();
        // What is around a cause has its text in it.
        if let Some(last) = texts.last_mut()
            && (last.contains(&text) || next_says(last, error))
        {
            *last = text;
            continue;
        }
        texts.push(text);
    }
    plinth_sql::one_line(&texts.join(": "))
}

/// Whether a text is but the long form of a call's status.
fn next_says(text: &str, error: &(dyn std::error::Error + 'static)) -> bool {
    error.downcast_ref::<tonic::Status>().is_some_and(|status| !status.message().is_empty() && text.contains("code: "))
}

/// The workers of a session, for the engine.
pub(crate) struct Resolver(pub(crate) Arc<[Url]>);

impl WorkerResolver for Resolver {
    fn get_urls(&self) -> Result<Vec<Url>> {
        Ok(self.0.to_vec())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn plain_text_stays_on_this_machine_unless_it_is_said() {
        let plain = Credentials::default();
        for local in ["127.0.0.1:8816", "localhost:1", "http://[::1]:9"] {
            address(local, &plain).unwrap();
        }
        for wrong in
            ["10.0.0.7:8816", "https://127.0.0.1:9", "ftp://127.0.0.1:9", "127.0.0.1", "x y:1", "http://127.0.0.1:9/p"]
        {
            assert!(address(wrong, &plain).is_err(), "{wrong}");
        }
        let anywhere = Credentials { plaintext_anywhere: true, ..plain };
        assert_eq!(name(&address("10.0.0.7:8816", &anywhere).unwrap()), "10.0.0.7:8816");
    }
}
