//! What a program gets that depends on the library.

use std::collections::BTreeSet;
use std::process::Command;

/// Fewer crates than this are in the library: our own and others.
const MOST: usize = 90;

/// Fewer than this are built for it, with those that build scripts and macros need.
const MOST_BUILT: usize = 98;

/// What belongs to the program and to SQL: a query engine, an argument parser, an asynchronous runtime, an allocator.
const FOREIGN: [&str; 6] = ["datafusion", "sqlparser", "clap", "tokio", "object_store", "tikv"];

/// The crates of the library by these edges.
fn crates(edges: &str) -> BTreeSet<String> {
    let tree = Command::new(env!("CARGO"))
        .args(["tree", "--package", "plinth", "--edges", edges, "--prefix", "none", "--offline", "--locked"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
    let tree = String::from_utf8(tree.stdout).unwrap();
    tree.lines().map(|line| line.trim_end_matches(" (*)").to_owned()).filter(|line| !line.is_empty()).collect()
}

#[test]
fn the_library_brings_no_engine_and_few_crates() {
    let (used, built) = (crates("normal"), crates("normal,build"));
    assert!(used.len() > 20 && used.len() < MOST, "{} crates:\n{used:#?}", used.len());
    assert!(built.len() < MOST_BUILT, "{} crates:\n{built:#?}", built.len());
    for name in FOREIGN {
        let found: Vec<_> = built.iter().filter(|line| line.starts_with(name)).collect();
        assert!(found.is_empty(), "the library builds {found:?}");
    }
}
