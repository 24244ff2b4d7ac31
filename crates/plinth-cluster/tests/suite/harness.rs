//! Workers, sessions that have them, and their answers.

use std::path::Path;
use std::sync::{Arc, Mutex};

use datafusion::arrow::array::{Array, RecordBatch};
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use plinth_cluster::{Cluster, ClusterOptions, Credentials, Reach, Worker, WorkerOptions};
use plinth_server::{Log, Users};
use plinth_sql::{Connection, Explained, Params, SessionOptions, parse};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

pub(crate) const TOKEN: &str = "workers-token-0123456789";

/// A worker with threads of its own.
pub(crate) struct Running {
    pub(crate) address: String,
    pub(crate) lines: Arc<Mutex<Vec<String>>>,
    /// How many partitions of parts run.
    pub(crate) running: Box<dyn Fn() -> usize>,
    end: Option<oneshot::Sender<()>>,
    runtime: Option<Runtime>,
}

impl Running {
    /// One that reads files below a folder.
    pub(crate) fn below(root: &Path) -> Self {
        Self::with(|options| WorkerOptions { reach: Reach::new(Some(root), &[]).unwrap(), ..options })
    }

    pub(crate) fn with(change: impl FnOnce(WorkerOptions) -> WorkerOptions) -> Self {
        let runtime = plinth_sql::start_runtime(2).unwrap();
        let lines = Arc::<Mutex<Vec<String>>>::default();
        let log = Arc::clone(&lines);
        let session = SessionOptions { memory: 256 << 20, threads: 2, ..SessionOptions::default() };
        let options = WorkerOptions {
            session,
            log: Log::to(move |line| log.lock().unwrap().push(line.to_owned())),
            ..WorkerOptions::new(Users::owner(TOKEN).unwrap())
        };
        let worker = runtime.block_on(Worker::bind(change(options), "127.0.0.1:0")).unwrap();
        let (address, running) = (worker.address().to_string(), Box::new(worker.running()));
        let (end, asked) = oneshot::channel::<()>();
        runtime.spawn(worker.run(async move {
            let _ = asked.await;
        }));
        Self { address, lines, running, end: Some(end), runtime: Some(runtime) }
    }

    /// Ends it at once, as if it were killed: its connections break.
    pub(crate) fn kill(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.end.take());
        self.kill();
    }
}

/// Workers that read files below a folder.
pub(crate) fn workers(many: usize, root: &Path) -> Vec<Running> {
    (0..many).map(|_| Running::below(root)).collect()
}

pub(crate) fn options() -> SessionOptions {
    SessionOptions { memory: 512 << 20, threads: 2, ..SessionOptions::default() }
}

/// A session without workers.
pub(crate) fn alone() -> Connection {
    Connection::open(&options()).unwrap()
}

pub(crate) fn cluster(workers: &[Running], token: &str) -> Cluster {
    let credentials = Credentials { token: Some(token.to_owned()), ..Credentials::default() };
    let addresses = workers.iter().map(|worker| worker.address.clone()).collect();
    Cluster::new(ClusterOptions { credentials, spread_bytes: 1, ..ClusterOptions::new(addresses) }).unwrap()
}

/// A session with workers, of which all have a part in each scan.
pub(crate) fn with(workers: &[Running]) -> Connection {
    Connection::open(&SessionOptions { spread: Some(Arc::new(cluster(workers, TOKEN))), ..options() }).unwrap()
}

/// The rows of a query as text; numbers of a kind that adds up differently in another order without their last digits.
pub(crate) fn rows(connection: &mut Connection, sql: &str) -> Result<Vec<String>, String> {
    let batches = connection.query(sql).map_err(|e| e.to_string())?;
    let batches: Result<Vec<RecordBatch>, _> = batches.collect();
    let mut rows = Vec::new();
    for batch in batches.map_err(|e| e.to_string())? {
        let options = FormatOptions::default().with_null("NULL");
        let columns: Vec<_> =
            batch.columns().iter().map(|c| (c, ArrayFormatter::try_new(c, &options).unwrap())).collect();
        for row in 0..batch.num_rows() {
            let text = |(column, formatter): &(&Arc<dyn Array>, ArrayFormatter<'_>)| {
                let text = formatter.value(row).to_string();
                match column.data_type() {
                    DataType::Float32 | DataType::Float64 if !column.is_null(row) => {
                        format!("{:.9e}", text.parse::<f64>().unwrap())
                    }
                    _ => text,
                }
            };
            rows.push(columns.iter().map(text).collect::<Vec<_>>().join("|"));
        }
    }
    Ok(rows)
}

/// The same in any order, unless the query says in which.
pub(crate) fn sorted(connection: &mut Connection, sql: &str) -> Result<Vec<String>, String> {
    let mut rows = rows(connection, sql)?;
    if !is_ordered(sql) {
        rows.sort();
    }
    Ok(rows)
}

/// Whether a query says in which order its rows come: outside of all parentheses.
fn is_ordered(sql: &str) -> bool {
    let mut depth = 0;
    let outside = sql.chars().filter(|c| {
        depth += i32::from(*c == '(') - i32::from(*c == ')');
        depth == 0
    });
    outside.collect::<String>().to_lowercase().contains("order by")
}

/// The plan of a query, run.
pub(crate) fn explained(connection: &Connection, sql: &str, runs: bool) -> Explained {
    let statement = parse(sql).unwrap().remove(0);
    let session = connection.session();
    let runtime = plinth_sql::start_runtime(2).unwrap();
    let profiler = plinth_profile::Profiler::off();
    runtime.block_on(session.explain(statement, &Params::default(), runs, &profiler)).unwrap()
}

/// The names of the operators of a plan, with what they are about.
pub(crate) fn lines(step: &plinth_sql::Step) -> Vec<String> {
    let mut lines = vec![format!("{}: {}", step.name, step.details)];
    for input in &step.inputs {
        lines.extend(self::lines(input).into_iter().map(|line| format!("  {line}")));
    }
    lines
}
