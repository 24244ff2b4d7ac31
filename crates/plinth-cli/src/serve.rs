//! `plinth serve`: the tables of a folder for clients elsewhere.

use std::time::Duration;

use plinth_server::{Server, ServerOptions};

use crate::cli::ServeArgs;
use crate::error::{Failure, Result};
use crate::interrupt::Signals;
use crate::machine;

/// How long threads may take that were told to stop.
const LEAVING: Duration = Duration::from_secs(1);

/// Serves until Ctrl-C or SIGTERM.
pub(crate) fn run(args: &ServeArgs) -> Result {
    let options = options(args)?;
    let runtime = plinth_sql::start_runtime(args.limits.threads())?;
    let served = runtime.block_on(async {
        let end = signals()?;
        let server = Server::bind(options, &args.listen).await.map_err(Failure::new)?;
        if let Some(root) = &args.root {
            // Relative paths begin there.
            std::env::set_current_dir(root).map_err(|e| Failure::new(format!("{}: {e}", root.display())))?;
        }
        server.run(end).await;
        Ok(())
    });
    // What still runs was cancelled.
    runtime.shutdown_timeout(LEAVING);
    served
}

fn options(args: &ServeArgs) -> Result<ServerOptions> {
    Ok(ServerOptions {
        tls: args.entry.tls()?,
        plaintext_anywhere: args.entry.insecure_plaintext,
        root: args.root.clone(),
        postgres: args.postgres.clone(),
        memory: args.limits.memory(),
        threads: args.limits.threads(),
        io: args.io.options(Some(&args.db)).map_err(Failure::new)?,
        allocated: Some(machine::allocated),
        profile: args.profile,
        limits: args.limits_of_clients(),
        ..ServerOptions::new(args.db.clone(), args.entry.users()?)
    })
}

/// Waits for the first request to end; a second one ends the program at once.
pub(crate) fn signals() -> Result<impl Future<Output = ()>> {
    let failed = |e: std::io::Error| Failure::new(format!("can't listen for Ctrl-C: {e}"));
    let (asked, mut heard) = tokio::sync::mpsc::unbounded_channel();
    let mut signals = Signals::new().map_err(failed)?;
    tokio::spawn(async move {
        signals.next().await;
        let _ = asked.send(());
        signals.next().await;
        // What is not acknowledged is not there when the folder is opened again.
        std::process::exit(130);
    });
    Ok(async move {
        let _ = heard.recv().await;
    })
}
