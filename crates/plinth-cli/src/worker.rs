//! `plinth worker`: parts of the queries of others.

use std::time::Duration;

use plinth_cluster::{Reach, Worker, WorkerOptions};
use plinth_sql::SessionOptions;

use crate::cli::WorkerArgs;
use crate::error::{Failure, Result};
use crate::{serve, session};

/// How long threads may take that were told to stop.
const LEAVING: Duration = Duration::from_secs(1);

/// Works until Ctrl-C or SIGTERM.
pub(crate) fn run(args: &WorkerArgs) -> Result {
    let options = options(args)?;
    let runtime = plinth_sql::start_runtime(args.limits.threads())?;
    let worked = runtime.block_on(async {
        let end = serve::signals()?;
        let worker = Worker::bind(options, &args.listen).await.map_err(Failure::new)?;
        worker.run(end).await;
        Ok(())
    });
    // What still runs was cancelled.
    runtime.shutdown_timeout(LEAVING);
    worked
}

fn options(args: &WorkerArgs) -> Result<WorkerOptions> {
    let session = SessionOptions {
        io: args.io.options(args.root.as_deref()).map_err(Failure::new)?,
        ..session::options(args.limits.memory(), args.limits.threads())
    };
    Ok(WorkerOptions {
        tls: args.entry.tls()?,
        tls_ca: args.tls_ca.clone(),
        plaintext_anywhere: args.entry.insecure_plaintext,
        reach: Reach::new(args.root.as_deref(), &args.objects).map_err(Failure::new)?,
        session,
        ..WorkerOptions::new(args.entry.users()?)
    })
}
