//! What profiles of statements and imports say.

use serde_json::Value;

use crate::common::{Dir, big_parquet, people, plinth, write_parquet};

/// A join, groups and an order over a filter.
const QUERY: &str = "SELECT p.city, count(*) AS n, sum(q.score) AS s FROM 'people.plinth' p JOIN 'people.plinth' q ON p.id = q.id \
                     WHERE p.city LIKE 'Ber%' AND q.amount > 10 GROUP BY p.city ORDER BY n DESC, p.city";

fn tables() -> Dir {
    let dir = Dir::new();
    write_parquet(&dir.path("people.parquet"), &people(20_000), 5_000);
    plinth(&dir, &["import", "people.parquet", "--to", "people.plinth", "-q"]).ok();
    dir
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no count"))
}

/// The object that a run printed last, of which all holds that must hold of every profile.
fn profile(stderr: &str) -> Value {
    let json: Value = serde_json::from_str(stderr.lines().last().unwrap_or_default()).unwrap();
    let rows = json["rows"].as_array().unwrap();
    let (mut time, mut cpu, mut shares) = (0, 0, 0.0);
    for (at, row) in rows.iter().enumerate() {
        let below = rows.iter().filter(|below| below["parent"].as_u64() == Some(at as u64));
        let below: u64 = below.map(|below| number(&below["total"])).sum();
        assert_eq!(number(&row["total"]), number(&row["time"]) + below, "{row}");
        time += number(&row["time"]);
        cpu += number(&row["cpu"]);
        let share = row["share"].as_f64().unwrap();
        assert!((0.0..=1.0).contains(&share), "{row}");
        shares += share;
    }
    let other = number(&json["other"]);
    shares += other as f64 / (time + other) as f64;
    assert!((shares - 1.0).abs() < 1e-6, "{shares}");
    assert_eq!(number(&json["named"]), cpu);
    assert_eq!(number(&json["cpu"]), cpu + other, "every moment of the processor is counted once");
    assert!(json["roofline"]["verdict"].as_str().is_some_and(|verdict| !verdict.contains('\n')), "{json}");
    json
}

/// Rows whose names begin like this.
fn named<'a>(profile: &'a Value, start: &str) -> Vec<&'a Value> {
    let rows = profile["rows"].as_array().unwrap().iter();
    rows.filter(|row| row["name"].as_str().unwrap().starts_with(start)).collect()
}

fn sum(rows: &[&Value], of: &str) -> u64 {
    rows.iter().map(|row| number(&row[of])).sum()
}

#[test]
fn a_statement_says_where_its_time_and_bytes_went() {
    let dir = tables();
    let plain = plinth(&dir, &["sql", "-c", QUERY]).ok().stdout;
    let run = plinth(&dir, &["sql", "--profile=json", "-c", QUERY]).ok();
    assert_eq!(run.stdout, plain, "the answer is the same");
    let profile = profile(&run.stderr);
    assert_eq!(profile["title"].as_str().unwrap().get(..13), Some("SELECT p.city"));
    for operator in ["JoinExec", "GroupExec: keys=", "SortExec", "DataSourceExec"] {
        let rows = named(&profile, operator);
        assert!(!rows.is_empty() && sum(&rows, "hits") > 0, "no {operator}: {profile}");
    }
    // The tree is the plan's, whichever threads ran what.
    let rows = profile["rows"].as_array().unwrap();
    let top = rows.iter().filter(|row| row["parent"].is_null() && row["stage"] == "operator");
    assert_eq!(top.count(), 1, "{profile}");
    for row in rows.iter().filter(|row| row["stage"] == "scan") {
        let above = &rows[usize::try_from(number(&row["parent"])).unwrap()];
        assert!(above["name"].as_str().unwrap().starts_with("DataSourceExec"), "{above}");
    }
    assert!(sum(&named(&profile, "filter city"), "rows") > 10_000, "{profile}");
    let decoded = named(&profile, "decode ");
    assert!(sum(&decoded, "rows") > 20_000 && sum(&decoded, "bytes") > 0, "{profile}");
    let (cached, read) = (sum(&named(&profile, "page cache"), "bytes"), sum(&named(&profile, "submit"), "bytes"));
    assert!(cached + read > 0 && sum(&named(&profile, "checksum"), "bytes") <= cached + read, "{profile}");
    assert_eq!(sum(&named(&profile, "plan"), "time").min(1), 1);
}

#[test]
fn the_answers_of_profiled_plans_are_the_same() {
    let dir = tables();
    for query in [
        "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 50) SELECT sum(n) FROM t",
        "SELECT id FROM 'people.plinth' ORDER BY score DESC, id LIMIT 7",
        "SELECT city, row_number() OVER (PARTITION BY city ORDER BY id) AS r FROM 'people.parquet' WHERE id < 40 ORDER BY 1, 2",
        "SELECT count(*) FROM 'people.plinth' a, 'people.plinth' b WHERE a.id < 20 AND b.id < 30 AND a.id < b.id",
        "SELECT city, count(DISTINCT day) FROM 'people.parquet' GROUP BY city UNION ALL SELECT 'all', count(*) FROM 'people.plinth' ORDER BY 1, 2",
        "SELECT max(id) FROM 'people.plinth' WHERE score = (SELECT max(score) FROM 'people.parquet')",
        "SELECT unnest(tags) AS tag, count(*) FROM 'people.plinth' GROUP BY tag ORDER BY tag",
    ] {
        let plain = plinth(&dir, &["sql", "-c", query]).ok().stdout;
        let run = plinth(&dir, &["sql", "--profile=json", "-c", query]).ok();
        assert_eq!(run.stdout, plain, "{query}");
        profile(&run.stderr);
    }
    let explained = |profile: &[&str]| {
        let explain = format!("EXPLAIN FORMAT INDENT {QUERY}");
        plinth(&dir, &[&["sql"], profile, &["-c", &explain]].concat()).ok().stdout
    };
    assert_eq!(explained(&[]), explained(&["--profile"]), "wrappers are not seen");
}

#[test]
fn nearly_all_processor_time_stands_in_stages() {
    let dir = Dir::new();
    big_parquet(&dir.path("big.parquet"), 300_000);
    let import = plinth(&dir, &["import", "big.parquet", "--to", "big.plinth", "--profile=json"]).ok();
    let import = profile(&import.stderr);
    let query = "SELECT t, count(*), max(n) FROM 'big.plinth' WHERE n % 3 > 0 GROUP BY t ORDER BY 2 DESC, 3 LIMIT 5";
    let query = profile(&plinth(&dir, &["sql", "--profile=json", "-c", query]).ok().stderr);
    for profile in [&import, &query] {
        let coverage = number(&profile["named"]) as f64 / number(&profile["cpu"]) as f64;
        // How much more is for benchmarks to say: what it takes to start a process is not named.
        assert!(coverage >= 0.5, "{coverage}: {profile}");
    }
    assert!(sum(&named(&import, "read"), "bytes") > 0 && sum(&named(&import, "read"), "rows") == 300_000, "{import}");
    for stage in ["build parquet", "encode ", "write", "sync"] {
        assert!(sum(&named(&import, stage), "hits") > 0, "no {stage}: {import}");
    }
    assert!(sum(&named(&import, "write"), "bytes") >= std::fs::metadata(dir.path("big.plinth")).unwrap().len());
}

#[test]
fn every_form_shows_the_same_profile() {
    let dir = tables();
    let text = plinth(&dir, &["sql", "--profile", "-c", QUERY]).ok().stderr;
    for word in ["stage", "with below", "JoinExec", "decode ", "limit", "ceiling", "measured now", "processor"] {
        assert!(text.contains(word), "no {word:?} in {text}");
    }
    let verdict = text.lines().last().unwrap();
    assert!(["-bound: ", "not busy: ", "crowded: "].iter().any(|word| verdict.contains(word)), "{verdict}");

    for (format, to) in [("--profile=html", "p.html"), ("--profile=trace", "t.json"), ("--profile=json", "p.json")] {
        let run = plinth(&dir, &["sql", format, "--profile-to", to, "-c", QUERY]).ok();
        assert_eq!(run.stderr, "", "the file has it");
    }
    let read = |name: &str| std::fs::read_to_string(dir.path(name)).unwrap();
    let page = read("p.html");
    assert!(page.contains("</html>") && page.contains("JoinExec") && !page.contains("http://"), "{page}");
    let trace: Value = serde_json::from_str(&read("t.json")).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let scopes: Vec<_> = events.iter().filter(|event| event["ph"] == "X").collect();
    assert!(scopes.iter().any(|event| event["name"].as_str().unwrap().starts_with("decode ")), "{trace}");
    profile(&read("p.json"));
    // The name says the format.
    plinth(&dir, &["sql", "--profile-to", "named.json", "-c", "SELECT 1"]).ok();
    profile(&read("named.json"));
    // Unless it is said.
    plinth(&dir, &["sql", "--profile=text", "--profile-to", "said.json", "-c", "SELECT 1"]).ok();
    assert!(read("said.json").contains("with below"), "{}", read("said.json"));
}

#[cfg(target_os = "linux")]
#[test]
fn what_a_probe_found_is_what_profiles_compare_with() {
    let dir = tables();
    plinth(&dir, &["probe", ".", "--seconds", "1", "--size", "16MiB", "-q"]).ok();
    let asked = ["sql", "--profile=json", "--device", "plinth-device.toml", "-c", QUERY];
    let profile = profile(&plinth(&dir, &asked).ok().stderr);
    let note = profile["roofline"]["note"].as_str().unwrap();
    assert!(note.starts_with("plinth probe of "), "{note}");
    let limits = profile["roofline"]["limits"].as_array().unwrap();
    let checksum = limits.iter().find(|limit| limit["resource"] == "checksum").unwrap();
    assert_eq!(checksum["origin"], "probe");
    assert!(number(&checksum["moved"]) > 0 && checksum["reached"].as_f64().unwrap() > 0.0, "{checksum}");
}

#[test]
fn sql_shows_the_last_statements_profile() {
    let dir = tables();
    let run = plinth(&dir, &["sql", "-c", "SELECT * FROM plinth_profile()"]);
    run.fails(1, "plinth: plinth_profile(): no statement was profiled yet; SET plinth.profile = true");
    let shown = "SELECT stage, sum(hits) > 0 AS hit, sum(rows) AS n FROM plinth_profile() WHERE stage IN ('filter', 'other') \
                 GROUP BY stage ORDER BY stage";
    let statements = format!("SET plinth.profile = true; {QUERY}; SET plinth.profile = false; {shown}; {shown}");
    let out = plinth(&dir, &["sql", "-c", &statements]).ok().stdout;
    let shown: Vec<&str> = out.split("stage,hit,n\n").skip(1).collect();
    assert_eq!(shown.len(), 2);
    assert_eq!(shown[0], shown[1], "to look is not to run");
    assert!(shown[0].starts_with("filter,true,") && shown[0].contains("other,false,0"), "{}", shown[0]);
}

#[test]
fn explain_analyze_has_the_figures() {
    let dir = tables();
    let analyzed = plinth(&dir, &["sql", "-c", &format!("EXPLAIN ANALYZE {QUERY}")]).ok().stdout;
    for figure in ["profile_self=", "profile_decode_", "profile_filter=", "profile_checksum="] {
        assert!(analyzed.contains(figure), "no {figure} in {analyzed}");
    }
    let scans = analyzed.lines().filter(|line| line.contains("DataSourceExec"));
    assert!(scans.clone().count() == 2 && scans.clone().all(|line| line.contains("profile_scan=")), "{analyzed}");
    let joins = analyzed.lines().filter(|line| line.contains("JoinExec"));
    assert!(joins.clone().all(|line| !line.contains("profile_scan=")), "{analyzed}");
}
