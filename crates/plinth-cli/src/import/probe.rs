//! A hint for files whose writers did not say that their binaries are text.

use std::collections::BTreeSet;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::DataType;
use plinth_ingest::BatchSource;

/// Looks whether binary columns hold text (ClickHouse and Impala write strings without saying that they are).
pub(super) struct TextProbe {
    undecided: BTreeSet<usize>,
    seen: BTreeSet<usize>,
    batches: usize,
}

impl TextProbe {
    /// Values looked at in a batch, and batches.
    const VALUES: usize = 200;
    const BATCHES: usize = 8;

    pub(super) fn new(source: &dyn BatchSource) -> Self {
        let columns = 0..source.schema().fields().len();
        Self { undecided: columns.filter(|at| source.is_binary(*at)).collect(), seen: BTreeSet::new(), batches: 0 }
    }

    pub(super) fn look(&mut self, batch: &RecordBatch) {
        self.batches += 1;
        if self.batches > Self::BATCHES {
            return;
        }
        let seen = &mut self.seen;
        self.undecided.retain(|at| {
            let Some(array) = batch.columns().get(*at) else { return false };
            let values: &ArrayRef = match array.data_type() {
                DataType::Dictionary(..) => array.as_dictionary::<Int32Type>().values(),
                _ => array,
            };
            let Some(values) = values.as_binary_view_opt() else { return true };
            let mut texts = values.iter().flatten().filter(|value| !value.is_empty()).take(Self::VALUES).peekable();
            if texts.peek().is_some() {
                seen.insert(*at);
            }
            texts.all(|value| std::str::from_utf8(value).is_ok_and(|text| !text.contains('\0')))
        });
    }

    pub(super) fn finish(self, schema: &arrow_schema::Schema) -> Vec<String> {
        let columns = self.undecided.intersection(&self.seen);
        columns.filter_map(|at| schema.fields().get(*at)).map(|field| field.name().clone()).collect()
    }
}
