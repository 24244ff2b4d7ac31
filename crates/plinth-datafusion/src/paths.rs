//! Tables by path: `FROM 'events.plinth'`, `FROM 'events/'`, `FROM 'events/2024-*.plinth'`, `FROM 'events.csv.gz'`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion_catalog::UrlTableFactory;
use datafusion_common::{DataFusionError, Result, internal_err};
use datafusion_datasource::ListingTableUrl;
use datafusion_session::{Session, TableProvider};
use futures::future::BoxFuture;
use plinth_ingest::{FileFormat, IngestError, Listing, SourceOptions};
use plinth_io::objects::{is_pattern, is_url};
use plinth_io::{Object, Objects};
use plinth_rowstore::{Table, TableOptions, unasked_segments};
use plinth_table::TableFolder;

use crate::error::from_join;
use crate::foreign::ForeignTable;
use crate::kept::{KeptTables, Named};
use crate::parquet::ParquetTable;
use crate::profile::spawn_blocking;
use crate::rows::{StoreTable, Stores};
use crate::{EXTENSION, FileOptions, location};

/// The session that names are resolved in.
pub trait CurrentSession: std::fmt::Debug + Send + Sync {
    /// Its state as it is now.
    ///
    /// # Errors
    /// If it has ended.
    fn current(&self) -> Result<Arc<dyn Session>>;
}

/// Resolves paths in FROM clauses: a `.plinth` file, a folder of them, or a pattern that matches them becomes a
/// [`PlinthTable`](crate::PlinthTable), which stays open for the next statement that names it; a folder that can be written to a
/// [`StoreTable`]; the files, folders and patterns of foreign files that an import takes a [`ForeignTable`] of text, or a
/// [`ParquetTable`]; stores that were registered with the engine, and folders of folders of Plinth files, go to another factory;
/// what is missing or unknown is an error that says so.
///
/// A name that does not look like a path (no separator, no dot, no wildcard, no scheme) and is neither a file nor a folder
/// of tables is left to the catalog, which knows best how to say that there is no such table.
#[derive(Debug)]
pub struct PathTables {
    others: Arc<dyn UrlTableFactory>,
    session: Arc<dyn CurrentSession>,
    options: FileOptions,
    text: SourceOptions,
    stores: Arc<Stores>,
    kept: Arc<KeptTables>,
}

impl PathTables {
    /// Reads files here, Parquet in a session, and leaves what is no file to `others` (DataFusion's `DynamicListTableFactory`).
    pub fn new(others: Arc<dyn UrlTableFactory>, session: Arc<dyn CurrentSession>) -> Self {
        let stores = Arc::new(Stores::new(TableOptions::default()));
        let (options, text) = (FileOptions::default(), SourceOptions { hive: true, ..SourceOptions::default() });
        Self { others, session, options, text, stores, kept: Arc::default() }
    }

    /// Says which writable tables are open.
    #[must_use]
    pub fn with_stores(self, stores: Arc<Stores>) -> Self {
        Self { stores, ..self }
    }

    /// Says how text is read.
    #[must_use]
    pub fn with_text(self, text: SourceOptions) -> Self {
        Self { text, ..self }
    }

    /// Says how Plinth files are opened and written.
    #[must_use]
    pub fn with_options(self, options: FileOptions) -> Self {
        Self { options, ..self }
    }

    fn resolve(&self, name: &str) -> Result<Target> {
        let (url_scheme, path) = match name.split_once("://") {
            // A store that was registered with the engine.
            Some((scheme, _)) if !scheme.eq_ignore_ascii_case("file") => {
                let url = name.split('?').next().unwrap_or(name);
                if extension(Path::new(url)).as_deref() == Some(EXTENSION) {
                    location::check_scheme(scheme, name)?;
                }
                return Ok(Target::Others);
            }
            Some(_) => (true, location::to_path(ListingTableUrl::parse(name)?.prefix())),
            None => (false, PathBuf::from(name)),
        };
        let is_path = url_scheme || name.contains(['/', '\\', '.', '*', '?', '[']);
        match path.metadata() {
            Ok(metadata) if metadata.is_dir() && Table::is_table(&path) => Ok(Target::Store(path)),
            Ok(metadata) if metadata.is_dir() => self.folder(&path, is_path),
            Ok(_) => {
                plinth_io::regular::check(&path).map_err(|e| DataFusionError::External(Box::new(e)))?;
                self.file(path, is_path)
            }
            Err(_) if !is_path => Ok(Target::Unknown),
            Err(_) if !url_scheme && name.contains(['*', '?', '[']) => self.pattern(name),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                let what = format!("{}: no such file or folder", path.display());
                Err(DataFusionError::IoError(std::io::Error::new(e.kind(), what)))
            }
            Err(e) => {
                let what = format!("{}: cannot be opened: {e}", path.display());
                Err(DataFusionError::IoError(std::io::Error::new(e.kind(), what)))
            }
        }
    }

    /// Who reads what a URL names. Waits for its store.
    fn resolve_url(url: &str, objects: &Arc<dyn Objects>, text: &SourceOptions) -> Result<Target> {
        let external = |e| DataFusionError::External(Box::new(e));
        let of_url = |url: &str| extension(Path::new(url));
        let is_foreign = |url: &str| FileFormat::of_path(Path::new(url)).is_some();
        let listed = |url: &str, found| Ok(Target::Listed(Listing::of_objects(url, found, text).map_err(unlisted)?));
        let several = url.ends_with('/') || is_pattern(url);
        if !several && is_foreign(url) {
            return listed(url, objects.find(url).map_err(external)?);
        }
        let folder = format!("{}/", url.trim_end_matches('/'));
        let (found, whole) = match objects.find(url) {
            // A folder, named without its last letter.
            Err(e) if !several && e.is_not_found() && of_url(url).as_deref() != Some(EXTENSION) => {
                let below = objects.find(&folder).map_err(external)?;
                if below.is_empty() && Self::holds_table(url, objects) {
                    return Err(DataFusionError::Plan(format!("{url}: {WRITABLE}")));
                }
                if below.is_empty() {
                    return Err(external(e));
                }
                (below, folder.as_str())
            }
            found => (found.map_err(external)?, url),
        };
        if let Some(what) = unasked_segments(url, found.iter().map(|object| &object.url).filter(|_| is_pattern(url))) {
            return Err(DataFusionError::Plan(what));
        }
        let found = plinth_table::current(found, Some(folder.as_str()).filter(|_| !is_pattern(url)), objects);
        let found = found.map_err(crate::from_format)?;
        let fail = |what: String| Err(DataFusionError::Plan(format!("{url}: {what}")));
        let is_ours = |object: &Object| of_url(&object.url).as_deref() == Some(EXTENSION);
        let is_readable = |object: &&Object| is_ours(object) || is_foreign(&object.url);
        let readable: Vec<&Object> = found.iter().filter(is_readable).collect();
        let (Some(first), false) = (readable.first(), is_pattern(url) && readable.len() < found.len()) else {
            return match found.iter().find(|object| !is_readable(object)) {
                Some(other) => fail(format!("{}: files that can be read end in {}", other.url, known())),
                None if !is_pattern(url) && Self::holds_table(url, objects) => fail(WRITABLE.to_owned()),
                None => fail("no object matches".to_owned()),
            };
        };
        let other = readable.iter().find(|object| is_ours(object) != is_ours(first));
        if let Some(other) = other {
            return fail(format!("names .{EXTENSION} files and others ({}); a table is of one format", other.url));
        }
        let is_ours = is_ours(first);
        let found = readable.into_iter().cloned().collect();
        if is_ours { Ok(Target::Objects(found)) } else { listed(whole, found) }
    }

    /// Whether the folder of a URL is that of a writable table.
    fn holds_table(url: &str, objects: &Arc<dyn Objects>) -> bool {
        let manifest = format!("{}/{}", url.trim_end_matches('/'), Table::MANIFEST);
        objects.find(&manifest).is_ok_and(|found| !found.is_empty())
    }

    /// A table of a URL.
    async fn open_url(&self, url: &str, objects: Arc<dyn Objects>) -> Result<Arc<dyn TableProvider>> {
        let (name, text) = (url.to_owned(), self.text.clone());
        let target = spawn_blocking(move || Self::resolve_url(&name, &objects, &text)).await.map_err(from_join)?;
        match target? {
            Target::Listed(listing) => self.listed(listing).await,
            Target::Objects(found) => {
                let (kept, options, name) = (Arc::clone(&self.kept), self.options.clone(), url.to_owned());
                let opened = spawn_blocking(move || kept.open(Named::Objects(name, found), &options));
                Ok(opened.await.map_err(from_join)??)
            }
            _ => internal_err!("a URL that names no objects"),
        }
    }

    /// A table of foreign files.
    async fn listed(&self, listing: Listing) -> Result<Arc<dyn TableProvider>> {
        if listing.format() == FileFormat::Parquet {
            let session = self.session.current()?;
            return Ok(Arc::new(ParquetTable::open(session.as_ref(), &listing).await?));
        }
        let text = self.text.clone();
        let opened = spawn_blocking(move || ForeignTable::of(listing, text)).await.map_err(from_join)?;
        Ok(Arc::new(opened?))
    }

    /// What an import of the same name would read.
    fn foreign(&self, path: &Path) -> Result<Listing, IngestError> {
        Listing::of(&[path], &self.text)
    }

    fn file(&self, path: PathBuf, is_path: bool) -> Result<Target> {
        let found = extension(&path);
        if found.as_deref() == Some(EXTENSION) {
            return Ok(Target::Files(vec![path]));
        }
        if FileFormat::of_path(&path).is_some() {
            return self.foreign(&path).map(Target::Listed).map_err(unlisted);
        }
        if !is_path {
            return Ok(Target::Unknown);
        }
        let what = match path.extension() {
            Some(extension) => format!("unknown extension .{}", extension.to_string_lossy()),
            None => "no extension says what it is".to_owned(),
        };
        let what = format!("{}: {what}; files that can be read end in {}", path.display(), known());
        Err(DataFusionError::Plan(what))
    }

    fn folder(&self, path: &Path, is_path: bool) -> Result<Target> {
        let files = visible(path)?;
        let both = |other: &Path| {
            let what = format!(
                "{0}: holds .{EXTENSION} files and others ({1}); say which with a pattern, like '{0}/*.{EXTENSION}'",
                path.display(),
                other.strip_prefix(path).unwrap_or(other).display(),
            );
            DataFusionError::Plan(what)
        };
        let other = files.iter().find(|path| FileFormat::of_path(path).is_some());
        if files.iter().any(|path| is_ours(path)) {
            return other.map_or(Ok(Target::Folder(path.to_path_buf())), |other| Err(both(other)));
        }
        // A name that is no path is one of a folder if it holds files itself.
        if !is_path && other.is_none() {
            return Ok(Target::Unknown);
        }
        match (self.foreign(path), ours_below(path)?) {
            (Ok(listing), None) => Ok(Target::Listed(listing)),
            (Ok(_), Some(ours)) => Err(both(&ours)),
            (Err(IngestError::NothingIn { .. }), Some(_)) => Ok(Target::Others),
            (Err(IngestError::NothingIn { .. }), None) => {
                Err(DataFusionError::Plan(format!("{}: no file in this folder ends in {}", path.display(), known())))
            }
            (Err(error), _) => Err(unlisted(error)),
        }
    }

    fn pattern(&self, pattern: &str) -> Result<Target> {
        let fail = |what: String| DataFusionError::Plan(format!("{pattern}: {what}"));
        let mut files = Vec::new();
        for found in glob::glob_with(pattern, MATCHING).map_err(|e| fail(format!("not a valid pattern: {e}")))? {
            files.push(found.map_err(|e| fail(e.to_string()))?);
        }
        // Sorted by name, as `glob` gives them.
        let ours = |path: &PathBuf| extension(path).as_deref() == Some(EXTENSION);
        let (plinth, others): (Vec<PathBuf>, Vec<PathBuf>) = files.into_iter().partition(ours);
        match (plinth.is_empty(), others.first()) {
            (true, None) => Err(fail("no file matches".to_owned())),
            (true, Some(_)) => match self.foreign(Path::new(pattern)) {
                // Folders of Plinth files.
                Err(IngestError::NoMatch { .. }) => Ok(Target::Others),
                listing => listing.map(Target::Listed).map_err(unlisted),
            },
            (false, None) => Ok(Target::Files(of_now(pattern, plinth)?)),
            (false, Some(other)) => {
                Err(fail(format!("matches .plinth files and others ({}); a table is of one format", other.display())))
            }
        }
    }
}

/// Why foreign files are no table.
fn unlisted(error: IngestError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// The extensions of files that can be read.
fn known() -> String {
    let foreign = FileFormat::ALL.iter().flat_map(|format| format.extensions());
    std::iter::once(&EXTENSION).chain(foreign).map(|known| format!(".{known}")).collect::<Vec<_>>().join(", ")
}

/// What a folder holds, sorted, but for what is hidden.
fn visible(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).and_then(Iterator::collect::<std::io::Result<Vec<_>>>);
    let entries = entries.map_err(|e| DataFusionError::Plan(format!("{}: cannot be listed: {e}", folder.display())))?;
    let visible = |path: &PathBuf| path.file_name().is_some_and(|name| !name.to_string_lossy().starts_with(['.', '_']));
    let mut files: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path()).filter(visible).collect();
    files.sort();
    Ok(files)
}

fn is_ours(path: &Path) -> bool {
    extension(path).as_deref() == Some(EXTENSION) && path.is_file()
}

/// A Plinth file somewhere below a folder.
fn ours_below(folder: &Path) -> Result<Option<PathBuf>> {
    let mut open = vec![folder.to_path_buf()];
    while let Some(folder) = open.pop() {
        for path in visible(&folder)? {
            if is_ours(&path) {
                return Ok(Some(path));
            }
            // Links are not followed, as imports do not follow them.
            if path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir()) {
                open.push(path);
            }
        }
    }
    Ok(None)
}

/// What is said of a writable table in a store.
const WRITABLE: &str = "is a table that can be changed row by row, which is read where it was made, for its log and deletes are \
                        files of that folder; plinth export or COPY makes a file of it that a store can hold";

/// Who reads a path.
enum Target {
    Files(Vec<PathBuf>),
    Folder(PathBuf),
    /// A folder that is a writable table.
    Store(PathBuf),
    /// Plinth files in an object store.
    Objects(Vec<Object>),
    /// Foreign files.
    Listed(Listing),
    Others,
    /// Not a path as far as we can tell.
    Unknown,
}

/// Options of patterns: hidden files must be asked for.
const MATCHING: glob::MatchOptions =
    glob::MatchOptions { case_sensitive: true, require_literal_separator: false, require_literal_leading_dot: true };

/// Of the files that match a pattern those that are part of their folders' tables, each folder at one moment: a file that
/// was compacted may still be there.
fn of_now(pattern: &str, found: Vec<PathBuf>) -> Result<Vec<PathBuf>> {
    if let Some(what) = unasked_segments(pattern, found.iter()) {
        return Err(DataFusionError::Plan(what));
    }
    let fail = |e: &dyn std::fmt::Display| DataFusionError::Plan(format!("{pattern}: {e}"));
    let last = Path::new(pattern).file_name().and_then(|name| name.to_str()).unwrap_or("*");
    let name_pattern = glob::Pattern::new(last).map_err(|e| fail(&e))?;
    let mut folders: Vec<&Path> = found.iter().filter_map(|path| path.parent()).collect();
    folders.sort();
    folders.dedup();
    let mut files = Vec::new();
    for folder in folders {
        let here = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let listed = TableFolder::new(here).list().map_err(crate::from_format)?;
        let names = listed.iter().map(plinth_table::Listed::name);
        let matching = names.filter(|name| name.to_str().is_some_and(|name| name_pattern.matches_with(name, MATCHING)));
        files.extend(matching.map(|name| folder.join(name)));
    }
    // Names that a folder's table leaves out, but the pattern spells out.
    let spelled = |path: &&PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(['.', '_']));
    files.extend(found.iter().filter(spelled).cloned());
    if files.is_empty() { Err(fail(&"no file matches")) } else { Ok(files) }
}

/// The extension that says what a file holds, in lower case, without the dot and not minding a compressor's.
fn extension(path: &Path) -> Option<String> {
    let lower = |path: &Path| Some(path.extension()?.to_str()?.to_ascii_lowercase());
    let last = lower(path)?;
    match last.as_str() {
        "gz" | "bz2" | "xz" | "zst" | "lz4" => lower(Path::new(path.file_stem()?)),
        _ => Some(last),
    }
}

impl UrlTableFactory for PathTables {
    fn try_new<'a: 'c, 'b: 'c, 'c>(&'a self, url: &'b str) -> BoxFuture<'c, Result<Option<Arc<dyn TableProvider>>>> {
        Box::pin(async move {
            if let Some(objects) = self.options.open.objects.as_ref().filter(|_| is_url(url)) {
                return self.open_url(url, Arc::clone(objects)).await.map(Some);
            }
            let table: Arc<dyn TableProvider> = match self.resolve(url)? {
                Target::Files(files) => self.kept.open(Named::Files(files), &self.options)?,
                Target::Folder(folder) => self.kept.open(Named::Folder(folder), &self.options)?,
                Target::Store(folder) => Arc::new(StoreTable::open(&self.stores, &folder)?),
                Target::Listed(listing) => self.listed(listing).await?,
                Target::Objects(_) | Target::Others => return self.others.try_new(url).await,
                Target::Unknown => return Ok(None),
            };
            Ok(Some(table))
        })
    }
}
