//! The shell, on a pseudo-terminal that Python provides.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::common::{Dir, big_parquet, people, plinth, write_parquet};

/// What a user does, and sees.
struct Play {
    command: Vec<String>,
    columns: u16,
    rows: u16,
    environment: serde_json::Map<String, serde_json::Value>,
    steps: Vec<[String; 2]>,
    /// The program may exit with an error.
    may_fail: bool,
    /// What reached the terminal is kept.
    raw: bool,
}

/// The file that gets what reached the terminal, byte by byte.
const RAW: &str = "screen.raw";

const PROMPT: &str = "plinth> ";

impl Play {
    fn new(args: &[&str]) -> Self {
        let program = [env!("CARGO_BIN_EXE_plinth"), "sql"];
        let command = program.iter().chain(args).map(|arg| (*arg).to_owned()).collect();
        Self::of(command).expect(PROMPT)
    }

    /// A command that no user answers.
    fn of(command: Vec<String>) -> Self {
        let environment = serde_json::Map::new();
        let play = Self { command, columns: 80, rows: 24, environment, steps: Vec::new(), may_fail: false, raw: false };
        play.with("NO_COLOR", "1")
    }

    fn with(mut self, name: &str, value: &str) -> Self {
        self.environment.insert(name.to_owned(), value.into());
        self
    }

    fn screen(mut self, columns: u16, rows: u16) -> Self {
        (self.columns, self.rows) = (columns, rows);
        self
    }

    fn expect(mut self, text: &str) -> Self {
        self.steps.push(["expect".to_owned(), text.to_owned()]);
        self
    }

    fn send(mut self, keys: &str) -> Self {
        self.steps.push(["send".to_owned(), keys.to_owned()]);
        self
    }

    /// Types a line, and waits for what it answers and for the prompt. The answer must differ from what is typed, which
    /// is on the screen too, behind a prompt that is drawn anew with every key.
    fn ask(self, line: &str, answer: &str) -> Self {
        self.send(line).send("\r").expect(answer).expect(PROMPT)
    }

    /// Types a line that has no answer, and waits: what is typed while the terminal changes hands is lost.
    fn tell(self, line: &str) -> Self {
        self.send(line).send("\r").pause()
    }

    /// Gives a prompt the time to be drawn. Between two prompts Ctrl-C means nothing.
    fn pause(mut self) -> Self {
        self.steps.push(["pause".to_owned(), "0.5".to_owned()]);
        self
    }

    /// Plays it. None where there is no Python, which is told.
    fn run(self, dir: &Dir, leave: &str) -> Option<String> {
        if !Command::new("python3").arg("--version").output().is_ok_and(|output| output.status.success()) {
            let _ = writeln!(std::io::stderr(), "SKIPPED: a test of the shell: python3 can't be run here");
            return None;
        }
        let play = self.send(leave);
        let script = serde_json::json!({
            "command": play.command,
            "columns": play.columns,
            "rows": play.rows,
            "environment": play.environment,
            "steps": play.steps,
            "raw": play.raw.then(|| dir.path(RAW)),
        });
        let mut python = Command::new("python3");
        python.args(["-c", include_str!("pty.py")]).current_dir(dir.path(""));
        let mut child = python.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(script.to_string().as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let (screen, said) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success() || play.may_fail, "{}: {said}\n{screen}", output.status);
        Some(screen)
    }
}

const CTRL_C: &str = "\x03";
const CTRL_D: &str = "\x04";

#[test]
fn statements_are_answered_and_remembered() {
    let dir = Dir::new();
    let play = Play::new(&[])
        // Several lines, a quote that goes over a line, and two statements at once.
        .send("SELECT 'a;\rb' AS text,\r  7 AS n;\r")
        .expect("a;\\nb │ 7")
        .expect("1 row in ")
        .expect(PROMPT)
        .send("SELECT 1 AS one; SELECT 2 AS two;\r")
        .expect("1 row in ")
        .expect("1 row in ")
        .expect(PROMPT)
        .tell("CREATE TABLE kept AS VALUES (1), (2);")
        .ask("SELECT count(*) AS kept FROM kept;", "   2")
        .ask("SELEC 1;", "^")
        .ask("SELECT nothing;", "error: ")
        .ask("\\tables", "error: no command \\tables; is .tables meant?");
    let Some(screen) = play.run(&dir, CTRL_D) else { return };
    assert!(screen.contains("  SELEC 1;\n  ^"), "{screen}");
    let history = std::fs::read_to_string(dir.path(".local/state/plinth/history")).unwrap();
    assert!(history.contains("SELECT 'a;\\nb' AS text,\\n  7 AS n;\n"), "{history}");

    // The next shell knows; a history that can't be written is no reason to stop.
    Play::new(&[]).send("\x1b[A").expect("\\tables").run(&dir, "\x15\x04").unwrap();
    let elsewhere = dir.path("kept.csv").join("history");
    std::fs::write(dir.path("kept.csv"), "").unwrap();
    let play = Play::new(&[]).with("PLINTH_HISTORY", elsewhere.to_str().unwrap());
    play.ask("SELECT 5 AS five;", "the history is not kept: ").run(&dir, "\\q\r").unwrap();
}

#[test]
fn secrets_are_in_no_history() {
    let dir = Dir::new();
    let secret = |name: &str| format!("CREATE SECRET {name} (TYPE s3, KEY_ID 'k', SECRET 'hush-hush', REGION 'x')");
    let play = Play::new(&[])
        .ask("SELECT 'before' AS x;", "before")
        .tell(&format!("{};", secret("one")))
        // Over several lines, beside another statement, with an error, misspelt, and given up.
        .tell(&secret("two").replace(", ", ",\r  "))
        .tell(";")
        .ask(&format!("SELECT 40 + 2 AS n; {};", secret("three")), "42")
        .ask(&format!("{};", secret("one")), "error")
        .ask(&format!("{};", secret("four").replace("TYPE s3", "TYPE nosuch")), "error")
        .ask(&format!("{};", secret("five").replace("CREATE SECRET", "CREAT SECRET")), "error")
        .ask(&format!("EXPLAIN {};", secret("six")), "error")
        .ask(&format!("PREPARE p AS {};", secret("seven")), "error")
        .send(&secret("eight"))
        .send(CTRL_C)
        .expect(PROMPT)
        .send(&secret("nine"))
        .send("\r")
        .pause()
        .send(CTRL_C)
        .expect(PROMPT)
        .ask("SHOW SECRETS;", "two")
        .ask("SELECT 'after' AS x;", "after");
    let Some(_) = play.run(&dir, CTRL_D) else { return };
    let history = std::fs::read_to_string(dir.path(".local/state/plinth/history")).unwrap();
    assert!(history.contains("before") && history.contains("after") && !history.contains("hush"), "{history}");
    // What the arrows bring back, and files of any name.
    let screen = Play::new(&[]).send("\x1b[A\x1b[A\x1b[A").pause().run(&dir, "\x15\x04").unwrap();
    assert!(!screen.contains("hush"), "{screen}");
    let mut folders = vec![dir.path("")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let bytes = std::fs::read(&path).unwrap();
                assert!(!bytes.windows(4).any(|window| window == b"hush"), "{}", path.display());
            }
        }
    }
}

#[test]
fn what_is_typed_or_pasted_while_a_statement_runs_is_run_in_its_turn() {
    let dir = Dir::new();
    let pasted: String = (1..=20).map(|n| format!("SELECT {n} + 4000 AS\r  answer;\r")).collect();
    // It takes seconds, and gives a row at last.
    let slow = "SELECT count(*) AS slow FROM range(0, 3000) a JOIN range(0, 3000) b ON a.value + b.value < 9;";
    let play = Play::new(&[]).with("PLINTH_HISTORY", "").send(slow).send("\r").send(&pasted);
    let play = play.expect("  45").expect("  4020").expect("1 row in ").expect(PROMPT);
    // At a prompt too, where it all comes at once.
    let again: String = (1..=20).map(|n| format!("SELECT {n} + 7000 AS answer;\r")).collect();
    let play = play.send(&again).expect("  7020").expect(PROMPT);
    let Some(screen) = play.run(&dir, CTRL_D) else { return };
    let answers: Vec<u32> = screen.lines().filter_map(|line| line.trim().parse().ok()).filter(|n| *n > 4_000).collect();
    assert_eq!(answers, (4_001..=4_020).chain(7_001..=7_020).collect::<Vec<_>>(), "{screen}");
}

#[test]
fn ctrl_c_drops_what_was_typed_behind_the_statement() {
    let dir = Dir::new();
    let endless = "SELECT count(*) FROM range(0, 10000000) a CROSS JOIN range(0, 10000000) b;";
    // Both come in one piece, so that the editor holds the second when the first runs.
    let play = Play::new(&[]).with("PLINTH_HISTORY", "").send(&format!("{endless}\rSELECT 4000 + 1 AS late;\r"));
    let play = play.expect("Ctrl-C cancels").send(CTRL_C).expect("error: cancelled").expect(PROMPT);
    let play = play.ask("SELECT 4000 + 2 AS next;", "4002");
    let Some(screen) = play.run(&dir, CTRL_D) else { return };
    assert!(!screen.contains("4001"), "{screen}");
}

#[test]
fn statements_go_on_and_words_leave() {
    let dir = Dir::new();
    let play = Play::new(&["--db", "new"]).with("PLINTH_HISTORY", "");
    let play = play
        .send("SELECT 20 +\r")
        .expect("     -> ")
        .send("20022 AS n;\r")
        .expect("20042\n")
        .expect(PROMPT)
        .tell("CREATE TABLE k (id BIGINT PRIMARY KEY, v TEXT, n INT);")
        .tell("CREATE INDEX by_n ON k (n);")
        .ask("INSERT INTO k VALUES (1, 'a', 2), (2, 'b', 3);", "2 rows written")
        .ask("DELETE FROM k WHERE id = 2;", "1 row removed")
        .ask(".tables", "plinth │")
        .ask("\\dt", "plinth │")
        .ask("\\d k", "index by_n (n)")
        .ask(".schema k", "PRIMARY KEY (id)")
        .ask("\\l", "new")
        .ask("\\df haver", "haversine")
        .ask(".mode json", "")
        .ask("SELECT 4 AS four;", "{\"four\":4}")
        .ask(".timer off", "timing off")
        .ask("help", ".quit")
        .ask(".nothing", "error: no command .nothing: .help lists them")
        .ask("SELECT nothin;", "^");
    // An idle shell holds no lock.
    let other =
        format!("{} --db new -c \"INSERT INTO k VALUES (9, 'x', 1)\"; echo status $?", env!("CARGO_BIN_EXE_plinth"));
    std::fs::write(dir.path("other.sh"), other).unwrap();
    let play = play.send("SELECT count(*) AS rows_now FROM k;\r").expect("{\"rows_now\":1}").expect(PROMPT);
    let mut play = play;
    play.steps.push(["run".to_owned(), "sh other.sh".to_owned()]);
    let play = play.expect("status 0").ask("SELECT count(*) AS rows_now FROM k;", "{\"rows_now\":2}");
    let Some(screen) = play.run(&dir, "exit\r") else { return };
    assert!(screen.contains("k: ") || screen.contains("1 row"), "{screen}");
}

#[test]
fn ctrl_c_ends_the_query_and_keeps_the_shell() {
    let dir = Dir::new();
    big_parquet(&dir.path("big.parquet"), 3_000_000);
    let before = dir.entries();
    let endless = [
        "SELECT count(*) FROM range(0, 10000000) a CROSS JOIN range(0, 10000000) b;",
        "SELECT sum(a.value * b.value) FROM range(0, 10000000) a JOIN range(0, 10000000) b ON a.value + b.value < 9;",
        "SELECT max(x) FROM (SELECT a.value + b.value AS x FROM range(0, 10000000) a CROSS JOIN range(0, 10000000) b);",
    ];
    let mut play = Play::new(&[]).with("PLINTH_HISTORY", "");
    for query in endless {
        // The bar tells that it runs.
        play =
            play.send(query).send("\r").expect("Ctrl-C cancels").send(CTRL_C).expect("error: cancelled").expect(PROMPT);
        play = play.ask("SELECT 40 + 2 AS answer;", "    42");
    }
    // Twice at a prompt: how to leave.
    let play = play.pause().send(CTRL_C).pause().send(CTRL_C).expect("Ctrl-D or \\q leaves").expect(PROMPT);
    if play.run(&dir, CTRL_D).is_none() {
        return;
    }
    assert_eq!(dir.entries(), before);

    // What writes leaves nothing, and what another statement wrote stays.
    let play = Play::new(&["--db", "."]).with("PLINTH_HISTORY", "");
    let slow = "(SELECT a.* FROM 'big.parquet' a CROSS JOIN range(0, 1000) b)";
    let play = play
        .tell("\\o kept.csv")
        .ask("SELECT 1 AS one;", "1 row in ")
        .send(&format!("COPY {slow} TO 'gone.plinth';\r"))
        .expect("Ctrl-C cancels")
        .send(CTRL_C)
        .expect("error: cancelled")
        .expect(PROMPT)
        .send(&format!("CREATE TABLE gone AS SELECT * FROM {slow};\r"))
        .expect("Ctrl-C cancels")
        .send(CTRL_C)
        .expect("error: cancelled")
        .expect(PROMPT)
        .pause()
        .tell("\\o");
    play.run(&dir, CTRL_D).unwrap();
    assert_eq!(dir.entries(), ["big.parquet", "kept.csv"]);
}

#[test]
fn tables_fit_the_screen() {
    let dir = Dir::new();
    write_parquet(&dir.path("people.parquet"), &people(1_000), 300);
    plinth(&dir, &["import", "people.parquet", "--to", "people.plinth", "-q"]).ok();
    for columns in [20, 40, 80] {
        let play = Play::new(&["--db", "."]).screen(columns, 24).with("PLINTH_HISTORY", "");
        let play = play.with("PLINTH_PAGER", "").send("SELECT * FROM people;\r").expect("left out").expect(PROMPT);
        let Some(screen) = play.run(&dir, CTRL_D) else { return };
        let table: Vec<_> = screen.lines().filter(|line| line.contains(['│', '┼', '⋮', '…'])).collect();
        assert!(table.len() > 40, "{screen}");
        assert!(table.iter().all(|line| line.chars().count() <= usize::from(columns)), "{screen}");
    }
    // One value a line; the pager for what is tall.
    let play = Play::new(&["--db", "."]).with("PLINTH_HISTORY", "").with("PLINTH_PAGER", "sed s/^/paged:/");
    let play = play
        .ask("SELECT * FROM people LIMIT 100;", "paged:")
        .ask("SELECT id FROM people LIMIT 2;", "2 rows in ")
        .ask("\\x", "\none value a line on\n")
        .ask("SELECT id, city FROM people WHERE id = 3;", "city │ NULL")
        .ask("\\x off", "\none value a line off\n")
        .ask("\\pager off", "\npager off\n")
        .ask("SELECT id FROM people;", "⋮ 960 rows left out")
        .ask("\\d", "people")
        .ask("\\d people", "DECIMAL(12,2)")
        .ask("\\d nope", "error: ")
        .ask("\\timing off", "\ntiming off\n")
        .ask("SELECT 1 AS x;", "1 row\n");
    play.run(&dir, CTRL_D).unwrap();
}

#[test]
fn words_are_completed() {
    let dir = Dir::new();
    write_parquet(&dir.path("people.parquet"), &people(10), 10);
    let play = Play::new(&["--db", "."]).with("PLINTH_HISTORY", "");
    let play = play
        .send("SEL\t coun\t*) AS total FROM peo\t WHERE am\t >= 0;")
        .send("\r")
        .expect("   10\n")
        .expect("1 row in ")
        .expect(PROMPT)
        .ask("SELECT count(*) AS n FROM 'peo\t';", "10\n");
    play.run(&dir, CTRL_D);
}

#[test]
fn rows_go_to_files_in_any_format() {
    let dir = Dir::new();
    std::fs::write(dir.path("some.sql"), "\\set least 3\nSELECT $least + 1 AS four;\nSELECT 5 AS five").unwrap();
    let play = Play::new(&["--param", "name=O'Neil"]).with("PLINTH_HISTORY", "");
    let play = play
        .tell("\\o out.parquet")
        .ask("SELECT 1 AS n, '' AS t UNION ALL SELECT 2, NULL ORDER BY n;", "2 rows in ")
        .ask("SELECT 2;", "error: a Parquet file holds one result")
        .tell("\\o out.parquet")
        .ask("SELECT 1 AS n, '' AS t UNION ALL SELECT 2, NULL ORDER BY n;", "2 rows in ")
        .ask("\\o out.csv", "wrote out.parquet")
        .ask("SELECT * FROM 'out.parquet' ORDER BY n;", "2 rows in ")
        .ask("\\o", "wrote out.csv")
        .tell("\\f parquet")
        .ask("SELECT 1;", "error: Parquet is nothing for a terminal")
        .tell("\\f json")
        .ask("SELECT 3 AS n;", "{\"n\":3}")
        .ask("\\f", "format json")
        .ask("\\i some.sql", "{\"five\":5}")
        .ask("\\set", "$least = \"3\"")
        .ask("SELECT $name AS who;", "{\"who\":\"O'Neil\"}")
        .tell("\\unset least")
        .ask("SELECT $least + 1 AS n;", "error: no value for $least")
        .ask("PREPARE p(bigint) AS SELECT $1 * 2 AS twice;", "done")
        .ask("EXECUTE p(21);", "{\"twice\":42}")
        .ask("DEALLOCATE p;", "done")
        .ask("EXECUTE p(21);", "error: ")
        .ask("\\i some.other", "error: some.other: ");
    let Some(screen) = play.run(&dir, "\\q\r") else { return };
    assert!(screen.contains("{\"four\":4}"), "{screen}");
    assert_eq!(std::fs::read_to_string(dir.path("out.csv")).unwrap(), "n,t\n1,\"\"\n2,\n");
    assert!(dir.entries().iter().all(|name| !name.ends_with("-tmp")), "{:?}", dir.entries());
}

#[test]
fn what_is_typed_stays_out_of_redirected_rows() {
    let dir = Dir::new();
    if Play::new(&[]).run(&dir, CTRL_D).is_none() {
        return;
    }
    // The rows go into a file, the talk to the terminal.
    let mut play = Play::new(&[]).with("PLINTH_HISTORY", "").ask("SELECT 1 AS n;", "1 row in ");
    let script = format!("exec {} sql > rows.csv", env!("CARGO_BIN_EXE_plinth"));
    play.command = ["sh", "-c", &script].map(str::to_owned).to_vec();
    let screen = play.run(&dir, CTRL_D).unwrap();
    assert!(!screen.contains("n\n1\n"), "{screen}");
    assert_eq!(std::fs::read_to_string(dir.path("rows.csv")).unwrap(), "n\n1\n");
}

/// What an attacker would write into names and values: a title for the window, a colour, both in one character each, and a
/// turn of the direction of writing.
const EVIL: &str = "\u{1b}]0;owned\u{7}x\u{1b}[31mred\u{9b}31m\u{202e}y\rz";

#[track_caller]
fn is_clean(dir: &Dir, about: &str) {
    let raw = String::from_utf8(std::fs::read(dir.path(RAW)).unwrap()).unwrap();
    for evil in ["\u{1b}]0;owned", "\u{7}x", "\u{1b}[31m", "\u{9b}", "\u{202e}", "\rz"] {
        assert!(!raw.contains(evil), "{about}: {evil:?} in {raw:?}");
    }
}

/// A folder with the file `EVIL.plinth` in `db`, which has a column `EVIL` of values `EVIL`.
fn evil() -> Dir {
    let dir = Dir::new();
    std::fs::create_dir(dir.path("db")).unwrap();
    let values: arrow_array::ArrayRef = std::sync::Arc::new(arrow_array::StringArray::from(vec![EVIL, EVIL, "plain"]));
    let batch = arrow_array::RecordBatch::try_from_iter([(EVIL, values)]).unwrap();
    write_parquet(&dir.path("in.parquet"), &batch, 10);
    plinth(&dir, &["import", "in.parquet", "--to", &format!("db/{EVIL}.plinth"), "-q"]).ok();
    dir
}

#[test]
fn nothing_in_data_or_names_does_anything_to_the_terminal() {
    let dir = evil();
    let table = format!("SELECT * FROM \"{EVIL}\"");
    let file = format!("db/{EVIL}.plinth");
    let mut commands: Vec<Vec<String>> = Vec::new();
    let mut add = |arguments: &[&str]| commands.push(arguments.iter().map(|&argument| argument.to_owned()).collect());
    for format in ["table", "csv", "tsv", "json", "markdown"] {
        add(&["sql", "--db", "db", "--format", format, "-c", &table]);
        add(&["lookup", &file, EVIL, "--prefix", "", "--values", "--format", format]);
    }
    for format in ["csv", "tsv", "ndjson"] {
        add(&["export", &file, "--to", "-", "--to-format", format]);
    }
    let missing = format!("{EVIL}.csv");
    add(&["sql", "--db", "db", "--profile", "-c", &table]);
    add(&["sql", "--db", "db", "-c", &format!("SELECT \"no{EVIL}\" FROM \"{EVIL}\"")]);
    add(&["sql", "--db", "db", "-c", &format!("SELECT * FROM \"no{EVIL}\"")]);
    add(&["sql", "-c", &format!("SELECT * FROM '{missing}'")]);
    add(&["sql", "-c", &format!("SELECT CAST('{EVIL}' AS INT)")]);
    add(&["sql", "-c", &format!("SELEC '{EVIL}'")]);
    add(&["sql", "-c", &format!("SELECT * FROM 'in.parquet' WHERE \"{EVIL}\" > 1 + '{EVIL}'")]);
    add(&["sql", "-o", &format!("no/{missing}"), "-c", "SELECT 1"]);
    add(&["sql", "-f", &missing]);
    add(&["sql", "--db", &missing, "-c", "SELECT 1"]);
    add(&["sql", "--db", "db", "-c", "SHOW TABLES"]);
    add(&["sql", "--db", "db", "-c", &format!("EXPLAIN {table}")]);
    add(&["inspect", &file]);
    add(&["inspect", &file, "--json"]);
    add(&["verify", &file]);
    add(&["import", "in.parquet", "--to", &format!("{EVIL}.plinth")]);
    add(&["import", &missing, "--to", "x.plinth"]);
    add(&["import", "in.parquet", "--to", "x.plinth", "--sort-by", EVIL]);
    add(&["import", "in.parquet", "--to", "x.plinth", "--sort-by", &format!("no{EVIL}")]);
    add(&["export", &file, "--to", &missing]);
    add(&["export", &file, "--to", "x.csv", "--columns", EVIL, "--columns", &format!("no{EVIL}")]);
    add(&["lookup", &file, &format!("no{EVIL}"), "--equals", EVIL]);
    add(&["lookup", &file, EVIL, "--equals", EVIL]);
    add(&["compact", EVIL]);
    add(&["table", "init", EVIL]);
    add(&["probe", EVIL]);
    // Arguments that make no sense are said back.
    add(&[EVIL]);
    add(&["sql", "--format", EVIL]);
    for arguments in commands {
        let program = [env!("CARGO_BIN_EXE_plinth").to_owned()];
        let mut play = Play::of(program.into_iter().chain(arguments.iter().cloned()).collect());
        (play.may_fail, play.raw) = (true, true);
        let Some(screen) = play.run(&dir, "") else { return };
        is_clean(&dir, &format!("{arguments:?}"));
        assert!(!screen.trim().is_empty(), "{arguments:?} says nothing");
    }
    // Files and pipes get what there is.
    let whole = plinth(&dir, &["sql", "--db", "db", "-c", &table]).ok().stdout;
    assert_eq!(whole, format!("\"{EVIL}\"\n\"{EVIL}\"\n\"{EVIL}\"\nplain\n"));
}

#[test]
fn nothing_in_data_or_names_does_anything_to_the_shell() {
    let dir = evil();
    std::fs::write(dir.path("evil.sql"), format!("SELECT * FROM \"{EVIL}\";\n\\set {EVIL} {EVIL}\n\\set\n\\{EVIL}"))
        .unwrap();
    std::fs::write(dir.path("wrong.sql"), format!("SELEC\n '{EVIL}' FROM '{EVIL}'")).unwrap();
    let mut play = Play::new(&["--db", "db"]).with("PLINTH_HISTORY", "").with("PLINTH_PAGER", "");
    for format in ["table", "csv", "tsv", "json", "markdown"] {
        play = play.tell(&format!("\\f {format}")).ask("\\i evil.sql", "error: no command ");
    }
    play.raw = true;
    let play = play
        .tell("\\f table")
        .ask("\\d", "plinth │    3")
        .ask("\\i wrong.sql", "error: SQL: ")
        // One that begins like no keyword; what has no plain name is not offered.
        .send("SELECT * FROM \t\t")
        .pause()
        .send("\x15")
        .pause()
        .send("\\i ev\t")
        .expect("evil.sql")
        .send("\x15");
    if play.run(&dir, CTRL_D).is_some() {
        is_clean(&dir, "the shell");
    }
}

#[test]
fn rows_of_a_statement_that_fails_do_not_come_before_the_next_result() {
    let dir = Dir::new();
    // Some batches of rows are fine, the next is not.
    let fails = "SELECT value + 700000 AS v, 10 / (value - 900) AS x FROM range(0, 2000);";
    for (format, answer) in [("csv", "n\n41\n"), ("json", "{\"n\":41}\n"), ("markdown", "| 41 |\n")] {
        let play = Play::new(&["--threads", "1"]).with("PLINTH_HISTORY", "").tell(&format!("\\f {format}"));
        let play = play.tell("SET datafusion.execution.batch_size = 100;");
        let play = play.ask(fails, "error: division by zero").ask("SELECT 40 + 1 AS n;", answer);
        let Some(screen) = play.run(&dir, CTRL_D) else { return };
        assert!(!screen.contains("700001"), "{screen}");
    }
}
