//! A translated predicate means what the engine's predicate means.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{Array, BooleanArray, RecordBatch, new_null_array};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::logical_expr::Operator;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, Column, DynamicFilterPhysicalExpr, LikeExpr, in_list, lit};
use datafusion::prelude::SessionContext;
use plinth_datafusion::{PredicateTranslator, can_own};
use plinth_encoding::expr::Expr;
use proptest::prelude::*;

use crate::data::{WORDS, batch, schema};
use crate::model::evaluate;

static SESSION: LazyLock<SessionContext> = LazyLock::new(SessionContext::new);

/// As a query would plan it.
fn parse(sql: &str) -> Arc<dyn PhysicalExpr> {
    plan(sql, true)
}

fn plan(sql: &str, simplify: bool) -> Arc<dyn PhysicalExpr> {
    let schema = DFSchema::try_from(schema()).unwrap();
    let mut expr = SESSION.parse_sql_expr(sql, &schema).unwrap_or_else(|e| panic!("{sql}: {e}"));
    if simplify {
        let context = SimplifyContext::builder().with_schema(Arc::new(schema.clone())).with_current_time().build();
        let simplifier = ExprSimplifier::new(context);
        expr = simplifier.simplify(simplifier.coerce(expr, &schema).unwrap()).unwrap();
    }
    SESSION.create_physical_expr(expr, &schema).unwrap_or_else(|e| panic!("{sql}: {e}"))
}

fn table() -> TableSchema {
    schema().into()
}

fn translate(expr: &Arc<dyn PhysicalExpr>) -> Expr {
    PredicateTranslator::try_new(&table(), &schema(), &[]).unwrap().translate(expr).unwrap()
}

fn engine(expr: &Arc<dyn PhysicalExpr>, batch: &RecordBatch) -> Vec<Option<bool>> {
    let array = expr.evaluate(batch).unwrap().into_array(batch.num_rows()).unwrap();
    // A bare NULL has no type yet.
    array.as_any().downcast_ref::<BooleanArray>().map_or(vec![None; array.len()], |array| array.iter().collect())
}

fn check(expr: &Arc<dyn PhysicalExpr>, batch: &RecordBatch) {
    let translated = translate(expr);
    assert_eq!(evaluate(&translated, batch), engine(expr, batch), "{expr}\nbecame {translated}");
}

/// Whether any part of a predicate is opaque to the scan.
fn is_opaque(expr: &Expr) -> bool {
    match expr {
        Expr::Function(_) => true,
        Expr::Not(inner) => is_opaque(inner),
        Expr::And(parts) | Expr::Or(parts) => parts.iter().any(is_opaque),
        _ => false,
    }
}

const OPERATORS: [&str; 8] = ["=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"];

/// A column with a way to write constants of its type.
fn comparison() -> impl Strategy<Value = String> {
    let word = || prop::sample::select(WORDS.as_slice()).prop_map(|w| format!("'{w}'"));
    let side = prop_oneof![
        (Just("i"), (-6..40i64).prop_map(|v| v.to_string()).boxed()),
        (Just("u"), (0..110u64).prop_map(|v| v.to_string()).boxed()),
        (Just("f"), prop::sample::select(vec!["0.0", "-0.0", "1.5", "1e300", "7"]).prop_map(str::to_owned).boxed()),
        (Just("g"), prop::sample::select(vec!["0.5", "0.1", "-1", "3.25"]).prop_map(str::to_owned).boxed()),
        (Just("s"), word().boxed()),
        (Just("bin"), word().boxed()),
        (Just("b"), any::<bool>().prop_map(|v| v.to_string()).boxed()),
        (Just("d"), prop::sample::select(vec!["1.25", "1.2", "0.005", "-2", "2.500"]).prop_map(str::to_owned).boxed()),
        (Just("day"), (0..28u32).prop_map(|v| format!("DATE '2022-06-{:02}'", v + 1)).boxed()),
        (Just("t"), (0..60u32).prop_map(|v| format!("TIMESTAMP '2023-11-18T00:00:{v:02}'")).boxed()),
        (Just("tz"), (0..60u32).prop_map(|v| format!("TIMESTAMP '2023-11-14T22:20:{v:02}Z'")).boxed()),
        (Just("st['a']"), (0..30i64).prop_map(|v| v.to_string()).boxed()),
        (Just("st['n']['x']"), word().boxed()),
        (Just("st['n']['y']"), Just("0.25".to_owned()).boxed()),
        (Just("i"), Just("NULL".to_owned()).boxed()),
        (Just("i"), Just("u".to_owned()).boxed()),
        (Just("i + 1"), Just("3".to_owned()).boxed()),
        (Just("CAST(i AS BIGINT)"), Just("2".to_owned()).boxed()),
        (Just("CAST(i AS DOUBLE)"), Just("2.5".to_owned()).boxed()),
        (Just("length(s)"), Just("3".to_owned()).boxed()),
    ];
    (side, prop::sample::select(OPERATORS.as_slice()), any::<bool>()).prop_map(|((column, constant), op, flip)| {
        if flip { format!("{constant} {op} {column}") } else { format!("{column} {op} {constant}") }
    })
}

fn leaf() -> impl Strategy<Value = String> {
    let fixed = prop::sample::select(vec![
        "b",
        "NOT b",
        "b IS TRUE",
        "b IS NOT FALSE",
        "b IS UNKNOWN",
        "true",
        "NULL",
        "i IS NULL",
        "s IS NOT NULL",
        "st IS NULL",
        "st['a'] IS NOT NULL",
        "l IS NULL",
        "st IS NOT NULL AND st['a'] > 3",
        "array_has(l, 2)",
        "i BETWEEN 2 AND 9",
        "i NOT BETWEEN 2 AND 9",
        "s BETWEEN 'a' AND 'abc'",
        "upper(s) = 'AB'",
        "coalesce(i, 0) = 0",
        "CASE WHEN i > 3 THEN s = 'a' WHEN b THEN NULL ELSE u > 50 END",
        "s ~ '^a.c$'",
        "s ILIKE 'zEB%'",
        "s = st['n']['x']",
        "starts_with(s, 'a_')",
        "s IN ('a', 'nope', 'abc')",
        "i IN (1, NULL, 3)",
        "i NOT IN (1, NULL, 3)",
        "i NOT IN (1, 2, 3, 4, 5, 6, 7)",
        "s NOT IN ('a', NULL)",
        "f IN (-0.0, 0.0, 1.5)",
        "b IN (true, NULL)",
        "d IN (1.25, 2.5)",
        "day IN (DATE '2022-06-01', DATE '2022-07-02')",
        "NULL IN (1, 2)",
        "i IN (NULL)",
        "st['a'] IN (1, 2, 3, 4, NULL)",
        "octet_length(st['n']['x']) > 2",
        "i % 3 = 1 AND s LIKE '%c%'",
    ])
    .prop_map(str::to_owned);
    let like = (
        prop::sample::select(vec!["LIKE", "NOT LIKE", "ILIKE"]),
        prop::sample::select(vec![
            "abc%",
            "a%",
            "%",
            "",
            "abc",
            "a_c",
            r"a\_c",
            r"a\_%",
            r"a\%c",
            "%example%",
            "http://%",
            "größ%",
            "a%c",
            "%%",
            r"a\",
        ]),
    )
        .prop_map(|(op, pattern)| format!("s {op} '{pattern}'"));
    prop_oneof![4 => comparison(), 3 => fixed, 2 => like]
}

fn predicate() -> impl Strategy<Value = String> {
    leaf().prop_recursive(4, 24, 3, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a}) AND ({b})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a}) OR ({b})")),
            inner.prop_map(|a| format!("NOT ({a})")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn a_translated_predicate_answers_as_the_engine_does(
        sql in predicate(),
        simplify: bool,
        seed in 0..50u64,
        rows in 0..80usize,
    ) {
        let (expr, batch) = (plan(&sql, simplify), batch(seed, seed * 10, rows));
        // One function exists only until it is simplified. (Whether evaluating it fails depends on the rows that reach it.)
        prop_assume!(simplify || !sql.contains("coalesce"));
        check(&expr, &batch);
    }

    /// A file without some of the table's columns answers as if they were null.
    #[test]
    fn columns_a_file_lacks_are_null(sql in predicate(), missing in prop::collection::vec(0..14usize, 1..10), seed in 0..50u64) {
        let full = batch(seed, seed * 10, 40);
        let nulled = full.columns().iter().enumerate().map(|(i, column)| match missing.contains(&i) {
            true => new_null_array(column.data_type(), column.len()),
            false => Arc::clone(column),
        });
        let nullable: Vec<Field> = schema().fields().iter().map(|f| f.as_ref().clone().with_nullable(true)).collect();
        let nulled = RecordBatch::try_new(Arc::new(Schema::new(nullable)), nulled.collect()).unwrap();
        let kept: Vec<usize> = (0..14).filter(|i| !missing.contains(i)).collect();
        let file = full.project(&kept).unwrap();

        let expr = parse(&sql);
        let translated =
            PredicateTranslator::try_new(&table(), &file.schema(), &[]).unwrap().translate(&expr).unwrap();
        prop_assert_eq!(evaluate(&translated, &file), engine(&expr, &nulled), "{} became {}", sql, translated);
    }

    /// Patterns of every kind, as the engine's own LIKE reads them.
    #[test]
    fn like_is_the_engines_like(
        pattern in r"[ab%_\\]{0,5}",
        values in prop::collection::vec(prop::option::of(r"[ab%_\\]{0,5}"), 1..40),
        negated: bool,
    ) {
        let schema = Arc::new(Schema::new(vec![Field::new("s", DataType::Utf8View, true)]));
        let values = datafusion::arrow::array::StringViewArray::from_iter(values);
        let batch = RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(values)]).unwrap();
        let column = Arc::new(Column::new("s", 0));
        let literal = lit(ScalarValue::Utf8View(Some(pattern)));
        let expr: Arc<dyn PhysicalExpr> = Arc::new(LikeExpr::new(negated, false, column, literal));
        let translator = PredicateTranslator::try_new(&Arc::clone(&schema).into(), &schema, &[]).unwrap();
        let translated = translator.translate(&expr).unwrap();
        prop_assert_eq!(evaluate(&translated, &batch), engine(&expr, &batch), "{} became {}", expr, translated);
    }
}

#[test]
fn what_encoded_data_can_answer_is_not_left_to_functions() {
    let transparent = [
        "i = 3",
        "3 < i",
        "i <> 3",
        "NOT (i = 3)",
        "u >= 18446744073709551615",
        "f < 1.5",
        "g = 0.5",
        "s = 'a'",
        "s LIKE 'abc%'",
        "s NOT LIKE 'abc%'",
        "starts_with(s, 'ab')",
        "s LIKE 'abc'",
        "b",
        "NOT b",
        "b IS TRUE",
        "i IS NULL",
        "st IS NOT NULL",
        "st['a'] = 3",
        "st['n']['x'] LIKE 'a%'",
        "i IN (1, 2, 3, 4, 5, 6)",
        "i NOT IN (1, 2, NULL)",
        "i BETWEEN 1 AND 2",
        "d = 1.25",
        "d < 2",
        "day = DATE '2022-06-01'",
        "t > TIMESTAMP '2023-11-18T00:00:00'",
        "tz > TIMESTAMP '2023-11-14T22:20:00Z'",
        "i IS DISTINCT FROM 3",
        "bin = 'abc'",
        "CAST(i AS BIGINT) > 5",
        "CAST(g AS DOUBLE) > 0.1",
        "i = 1 OR (s = 'a' AND NOT b)",
        "l IS NULL",
    ];
    for sql in transparent {
        let translated = translate(&parse(sql));
        assert!(!is_opaque(&translated), "{sql} became {translated}");
    }
    for sql in ["s LIKE '%abc%'", "length(s) > 3", "i = u", "s ~ 'a'", "CAST(i AS DOUBLE) > 2.5", "array_has(l, 2)"] {
        let translated = translate(&parse(sql));
        assert!(is_opaque(&translated), "{sql} became {translated}");
    }
}

#[test]
fn a_function_reads_only_the_fields_it_mentions() {
    let columns = |sql: &str| translate(&parse(sql)).columns().iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(columns("upper(st['n']['x']) = 'A'"), ["st.n.x"]);
    assert_eq!(columns("length(s) > st['a']"), ["s", "st.a"]);
    // One function that wants both a struct and its field reads the struct once.
    assert_eq!(columns("coalesce(st['a'], CAST(st IS NULL AS BIGINT)) > 2"), ["st"]);
}

#[test]
fn deep_chains_and_long_lists_translate() {
    let column: Arc<dyn PhysicalExpr> = Arc::new(Column::new("i", 1));
    let equal =
        |v: i32| -> Arc<dyn PhysicalExpr> { Arc::new(BinaryExpr::new(Arc::clone(&column), Operator::Eq, lit(v))) };
    let chain = (1..300).fold(equal(0), |all, v| Arc::new(BinaryExpr::new(all, Operator::Or, equal(v))));
    let Expr::Or(parts) = translate(&chain) else { panic!("not an OR") };
    assert_eq!(parts.len(), 300);

    let list = in_list(Arc::clone(&column), (0..10_000).map(lit).collect(), &false, &schema()).unwrap();
    let Expr::In { values, .. } = translate(&list) else { panic!("not an IN") };
    assert_eq!(values.len(), 10_000);
    check(&list, &batch(1, 0, 50));
}

#[test]
fn what_a_scan_may_own() {
    for sql in ["i = 3", "upper(s) = 'A'", "b", "array_has(l, 1)", "true"] {
        assert!(can_own(&parse(sql), &table()), "{sql}");
    }
    for sql in ["random() < 0.5", "i > random() * 10", "i + 1", "s"] {
        assert!(!can_own(&parse(sql), &table()), "{sql}");
    }
    let beyond: Arc<dyn PhysicalExpr> =
        Arc::new(BinaryExpr::new(Arc::new(Column::new("no", 99)), Operator::Eq, lit(1)));
    assert!(!can_own(&beyond, &table()));
}

#[test]
fn partition_columns_are_constants() {
    let partition = Arc::new(Field::new("p", DataType::Int32, false));
    let table = TableSchema::builder(schema()).with_table_partition_cols(vec![partition]).build();
    let translator = |p| PredicateTranslator::try_new(&table, &schema(), &[ScalarValue::Int32(Some(p))]).unwrap();
    let p: Arc<dyn PhysicalExpr> = Arc::new(Column::new("p", 14));
    let equal: Arc<dyn PhysicalExpr> = Arc::new(BinaryExpr::new(Arc::clone(&p), Operator::Eq, lit(3)));
    assert!(matches!(translator(3).translate(&equal).unwrap(), Expr::Literal(Some(true))));
    assert!(matches!(translator(4).translate(&equal).unwrap(), Expr::Literal(Some(false))));
    // A comparison with another column becomes a comparison with the constant.
    let mixed: Arc<dyn PhysicalExpr> = Arc::new(BinaryExpr::new(p, Operator::Lt, Arc::new(Column::new("i", 1))));
    let translated = translator(3).translate(&mixed).unwrap();
    assert_eq!(translated.to_string(), "i > 3");
    assert!(PredicateTranslator::try_new(&table, &schema(), &[]).is_err());
}

#[test]
fn a_functions_error_is_the_engines_message() {
    let Expr::Function(function) = translate(&parse("10 / (i - i) > 1")) else { panic!("not a function") };
    let one = batch(3, 0, 8).column_by_name("i").unwrap().slice(0, 8);
    let error = function.function.evaluate(&[one]).unwrap_err();
    assert!(error.to_lowercase().contains("divide by zero"), "{error}");
}

#[test]
fn a_dynamic_filter_is_owned_and_shows_its_current_form() {
    let i: Arc<dyn PhysicalExpr> = Arc::new(Column::new("i", 1));
    let dynamic = Arc::new(DynamicFilterPhysicalExpr::new(vec![Arc::clone(&i)], lit(true)));
    let expr: Arc<dyn PhysicalExpr> = Arc::clone(&dynamic) as _;
    assert!(can_own(&expr, &table()));
    dynamic.update(Arc::new(BinaryExpr::new(i, Operator::Lt, lit(5)))).unwrap();
    // As it stands it is a function that follows the updates; a scan asks for snapshots instead.
    check(&expr, &batch(1, 0, 30));
}
