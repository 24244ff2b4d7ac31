//! Bytes that are looked for in others.

use std::sync::Arc;

use memchr::memmem::Finder;

/// Bytes that are looked for in others. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Needle(Arc<Finder<'static>>);

impl Needle {
    /// To look for these bytes.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Self {
        Self(Arc::new(Finder::new(bytes).into_owned()))
    }

    /// What is looked for.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.0.needle()
    }

    /// Whether it is in a value.
    #[must_use]
    pub fn is_in(&self, value: &[u8]) -> bool {
        self.find(value).is_some()
    }

    /// Where it is for the first time.
    #[must_use]
    pub fn find(&self, value: &[u8]) -> Option<usize> {
        self.0.find(value)
    }
}
