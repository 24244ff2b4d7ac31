//! The columns of some rows that are known by their places.

use std::future::poll_fn;
use std::ops::Range;

use arrow_array::{RecordBatch, UInt32Array};
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder};
use arrow_schema::SchemaRef;
use arrow_select::concat::concat_batches;
use arrow_select::take::take_record_batch;
use datafusion_common::{DataFusionError, Result, internal_err};
use datafusion_datasource::PartitionedFile;
use futures::StreamExt;
use plinth_format::File;
use plinth_format::scan::source::ColumnSource;
use plinth_io::Reservation;

use super::first::Place;
use super::pieces::is_same_file;
use crate::error::from_join;
use crate::opener::{Batches, PlinthOpener, Started};
use crate::profile::spawn_blocking;

/// Files that are far whose scans are begun before their turn.
const AHEAD: usize = 8;

/// Rows of one file.
struct Wanted {
    /// Any of the file's parts.
    part: PartitionedFile,
    /// Their numbers in the file, and which of all they are.
    rows: Vec<(u64, u32)>,
}

/// The rows at some places, in that order. What they take is counted.
pub(super) async fn fetch(
    opener: &PlinthOpener,
    parts: &[PartitionedFile],
    places: &[Place],
    schema: &SchemaRef,
    memory: &mut Reservation,
) -> Result<RecordBatch> {
    let mut files: Vec<Wanted> = Vec::new();
    for (place, at) in places.iter().zip(0_u32..) {
        let Some(part) = parts.get(place.part) else { return internal_err!("a row is of part {}", place.part) };
        let row = (place.row, at);
        match files.iter_mut().find(|file| is_same_file(&file.part, part)) {
            Some(file) => file.rows.push(row),
            None => files.push(Wanted { part: part.clone(), rows: vec![row] }),
        }
    }
    let (mut batches, mut order) = (Vec::new(), vec![0; places.len()]);
    let mut read = 0_u32;
    let ahead = if files.iter().any(|file| opener.is_far(&file.part)) { AHEAD } else { 1 };
    let begun = futures::stream::iter(files).map(|Wanted { part, mut rows }| async move {
        rows.sort_unstable();
        let scan = begin(opener, part, rows.iter().map(|&(row, _)| row).collect()).await?;
        Ok::<_, DataFusionError>((rows, scan))
    });
    let mut begun = std::pin::pin!(begun.buffered(ahead));
    while let Some((rows, mut scan)) = begun.next().await.transpose()? {
        for (&(_, at), fetched) in rows.iter().zip(read..) {
            order[at as usize] = fetched;
            read = fetched + 1;
        }
        let before: usize = batches.iter().map(RecordBatch::num_rows).sum();
        while let Some(batch) = poll_fn(|context| scan.poll(context.waker())).await.transpose()? {
            let refused = |error: plinth_io::OutOfMemory| DataFusionError::ResourcesExhausted(error.to_string());
            memory.try_grow(batch.get_array_memory_size() as u64).map_err(refused)?;
            batches.push(batch);
        }
        let here = batches.iter().map(RecordBatch::num_rows).sum::<usize>() - before;
        if here != rows.len() {
            return internal_err!("of {} rows of a file {here} were found again", rows.len());
        }
    }
    Ok(take_record_batch(&concat_batches(schema, &batches)?, &UInt32Array::from(order))?)
}

/// Starts the scan of some rows of a file.
async fn begin(
    opener: &PlinthOpener,
    part: PartitionedFile,
    rows: Vec<u64>,
) -> Result<Batches<impl ColumnSource + use<>>> {
    let opener = opener.clone();
    let is_far = opener.is_far(&part);
    let begin = move || {
        let (groups, rows) = selection(&opener.file(&part)?, &rows)?;
        opener.begin_at(&part, groups, Some(rows)).map(Started::batches)
    };
    if is_far { spawn_blocking(begin).await.map_err(from_join)? } else { begin() }
}

/// The row groups of some rows, which increase, and one bit for each row of the file.
fn selection(file: &File, rows: &[u64]) -> Result<(Range<usize>, BooleanBuffer)> {
    let group = |row: u64| file.row_groups().partition_point(|group| group.first_row + group.rows <= row);
    let groups = match (rows.first(), rows.last()) {
        (Some(&first), Some(&last)) if last < file.num_rows() => group(first)..group(last) + 1,
        _ => return internal_err!("{}: rows beyond the last of {}", file.name(), file.num_rows()),
    };
    let len = usize::try_from(file.num_rows()).map_err(|error| DataFusionError::External(Box::new(error)))?;
    let mut bits = BooleanBufferBuilder::new(len);
    bits.append_n(len, false);
    for &row in rows {
        bits.set_bit(usize::try_from(row).unwrap_or(usize::MAX), true);
    }
    Ok((groups, bits.finish()))
}
