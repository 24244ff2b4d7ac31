//! Random lookups of i64 keys in an index of Plinth's beside redb, LMDB and the standard library's map, all warm.
//!
//!     cargo run --release -- ROWS FOLDER [--json]
//!
//! Half of the keys looked up are there. The peers' files are made in the folder, in the order of the keys; every answer is
//! checked by a digest before a time is printed.

#[allow(dead_code)]
#[path = "../../../crates/plinth-index/examples/keys/measure.rs"]
mod measure;

use std::collections::BTreeMap;
use std::path::Path;

use heed::byteorder::BigEndian;
use heed::types::U64;
use heed::{Database, EnvOpenOptions};
use measure::{compare, digest, entry};
use plinth_index::{Index, IndexError, LocalPages, MemoryPages, Options, Pool};
use plinth_io::MemoryBudget;
use redb::{ReadableDatabase, TableDefinition};

/// Memory that each store may keep pages in: more than any needs.
const MEMORY: usize = 8 << 30;
const TABLE: TableDefinition<i64, u64> = TableDefinition::new("keys");

fn main() {
    let argument = |at: usize| std::env::args().nth(at).expect("ROWS FOLDER");
    let rows: usize = argument(1).parse().expect("a number of rows");
    let folder = Path::new(&argument(2)).join("keys");
    std::fs::create_dir_all(&folder).expect("a folder that can be written to");
    let mut state = 88_172_645_463_325_252_u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.wrapping_mul(0x2545_f491_4f6c_dd1d)
    };
    let mut keys: Vec<i64> = (0..rows).map(|_| (random() >> 1).cast_signed()).collect();
    keys.sort_unstable();
    keys.dedup();
    let wanted: Vec<i64> = (0..500_000)
        .map(|i| if i % 2 == 0 { keys[(random() % keys.len() as u64) as usize] } else { (random() >> 1).cast_signed() })
        .collect();
    let found = |sum: u64, row: Option<u64>| digest(sum, row.map_or(0, |row| row + 1));
    let pairs = || keys.iter().copied().zip(0_u64..);

    let pool = Pool::new(&MemoryBudget::new(u64::MAX), MEMORY as u64).expect("addresses");
    let index: Index<i64> =
        Index::create(&pool, MemoryPages::new("memory"), Options::default()).expect("an index in memory");
    index.append(pairs().map(Ok::<_, IndexError>)).expect("keys in order");

    let path = folder.join("index.plinth");
    let file: Index<i64> =
        Index::create(&pool, LocalPages::create(&path).expect("a new file"), Options::default()).expect("an index");
    file.append(pairs().map(Ok::<_, IndexError>)).expect("keys in order");
    file.checkpoint(0).expect("a checkpoint");

    let map: BTreeMap<i64, u64> = pairs().collect();

    let database = redb::Builder::new().set_cache_size(MEMORY).create(folder.join("redb")).expect("a database");
    let write = database.begin_write().expect("a transaction");
    {
        let mut table = write.open_table(TABLE).expect("a table");
        for (key, row) in pairs() {
            table.insert(key, row).expect("a new key");
        }
    }
    write.commit().expect("a commit");
    let read = database.begin_read().expect("a transaction");
    let redb = read.open_table(TABLE).expect("the table");

    let lmdb_folder = folder.join("lmdb");
    std::fs::create_dir_all(&lmdb_folder).expect("a folder");
    // SAFETY: the folder is this process' alone.
    let lmdb = unsafe { EnvOpenOptions::new().map_size(MEMORY).open(&lmdb_folder) }.expect("an environment");
    let mut write = lmdb.write_txn().expect("a transaction");
    let table: Database<U64<BigEndian>, U64<BigEndian>> = lmdb.create_database(&mut write, None).expect("a table");
    for (key, row) in pairs() {
        // Not negative, so that their order is that of the numbers.
        table.put_with_flags(&mut write, heed::PutFlags::APPEND, &key.cast_unsigned(), &row).expect("keys in order");
    }
    write.commit().expect("a commit");
    let read = lmdb.read_txn().expect("a transaction");

    let batched = || {
        let mut rows = Vec::new();
        wanted.chunks(1024).fold(0, |sum, some| {
            index.multi_get(some, &mut rows).expect("rows");
            rows.iter().fold(sum, |sum, row| found(sum, *row))
        })
    };
    let one = |get: &dyn Fn(i64) -> Option<u64>| wanted.iter().fold(0, |sum, key| found(sum, get(*key)));
    let entries = vec![
        entry("Plinth", || one(&|key| index.get(key).expect("a row or none"))),
        entry("Plinth, in a file", || one(&|key| file.get(key).expect("a row or none"))),
        entry("Plinth, 1,024 at once", batched),
        entry("BTreeMap (std)", || one(&|key| map.get(&key).copied())),
        entry("LMDB (heed)", || one(&|key| table.get(&read, &key.cast_unsigned()).expect("a row or none"))),
        entry("redb", || one(&|key| redb.get(key).expect("a row or none").map(|row| row.value()))),
    ];
    compare(&format!("lookups of i64 in {} keys", keys.len()), wanted.len() as u64, 5, entries);
    std::fs::remove_dir_all(&folder).expect("a folder that can be removed");
}
