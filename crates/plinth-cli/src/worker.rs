//! `plinth worker`: parts of the queries of others.

use std::time::Duration;

use plinth_cluster::{Reach, Worker, WorkerOptions};
use plinth_server::{Tls, Users};
use plinth_sql::SessionOptions;

use crate::cli::{TOKEN, WorkerArgs};
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
    let users = match &args.tokens {
        Some(file) => Users::read_file(file),
        None => match std::env::var(TOKEN) {
            Ok(token) => Users::owner(&token),
            Err(_) => {
                return Err(Failure::new(format!(
                    "no one could come in: name a file of users with --tokens, or put a token into {TOKEN}"
                )));
            }
        },
    };
    let tls = match (&args.tls_cert, &args.tls_key) {
        (Some(certificate), Some(key)) => Some(Tls::read_files(certificate, key).map_err(Failure::new)?),
        _ => None,
    };
    let session = SessionOptions {
        io: args.io.options(args.root.as_deref()).map_err(Failure::new)?,
        ..session::options(args.limits.memory(), args.limits.threads())
    };
    Ok(WorkerOptions {
        tls,
        tls_ca: args.tls_ca.clone(),
        plaintext_anywhere: args.insecure_plaintext,
        reach: Reach::new(args.root.as_deref(), &args.objects).map_err(Failure::new)?,
        session,
        ..WorkerOptions::new(users.map_err(Failure::new)?)
    })
}
