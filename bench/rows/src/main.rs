//! `rows sqlite FOLDER` or `rows redb FOLDER`: answers the commands of the suite `rows`.

#![allow(clippy::expect_used, reason = "a peer that fails has no figures")]

mod peers;
mod workload;

use std::path::PathBuf;

fn main() -> std::io::Result<()> {
    let mut words = std::env::args().skip(1);
    let (store, folder) = (words.next().unwrap_or_default(), PathBuf::from(words.next().unwrap_or_default()));
    std::fs::create_dir_all(&folder)?;
    match store.as_str() {
        "sqlite" => workload::serve(&peers::Sqlite::create(&folder), &folder),
        "redb" => workload::serve(&peers::Redb::create(&folder), &folder),
        other => Err(std::io::Error::other(format!("no store {other:?}"))),
    }
}
