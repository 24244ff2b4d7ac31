//! Spill files without names.

use super::*;

use futures::TryStreamExt;

#[test]
fn what_is_written_can_be_read_meanwhile_and_leaves_no_name() {
    let folder = tempfile::tempdir().unwrap();
    let file = NamelessSpills::new(folder.path()).create_temp_file("a sort").unwrap();
    let mut writer = file.open_writer().unwrap();
    let bytes: Vec<u8> = (0..3 * PIECE + 7).map(|i| u8::try_from(i % 251).unwrap()).collect();
    let (first, rest) = bytes.split_at(100_000);
    writer.write_all(first).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let read = || -> Vec<Bytes> { runtime.block_on(file.read_stream().unwrap().try_collect()).unwrap() };
    assert_eq!(read().concat(), first);
    writer.write_all(rest).unwrap();
    writer.finish().unwrap();
    for _ in 0..2 {
        let all = read();
        assert!(all.len() > 3 && all.concat() == bytes);
    }
    assert_eq!(file.size(), Some(bytes.len() as u64));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    let nowhere = NamelessSpills::new(folder.path().join("gone")).create_temp_file("a sort").unwrap();
    assert!(nowhere.open_writer().unwrap().write_all(b"x").is_err());
}
