//! The examples run as they are, and print what they say they print.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Where Cargo puts the examples of the packages that it tests.
fn built(name: &str) -> PathBuf {
    let deps = std::env::current_exe().unwrap().parent().unwrap().to_path_buf();
    deps.parent().unwrap().join("examples").join(name)
}

/// The text block at the head of an example.
fn promised(source: &str) -> String {
    let lines =
        source.lines().map_while(|line| line.strip_prefix("//!")).map(|line| line.strip_prefix(' ').unwrap_or(line));
    let block: Vec<_> = lines.skip_while(|line| *line != "```text").skip(1).take_while(|line| *line != "```").collect();
    block.join("\n")
}

fn run(folder: &Path, expected: usize) {
    let mut ran = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let source = std::fs::read_to_string(&path).unwrap();
        let scratch = tempfile::tempdir().unwrap();
        let program = built(name);
        let output = Command::new(&program).current_dir(scratch.path()).output();
        let output = output.unwrap_or_else(|e| panic!("{}: {e}", program.display()));
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        let printed = String::from_utf8(output.stdout).unwrap();
        assert_eq!(printed.trim_end(), promised(&source), "{name}");
        assert!(!promised(&source).is_empty(), "{name} promises nothing");
        ran += 1;
    }
    assert_eq!(ran, expected);
}

#[test]
fn examples_of_the_library_print_what_they_say() {
    run(&Path::new(env!("CARGO_MANIFEST_DIR")).join("examples"), 6);
}

#[test]
fn examples_of_sql_print_what_they_say() {
    run(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../plinth-sql/examples"), 1);
}
