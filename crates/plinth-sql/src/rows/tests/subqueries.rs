//! Random subqueries that depend on the row around them, beside the same with the row's values in the places of its columns.

use plinth_core::random::Random;

use super::Db;

/// Questions of each set of tables.
const QUESTIONS: usize = 60;

fn some<'a>(random: &mut Random, values: &[&'a str]) -> &'a str {
    values[random.index(values.len())]
}

/// A comparison of a row of `of` with the row around.
fn related(random: &mut Random, of: &str) -> String {
    let own = match of {
        "d" => some(random, &["d.id", "d.n"]),
        _ => some(random, &["e.id", "e.v"]),
    };
    let op = some(random, &["=", "=", "=", "=", "<", ">=", "<>", "IS NOT DISTINCT FROM"]);
    format!("{own} {op} {}", some(random, &["t.id", "t.k"]))
}

fn condition(random: &mut Random, of: &str) -> String {
    let mut all = related(random, of);
    if random.index(3) == 0 {
        let with = some(random, &["AND", "AND", "OR"]);
        all = format!("{all} {with} {}", related(random, of));
    }
    if random.index(4) == 0 {
        all = format!("({all}) AND {}", some(random, &["t.k > 1", "t.id IS NOT NULL", "t.id + t.k < 6"]));
    }
    all
}

fn from(random: &mut Random) -> String {
    match random.index(9) {
        0 => "e JOIN d ON d.id = e.id".to_owned(),
        1 => "e LEFT JOIN d ON d.id = e.id".to_owned(),
        2 => format!("e LEFT JOIN (SELECT * FROM d WHERE {}) AS d ON d.id = e.id", related(random, "d")),
        3 => format!("e JOIN d ON d.id = e.v AND {}", related(random, "d")),
        _ => "e".to_owned(),
    }
}

/// A subquery of one column, and of one row at most if that is asked.
fn subquery(random: &mut Random, one: bool) -> String {
    let value = some(random, &["e.v", "e.v", "e.id + e.v", "e.v + t.id", "coalesce(e.v, t.k)", "t.id"]);
    let (from, only) = (from(random), condition(random, "e"));
    let rows = format!("{from} WHERE {only}");
    let whole = |inner: String| if one { format!("SELECT max(x) FROM ({inner}) AS u") } else { inner };
    match random.index(10) {
        0 | 1 => {
            // An aggregate of the row around alone would be one of the query around.
            let value = if value == "t.id" { "e.id" } else { value };
            format!("SELECT {}({value}) AS x FROM {rows}", some(random, &["max", "min", "sum", "count"]))
        }
        2 => format!("SELECT count(*) + {} AS x FROM {rows}", some(random, &["1", "t.id"])),
        3 => format!("SELECT max(e.v) AS x FROM {rows} HAVING count(*) > {}", some(random, &["0", "1", "2"])),
        4 => {
            let limit = some(random, &["1", "1 OFFSET 1", "1 OFFSET 2", "0"]);
            format!(
                "SELECT {value} AS x FROM {rows} ORDER BY x {} NULLS LAST LIMIT {limit}",
                some(random, &["", "DESC"])
            )
        }
        5 => format!("SELECT sum(e.v) AS x FROM {rows} GROUP BY e.g ORDER BY x NULLS FIRST LIMIT 1"),
        6 => {
            let (with, other) = (some(random, &["UNION ALL", "UNION"]), condition(random, "d"));
            whole(format!("SELECT {value} AS x FROM {rows} {with} SELECT d.n FROM d WHERE {other}"))
        }
        7 => {
            let number = "row_number() OVER (ORDER BY e.v NULLS LAST, e.id NULLS LAST, e.g NULLS LAST)";
            format!("SELECT v AS x FROM (SELECT e.v, {number} AS r FROM e WHERE {only}) AS w WHERE r = 1")
        }
        8 => whole(format!("SELECT DISTINCT {value} AS x FROM {rows}")),
        _ if one => format!("SELECT {value} AS x FROM {rows} GROUP BY x ORDER BY x NULLS LAST LIMIT 1"),
        _ => format!("SELECT {value} AS x FROM {rows}"),
    }
}

/// A question, and what it is of one row.
enum Question {
    /// A value beside each row.
    Value(String),
    /// Rows that a condition lets pass.
    Where(String),
    /// Rows beside each row; of none one of NULL if so.
    Beside(String, bool),
}

fn question(random: &mut Random) -> Question {
    let negated = if random.index(2) == 0 { "NOT " } else { "" };
    match random.index(12) {
        0..=2 => Question::Value(format!("({})", subquery(random, true))),
        3 => Question::Where(format!("({}) > 2", subquery(random, true))),
        4 | 5 => Question::Where(format!("{negated}EXISTS ({})", subquery(random, false))),
        6 => Question::Value(format!("EXISTS ({})", subquery(random, false))),
        7 => Question::Where(format!("t.k {negated}IN ({})", subquery(random, false))),
        8 => Question::Value(format!("t.k {negated}IN ({})", subquery(random, false))),
        9 => Question::Value(format!("ARRAY({})", subquery(random, true))),
        10 => Question::Beside(subquery(random, false), false),
        _ => Question::Beside(subquery(random, false), true),
    }
}

impl Question {
    fn of_all(&self) -> String {
        match self {
            Self::Value(value) => format!("SELECT t.id, t.k, {value} AS y FROM t"),
            Self::Where(condition) => format!("SELECT t.id, t.k FROM t WHERE {condition}"),
            Self::Beside(rows, false) => format!("SELECT t.id, t.k, l.x FROM t, LATERAL ({rows}) AS l(x)"),
            Self::Beside(rows, true) => {
                format!("SELECT t.id, t.k, l.x FROM t LEFT JOIN LATERAL ({rows}) AS l(x) ON true")
            }
        }
    }

    /// The rows that come of one, by its values.
    fn of_row(&self, db: &Db, id: &str, k: &str) -> Result<Vec<String>, String> {
        let literal = |value: &str| if value == "-" { "CAST(NULL AS INT)".to_owned() } else { value.to_owned() };
        let put = |text: &str| text.replace("t.id", &literal(id)).replace("t.k", &literal(k));
        let with = |value: &str| format!("{id} {k} {value}");
        match self {
            Self::Value(value) => Ok(db.run(&format!("SELECT {}", put(value)))?.iter().map(|y| with(y)).collect()),
            Self::Where(condition) => {
                let rows = db.run(&format!("SELECT 1 WHERE {}", put(condition)))?;
                Ok(rows.iter().map(|_| format!("{id} {k}")).collect())
            }
            Self::Beside(rows, outer) => {
                let rows = db.run(&put(rows))?;
                let none = (rows.is_empty() && *outer).then(|| with("-"));
                Ok(rows.iter().map(|x| with(x)).chain(none).collect())
            }
        }
    }
}

fn values(random: &mut Random, count: usize, columns: usize) -> String {
    let row = |random: &mut Random| {
        let cells = (0..columns).map(|_| match random.index(7) {
            6 => "NULL".to_owned(),
            value => value.to_string(),
        });
        format!("({})", cells.collect::<Vec<_>>().join(", "))
    };
    (0..count).map(|_| row(random)).collect::<Vec<_>>().join(", ")
}

#[test]
fn a_subquery_is_what_it_is_with_the_values_of_the_row_around() {
    let seed = std::env::var("PLINTH_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(7);
    let mut random = Random(seed);
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path());
    db.rows("CREATE TEMP TABLE t (id INT, k INT); CREATE TEMP TABLE e (id INT, g INT, v INT); CREATE TEMP TABLE d (id INT, n INT)");
    db.rows(&format!("INSERT INTO t VALUES {}", values(&mut random, 9, 2)));
    db.rows(&format!("INSERT INTO e VALUES {}", values(&mut random, 14, 3)));
    db.rows(&format!("INSERT INTO d VALUES {}", values(&mut random, 8, 2)));
    let outer = db.rows("SELECT id, k FROM t");
    let mut answered = 0;
    for _ in 0..QUESTIONS {
        let question = question(&mut random);
        let statement = question.of_all();
        let mut expected = Vec::new();
        for row in &outer {
            let (id, k) = row.split_once(' ').unwrap();
            expected.extend(question.of_row(&db, id, k).unwrap_or_else(|error| panic!("{statement}: {error}")));
        }
        expected.sort();
        let found = db.sorted(&statement).unwrap_or_else(|error| panic!("{statement}: {error}"));
        assert_eq!(found, expected, "{statement}");
        answered += usize::from(!found.is_empty());
    }
    assert!(answered > QUESTIONS / 2, "{answered} of {QUESTIONS} questions had an answer");
}
