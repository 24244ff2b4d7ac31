//! A store that can be asked: its client, its times, and what requests to it may take.

use std::fmt;
use std::sync::Arc;

use object_store::ObjectStore;
use object_store::path::Path as Location;
use tokio::sync::Semaphore;

use crate::counters::Counters;
use crate::drive::DriveCache;
use crate::pace::{Limits, Pace};

/// A store that can be asked.
#[derive(Clone)]
pub struct Connected {
    pub(crate) client: Arc<dyn ObjectStore>,
    /// What stands before the path of its URLs.
    pub(crate) base: Arc<str>,
    pub(crate) pace: Arc<Pace>,
    pub(crate) limits: Limits,
    pub(crate) gate: Arc<Semaphore>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) drive: Option<Arc<DriveCache>>,
}

impl Connected {
    /// A store that someone else has the client of.
    pub fn of(client: Arc<dyn ObjectStore>) -> Self {
        let limits = Limits::default();
        Self {
            base: Arc::from(client.to_string()),
            client,
            pace: Arc::default(),
            limits,
            gate: Arc::new(Semaphore::new(limits.in_flight)),
            counters: Arc::default(),
            drive: None,
        }
    }

    /// The client.
    pub fn client(&self) -> &Arc<dyn ObjectStore> {
        &self.client
    }

    /// The URL of an object of it.
    pub fn url(&self, location: &Location) -> String {
        format!("{}/{location}", self.base)
    }
}

impl fmt::Debug for Connected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connected").field("limits", &self.limits).finish_non_exhaustive()
    }
}
