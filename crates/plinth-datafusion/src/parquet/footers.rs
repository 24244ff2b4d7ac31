//! The footers of Parquet files that a session keeps.
//!
//! The engine's cache knows a file by its path within a store, its size and the time of its last change, which objects of two buckets may
//! share, as may two versions of one that were written within a second. Here a key names the store too, and what is kept of another
//! version, by the tag that the store gives it, is not found.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use datafusion_common::{HashMap, Result, TableReference};
use datafusion_datasource::PartitionedFile;
use datafusion_datasource_parquet::{CachedParquetFileReaderFactory, ParquetFileReaderFactory};
use datafusion_execution::cache::cache_manager::{CachedFileMetadataEntry, FileMetadataCache};
use datafusion_execution::cache::{Cache, CacheEntryInfo};
use datafusion_execution::object_store::ObjectStoreUrl;
use datafusion_physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion_session::Session;
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore};
use parquet::arrow::async_reader::AsyncFileReader;

/// The footers of files in one store.
#[derive(Clone)]
pub(super) struct Footers {
    kept: Arc<FileMetadataCache>,
    store: ObjectStoreUrl,
    client: Arc<dyn ObjectStore>,
}

impl Footers {
    /// # Errors
    /// If the session does not know the store.
    pub(super) fn new(session: &dyn Session, store: &ObjectStoreUrl) -> Result<Self> {
        let environment = session.runtime_env();
        let client = environment.object_store(store)?;
        Ok(Self { kept: environment.cache_manager.get_file_metadata_cache(), store: store.clone(), client })
    }

    pub(super) fn client(&self) -> &dyn ObjectStore {
        self.client.as_ref()
    }

    /// The cache of the footer of a file as it is now.
    pub(super) fn of(&self, file: &ObjectMeta) -> Arc<FileMetadataCache> {
        Arc::new(OfFile { kept: Arc::clone(&self.kept), store: self.store.clone(), tag: file.e_tag.clone() })
    }
}

impl fmt::Debug for Footers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Footers of {}", self.store)
    }
}

impl ParquetFileReaderFactory for Footers {
    fn create_reader(
        &self,
        partition: usize,
        file: PartitionedFile,
        size_hint: Option<usize>,
        metrics: &ExecutionPlanMetricsSet,
    ) -> Result<Box<dyn AsyncFileReader + Send>> {
        let footer = self.of(&file.object_meta);
        CachedParquetFileReaderFactory::new(Arc::clone(&self.client), footer)
            .create_reader(partition, file, size_hint, metrics)
    }
}

/// The session's cache as it is for one version of a file.
struct OfFile {
    kept: Arc<FileMetadataCache>,
    store: ObjectStoreUrl,
    tag: Option<String>,
}

impl OfFile {
    fn key(&self, path: &Path) -> Path {
        Path::from_iter([self.store.as_str(), path.as_ref()])
    }

    fn is_of(&self, entry: &CachedFileMetadataEntry) -> bool {
        entry.meta.e_tag == self.tag
    }
}

impl Cache<Path, CachedFileMetadataEntry> for OfFile {
    fn get(&self, path: &Path) -> Option<CachedFileMetadataEntry> {
        self.kept.get(&self.key(path)).filter(|entry| self.is_of(entry))
    }

    fn put(&self, path: &Path, entry: CachedFileMetadataEntry) -> Option<CachedFileMetadataEntry> {
        self.kept.put(&self.key(path), entry)
    }

    fn remove(&self, path: &Path) -> Option<CachedFileMetadataEntry> {
        self.kept.remove(&self.key(path))
    }

    fn contains_key(&self, path: &Path) -> bool {
        self.get(path).is_some()
    }

    fn len(&self) -> usize {
        self.kept.len()
    }

    fn clear(&self) {
        self.kept.clear();
    }

    fn name(&self) -> String {
        self.kept.name()
    }

    fn cache_limit(&self) -> usize {
        self.kept.cache_limit()
    }

    fn update_cache_limit(&self, limit: usize) {
        self.kept.update_cache_limit(limit);
    }

    fn cache_ttl(&self) -> Option<Duration> {
        self.kept.cache_ttl()
    }

    fn update_cache_ttl(&self, ttl: Option<Duration>) {
        self.kept.update_cache_ttl(ttl);
    }

    fn drop_table_entries(&self, table: &TableReference) -> Result<()> {
        self.kept.drop_table_entries(table)
    }

    fn list_entries(&self) -> HashMap<Path, CacheEntryInfo<CachedFileMetadataEntry>> {
        self.kept.list_entries()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::any::Any;

    use datafusion_execution::cache::cache_manager::FileMetadata;
    use datafusion_execution::runtime_env::RuntimeEnvBuilder;
    use object_store::memory::InMemory;

    use super::*;

    struct Footer(u64);

    impl FileMetadata for Footer {
        fn as_any(&self) -> &dyn Any {
            self
        }

        fn memory_size(&self) -> usize {
            8
        }

        fn extra_info(&self) -> HashMap<String, String> {
            HashMap::new()
        }
    }

    /// A footer is that of its store's file in the version that it was read of, however alike others are.
    #[test]
    fn footers_are_those_of_their_store_and_version() {
        let kept = RuntimeEnvBuilder::new().build().unwrap().cache_manager.get_file_metadata_cache();
        let in_store = |url: &str| Footers {
            kept: Arc::clone(&kept),
            store: ObjectStoreUrl::parse(url).unwrap(),
            client: Arc::new(InMemory::new()),
        };
        let file = |tag: Option<&str>| ObjectMeta {
            location: Path::from("a/b.parquet"),
            last_modified: Default::default(),
            size: 100,
            e_tag: tag.map(str::to_owned),
            version: None,
        };
        let files = [("s3://one", Some("1")), ("s3://two", Some("1")), ("gs://one", Some("1")), ("s3://three", None)];
        for (number, (store, tag)) in (0..).zip(files) {
            let meta = file(tag);
            let footers = in_store(store).of(&meta);
            assert!(footers.get(&meta.location).is_none(), "{store}");
            footers.put(&meta.location, CachedFileMetadataEntry::new(meta.clone(), Arc::new(Footer(number))));
        }
        for (number, (store, tag)) in (0..).zip(files) {
            let meta = file(tag);
            let entry = in_store(store).of(&meta).get(&meta.location).unwrap();
            assert_eq!(entry.file_metadata.as_any().downcast_ref::<Footer>().map(|footer| footer.0), Some(number));
            let newer = in_store(store).of(&file(Some("2")));
            assert!(newer.get(&meta.location).is_none() && !newer.contains_key(&meta.location), "{store}");
        }
    }
}
