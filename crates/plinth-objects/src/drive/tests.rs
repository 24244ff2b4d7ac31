use std::time::Duration;

use plinth_core::random::Random;
use plinth_io::Identity;
use proptest::prelude::*;

use super::*;

fn key(name: &str, tag: &str) -> ObjectKey {
    let identity = Identity::of_object(1 << 30, SystemTime::UNIX_EPOCH, Some(tag));
    ObjectKey::of(&Object { url: name.to_owned(), identity, tag: Some(tag.to_owned()) }).unwrap()
}

fn cache(folder: &Path, bytes: u64) -> DriveCache {
    DriveCache::new(DriveOptions { folder: folder.to_path_buf(), bytes, at_once: true })
}

fn bytes(seed: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    Random(seed).fill(&mut bytes);
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn what_was_kept_comes_back_and_nothing_else(
        kept in prop::collection::vec((0_u64..3_000_000, 1_usize..700_000), 1..6),
        asked in prop::collection::vec((0_u64..3_000_000, 1_usize..700_000), 1..8),
        across: bool,
    ) {
        let folder = tempfile::tempdir().unwrap();
        // Where regions meet, too.
        let base = if across { REGION - 1_500_000 } else { 0 };
        let object = bytes(7, 4_000_000);
        let of = |start: u64, len: usize| &object[usize::try_from(start).unwrap()..][..len];
        let key = key("s3://b/x", "1");
        let writer = cache(folder.path(), 1 << 30);
        kept.iter().for_each(|&(start, len)| writer.put(&key, base + start, of(start, len)));
        // As another process sees it.
        for cache in [cache(folder.path(), 1 << 30), writer] {
            for &(start, len) in kept.iter().chain(&asked) {
                let mut to = vec![0; len];
                let there = cache.get(&key, base + start, &mut to);
                let all = (start..start + len as u64).all(|at| {
                    kept.iter().any(|&(start, len)| at >= start && at < start + len as u64)
                });
                prop_assert!(all || !there);
                prop_assert!(!kept.contains(&(start, len)) || there);
                prop_assert!(!there || to == of(start, len));
            }
        }
    }
}

#[test]
fn another_version_of_an_object_is_another_object() {
    let folder = tempfile::tempdir().unwrap();
    let cache = cache(folder.path(), 1 << 30);
    cache.put(&key("s3://b/x", "1"), 0, b"one");
    let mut to = [0; 3];
    assert!(cache.get(&key("s3://b/x", "1"), 0, &mut to) && &to == b"one");
    assert!(!cache.get(&key("s3://b/x", "2"), 0, &mut to));
    assert!(!cache.get(&key("s3://b/y", "1"), 0, &mut to));
    // What has no version is not kept at all.
    let identity = Identity::of_object(3, SystemTime::UNIX_EPOCH, None);
    assert_eq!(ObjectKey::of(&Object { url: "http://h/x".to_owned(), identity, tag: None }), None);
}

#[test]
fn each_flipped_byte_is_noticed_and_healed() {
    let folder = tempfile::tempdir().unwrap();
    let (key, object) = (key("s3://b/x", "1"), bytes(3, 250));
    let path = |extension: &str| {
        let base = cache(folder.path(), 1 << 30).base((key.hash, 0));
        base.with_extension(extension)
    };
    let mut noticed = 0;
    for extension in [DATA, INDEX] {
        Region::remove(&cache(folder.path(), 1 << 30).base((key.hash, 0)));
        cache(folder.path(), 1 << 30).put(&key, 0, &object);
        let len = std::fs::metadata(path(extension)).unwrap().len();
        for at in 0..usize::try_from(len).unwrap() {
            let mut damaged = std::fs::read(path(extension)).unwrap();
            damaged[at] ^= 1 << (at % 8);
            std::fs::write(path(extension), damaged).unwrap();
            let cache = cache(folder.path(), 1 << 30);
            let mut to = vec![0; object.len()];
            assert!(!cache.get(&key, 0, &mut to), "byte {at} of {extension}");
            noticed += 1;
            // It comes anew, and stays.
            cache.put(&key, 0, &object);
            assert!(cache.get(&key, 0, &mut to) && to == object, "byte {at} of {extension}");
        }
    }
    assert!(noticed > 250);
    // Cut short.
    for extension in [DATA, INDEX] {
        let cut = std::fs::read(path(extension)).unwrap();
        std::fs::write(path(extension), &cut[..cut.len() / 2]).unwrap();
        let cache = cache(folder.path(), 1 << 30);
        let mut to = vec![0; object.len()];
        assert!(!cache.get(&key, 0, &mut to));
        cache.put(&key, 0, &object);
        assert!(cache.get(&key, 0, &mut to) && to == object);
    }
}

#[test]
fn what_was_not_used_for_longest_goes_first() {
    let folder = tempfile::tempdir().unwrap();
    let cache = cache(folder.path(), 4 << 20);
    let piece = bytes(5, 256 << 10);
    for i in 0..40 {
        let key = key(&format!("s3://b/{i}"), "1");
        cache.put(&key, 0, &piece);
        let old = SystemTime::now() - Duration::from_secs(1000 - i);
        let index = File::options().append(true).open(cache.base((key.hash, 0)).with_extension(INDEX)).unwrap();
        index.set_modified(old).unwrap();
    }
    cache.shrink().unwrap();
    let mut to = vec![0; piece.len()];
    let kept: Vec<u64> = (0..40).filter(|i| cache.get(&key(&format!("s3://b/{i}"), "1"), 0, &mut to)).collect();
    assert!(kept.len() >= 10 && kept.len() <= 16, "{kept:?}");
    assert!(kept.iter().all(|i| *i >= 24), "{kept:?}");
}

#[test]
fn a_range_is_admitted_when_it_is_asked_for_again_by_any_process() {
    let folder = tempfile::tempdir().unwrap();
    let open = || DriveCache::new(DriveOptions { folder: folder.path().join("new"), bytes: 1 << 30, at_once: false });
    let key = key("s3://b/x", "1");
    assert!(!open().admits(&key, 10, 5));
    assert!(!open().admits(&key, 11, 5));
    assert!(open().admits(&key, 10, 5));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(folder.path().join("new")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }
}

#[test]
fn a_folder_that_can_not_be_written_to_is_done_without() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, b"").unwrap();
    let cache = cache(&file.join("below"), 1 << 30);
    let key = key("s3://b/x", "1");
    cache.put(&key, 0, b"abc");
    let mut to = [0; 3];
    assert!(!cache.get(&key, 0, &mut to));
    assert!(!cache.admits(&key, 0, 3));
}
