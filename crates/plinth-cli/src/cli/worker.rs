//! Arguments of `plinth worker`, and of commands that have workers.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use plinth_cluster::{Cluster, ClusterOptions, Credentials};
use plinth_sql::Spread;

use super::entry::{EntryArgs, TOKEN};
use super::io::IoArgs;
use super::limits::LimitArgs;
use crate::error::{Failure, Result};
use crate::units::parse_bytes;

#[derive(Debug, Args)]
pub(crate) struct WorkerArgs {
    /// Address and port to listen at; port 0 is one that is free
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8816")]
    pub(crate) listen: String,
    /// Folder below which files are read for others; their paths must be the same on all machines [default: no file is read]
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,
    /// URL below which objects are read for others, with the credentials of this process, such as s3://bucket/folder/; may be given more
    /// than once [default: no object is read]
    #[arg(long, value_name = "URL")]
    pub(crate) objects: Vec<String>,
    #[command(flatten)]
    pub(crate) entry: EntryArgs,
    /// Certificates in PEM that vouch for other workers
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_ca: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
    #[command(flatten)]
    pub(crate) io: IoArgs,
}

/// Workers that have a part in queries.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Workers")]
pub(crate) struct ClusterArgs {
    /// Workers that have a part in queries, such as 10.0.0.7:8816,10.0.0.8:8816; the token is in the environment variable PLINTH_TOKEN
    #[arg(long, value_name = "ADDR,...", value_delimiter = ',')]
    workers: Vec<String>,
    /// Certificates in PEM that vouch for workers
    #[arg(long, value_name = "FILE", requires = "workers")]
    tls_ca: Option<PathBuf>,
    /// Speak to workers on other machines without TLS: the token and rows travel in plain text
    #[arg(long, requires = "workers", conflicts_with = "tls_ca")]
    insecure_plaintext: bool,
    /// Size of a table from which on all workers read a part of it, 0 for any; a smaller one is one worker's [default: 1 MiB]
    #[arg(long, value_name = "SIZE", requires = "workers", value_parser = parse_spread)]
    spread_bytes: Option<u64>,
}

impl ClusterArgs {
    /// The workers, if there are any.
    ///
    /// # Errors
    /// If there is no token, or they can't be spoken to as was asked for.
    pub(crate) fn spread(&self) -> Result<Option<Arc<dyn Spread>>> {
        if self.workers.is_empty() {
            return Ok(None);
        }
        let token = std::env::var(TOKEN).map_err(|_| {
            Failure::new(format!(
                "workers let no one in without a token: put one into the environment variable {TOKEN}"
            ))
        })?;
        let credentials = Credentials {
            token: Some(token),
            tls_ca: self.tls_ca.clone(),
            plaintext_anywhere: self.insecure_plaintext,
        };
        let defaults = ClusterOptions::new(self.workers.clone());
        let spread_bytes = self.spread_bytes.unwrap_or(defaults.spread_bytes);
        let cluster = Cluster::new(ClusterOptions { credentials, spread_bytes, ..defaults }).map_err(Failure::new)?;
        Ok(Some(Arc::new(cluster)))
    }
}

/// A size, or that any will do.
fn parse_spread(text: &str) -> std::result::Result<u64, String> {
    if text == "0" { Ok(0) } else { parse_bytes(text) }
}
