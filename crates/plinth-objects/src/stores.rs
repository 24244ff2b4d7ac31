//! The stores of a session: from a URL to a client, once for each bucket.

use std::collections::HashMap;
use std::io::Read;
use std::path::Path;
use std::sync::{Arc, Mutex};

use object_store::ObjectStore;
use plinth_core::sync::lock;
use plinth_io::{Io, Object, Objects, Result, Source, Version};
use tokio::sync::Semaphore;

use crate::connect::Way;
use crate::connected::Connected;
use crate::counters::{Counters, Traffic};
use crate::drive::{DriveCache, DriveOptions};
use crate::ends::Ends;
use crate::error::refused;
use crate::file::ObjectFile;
use crate::find;
use crate::pace::Limits;
use crate::runtime::wait;
use crate::secrets::Secrets;
use crate::small::Small;
use crate::stream::ObjectStream;
use crate::upload;
use crate::url::ObjectUrl;

/// How objects are read.
#[derive(Clone, Debug, Default)]
pub struct ObjectStoresOptions {
    /// What requests may take.
    pub limits: Limits,
    /// Where bytes are kept on the local drive; nowhere without.
    pub drive: Option<DriveOptions>,
    /// Whose memory streams take; that of the process without.
    pub io: Option<Io>,
}

impl ObjectStoresOptions {
    /// As a program reads for its user: with a folder for bytes below the user's caches.
    pub fn of_user() -> Self {
        Self { drive: DriveOptions::of_user(), ..Self::default() }
    }
}

/// The stores of a session.
#[derive(Debug)]
pub struct ObjectStores {
    secrets: Secrets,
    pub(crate) limits: Limits,
    counters: Arc<Counters>,
    drive: Option<Arc<DriveCache>>,
    io: Io,
    /// Clients by what stands before the path of a URL, with the version of the secrets that they were made with.
    open: Mutex<HashMap<String, (u64, Connected)>>,
    ends: Arc<Ends>,
}

impl ObjectStores {
    /// No store yet.
    pub fn new(options: ObjectStoresOptions) -> Self {
        Self {
            secrets: Secrets::default(),
            limits: options.limits,
            counters: Arc::default(),
            drive: options.drive.map(|drive| Arc::new(DriveCache::new(drive))),
            io: options.io.unwrap_or_else(|| Io::shared().clone()),
            open: Mutex::default(),
            ends: Arc::default(),
        }
    }

    /// What stores are asked with.
    pub fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    /// What went to stores and came from them so far.
    pub fn traffic(&self) -> Traffic {
        self.counters.now()
    }

    /// The store of a URL. Waits for the network the first time, where the region of a bucket is not known.
    ///
    /// # Errors
    /// If credentials are incomplete, or the store can't be found.
    pub fn connected(&self, url: &ObjectUrl) -> Result<Connected> {
        let (secret, version) = self.secrets.of(url);
        if let Some((known, connected)) = lock(&self.open).get(&url.base)
            && *known == version
        {
            return Ok(connected.clone());
        }
        let (url_of_way, counters, limits) = (url.clone(), Arc::clone(&self.counters), self.limits);
        let client = wait(async move {
            let way = Way { url: &url_of_way, secret: secret.as_deref(), limits, counters: &counters };
            way.connect().await
        })?;
        let connected = Connected {
            client,
            base: Arc::from(url.base.as_str()),
            pace: Arc::default(),
            limits: self.limits,
            gate: Arc::new(Semaphore::new(self.limits.in_flight)),
            counters: Arc::clone(&self.counters),
            drive: self.drive.clone(),
        };
        lock(&self.open).insert(url.base.clone(), (version, connected.clone()));
        Ok(connected)
    }

    /// The store whose client this is, if it is one of these.
    pub fn of_client(&self, client: &Arc<dyn ObjectStore>) -> Option<Connected> {
        let open = lock(&self.open);
        open.values().find(|(_, store)| Arc::ptr_eq(&store.client, client)).map(|(_, store)| store.clone())
    }

    fn small(&self, url: &str) -> Result<Small> {
        let parsed = ObjectUrl::parse(url)?;
        let (store, location) = (self.connected(&parsed)?, parsed.location()?);
        Ok(Small { store, location, url: url.to_owned() })
    }

    fn file(&self, object: &Object, io: &Io) -> Result<ObjectFile> {
        let url = ObjectUrl::parse(&object.url)?;
        let file = ObjectFile::new(self.connected(&url)?, url.location()?, object, io);
        if let Some(end) = self.ends.take(object) {
            file.has_end(&end);
        }
        Ok(file)
    }
}

impl Objects for ObjectStores {
    fn find(&self, url: &str) -> Result<Vec<Object>> {
        let url = ObjectUrl::parse(url)?;
        let store = self.connected(&url)?;
        let (deadline, ends) = (self.limits.deadline, Arc::clone(&self.ends));
        wait(async move { find::find(&store, &url, &ends, deadline).await })
    }

    fn open(&self, object: &Object, io: &Io) -> Result<Arc<dyn Source>> {
        Ok(Arc::new(self.file(object, io)?))
    }

    fn stream(&self, object: &Object) -> Result<Box<dyn Read + Send>> {
        Ok(Box::new(ObjectStream::new(self.file(object, &self.io)?)))
    }

    fn upload(&self, file: &Path, url: &str, replace: bool) -> Result<()> {
        let parsed = ObjectUrl::parse(url)?;
        if parsed.is_several() {
            return Err(refused(url, "this is no name of an object that can be written".to_owned()));
        }
        let (store, location) = (self.connected(&parsed)?, parsed.location()?);
        let (file, url) = (file.to_path_buf(), url.to_owned());
        wait(async move { upload::upload(&store, &file, &url, &location, replace).await })
    }

    fn get(&self, url: &str, most: u64) -> Result<Option<(Vec<u8>, Version)>> {
        let small = self.small(url)?;
        wait(async move { small.get(most).await })
    }

    fn put_if(&self, url: &str, bytes: Vec<u8>, instead_of: Option<&Version>) -> Result<Option<Version>> {
        let (small, instead_of) = (self.small(url)?, instead_of.cloned());
        wait(async move { small.put_if(bytes, instead_of).await })
    }

    fn remove(&self, url: &str) -> Result<()> {
        let small = self.small(url)?;
        wait(async move { small.remove().await })
    }
}
