//! An object whose bytes are asked for.

use std::sync::Arc;
use std::time::SystemTime;

use object_store::path::Path as Location;

use crate::connected::Connected;
use crate::drive::ObjectKey;

/// What requests for an object's bytes need.
pub(crate) struct Target {
    pub(crate) store: Connected,
    pub(crate) location: Location,
    /// Its URL.
    pub(crate) name: Arc<str>,
    pub(crate) tag: Option<String>,
    /// When it was changed last, which tells versions apart where there are no tags.
    pub(crate) modified: Option<SystemTime>,
    /// What it is kept under on the local drive; `None` if nothing tells it from another of its name.
    pub(crate) key: Option<ObjectKey>,
    pub(crate) len: u64,
}
