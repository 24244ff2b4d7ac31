//! What planning leaves out changes no answer: neither columns that a statement does not name, nor rules of the optimizer.

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::logical_expr::LogicalPlan;

use super::Db;
use crate::narrow::Words;
use crate::planning::{logical, optimized};
use crate::{Statement, parse};

/// Columns of names that are easily mistaken.
const COLUMNS: &str = "value AS id, value % 7 AS \"Key\", value % 5 AS \"key\", concat('n', value % 3) AS \"A name\", \
                       value * 2 AS \"select\", named_struct('x', value, 'y', value % 2) AS place, CAST(value AS DOUBLE) AS \"f\", \
                       concat('t', value) AS t, value % 11 AS \"größe\", value % 4 AS u";

/// Statements that name some columns, all, or none, where `t` and `o` are tables.
const STATEMENTS: &[&str] = &[
    "SELECT * FROM t ORDER BY id",
    "SELECT t.* FROM t ORDER BY id LIMIT 3",
    "SELECT id, t.* FROM t ORDER BY 1 LIMIT 3",
    "TABLE t ORDER BY id LIMIT 2",
    "SELECT * EXCLUDE (place) FROM t ORDER BY id LIMIT 3",
    "SELECT count(*) FROM t",
    "SELECT count(1), count(*) FILTER (WHERE u = 1) FROM t",
    "SELECT 1 FROM t LIMIT 2",
    "SELECT ID, Id, \"id\" FROM t ORDER BY id LIMIT 3",
    "SELECT \"Key\", key FROM t ORDER BY id LIMIT 5",
    "SELECT KEY FROM t ORDER BY id LIMIT 5",
    "SELECT \"KEY\" FROM t",
    "SELECT \"A name\", count(*) FROM t GROUP BY 1 ORDER BY 1",
    "SELECT \"select\" FROM t ORDER BY id LIMIT 2",
    "SELECT \"größe\" FROM t ORDER BY id LIMIT 2",
    "SELECT größe FROM t ORDER BY id LIMIT 2",
    "SELECT place.x, place['y'] FROM t ORDER BY id LIMIT 2",
    "SELECT t.place.x FROM t ORDER BY id LIMIT 2",
    "SELECT t FROM t ORDER BY id LIMIT 2",
    "SELECT o FROM t AS o",
    "SELECT missing FROM t",
    "SELECT t.missing FROM t",
    "SELECT x.u FROM t AS x(a, b, c, d, e, f, g, h, i, u) ORDER BY 1 LIMIT 3",
    "SELECT a FROM (SELECT id, u FROM t) AS x(a, b) ORDER BY 1 LIMIT 3",
    "SELECT x.a FROM (SELECT * FROM t) AS x(a) LIMIT 1",
    "WITH x AS (SELECT u, id FROM t) SELECT id FROM x ORDER BY 1 LIMIT 3",
    "WITH x(a, b) AS (SELECT u, id FROM t) SELECT b FROM x ORDER BY 1 LIMIT 3",
    "WITH x AS (SELECT * FROM t) SELECT f FROM x ORDER BY 1 LIMIT 3",
    "WITH RECURSIVE x AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM x WHERE n < 4) SELECT n, id FROM x JOIN t ON n = id ORDER BY 1",
    "SELECT id FROM t WHERE EXISTS (SELECT * FROM o WHERE o.id = t.u) ORDER BY 1 LIMIT 4",
    "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM o WHERE o.id = u) ORDER BY 1 LIMIT 4",
    "SELECT id FROM t WHERE u IN (SELECT key FROM o WHERE o.f > t.f) ORDER BY 1 LIMIT 4",
    "SELECT id, (SELECT max(o.f) FROM o WHERE o.u = t.u) FROM t ORDER BY 1 LIMIT 4",
    "SELECT t.id, l.s FROM t, LATERAL (SELECT sum(o.id) AS s FROM o WHERE o.u = t.u) AS l ORDER BY 1 LIMIT 4",
    "SELECT count(*) FROM t NATURAL JOIN o",
    "SELECT count(*) FROM t JOIN o USING (id)",
    "SELECT id FROM t JOIN o USING (id) ORDER BY 1 LIMIT 3",
    "SELECT * FROM t JOIN o USING (id) ORDER BY id LIMIT 3",
    "SELECT id FROM t JOIN o ON t.id = o.id",
    "SELECT t.id, o.f FROM t JOIN o ON t.id = o.u ORDER BY 1, 2 LIMIT 5",
    "SELECT t.id FROM t LEFT JOIN o ON t.id = o.id AND o.u > 2 WHERE o.id IS NULL ORDER BY 1 LIMIT 5",
    "SELECT a.id FROM t a, t b WHERE a.id = b.u AND b.key = 1 ORDER BY 1 LIMIT 5",
    "SELECT u AS f FROM t ORDER BY f, id LIMIT 5",
    "SELECT u AS missing FROM t ORDER BY missing, id LIMIT 5",
    "SELECT u, count(*) AS id FROM t GROUP BY u HAVING count(*) > 3 ORDER BY id, u",
    "SELECT u, count(*) FROM t GROUP BY ALL ORDER BY ALL",
    "SELECT u, \"Key\", count(*) FROM t GROUP BY CUBE (u, \"Key\") ORDER BY 1, 2, 3",
    "SELECT DISTINCT u, key FROM t ORDER BY 1, 2",
    "SELECT DISTINCT ON (u) u, id FROM t ORDER BY u, id",
    "SELECT count(DISTINCT key), count(DISTINCT u), sum(f) FROM t",
    "SELECT u FROM t UNION SELECT key FROM o ORDER BY 1",
    "SELECT u FROM t UNION ALL SELECT * FROM (SELECT key FROM o) ORDER BY 1 LIMIT 7",
    "SELECT u FROM t EXCEPT SELECT key FROM o ORDER BY 1",
    "SELECT u FROM t INTERSECT ALL SELECT key FROM o ORDER BY 1",
    "SELECT id, sum(f) OVER w FROM t WINDOW w AS (PARTITION BY u ORDER BY id) ORDER BY id LIMIT 5",
    "SELECT id FROM t QUALIFY row_number() OVER (PARTITION BY u ORDER BY id) = 1 ORDER BY id",
    "SELECT id FROM t WHERE u = 1 AND u = 1 AND f IN (0.0, 2.0, 9.0) ORDER BY id LIMIT 3 OFFSET 1",
    "SELECT id FROM t WHERE false",
    "SELECT id FROM t LIMIT 0",
    "SELECT upper(\"A name\"), place.y, count(*) FROM t WHERE place.x > 3 GROUP BY 1, 2 ORDER BY 1, 2",
    "SELECT u + 1, u + 1, (u + 1) * 2 FROM t WHERE (u + 1) * 2 > 4 ORDER BY id LIMIT 3",
    "SELECT sum(u) FROM (SELECT u FROM t ORDER BY id LIMIT 5) AS s",
    "SELECT id FROM v WHERE k = 3 ORDER BY id LIMIT 3",
    "SELECT * FROM v ORDER BY id LIMIT 3",
    "SELECT column_name FROM information_schema.columns WHERE table_name = 't' ORDER BY ordinal_position",
    "SELECT count(*) > 5 FROM \"information_schema\".\"columns\" WHERE table_name = 'o'",
    "DESCRIBE t",
    "SHOW COLUMNS FROM t",
];

/// A table of the folder in two folders: as a table that is written to, which keeps its columns, and as a file.
fn twice() -> (tempfile::TempDir, Vec<Db>) {
    let folder = tempfile::tempdir().unwrap();
    let of = |kind: &str| {
        let folder = folder.path().join(kind);
        std::fs::create_dir(&folder).unwrap();
        let db = Db::open(&folder);
        for (table, rows) in [("t", 40), ("o", 25)] {
            let rows = format!("SELECT {COLUMNS} FROM generate_series(1, {rows})");
            match kind {
                "rows" => {
                    db.rows(&format!("CREATE TABLE {table} CLUSTER BY id AS {rows}"));
                }
                _ => {
                    db.rows(&format!("CREATE TABLE {table} AS {rows}"));
                }
            }
        }
        db.rows("CREATE VIEW v AS SELECT *, \"Key\" AS k FROM t");
        db
    };
    let dbs = ["rows", "files"].map(of).into();
    (folder, dbs)
}

/// None if it is refused before it is planned.
fn statement(sql: &str) -> Option<Statement> {
    Some(parse(sql).ok()?.remove(0))
}

#[test]
fn names_mean_what_they_mean_among_all_columns() {
    let (_folder, dbs) = twice();
    let [rows, files] = dbs.as_slice() else { panic!("two") };
    for sql in STATEMENTS {
        assert_eq!(files.run(sql), rows.run(sql), "{sql}");
    }
}

#[test]
fn changes_of_rows_see_all_columns() {
    let (_folder, dbs) = twice();
    let rows = &dbs[0];
    for (sql, changed) in [
        ("INSERT INTO t SELECT * FROM o WHERE id = 1", "1"),
        ("UPDATE t SET u = o.u + 100 FROM o WHERE t.id = o.id AND o.id = 2", "1"),
        ("DELETE FROM t WHERE id = 3", "1"),
        ("MERGE INTO t USING o ON t.id = o.id AND o.id = 4 WHEN MATCHED THEN UPDATE SET f = 0.5", "1"),
    ] {
        assert_eq!(rows.rows(sql), [changed], "{sql}");
    }
    assert_eq!(rows.rows("SELECT count(*), max(u), min(f) FROM t"), ["40 102 0.5"]);
}

/// The columns of the tables of a plan.
fn widths(plan: &LogicalPlan) -> Vec<usize> {
    let mut widths = Vec::new();
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            widths.push(scan.source.schema().fields().len());
        }
        Ok(TreeNodeRecursion::Continue)
    })
    .unwrap();
    widths
}

#[test]
fn tables_have_the_columns_that_are_named() {
    let (_folder, dbs) = twice();
    let files = &dbs[1];
    // Names of other letters are kept; "select" and "t" are words of all of these.
    for (sql, expected) in [
        ("SELECT id FROM t", vec![5]),
        ("SELECT count(*) FROM t", vec![4]),
        ("SELECT KEY FROM t", vec![6]),
        ("EXPLAIN SELECT f FROM t WHERE u = 'id'", vec![7]),
        ("SELECT a.id FROM t a WHERE a.u IN (SELECT f FROM o)", vec![7, 7]),
        ("SELECT * FROM t", vec![10]),
        ("SELECT count(*) FROM t NATURAL JOIN o", vec![10, 10]),
        ("SELECT i.id FROM t AS i(id, b, c, d, e, f, g, h, j, u)", vec![10]),
    ] {
        let mut state = files.session.context.state();
        let plan = files.runtime.block_on(logical(&mut state, statement(sql).unwrap())).unwrap();
        assert_eq!(widths(&plan), expected, "{sql}");
    }
}

#[test]
fn rules_that_are_left_out_would_change_nothing() {
    let (_folder, dbs) = twice();
    let files = &dbs[1];
    for sql in STATEMENTS {
        let (mut few, all) = (files.session.context.state(), files.session.context.state());
        let Some(statement) = statement(sql) else { continue };
        let narrow = Words::of(&statement).is_some() && !sql.contains("FROM v");
        let plan = files.runtime.block_on(logical(&mut few, statement.clone()));
        let whole = files.runtime.block_on(all.statement_to_plan(statement));
        let (Ok(plan), Ok(whole)) = (plan, whole) else { continue };
        // None was planned again over all columns.
        assert!(!narrow || !widths(&plan).contains(&10), "{sql}");
        let expected = all.optimize(&whole).map(|plan| plan.display_indent().to_string());
        let optimized = optimized(&mut few, plan).map(|plan| plan.display_indent().to_string());
        assert_eq!(optimized.map_err(|e| e.to_string()), expected.map_err(|e| e.to_string()), "{sql}");
    }
}

#[test]
fn plans_say_why_groups_are_the_engines() {
    let (_folder, dbs) = twice();
    let files = &dbs[1];
    for (sql, expected) in [
        ("SELECT u, count(*) FROM t GROUP BY u", None),
        ("SELECT sum(u) FROM t WHERE id > 0", Some("native=no (one group)")),
        ("SELECT u, f, count(*) FROM t GROUP BY CUBE (u, f)", Some("native=no (grouping sets)")),
        ("SELECT u, array_agg(f ORDER BY id) FROM t GROUP BY u", Some("native=no (an aggregate in an order)")),
        ("SELECT place, count(*) FROM t GROUP BY place", Some("native=no (a key of nested or interval type)")),
    ] {
        files.rows("SET plinth.native = true");
        let plan = files.explain(sql);
        assert_eq!(plan.contains("GroupExec"), expected.is_none(), "{sql}: {plan}");
        assert_eq!(plan.matches("native=no").count(), usize::from(expected.is_some()), "{sql}: {plan}");
        assert!(expected.is_none_or(|reason| plan.contains(reason)), "{sql}: {plan}");
        files.rows("SET plinth.native = false");
        let plan = files.explain(sql);
        assert!(!plan.contains("native=no") && !plan.contains("GroupExec"), "{sql}: {plan}");
    }
}
