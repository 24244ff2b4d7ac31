//! `haversine`, `sum_exact` and `avg_exact` in SQL.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{ArrayRef, Float32Array, Float64Array, Int32Array, RecordBatch};
use datafusion::datasource::MemTable;
use datafusion::prelude::{SessionConfig, SessionContext};
use proptest::prelude::*;

/// A session with the functions, and so many partitions.
fn session(partitions: usize) -> SessionContext {
    let config = SessionConfig::new().with_target_partitions(partitions).with_batch_size(16);
    let context = SessionContext::new_with_config(config);
    plinth_datafusion::scalar_functions().into_iter().for_each(|function| context.register_udf(function));
    plinth_datafusion::aggregate_functions().into_iter().for_each(|function| context.register_udaf(function));
    context
}

fn run(context: &SessionContext, sql: &str) -> Result<Vec<RecordBatch>, String> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async { context.sql(sql).await?.collect().await }).map_err(|e| e.strip_backtrace())
}

/// The values of a column of a result.
fn floats(batches: &[RecordBatch], column: usize) -> Vec<Option<f64>> {
    let of = |batch: &RecordBatch| batch.column(column).as_primitive::<Float64Type>().iter().collect::<Vec<_>>();
    batches.iter().flat_map(of).collect()
}

fn ask(context: &SessionContext, sql: &str) -> Vec<Option<f64>> {
    floats(&run(context, sql).unwrap(), 0)
}

#[test]
fn haversine_takes_constants_and_columns_of_any_number_in_any_mixture() {
    let context = session(2);
    let columns: [(&str, ArrayRef); 4] = [
        ("a", Arc::new(Float64Array::from(vec![Some(52.5), None, Some(0.0), Some(90.0), Some(f64::NAN)]))),
        ("b", Arc::new(Float32Array::from(vec![13.5, 1.0, 0.0, -180.0, 7.0]))),
        ("c", Arc::new(Int32Array::from(vec![Some(48), Some(2), None, Some(-90), Some(8)]))),
        ("d", Arc::new(Float64Array::from(vec![2.25, 3.0, 180.0, 33.0, 9.0]))),
    ];
    context.register_batch("t", RecordBatch::try_from_iter(columns).unwrap()).unwrap();
    let half = std::f64::consts::PI * 6_371_008.8;
    let found = ask(&context, "SELECT haversine(a, b, c, d) FROM t");
    let first = ask(&context, "SELECT haversine(52.5, 13.5, 48, 2.25)")[0];
    assert!((first.unwrap() - 937_000.0).abs() < 10_000.0, "{first:?}");
    assert_eq!(found[..4], [first, None, None, Some(half)]);
    assert!(found[4].unwrap().is_nan());
    // A radius of one is the angle.
    let found = ask(&context, "SELECT haversine(a, b, c, d, 1) FROM t WHERE c = -90");
    assert_eq!(found, [Some(std::f64::consts::PI)]);
    let found = ask(&context, "SELECT haversine(0, 0, 0, 180.0, c) FROM t WHERE c > 0");
    assert_eq!(found, [48.0, 2.0, 8.0].map(|c| Some(std::f64::consts::PI * c)));
    assert_eq!(ask(&context, "SELECT haversine(0, 0, NULL, 180)"), [None]);
    assert_eq!(ask(&context, "SELECT haversine(0, 0, 0, 180, 6372.8)"), [Some(std::f64::consts::PI * 6_372.8)]);
    assert_eq!(ask(&context, "SELECT haversine(a, b, NULL, d) FROM t LIMIT 2"), [None, None]);
}

#[test]
fn what_the_functions_do_not_take_is_said() {
    let context = session(1);
    for (sql, expected) in [
        ("SELECT haversine(1, 2, 3)", "it was given 3 arguments"),
        ("SELECT haversine(1, 2, 3, 4, 5, 6)", "it was given 6 arguments"),
        ("SELECT haversine(1, 2, 'x', 4)", "CAST(x AS DOUBLE)"),
        ("SELECT sum_exact(x) FROM (VALUES (CAST(1 AS BIGINT))) AS t(x)", "sum is exact for it"),
        ("SELECT avg_exact(x) FROM (VALUES ('a')) AS t(x)", "avg_exact takes floats"),
    ] {
        let error = run(&context, sql).unwrap_err();
        assert!(error.contains(expected), "{sql}: {error}");
    }
}

#[test]
fn sums_are_exact_and_of_no_values_null() {
    let context = session(3);
    let values = "(VALUES (1e308), (1.0), (1e308), (-1e308), (1e-300), (-1e308), (NULL)) AS t(x)";
    assert_eq!(ask(&context, &format!("SELECT sum_exact(x) FROM {values}")), [Some(1.0)]);
    assert_eq!(ask(&context, &format!("SELECT avg_exact(x) FROM {values}")), [Some(1.0 / 6.0)]);
    assert_eq!(ask(&context, &format!("SELECT sum_exact(x) FROM {values} WHERE x > 2e308")), [None]);
    assert_eq!(
        ask(&context, &format!("SELECT sum_exact(x) FILTER (WHERE x < 2 AND x > 0) FROM {values}")),
        [Some(1.0)]
    );
    assert_eq!(ask(&context, &format!("SELECT sum_exact(x) OVER () FROM {values} LIMIT 1")), [Some(1.0)]);
    assert_eq!(ask(&context, "SELECT sum_exact(CAST(0.1 AS REAL))"), [Some(f64::from(0.1f32))]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn neither_partitions_nor_batches_nor_groups_change_a_bit(
        values in prop::collection::vec((prop::option::weighted(0.9, -1e9..1e9f64), -250..250i32, 0..7i32), 1..200),
        cuts in prop::collection::vec(1..40usize, 1..9),
        partitions in 1..5usize,
    ) {
        let scaled: Vec<(Option<f64>, i32)> =
            values.iter().map(|(value, scale, key)| (value.map(|value| value * 10f64.powi(*scale)), *key)).collect();
        let batch = |rows: &[(Option<f64>, i32)]| {
            let x: ArrayRef = Arc::new(rows.iter().map(|row| row.0).collect::<Float64Array>());
            let key: ArrayRef = Arc::new(rows.iter().map(|row| row.1).collect::<Int32Array>());
            RecordBatch::try_from_iter_with_nullable([("x", x, true), ("key", key, false)]).unwrap()
        };
        let ask = |batches: Vec<Vec<RecordBatch>>, partitions, sql| {
            let context = session(partitions);
            let schema = batches[0][0].schema();
            context.register_table("t", Arc::new(MemTable::try_new(schema, batches).unwrap())).unwrap();
            let found = run(&context, sql).unwrap();
            [0, 1].map(|column| floats(&found, column).into_iter().map(|x| x.map(f64::to_bits)).collect::<Vec<_>>())
        };
        let mut parts = Vec::new();
        let (mut rest, mut cuts) = (scaled.as_slice(), cuts.iter().cycle());
        while let (false, Some(cut)) = (rest.is_empty(), cuts.next()) {
            let (part, others) = rest.split_at((*cut).min(rest.len()));
            parts.push(vec![batch(part)]);
            rest = others;
        }
        parts.reverse();
        for sql in [
            "SELECT sum_exact(x), avg_exact(x) FROM t",
            "SELECT sum_exact(x), avg_exact(x) FROM t GROUP BY key ORDER BY key",
            "SELECT sum_exact(x), avg_exact(x) FROM t GROUP BY key, x ORDER BY key, x",
        ] {
            prop_assert_eq!(ask(vec![vec![batch(&scaled)]], 1, sql), ask(parts.clone(), partitions, sql), "{}", sql);
        }
    }
}
