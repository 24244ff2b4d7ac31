//! Statements that fail, of every kind there is, and what is said of each.

use std::path::Path;
use std::sync::Arc;

use futures::StreamExt;
use plinth_sql::{Session, SessionOptions, parse};

use crate::error::{Failure, Result};
use crate::import::{Job, Target};
use crate::session::block_on;

/// A statement a line, and behind an arrow what its message names; `~/` is the folder with the files.
const STATEMENTS: &str = include_str!("corpus.txt");

/// Words that mean something only to those who made the parts this program is built from.
const INTERNAL: &str = include_str!("internal.txt");

fn files(folder: &Path) {
    let write = |name: &str, bytes: &[u8]| std::fs::write(folder.join(name), bytes).unwrap();
    write("t.csv", b"id,name,amount,day\n1,a,1.5,2024-01-01\n2,b,2.5,2024-01-02\n3,c,,2024-01-03\n");
    write("n.ndjson", b"{\"a\":1,\"b\":{\"c\":\"x\"}}\n{\"a\":2,\"b\":{\"c\":\"y\"}}\n");
    write("broken.json", b"{\"a\": [1, 2");
    write("broken.csv", b"a,b\n1,2\n\"x\n");
    write("empty.csv", b"");
    write("data.xyz", b"x");
    write("encrypted.parquet", &[b"PARE".as_slice(), &[b'x'; 40], &[16, 0, 0, 0], b"PARE"].concat());
    write("broken.parquet", &[b"PAR1".as_slice(), &[b'x'; 40], &[30, 0, 0, 0], b"PAR1"].concat());
    let job = Job {
        inputs: vec![folder.join("t.csv")],
        source: Default::default(),
        target: Target::File { path: folder.join("t.plinth"), replace: false },
        effort: plinth_encoding::Effort::Fast,
        threads: 1,
        memory: 256 << 20,
        sort_by: Vec::new(),
        index: Vec::new(),
        quiet: true,
        profiler: plinth_profile::Profiler::off(),
    };
    job.run().unwrap();
    let whole = std::fs::read(folder.join("t.plinth")).unwrap();
    write("broken.plinth", &whole[..whole.len() - 9]);
    std::fs::create_dir(folder.join("db")).unwrap();
}

fn run(session: &Arc<Session>, statements: &str) -> Result {
    block_on(2, async {
        for statement in parse(statements)? {
            let mut rows = session.execute(statement).await?;
            while let Some(batch) = rows.next().await {
                batch?;
            }
        }
        Ok(())
    })
}

/// What is wrong with a message.
fn complaint(message: &str, named: &str) -> Option<String> {
    let ends = message.ends_with([':', ',', ';', ' ', '.']);
    if message.is_empty() || ends || message.contains(": :") || message.contains("::") {
        return Some("nothing behind its punctuation".to_owned());
    }
    if message.chars().any(|c| !crate::screen::is_plain(c)) {
        return Some("control characters".to_owned());
    }
    if let Some(word) = INTERNAL.lines().find(|word| message.contains(word) && !named.contains(word)) {
        return Some(format!("{word:?} means nothing to who reads it"));
    }
    (!message.contains(named)).then(|| format!("it does not name {named:?}"))
}

#[test]
fn every_statement_that_fails_says_what_is_wrong() {
    let dir = tempfile::tempdir().unwrap();
    files(dir.path());
    let options =
        SessionOptions { db: Some(dir.path().join("db")), memory: 256 << 20, threads: 2, ..SessionOptions::default() };
    let session = Arc::new(Session::new(&options).unwrap());
    let here = format!("{}/", dir.path().display());
    run(
        &session,
        &"CREATE TABLE kv(id BIGINT PRIMARY KEY, v TEXT, n INT NOT NULL, UNIQUE(v)); INSERT INTO kv VALUES (1,'a',1),(2,'b',2);
          CREATE TABLE fixed AS SELECT * FROM '~/t.csv'"
            .replace("~/", &here),
    )
    .unwrap();
    let (mut ran, mut wrong) = (0, Vec::new());
    for line in STATEMENTS.lines() {
        let (statement, named) = line.split_once(" ⇒ ").expect(line);
        ran += 1;
        // What is set stays.
        let session = if statement.starts_with("SET ") {
            Arc::new(Session::new(&options).unwrap())
        } else {
            Arc::clone(&session)
        };
        match run(&session, &statement.replace("~/", &here)) {
            Err(Failure::Message(message)) => {
                if std::env::var_os("PLINTH_SHOW_MESSAGES").is_some() {
                    let _ =
                        std::io::Write::write_fmt(&mut std::io::stderr(), format_args!("{statement}\n    {message}\n"));
                }
                wrong.extend(complaint(&message, named).map(|what| format!("{statement}: {what}: {message}")));
            }
            Err(other) => wrong.push(format!("{statement}: {other}")),
            Ok(()) => wrong.push(format!("{statement}: does not fail")),
        }
    }
    assert!(ran > 200 && wrong.is_empty(), "{} of {ran}:\n{}", wrong.len(), wrong.join("\n"));
}
