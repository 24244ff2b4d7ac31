//! Small objects that are read and written as a whole, on the condition that no other writer has changed them.

use object_store::path::Path as Location;
use object_store::{ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload, UpdateVersion};
use plinth_io::{IoError, Result, Version};
use tokio::time::timeout;

use crate::connected::Connected;
use crate::error::{failed, late, refused};

/// An object by its name.
pub(crate) struct Small {
    pub(crate) store: Connected,
    pub(crate) location: Location,
    pub(crate) url: String,
}

impl Small {
    /// Waits as long as a request may take.
    async fn within<T>(&self, bytes: usize, action: &str, request: impl Future<Output = T>) -> Result<T> {
        let most = self.store.limits.allowed(bytes as u64);
        timeout(most, request).await.map_err(|_| late(&self.url, action, most.as_secs_f64()))
    }

    fn failed(&self, action: &str, error: &object_store::Error) -> IoError {
        failed(&self.url, action, error)
    }

    pub(crate) async fn get(&self, most: u64) -> Result<Option<(Vec<u8>, Version)>> {
        const ACTION: &str = "read";
        let got = match self.within(0, ACTION, self.store.client.get(&self.location)).await? {
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            got => got.map_err(|e| self.failed(ACTION, &e))?,
        };
        let bytes = got.meta.size;
        if bytes > most {
            return Err(refused(&self.url, format!("it has {bytes} bytes, more than the {most} that are read")));
        }
        let version = Version { tag: got.meta.e_tag.clone(), generation: got.meta.version.clone() };
        let size = usize::try_from(bytes).unwrap_or(usize::MAX);
        let bytes = self.within(size, ACTION, got.bytes()).await?.map_err(|e| self.failed(ACTION, &e))?;
        self.store.counters.came(bytes.len());
        Ok(Some((bytes.into(), version)))
    }

    pub(crate) async fn put_if(&self, bytes: Vec<u8>, instead_of: Option<Version>) -> Result<Option<Version>> {
        use object_store::Error::{AlreadyExists, NotFound, Precondition};
        const ACTION: &str = "write";
        let mode = match instead_of {
            None => PutMode::Create,
            Some(Version { tag: None, generation: None }) => {
                let what =
                    "the store gives no versions, so that nothing tells whether others have changed it meanwhile";
                return Err(refused(&self.url, what.to_owned()));
            }
            Some(Version { tag, generation }) => PutMode::Update(UpdateVersion { e_tag: tag, version: generation }),
        };
        let (len, options) = (bytes.len(), PutOptions { mode, ..PutOptions::default() });
        let put = self.store.client.put_opts(&self.location, PutPayload::from(bytes), options);
        match self.within(len, ACTION, put).await? {
            Ok(put) => Ok(Some(Version { tag: put.e_tag, generation: put.version })),
            Err(AlreadyExists { .. } | Precondition { .. } | NotFound { .. }) => Ok(None),
            Err(e) => Err(self.failed(ACTION, &e)),
        }
    }

    pub(crate) async fn remove(&self) -> Result<()> {
        const ACTION: &str = "remove";
        match self.within(0, ACTION, self.store.client.delete(&self.location)).await? {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(e) => Err(self.failed(ACTION, &e)),
        }
    }
}
