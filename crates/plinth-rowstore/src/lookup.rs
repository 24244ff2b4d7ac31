//! The work with [indexes](crate::index): how trees are built beside segments, what they find, and how values stay unique.

mod build;
mod claims;
mod find;
mod narrow;
mod unique;

use std::sync::Arc;

use crate::index::{Definition, Indexes};
use crate::segment::Segment;
pub(crate) use claims::{Claims, Step};
pub use find::TableIndex;
pub use narrow::Narrowed;

impl Indexes {
    /// Those that a segment has trees of.
    pub(crate) fn of(&self, segment: &Segment) -> Vec<Arc<Definition>> {
        let key = segment.wants_key_tree().then(|| Arc::clone(&self.key));
        key.into_iter().chain(self.all().iter().map(Arc::clone)).collect()
    }
}
