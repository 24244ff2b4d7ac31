//! The command-line program.

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
mod objects;
mod output;
#[cfg_attr(not(target_os = "linux"), path = "probe_elsewhere.rs")]
mod probe;
mod profile;
mod progress;
mod reading;
mod screen;
mod serve;
mod session;
mod shell;
mod sql;
mod store;
mod table;
mod verify;
mod worker;

pub(crate) use plinth_core::units;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use cli::{Cli, Command};

fn main() -> ExitCode {
    error::quiet_panics();
    notes::to_standard_error();
    let command = match arguments().map(Cli::command) {
        Ok(Ok(command)) => command,
        Ok(Err(what)) => {
            screen::say(format_args!("plinth: {what}"));
            return ExitCode::from(2);
        }
        Err(code) => return code,
    };
    if let Some(limit) = command.memory() {
        let is_import = matches!(command, Command::Import(_));
        allocator::within(limit, if is_import { allocator::LITTLE_OF_IMPORTS } else { allocator::LITTLE });
    }
    let result = match command {
        Command::Import(args) => import::run(&args),
        Command::Export(args) => export::run(&args),
        Command::Sql(args) if sql::is_interactive(&args) => shell::run(&args),
        Command::Sql(args) => sql::run(&args),
        Command::Table(command) => store::run(&command),
        Command::Inspect(args) => inspect::run(&args),
        Command::Serve(args) => serve::run(&args),
        Command::Worker(args) => worker::run(&args),
        Command::Lookup(args) => lookup::run(&args),
        Command::Verify(args) => verify::run(&args),
        Command::Compact(args) => compact::run(&args),
        Command::Probe(args) => probe::run(&args),
        Command::Demo(args) => demo::run(&args),
    };
    error::exit_code(result)
}

/// Reads the arguments of the program. Help, the version, and what is wrong with the arguments are printed; then it is over.
fn arguments() -> Result<Cli, ExitCode> {
    Cli::try_parse().map_err(|e| {
        let text = e.render().to_string();
        // Who closed the pipe has what it wanted.
        let _ = if e.use_stderr() {
            screen::stderr().write_all(text.as_bytes())
        } else {
            screen::stdout().write_all(text.as_bytes())
        };
        ExitCode::from(u8::try_from(e.exit_code()).unwrap_or(2))
    })
}
