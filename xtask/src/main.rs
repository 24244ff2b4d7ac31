//! One-word chores: `cargo xtask NAME`. They need a nightly toolchain, so they are not part of `.ci/run`.

use std::process::{Command, ExitCode};

/// A chore: its name, what it is for, and the command with what it finds in its environment.
struct Chore {
    name: &'static str,
    about: &'static str,
    command: &'static [&'static str],
    environment: &'static [(&'static str, &'static str)],
}

const CHORES: [Chore; 2] = [
    Chore {
        name: "miri",
        about: "unit tests of the index under Miri: undefined behaviour, data races (needs the component `miri`)",
        // Which places of a file are free is told by safe code of one thread, whose many steps take hours there.
        command: &["cargo", "+nightly", "miri", "test", "-p", "plinth-index", "--lib", "--", "--skip", "store::space"],
        // Tests read the clock and the environment for their seeds; few cases are enough where each access is checked.
        environment: &[("MIRIFLAGS", "-Zmiri-disable-isolation"), ("PROPTEST_CASES", "4"), ("PLINTH_INDEX_OPS", "40")],
    },
    Chore {
        name: "tsan",
        about: "threads of the index under ThreadSanitizer (needs the component `rust-src`)",
        command: &[
            "cargo",
            "+nightly",
            "test",
            "-Zbuild-std",
            "--target",
            "x86_64-unknown-linux-gnu",
            "-p",
            "plinth-index",
            "--test",
            "suite",
            "threads",
        ],
        environment: &[("RUSTFLAGS", "-Zsanitizer=thread")],
    },
];

fn main() -> ExitCode {
    let name = std::env::args().nth(1).unwrap_or_default();
    let Some(chore) = CHORES.iter().find(|chore| chore.name == name) else {
        for chore in &CHORES {
            eprintln!("cargo xtask {:<6} {}", chore.name, chore.about);
        }
        return ExitCode::from(2);
    };
    let Some((program, arguments)) = chore.command.split_first() else { return ExitCode::FAILURE };
    let status = Command::new(program).args(arguments).envs(chore.environment.iter().copied()).status();
    match status {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(status) => {
            eprintln!("{program} ended with {status}");
            ExitCode::FAILURE
        }
        Err(e) => {
            eprintln!("cannot run {program}: {e}");
            ExitCode::FAILURE
        }
    }
}
