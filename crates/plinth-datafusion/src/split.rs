//! Dividing a scan among partitions.

use datafusion_datasource::file_groups::FileGroup;
use datafusion_datasource::{FileRange, PartitionedFile};
use plinth_format::File;

/// Divides parts of files among `target` partitions so that each gets whole row groups, in order, and about as many rows
/// as the others. `None` if there are no row groups, or a file is not open (`opened` says).
///
/// A part of a file is a byte range, because that is what plans carry and engines divide; a row group belongs to the range
/// its first byte lies in, so any ranges that tile a file tile its row groups.
pub(crate) fn split(
    groups: &[FileGroup],
    target: usize,
    opened: impl Fn(&PartitionedFile) -> Option<File>,
) -> Option<Vec<FileGroup>> {
    let parts: Vec<(&PartitionedFile, File)> = groups
        .iter()
        .flat_map(FileGroup::iter)
        .map(|part| opened(part).map(|file| (part, file)))
        .collect::<Option<_>>()?;
    let rows: u64 = parts.iter().flat_map(|(part, file)| row_groups(part, file)).map(|(_, rows)| rows).sum();
    let target = u64::try_from(target.max(1)).ok()?;
    let share = rows.div_ceil(target).max(1);

    let mut partitions: Vec<Vec<PartitionedFile>> = Vec::new();
    let mut current = None;
    let mut before = 0;
    for (part, file) in &parts {
        let (start, end) = part.range();
        let mut pieces: Vec<(u64, u64)> = Vec::new();
        for (group, rows) in row_groups(part, file) {
            // By the middle of the row group, so no partition gets two where its neighbour gets none.
            let partition = ((before + rows / 2) / share).min(target - 1);
            before += rows;
            if pieces.last().is_none_or(|&(last, _)| last != partition) {
                let from = if pieces.is_empty() { start } else { start_of(file, start, end, group) };
                pieces.push((partition, from));
            }
        }
        for (i, &(partition, from)) in pieces.iter().enumerate() {
            let to = pieces.get(i + 1).map_or(end, |&(_, next)| next);
            let mut piece = PartitionedFile::clone(part);
            piece.range = Some(FileRange { start: i64::try_from(from).ok()?, end: i64::try_from(to).ok()? });
            if current != Some(partition) {
                current = Some(partition);
                partitions.push(Vec::new());
            }
            partitions.last_mut()?.push(piece);
        }
    }
    (!partitions.is_empty()).then(|| partitions.into_iter().map(FileGroup::new).collect())
}

/// The row groups of a part: their index in the file and their rows.
fn row_groups<'a>(part: &PartitionedFile, file: &'a File) -> impl Iterator<Item = (usize, u64)> + 'a {
    let (start, end) = part.range();
    let range = file.row_groups_in(start..end);
    range.filter_map(|group| file.row_groups().get(group).map(|found| (group, found.rows)))
}

/// The offset a row group starts at, found by asking which row groups start before an offset.
fn start_of(file: &File, start: u64, end: u64, group: usize) -> u64 {
    let starts_before = |offset: u64| file.row_groups_in(start..offset).end > group;
    let (mut low, mut high) = (start, end);
    // Invariant: the group does not start before `low`, and does before `high`.
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if starts_before(middle) { high = middle } else { low = middle }
    }
    low
}
