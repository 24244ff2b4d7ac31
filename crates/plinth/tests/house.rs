//! The invariants of ARCHITECTURE.md that are about the source itself.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_path_buf()
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn storage_crates_know_no_engine_and_no_runtime() {
    for name in [
        "plinth-core",
        "plinth-profile",
        "plinth-io",
        "plinth-encoding",
        "plinth-format",
        "plinth-table",
        "plinth-ingest",
        "plinth-index",
    ] {
        let manifest = std::fs::read_to_string(crates().join(name).join("Cargo.toml")).unwrap();
        for forbidden in ["datafusion", "tokio", "futures", "object_store", "async"] {
            let found = manifest.lines().any(|line| line.starts_with(forbidden));
            assert!(!found, "{name} depends on {forbidden}");
        }
    }
}

#[test]
fn unsafe_code_lives_where_the_architecture_says() {
    let mut files = Vec::new();
    sources(&crates(), &mut files);
    assert!(files.len() > 50);
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let attribute = ["allow(unsafe", "_code"].concat();
        if !text.contains(&attribute) {
            continue;
        }
        let place = file.strip_prefix(crates()).unwrap().to_string_lossy().replace('\\', "/");
        let files = [
            "plinth-format/src/assemble.rs",
            "plinth/src/allocator.rs",
            "plinth-index/src/latch.rs",
            "plinth-index/src/node/search.rs",
            "plinth-index/src/page.rs",
            "plinth-index/src/pool/frame.rs",
            "plinth-index/src/region.rs",
            "plinth-ingest/src/bits/neon.rs",
            "plinth-ingest/src/bits/sse2.rs",
            "plinth-ingest/src/text/lines.rs",
            "plinth-io/src/ring.rs",
            "plinth-io/src/slab.rs",
        ];
        let allowed = files.contains(&&*place)
            || place.ends_with("/avx2.rs")
            || place.contains("/tests/")
            || place.contains("/examples/");
        assert!(allowed, "{place} allows unsafe code");
    }
}
