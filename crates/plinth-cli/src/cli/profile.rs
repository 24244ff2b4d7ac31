//! Arguments of profiles.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// `--profile` and `--profile-to`.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ProfileArgs {
    /// Profile: time and bytes by stage (of the last statement), beside the limits of the machine; on standard error unless
    /// --profile-to names a file [default: text]
    #[arg(long, value_name = "FORMAT", num_args = 0..=1, require_equals = true)]
    pub(crate) profile: Option<Option<ProfileFormat>>,
    /// File for the profile, whose name says the format (.json, .html, else text) where --profile does not
    #[arg(long, value_name = "FILE")]
    pub(crate) profile_to: Option<PathBuf>,
}

/// How profiles are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProfileFormat {
    /// Tree of stages, and the limits of the machine
    Text,
    /// One JSON object
    Json,
    /// Self-contained page with a flame graph
    Html,
    /// Timeline of each thread, for Perfetto or chrome://tracing
    Trace,
}
