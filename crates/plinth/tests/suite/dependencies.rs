//! What a program gets that depends on the library.

use std::collections::BTreeSet;
use std::process::Command;

/// Fewer crates than this are in the library: our own and others.
const MOST: usize = 90;

/// What belongs to the program and to SQL: a query engine, an argument parser, an asynchronous runtime, an allocator.
const FOREIGN: [&str; 6] = ["datafusion", "sqlparser", "clap", "tokio", "object_store", "tikv"];

#[test]
fn the_library_brings_no_engine_and_few_crates() {
    let tree = Command::new(env!("CARGO"))
        .args(["tree", "--package", "plinth", "--edges", "normal", "--prefix", "none", "--offline", "--locked"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
    let tree = String::from_utf8(tree.stdout).unwrap();
    let crates: BTreeSet<&str> =
        tree.lines().map(|line| line.trim_end_matches(" (*)")).filter(|l| !l.is_empty()).collect();
    assert!(crates.len() > 20 && crates.len() < MOST, "{} crates:\n{crates:#?}", crates.len());
    for name in FOREIGN {
        let found: Vec<_> = crates.iter().filter(|line| line.starts_with(name)).collect();
        assert!(found.is_empty(), "the library builds {found:?}");
    }
}
