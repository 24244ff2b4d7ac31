//! The command-line program.

#[cfg(not(target_env = "msvc"))]
mod allocator;
mod cli;
mod compact;
mod demo;
mod error;
mod export;
mod import;
mod inspect;
mod interrupt;
mod lookup;

mod machine;
mod notes;
#[cfg_attr(not(target_os = "linux"), path = "probe_elsewhere.rs")]
mod probe;
mod profile;
mod progress;
mod reading;
mod session;
mod shell;
mod sql;
mod store;
mod table;
mod units;
mod verify;

use std::process::ExitCode;

use clap::Parser;
use cli::{Cli, Command};

fn main() -> ExitCode {
    error::quiet_panics();
    notes::to_standard_error();
    let command = Cli::parse().command;
    #[cfg(not(target_env = "msvc"))]
    if let Some(limit) = command.memory() {
        allocator::within(limit);
    }
    let result = match command {
        Command::Import(args) => import::run(&args),
        Command::Export(args) => export::run(&args),
        Command::Sql(args) => sql::run(&args),
        Command::Table(command) => store::run(&command),
        Command::Inspect(args) => inspect::run(&args),
        Command::Lookup(args) => lookup::run(&args),
        Command::Verify(args) => verify::run(&args),
        Command::Compact(args) => compact::run(&args),
        Command::Probe(args) => probe::run(&args),
        Command::Demo(args) => demo::run(&args),
    };
    error::exit_code(result)
}
