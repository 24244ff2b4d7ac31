//! The invariants of ARCHITECTURE.md that are about the source itself.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Lines of a source file, at most.
const LINES: usize = 600;

/// The crates from the floor up: each may depend on those before it only.
const STOREYS: [&str; 22] = [
    "plinth-core",
    "plinth-profile",
    "plinth-io",
    "plinth-encoding",
    "plinth-exec",
    "plinth-probe",
    "plinth-format",
    "plinth-index",
    "plinth-table",
    "plinth-rowstore",
    "plinth-ingest",
    "plinth",
    "plinth-duckdb",
    "plinth-objects",
    "plinth-datafusion",
    "plinth-sql",
    "plinth-adbc",
    "plinth-server",
    "plinth-cluster",
    "plinth-cli",
    "plinth-python",
    "xtask",
];

/// The last crate that knows no query engine and no asynchronous runtime.
const LIBRARY: &str = "plinth";

/// Groups of modules of a crate that know each other, by nature.
const CIRCLES: [(&str, &[&str]); 0] = [];

/// Words that make riddles of sentences: a person where a thing or a name belongs.
const RIDDLES: [&str; 3] = ["whoever", "nobody", "somebody"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_path_buf()
}

fn folder_of(name: &str) -> PathBuf {
    if name == "xtask" { root().join(name) } else { root().join("crates").join(name) }
}

/// Files below a folder with one of some extensions, but for build output.
fn files(folder: &Path, extensions: &[&str], found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() {
            if !name.starts_with('.') && !["target", "demo-data", "bench-data"].contains(&name) {
                files(&path, extensions, found);
            }
        } else if path.extension().is_some_and(|extension| extensions.iter().any(|wanted| extension == *wanted)) {
            found.push(path);
        }
    }
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    files(folder, &["rs"], &mut found);
    found
}

fn dependencies(name: &str) -> Vec<String> {
    let manifest = std::fs::read_to_string(folder_of(name).join("Cargo.toml")).unwrap();
    let normal = manifest.split("[dev-dependencies]").next().unwrap();
    let names = normal.lines().filter(|line| line.contains("workspace = true") || line.contains("version ="));
    names.filter_map(|line| line.split(['.', ' ', '=']).next()).map(str::to_owned).collect()
}

#[test]
fn every_crate_stands_on_those_below_it() {
    let mut folders: Vec<_> =
        std::fs::read_dir(root().join("crates")).unwrap().map(|e| e.unwrap().file_name()).collect();
    folders.push("xtask".into());
    let known: BTreeSet<_> = STOREYS.iter().map(|name| (*name).into()).collect();
    assert_eq!(folders.into_iter().collect::<BTreeSet<std::ffi::OsString>>(), known);
    for (storey, name) in STOREYS.iter().enumerate() {
        for dependency in dependencies(name).iter().filter(|d| d.starts_with("plinth")) {
            let below = STOREYS.iter().position(|other| other == dependency);
            assert!(below.is_some_and(|below| below < storey), "{name} depends on {dependency}");
        }
    }
}

#[test]
fn storage_crates_know_no_engine_and_no_runtime() {
    for name in STOREYS.iter().take_while(|name| **name != LIBRARY).chain([&LIBRARY]) {
        for dependency in dependencies(name) {
            let foreign = ["datafusion", "tokio", "futures", "object_store", "async"];
            assert!(!foreign.iter().any(|foreign| dependency.starts_with(foreign)), "{name} depends on {dependency}");
        }
    }
}

#[test]
fn unsafe_code_lives_where_the_architecture_says() {
    let files = sources(&root().join("crates"));
    assert!(files.len() > 50);
    let attribute = ["allow(unsafe", "_code"].concat();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        if !text.contains(&attribute) {
            continue;
        }
        let place = file.strip_prefix(root().join("crates")).unwrap().to_string_lossy().replace('\\', "/");
        let files = [
            "plinth-core/src/prefetch.rs",
            "plinth-format/src/assemble.rs",
            "plinth-cli/src/allocator.rs",
            "plinth-index/src/latch.rs",
            "plinth-index/src/page.rs",
            "plinth-index/src/pool/frame.rs",
            "plinth-index/src/region.rs",
            "plinth-ingest/src/bits/sse2.rs",
            "plinth-ingest/src/csv/lines.rs",
            "plinth-io/src/ring.rs",
            "plinth-io/src/slab.rs",
            "plinth-duckdb/src/entry.rs",
            "plinth-duckdb/src/handover.rs",
            "plinth-adbc/src/c_data.rs",
            "plinth-adbc/src/entry.rs",
            "plinth-adbc/src/error.rs",
            "plinth-adbc/src/guard.rs",
            "plinth-python/src/data.rs",
            "plinth-python/src/wait.rs",
        ];
        let allowed = files.contains(&&*place)
            || place.ends_with("/avx2.rs")
            || place.ends_with("/neon.rs")
            || place.contains("/tests/")
            || place.contains("/examples/");
        assert!(allowed, "{place} allows unsafe code");
    }
}

#[test]
fn files_tell_one_story() {
    let long: Vec<_> = STOREYS
        .iter()
        .flat_map(|name| sources(&folder_of(name)))
        .map(|file| (std::fs::read_to_string(&file).unwrap().lines().count(), file))
        .filter(|(lines, _)| *lines > LINES)
        .collect();
    assert!(long.is_empty(), "more than {LINES} lines: {long:?}");
}

#[test]
fn modules_know_each_other_one_way_only() {
    for name in STOREYS {
        let circles = circles(&imports(&folder_of(name).join("src")));
        let allowed: Vec<Vec<String>> = CIRCLES
            .iter()
            .filter(|(of, _)| *of == name)
            .map(|(_, modules)| modules.iter().map(|module| (*module).to_owned()).collect())
            .collect();
        assert_eq!(circles, allowed, "circles of modules in {name}");
    }
}

#[test]
fn sentences_name_what_they_are_about() {
    let mut texts = Vec::new();
    files(&root(), &["rs", "md"], &mut texts);
    let mut found = Vec::new();
    for path in texts.iter().filter(|path| !path.ends_with("suite/house.rs")) {
        let text = std::fs::read_to_string(path).unwrap();
        for (line, text) in text.lines().enumerate() {
            let words = text.split(|c: char| !c.is_alphabetic());
            if words.map(str::to_lowercase).any(|word| RIDDLES.contains(&word.as_str())) {
                found.push(format!("{}:{}: {}", path.display(), line + 1, text.trim()));
            }
        }
    }
    assert!(found.is_empty(), "{} sentences:\n{}", found.len(), found.join("\n"));
}

/// Which modules of a crate's top level each of them names. Tests and the root itself are left out.
fn imports(src: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let root = ["lib.rs", "main.rs"].iter().find_map(|name| std::fs::read_to_string(src.join(name)).ok()).unwrap();
    let modules: BTreeSet<String> = root
        .lines()
        .filter_map(|line| line.trim_start_matches("pub ").trim_start_matches("pub(crate) ").strip_prefix("mod "))
        .filter_map(|rest| rest.strip_suffix(';'))
        .map(str::to_owned)
        .collect();
    let exported = exports(&root, &modules);
    let mut imports = BTreeMap::new();
    for module in &modules {
        let mut texts = Vec::new();
        if src.join(module).is_dir() {
            texts = sources(&src.join(module));
        }
        texts.extend([src.join(format!("{module}.rs"))].into_iter().filter(|path| path.exists()));
        let mut named = BTreeSet::new();
        for path in texts.iter().filter(|path| !path.components().any(|part| part.as_os_str() == "tests")) {
            if path.file_stem().is_some_and(|stem| stem.to_string_lossy().contains("tests")) {
                continue;
            }
            let text = std::fs::read_to_string(path).unwrap();
            // Unit tests may use what they like.
            let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
            let depth = path.strip_prefix(src).unwrap().components().count();
            let supers = "super::".repeat(if path.ends_with("mod.rs") { depth - 1 } else { depth });
            named.extend(paths(text, "crate::").into_iter().chain(paths(text, &supers)));
        }
        let resolved = named.iter().filter_map(|name| modules.get(name).or_else(|| exported.get(name))).cloned();
        imports.insert(module.clone(), resolved.filter(|other| other != module).collect());
    }
    imports
}

/// The module that each name comes from that the root gives on.
fn exports(root: &str, modules: &BTreeSet<String>) -> BTreeMap<String, String> {
    let mut exported = BTreeMap::new();
    for statement in root.split(';') {
        let Some((_, path)) = statement.split_once("use ") else { continue };
        let Some((module, names)) = path.split_once("::") else { continue };
        if let Some(module) = modules.get(module.trim()) {
            let names = names.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|name| !name.is_empty());
            exported.extend(names.map(|name| (name.to_owned(), module.clone())));
        }
    }
    exported
}

/// The first names of paths that begin so, those in braces too.
fn paths(text: &str, prefix: &str) -> Vec<String> {
    let mut names = Vec::new();
    for (at, _) in text.match_indices(prefix) {
        // Comments name what they like, and a longer run of `super::` is another path.
        let line = text[..at].rfind('\n').map_or(0, |end| end + 1);
        if text[line..at].trim_start().starts_with("//") || text[..at].ends_with("super::") {
            continue;
        }
        let rest = &text[at + prefix.len()..];
        let name = |text: &str| text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
        match rest.strip_prefix('{') {
            None => names.push(name(rest)),
            Some(inner) => {
                let mut depth = 0;
                let mut start = true;
                for (i, c) in inner.char_indices() {
                    match c {
                        '{' => depth += 1,
                        '}' if depth == 0 => break,
                        '}' => depth -= 1,
                        ',' if depth == 0 => start = true,
                        c if depth == 0 && start && (c.is_alphabetic() || c == '_') => {
                            names.push(name(&inner[i..]));
                            start = false;
                        }
                        _ => {}
                    }
                }
            }
        }
    }
    names.retain(|name| name != "super" && !name.is_empty());
    names
}

/// Groups of modules that lead to each other.
fn circles(imports: &BTreeMap<String, BTreeSet<String>>) -> Vec<Vec<String>> {
    let reach = |from: &String| {
        let (mut seen, mut waiting) = (BTreeSet::new(), vec![from.clone()]);
        while let Some(module) = waiting.pop() {
            for next in imports.get(&module).into_iter().flatten() {
                if seen.insert(next.clone()) {
                    waiting.push(next.clone());
                }
            }
        }
        seen
    };
    let reached: BTreeMap<_, _> = imports.keys().map(|module| (module.clone(), reach(module))).collect();
    let mut circles = BTreeSet::new();
    for (module, to) in &reached {
        let circle: Vec<_> = to.iter().filter(|other| reached[*other].contains(module)).cloned().collect();
        if circle.len() > 1 {
            circles.insert(circle);
        }
    }
    circles.into_iter().collect()
}

#[test]
fn circles_are_found() {
    let imports = |pairs: &[(&str, &[&str])]| {
        pairs.iter().map(|(m, to)| ((*m).to_owned(), to.iter().map(|t| (*t).to_owned()).collect())).collect()
    };
    assert!(circles(&imports(&[("a", &["b"]), ("b", &["c"]), ("c", &[])])).is_empty());
    assert_eq!(circles(&imports(&[("a", &["b"]), ("b", &["c"]), ("c", &["a"]), ("d", &["a"])])), [["a", "b", "c"]]);
    assert_eq!(paths("use crate::{a, b::{C, D}, e};\n// crate::no\ncrate::f::g()", "crate::"), ["a", "b", "e", "f"]);
}
