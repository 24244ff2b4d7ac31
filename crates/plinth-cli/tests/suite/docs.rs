//! Every command that README.md and docs/guide print runs as printed, and prints what stands below it.
//!
//! A `console` block is commands (`$ ...`) and their output; a `sql` block is statements for the database `warehouse`, of which one after a
//! comment `-- error: TEXT` fails with this text. All blocks of a page run in order, in one folder. Output agrees if it is the same but for
//! numbers with a unit (times, rates, sizes, ratios, shares), blanks and rules; a line `...` stands for any lines, `...` in a line for any
//! text. A command fails if and only if its output has a line that begins with `plinth: `.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Commands that have no place in a test, by their page and the first line of their block.
const NOT_RUN: [(&str, &str, &str); 8] = [
    ("README.md", "cargo xtask duckdb", "it builds for minutes"),
    ("docs/guide/cluster.md", "plinth worker --listen", "workers wait for those who ask"),
    ("docs/guide/duckdb.md", "cargo xtask duckdb", "it builds for minutes"),
    ("docs/guide/objects.md", "plinth import june.ndjson --append s3://", "it needs an object store"),
    ("docs/guide/objects.md", "plinth probe s3://", "it needs an object store"),
    ("docs/guide/server.md", "plinth serve --db shop", "a server waits for clients"),
    ("docs/guide/sql.md", "plinth --db warehouse", "a shell waits for a user"),
    ("docs/guide/probe.md", "plinth probe DIR", "a probe takes minutes and writes gigabytes"),
];

/// Commands that are right, but about the build that the test is part of.
const KNOWN: [&str; 3] =
    ["cargo build --release", "cargo test --workspace", "export PATH=\"$PWD/target/release:$PATH\""];

/// How the program is called where it was not built before.
const BUILT: &str = "cargo run --release -- ";

/// What follows a number that depends on the machine or the moment.
const UNITS: [&str; 22] = [
    " k rows/s",
    " M rows/s",
    " rows/s",
    " kB/s",
    " MB/s",
    " GB/s",
    " B/s",
    " min",
    " ns",
    " us",
    " µs",
    " ms",
    " s",
    " kB",
    " MB",
    " GB",
    " KiB",
    " MiB",
    " GiB",
    " B",
    " %",
    "x",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_path_buf()
}

/// Pages below a folder, with their names from the root.
fn pages(folder: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(root().join(folder)).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{folder}/{}", entry.file_name().to_str().unwrap());
        if entry.path().is_dir() {
            found.extend(pages(&name));
        } else if Path::new(&name).extension().is_some_and(|extension| extension == "md") {
            found.push(name);
        }
    }
    found.sort();
    found
}

fn read(page: &str) -> String {
    std::fs::read_to_string(root().join(page)).unwrap()
}

/// A fenced block.
struct Block<'a> {
    line: usize,
    language: &'a str,
    body: Vec<&'a str>,
}

/// The blocks of a page, and the lines outside of them.
fn blocks(page: &str) -> (Vec<Block<'_>>, Vec<&str>) {
    let (mut blocks, mut rest): (Vec<Block<'_>>, _) = (Vec::new(), Vec::new());
    let mut inside = false;
    for (line, text) in page.lines().enumerate() {
        match text.strip_prefix("```") {
            Some(language) if !inside => blocks.push(Block { line: line + 1, language, body: Vec::new() }),
            None if inside => blocks.last_mut().unwrap().body.push(text),
            None => rest.push(text),
            Some(_) => {}
        }
        inside ^= text.starts_with("```");
    }
    assert!(!inside, "a block that is never closed");
    (blocks, rest)
}

/// Commands with the lines that stand below them.
fn steps<'a>(body: &[&'a str]) -> Vec<(String, Vec<&'a str>)> {
    let mut steps: Vec<(String, Vec<&str>)> = Vec::new();
    for line in body {
        match (line.strip_prefix("$ "), steps.last_mut()) {
            (_, Some((command, _))) if goes_on(command) => {
                command.push('\n');
                command.push_str(line);
            }
            (Some(command), _) => steps.push((command.to_owned(), Vec::new())),
            (None, Some((_, shown))) => shown.push(line),
            (None, None) => panic!("output without a command: {line}"),
        }
    }
    steps
}

/// Whether a quote of a command is open, or its line ends with a backslash.
fn goes_on(command: &str) -> bool {
    let mut quote = None;
    let mut characters = command.chars();
    while let Some(c) = characters.next() {
        match (quote, c) {
            (Some('\''), '\'') | (Some('"'), '"') => quote = None,
            (Some('\''), _) => {}
            (_, '\\') => {
                characters.next();
            }
            (None, '\'' | '"') => quote = Some(c),
            _ => {}
        }
    }
    quote.is_some() || command.ends_with('\\')
}

/// Statements that succeed together, and those that fail alone, with the text of their error.
fn statements<'a>(body: &[&'a str]) -> Vec<(String, Option<&'a str>)> {
    let mut found = vec![(String::new(), None)];
    for line in body {
        if let Some(error) = line.strip_prefix("-- error: ") {
            found.push((String::new(), Some(error)));
            continue;
        }
        let (sql, error) = found.last_mut().unwrap();
        sql.push_str(line);
        sql.push('\n');
        let code = line.split(" --").next().unwrap();
        if error.is_some() && code.trim_end().ends_with(';') {
            found.push((String::new(), None));
        }
    }
    found.retain(|(sql, _)| !sql.trim().is_empty());
    found
}

/// A line without what depends on the machine or the moment.
fn plain(line: &str) -> String {
    let mut plain = String::new();
    let mut rest = line;
    let mut before = ' ';
    while let Some(c) = rest.chars().next() {
        let mut taken = c.len_utf8();
        if c.is_ascii_digit() && !before.is_alphanumeric() && !"._".contains(before) {
            taken = rest.find(|c: char| !c.is_ascii_digit() && !",.".contains(c)).unwrap_or(rest.len());
            let after = &rest[taken..];
            let ends = |unit: &str| {
                let next = after.strip_prefix(unit)?.chars().next();
                (!next.is_some_and(char::is_alphanumeric)).then_some(unit.len())
            };
            match UNITS.iter().find_map(|unit| ends(unit)) {
                Some(unit) => {
                    plain.push('#');
                    taken += unit;
                }
                None => plain.push_str(&rest[..taken]),
            }
        } else if c != '─' || before != '─' {
            plain.push(c);
        }
        before = rest[..taken].chars().next_back().unwrap();
        rest = &rest[taken..];
    }
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn plain_lines<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<String> {
    lines.map(plain).filter(|line| !line.is_empty()).collect()
}

/// Whether a line is as one that may have `...` for any text.
fn line_agrees(shown: &str, printed: &str) -> bool {
    let Some((start, rest)) = shown.split_once("...") else { return shown == printed };
    let Some(mut printed) = printed.strip_prefix(start.trim_end()) else { return false };
    let mut parts: Vec<&str> = rest.split("...").map(str::trim).collect();
    let end = parts.pop().unwrap();
    for part in parts {
        let Some(at) = printed.find(part) else { return false };
        printed = &printed[at + part.len()..];
    }
    printed.ends_with(end)
}

/// Whether output is as shown, where a line `...` stands for any lines.
fn agrees(shown: &[String], printed: &[String]) -> bool {
    match (shown.split_first(), printed.split_first()) {
        (None, _) => printed.is_empty(),
        (Some((first, rest)), _) if first == "..." => {
            (0..=printed.len()).any(|skipped| agrees(rest, &printed[skipped..]))
        }
        (Some(_), None) => false,
        (Some((first, shown)), Some((line, printed))) => line_agrees(first, line) && agrees(shown, printed),
    }
}

/// A folder that commands run in, with the program on the path.
struct Folder {
    scratch: tempfile::TempDir,
    tools: tempfile::TempDir,
}

impl Folder {
    fn new() -> Self {
        let (scratch, tools) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_plinth"), tools.path().join("plinth")).unwrap();
        Self { scratch, tools }
    }

    /// Whether a command succeeded, and all it printed, in order.
    fn run(&self, command: &str) -> (bool, String) {
        let printed = self.tools.path().join("printed");
        let file = std::fs::File::create(&printed).unwrap();
        let path = std::env::var("PATH").unwrap();
        let status = Command::new("sh")
            .args(["-c", command])
            .current_dir(self.scratch.path())
            .env("PATH", format!("{}:{path}", self.tools.path().display()))
            .stdin(Stdio::null())
            .stdout(file.try_clone().unwrap())
            .stderr(file)
            .status()
            .unwrap();
        (status.success(), String::from_utf8_lossy(&std::fs::read(&printed).unwrap()).into_owned())
    }

    /// What is wrong with a `console` block.
    fn console(&self, body: &[&str]) -> Vec<String> {
        let mut wrong = Vec::new();
        for (command, shown) in steps(body) {
            if KNOWN.contains(&&*command) {
                continue;
            }
            assert!(!command.starts_with("cargo ") || command.starts_with(BUILT), "not known: {command}");
            let (succeeded, printed) = self.run(&command.replace(BUILT, "plinth "));
            let shown = plain_lines(shown.into_iter());
            let fails = shown.iter().any(|line| line.starts_with("plinth: "));
            if succeeded == fails || !agrees(&shown, &plain_lines(printed.lines())) {
                wrong.push(format!("$ {command}\n{printed}"));
            }
        }
        wrong
    }

    /// What is wrong with a `sql` block.
    fn sql(&self, body: &[&str]) -> Vec<String> {
        let mut wrong = Vec::new();
        for (sql, error) in statements(body) {
            let script = self.tools.path().join("statements.sql");
            std::fs::write(&script, &sql).unwrap();
            let (succeeded, printed) = self.run(&format!("plinth sql --db warehouse -f '{}'", script.display()));
            if succeeded == error.is_some() || !printed.contains(error.unwrap_or_default()) {
                wrong.push(format!("{sql}\n{printed}"));
            }
        }
        wrong
    }
}

/// Runs the blocks of a page.
fn check(page: &str) {
    let text = read(page);
    let (blocks, rest) = blocks(&text);
    let folder = Folder::new();
    let mut wrong = Vec::new();
    for block in blocks {
        let found = match block.language {
            "console" => folder.console(&block.body),
            "sql" => folder.sql(&block.body),
            _ => unlisted(page, &block.body),
        };
        wrong.extend(found.into_iter().map(|what| format!("{page}:{}: {what}", block.line)));
    }
    let indented = rest.iter().filter(|line| line.starts_with("    ") && is_command(line));
    wrong.extend(indented.map(|line| format!("{page}: not in a console block: {line}")));
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n\n"));
}

fn is_command(line: &str) -> bool {
    let line = line.trim_start();
    ["$ ", "plinth ", "cargo "].iter().any(|start| line.starts_with(start))
}

/// Commands in a block that is not run, unless it is listed.
fn unlisted(page: &str, body: &[&str]) -> Vec<String> {
    let listed = |first: &str| NOT_RUN.iter().any(|(of, start, _)| *of == page && first.starts_with(start));
    match body.iter().find(|line| is_command(line)) {
        Some(first) if !listed(first) => vec![format!("neither run nor listed: {first}")],
        _ => Vec::new(),
    }
}

#[test]
fn the_readme_runs_as_printed() {
    check("README.md");
}

#[test]
fn the_guide_runs_as_printed() {
    let pages = pages("docs/guide");
    assert!(pages.len() > 5);
    std::thread::scope(|scope| {
        let running: Vec<_> = pages.iter().map(|page| scope.spawn(|| check(page))).collect();
        for page in running {
            page.join().unwrap();
        }
    });
}

#[test]
fn commands_with_output_stand_in_pages_that_run() {
    let mut others = pages("docs");
    others.extend(
        ["ARCHITECTURE.md", "CONTRIBUTING.md", "FORMAT.md", "bench/README.md", "fuzz/README.md"].map(str::to_owned),
    );
    for page in others.iter().filter(|page| !page.starts_with("docs/guide/")) {
        let text = read(page);
        let (blocks, _) = blocks(&text);
        let found = blocks.iter().find(|block| ["console", "sql"].contains(&block.language));
        assert!(found.is_none(), "{page}:{}: a block that no test runs", found.unwrap().line);
    }
}

#[test]
fn paths_in_the_architecture_exist() {
    let text = read("ARCHITECTURE.md");
    let paths: Vec<&str> = text.split('`').skip(1).step_by(2).filter(|name| name.contains('/')).collect();
    let paths = paths.into_iter().filter(|name| !name.contains(' ') && !name.starts_with(['-', '.']));
    let (mut seen, mut missing) = (0, Vec::new());
    for path in paths {
        let (first, _) = path.split_once('/').unwrap();
        let folder = if first.starts_with("plinth") { "crates" } else { "" };
        // Paths within a crate are in the section about it.
        if first.starts_with("plinth") || ["bench", "docs", "fuzz", "tests", "xtask"].contains(&first) {
            seen += 1;
            if !root().join(folder).join(path).exists() {
                missing.push(path);
            }
        }
    }
    assert!(seen > 80 && missing.is_empty(), "{seen} paths, missing: {missing:#?}");
}

#[test]
fn exceptions_are_of_use() {
    for (page, start, _) in NOT_RUN {
        assert!(read(page).lines().any(|line| line.starts_with(start)), "{page} has no {start}");
    }
}

#[test]
fn output_agrees_but_for_what_varies() {
    assert_eq!(
        plain("a: 500,000 rows in 596 ms (839 k rows/s); 7.06 MB -> 6.17 MB (1.15x smaller)"),
        "a: 500,000 rows in # (#); # -> # (# smaller)"
    );
    assert_eq!(plain("──┼───  x1 20.8 %  3 sheep"), "─┼─ x1 # 3 sheep");
    let lines = |text: &str| plain_lines(text.lines());
    assert!(agrees(&lines("a\n...\nd ... f"), &lines("a\nb\nc\nd  e\nf\nd e f")));
    assert!(agrees(&lines("... b\n..."), &lines("a b")));
    assert!(!agrees(&lines("a\n...\nd"), &lines("a\nd\ne")));
    assert!(!agrees(&lines("1 row"), &lines("2 rows")));
    assert!(goes_on("plinth sql -c \"SELECT 'x") && goes_on("a \\") && !goes_on("echo 'it\"s' \"don't\""));
    assert_eq!(steps(&["$ a 'b", "c'", "d", "$ e"]), [("a 'b\nc'".to_owned(), vec!["d"]), ("e".to_owned(), vec![])]);
    let sql = ["A;", "-- error: no", "B", "C; -- why", "D;"];
    let expected = [("A;\n".to_owned(), None), ("B\nC; -- why\n".to_owned(), Some("no")), ("D;\n".to_owned(), None)];
    assert_eq!(statements(&sql), expected);
}
