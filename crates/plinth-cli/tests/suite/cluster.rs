//! `plinth worker` and `plinth sql --workers`: answers, and workers that are killed and frozen.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{Dir, Run, command, plinth};

const TOKEN: &str = "workers-token-0123456789";

/// More than the page of the cluster promises, for machines that have much else to do.
const PATIENCE: Duration = Duration::from_secs(120);

/// A worker process.
struct Worker {
    child: Child,
    address: String,
}

impl Worker {
    fn start(dir: &Dir, more: &[&str]) -> Self {
        let args = [&["worker", "--listen", "127.0.0.1:0", "--threads", "1", "--memory", "256MB"], more].concat();
        let mut child = command(dir, &args)
            .env("PLINTH_TOKEN", TOKEN)
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        let address = line.split("listen=").nth(1).unwrap().split_whitespace().next().unwrap().to_owned();
        std::thread::spawn(move || lines.lines().for_each(drop));
        Self { child, address }
    }

    fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([name, &id]).status().unwrap().success());
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A folder with a table of some row groups.
fn table() -> Dir {
    let dir = Dir::new();
    let sql = "COPY (SELECT value AS id, value % 100 AS k, 'text ' || (value % 1000)::text AS t \
               FROM generate_series(1, 200000) AS s(value)) \
               TO 'rows.plinth' STORED AS PLINTH OPTIONS (row_group_rows 8192)";
    plinth(&dir, &["sql", "-c", sql]).ok();
    dir
}

const QUERY: &str = "SELECT k, count(*), sum(id), min(t) FROM 'rows.plinth' GROUP BY k ORDER BY k";

/// As slow as it need be to be hit while it runs: each row of a part is compared with all others.
const SLOW: &str = "SELECT count(*) FROM 'rows.plinth' a JOIN 'rows.plinth' b ON a.id + b.id < 0 AND a.t < b.t";

fn ask(dir: &Dir, workers: &[Worker], sql: &str, more: &[&str]) -> Command {
    let addresses: Vec<&str> = workers.iter().map(|worker| worker.address.as_str()).collect();
    let addresses = addresses.join(",");
    let args = [&["sql", "--workers", &addresses, "--spread-bytes", "0", "-c", sql], more].concat();
    let mut command = command(dir, &args);
    command.env("PLINTH_TOKEN", TOKEN);
    command
}

#[test]
fn workers_answer_as_one_process_does() {
    let dir = table();
    let expected = plinth(&dir, &["sql", "-c", QUERY]).ok().stdout;
    for many in [1, 3] {
        let workers: Vec<Worker> = (0..many).map(|_| Worker::start(&dir, &["--root", "."])).collect();
        let run: Run = ask(&dir, &workers, QUERY, &[]).output().unwrap().into();
        assert_eq!(run.ok().stdout, expected, "{many} workers");
        let explain = format!("EXPLAIN ANALYZE {QUERY}");
        let plan: Run = ask(&dir, &workers, &explain, &["--format", "table"]).output().unwrap().into();
        let plan = plan.ok().stdout;
        assert!(plan.contains("moved between processes") && plan.contains("stage 1"), "{plan}");
        assert!(workers.iter().all(|worker| plan.contains(&worker.address)), "{plan}");
        // What is no query, and what has its rows here, is done here.
        let here = "EXPLAIN SELECT * FROM (VALUES (1)) AS v(x)";
        let plan: Run = ask(&dir, &workers, here, &["--format", "table"]).output().unwrap().into();
        let plan = plan.ok();
        assert!((plan.stdout + &plan.stderr).contains("no worker has a part in it"), "{here}");
    }
}

#[test]
fn what_is_wrong_with_workers_is_said() {
    let dir = table();
    let workers = [Worker::start(&dir, &["--root", "."])];
    let run = |sql: &str, token: Option<&str>| -> Run {
        let mut command = ask(&dir, &workers, sql, &[]);
        match token {
            Some(token) => command.env("PLINTH_TOKEN", token),
            None => command.env_remove("PLINTH_TOKEN"),
        };
        command.output().unwrap().into()
    };
    run(QUERY, None).fails(1, "plinth: workers let no one in without a token");
    let refused = run(QUERY, Some("another-token-0123456789"));
    refused.fails(1, &format!("plinth: worker {}: a token is needed", workers[0].address));
    assert!(!refused.stderr.contains("another-token"), "{}", refused.stderr);
    let nowhere = plinth(&dir, &["sql", "--workers", "10.255.255.1:9", "-c", QUERY]);
    nowhere.fails(1, "plinth: workers let no one in without a token");
    let mut plain = command(&dir, &["sql", "--workers", "10.255.255.1:9", "-c", QUERY]);
    let plain: Run = plain.env("PLINTH_TOKEN", TOKEN).output().unwrap().into();
    plain.fails(1, "plinth: worker 10.255.255.1:9: is on another machine");
    let blind = [Worker::start(&dir, &[])];
    let unread: Run = ask(&dir, &blind, QUERY, &[]).output().unwrap().into();
    assert!(unread.stderr.contains("reads no such file"), "{}", unread.stderr);
    let listening = command(&dir, &["worker", "--listen", "0.0.0.0:0"]).env("PLINTH_TOKEN", TOKEN).output().unwrap();
    Run::from(listening).fails(1, "plinth: 0.0.0.0:0: is reached from other machines");
}

#[test]
fn a_worker_that_is_lost_ends_the_query_and_is_named() {
    let dir = table();
    for signal in ["-KILL", "-STOP"] {
        let workers: Vec<Worker> = (0..3).map(|_| Worker::start(&dir, &["--root", "."])).collect();
        let mut running = ask(&dir, &workers, SLOW, &[]);
        let running = running.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        std::thread::sleep(Duration::from_secs(3));
        workers[1].signal(signal);
        let began = Instant::now();
        let run: Run = running.wait_with_output().unwrap().into();
        assert!(began.elapsed() < PATIENCE, "{signal}: {:?}", began.elapsed());
        assert_eq!(run.code, Some(1), "{signal}: {} {}", run.stdout, run.stderr);
        assert!(run.stderr.contains(&format!("worker {}", workers[1].address)), "{signal}: {}", run.stderr);
        // The next one is told at once, or within the time that a worker has to answer.
        let next: Run = ask(&dir, &workers, QUERY, &[]).output().unwrap().into();
        assert!(next.stderr.contains(&format!("worker {}", workers[1].address)), "{signal}: {}", next.stderr);
        // The others have nothing to do with it any more.
        let left = [&workers[0], &workers[2]].map(|worker| worker.address.clone()).join(",");
        let mut others = command(&dir, &["sql", "--workers", &left, "--spread-bytes", "0", "-c", QUERY]);
        let others: Run = others.env("PLINTH_TOKEN", TOKEN).output().unwrap().into();
        assert_eq!(others.ok().stdout.lines().count(), 101, "{signal}");
    }
}

#[test]
fn a_worker_that_is_asked_to_end_does() {
    let dir = table();
    let mut worker = Worker::start(&dir, &["--root", "."]);
    worker.signal("-TERM");
    let began = Instant::now();
    assert!(worker.child.wait().unwrap().success());
    assert!(began.elapsed() < PATIENCE);
}
