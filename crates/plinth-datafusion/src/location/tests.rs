//! Paths as locations, and back.

use super::*;

#[test]
fn names_survive_the_round_trip() {
    let dir = tempfile::tempdir().unwrap();
    for name in [
        "plain.plinth",
        "with space.plinth",
        "größe – 測試.plinth",
        "50%25 off.plinth",
        "a[1]#?.plinth",
        "~x+y=z.plinth",
    ] {
        let path = dir.path().canonicalize().unwrap().join(name);
        std::fs::write(&path, "x").unwrap();
        assert_eq!(to_path(&from_path(&path)), path);
    }
}

#[test]
fn urls_become_paths_and_other_schemes_an_error() {
    let url = ListingTableUrl::parse("file:///tmp/no%20such/%C3%A4.plinth").unwrap();
    assert_eq!(of_url(&url).unwrap(), Path::new("/tmp/no such/ä.plinth"));
    let url = ListingTableUrl::parse("/tmp/no such/ä.plinth").unwrap();
    assert_eq!(of_url(&url).unwrap(), Path::new("/tmp/no such/ä.plinth"));
    let error = of_url(&ListingTableUrl::parse("s3://bucket/x.plinth").unwrap()).unwrap_err();
    assert!(error.to_string().contains("s3://"), "{error}");
}
