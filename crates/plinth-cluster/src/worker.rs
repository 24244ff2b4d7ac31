//! A worker: a session that runs parts of the plans of others.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use datafusion::common::Result;
use datafusion::execution::FunctionRegistry;
use datafusion::execution::session_state::SessionState;
use datafusion_distributed::{
    DistributedExt, Worker as Engine, WorkerPlanRewriteEvent, WorkerPlanRewriteEventResponse, WorkerQueryContext,
    WorkerSessionBuilder,
};
use futures::FutureExt;
use futures::future::BoxFuture;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName};
use plinth_datafusion::{PlinthConfig, operators_by_name};
use plinth_server::{GuardedPort, Limits, Log, PortOptions, Tls, Users};
use plinth_sql::{Session, SessionOptions};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::bridge::{Bridge, QUERY, Queries};
use crate::check;
use crate::cluster::TIME_ZONE;
use crate::codec::Codec;
use crate::error::ClusterError;
use crate::fragment::Parts;
use crate::net::Net;
use crate::reach::Reach;
use crate::version::VERSION;
use crate::workers::{Channels, Credentials};

/// Calls of a connection at once: each stage of each query of each process that asks has some.
const STREAMS: u32 = 4096;

/// How long connections may take to close.
const LEAVING: Duration = Duration::from_secs(2);

/// What a worker has, and whom it works for.
#[derive(Clone, Debug)]
pub struct WorkerOptions {
    /// Who may come in.
    pub users: Users,
    /// A certificate and its key; without, connections are in plain text.
    pub tls: Option<Tls>,
    /// Certificates that vouch for other workers, if these have TLS.
    pub tls_ca: Option<PathBuf>,
    /// Whether plain text may be spoken beyond this machine.
    pub plaintext_anywhere: bool,
    /// What it reads for others.
    pub reach: Reach,
    /// The session that does the work: its memory is that of all queries together.
    pub session: SessionOptions,
    /// Where events are written to.
    pub log: Log,
}

impl WorkerOptions {
    /// A worker for users that reads nothing yet, with all else by default.
    pub fn new(users: Users) -> Self {
        Self {
            users,
            tls: None,
            tls_ca: None,
            plaintext_anywhere: false,
            reach: Reach::default(),
            session: SessionOptions::default(),
            log: Log::default(),
        }
    }
}

/// A worker that listens.
pub struct Worker {
    net: Net,
    port: GuardedPort,
    engine: Engine,
    parts: Parts,
    queries: Queries,
    // Its runtime is the engine's.
    _session: Arc<Session>,
}

impl std::fmt::Debug for Worker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Worker").field("address", &self.address()).finish_non_exhaustive()
    }
}

impl Worker {
    /// Makes the session and listens at an address, `127.0.0.1:8816` say; port 0 is one that is free.
    ///
    /// # Errors
    /// If the address is none or taken; if it is beyond this machine, and connections would be in plain text; if certificates can't be read.
    pub async fn bind(options: WorkerOptions, address: &str) -> std::result::Result<Self, ClusterError> {
        let limits = Limits::default();
        let port = PortOptions {
            users: options.users.clone(),
            tls: options.tls.clone(),
            plaintext_anywhere: options.plaintext_anywhere,
            limits,
            streams: STREAMS,
            log: options.log.clone(),
        };
        let session = Arc::new(Session::new(&options.session)?);
        let sessions = Sessions::new(&session, &options)?;
        let parts = sessions.parts.clone();
        let (net, address) = (Net::start()?, address.to_owned());
        let bound = net.spawn(async move { GuardedPort::bind(port, &address).await }).await;
        let port = bound.map_err(|_| ClusterError::new("the thread for connections has ended"))??;
        let queries = sessions.queries.clone();
        let runtime = session.context().runtime_env();
        let engine = Engine::from_session_builder(sessions).with_runtime_env(runtime).with_version(VERSION);
        Ok(Self { net, port, engine, parts, queries, _session: session })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.port.address()
    }

    /// Tells how many partitions of parts of plans run at a moment, also once it works.
    pub fn running(&self) -> impl Fn() -> usize + Send + Sync + 'static {
        let parts = self.parts.clone();
        move || parts.running()
    }

    /// Works until `end` is over. What runs then ends with its connections.
    pub async fn run(self, end: impl Future<Output = ()>) {
        let calls = Bridge::new(self.engine.into_worker_server(), Handle::current(), self.queries);
        let (ending, ended) = oneshot::channel::<()>();
        let served = self.net.spawn(self.port.run(calls, LEAVING, async move {
            let _ = ended.await;
        }));
        end.await;
        drop(ending);
        let _ = served.await;
    }
}

/// Makes the state that a part of a plan runs with: that of the worker's session, with what those who ask have said.
struct Sessions {
    state: SessionState,
    codec: Codec,
    channels: Channels,
    parts: Parts,
    queries: Queries,
}

impl Sessions {
    fn new(session: &Arc<Session>, options: &WorkerOptions) -> std::result::Result<Self, ClusterError> {
        let credentials =
            Credentials { token: None, tls_ca: options.tls_ca.clone(), plaintext_anywhere: options.plaintext_anywhere };
        let open = session.open_options().clone();
        let mut state = session.context().state();
        for function in operators_by_name(open.io.budget()).into_iter().chain(plinth_sql::functions_of_plans()) {
            state.register_udf(Arc::new(function)).map_err(ClusterError::new)?;
        }
        let parts = Parts::of(&state);
        let codec = Codec::receiving(open, options.reach.clone());
        Ok(Self { state, codec, channels: Channels::new(credentials)?, parts, queries: Queries::default() })
    }

    fn state_for(&self, context: WorkerQueryContext) -> Result<SessionState> {
        let WorkerQueryContext { mut builder, headers } = context;
        let mut state = self.state.clone();
        // Where the part is, and which tasks there are, is said by the configuration that it came with.
        let mut config = builder.config().take().unwrap_or_default();
        let distributed = config.options().extensions.get::<datafusion_distributed::DistributedConfig>().cloned();
        *config.options_mut() = state.config_options().as_ref().clone();
        config.set_distributed_option_extension(distributed.unwrap_or_default());
        config.set_distributed_option_extension_from_headers::<PlinthConfig>(&headers)?;
        if let Some(zone) = headers.get(TIME_ZONE).and_then(|zone| zone.to_str().ok()) {
            config.options_mut().set("datafusion.execution.time_zone", zone)?;
        }
        config.set_distributed_user_codec(self.codec.clone());
        config.set_distributed_channel_resolver(self.channels.clone());
        config.set_distributed_passthrough_headers(passed_on(&headers))?;
        let (parts, query) = (self.parts.clone(), self.queries.of(&headers));
        config.set_distributed_worker_plan_rewrite_handler(move |event: WorkerPlanRewriteEvent<'_>| {
            check::operators(&event.plan).map_err(ClusterError::new)?;
            let plan = parts.made_of(event.plan, event.session_config.options(), query.as_deref())?;
            Ok(WorkerPlanRewriteEventResponse::new(plan))
        });
        *state.config_mut() = config;
        Ok(state)
    }
}

impl WorkerSessionBuilder for Sessions {
    // `async_trait`'s signature, written out.
    fn build_session_state<'a: 'c, 'c>(&'a self, context: WorkerQueryContext) -> BoxFuture<'c, Result<SessionState>>
    where
        Self: 'c,
    {
        std::future::ready(self.state_for(context)).boxed()
    }
}

/// What a worker tells the workers that it asks: who has asked it. It has no token of its own that could be had by asking.
fn passed_on(headers: &HeaderMap) -> HeaderMap {
    let known = [AUTHORIZATION, HeaderName::from_static(TIME_ZONE), HeaderName::from_static(QUERY)];
    let pairs = known.into_iter().filter_map(|name| {
        let value = headers.get(&name)?.clone();
        Some((name, value))
    });
    pairs.collect()
}
