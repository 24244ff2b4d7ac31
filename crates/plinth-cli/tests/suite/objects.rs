//! Object stores from outside: what commands read, what they say, and what they keep to themselves.

use std::time::Duration;

use plinth_objects::server::{Fault, Server};

use crate::common::{Dir, Run, command, people, plinth, write_parquet};

/// A store with the same rows in each format.
pub(crate) struct Store {
    pub(crate) dir: Dir,
    pub(crate) server: Server,
}

impl Store {
    pub(crate) fn new() -> Self {
        let (dir, server) = (Dir::new(), Server::start().unwrap());
        // Without lists, which CSV can't hold.
        write_parquet(&dir.path("people.parquet"), &people(2_000).project(&[0, 1, 2, 3, 4]).unwrap(), 500);
        for (to, more) in [("people.plinth", &[][..]), ("people.csv", &[]), ("people.ndjson", &[])] {
            let verb = if to.ends_with("plinth") { "import" } else { "export" };
            plinth(&dir, &[&[verb, "people.parquet", "--to", to, "-q"], more].concat()).ok();
        }
        for name in ["people.parquet", "people.plinth", "people.csv", "people.ndjson"] {
            let bytes = std::fs::read(dir.path(name)).unwrap();
            server.put(&format!("b/{name}"), &bytes);
            for part in 0..3 {
                let (_, extension) = name.split_once('.').unwrap();
                server.put(&format!("b/{extension}/part-{part}.{extension}"), &bytes);
            }
        }
        server.require("key-of-test");
        Self { dir, server }
    }

    /// Runs the program with credentials in its environment.
    pub(crate) fn run(&self, args: &[&str]) -> Run {
        let mut command = command(&self.dir, args);
        for (name, value) in [
            ("AWS_ACCESS_KEY_ID", "key-of-test"),
            ("AWS_SECRET_ACCESS_KEY", "hush-of-test"),
            ("AWS_REGION", "eu-test-1"),
            ("PLINTH_OBJECT_CACHE", "cache"),
        ] {
            command.env(name, value);
        }
        command.env("AWS_ENDPOINT_URL", self.server.endpoint()).output().unwrap().into()
    }

    pub(crate) fn sql(&self, statement: &str) -> Run {
        self.run(&["sql", "--format", "csv", "-c", statement])
    }
}

const QUESTIONS: [&str; 6] = [
    "SELECT count(*) AS n, sum(amount) AS s, min(day) AS d FROM {}",
    "SELECT city, count(*) AS n FROM {} WHERE id < 1700 GROUP BY city ORDER BY n DESC, city",
    "SELECT id, city, score FROM {} WHERE city = 'Oslo' AND score > 50 ORDER BY id LIMIT 9",
    "SELECT id FROM {} ORDER BY amount DESC, id LIMIT 5",
    "SELECT a.id FROM {} a JOIN {} b ON a.id = b.id + 1999",
    "SELECT * FROM {} WHERE id IN (3, 1999) ORDER BY id",
];

#[test]
fn each_format_answers_as_its_local_file_does() {
    let store = Store::new();
    for question in QUESTIONS {
        for format in ["plinth", "parquet", "csv", "ndjson"] {
            let local = store.sql(&question.replace("{}", &format!("'people.{format}'"))).ok().stdout;
            let far = store.sql(&question.replace("{}", &format!("'s3://b/people.{format}'"))).ok().stdout;
            assert_eq!(far, local, "{format}: {question}");
        }
    }
    // Several: by a folder, with and without its last letter, and by a pattern.
    for format in ["plinth", "parquet", "csv", "ndjson"] {
        for url in
            [format!("s3://b/{format}/"), format!("s3://b/{format}"), format!("s3://b/{format}/part-[01].{format}")]
        {
            let found = store.sql(&format!("SELECT count(*) AS n, count(DISTINCT id) AS d FROM '{url}'")).ok().stdout;
            let rows = if url.contains('[') { 4_000 } else { 6_000 };
            assert_eq!(found, format!("n,d\n{rows},2000\n"), "{url}");
        }
    }
    let read = store.sql("SELECT sum(id) AS s FROM read_csv('s3://b/csv/*.csv')").ok().stdout;
    assert_eq!(read, "s\n5997000\n");
    let read = store.sql("SELECT sum(id) AS s FROM read_json(['s3://b/people.ndjson'])").ok().stdout;
    assert_eq!(read, "s\n1999000\n");
}

#[test]
fn commands_take_urls() {
    let store = Store::new();
    for (from, to) in [
        ("people.parquet", "a.plinth"),
        ("people.csv", "b.plinth"),
        ("people.ndjson", "c.plinth"),
        ("parquet/", "d.plinth"),
    ] {
        store.run(&["import", &format!("s3://b/{from}"), "--to", to, "-q"]).ok();
        let count = store.sql(&format!("SELECT count(*) AS n FROM '{to}'")).ok().stdout;
        assert_eq!(count, if from.ends_with('/') { "n\n6000\n" } else { "n\n2000\n" }, "{from}");
    }
    store.run(&["export", "s3://b/plinth/", "--to", "e.csv", "-q"]).ok();
    assert_eq!(std::fs::read_to_string(store.dir.path("e.csv")).unwrap().lines().count(), 6_001);
    let inspected = store.run(&["inspect", "s3://b/people.plinth"]).ok().stdout;
    assert!(inspected.contains("2,000") && inspected.contains("city"), "{inspected}");
    let verified = store.run(&["verify", "s3://b/people.plinth", "s3://b/plinth/*.plinth"]).ok().stdout;
    assert_eq!(verified.lines().filter(|line| line.contains(": ok")).count(), 4, "{verified}");
    store.run(&["lookup", "s3://b/people.plinth", "city", "--equals", "Oslo", "--count"]).ok();

    // A flipped byte is found where it lies.
    let mut damaged = store.server.get("b/people.plinth").unwrap();
    let middle = damaged.len() / 3;
    damaged[middle] ^= 1;
    store.server.put("b/people.plinth", &damaged);
    let verified = store.run(&["verify", "s3://b/people.plinth"]);
    assert!(verified.code != Some(0) && verified.stderr.contains("s3://b/people.plinth"), "{}", verified.stderr);
}

#[test]
fn what_is_wrong_is_said_with_its_name() {
    let store = Store::new();
    for (statement, expected) in [
        ("FROM 's3://b/none.plinth'", "s3://b/none.plinth: cannot open: there is no such object"),
        ("FROM 's3://b/none.csv'", "s3://b/none.csv"),
        ("FROM 's3://b/none.parquet'", "none.parquet"),
        ("FROM 's3://b/none/'", "s3://b/none/: no object matches"),
        ("FROM 's3://b/*.plinth_'", "no object matches"),
        ("FROM 's3://b/people.*'", "a table is of one format"),
        ("FROM 's3://'", "names no bucket"),
        ("FROM 'ftp://b/x.csv'", "unknown scheme"),
        ("COPY (SELECT 1 AS a) TO 's3://b/people.plinth'", "s3://b/people.plinth: already exists"),
        ("COPY (SELECT 'x' AS id) TO 's3://b/plinth/' STORED AS PLINTH", "id"),
        ("SELECT * FROM 'https://127.0.0.1/x.csv?token=hush'", "query"),
    ] {
        let run = store.sql(statement);
        assert!(run.code == Some(1) && run.stderr.contains(expected), "{statement}: {}", run.stderr);
        assert!(!run.stderr.contains("hush"), "{}", run.stderr);
    }
    // Without credentials.
    let run: Run = command(&store.dir, &["sql", "-c", "FROM 's3://b/people.plinth'"])
        .env("AWS_ENDPOINT_URL", store.server.endpoint())
        .env("HOME", store.dir.path("home"))
        .output()
        .unwrap()
        .into();
    assert!(run.stderr.contains("s3://b/people.plinth") && run.stderr.contains("credentials"), "{}", run.stderr);
    // A store that is busy for a while, and one that breaks off.
    for fault in [Fault::Busy, Fault::Reset, Fault::Cut(100)] {
        (0..2).for_each(|_| store.server.fail("GET", fault));
        let found = store.sql("SELECT count(*) AS n, sum(score) AS s FROM 's3://b/people.plinth'").ok().stdout;
        assert!(found.starts_with("n,s\n2000,"), "{found}");
        store.server.heal();
    }
}

#[test]
fn copy_makes_objects_whole_or_not_at_all() {
    let store = Store::new();
    for format in ["plinth", "parquet", "csv", "ndjson"] {
        let stored = if format == "ndjson" { " STORED AS JSON" } else { "" };
        let to = format!("s3://b/made/new.{format}");
        store.sql(&format!("COPY (SELECT id, city FROM 'people.plinth') TO '{to}'{stored}")).ok();
        let count = store.sql(&format!("SELECT count(*) AS n, sum(id) AS s, count(city) AS c FROM '{to}'")).ok().stdout;
        assert_eq!(
            count,
            store.sql("SELECT count(*) AS n, sum(id) AS s, count(city) AS c FROM 'people.plinth'").ok().stdout
        );
    }
    // One that can't be sent leaves nothing, there and here.
    (0..1000).for_each(|_| store.server.fail("PUT", Fault::Forbidden));
    let run = store.sql("COPY (SELECT 1 AS a) TO 's3://b/made/never.plinth'");
    assert!(run.code == Some(1) && run.stderr.contains("s3://b/made/never.plinth: cannot write"), "{}", run.stderr);
    store.server.heal();
    assert!(store.server.get("b/made/never.plinth").is_none());
    assert_eq!(store.server.uploads(), 0);
    // A query that fails in its middle sends nothing.
    let run = store.sql("COPY (SELECT 1 / (id - 1500) AS x FROM 'people.plinth') TO 's3://b/made/never.plinth'");
    assert_ne!(run.code, Some(0));
    assert!(store.server.get("b/made/never.plinth").is_none());
    // The other commands write files of this machine.
    for args in
        [&["export", "people.plinth", "--to", "s3://b/x.csv"][..], &["sql", "-o", "s3://b/x.csv", "-c", "SELECT 1"]]
    {
        let run = store.run(args);
        assert!(run.code != Some(0) && run.stderr.contains("name a path of this machine"), "{args:?}: {}", run.stderr);
    }
}

#[test]
fn tables_that_can_be_written_to_are_of_this_machine() {
    let store = Store::new();
    let run = store.run(&["sql", "--db", "s3://b/db", "-c", "SELECT 1"]);
    assert!(run.code == Some(1) && run.stderr.contains("are folders of this machine"), "{}", run.stderr);
    plinth(&store.dir, &["sql", "--db", "db", "-c", "CREATE TABLE t (a INT PRIMARY KEY); INSERT INTO t VALUES (1)"])
        .ok();
    for entry in std::fs::read_dir(store.dir.path("db/t")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        store.server.put(&format!("b/t/{name}"), &std::fs::read(&path).unwrap());
    }
    // Of its segments alone the rows would be others.
    for url in ["s3://b/t/", "s3://b/t"] {
        let run = store.sql(&format!("FROM '{url}'"));
        assert!(run.code == Some(1) && run.stderr.contains("changed row by row"), "{}", run.stderr);
    }
}

#[test]
fn a_store_is_probed_within_what_was_said_before() {
    let store = Store::new();
    store.server.put("b/large/x.bin", &vec![7; 3 << 20]);
    store.server.put("b/empty/x", b"");
    store.server.latency(Duration::from_millis(20));
    store.server.asked();
    let out = ["--json", "p.json", "--csv", "p.csv", "--profile", "p.toml", "--size", "12MiB"];
    let run = store.run(&[&["probe", "s3://b/large/"][..], &out].concat()).ok();
    let first = run.stdout.lines().next().unwrap();
    assert_eq!(first, "s3://b/large/: asks for at most 49 requests and 9.04 MB");
    let asked = store.server.asked();
    let bytes: u64 = asked.iter().filter(|asked| asked.range.is_some()).map(|asked| asked.bytes).sum();
    assert_eq!((asked.len(), bytes), (49, 32 * 4_096 + 8 * (1 << 20) + 8 * 65_536));
    for part in ["first byte p50", "listing: 1 name in ", "a gap between ranges", "took 49 requests, 9.04 MB"] {
        assert!(run.stdout.contains(part), "{part} in {}", run.stdout);
    }
    let json: serde_json::Value = serde_json::from_slice(&std::fs::read(store.dir.path("p.json")).unwrap()).unwrap();
    let rows = json["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 3);
    assert!(rows.iter().all(|row| row["first_byte_p50"].as_u64().unwrap() >= 20_000_000), "{json}");
    assert!(json["gap_bytes"].as_u64().unwrap() >= 16_384 && json["requests"] == 49, "{json}");
    assert_eq!(std::fs::read_to_string(store.dir.path("p.csv")).unwrap().lines().count(), 4);
    let profile = std::fs::read_to_string(store.dir.path("p.toml")).unwrap();
    assert!(profile.contains("[store]\nurl = \"s3://b/large/\"\nfirst_byte = "), "{profile}");

    // One object, and what can't be probed.
    assert!(store.run(&["probe", "s3://b/large/x.bin", "--size", "1MiB"]).ok().stdout.contains("at most 41 requests"));
    for (args, expected) in [
        (&["probe", "s3://b/empty/"][..], "no object with bytes lies below it"),
        (&["probe", "s3://b/large/*.bin"], "no pattern"),
        (&["probe", "s3://b/large/", "--plot", "p.html"], "--plot is of devices"),
        (&["probe", "s3://b/large/", "--full"], "--full is of devices"),
    ] {
        let run = store.run(args);
        assert!(run.code == Some(1) && run.stderr.contains(expected), "{args:?}: {}", run.stderr);
    }
}

#[test]
fn profiles_count_what_goes_to_stores() {
    let store = Store::new();
    let question = "SELECT city, sum(score) AS s FROM 's3://b/people.plinth' GROUP BY city";
    store.server.asked();
    store.run(&["sql", "--profile=json", "--profile-to", "p.json", "-c", question]).ok();
    let asked = store.server.asked();
    let json: serde_json::Value = serde_json::from_slice(&std::fs::read(store.dir.path("p.json")).unwrap()).unwrap();
    let bytes: u64 = asked.iter().map(|asked| asked.bytes).sum();
    assert_eq!(json["stores"]["requests"], asked.len(), "{asked:?}");
    assert_eq!(json["stores"]["bytes"], bytes, "{asked:?}");
    let limits = json["roofline"]["limits"].as_array().unwrap();
    assert!(limits.iter().any(|limit| limit["moved"] == bytes), "{json}");
    let text = store.run(&["sql", "--profile", "-c", question]).ok().stderr;
    assert!(text.contains("object stores: "), "{text}");
    store.run(&["import", "s3://b/people.csv", "--to", "x.plinth", "-q", "--profile-to", "i.html"]).ok();
    let html = std::fs::read_to_string(store.dir.path("i.html")).unwrap();
    assert!(html.contains("object stores: "), "{html}");
    let local = plinth(&store.dir, &["sql", "--profile", "-c", "SELECT count(*) FROM 'people.plinth'"]).ok().stderr;
    assert!(!local.contains("object stores"), "{local}");
}

#[test]
fn keys_that_expire_are_read_again_in_the_middle_of_a_query() {
    let store = Store::new();
    let keys = |key: &str| {
        let text = format!("[default]\naws_access_key_id = {key}\naws_secret_access_key = hush-of-test\n");
        std::fs::write(store.dir.path("keys"), text).unwrap();
        store.server.require(key);
    };
    let ask = || {
        let mut command = command(
            &store.dir,
            &[
                "sql",
                "--format",
                "csv",
                "-c",
                "SELECT count(*) AS n, sum(id) AS s FROM 's3://b/plinth/' WHERE score < 1000",
            ],
        );
        for (name, value) in [
            ("AWS_SHARED_CREDENTIALS_FILE", "keys"),
            ("AWS_CONFIG_FILE", "none"),
            ("AWS_REGION", "eu-test-1"),
            ("PLINTH_OBJECT_CACHE", "off"),
        ] {
            command.env(name, value);
        }
        command.env("AWS_ENDPOINT_URL", store.server.endpoint());
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap()
    };
    keys("first-key");
    store.server.latency(Duration::from_millis(150));
    store.server.asked();
    let query = ask();
    while store.server.asked().is_empty() {
        std::thread::sleep(Duration::from_millis(2));
    }
    keys("second-key");
    let run: Run = query.wait_with_output().unwrap().into();
    assert_eq!(run.ok().stdout, "n,s\n6000,5997000\n");
    let asked = store.server.asked();
    assert!(asked.len() > 2 && asked.iter().any(|asked| asked.status < 300), "{asked:?}");
    // Keys that are not renewed are refused.
    store.server.require("third-key");
    let run: Run = ask().wait_with_output().unwrap().into();
    assert!(run.code == Some(1) && run.stderr.contains("refuses these credentials"), "{}", run.stderr);
    assert!(!run.stderr.contains("hush-of-test"), "{}", run.stderr);
}

#[test]
fn a_file_of_the_web_that_is_not_there_is_said_to_be_so() {
    let (dir, server) = (Dir::new(), Server::start().unwrap());
    for name in ["none.parquet", "none.plinth", "none.csv"] {
        let url = format!("{}/b/{name}", server.endpoint());
        let run = plinth(&dir, &["sql", "-c", &format!("FROM '{url}'")]);
        let expected = format!("{url}: cannot open: there is no such object");
        assert!(run.code == Some(1) && run.stderr.contains(&expected), "{}", run.stderr);
    }
}

#[test]
fn an_object_that_is_replaced_between_statements_is_read_anew() {
    let store = Store::new();
    let other = people(10);
    write_parquet(&store.dir.path("other.parquet"), &other, 500);
    plinth(&store.dir, &["import", "other.parquet", "--to", "other.plinth", "-q"]).ok();
    let count = "SELECT count(*) AS n FROM 's3://b/people.plinth'";
    assert_eq!(store.sql(&format!("{count}; {count}")).ok().stdout, "n\n2000\nn\n2000\n");
    let bytes = std::fs::read(store.dir.path("other.plinth")).unwrap();
    store.server.put("b/people.plinth", &bytes);
    // What was kept on the drive is of other bytes.
    assert_eq!(store.sql(count).ok().stdout, "n\n10\n");
}

#[test]
fn statements_after_the_second_come_from_the_drive() {
    let store = Store::new();
    let question = "SELECT city, sum(score) AS s FROM 's3://b/people.plinth' GROUP BY city ORDER BY city";
    let first = store.sql(question).ok().stdout;
    assert_eq!(store.sql(question).ok().stdout, first);
    store.server.asked();
    assert_eq!(store.sql(question).ok().stdout, first);
    let asked = store.server.asked();
    let gets = asked.iter().filter(|asked| asked.method == "GET").count();
    assert_eq!(gets, 0, "{asked:?}");
    assert_eq!(asked.len(), 1);
}

#[test]
fn secrets_are_kept_to_themselves() {
    let store = Store::new();
    let endpoint = store.server.endpoint();
    let create = format!(
        "CREATE SECRET mine (TYPE s3, KEY_ID 'key-of-test', SECRET 'hush-hush', REGION 'eu-test-1', ENDPOINT '{endpoint}', SCOPE 's3://b')"
    );
    let shell = |statements: &[&str]| -> Run {
        let all = statements.join(";\n");
        command(&store.dir, &["sql", "--format", "csv", "--profile=html", "--profile-to", "profile.html", "-c", &all])
            .env("PLINTH_OBJECT_CACHE", "off")
            .env("HOME", store.dir.path("home"))
            .env("RUST_LOG", "trace")
            .output()
            .unwrap()
            .into()
    };
    let run = shell(&[
        &create,
        "SELECT count(*) AS n FROM 's3://b/people.plinth'",
        "SHOW SECRETS",
        "EXPLAIN ANALYZE SELECT id FROM 's3://b/people.parquet'",
    ]);
    let all = format!("{}{}", run.stdout, run.stderr);
    assert!(!all.contains("hush-hush"), "{all}");
    assert_eq!(run.code, Some(0), "{all}");
    assert!(all.contains("2000") && all.contains("mine,s3,s3://b,"), "{all}");
    for statement in [
        format!("EXPLAIN {create}"),
        format!("PREPARE p AS {create}"),
        create.replace("REGION", "NOSUCH"),
        create.replace("SCOPE 's3://b'", "SCOPE 's3://b/deep'"),
        create.replace("SECRET 'hush-hush'", "SECRET 'hush-hush' 'more'"),
        create.replace("TYPE s3", "TYPE nosuch"),
        create.replace("SCOPE", "PROVIDER credential_chain, SCOPE"),
        "CREATE SECRET x (TYPE s3, PROVIDER config, REGION 'hush-hush')".to_owned(),
        create.replace("SCOPE", "USE_SSL true, SCOPE") + "; SELECT * FROM 's3://b/people.plinth'",
        create.replace("SCOPE", "PROFILE 'x', SCOPE") + "; SELECT * FROM 's3://b/people.plinth'",
        create.replace("CREATE SECRET", "CREATE PERSISTENT SECRET"),
        create.replace(')', ""),
        format!("{create}; {create}"),
        create.replace("KEY_ID 'key-of-test'", "KEY_ID 'wrong'") + "; SELECT * FROM 's3://b/people.plinth'",
    ] {
        let run = shell(&[&statement]);
        assert_ne!(run.code, Some(0), "{statement}");
        let all = format!("{}{}", run.stdout, run.stderr);
        assert!(!all.contains("hush-hush"), "{all}");
    }
    for name in store.dir.entries() {
        let path = store.dir.path(&name);
        if path.is_file() {
            let bytes = std::fs::read(&path).unwrap();
            assert!(!bytes.windows(9).any(|window| window == b"hush-hush"), "{name}");
        }
    }
    let run = shell(&[
        &create,
        "DROP SECRET mine",
        "DROP SECRET IF EXISTS mine",
        "SELECT count(*) FROM 's3://b/people.plinth'",
    ]);
    assert_ne!(run.code, Some(0));
}

#[test]
fn waits_for_a_slow_store_do_not_add_up() {
    let store = Store::new();
    store.server.latency(Duration::from_millis(50));
    store.sql("SELECT sum(score) AS s FROM 's3://b/people.plinth'").ok();
    let asked = store.server.asked();
    // One for its identity, one for its end, and few for its blocks.
    assert!(asked.len() <= 6, "{asked:?}");
}

#[test]
fn a_folder_of_a_store_is_a_table_that_grows_and_is_compacted() {
    let store = Store::new();
    let count = |from: &str| {
        let counted = store.sql(&format!("SELECT count(*) AS n, count(DISTINCT id) AS d FROM '{from}'")).ok().stdout;
        counted.lines().nth(1).unwrap().to_owned()
    };
    // A new one, one of files that were put there by others, and one of both.
    for (folder, before) in [("s3://b/table/", 0), ("s3://b/plinth", 6_000)] {
        store.run(&["import", "people.parquet", "--append", folder, "-q"]).ok();
        store.run(&["import", "people.parquet", "--append", folder, "--sort-by", "city", "-q"]).ok();
        let folder = format!("{}/", folder.trim_end_matches('/'));
        store.sql(&format!("COPY (SELECT * FROM 'people.plinth' WHERE id < 10) TO '{folder}' STORED AS PLINTH")).ok();
        let all = format!("{},2000", before + 4_010);
        assert_eq!(count(&folder), all);
        // In the order in which they came.
        let last = store.sql(&format!("SELECT id FROM '{folder}' OFFSET {}", before + 4_000)).ok().stdout;
        assert_eq!(last, "id\n0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n");
        let said = store.run(&["compact", &folder]).ok().stderr;
        assert!(said.contains(" files -> 1 "), "{said}");
        // Those that read on find what was replaced, and no others do.
        let inside = folder.trim_start_matches("s3://").to_owned();
        let there = store.server.names().into_iter().filter(|name| name.starts_with(&inside)).count();
        assert!(there > 4, "{there}");
        for from in [folder.clone(), format!("{folder}*.plinth"), folder.trim_end_matches('/').to_owned()] {
            assert_eq!(count(&from), all, "{from}");
        }
        let verified = store.run(&["verify", &folder]).ok().stdout;
        assert_eq!(verified.lines().filter(|line| line.contains(": ok")).count(), 1, "{verified}");
        store.run(&["export", &folder, "--to", "all.csv", "--replace", "-q"]).ok();
        assert_eq!(std::fs::read_to_string(store.dir.path("all.csv")).unwrap().lines().count(), before + 4_011);
        assert!(store.run(&["compact", &folder]).ok().stderr.contains("nothing to compact"));

        // Columns that do not fit leave nothing behind.
        let before = store.server.names();
        let refused = store.sql(&format!("COPY (SELECT 'x' AS id) TO '{folder}' STORED AS PLINTH"));
        assert!(refused.code == Some(1) && refused.stderr.contains("id"), "{}", refused.stderr);
        assert_eq!(store.server.names(), before);
    }
    store.run(&["import", "people.parquet", "--to", "s3://b/new.plinth", "-q"]).ok();
    let again = store.run(&["import", "people.parquet", "--to", "s3://b/new.plinth", "-q"]);
    assert!(again.code == Some(1) && again.stderr.contains("already exists"), "{}", again.stderr);
    store.run(&["import", "people.csv", "--to", "s3://b/new.plinth", "--replace", "-q"]).ok();
    assert_eq!(count("s3://b/new.plinth"), "2000,2000");

    for (args, expected) in [
        (["import", "people.csv", "--append", "s3://b/new.plinth"], "is the name of a file"),
        (["import", "people.csv", "--append", "s3://b/*/"], "a pattern names files"),
        (["import", "people.csv", "--to", "s3://b/"], "name a file in it (s3://b/name.plinth)"),
    ] {
        let refused = store.run(&args);
        assert!(refused.code == Some(1) && refused.stderr.contains(expected), "{args:?}: {}", refused.stderr);
    }

    // A manifest that is damaged is said to be.
    store.server.put("b/table/.plinth-manifest", b"plinth manifest 1\nfile\t1\t\tx.plinth\n");
    let damaged = store.sql("FROM 's3://b/table/'");
    assert!(damaged.code == Some(1) && damaged.stderr.contains("not the manifest of a table"), "{}", damaged.stderr);
}

#[test]
fn writers_of_one_table_lose_no_row_whatever_ends_them() {
    let store = Store::new();
    let run = |number: usize| {
        let mut command = command(
            &store.dir,
            &["sql", "-c", &format!("COPY (SELECT {number} AS n) TO 's3://b/many/' STORED AS PLINTH")],
        );
        for (name, value) in [
            ("AWS_ACCESS_KEY_ID", "key-of-test"),
            ("AWS_SECRET_ACCESS_KEY", "hush-of-test"),
            ("AWS_REGION", "eu-test-1"),
            ("PLINTH_OBJECT_CACHE", "off"),
        ] {
            command.env(name, value);
        }
        command.env("AWS_ENDPOINT_URL", store.server.endpoint()).spawn().unwrap()
    };
    let mut writers: Vec<_> = (0..12).map(run).collect();
    // Some are killed somewhere on their way.
    for (number, writer) in writers.iter_mut().enumerate().filter(|(number, _)| number % 4 == 3) {
        std::thread::sleep(Duration::from_millis(20 * number as u64));
        writer.kill().unwrap();
    }
    let ended: Vec<bool> = writers.iter_mut().map(|writer| writer.wait().unwrap().success()).collect();
    let rows = store.sql("SELECT n FROM 's3://b/many/' ORDER BY n").ok().stdout;
    let rows: Vec<usize> = rows.lines().skip(1).map(|row| row.parse().unwrap()).collect();
    assert!(rows.windows(2).all(|two| two[0] < two[1]), "{rows:?}");
    for (number, ended) in ended.into_iter().enumerate() {
        assert!(rows.contains(&number) || !ended, "{number} of {rows:?}");
        assert!(ended || number % 4 == 3, "{number} failed");
    }
}
