//! Dividing a scan into pieces that its partitions take from one queue.

use datafusion_datasource::file_groups::FileGroup;
use datafusion_datasource::{FileRange, PartitionedFile};
use plinth_format::File;
use plinth_rowstore::SegmentRows;

/// A piece takes one part in so many of a partition's share of what is left: a partition that is done early finds work that
/// another had not begun, and what is left for the last to finish is little.
const PART: u64 = 2;

/// A piece's place in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place(usize);

/// Divides parts of files among `target` partitions in pieces of whole row groups, in order: large ones first, ever smaller ones
/// towards the end, dealt out in turn. The engine lets a partition that has nothing left to do take pieces of the others, in the
/// [order](in_order) of the rows. Where rows are `looked_up`, which each piece does for itself, every partition has one piece. `None` if there are no row groups, or a file is not open (`opened` says).
///
/// A piece of a file is a byte range, because that is what plans carry and engines divide; a row group belongs to the range
/// its first byte lies in, so any ranges that tile a file tile its row groups.
pub(crate) fn split(
    groups: &[FileGroup],
    target: usize,
    looked_up: bool,
    opened: impl Fn(&PartitionedFile) -> Option<File>,
) -> Option<Vec<FileGroup>> {
    let parts: Vec<(&PartitionedFile, File)> = groups
        .iter()
        .flat_map(FileGroup::iter)
        .map(|part| opened(part).map(|file| (part, file)))
        .collect::<Option<_>>()?;
    let mut left: u64 = parts.iter().flat_map(|(part, file)| row_groups(part, file)).map(|(_, rows)| rows).sum();
    let target = target.max(1);
    let partitions = u64::try_from(target).ok()?;
    let mut pieces = Vec::new();
    for (part, file) in &parts {
        let (start, end) = part.range();
        let indexed = || part.extension::<SegmentRows>().is_some_and(SegmentRows::is_indexed);
        // A piece of what is far waits for its first rows.
        let evenly = partitions == 1 || looked_up || file.is_far() || indexed();
        let even = row_groups(part, file).map(|(_, rows)| rows).sum::<u64>().div_ceil(partitions);
        let mut here = row_groups(part, file).peekable();
        let mut from = start;
        while here.peek().is_some() {
            let wanted = if evenly { even } else { left / (PART * partitions) };
            let mut rows = 0;
            // One row group at least, and the next if most of it is wanted.
            while let Some(&(_, more)) = here.peek()
                && (rows == 0 || rows + more / 2 <= wanted)
            {
                rows += more;
                here.next();
            }
            left = left.saturating_sub(rows);
            let to = here.peek().map_or(end, |&(next, _)| start_of(file, start, end, next));
            let mut piece = PartitionedFile::clone(part).with_extension(Place(pieces.len()));
            piece.range = Some(FileRange { start: i64::try_from(from).ok()?, end: i64::try_from(to).ok()? });
            pieces.push(piece);
            from = to;
        }
    }
    let mut partitions: Vec<Vec<PartitionedFile>> = vec![Vec::new(); target.min(pieces.len())];
    for (at, piece) in pieces.into_iter().enumerate() {
        let partition = at % partitions.len();
        partitions.get_mut(partition)?.push(piece);
    }
    (!partitions.is_empty()).then(|| partitions.into_iter().map(FileGroup::new).collect())
}

/// Pieces of all partitions in the order in which they are to be taken.
pub(crate) fn in_order(mut pieces: Vec<PartitionedFile>) -> Vec<PartitionedFile> {
    pieces.sort_by_key(|piece| piece.extension::<Place>().copied());
    pieces
}

/// Deals the pieces out again, so that the rows of one partition follow those of the one before: for what keeps the order of rows,
/// and lets no partition take what another was given.
pub(crate) fn one_after_the_other(groups: &[FileGroup]) -> Vec<FileGroup> {
    let pieces = in_order(groups.iter().flat_map(FileGroup::iter).cloned().collect());
    let bytes = |piece: &PartitionedFile| {
        let (start, end) = piece.range();
        end.saturating_sub(start).max(1)
    };
    let whole: u64 = pieces.iter().map(bytes).sum();
    let last = groups.len().saturating_sub(1);
    let share = whole.div_ceil(u64::try_from(last + 1).unwrap_or(u64::MAX)).max(1);
    let mut partitions: Vec<Vec<PartitionedFile>> = vec![Vec::new(); last + 1];
    let mut before = 0;
    for piece in pieces {
        // By the middle of the piece, so that no partition gets two where its neighbour gets none.
        let partition = usize::try_from((before + bytes(&piece) / 2) / share).unwrap_or(last).min(last);
        before += bytes(&piece);
        partitions[partition].push(piece);
    }
    partitions.into_iter().filter(|pieces| !pieces.is_empty()).map(FileGroup::new).collect()
}

/// Divides parts of files among partitions of whole row groups, in order, for threads that take one after the other. How many rows each has is told by how many there are.
/// Parts that are looked up, which each piece does for itself, and those of files that are not open stay as they are.
pub(crate) fn one_by_one(
    groups: &[FileGroup],
    rows_of_piece: impl Fn(u64) -> u64,
    looked_up: bool,
    opened: impl Fn(&PartitionedFile) -> Option<File>,
) -> Vec<FileGroup> {
    let files = groups.iter().flat_map(FileGroup::iter).filter_map(|part| Some((part, opened(part)?)));
    let all: u64 = files.map(|(part, file)| row_groups(part, &file).map(|(_, rows)| rows).sum::<u64>()).sum();
    let rows = rows_of_piece(all);
    let (mut partitions, mut partition, mut gathered) = (Vec::new(), Vec::new(), 0);
    for part in in_order(groups.iter().flat_map(FileGroup::iter).cloned().collect()) {
        let indexed = part.extension::<SegmentRows>().is_some_and(SegmentRows::is_indexed);
        let file = if looked_up || indexed { None } else { opened(&part) };
        let Some(file) = file else {
            partitions.extend([std::mem::take(&mut partition), vec![part]]);
            gathered = 0;
            continue;
        };
        let (start, end) = part.range();
        let mut from = start;
        let mut here = row_groups(&part, &file).peekable();
        while let Some((_, more)) = here.next() {
            gathered += more;
            let full = gathered >= rows;
            if full || here.peek().is_none() {
                let to = here.peek().map_or(end, |&(next, _)| start_of(&file, start, end, next));
                let mut piece = part.clone();
                let offset = |at: u64| i64::try_from(at).unwrap_or(i64::MAX);
                piece.range = Some(FileRange { start: offset(from), end: offset(to) });
                partition.push(piece);
                from = to;
            }
            if full {
                partitions.push(std::mem::take(&mut partition));
                gathered = 0;
            }
        }
    }
    partitions.push(partition);
    partitions.into_iter().filter(|parts| !parts.is_empty()).map(FileGroup::new).collect()
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

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests;
