//! Many keys at once: in their order, so that each part of the table is gone through once, its blocks one after the other; the
//! rows of all are gathered at the end, column by column.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use arrow_select::interleave::interleave_record_batch;

use crate::cache::DecodedBlock;
use crate::delta::Delta;
use crate::error::{Result, arrow};
use crate::key::{KeyColumns, Keys, hash};
use crate::segment::Near;
use crate::version::Version;

/// What has some of the rows.
enum Part {
    Memory(RecordBatch),
    Block(Arc<DecodedBlock>),
}

impl Part {
    fn batch(&self) -> &RecordBatch {
        match self {
            Self::Memory(batch) => batch,
            Self::Block(block) => &block.batch,
        }
    }
}

/// The parts that have the rows, and for each key, in their order, which row of which part it is.
#[derive(Default)]
struct Gathered {
    parts: Vec<Part>,
    places: Vec<Option<(usize, usize)>>,
}

impl Gathered {
    fn put(&mut self, i: usize, place: (usize, usize)) {
        if let Some(slot) = self.places.get_mut(i) {
            *slot = Some(place);
        }
    }

    fn add(&mut self, part: Part) -> usize {
        self.parts.push(part);
        self.parts.len() - 1
    }
}

impl Version {
    /// The rows with some keys, and for each key the row that has it, if one does.
    pub(crate) fn multi_get(
        &self,
        columns: &KeyColumns,
        keys: &Keys,
        schema: &SchemaRef,
    ) -> Result<(RecordBatch, Vec<Option<usize>>)> {
        let order = keys.order();
        let sorted: Vec<(&[u8], u64)> = order.iter().map(|&at| (keys.get(at), hash(keys.get(at)))).collect();
        let mut gathered = Gathered { places: vec![None; order.len()], ..Gathered::default() };
        let mut waiting: Vec<usize> = (0..order.len()).collect();
        for delta in [Some(&self.delta), self.frozen.as_ref()].into_iter().flatten() {
            in_memory(delta, &sorted, &mut waiting, &mut gathered);
        }
        for live in self.segments.iter().rev() {
            // All filters first: none waits for another's bytes.
            let likely = |&i: &usize| sorted.get(i).is_some_and(|(key, hash)| live.segment.may_have(key, *hash));
            let likely: Vec<usize> = waiting.iter().copied().filter(likely).collect();
            let (mut near, mut last, mut any) = (Near::default(), None, false);
            for i in likely {
                let Some(&(key, _)) = sorted.get(i) else { continue };
                let Some((block, at)) = live.segment.locate(columns, key, &mut near)? else { continue };
                let row = u32::try_from(block.rows.start + at as u64).unwrap_or(u32::MAX);
                if !live.deletes.contains(row) {
                    let first = block.rows.start;
                    let known = last.filter(|&(known, _)| known == first);
                    let (_, part) = known.unwrap_or_else(|| (first, gathered.add(Part::Block(block))));
                    last = Some((first, part));
                    gathered.put(i, (part, at));
                    any = true;
                }
            }
            if any {
                waiting.retain(|&i| gathered.places.get(i).is_some_and(Option::is_none));
            }
        }
        let mut found = vec![None; order.len()];
        let mut rows = Vec::with_capacity(order.len());
        for (at, place) in order.into_iter().zip(gathered.places) {
            let Some(place) = place else { continue };
            if let Some(slot) = found.get_mut(at) {
                *slot = Some(rows.len());
            }
            rows.push(place);
        }
        if rows.is_empty() {
            return Ok((RecordBatch::new_empty(SchemaRef::clone(schema)), found));
        }
        let batches: Vec<&RecordBatch> = gathered.parts.iter().map(Part::batch).collect();
        Ok((interleave_record_batch(&batches, &rows).map_err(arrow)?, found))
    }
}

fn in_memory(delta: &Delta, sorted: &[(&[u8], u64)], waiting: &mut Vec<usize>, gathered: &mut Gathered) {
    if delta.rows == 0 {
        return;
    }
    let mut numbers = std::collections::HashMap::new();
    waiting.retain(|&i| {
        let row = sorted.get(i).and_then(|(key, hash)| delta.find(key, *hash));
        let Some((batch, at)) = row.and_then(|row| delta.place(row)) else { return true };
        let Some(rows) = delta.batch(batch) else { return true };
        let part = *numbers.entry(batch).or_insert_with(|| gathered.add(Part::Memory(rows.clone())));
        gathered.put(i, (part, at));
        false
    });
}
