//! Tables by path: `FROM 'events.plinth'`, `FROM 'events/'`, `FROM 'events/2024-*.plinth'`, `FROM 'events.csv.gz'`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion_catalog::UrlTableFactory;
use datafusion_common::{DataFusionError, Result};
use datafusion_datasource::ListingTableUrl;
use datafusion_session::TableProvider;
use futures::future::BoxFuture;
use plinth_ingest::{FileFormat, SourceOptions};
use plinth_io::objects::{is_pattern, is_url};
use plinth_io::{Object, Objects};
use plinth_rowstore::{Table, TableOptions, unasked_segments};
use plinth_table::TableFolder;

use crate::error::from_join;
use crate::foreign::ForeignTable;
use crate::kept::{KeptTables, Named};
use crate::profile::spawn_blocking;
use crate::rows::{StoreTable, Stores};
use crate::{EXTENSION, FileOptions, location};

/// Resolves paths in FROM clauses: a `.plinth` file, a folder of them, or a pattern that matches them becomes a
/// [`PlinthTable`](crate::PlinthTable), which stays open for the next statement that names it; a folder that can be written to a [`StoreTable`], text a [`ForeignTable`]; the other formats it knows, folders in folders and objects elsewhere go to another
/// factory; what is missing or unknown is an error that says so.
///
/// A name that does not look like a path (no separator, no dot, no wildcard, no scheme) and is neither a file nor a folder
/// of tables is left to the catalog, which knows best how to say that there is no such table.
#[derive(Debug)]
pub struct PathTables {
    others: Arc<dyn UrlTableFactory>,
    extensions: Vec<String>,
    options: FileOptions,
    text: SourceOptions,
    stores: Arc<Stores>,
    kept: Arc<KeptTables>,
}

impl PathTables {
    /// Reads Plinth files, CSV and JSON here, and Parquet with `others` (DataFusion's `DynamicListTableFactory`).
    pub fn new(others: Arc<dyn UrlTableFactory>) -> Self {
        let extensions = ["parquet", "csv", "tsv", "json", "ndjson", "jsonl"].map(str::to_owned).to_vec();
        let stores = Arc::new(Stores::new(TableOptions::default()));
        let (options, text) = (FileOptions::default(), SourceOptions::default());
        Self { others, extensions, options, text, stores, kept: Arc::default() }
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

    /// Says which other extensions the other factory reads, without the dot.
    #[must_use]
    pub fn with_extensions(self, extensions: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { extensions: extensions.into_iter().map(Into::into).collect(), ..self }
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
    fn resolve_url(url: &str, objects: &Arc<dyn Objects>, extensions: &[String]) -> Result<Target> {
        let external = |e| DataFusionError::External(Box::new(e));
        let of_url = |url: &str| extension(Path::new(url));
        let is_other = |url: &str| of_url(url).is_some_and(|found| extensions.contains(&found));
        let several = url.ends_with('/') || is_pattern(url);
        if !several && is_text(Path::new(url)) {
            return Ok(Target::Text(vec![PathBuf::from(url)]));
        }
        if !several && is_other(url) {
            return Ok(Target::Others);
        }
        let found = match objects.find(url) {
            // A folder, named without its last letter.
            Err(e) if !several && e.is_not_found() && of_url(url).as_deref() != Some(EXTENSION) => {
                let below = objects.find(&format!("{url}/")).map_err(external)?;
                if below.is_empty() && Self::holds_table(url, objects) {
                    return Err(DataFusionError::Plan(format!("{url}: {WRITABLE}")));
                }
                if below.is_empty() { Err(e) } else { Ok(below) }
            }
            found => found,
        };
        let whole = Some(format!("{}/", url.trim_end_matches('/'))).filter(|_| !is_pattern(url));
        let found = found.map_err(external)?;
        if let Some(what) = unasked_segments(url, found.iter().map(|object| &object.url).filter(|_| is_pattern(url))) {
            return Err(DataFusionError::Plan(what));
        }
        let found = plinth_table::current(found, whole.as_deref(), objects).map_err(crate::from_format)?;
        let fail = |what: String| Err(DataFusionError::Plan(format!("{url}: {what}")));
        let is_ours = |object: &Object| of_url(&object.url).as_deref() == Some(EXTENSION);
        let readable = found.iter().filter(|object| is_ours(object) || is_other(&object.url));
        let readable: Vec<&Object> = readable.collect();
        let (Some(first), false) = (readable.first(), is_pattern(url) && readable.len() < found.len()) else {
            let known = extensions.iter().map(|e| format!(", .{e}")).collect::<String>();
            return match found.iter().find(|object| !is_ours(object) && !is_other(&object.url)) {
                Some(other) => fail(format!("{}: files that can be read end in .{EXTENSION}{known}", other.url)),
                None if !is_pattern(url) && Self::holds_table(url, objects) => fail(WRITABLE.to_owned()),
                None => fail("no object matches".to_owned()),
            };
        };
        let other = readable.iter().find(|object| is_ours(object) != is_ours(first));
        if let Some(other) = other {
            return fail(format!("names .{EXTENSION} files and others ({}); a table is of one format", other.url));
        }
        if is_ours(first) {
            let found = readable.into_iter().cloned().collect();
            return Ok(Target::Objects(found));
        }
        if readable.iter().all(|object| is_text(Path::new(&object.url))) {
            return Ok(Target::Text(readable.into_iter().map(|object| PathBuf::from(&object.url)).collect()));
        }
        Ok(Target::Others)
    }

    /// Whether the folder of a URL is that of a writable table.
    fn holds_table(url: &str, objects: &Arc<dyn Objects>) -> bool {
        let manifest = format!("{}/{}", url.trim_end_matches('/'), Table::MANIFEST);
        objects.find(&manifest).is_ok_and(|found| !found.is_empty())
    }

    /// A table of a URL.
    async fn open_url(&self, url: &str, objects: Arc<dyn Objects>) -> Result<Option<Arc<dyn TableProvider>>> {
        // All that such a pattern matches is Parquet, and who reads that lists it: once is enough. What is wrong is found below.
        if is_pattern(url)
            && extension(Path::new(url)).as_deref() == Some("parquet")
            && let Ok(Some(table)) = self.others.try_new(url).await
        {
            return Ok(Some(table));
        }
        let (extensions, kept, options) = (self.extensions.clone(), Arc::clone(&self.kept), self.options.clone());
        let (name, text, again) = (url.to_owned(), self.text.clone(), Arc::clone(&objects));
        let opened = spawn_blocking(move || {
            Ok(match Self::resolve_url(&name, &objects, &extensions)? {
                Target::Objects(found) => {
                    Some(kept.open(Named::Objects(name, found), &options)? as Arc<dyn TableProvider>)
                }
                Target::Text(files) => Some(Arc::new(ForeignTable::open(files, text)?) as _),
                _ => None,
            })
        });
        let opened: Result<Option<Arc<dyn TableProvider>>> = opened.await.map_err(from_join)?;
        match opened? {
            Some(table) => Ok(Some(table)),
            None => match self.others.try_new(url).await {
                Err(error) if !(url.ends_with('/') || is_pattern(url)) => Err(better(url, again, error).await),
                table => table,
            },
        }
    }

    fn file(&self, path: PathBuf, is_path: bool) -> Result<Target> {
        match extension(&path) {
            Some(found) if found == EXTENSION => Ok(Target::Files(vec![path])),
            Some(_) if is_text(&path) => Ok(Target::Text(vec![path])),
            Some(found) if self.extensions.contains(&found) => Ok(Target::Others),
            _ if !is_path => Ok(Target::Unknown),
            found => Err(DataFusionError::Plan(format!(
                "{}: {}; files that can be read end in {}",
                path.display(),
                found.map_or("no extension says what it is".to_owned(), |found| format!("unknown extension .{found}")),
                self.known(),
            ))),
        }
    }

    fn folder(&self, path: &Path, is_path: bool) -> Result<Target> {
        let entries = std::fs::read_dir(path).and_then(Iterator::collect::<std::io::Result<Vec<_>>>);
        let entries =
            entries.map_err(|e| DataFusionError::Plan(format!("{}: cannot be listed: {e}", path.display())))?;
        let visible =
            |path: &PathBuf| path.file_name().is_some_and(|name| !name.to_string_lossy().starts_with(['.', '_']));
        let mut files: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path()).filter(visible).collect();
        files.sort();
        let ours = |path: &PathBuf| extension(path).as_deref() == Some(EXTENSION) && path.is_file();
        let theirs = |path: &PathBuf| extension(path).is_some_and(|found| self.extensions.contains(&found));
        let other = files.iter().find(|path| theirs(path));
        match (!files.iter().any(ours), other) {
            (false, None) => Ok(Target::Folder(path.to_path_buf())),
            (false, Some(other)) => Err(DataFusionError::Plan(format!(
                "{0}: holds .plinth files and others ({1}); say which with a pattern, like '{0}/*.plinth'",
                path.display(),
                other.file_name().unwrap_or_default().to_string_lossy(),
            ))),
            (true, Some(_)) if files.iter().all(|path| is_text(path)) => Ok(Target::Text(files)),
            // Partitioned folders nest, and only the other factory reads those.
            (true, Some(_)) => Ok(Target::Others),
            (true, None) if is_path && files.iter().any(|path| path.is_dir()) => Ok(Target::Others),
            (true, None) if is_path => Err(DataFusionError::Plan(format!(
                "{}: no file in this folder ends in {}",
                path.display(),
                self.known()
            ))),
            (true, None) => Ok(Target::Unknown),
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
            (true, Some(_)) if others.iter().all(|path| is_text(path)) => Ok(Target::Text(others)),
            (true, Some(_)) => Ok(Target::Others),
            (false, None) => Ok(Target::Files(of_now(pattern, plinth)?)),
            (false, Some(other)) => {
                Err(fail(format!("matches .plinth files and others ({}); a table is of one format", other.display())))
            }
        }
    }

    fn known(&self) -> String {
        let mut known = format!(".{EXTENSION}");
        for extension in &self.extensions {
            known.push_str(", .");
            known.push_str(extension);
        }
        known
    }
}

/// What is said of a writable table in a store.
const WRITABLE: &str = "is a table that can be changed row by row, which is read where it was made, for its log and deletes are \
                        files of that folder; plinth export or COPY makes a file of it that a store can hold";

/// Why an object can't be read, in our words if it is not there.
async fn better(url: &str, objects: Arc<dyn Objects>, error: DataFusionError) -> DataFusionError {
    let url = url.to_owned();
    match spawn_blocking(move || objects.find(&url)).await {
        Ok(Err(found)) if found.is_not_found() => DataFusionError::External(Box::new(found)),
        _ => error,
    }
}

/// Who reads a path.
enum Target {
    Files(Vec<PathBuf>),
    Folder(PathBuf),
    /// A folder that is a writable table.
    Store(PathBuf),
    /// Plinth files in an object store.
    Objects(Vec<Object>),
    /// Files of CSV or JSON.
    Text(Vec<PathBuf>),
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

/// Whether a file is text that we read, compressed or not.
fn is_text(path: &Path) -> bool {
    FileFormat::of_path(path).is_some_and(|format| format != FileFormat::Parquet)
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
                return self.open_url(url, Arc::clone(objects)).await;
            }
            let table: Arc<dyn TableProvider> = match self.resolve(url)? {
                Target::Files(files) => self.kept.open(Named::Files(files), &self.options)?,
                Target::Folder(folder) => self.kept.open(Named::Folder(folder), &self.options)?,
                Target::Store(folder) => Arc::new(StoreTable::open(&self.stores, &folder)?),
                Target::Text(files) => Arc::new(ForeignTable::open(files, self.text.clone())?),
                Target::Objects(_) | Target::Others => return self.others.try_new(url).await,
                Target::Unknown => return Ok(None),
            };
            Ok(Some(table))
        })
    }
}
