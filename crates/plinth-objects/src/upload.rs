//! A file of this machine as an object: whole, or not at all.
//!
//! A small one is one request, which the store refuses if there is an object of that name. A large one goes in parts, several
//! at a time, and appears when the last request names them all; what was sent is taken back if that fails.

use std::fs::File;
use std::path::Path;

use bytes::Bytes;
use futures::stream::{FuturesUnordered, StreamExt};
use object_store::path::Path as Location;
use object_store::{MultipartUpload, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload};
use plinth_io::{IoError, Result, read_exact_at};
use tokio::time::timeout;

use crate::connected::Connected;
use crate::error::{failed, late};

/// Bytes of a part; of an object that has no parts, at most twice as many.
const PART: u64 = 8 << 20;

/// The most parts that stores take.
const PARTS: u64 = 10_000;

/// Parts under way.
const UNDER_WAY: usize = 6;

/// Sends a file.
pub(crate) async fn upload(store: &Connected, path: &Path, url: &str, to: &Location, replace: bool) -> Result<()> {
    let file = File::open(path).map_err(|e| IoError::os(path, "open", e))?;
    let len = file.metadata().map_err(|e| IoError::os(path, "read its size", e))?.len();
    let sending = Sending { store, url, len };
    let exists = || IoError::Exists { path: url.to_owned() };
    if len <= 2 * PART {
        let bytes = part(&file, path, 0, len).await?;
        let mode = if replace { PutMode::Overwrite } else { PutMode::Create };
        let options = PutOptions { mode, ..PutOptions::default() };
        let sent = sending.within(len, store.client.put_opts(to, PutPayload::from_bytes(bytes), options)).await?;
        return match sent {
            Ok(_) => Ok(()),
            Err(object_store::Error::AlreadyExists { .. } | object_store::Error::Precondition { .. }) => Err(exists()),
            Err(e) => Err(sending.failed(&e)),
        };
    }
    if !replace && sending.within(0, store.client.head(to)).await?.is_ok() {
        return Err(exists());
    }
    let begun = sending.within(0, store.client.put_multipart(to)).await?;
    let mut upload = begun.map_err(|e| sending.failed(&e))?;
    let sent = sending.parts(&mut *upload, &file, path).await;
    if sent.is_err() {
        // That it can't be taken back is not what went wrong.
        drop(sending.within(0, upload.abort()).await);
    }
    sent
}

struct Sending<'a> {
    store: &'a Connected,
    url: &'a str,
    len: u64,
}

impl Sending<'_> {
    fn action(&self) -> String {
        format!("write {} bytes", self.len)
    }

    fn failed(&self, error: &object_store::Error) -> IoError {
        failed(self.url, &self.action(), error)
    }

    /// Waits as long as a request with so many bytes may take.
    async fn within<T>(&self, bytes: u64, request: impl Future<Output = T>) -> Result<T> {
        let most = self.store.limits.allowed(bytes);
        timeout(most, request).await.map_err(|_| late(self.url, &self.action(), most.as_secs_f64()))
    }

    async fn parts(&self, upload: &mut dyn MultipartUpload, file: &File, path: &Path) -> Result<()> {
        let size = PART.max(self.len.div_ceil(PARTS));
        let mut under_way = FuturesUnordered::new();
        let mut at = 0;
        while at < self.len || !under_way.is_empty() {
            if at < self.len && under_way.len() < UNDER_WAY {
                let bytes = part(file, path, at, size.min(self.len - at)).await?;
                at += bytes.len() as u64;
                under_way.push(upload.put_part(PutPayload::from_bytes(bytes)));
                continue;
            }
            if let Some(sent) = self.within(size, under_way.next()).await? {
                sent.map_err(|e| self.failed(&e))?;
            }
        }
        drop(under_way);
        self.within(0, upload.complete()).await?.map_err(|e| self.failed(&e))?;
        Ok(())
    }
}

/// Some bytes of the file.
async fn part(file: &File, path: &Path, at: u64, len: u64) -> Result<Bytes> {
    let file = file.try_clone().map_err(|e| IoError::os(path, "open", e))?;
    let read = tokio::task::spawn_blocking(move || {
        let mut bytes = vec![0; usize::try_from(len).map_err(std::io::Error::other)?];
        read_exact_at(&file, &mut bytes, at).map(|()| Bytes::from(bytes))
    });
    let read = read.await.map_err(|_| IoError::Abandoned)?;
    read.map_err(|e| IoError::os(path, format!("read {len} bytes at {at}"), e))
}
