//! Keys that expire: those of the files of AWS are read again while a query runs, and a request that was refused with keys that have been
//! renewed since is sent once more.
//!
//! Programs that sign in write new keys into the files before the old ones expire, or soon after.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use object_store::aws::AwsCredential;
use object_store::path::Path as Location;
use object_store::{
    CopyOptions, CredentialProvider, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use plinth_core::sync::lock;

use crate::error::is_denied;
use crate::profiles::Profile;

/// How long what the files said is believed.
const FRESH: Duration = Duration::from_secs(1);

/// The keys of a profile, as its files have them.
#[derive(Debug)]
pub(crate) struct KeysOfFiles {
    url: String,
    profile: Option<String>,
    known: Mutex<Known>,
}

#[derive(Debug)]
struct Known {
    keys: Arc<AwsCredential>,
    read: Instant,
    /// How often they have changed.
    version: u64,
}

impl KeysOfFiles {
    /// The keys that a profile has now; none if it has none.
    pub(crate) fn of(url: &str, named: Option<&str>, profile: &Profile) -> Option<Self> {
        let known = Known { keys: Arc::new(keys_of(profile)?), read: Instant::now(), version: 0 };
        Some(Self { url: url.to_owned(), profile: named.map(str::to_owned), known: Mutex::new(known) })
    }

    /// The keys, read again if that was long ago, and which they are.
    fn now(&self, age: Duration) -> (Arc<AwsCredential>, u64) {
        let mut known = lock(&self.known);
        if known.read.elapsed() >= age {
            known.read = Instant::now();
            // A file that is being written is read the next time.
            let keys = Profile::load(&self.url, self.profile.as_deref()).ok().and_then(|profile| keys_of(&profile));
            if let Some(keys) = keys.filter(|keys| *keys != *known.keys) {
                known.keys = Arc::new(keys);
                known.version += 1;
            }
        }
        (Arc::clone(&known.keys), known.version)
    }

    fn version(&self) -> u64 {
        self.now(FRESH).1
    }

    /// Whether there are other keys than those of a version.
    fn has_changed_since(&self, version: u64) -> bool {
        self.now(Duration::ZERO).1 > version
    }
}

fn keys_of(profile: &Profile) -> Option<AwsCredential> {
    Some(AwsCredential {
        key_id: profile.get("aws_access_key_id")?.to_owned(),
        secret_key: profile.get("aws_secret_access_key")?.to_owned(),
        token: profile.get("aws_session_token").map(str::to_owned),
    })
}

impl CredentialProvider for KeysOfFiles {
    type Credential = AwsCredential;

    // `async_trait`'s signature, written out.
    fn get_credential<'a: 'b, 'b>(&'a self) -> BoxFuture<'b, Result<Arc<AwsCredential>>>
    where
        Self: 'b,
    {
        Box::pin(async move { Ok(self.now(FRESH).0) })
    }
}

/// A store whose keys may be renewed.
#[derive(Debug)]
pub(crate) struct Renewed<S> {
    pub(crate) inner: S,
    pub(crate) keys: Arc<KeysOfFiles>,
}

impl<S> Renewed<S> {
    /// Asks, and once more if keys were refused and there are others.
    async fn ask<T, F: Future<Output = Result<T>>>(&self, ask: impl Fn() -> F) -> Result<T> {
        let version = self.keys.version();
        match ask().await {
            Err(error) if is_denied(&error) && self.keys.has_changed_since(version) => ask().await,
            answer => answer,
        }
    }
}

impl<S: ObjectStore> fmt::Display for Renewed<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.inner, f)
    }
}

// `async_trait`'s signatures, written out.
impl<S: ObjectStore> ObjectStore for Renewed<S> {
    fn put_opts<'a: 'c, 'b: 'c, 'c>(
        &'a self,
        location: &'b Location,
        payload: PutPayload,
        options: PutOptions,
    ) -> BoxFuture<'c, Result<PutResult>>
    where
        Self: 'c,
    {
        Box::pin(async move { self.ask(|| self.inner.put_opts(location, payload.clone(), options.clone())).await })
    }

    fn put_multipart_opts<'a: 'c, 'b: 'c, 'c>(
        &'a self,
        location: &'b Location,
        options: PutMultipartOptions,
    ) -> BoxFuture<'c, Result<Box<dyn MultipartUpload>>>
    where
        Self: 'c,
    {
        Box::pin(async move { self.ask(|| self.inner.put_multipart_opts(location, options.clone())).await })
    }

    fn get_opts<'a: 'c, 'b: 'c, 'c>(
        &'a self,
        location: &'b Location,
        options: GetOptions,
    ) -> BoxFuture<'c, Result<GetResult>>
    where
        Self: 'c,
    {
        Box::pin(async move { self.ask(|| self.inner.get_opts(location, options.clone())).await })
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Location>>) -> BoxStream<'static, Result<Location>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Location>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    fn list_with_offset(&self, prefix: Option<&Location>, offset: &Location) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list_with_offset(prefix, offset)
    }

    fn list_with_delimiter<'a: 'c, 'b: 'c, 'c>(
        &'a self,
        prefix: Option<&'b Location>,
    ) -> BoxFuture<'c, Result<ListResult>>
    where
        Self: 'c,
    {
        Box::pin(async move { self.ask(|| self.inner.list_with_delimiter(prefix)).await })
    }

    fn copy_opts<'a: 'd, 'b: 'd, 'c: 'd, 'd>(
        &'a self,
        from: &'b Location,
        to: &'c Location,
        options: CopyOptions,
    ) -> BoxFuture<'d, Result<()>>
    where
        Self: 'd,
    {
        Box::pin(async move { self.ask(|| self.inner.copy_opts(from, to, options.clone())).await })
    }
}
