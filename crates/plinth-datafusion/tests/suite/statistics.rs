//! Statistics are exact, and cost no more than the columns they are about.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringViewArray};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::stats::Precision;
use datafusion::common::{ScalarValue, Statistics};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::prelude::SessionContext;
use plinth_datafusion::PlinthTable;

use crate::data::{Twins, options, session, write};

async fn statistics(ctx: &SessionContext, sql: &str) -> Statistics {
    let plan = ctx.sql(sql).await.unwrap().create_physical_plan().await.unwrap();
    of_plan(&plan)
}

fn of_plan(plan: &Arc<dyn ExecutionPlan>) -> Statistics {
    StatisticsContext::new().compute(plan.as_ref(), &StatisticsArgs::new()).unwrap().as_ref().clone()
}

#[tokio::test]
async fn rows_nulls_and_bounds_are_exact() {
    let t = Twins::new(&[4_000, 1_000], 1_024, 2);
    for column in ["id", "i", "u", "g", "s", "b", "d", "day", "t", "tz"] {
        let known = statistics(&t.plinth, &format!("SELECT {column} FROM t")).await;
        assert_eq!(known.num_rows, Precision::Exact(5_000));
        let column_statistics = &known.column_statistics[0];
        let sql = format!("SELECT count(*) - count({column}), min({column}), max({column}) FROM t");
        let batch = &t.memory.sql(&sql).await.unwrap().collect().await.unwrap()[0];
        let value = |i: usize| ScalarValue::try_from_array(batch.column(i), 0).unwrap();
        let ScalarValue::Int64(Some(nulls)) = value(0) else { panic!("a count") };
        assert_eq!(column_statistics.null_count, Precision::Exact(usize::try_from(nulls).unwrap()), "{column}");
        assert_eq!(column_statistics.min_value, Precision::Exact(value(1)), "{column}");
        assert_eq!(column_statistics.max_value, Precision::Exact(value(2)), "{column}");
    }
}

#[tokio::test]
async fn columns_that_were_not_asked_for_are_unknown() {
    let t = Twins::new(&[2_000], 1_024, 2);
    let plan = t.plinth.table("t").await.unwrap().into_optimized_plan().unwrap();
    let provider = t.plinth.table_provider("t").await.unwrap();
    drop(plan);
    let scan = provider.scan(&t.plinth.state(), Some(&vec![1]), &[], None).await.unwrap();
    let known = of_plan(&scan);
    assert_eq!(known.column_statistics.len(), 1);
    assert!(matches!(known.column_statistics[0].min_value, Precision::Exact(_)));
}

#[tokio::test]
async fn a_wide_table_reads_the_metadata_of_the_columns_it_needs() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("wide.plinth");
    let fields: Vec<Field> = (0..400).map(|i| Field::new(format!("c{i}"), DataType::Utf8View, true)).collect();
    let columns: Vec<ArrayRef> = (0..400)
        .map(|c| {
            Arc::new(StringViewArray::from_iter_values((0..64).map(|r| format!("value {c} of row {r}")))) as ArrayRef
        })
        .collect();
    write(&path, &[RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap()], options(1_024));

    let table = Arc::new(PlinthTable::open(vec![path]).unwrap());
    let ctx = session(2);
    ctx.register_table("t", Arc::clone(&table) as _).unwrap();
    let read = || table.files().next().unwrap().1.metadata_bytes_read();
    let all = table.files().next().unwrap().1.metadata_bytes();
    let opened = read();
    ctx.sql("SELECT count(*) FROM t").await.unwrap().collect().await.unwrap();
    assert_eq!(read(), opened, "counting rows needs the footer alone");
    ctx.sql("SELECT c7 FROM t WHERE c300 > 'value 300 of row 5'").await.unwrap().collect().await.unwrap();
    let two = read() - opened;
    assert!(two > 0 && two * 20 < all - opened, "two columns of 400 took {two} of {} bytes of metadata", all - opened);
}

#[tokio::test]
async fn nan_hides_the_bounds_of_floats() {
    let dir = tempfile::tempdir().unwrap();
    let make = |name: &str, values: Vec<Option<f64>>| {
        let path = dir.path().join(name);
        let schema = Arc::new(Schema::new(vec![Field::new("f", DataType::Float64, true)]));
        write(
            &path,
            &[RecordBatch::try_new(schema, vec![Arc::new(Float64Array::from(values))]).unwrap()],
            options(1_024),
        );
        path
    };
    let plain = make("plain.plinth", vec![Some(1.0), None, Some(-3.0)]);
    let nan = make("nan.plinth", vec![Some(f64::NAN), Some(2.0)]);
    let nulls = make("nulls.plinth", vec![None, None]);
    let ctx = session(1);
    let known = async |files: Vec<_>| {
        ctx.deregister_table("t").unwrap();
        ctx.register_table("t", Arc::new(PlinthTable::open(files).unwrap())).unwrap();
        statistics(&ctx, "SELECT f FROM t").await.column_statistics[0].clone()
    };
    let min = known(vec![plain.clone(), nulls.clone()]).await;
    assert_eq!(min.min_value, Precision::Exact(ScalarValue::Float64(Some(-3.0))));
    assert_eq!(min.max_value, Precision::Exact(ScalarValue::Float64(Some(1.0))));
    assert_eq!(min.null_count, Precision::Exact(3));
    let min = known(vec![plain, nan, nulls.clone()]).await;
    assert_eq!((min.min_value, min.max_value), (Precision::Absent, Precision::Absent));
    assert_eq!(known(vec![nulls]).await.min_value, Precision::Absent);
}

/// Long values may be cut in the metadata: a bound then is not an answer.
#[tokio::test]
async fn the_smallest_of_long_values_is_still_right() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("long.plinth");
    let values = StringViewArray::from_iter_values((0..3_000).map(|i| format!("{}{i:05}", "x".repeat(300))));
    let schema = Arc::new(Schema::new(vec![
        Field::new("s", DataType::Utf8View, false),
        Field::new("n", DataType::Int64, false),
    ]));
    let numbers = Int64Array::from_iter_values(0..3_000);
    write(&path, &[RecordBatch::try_new(schema, vec![Arc::new(values), Arc::new(numbers)]).unwrap()], options(1_024));
    let ctx = session(2);
    ctx.register_table("t", Arc::new(PlinthTable::open(vec![path]).unwrap())).unwrap();
    let rows =
        crate::data::rows(&ctx, "SELECT right(min(s), 5), right(max(s), 5), length(max(s)) FROM t").await.unwrap();
    assert_eq!(rows, ["|00000|02999|305|"]);
}
