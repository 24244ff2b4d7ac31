//! Byte ranges tile the rows of a file, however it is cut.

use std::sync::Arc;

use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::datatypes::Int64Type;
use datafusion::config::ConfigOptions;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfig, FileScanConfigBuilder};
use datafusion::datasource::source::DataSourceExec;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, collect};
use datafusion::prelude::SessionContext;
use plinth_datafusion::PlinthSource;
use proptest::prelude::*;

use crate::data::{Twins, batch, options, schema, session, write};

fn ids(batches: &[RecordBatch]) -> Vec<i64> {
    batches.iter().flat_map(|b| b.column_by_name("id").unwrap().as_primitive::<Int64Type>().values().to_vec()).collect()
}

fn scan(parts: Vec<PartitionedFile>) -> Arc<dyn ExecutionPlan> {
    let config = FileScanConfigBuilder::new(ObjectStoreUrl::local_filesystem(), Arc::new(PlinthSource::new(schema())))
        .with_file_group(FileGroup::new(parts))
        .with_projection_indices(Some(vec![0, 5]))
        .unwrap()
        .build();
    DataSourceExec::from_data_source(config)
}

async fn run(ctx: &SessionContext, plan: Arc<dyn ExecutionPlan>) -> Vec<i64> {
    ids(&collect(plan, ctx.task_ctx()).await.unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10))]

    #[test]
    fn any_cuts_read_every_row_once(rows in 1..30_000usize, cuts in prop::collection::vec(0.0..1.0f64, 0..6)) {
        let dir = tempfile::tempdir().unwrap();
        // By location, as a plan that travelled would have it; the name takes some care.
        let path = dir.path().join("zwei – mit Lücke.plinth");
        write(&path, &[batch(1, 0, rows)], options(1_024));
        let len = std::fs::metadata(&path).unwrap().len();
        #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let mut at: Vec<i64> = cuts.iter().map(|cut| (cut * len as f64) as i64).collect();
        at.extend([0, i64::try_from(len).unwrap()]);
        at.sort_unstable();
        let location = object_store::path::Path::from_absolute_path(path.canonicalize().unwrap()).unwrap();
        let parts = at.windows(2).map(|cut| {
            let mut part = PartitionedFile::new("", len).with_range(cut[0], cut[1]);
            part.object_meta.location = location.clone();
            part
        });
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let read = runtime.block_on(run(&session(1), scan(parts.collect())));
        prop_assert_eq!(read, (0..i64::try_from(rows).unwrap()).collect::<Vec<_>>());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn repartitioning_tiles_the_rows_and_gives_everyone_work() {
    let t = Twins::new(&[40_000, 10, 20_000], 8_192, 1);
    let provider = t.plinth.table_provider("t").await.unwrap();
    let whole = provider.scan(&t.plinth.state(), Some(&vec![0]), &[], None).await.unwrap();
    // Row groups: five, one and three.
    for target in 1..14 {
        let divided = whole.repartitioned(target, &ConfigOptions::default()).unwrap().unwrap();
        let partitions = divided.output_partitioning().partition_count();
        assert!(partitions <= target.min(9) && partitions >= target.min(7), "{target}: {partitions}");
        let config = divided.downcast_ref::<DataSourceExec>().unwrap().data_source();
        let config = config.downcast_ref::<FileScanConfig>().unwrap();
        assert!(config.file_groups.iter().all(|group| !group.is_empty()));
        // Partition by partition: each goes forward in the files.
        let mut read = Vec::new();
        for group in &config.file_groups {
            let here = run(&t.plinth, scan(group.files().to_vec())).await;
            assert!(here.is_sorted(), "{target}");
            read.extend(here);
        }
        read.sort_unstable();
        assert!(read == (0..60_010).collect::<Vec<_>>(), "{target}");
        // And as it runs.
        let mut read = run(&t.plinth, Arc::clone(&divided)).await;
        read.sort_unstable();
        assert!(read == (0..60_010).collect::<Vec<_>>(), "{target}");
        // What is divided can be divided again.
        let again = divided.repartitioned(3, &ConfigOptions::default()).unwrap().unwrap();
        assert_eq!(run(&t.plinth, again).await.len(), 60_010);
    }
}
