use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use datafusion_common::DataFusionError;
use datafusion_execution::memory_pool::{GreedyMemoryPool, MemoryPool};
use proptest::prelude::*;

use super::*;

/// What a partition gives: batches of so many rows, each after so many microseconds.
type Partition = Vec<(usize, u64)>;

fn partitions() -> impl Strategy<Value = Vec<Partition>> {
    proptest::collection::vec(proptest::collection::vec((0_usize..50, 0_u64..300), 0..6), 1..90)
}

fn batch(from: i64, rows: usize) -> RecordBatch {
    let values: ArrayRef = Arc::new(Int64Array::from_iter_values(from..from + i64::try_from(rows).unwrap()));
    RecordBatch::try_from_iter([("n", values)]).unwrap()
}

/// The numbers that come out, or the error, and how many bytes are still held.
fn gathered(
    given: &[Partition],
    fails: Option<usize>,
    threads: usize,
    memory: usize,
    limit: Option<usize>,
) -> (Result<Vec<i64>>, usize) {
    let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(memory));
    let reservation = MemoryConsumer::new("test").register(&pool);
    let queue = Arc::new(Queue::new(Some(given.len()), reservation, memory / 2, limit.is_some()));
    let mut starts = vec![0_i64];
    for partition in given {
        let rows: usize = partition.iter().map(|(rows, _)| rows).sum();
        starts.push(starts.last().unwrap() + i64::try_from(rows).unwrap());
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build().unwrap();
    let result = runtime.block_on(async {
        let mut workers = JoinSet::new();
        for _ in 0..threads {
            let (queue, given, starts) = (Arc::clone(&queue), given.to_vec(), starts.clone());
            workers.spawn(async move {
                while let Some(partition) = queue.take().await {
                    let mut from = starts[partition];
                    for &(rows, wait) in &given[partition] {
                        tokio::time::sleep(Duration::from_micros(wait)).await;
                        queue.push(partition, Ok(batch(from, rows))).await;
                        from += i64::try_from(rows).unwrap();
                    }
                    if fails == Some(partition) {
                        return queue.push(partition, Err(DataFusionError::Execution("damaged".to_owned()))).await;
                    }
                    queue.end(partition);
                }
            });
        }
        let mut gathered = Gathered { queue: Arc::clone(&queue), workers, left: limit };
        let mut numbers = Vec::new();
        while let Some(batch) = gathered.next().await? {
            numbers.extend(batch.column(0).as_primitive::<Int64Type>().values());
        }
        Ok(numbers)
    });
    drop((runtime, queue));
    (result, pool.reserved())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn rows_come_in_order_whatever_the_memory(
        given in partitions(), threads in 1_usize..6, memory in prop_oneof![Just(0_usize), 100_usize..5_000, Just(usize::MAX)],
        limit in proptest::option::of(0_usize..3_000), fails in proptest::option::of(0_usize..200),
    ) {
        let all: usize = given.iter().flatten().map(|(rows, _)| rows).sum();
        let before = |partition| given.iter().take(partition).flatten().map(|(rows, _)| rows).sum::<usize>();
        let (numbers, held) = gathered(&given, fails, threads, memory, limit);
        prop_assert_eq!(held, 0);
        // Rows of the partition that fails come before its error.
        let failure = fails.filter(|&partition| partition < given.len()).map(|partition| before(partition + 1));
        let wanted = limit.unwrap_or(usize::MAX);
        match (failure, numbers) {
            (Some(good), Err(error)) => prop_assert!(good <= wanted && error.to_string().contains("damaged")),
            (failure, numbers) => {
                prop_assert!(failure.is_none_or(|good| good >= wanted));
                let expected = 0..i64::try_from(all.min(wanted)).unwrap();
                prop_assert_eq!(numbers.unwrap(), expected.collect::<Vec<_>>());
            }
        }
    }
}

#[test]
fn a_worker_that_panics_ends_the_rows() {
    let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(1000));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let queue = Arc::new(Queue::new(Some(3), MemoryConsumer::new("test").register(&pool), 1000, false));
    let ended = runtime.block_on(async {
        let mut workers = JoinSet::new();
        let taken = Arc::clone(&queue);
        workers.spawn(async move {
            taken.take().await;
            panic!("provoked");
        });
        Gathered { queue, workers, left: None }.next().await
    });
    assert!(ended.is_err());
}
