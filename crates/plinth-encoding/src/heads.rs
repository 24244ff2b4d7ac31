//! The first values of runs: of rows that mostly repeat the one before, these alone say which values occur, what their extremes
//! are and how they are ordered.

use arrow_buffer::Buffer;

use crate::column::{Column, Values};

/// Rows that a run must have on average.
const LONG: usize = 4;
/// Neighbours that are compared together.
const TOGETHER: usize = 16;

impl Column {
    /// The first value of each run of equal values, if no row is null and runs have at least four rows on average. Of
    /// text and truth values there are none.
    pub fn heads(&self) -> Option<Self> {
        let Values::Fixed(bytes) = &self.values else { return None };
        if self.nulls.as_ref().is_some_and(|nulls| nulls.null_count() > 0) {
            return None;
        }
        match bytes.len().checked_div(self.len).filter(|width| bytes.len() == width * self.len)? {
            1 => first_of_runs::<1>(bytes),
            2 => first_of_runs::<2>(bytes),
            4 => first_of_runs::<4>(bytes),
            8 => first_of_runs::<8>(bytes),
            16 => first_of_runs::<16>(bytes),
            _ => None,
        }
    }
}

fn first_of_runs<const W: usize>(bytes: &[u8]) -> Option<Column> {
    let values = bytes.as_chunks::<W>().0;
    let most = values.len() / LONG;
    let first = values.first().filter(|_| most > 0)?;
    let mut heads = vec![*first];
    let few = for_each_head(values, |_, head| {
        heads.push(*head);
        heads.len() <= most
    });
    few.then(|| Column { len: heads.len(), values: Values::Fixed(Buffer::from(heads.as_flattened())), nulls: None })
}

/// Calls `each` with the place and the value of each row that differs from the one before, until it says stop: then false.
pub(crate) fn for_each_head<T: PartialEq>(values: &[T], mut each: impl FnMut(usize, &T) -> bool) -> bool {
    let after = values.get(1..).unwrap_or(&[]);
    for (chunk, (before, after)) in values.chunks(TOGETHER).zip(after.chunks(TOGETHER)).enumerate() {
        // Most neighbours are equal.
        if before.get(..after.len()) == Some(after) {
            continue;
        }
        for (i, (before, after)) in before.iter().zip(after).enumerate() {
            if before != after && !each(chunk * TOGETHER + i + 1, after) {
                return false;
            }
        }
    }
    true
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check<const W: usize>(runs: &[(u8, usize)]) {
        let rows: Vec<[u8; W]> = runs.iter().flat_map(|&(value, rows)| std::iter::repeat_n([value; W], rows)).collect();
        let mut heads = rows.clone();
        heads.dedup();
        let column = Column { len: rows.len(), values: Values::Fixed(Buffer::from(rows.as_flattened())), nulls: None };
        let found = column.heads().map(|found| {
            let Values::Fixed(bytes) = found.values else { panic!("other values") };
            assert_eq!(bytes.len(), found.len * W);
            bytes.as_chunks::<W>().0.to_vec()
        });
        let few = !rows.is_empty() && heads.len() <= rows.len() / LONG;
        assert_eq!(found, few.then_some(heads));
    }

    proptest! {
        #[test]
        fn heads_are_the_rows_without_repeats(runs in prop::collection::vec((0_u8..3, 1_usize..40), 0..40)) {
            check::<1>(&runs);
            check::<2>(&runs);
            check::<4>(&runs);
            check::<8>(&runs);
            check::<16>(&runs);
        }
    }

    #[test]
    fn rows_that_differ_have_none() {
        let rows = |count: u32| Buffer::from_vec((0..count).collect::<Vec<u32>>());
        let column = |values, nulls| Column { len: 100, values: Values::Fixed(values), nulls };
        assert!(column(rows(100), None).heads().is_none());
        assert!(column(Buffer::from_vec(vec![7_u32; 100]), None).heads().is_some_and(|heads| heads.len == 1));
        let nulls = Some(arrow_buffer::NullBuffer::from_iter((0..100).map(|row| row != 3)));
        assert!(column(Buffer::from_vec(vec![7_u32; 100]), nulls).heads().is_none());
        assert!(column(Buffer::from_vec(vec![7_u32; 99]), None).heads().is_none());
    }
}
