//! What `File::conformance` says: nothing of the files that our writer makes, and which lie of the files of others.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Int16Array, Int64Array, RecordBatch, StringArray};
use plinth_encoding::Effort;
use plinth_encoding::expr::Path;
use plinth_format::{Exactness, File, WriterOptions};
use plinth_io::MemorySource;

use crate::data::{Random, small, wide_batch, words, write};
use crate::forge::Forged;

const EFFORTS: [Effort; 4] = [Effort::Plain, Effort::Fast, Effort::Balanced, Effort::Compact];

#[test]
fn the_writer_keeps_to_the_format() {
    let dir = tempfile::tempdir().unwrap();
    for (at, effort) in EFFORTS.into_iter().enumerate() {
        for (rows, percent) in [(0, 0), (1, 100), (5_000, 10)] {
            let options = WriterOptions { effort, dictionary_values: 700, index: vec!["c5".into()], ..small() };
            let file =
                write(&dir.path().join(format!("{at}-{rows}")), &wide_batch(rows as u64, rows, percent), options);
            assert_eq!(file.conformance(2).unwrap(), Vec::<String>::new(), "{effort:?}, {rows} rows");
        }
    }
}

/// A file of sorted numbers, text of few values and text of many.
fn sample(dir: &std::path::Path) -> (Vec<u8>, RecordBatch) {
    let mut random = Random(7);
    let few = words(&mut random, 6_000, 40, 1);
    let many = words(&mut random, 6_000, 100_000, 3);
    let batch = RecordBatch::try_from_iter([
        ("n", Arc::new(Int64Array::from_iter_values((0..6_000).map(|i| i * 3 - 500))) as ArrayRef),
        ("few", Arc::new(StringArray::from(few)) as ArrayRef),
        ("many", Arc::new(StringArray::from(many)) as ArrayRef),
    ])
    .unwrap();
    let path = dir.join("sample.plinth");
    write(&path, &batch, small());
    (std::fs::read(&path).unwrap(), batch)
}

fn open(bytes: &[u8]) -> File {
    File::from_source(Arc::new(MemorySource::new("forged", bytes))).unwrap()
}

#[test]
fn statistics_are_those_of_the_values() {
    let dir = tempfile::tempdir().unwrap();
    let (bytes, batch) = sample(dir.path());
    let file = open(&bytes);
    let of = |name: &str| file.statistics(&Path::column(name)).unwrap();
    let n = of("n");
    assert_eq!(n.sum, Some((0..6_000).map(|i| i * 3 - 500).sum::<i128>()));
    assert!(n.order.ascends && !n.order.descends && n.order.differs);
    let details = file.details(&Path::column("n")).unwrap();
    let sums: Vec<i128> = (0..6)
        .map(|block| (block * 1024..((block + 1) * 1024).min(6_000)).map(|i| i128::from(i * 3 - 500)).sum())
        .collect();
    assert_eq!(details.sums, Some(sums));
    // In their order, all of them differ.
    assert_eq!(n.distinct_count, Some((6_000, Exactness::Exact)));
    assert!((5_000..7_000).contains(&file.sketch(&Path::column("n")).unwrap().unwrap().estimate()));
    for name in ["few", "many"] {
        let column = batch.column_by_name(name).unwrap();
        let values: std::collections::BTreeSet<&str> =
            column.as_any().downcast_ref::<StringArray>().unwrap().iter().flatten().collect();
        let statistics = of(name);
        let (distinct, _) = statistics.distinct_count.unwrap();
        assert!(
            distinct.abs_diff(values.len() as u64) * 20 <= values.len() as u64,
            "{name}: {distinct} of {}",
            values.len()
        );
        assert!(statistics.sum.is_none() && !statistics.order.is_sorted());
    }
}

#[test]
fn a_feature_is_named_where_a_block_needs_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut random = Random(8);
    // Too narrow for a dictionary.
    let pool: Vec<i16> = (0..30).map(|_| random.next_u64() as i16).collect();
    let visits = (0..6_000).map(|_| pool[random.below(30) as usize]);
    let numbers: [(ArrayRef, u32); 2] =
        [(Arc::new(Int16Array::from_iter_values(visits)), 2), (Arc::new(Int64Array::from(vec![7; 6_000])), 0)];
    for (array, features) in numbers {
        let batch = RecordBatch::try_from_iter([("n", array)]).unwrap();
        let path = dir.path().join("features.plinth");
        let options = WriterOptions { replace: true, ..small() };
        let file = write(&path, &batch, options);
        assert_eq!(file.conformance(1).unwrap(), Vec::<String>::new());
        let mut forged = Forged::new(&std::fs::read(&path).unwrap(), 1);
        assert_eq!(forged.features, features);
        forged.features = 0;
        let said = open(&forged.seal()).conformance(1).unwrap();
        assert_eq!(said.is_empty(), features == 0, "{said:?}");
        assert!(
            said.iter().all(|said| said.contains("needs features that the tail does not name (bits 0b10)")),
            "{said:?}"
        );
    }
}

#[test]
fn what_another_writer_claims_wrongly_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let (bytes, _) = sample(dir.path());
    // Of the metadata of stream 0: nulls, values, bytes in memory, zone (tag 1, 2 + 2 bytes), flags, sum, distinct.
    let metadata = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut forged = Forged::new(&bytes, 3);
        let mut meta = forged.body[forged.metadata(0)].to_vec();
        change(&mut meta);
        forged.set_metadata(0, &meta);
        open(&forged.seal()).conformance(1).unwrap()
    };
    assert_eq!(metadata(&|_| {}), Vec::<String>::new());
    let meta = Forged::new(&bytes, 3);
    let meta = meta.body[meta.metadata(0)].to_vec();
    let zone = 1 + 2 + 3;
    assert_eq!(meta[zone], 1, "{:?}", &meta[..16]);
    let said = metadata(&|meta| meta[zone + 1] ^= 2);
    assert!(said.len() == 1 && said[0].contains("column \"n\": the zone map says"), "{said:?}");
    let flags = zone + 1 + 2 + 3;
    assert_eq!(meta[flags], 0b11101, "{:?}", &meta[..16]);
    let said = metadata(&|meta| meta[flags] |= 2);
    assert!(said.len() == 1 && said[0].contains("not in the order"), "{said:?}");
    let said = metadata(&|meta| meta[flags + 1] ^= 2);
    assert!(said.len() == 1 && said[0].contains("a sum of"), "{said:?}");
}
