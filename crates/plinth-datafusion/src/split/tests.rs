use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use object_store::path::Path as Location;
use plinth_format::{Writer, WriterOptions};
use proptest::prelude::*;

use super::*;
use crate::source::part_of;

/// A file of so many row groups of 1,024 rows, the last of which has one.
fn file(dir: &std::path::Path, name: &str, groups: usize) -> PartitionedFile {
    let rows = i64::try_from(groups * 1024).unwrap() - 1023;
    let column: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows));
    let batch = RecordBatch::try_from_iter([("n", column)]).unwrap();
    let options =
        WriterOptions { row_group_rows: 1024, block_rows: 1024, replace: true, threads: 1, ..WriterOptions::default() };
    let path = dir.join(name);
    let mut writer = Writer::create(&path, &batch.schema(), options).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
    part_of(File::open(&path).unwrap(), Location::from(name))
}

fn pieces(parts: &[PartitionedFile], target: usize) -> Vec<FileGroup> {
    split(&[FileGroup::new(parts.to_vec())], target, false, |part| part.extension::<File>().cloned()).unwrap()
}

/// The row groups of a piece.
fn groups_of(piece: &PartitionedFile) -> Vec<usize> {
    row_groups(piece, piece.extension::<File>().unwrap()).map(|(group, _)| group).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn pieces_are_all_row_groups_in_order(sizes in proptest::collection::vec(1_usize..40, 1..4), target in 1_usize..9) {
        let dir = tempfile::tempdir().unwrap();
        let parts: Vec<_> = sizes.iter().enumerate().map(|(at, &groups)| file(dir.path(), &format!("{at}.plinth"), groups)).collect();
        let partitions = pieces(&parts, target);
        prop_assert!(partitions.len() <= target);
        let all: Vec<PartitionedFile> = partitions.iter().flat_map(FileGroup::iter).cloned().collect();
        let ordered: Vec<(Location, usize)> = in_order(all)
            .iter()
            .flat_map(|piece| groups_of(piece).into_iter().map(|group| (piece.object_meta.location.clone(), group)))
            .collect();
        let expected: Vec<(Location, usize)> = parts
            .iter()
            .zip(&sizes)
            .flat_map(|(part, &groups)| (0..groups).map(|group| (part.object_meta.location.clone(), group)))
            .collect();
        prop_assert_eq!(&ordered, &expected);
        // And divided anew, from pieces that were dealt out.
        for rows in [1, 5_000, 1 << 40] {
            let opened = |part: &PartitionedFile| part.extension::<File>().cloned();
            let again = one_by_one(&partitions, |_| rows, false, opened);
            let groups = |of: &FileGroup| of.iter().map(|piece| groups_of(piece).len()).sum::<usize>();
            let (last, full) = again.split_last().unwrap();
            prop_assert!(full.iter().all(|of| groups(of) as u64 * 1024 >= rows) && groups(last) > 0);
            let all = again.iter().flat_map(FileGroup::iter);
            let found: Vec<(Location, usize)> = all
                .flat_map(|piece| groups_of(piece).into_iter().map(|group| (piece.object_meta.location.clone(), group)))
                .collect();
            prop_assert_eq!(&found, &expected);
        }
    }
}

#[test]
fn pieces_get_smaller_towards_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let part = file(dir.path(), "t.plinth", 100);
    let partitions = pieces(std::slice::from_ref(&part), 2);
    let all: Vec<PartitionedFile> = partitions.iter().flat_map(FileGroup::iter).cloned().collect();
    let sizes: Vec<usize> = in_order(all).iter().map(|piece| groups_of(piece).len()).collect();
    assert!(sizes[0] == 25 && sizes.is_sorted_by(|a, b| a >= b), "{sizes:?}");
    assert!(sizes.len() < 20 && sizes.ends_with(&[1, 1]), "{sizes:?}");
    let looked_up = split(&[FileGroup::new(vec![part.clone()])], 2, true, |part| part.extension::<File>().cloned());
    assert_eq!(looked_up.unwrap().iter().map(FileGroup::len).collect::<Vec<_>>(), [1, 1]);
    // One partition reads a file in one go.
    assert_eq!(pieces(&[part], 1).iter().map(FileGroup::len).collect::<Vec<_>>(), [1]);
}
