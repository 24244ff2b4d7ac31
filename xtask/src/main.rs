//! One-word chores: `cargo xtask NAME`. They need more than the toolchain of `rust-toolchain.toml`; `.ci/run` installs what
//! checking for macOS and Windows takes, and leaves the others alone.

mod duckdb;
mod footer;
mod python;
mod slt;

use std::process::{Command, ExitCode, Stdio};

/// A chore: its name, what it is for, and the command with what it finds in its environment.
struct Chore {
    name: &'static str,
    about: &'static str,
    /// Programs beside cargo, and how to get them.
    needs: &'static [(&'static str, &'static str)],
    command: &'static [&'static str],
    /// Added to the command, followed by what the caller adds.
    packages: &'static [&'static str],
    /// Tests that can't run there, by parts of their names.
    skip: &'static [&'static str],
    environment: &'static [(&'static str, &'static str)],
}

/// The crates that know no query engine, which takes too long to compile once more (or to emulate).
const STORAGE: &[&str] = &[
    "plinth-core",
    "plinth-profile",
    "plinth-io",
    "plinth-encoding",
    "plinth-exec",
    "plinth-index",
    "plinth-format",
    "plinth-table",
    "plinth-rowstore",
    "plinth-ingest",
];

/// A C compiler for each target, for there are dependencies in C.
const ZIG: &[(&str, &str)] =
    &[("cargo-zigbuild", "pip install -r xtask/cross.txt, in a virtual environment on the PATH")];

const CHORES: [Chore; 5] = [
    Chore {
        name: "arm",
        about: "tests of the storage crates for 64-bit ARM, emulated (needs the target `aarch64-unknown-linux-gnu`)",
        needs: &[
            ("qemu-aarch64", "apt-get install qemu-user"),
            ("aarch64-linux-gnu-gcc", "apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross"),
        ],
        // Without examples: their allocator takes a while to compile.
        command: &["cargo", "test", "--no-fail-fast", "--target", "aarch64-unknown-linux-gnu", "--lib", "--tests"],
        packages: STORAGE,
        // Those that run their own program once more, which this machine can't start without the emulator, or a browser.
        skip: &[
            "browser::",
            "compact::tests::after_a_crash",
            "compact::tests::killed",
            "faults::forked",
            "faults::reads",
            "faults::rings",
            "process::",
            "soak::",
        ],
        environment: &[
            ("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", "aarch64-linux-gnu-gcc"),
            ("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", "qemu-aarch64 -L /usr/aarch64-linux-gnu"),
            // Emulation takes ten times as long.
            ("PROPTEST_CASES", "32"),
            ("PLINTH_CRASH_POINTS", "500"),
            ("PLINTH_HISTORIES", "10"),
            ("PLINTH_ATTACKS", "100"),
        ],
    },
    Chore {
        name: "macos",
        about: "whether the storage crates compile for macOS (needs the target `aarch64-apple-darwin`)",
        needs: ZIG,
        command: &["cargo-zigbuild", "clippy", "--target", "aarch64-apple-darwin"],
        packages: STORAGE,
        skip: &[],
        environment: &[("CARGO_ENCODED_RUSTFLAGS", "-Dwarnings")],
    },
    Chore {
        name: "windows",
        about: "whether the storage crates compile for Windows (needs the target `x86_64-pc-windows-gnu`)",
        needs: ZIG,
        command: &["cargo-zigbuild", "clippy", "--target", "x86_64-pc-windows-gnu"],
        packages: STORAGE,
        skip: &[],
        environment: &[("CARGO_ENCODED_RUSTFLAGS", "-Dwarnings")],
    },
    Chore {
        name: "miri",
        about: "unit tests of the index under Miri: undefined behaviour, data races (needs the component `miri`)",
        needs: &[],
        command: &["cargo", "+nightly", "miri", "test", "--lib"],
        packages: &["plinth-index"],
        // Which places of a file are free is told by safe code of one thread, whose many steps take hours there.
        skip: &["store::space"],
        // Tests read the clock and the environment for their seeds; few cases are enough where each access is checked.
        environment: &[("MIRIFLAGS", "-Zmiri-disable-isolation"), ("PROPTEST_CASES", "4"), ("PLINTH_INDEX_OPS", "40")],
    },
    Chore {
        name: "tsan",
        about: "threads of the index under ThreadSanitizer (needs the component `rust-src`)",
        needs: &[],
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
        packages: &[],
        skip: &[],
        environment: &[("RUSTFLAGS", "-Zsanitizer=thread")],
    },
];

/// Chores that are more than a command: their names, what they are for, and what they do with the caller's arguments.
type Steps = (&'static str, &'static str, fn(&[String]) -> Result<(), String>);

const STEPS: [Steps; 4] = [
    ("duckdb", "the extension of DuckDB, built and signed off for its version 2.0.0", duckdb::build),
    ("python", "tests of the Python package, in a virtual environment of their own", python::test),
    ("wheel", "wheels of the Python package for Linux (needs the targets `*-unknown-linux-gnu`)", python::wheels),
    ("slt", "the scripts of sqllogictest of DataFusion and DuckDB (needs git and a network)", slt::test),
];

fn main() -> ExitCode {
    let name = std::env::args().nth(1).unwrap_or_default();
    if let Some((_, _, work)) = STEPS.iter().find(|(step, ..)| *step == name) {
        let arguments: Vec<String> = std::env::args().skip(2).collect();
        return match work(&arguments) {
            Ok(()) => ExitCode::SUCCESS,
            Err(what) => {
                eprintln!("{what}");
                ExitCode::FAILURE
            }
        };
    }
    let Some(chore) = CHORES.iter().find(|chore| chore.name == name) else {
        for chore in &CHORES {
            eprintln!("cargo xtask {:<8} {}", chore.name, chore.about);
        }
        for (name, about, _) in &STEPS {
            eprintln!("cargo xtask {name:<8} {about}");
        }
        return ExitCode::from(2);
    };
    let missing: Vec<_> = chore.needs.iter().filter(|(program, _)| !runs(program)).collect();
    for (program, install) in &missing {
        eprintln!("{program} is missing: {install}");
    }
    let Some((program, arguments)) = chore.command.split_first().filter(|_| missing.is_empty()) else {
        return ExitCode::FAILURE;
    };
    if !chore.skip.is_empty() {
        eprintln!("skipped here: {}", chore.skip.join(", "));
    }
    let status = Command::new(program)
        .args(arguments)
        .args(chore.packages.iter().flat_map(|package| ["--package", package]))
        .args(std::env::args().skip(2))
        .args(chore.skip.first().map(|_| "--"))
        .args(chore.skip.iter().flat_map(|test| ["--skip", test]))
        .envs(chore.environment.iter().copied())
        .status();
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

/// Whether there is such a program.
fn runs(program: &str) -> bool {
    Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}
