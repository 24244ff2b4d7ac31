//! The types of parameters of statements that change rows.

use arrow_schema::DataType;

use super::*;

/// The types of a statement's parameters, in the order of their names.
fn types(db: &Db, sql: &str) -> Vec<Option<DataType>> {
    let statement = parse(sql).unwrap().pop().unwrap();
    db.runtime.block_on(db.session.parameter_types(statement)).unwrap().into_values().collect()
}

#[test]
fn places_have_the_types_of_their_columns() {
    let (_dir, db) = people();
    let (big, int, text) = (Some(DataType::Int64), Some(DataType::Int32), Some(DataType::Utf8View));
    for (sql, expected) in [
        ("INSERT INTO t VALUES ($1, $2, $3)", vec![big.clone(), text.clone(), int.clone()]),
        (
            "INSERT INTO t (n, id, name) VALUES ($1, $2, 'x'), (4, $3, $4)",
            vec![int.clone(), big.clone(), big.clone(), text.clone()],
        ),
        ("INSERT INTO t VALUES ($1, 'x', 1) ON CONFLICT (id) DO UPDATE SET n = $2", vec![big.clone(), int.clone()]),
        ("INSERT INTO t SELECT id + 10, name, n FROM t WHERE name = $1", vec![text.clone()]),
        ("UPDATE t SET name = $1, n = n + 1 WHERE id = $2 AND n < $3", vec![text.clone(), big.clone(), int.clone()]),
        ("UPDATE t AS u SET n = $1 WHERE u.name LIKE $2", vec![int.clone(), text.clone()]),
        ("DELETE FROM t WHERE id IN ($1, $2)", vec![big.clone(), big.clone()]),
        ("SELECT name FROM t WHERE id = $1", vec![big.clone()]),
        // Of what can't be told so nothing is said.
        ("DELETE FROM t USING t AS u WHERE t.id = u.id AND u.id = $1", vec![]),
        ("INSERT INTO missing VALUES ($1)", vec![]),
        ("CREATE TABLE x (a INT)", vec![]),
    ] {
        assert_eq!(types(&db, sql), expected, "{sql}");
    }
}
