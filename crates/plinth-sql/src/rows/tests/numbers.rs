//! Numbers keep the digits that they are written with.

use proptest::prelude::*;

use super::Db;

fn prices() -> (tempfile::TempDir, Db) {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path());
    db.rows("CREATE TABLE p (id INT PRIMARY KEY, d DECIMAL(20, 2), x DOUBLE)");
    (dir, db)
}

#[test]
fn decimals_get_all_digits_of_a_number() {
    let (_dir, db) = prices();
    let long = "12345678901234567.89";
    db.rows(&format!("INSERT INTO p VALUES (1, {long}, 0.30000000000000004), (2, -{long}, 1e300), (3, 1.005, 1.005)"));
    assert_eq!(
        db.rows("SELECT * FROM p ORDER BY id"),
        [
            format!("1 {long} 0.30000000000000004"),
            format!("2 -{long} 1e300"),
            // Halves go away from zero.
            "3 1.01 1.005".to_owned()
        ]
    );
    // All of the ways that a number comes into a table.
    let ways = [
        format!("UPDATE p SET d = {long} WHERE id = 3"),
        format!("UPDATE p SET (d, x) = ({long}, 2.5) WHERE id = 3"),
        format!("UPDATE p SET d = CASE WHEN id = 3 THEN {long} ELSE 0.5 END WHERE id = 3"),
        format!("INSERT INTO p (id, d) SELECT 3, {long} WHERE true ON CONFLICT (id) DO UPDATE SET d = excluded.d"),
        format!("INSERT INTO p (id, d) VALUES (3, 1) ON CONFLICT (id) DO UPDATE SET d = p.d - p.d + {long}"),
        format!("MERGE INTO p USING (VALUES (3)) AS s(k) ON p.id = s.k WHEN MATCHED THEN UPDATE SET d = {long}"),
        format!("PREPARE u AS UPDATE p SET d = $1 WHERE id = 3; EXECUTE u({long})"),
        format!("DELETE FROM p WHERE id = 3; PREPARE i AS INSERT INTO p VALUES (3, $1, 0); EXECUTE i({long})"),
        format!(
            "DELETE FROM p WHERE id = 3; MERGE INTO p USING (VALUES (3)) AS s(k) ON p.id = s.k
                WHEN NOT MATCHED THEN INSERT (id, d) VALUES (s.k, {long})"
        ),
    ];
    for way in ways {
        db.rows("UPDATE p SET d = 1 WHERE id = 3");
        assert_eq!(db.rows(&way), ["1"], "{way}");
        assert_eq!(db.rows("SELECT d FROM p WHERE id = 3"), [long], "{way}");
    }
    db.rows("CREATE TABLE w (d DECIMAL(38, 0)); INSERT INTO w VALUES (99999999999999999999999999999999999999)");
    assert_eq!(db.rows("SELECT * FROM w"), ["99999999999999999999999999999999999999"]);
    db.rows("UPDATE w SET d = -9999999999999999999");
    assert_eq!(db.rows("SELECT * FROM w"), ["-9999999999999999999"]);
}

#[test]
fn decimals_are_compared_with_all_digits_of_a_number() {
    let (_dir, db) = prices();
    db.rows("INSERT INTO p VALUES (1, 12345678901234567.89, 0.1), (2, 12345678901234567.88, 0.07), (3, 0.07, 0.3)");
    let count = |filter: &str| db.rows(&format!("SELECT count(*), sum(id) FROM p WHERE {filter}"));
    assert_eq!(count("d = 12345678901234567.89"), ["1 1"]);
    assert_eq!(count("d <> 12345678901234567.89"), ["2 5"]);
    assert_eq!(count("12345678901234567.885 < d"), ["1 1"]);
    assert_eq!(count("d IN (12345678901234567.89, 0.07, 0.5)"), ["2 4"]);
    assert_eq!(count("d BETWEEN 12345678901234567.885 AND 12345678901234567.895"), ["1 1"]);
    assert_eq!(count("d IS NOT DISTINCT FROM 12345678901234567.88"), ["1 2"]);
    assert_eq!(count("d = 0.06 + 0.01"), ["1 3"]);
    assert_eq!(count("d + 0.01 = 12345678901234567.89"), ["1 2"]);
    assert_eq!(count("CASE WHEN id < 3 THEN d ELSE 0.5 END = 12345678901234567.89"), ["1 1"]);
    assert_eq!(count("coalesce(d, 0.5) = 12345678901234567.89"), ["1 1"]);
    assert_eq!(count("d > (SELECT 0.5 * min(d) FROM p) AND d < 0.5"), ["1 3"]);
    assert_eq!(db.rows("DELETE FROM p WHERE d = 12345678901234567.89"), ["1"]);
    assert_eq!(
        db.rows("SELECT d + 0.01, d * 1.5, d - 0.1 FROM p WHERE id = 2"),
        ["12345678901234567.89 18518518351851851.820 12345678901234567.78"]
    );
}

#[test]
fn other_numbers_stay_as_they_were() {
    let (_dir, db) = prices();
    db.rows("INSERT INTO p VALUES (1, 0.3, 0.30000000000000004), (2, 3, 3)");
    let of = |sql: &str| db.rows(&format!("SELECT arrow_typeof({sql}), {sql} FROM p WHERE id = 1"));
    assert_eq!(of("1.5"), ["Float64 1.5"]);
    assert_eq!(of("0.1 + 0.2"), ["Float64 0.30000000000000004"]);
    assert_eq!(of("0.1234567890123456789"), ["Decimal128(19, 19) 0.1234567890123456789"]);
    assert_eq!(of("-9223372036854775808"), ["Int64 -9223372036854775808"]);
    assert_eq!(of("18446744073709551615"), ["UInt64 18446744073709551615"]);
    assert_eq!(of("id / 3.0"), ["Float64 0.3333333333333333"]);
    assert_eq!(of("x + 0.1"), ["Float64 0.4"]);
    assert_eq!(of("d + x"), ["Float64 0.6000000000000001"]);
    assert_eq!(of("CAST(0.1 AS DOUBLE) + d"), ["Float64 0.4"]);
    assert_eq!(db.rows("SELECT count(*) FROM p WHERE x = 0.1 + 0.2"), ["1"]);
    assert_eq!(db.rows("SELECT count(*) FROM p WHERE x = 0.30000000000000004"), ["1"]);
    assert_eq!(db.rows("SELECT count(*) FROM p WHERE d < 1e300"), ["2"]);
    let wide = "d > -1e37 AND 1e37 > d AND d < 100000000000000000000000000000000000000.5";
    assert_eq!(db.rows(&format!("SELECT count(*) FROM p WHERE {wide}")), ["2"]);
    assert_eq!(db.rows("SELECT id FROM p WHERE id > 1.5"), ["2"]);
    db.fails("INSERT INTO p VALUES (4, 1e300, 0)", "DECIMAL");
    db.fails("INSERT INTO p VALUES (4, 1234567890123456789.5, 0)", "DECIMAL");
}

/// A number of so many digits, of which the last are behind the point: its text, and its value at a scale of eight, halves away from
/// zero.
fn number() -> impl Strategy<Value = (String, i128)> {
    ("[0-9]{1,20}", "[0-9]{0,14}", any::<bool>()).prop_map(|(whole, fraction, negative)| {
        let value: i128 = format!("{whole}{fraction:0<14}").parse().unwrap();
        let value = (value + 500_000) / 1_000_000;
        let (sign, value) = if negative { ("-", -value) } else { ("", value) };
        let point = if fraction.is_empty() { "" } else { "." };
        (format!("{sign}{whole}{point}{fraction}"), value)
    })
}

/// A decimal of scale eight as text.
fn shown(value: i128) -> String {
    let (sign, value) = if value < 0 { ("-", -value) } else { ("", value) };
    format!("{sign}{}.{:08}", value / 100_000_000, value % 100_000_000)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn any_number_is_kept_and_found(numbers in prop::collection::vec(number(), 1..12)) {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::open(dir.path());
        db.rows("CREATE TABLE n (id INT PRIMARY KEY, d DECIMAL(30, 8))");
        let rows: Vec<String> = numbers.iter().enumerate().map(|(id, (text, _))| format!("({id}, {text})")).collect();
        db.rows(&format!("INSERT INTO n VALUES {}", rows.join(", ")));
        let all: Vec<String> = numbers.iter().map(|(_, value)| shown(*value)).collect();
        assert_eq!(db.rows("SELECT d FROM n ORDER BY id"), all);
        for (text, value) in &numbers {
            let same = numbers.iter().filter(|(_, other)| other == value).count();
            let less = numbers.iter().filter(|(_, other)| other < value).count();
            let exact = shown(*value);
            assert_eq!(db.rows(&format!("SELECT count(*) FROM n WHERE d = {exact}")), [same.to_string()], "{text}");
            assert_eq!(db.rows(&format!("SELECT count(*) FROM n WHERE d < {exact}")), [less.to_string()], "{text}");
            assert_eq!(db.rows(&format!("SELECT CAST({text} AS DECIMAL(30, 8))")), [exact], "{text}");
        }
    }
}
