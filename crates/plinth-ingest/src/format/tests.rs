use super::*;

#[test]
fn extensions_decide_in_any_case() {
    let of = |name: &str| of_name(Path::new(name));
    assert_eq!(of("a/b.CSV.Gz"), (Some(FileFormat::Csv), Some(Compression::Gzip)));
    assert_eq!(of("b.jsonl"), (Some(FileFormat::Ndjson), None));
    assert_eq!(of("b.tar.zst"), (None, Some(Compression::Zstd)));
    assert_eq!(of("gz"), (None, None));
    assert_eq!(of(".gz"), (None, None));
    assert_eq!("JSON".parse(), Ok(FileFormat::Ndjson));
    assert!("xls".parse::<FileFormat>().is_err_and(|e| e.ends_with("known: parquet, csv, tsv, ndjson")));
}
