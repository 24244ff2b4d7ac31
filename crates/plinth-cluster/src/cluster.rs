//! Workers as what spreads the queries of a session.

use std::fmt;
use std::sync::Arc;

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, exec_err};
use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::config::SessionConfig;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::physical_plan::ExecutionPlan;
use datafusion_distributed::{
    DesiredTaskCountEvent, DesiredTaskCountEventResponse, DistributedExec, DistributedExt, DistributedLeafExec,
    NetworkBoundary, NetworkBoundaryExt, NetworkCoalesceExec, RouteTasksEvent, RouteTasksEventResponse,
    ScaleUpLeafNodeEvent, ScaleUpLeafNodeEventResponse, SessionStateBuilderExt, Stage,
};
use futures::FutureExt;
use futures::future::{BoxFuture, try_join_all};
use http::HeaderValue;
use plinth_datafusion::{PlinthConfig, Shipped, pieces};
use plinth_sql::{Spread, Spreading, Step, optimized};
use url::Url;
use uuid::Uuid;

use crate::bridge::QUERY;
use crate::check::shippable;
use crate::codec::Codec;
use crate::error::ClusterError;
use crate::fragment::OF_THE_PROCESS;
use crate::route::{file_scan, routes};
use crate::version::VERSION;
use crate::whole::WholeExec;
use crate::workers::{Channels, Credentials, Resolver, address, name};
use crate::{deal, stages};

/// The header of the time zone of a session.
pub(crate) const TIME_ZONE: &str = "x-plinth-time-zone";

/// Partitions of a plan for several workers at least: with one the engine would plan without the exchanges that it is divided at.
const PARTITIONS: usize = 2;

/// Bytes of a scan, of those that there are workers for, from which on all of them have a part in it.
const SPREAD: u64 = 1 << 20;

/// How queries are spread.
#[derive(Clone, Debug)]
pub struct ClusterOptions {
    /// The addresses of workers, `host:port` or URLs.
    pub workers: Vec<String>,
    /// How they are spoken to.
    pub credentials: Credentials,
    /// Bytes of a scan from which on all workers have a part in it; one of fewer bytes is one worker's.
    pub spread_bytes: u64,
    /// Bytes that each connection between two processes holds back for who is slow to take them.
    pub buffer_bytes: u64,
}

impl ClusterOptions {
    /// Some workers, with all else by default.
    pub fn new(workers: Vec<String>) -> Self {
        Self { workers, credentials: Credentials::default(), spread_bytes: SPREAD, buffer_bytes: 16 << 20 }
    }
}

/// Workers that do the work of a session's queries. Give it to [`SessionOptions::spread`](plinth_sql::SessionOptions::spread).
pub struct Cluster {
    workers: Arc<[Url]>,
    channels: Channels,
    options: ClusterOptions,
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let workers: Vec<String> = self.workers.iter().map(name).collect();
        f.debug_struct("Cluster").field("workers", &workers).finish_non_exhaustive()
    }
}

impl Cluster {
    /// Workers at these addresses, to which nothing is sent yet.
    ///
    /// # Errors
    /// If an address is none, is there twice, or may not be spoken to as it says; if certificates can't be read.
    pub fn new(options: ClusterOptions) -> std::result::Result<Self, ClusterError> {
        let workers = options.workers.iter().map(|text| address(text, &options.credentials));
        let mut workers = workers.collect::<std::result::Result<Vec<Url>, _>>()?;
        if workers.is_empty() {
            return Err(ClusterError::new("no worker is named: HOST:PORT, with commas between them"));
        }
        workers.sort();
        if let Some(twice) = workers.windows(2).find(|pair| pair.first() == pair.last()).and_then(<[Url]>::first) {
            return Err(ClusterError::new(format!("worker {}: is named twice", name(twice))));
        }
        options.credentials.headers()?;
        let channels = Channels::new(options.credentials.clone())?;
        Ok(Self { workers: workers.into(), channels, options })
    }

    /// Whether all workers are there and of this version.
    ///
    /// # Errors
    /// If one is not; it is named.
    pub async fn check(&self) -> Result<()> {
        let one = |worker: &Url| {
            let worker = worker.clone();
            async move {
                let version = self.channels.version(&worker).await?;
                if version == VERSION {
                    return Ok(());
                }
                exec_err!(
                    "worker {}: is of another version ({version}) than this program ({VERSION}): all must be the same",
                    name(&worker)
                )
            }
        };
        try_join_all(self.workers.iter().map(one)).await.map(|_| ())
    }

    async fn planned(&self, state: &SessionState, query: &LogicalPlan) -> Result<Spreading> {
        if let LogicalPlan::Copy(_) | LogicalPlan::Dml(_) | LogicalPlan::Ddl(_) = query {
            return Ok(Spreading::Here("it writes".to_owned()));
        }
        if !reads(query)? {
            return Ok(Spreading::Here("it reads no table".to_owned()));
        }
        self.check().await?;
        if self.workers.len() > 1
            && let Some(plan) = self.divided(state, query).await?
        {
            return Ok(plan);
        }
        self.whole(state, query).await
    }

    /// All of a query for one worker: the one that has the most of its files.
    async fn whole(&self, state: &SessionState, query: &LogicalPlan) -> Result<Spreading> {
        let builder = SessionStateBuilder::new_from_existing(state.clone()).with_physical_optimizer_rules(Vec::new());
        let mut state = self.told(builder.build())?;
        let query = optimized(&mut state, query.clone())?;
        let plan = state.query_planner().create_physical_plan(&query, &state).await?;
        if let Err(why) = shippable(&plan, &state) {
            return Ok(Spreading::Here(why));
        }
        let boundary = NetworkCoalesceExec::try_new(Arc::new(WholeExec::new(plan)), 1, 1)?;
        let Stage::Local(mut stage) = boundary.input_stage().clone() else {
            return exec_err!("a stage that nothing was done with is elsewhere");
        };
        (stage.query_id, stage.num) = (Uuid::new_v4(), 1);
        let plan: Arc<dyn ExecutionPlan> = boundary.with_input_stage(Stage::Local(stage))?;
        let plan = Arc::new(DistributedExec::new(plan).with_metrics_collection(true));
        Ok(Spreading::Over(plan, state.task_ctx()))
    }

    /// A query in stages of which all workers have a part; `None` if there is none to have.
    async fn divided(&self, state: &SessionState, query: &LogicalPlan) -> Result<Option<Spreading>> {
        // Where a subquery has one row whatever there is, it can be joined; else the engine looks how many it has, which is not for several.
        if !subqueries_have_one_row(query)? {
            return Ok(None);
        }
        let mut state = self.told(state.clone())?;
        let options = state.config_mut().options_mut();
        options.execution.target_partitions = options.execution.target_partitions.max(PARTITIONS);
        // What a filter learns while it runs does not reach other processes. Each looks for such filters again within its part.
        options.optimizer.enable_dynamic_filter_pushdown = false;
        options.optimizer.enable_join_dynamic_filter_pushdown = false;
        options.optimizer.enable_topk_dynamic_filter_pushdown = false;
        options.optimizer.enable_aggregate_dynamic_filter_pushdown = false;
        let partitions = options.execution.target_partitions;
        let rules = state.physical_optimizers().iter().filter(|rule| !OF_THE_PROCESS.contains(&rule.name()));
        let rules = rules.cloned().collect();
        let builder = SessionStateBuilder::new_from_existing(state).with_physical_optimizer_rules(rules);
        let mut state = builder.with_distributed_planner().build();
        self.handlers(state.config_mut(), partitions);
        let query = optimized(&mut state, query.clone())?;
        let plan = state.query_planner().create_physical_plan(&query, &state).await?;
        let Some(head) =
            plan.downcast_ref::<DistributedExec>().and_then(|plan| plan.children().first().copied().cloned())
        else {
            return Ok(None);
        };
        // One part that can't be sent: then none is.
        let mut sendable = true;
        let walked = head.apply(|node| {
            if let Some(boundary) = node.as_network_boundary() {
                let part = match boundary.input_stage() {
                    Stage::Local(stage) => shippable(&stage.plan, &state),
                    Stage::Remote(_) => Ok(()),
                };
                sendable = sendable && part.is_ok();
            }
            Ok(if sendable { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
        });
        walked?;
        Ok(sendable.then(|| Spreading::Over(plan, state.task_ctx())))
    }

    /// A state with what calls to workers need.
    fn told(&self, mut state: SessionState) -> Result<SessionState> {
        let zone = state.config_options().execution.time_zone.clone();
        let config = state.config_mut();
        let plinth = config.options().extensions.get::<PlinthConfig>().cloned().unwrap_or_default();
        config.set_distributed_option_extension(plinth);
        config.set_distributed_user_codec(Codec::sending());
        config.set_distributed_worker_resolver(Resolver(Arc::clone(&self.workers)));
        config.set_distributed_channel_resolver(self.channels.clone());
        config.set_distributed_metrics_collection(true)?;
        let buffer = usize::try_from(self.options.buffer_bytes).unwrap_or(usize::MAX);
        config.set_distributed_worker_connection_buffer_budget_bytes(buffer)?;
        let mut headers = self.options.credentials.headers()?;
        if let Some(zone) = zone.and_then(|zone| HeaderValue::from_str(&zone).ok()) {
            headers.insert(TIME_ZONE, zone);
        }
        let query = HeaderValue::from_str(&Uuid::new_v4().to_string());
        headers.insert(QUERY, query.map_err(ClusterError::new)?);
        config.set_distributed_passthrough_headers(headers)?;
        let workers = Arc::clone(&self.workers);
        config.set_distributed_route_tasks_handler(move |event: RouteTasksEvent<'_>| {
            Some(Ok(RouteTasksEventResponse::new(routes(&workers, event.plan, event.task_count))))
        });
        Ok(state)
    }

    /// How many tasks a scan has, and what each reads.
    fn handlers(&self, config: &mut SessionConfig, partitions: usize) {
        let (many, least) = (self.workers.len(), self.options.spread_bytes);
        config.set_distributed_desired_task_count_handler(move |event: DesiredTaskCountEvent<'_>| {
            let config = file_scan(event.plan)?;
            let bytes: u64 =
                config.file_groups.iter().flat_map(|group| group.files()).map(|part| part.effective_size()).sum();
            Some(Ok(match Shipped::of(config) {
                Err(_) => DesiredTaskCountEventResponse::maximum(1),
                // Nothing above it puts rows of several tasks together.
                Ok(_) if config.file_groups.len() < 2 => DesiredTaskCountEventResponse::maximum(1),
                Ok(_) if bytes < least => DesiredTaskCountEventResponse::desired(1),
                Ok(_) => DesiredTaskCountEventResponse::desired(many),
            }))
        });
        let workers = Arc::clone(&self.workers);
        config.set_distributed_scale_up_leaf_node_handler(move |event: ScaleUpLeafNodeEvent<'_>| {
            let config = file_scan(event.plan)?;
            if event.task_count < 2 {
                return None;
            }
            Some(divided_scan(event.plan, config, workers.get(..event.task_count)?, partitions))
        });
    }
}

impl Spread for Cluster {
    fn plan<'a>(&'a self, state: &'a SessionState, query: &'a LogicalPlan) -> BoxFuture<'a, Result<Spreading>> {
        self.planned(state, query).boxed()
    }

    fn explain<'a>(&'a self, plan: &'a Arc<dyn ExecutionPlan>, ran: bool) -> BoxFuture<'a, Result<Step>> {
        stages::explained(Arc::clone(plan), ran, Arc::clone(&self.workers)).boxed()
    }
}

/// A scan with a part for each worker.
fn divided_scan(
    plan: &Arc<dyn ExecutionPlan>,
    config: &FileScanConfig,
    workers: &[Url],
    partitions: usize,
) -> Result<ScaleUpLeafNodeEventResponse> {
    let (shipped, _) = Shipped::of(config).map_err(ClusterError::new)?;
    let pieces = pieces(config).map_err(ClusterError::new)?;
    let tasks = deal::deal(pieces, workers, partitions).into_iter().map(|groups| shipped.scan(groups));
    Ok(ScaleUpLeafNodeEventResponse::new(Arc::new(DistributedLeafExec::try_new(Arc::clone(plan), tasks)?)))
}

/// Whether a query reads a table.
fn reads(query: &LogicalPlan) -> Result<bool> {
    let mut reads = false;
    query.apply_with_subqueries(|node| {
        reads = reads || matches!(node, LogicalPlan::TableScan(_));
        Ok(if reads { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(reads)
}

/// Whether each subquery that stands for a value, and does not depend on the row that it is asked for, has one row whatever its tables have.
fn subqueries_have_one_row(query: &LogicalPlan) -> Result<bool> {
    let mut all = true;
    query.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                if let Expr::ScalarSubquery(subquery) = expr {
                    let depends = !subquery.outer_ref_columns.is_empty();
                    all = all && (depends || has_one_row(&subquery.subquery));
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(all)
}

fn has_one_row(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(projection) => has_one_row(&projection.input),
        LogicalPlan::SubqueryAlias(alias) => has_one_row(&alias.input),
        LogicalPlan::Sort(sort) => has_one_row(&sort.input),
        LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.is_empty(),
        _ => false,
    }
}
