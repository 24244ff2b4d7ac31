//! Random files, predicates, limits and batch sizes.

use crate::data::Random;
use crate::queries::FILTERS;

use super::data::{Pair, config, properties, rows, within};

/// Predicates on the columns that only Parquet files of these tests have.
const MORE: [&str; 39] = [
    "i8 > 100",
    "i16 BETWEEN -10 AND 10",
    "u8 = 255",
    "u16 > 65000",
    "u32 > 4000000000",
    "u32 IN (4294967295, 5)",
    "f16 <= CAST(-1.5 AS FLOAT)",
    "d64 > TIMESTAMP '1970-01-20T00:00:00'",
    "t32 > TIME '12:00:00'",
    "ms < TIMESTAMP '1970-01-01T00:00:00'",
    "ms IS NULL",
    "unique LIKE 'row 1%'",
    "unique LIKE '%google%'",
    "unique NOT LIKE '%google%'",
    "unique LIKE '%e%o%'",
    "unique NOT LIKE '%example%1'",
    "unique LIKE 'http%com%2'",
    "unique LIKE '%%a%%'",
    r"unique NOT LIKE '%\%%b%'",
    "dict NOT LIKE 'h%e%'",
    "unique = 'row 77 of abc'",
    "unique IS NULL",
    "large LIKE '%http%' AND u < 10",
    "dict = 'abc'",
    "dict LIKE 'http%'",
    "dict IS NULL",
    "dec38 > 0",
    "dec38 IS NULL OR u = 4",
    "dec76 = 0",
    "required = 3",
    "required + i8 > 20",
    "required IS NULL",
    "fixed IS NOT NULL AND required < 2",
    "map IS NULL",
    "cardinality(ls) > 2",
    "ls IS NULL",
    "pair IS NULL AND u > 50",
    "req_st['x'] IS NULL",
    "opt_st IS NULL",
];

async fn a_file(seed: u64) {
    let r = &mut Random(seed);
    let count = [1, 500, 9_000, 20_000][usize::try_from(r.below(4)).unwrap()];
    let batch = rows(seed, 0, count);
    let written = properties(r).build();
    let batch_rows = [300, 1_000, 8_192, 20_000][usize::try_from(r.below(4)).unwrap()];
    let memory = [1 << 20, 16 << 20, 1 << 30][usize::try_from(r.below(3)).unwrap()];
    let pair = Pair::within(std::slice::from_ref(&batch), written, config(1, batch_rows), within(memory)).await;
    pair.agree("SELECT * FROM t").await;
    pair.agree("SELECT count(*) FROM t").await;
    let all: Vec<&str> = FILTERS.iter().chain(&MORE).copied().collect();
    let pick = |r: &mut Random| all[usize::try_from(r.below(all.len() as u64)).unwrap()];
    for _ in 0..14 {
        let filter = match r.below(4) {
            0 => pick(r).to_owned(),
            1 => format!("NOT ({})", pick(r)),
            2 => format!("({}) OR ({})", pick(r), pick(r)),
            _ => format!("({}) AND ({})", pick(r), pick(r)),
        };
        let names: Vec<String> = batch.schema().fields().iter().map(|field| field.name().clone()).collect();
        let columns = match r.below(4) {
            0 => "*".to_owned(),
            1 => "id".to_owned(),
            _ => {
                let some =
                    (0..=r.below(4)).map(|_| names[usize::try_from(r.below(names.len() as u64)).unwrap()].clone());
                let mut some: Vec<String> = some.collect();
                some.sort();
                some.dedup();
                some.join(", ")
            }
        };
        let limit = if r.below(3) == 0 { format!(" LIMIT {}", r.below(3_000)) } else { String::new() };
        pair.agree(&format!("SELECT {columns} FROM t WHERE {filter}{limit}")).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_files_answer_random_questions() {
    for seed in 0..10 {
        a_file(seed).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_filter_keeps_the_rows_it_should() {
    for (seed, dictionary) in [(100, true), (101, false)] {
        let written = properties(&mut Random(seed)).set_dictionary_enabled(dictionary).build();
        let pair = Pair::new(&[rows(seed, 0, 9_000)], written, config(1, 4_096)).await;
        for filter in FILTERS.iter().chain(&MORE) {
            pair.agree(&format!("SELECT id, s, l FROM t WHERE {filter}")).await;
            pair.agree(&format!("SELECT id FROM t WHERE NOT ({filter})")).await;
            pair.agree(&format!("SELECT id, unique, st FROM t WHERE id % 50 = 7 AND ({filter})")).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parts_of_files_and_several_partitions_give_each_row_once() {
    for seed in [7, 8, 9] {
        let written = properties(&mut Random(seed)).set_max_row_group_row_count(Some(1_500)).build();
        let pair = Pair::new(&[rows(seed, 0, 10_000)], written, config(5, 1_000)).await;
        for filter in ["true", "u < 30", "s LIKE 'http%'", "st['a'] = 3 AND i > 20"] {
            pair.agree(&format!("SELECT id, s, map FROM t WHERE {filter} ORDER BY id")).await;
            pair.agree(&format!("SELECT s, count(*), sum(i) FROM t WHERE {filter} GROUP BY s ORDER BY s")).await;
            pair.agree(&format!("SELECT * FROM t WHERE {filter} ORDER BY unique, id LIMIT 10")).await;
        }
        pair.agree("SELECT a.id, b.s FROM t a JOIN t b ON a.id = b.id WHERE a.u = 3 AND b.i < 100 ORDER BY a.id").await;
    }
}
