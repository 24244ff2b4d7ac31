#![allow(clippy::unwrap_used, clippy::panic)]

use super::*;

fn names(root: &Path, files: &[PathBuf]) -> Vec<String> {
    files.iter().map(|f| f.strip_prefix(root).unwrap().display().to_string()).collect()
}

#[test]
fn directories_and_patterns_come_sorted_and_once() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    for name in ["b.parquet", "a.PARQUET", "sub/c.pq", "sub/.hidden.parquet", "_logs/x.parquet", "note.txt"] {
        let path = root.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, b"x").unwrap();
    }
    assert_eq!(names(root, &expand(&[root]).unwrap()), ["a.PARQUET", "b.parquet", "sub/c.pq"]);
    assert_eq!(names(root, &expand(&[root.join("*.parquet")]).unwrap()), ["b.parquet"]);
    assert_eq!(
        names(root, &expand(&[root.join("b.parquet"), root.to_path_buf()]).unwrap()),
        ["b.parquet", "a.PARQUET", "sub/c.pq"]
    );
    assert_eq!(names(root, &expand(&[root.join("s*")]).unwrap()), ["sub/c.pq"]);
}

#[test]
fn a_name_that_exists_is_not_a_pattern() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("odd[1].parquet");
    std::fs::write(&path, b"x").unwrap();
    assert_eq!(expand(&[&path]).unwrap(), [path]);
}

#[test]
fn what_cannot_be_expanded_says_why() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    std::fs::write(root.join("data.xlsx"), b"x").unwrap();
    std::fs::write(root.join("data"), b"x").unwrap();
    std::fs::create_dir(root.join("empty")).unwrap();
    let message = |name: &str| expand(&[root.join(name)]).unwrap_err().to_string();
    assert!(message("missing.parquet").ends_with("missing.parquet: no such file or directory"));
    assert!(message("data.xlsx").ends_with(
        "can't import .xlsx files; known: .parquet, .parq, .pq, .csv, .tsv, .ndjson, .jsonl, .json \
         (text also with .gz, .zst, .lz4, .bz2)"
    ));
    assert!(message("data").contains("a file without an extension"));
    assert!(message("empty").starts_with("nothing to import in "));
    assert!(message("*.parquet").ends_with("matches no file"));
    assert!(message("[").contains("no such file") || message("[").contains("not a pattern"));
    assert!(message("a***").contains("not a pattern"));
    assert!(message("*.xlsx").contains("can't import"));
    assert_eq!(names(root, &expand_as(&[root], Some(FileFormat::Csv)).unwrap()), ["data", "data.xlsx"]);
}
