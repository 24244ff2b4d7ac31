//! What profiles say of reading text.

use std::io::Write;

use plinth_ingest::SourceOptions;
use plinth_profile::{Profile, Profiler, ProfilerOptions, Row, Stage};

const ROWS: usize = 20_000;

fn json() -> String {
    (0..ROWS).map(|i| format!("{{\"id\":{i},\"name\":\"n{}\",\"at\":{}.5}}\n", i % 7, i * 3)).collect()
}

fn csv() -> String {
    let rows = (0..ROWS).map(|i| format!("{i},n{},{}.5\n", i % 7, i * 3));
    std::iter::once("id,name,at\n".to_owned()).chain(rows).collect()
}

fn gzipped(text: &str) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

/// The profile of reading a file.
fn profiled(name: &str, content: &[u8]) -> Profile {
    let dir = tempfile::tempdir().unwrap();
    let path = super::write(dir.path(), name, content);
    let profiler = Profiler::start(ProfilerOptions::default());
    let all = {
        let _open = profiler.scope(Stage::Open);
        let options = SourceOptions { threads: 2, chunk_bytes: Some(64 << 10), ..SourceOptions::default() };
        super::read(&[path], &options).unwrap()
    };
    assert_eq!(all.num_rows(), ROWS);
    profiler.finish()
}

/// What the threads that read recorded of a stage: what the schema was inferred by is below `open`.
fn of(profile: &Profile, stage: Stage) -> Vec<&Row> {
    let above = |row: &&Row| row.parent.and_then(|parent| profile.rows.get(parent));
    let opening = |row| std::iter::successors(Some(row), above).any(|row| row.anchor.stage == Stage::Open);
    profile.rows.iter().filter(|row| row.anchor.stage == stage && !opening(row)).collect()
}

fn bytes(rows: &[&Row]) -> u64 {
    rows.iter().map(|row| row.bytes).sum()
}

#[test]
fn the_stages_of_text_are_told_apart() {
    for (name, text) in [("x.ndjson", json()), ("x.csv", csv())] {
        let header = if name.ends_with("csv") { text.find('\n').unwrap() as u64 + 1 } else { 0 };
        let len = text.len() as u64;
        let packed = gzipped(&text);
        for (name, content, compressed) in [(name, text.as_bytes(), false), (&format!("{name}.gz"), &packed, true)] {
            let profile = profiled(name, content);
            let stage = |stage| of(&profile, stage);
            // Once while cutting, once where values are parsed.
            assert_eq!(bytes(&stage(Stage::Structure)), 2 * (len - header), "{name}: {profile:?}");
            assert_eq!(bytes(&stage(Stage::Parse)), len - header, "{name}: {profile:?}");
            let built: u64 = stage(Stage::Build).iter().map(|row| row.rows).sum();
            assert_eq!(built, ROWS as u64, "{name}: {profile:?}");
            // Opening a file reads its beginning.
            let read = bytes(&stage(Stage::Read));
            assert_eq!(read, content.len() as u64, "{name}: {profile:?}");
            let decompressed = stage(Stage::Decompress);
            assert_eq!(bytes(&decompressed), if compressed { len } else { 0 }, "{name}: {profile:?}");
            assert_eq!(decompressed.is_empty(), !compressed, "{name}: {profile:?}");
            // Around pieces and batches, never around values.
            let hits: u64 = profile.rows.iter().map(|row| row.hits).sum();
            assert!(hits < ROWS as u64 / 20, "{name}: {hits} scopes for {ROWS} rows");
        }
    }
}
