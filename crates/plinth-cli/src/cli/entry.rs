//! Arguments of commands that others may connect to: who may come in, and how it is kept secret.

use std::path::PathBuf;

use clap::Args;
use plinth_server::{Tls, Users};

use crate::error::{Failure, Result};

/// The environment variable of the token, where no file of users is named.
pub(crate) const TOKEN: &str = "PLINTH_TOKEN";

#[derive(Debug, Args)]
pub(crate) struct EntryArgs {
    /// File of users, a line each: `NAME TOKEN ROLE`, the role being read or write, the token perhaps as sha256:HEX; others must not
    /// be able to read it [default: one user who writes, with the token in the environment variable PLINTH_TOKEN]
    #[arg(long, value_name = "FILE")]
    tokens: Option<PathBuf>,
    /// Certificate in PEM, with those that it hangs on behind it
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Private key of the certificate, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Listen without TLS where other machines can hear: tokens and rows travel in plain text
    #[arg(long, conflicts_with = "tls_cert")]
    pub(crate) insecure_plaintext: bool,
}

impl EntryArgs {
    /// Those who may come in.
    pub(crate) fn users(&self) -> Result<Users> {
        let users = match (&self.tokens, std::env::var(TOKEN)) {
            (Some(file), _) => Users::read_file(file),
            (None, Ok(token)) => Users::owner(&token),
            (None, Err(_)) => {
                return Err(Failure::new(format!(
                    "no one could come in: name a file of users with --tokens, or put a token into {TOKEN}"
                )));
            }
        };
        users.map_err(Failure::new)
    }

    /// What makes connections secret, if anything does.
    pub(crate) fn tls(&self) -> Result<Option<Tls>> {
        match (&self.tls_cert, &self.tls_key) {
            (Some(certificate), Some(key)) => Tls::read_files(certificate, key).map(Some).map_err(Failure::new),
            _ => Ok(None),
        }
    }
}
