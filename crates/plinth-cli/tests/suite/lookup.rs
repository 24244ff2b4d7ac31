//! Values and rows by question.

use std::fmt::Write;

use crate::common::{Dir, plinth};

/// 3,000 rows of 70 words and as many days and numbers, some missing; the word and the day are indexed.
fn words() -> Dir {
    let dir = Dir::new();
    let mut text = "word,day,n\n".to_owned();
    for row in 0..3_000 {
        let n = row * 31 % 70;
        let word = if row % 13 == 0 { String::new() } else { format!("w{n:02}") };
        writeln!(text, "{word},2024-01-{:02},{row}", 1 + n % 28).unwrap();
    }
    std::fs::write(dir.path("words.csv"), text).unwrap();
    plinth(&dir, &["import", "words.csv", "--to", "words.plinth", "--index", "word,day", "-q"]).ok();
    dir
}

fn numbers(text: &str) -> Vec<usize> {
    text.lines().skip(1).map(|line| line.parse().unwrap()).collect()
}

#[test]
fn values_and_rows_are_found_whichever_way() {
    let dir = words();
    let holds = |row: &usize, n: usize| !row.is_multiple_of(13) && row * 31 % 70 == n;
    for access in ["auto", "scan", "postings"] {
        let ask = |args: &[&str]| {
            let all = [&["lookup", "words.plinth"], args, &["--access", access]].concat();
            plinth(&dir, &all).ok().stdout
        };
        let rows: Vec<usize> = (0..3_000).filter(|row| holds(row, 7)).collect();
        assert_eq!(numbers(&ask(&["word", "--equals", "w07", "--rows"])), rows);
        assert_eq!(ask(&["word", "--equals", "w07"]), format!("values,rows\n1,{}\n", rows.len()));
        assert_eq!(
            ask(&["word", "--equals", "w07", "--count", "--format", "json"]),
            format!("{{\"values\":1,\"rows\":{}}}\n", rows.len())
        );
        assert_eq!(ask(&["word", "--equals", "nowhere", "--rows"]), "row\n");
        assert_eq!(ask(&["word", "--equals", "nowhere", "--values"]), "word\n");
        assert_eq!(ask(&["word", "--prefix", "w6", "--values"]).lines().skip(1).count(), 10);
        let rows: Vec<usize> = (0..3_000).filter(|row| (60..70).any(|n| holds(row, n))).collect();
        assert_eq!(numbers(&ask(&["word", "--prefix", "w6", "--rows"])), rows);
        let both = ask(&["word", "--matches", "[13]$", "--rows", "--values"]);
        let expected: Vec<String> = (0..3_000)
            .filter(|row| row % 13 > 0 && [1, 3].contains(&(row * 31 % 70 % 10)))
            .map(|row| format!("{row},w{:02}", row * 31 % 70))
            .collect();
        assert_eq!(both.lines().skip(1).collect::<Vec<_>>(), expected);
        let rows: Vec<usize> = (0..3_000).filter(|row| row * 31 % 70 % 28 == 4).collect();
        assert_eq!(numbers(&ask(&["day", "--equals", "2024-01-05", "--rows"])), rows);
    }
    plinth(&dir, &["lookup", "words.plinth", "word", "--prefix", "", "--rows", "-o", "rows.json"]).ok();
    assert!(std::fs::read_to_string(dir.path("rows.json")).unwrap().starts_with("{\"row\":1}\n{\"row\":2}\n"));
    let table = plinth(&dir, &["lookup", "words.plinth", "word", "--equals", "w07", "--format", "table"]).ok().stdout;
    assert!(table.contains("values") && table.contains("rows"), "{table}");
}

#[test]
fn an_index_is_seen_and_checked() {
    let dir = words();
    let text = plinth(&dir, &["inspect", "words.plinth"]).ok().stdout;
    assert!(text.contains("indexes"), "{text}");
    let json: serde_json::Value =
        serde_json::from_str(&plinth(&dir, &["inspect", "words.plinth", "--json"]).ok().stdout).unwrap();
    let bytes: Vec<u64> = (0..3).map(|i| json["columns"][i]["index_bytes"].as_u64().unwrap()).collect();
    assert!(bytes[0] > 0 && bytes[1] > 0 && bytes[2] == 0, "{bytes:?}");
    plinth(&dir, &["verify", "words.plinth"]).ok();
    // Also where a file is added to a table.
    plinth(&dir, &["import", "words.csv", "--append", "table", "--index", "word", "-q"]).ok();
    let file = format!(
        "table/{}",
        std::fs::read_dir(dir.path("table"))
            .unwrap()
            .filter_map(|e| e.unwrap().file_name().into_string().ok())
            .find(|n| n.ends_with(".plinth"))
            .unwrap()
    );
    let run = plinth(&dir, &["lookup", &file, "word", "--equals", "w07", "--access", "postings"]).ok();
    assert!(run.stdout.starts_with("values,rows\n1,"), "{}", run.stdout);
}

#[test]
fn what_can_not_be_looked_up_is_said() {
    let dir = words();
    let ask = |args: &[&str]| plinth(&dir, &[&["lookup"], args].concat());
    ask(&["words.plinth", "wort", "--equals", "x"]).fails(1, "plinth: words.plinth: no column \"wort\"");
    ask(&["words.plinth", "day", "--equals", "soon"]).fails(1, "plinth: column day: \"soon\" is no Date32");
    ask(&["words.plinth", "day", "--prefix", "2"]).fails(1, "plinth: column day: a ");
    ask(&["words.plinth", "word", "--matches", "["]).fails(1, "plinth: --matches \"[\": ");
    ask(&["words.plinth", "n", "--equals", "1"]).fails(1, "plinth: words.plinth: column n has no dictionary");
    ask(&[".", "n", "--equals", "1"]).fails(1, "plinth: .: a folder; ");
    assert_eq!(ask(&["words.plinth", "word"]).code, Some(2));
    assert_eq!(ask(&["words.plinth", "word", "--equals", "a", "--prefix", "b"]).code, Some(2));
    let run = plinth(&dir, &["import", "words.csv", "--to", "w.plinth", "--index", "no", "-q"]);
    run.fails(1, "plinth: column \"no\" can't be indexed: there is no such column");
    plinth(&dir, &["import", "words.csv", "--to", "plain.plinth", "-q"]).ok();
    ask(&["plain.plinth", "word", "--equals", "w07", "--rows", "--access", "postings"])
        .fails(1, "plinth: plain.plinth: column word has no postings; import it again with an index");
    assert!(!dir.entries().contains(&"w.plinth".to_owned()));
}

#[test]
fn queries_take_the_same_ways_and_plans_say_which() {
    let dir = words();
    let rows = (0..3_000).filter(|row: &usize| !row.is_multiple_of(13) && row * 31 % 70 == 7).count();
    for (access, told) in [
        ("auto", None),
        ("scan", Some("access=scan".to_owned())),
        ("postings", Some(format!("access=postings(word, {rows} rows)"))),
    ] {
        let ask = |sql: &str| {
            let run = plinth(&dir, &["sql", "--access", access, "--format", "csv", "-c", sql]).ok();
            run.stdout.lines().skip(1).map(str::to_owned).collect::<Vec<_>>().join("\n")
        };
        for (sql, count) in [("word = 'w07'", rows), ("word in ('w07', 'none')", rows), ("word = 'none'", 0)] {
            assert_eq!(
                ask(&format!("select count(*) from 'words.plinth' where {sql}")),
                count.to_string(),
                "{access}: {sql}"
            );
        }
        let plan = ask("explain select * from 'words.plinth' where word = 'w07'");
        assert!(plan.contains("access=") && told.is_none_or(|told| plan.contains(&told)), "{access}: {plan}");
        assert!(!ask("explain select * from 'words.plinth'").contains("access="));
        let analyzed = ask("explain analyze select * from 'words.plinth' where word = 'w07'");
        assert_eq!(
            analyzed.contains(&format!("rows_from_postings={rows}")),
            access == "postings" || plan.contains("postings(")
        );
    }
}
