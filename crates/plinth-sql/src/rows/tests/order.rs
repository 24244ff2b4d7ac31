//! Random joins of up to eight tables: the order of joins changes no answer.

use plinth_core::random::Random;

use super::Db;
use super::native::tables;

/// Questions of each set of tables.
const QUESTIONS: usize = 50;

/// Columns of either side that are equal.
const KEYS: [&str; 11] = [
    "x.id = y.id",
    "x.id = y.id",
    "x.i = y.i",
    "x.b = y.b",
    "x.s = y.s",
    "x.d = y.d AND x.t = y.t",
    "x.id = y.i",
    "x.id % 10 = y.n",
    "x.i + 1 = y.id",
    "x.u = y.u",
    "x.m = y.m AND x.i = y.i",
];

/// What rows of two tables are held against besides.
const CONDITIONS: [&str; 5] =
    ["x.id <= y.id", "x.s <> y.s OR y.i > 3", "x.i = 2 AND y.b > 0 OR x.i <> 2", "x.f < y.f", "coalesce(x.i, y.i) > 1"];

/// What the rows of one table are left by.
const FILTERS: [&str; 8] = [
    "i > 2",
    "s = 'b'",
    "u LIKE '%a%'",
    "s IN ('a', 'c') AND i <> 3",
    "d > DATE '2000-01-01'",
    "b BETWEEN 0 AND 1000",
    "i IS NULL OR id % 3 = 0",
    "NOT t",
];

fn question(random: &mut Random, tables: &[String]) -> String {
    let count = 2 + random.index(7);
    let mut from = Vec::new();
    let mut conditions = Vec::new();
    for relation in 0..count {
        let rows = if count < 4 { 5 + random.index(300) } else { 5 + random.index(12) };
        let first = random.index(40);
        let table = &tables[random.index(tables.len())];
        let filter = match random.index(4) {
            0 => format!(" AND ({})", FILTERS[random.index(FILTERS.len())]),
            _ => String::new(),
        };
        let range = format!("id BETWEEN {first} AND {}", first + rows);
        from.push(format!("(SELECT * FROM {table} WHERE {range}{filter}) AS r{relation}"));
        if relation == 0 {
            continue;
        }
        // A tree, and now and then a circle or a further condition.
        let pair = |random: &mut Random, among: &[&str]| {
            let other = random.index(relation);
            among[random.index(among.len())]
                .replace("x.", &format!("r{other}."))
                .replace("y.", &format!("r{relation}."))
        };
        conditions.push(pair(random, &KEYS));
        if random.index(3) == 0 {
            conditions.push(pair(random, &KEYS));
        }
        if random.index(4) == 0 {
            conditions.push(format!("({})", pair(random, &CONDITIONS)));
        }
    }
    let last = count - 1;
    let mut condition = conditions.join(" AND ");
    match random.index(6) {
        0 => {
            condition += &format!(" AND EXISTS (SELECT 1 FROM {} AS e WHERE e.id = r{last}.id AND e.i > 1)", tables[0])
        }
        1 => condition += &format!(" AND r0.id NOT IN (SELECT id FROM {} WHERE i = 2)", tables[0]),
        _ => {}
    }
    let sums = format!("count(*), sum(r0.id), min(r{last}.u), max(r0.s), sum(r{last}.m), count(r{}.f)", count / 2);
    match random.index(4) {
        0 => format!("SELECT r{last}.s, {sums} FROM {} WHERE {condition} GROUP BY r{last}.s", from.join(", ")),
        1 => {
            let further = &tables[random.index(tables.len())];
            let left = format!("LEFT JOIN {further} AS o ON o.id = q.id AND o.i > 2");
            let rows = format!("SELECT r0.id, r{last}.u FROM {} WHERE {condition}", from.join(", "));
            format!("SELECT count(*), sum(q.id), count(o.i), max(o.u) FROM ({rows}) AS q {left}")
        }
        _ => format!("SELECT {sums} FROM {} WHERE {condition}", from.join(", ")),
    }
}

#[test]
fn joins_in_any_order_give_the_same_rows() {
    let rounds = plinth_core::random::trials("PLINTH_JOIN_ROUNDS", 1);
    let first = plinth_core::random::trials("PLINTH_JOIN_SEED", 1);
    let mut changed = 0;
    for seed in first..first + rounds {
        let random = &mut Random(seed);
        let folder = tempfile::tempdir().unwrap();
        let db = Db::open(folder.path());
        let tables = tables(&db, folder.path(), random);
        for _ in 0..QUESTIONS {
            let sql = question(random, &tables);
            db.run(&format!("SET plinth.native_joins = {}", random.index(3) > 0)).unwrap();
            let answer = |ordered: bool| {
                db.run(&format!("SET plinth.join_order = {ordered}")).unwrap();
                (db.sorted(&sql), db.explain(&sql))
            };
            let ((expected, written), (rows, ordered)) = (answer(false), answer(true));
            assert_eq!(rows, expected, "seed {seed}: {sql}");
            changed += usize::from(written != ordered);
        }
    }
    assert!(changed > QUESTIONS / 4, "the order changed {changed} times");
}

#[test]
fn the_most_selective_tables_are_joined_first() {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(folder.path());
    let write = |name: &str, rows: &str| {
        let path = folder.path().join(name).display().to_string();
        db.run(&format!("COPY ({rows}) TO '{path}' STORED AS PLINTH")).unwrap();
        path
    };
    let facts = "SELECT value AS f, value % 1000 AS f_a, value % 5000 AS f_b FROM generate_series(1, 100000)";
    let a = "SELECT value AS a, value % 10 AS a_c FROM generate_series(0, 999)";
    let b = "SELECT value AS b FROM generate_series(0, 4999)";
    let c = "SELECT value AS c, concat('name ', value) AS name FROM generate_series(0, 9)";
    let (facts, a, b, c) = (write("f.plinth", facts), write("a.plinth", a), write("b.plinth", b), write("c.plinth", c));
    let sql = format!(
        "SELECT count(*), sum(f) FROM '{b}' AS b, '{facts}' AS f, '{a}' AS a, '{c}' AS c \
         WHERE f_b = b AND f_a = a AND a_c = c AND name = 'name 3'"
    );
    let plan = db.explain(&sql);
    let plan = &plan[plan.find("physical_plan").expect("both plans")..];
    // What is read first stands lowest: b comes last, and the name before the facts.
    let place = |name: &str| plan.find(&format!("{name}.plinth")).expect(name);
    assert!(place("c") < place("f") && place("a") < place("f"), "{plan}");
    let joins = plan.matches("JoinExec").count();
    assert!(joins >= 3, "{plan}");
    let (mut rows, expected) = (db.rows(&sql), {
        db.run("SET plinth.join_order = false").unwrap();
        db.rows(&sql)
    });
    rows.sort();
    assert_eq!(rows, expected);
}

#[test]
fn columns_of_one_table_that_another_makes_equal_stay_equal() {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(folder.path());
    let path = |name: &str| folder.path().join(name).display().to_string();
    let tables = [
        (
            "f",
            "SELECT value % 5000 AS p, CASE WHEN value % 3 = 0 THEN value % 5000 ELSE value % 4999 END AS q, \
               value % 10 AS c FROM generate_series(1, 60000)",
        ),
        ("b", "SELECT value AS k FROM generate_series(0, 4999)"),
        ("c", "SELECT value AS id, concat('x', value) AS name FROM generate_series(0, 9)"),
    ];
    for (name, rows) in tables {
        db.rows(&format!("COPY ({rows}) TO '{}' STORED AS PLINTH", path(&format!("{name}.plinth"))));
    }
    let mut changed = 0;
    for (from, condition) in [
        ("b, f, c", "f.p = b.k AND f.q = b.k AND f.c = c.id AND c.name = 'x1'"),
        ("f, b, c", "f.p = b.k AND f.q = b.k AND f.c = c.id AND c.name = 'x1'"),
        ("b, f, c", "f.p = b.k AND b.k = c.id AND c.id = f.q"),
        ("b AS b, f, c, b AS d", "f.p = b.k AND d.k = f.q AND b.k = d.k AND f.c = c.id AND c.name = 'x2'"),
    ] {
        let sql = format!("SELECT count(*), sum(f.p), sum(f.q) FROM {from} WHERE {condition}");
        db.run("SET plinth.join_order = true").unwrap();
        let (found, plan) = (db.rows(&sql), db.explain(&sql));
        db.run("SET plinth.join_order = false").unwrap();
        assert_eq!(found, db.rows(&sql), "{sql}");
        changed += usize::from(db.explain(&sql) != plan);
    }
    assert!(changed > 1, "{changed}");
}
