//! Keys of groups that others determine, and joins that ask below groups for their keys: the answers are those of the engine, which knows of neither.

use super::Db;

/// People in the order of `id`, none of whom is twice; each has a town of `towns`, which lie in the order of `code`. Visits are of some people.
fn tables(db: &Db, folder: &std::path::Path) {
    let copy = |name: &str, rows: &str| {
        db.rows(&format!("COPY ({rows}) TO '{}'", folder.join(format!("{name}.plinth")).display()));
    };
    copy(
        "people",
        "SELECT value AS id, concat('person ', value % 97) AS name, CASE WHEN value % 4 > 0 THEN concat('lane ', value % 300) END AS street, \
         CAST(value % 50 AS INT) AS town, CAST(value * 7 % 1000 AS DECIMAL(20, 2)) AS money, CAST(value % 9 AS DOUBLE) AS weight \
         FROM generate_series(1, 20000)",
    );
    copy("towns", "SELECT CAST(value AS INT) AS code, concat('town ', value % 20) AS name FROM generate_series(0, 44)");
    copy(
        "visits",
        "SELECT value AS visit, CASE WHEN value % 11 > 0 THEN (value * 7919) % 25000 END AS person, value % 13 AS n \
         FROM generate_series(1, 60000)",
    );
    // The same ids twice.
    copy("twice", "SELECT id, name FROM people UNION ALL SELECT id, concat(name, '!') FROM people ORDER BY id");
}

/// The rows of a query, those of the engine's operators, and our plan.
fn both(db: &Db, sql: &str) -> (Vec<String>, Vec<String>, String) {
    let sorted = || {
        let mut rows = db.rows(sql);
        rows.sort();
        rows
    };
    let (ours, plan) = (sorted(), db.explain(sql));
    db.rows("SET plinth.native = false");
    let theirs = sorted();
    db.rows("SET plinth.native = true");
    (ours, theirs, plan)
}

#[test]
fn groups_without_determined_keys_are_those_of_all_keys() {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(folder.path());
    tables(&db, folder.path());
    for (sql, determined) in [
        ("SELECT id, name, street, count(*) FROM people GROUP BY id, name, street", "determined=[name, street]"),
        ("SELECT name, id, money FROM people WHERE id % 3 = 0 GROUP BY name, money, id", "determined=[name, money]"),
        ("SELECT upper(name), id, weight, max(money) FROM people GROUP BY 1, 2, 3", "weight]"),
        // Through joins, in either direction.
        (
            "SELECT p.id, p.name, t.name, sum(v.n) FROM visits v JOIN people p ON v.person = p.id \
             JOIN towns t ON p.town = t.code GROUP BY p.id, p.name, t.name",
            "determined=[name, name]",
        ),
        (
            "SELECT v.person, p.street, count(*) FROM visits v JOIN people p ON v.person = p.id GROUP BY v.person, p.street",
            "determined=[street]",
        ),
        // People without a visit, visits without a person: rows of nulls.
        (
            "SELECT p.id, p.name, count(v.n) FROM people p LEFT JOIN visits v ON v.person = p.id GROUP BY p.id, p.name",
            "determined=[name]",
        ),
        (
            "SELECT p.id, p.name, count(*) FROM visits v LEFT JOIN people p ON v.person = p.id GROUP BY p.id, p.name",
            "determined=[name]",
        ),
        // What an outer join has beside each other is not always equal.
        ("SELECT v.person, p.name, count(*) FROM visits v LEFT JOIN people p ON v.person = p.id GROUP BY 1, 2", ""),
        ("SELECT id, name, count(*) FROM twice GROUP BY id, name", ""),
        ("SELECT town, name, count(*) FROM people GROUP BY town, name", ""),
        ("SELECT id + 0, name, count(*) FROM people GROUP BY id + 0, name", ""),
        ("SELECT id, random() < 2 AS r, name FROM people GROUP BY 1, 2, 3", "determined=[name]"),
        ("SELECT id, name FROM people GROUP BY id, name ORDER BY name DESC, id LIMIT 30", "determined=[name]"),
        ("SELECT id, name, money FROM people GROUP BY id, name, money ORDER BY money DESC, id LIMIT 30", "determined="),
        ("SELECT id, name FROM (SELECT * FROM people UNION ALL SELECT * FROM people) GROUP BY id, name", ""),
    ] {
        let (ours, theirs, plan) = both(&db, sql);
        assert_eq!(ours, theirs, "{sql}");
        assert!(!ours.is_empty() && plan.contains("GroupExec"), "{sql}: {plan}");
        let found = plan.contains(determined) && plan.contains("determined=") != determined.is_empty();
        assert!(found, "{sql}: {plan}");
    }
}

#[test]
fn within_little_memory_groups_keep_what_was_determined() {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(folder.path());
    tables(&db, folder.path());
    let sql = "SELECT a.id, b.id, a.name, b.street, count(*) FROM people a JOIN people b ON a.town = b.town AND a.id < 2000 \
         AND b.id < 6000 GROUP BY a.id, b.id, a.name, b.street";
    let counted =
        format!("SELECT count(*), count(name), count(street), min(n), max(n) FROM ({sql}) AS g(a, b, name, street, n)");
    let expected = db.rows(&counted);
    let little = Db::open_within(folder.path(), plinth_format::Access::Auto, 32 << 20);
    assert!(little.explain(&counted).contains("determined=["));
    assert_eq!(little.rows(&counted), expected);
}

#[test]
fn joins_by_a_key_and_an_aggregate_ask_below_the_groups() {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(folder.path());
    tables(&db, folder.path());
    for (sql, asks) in [
        (
            "SELECT v.visit FROM visits v JOIN people p ON v.person = p.id WHERE p.name = 'person 7' \
             AND v.n = (SELECT min(n) FROM visits w WHERE w.person = p.id)",
            true,
        ),
        (
            "SELECT p.id FROM people p WHERE p.id < 300 AND p.id % 7 <> (SELECT max(n) FROM visits w WHERE w.person = p.id)",
            true,
        ),
        (
            "SELECT p.id, g.m FROM people p LEFT JOIN (SELECT person, max(n) AS m FROM visits GROUP BY person) g \
             ON g.person = p.id AND g.m = p.id % 13 WHERE p.id < 500",
            true,
        ),
        // Groups without a partner come out.
        (
            "SELECT p.id, g.person FROM people p RIGHT JOIN (SELECT person, max(n) AS m FROM visits GROUP BY person) g \
             ON g.person = p.id AND g.m = p.id % 13 WHERE g.person < 900",
            false,
        ),
    ] {
        let (ours, theirs, plan) = both(&db, sql);
        assert_eq!(ours, theirs, "{sql}");
        assert!(!ours.is_empty(), "{sql}");
        // The scan below the groups, whose lines are deeper than theirs.
        let below = plan.split("GroupExec").nth(1).unwrap_or_default();
        assert_eq!(below.contains("DynamicFilter"), asks, "{sql}: {plan}");
    }
}
