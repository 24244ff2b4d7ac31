//! The tables of a schema: files of a folder by their stems, views that its catalog keeps, and what statements register.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use datafusion::catalog::{SchemaProvider, TableProvider, UrlTableFactory};
use datafusion::common::{DataFusionError, Result, exec_err};
use datafusion::datasource::TableType;
use futures::future::BoxFuture;
use plinth_datafusion::{FileOptions, PlinthTable, StoreTable, Stores, from_format};
use plinth_rowstore::Table;
use plinth_table::TableFolder;

use super::{engine, views};
use crate::catalog::{Catalog, NAME, View};
use crate::error::SqlError;
use crate::session_views;
use crate::views::PlanView;
use plinth_core::sync::lock;
use plinth_io::regular::kind_of;

/// Files other than Plinth's that are tables of a folder.
const OTHER_EXTENSIONS: [&str; 3] = ["parquet", "csv", "json"];

/// The schema of a folder that is given by `--db`, and of none.
pub(crate) const PUBLIC: &str = "public";

/// What schemas of a session share.
pub(crate) struct Shared {
    options: FileOptions,
    stores: Arc<Stores>,
    path_tables: OnceLock<Arc<dyn UrlTableFactory>>,
    plan_view: OnceLock<PlanView>,
}

impl Shared {
    /// How files are opened and written.
    pub(crate) fn new(options: FileOptions, stores: Arc<Stores>) -> Self {
        Self { options, stores, path_tables: OnceLock::new(), plan_view: OnceLock::new() }
    }

    /// Tells how to open files other than Plinth's, and views. Said once, by the session that owns this.
    pub(crate) fn complete(&self, tables: Arc<dyn UrlTableFactory>, view: PlanView) {
        let _ = self.path_tables.set(tables);
        let _ = self.plan_view.set(view);
    }
}

/// A schema whose tables are the files of a folder. The folder is listed anew each time, so that files that come and go
/// are seen; open tables are kept while their files stay as they were.
pub(crate) struct Database {
    /// Its name.
    schema: String,
    folder: Option<PathBuf>,
    /// What is kept beside the tables: of this schema and of the others.
    catalog: Option<Arc<Catalog>>,
    shared: Arc<Shared>,
    registered: Mutex<HashMap<String, Arc<dyn TableProvider>>>,
    /// Files and folders from elsewhere.
    named: Mutex<BTreeMap<String, Entry>>,
    open: Mutex<HashMap<String, Arc<PlinthTable>>>,
}

/// What a name stands for in the folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// A Plinth file.
    Plinth(Vec<PathBuf>),
    /// A folder of Plinth files.
    Folder(PathBuf),
    /// A folder that is a writable table.
    Store(PathBuf),
    /// Another file.
    Other(PathBuf),
    /// A view that the catalog keeps.
    View(View),
    /// Several things of equal right.
    Ambiguous(Vec<PathBuf>),
}

impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Database").field("folder", &self.folder).finish_non_exhaustive()
    }
}

impl Database {
    /// The tables of a folder, or of none.
    pub(crate) fn new(folder: Option<&Path>, shared: Arc<Shared>) -> Result<Self, SqlError> {
        let folder = match folder {
            Some(folder) => {
                let absolute = folder
                    .canonicalize()
                    .map_err(|e| SqlError::new(format!("database folder {}: {e}", folder.display())))?;
                expect_folder(folder).map_err(|e| SqlError::new(format!("database folder {e}")))?;
                Some(absolute)
            }
            None => None,
        };
        let catalog = folder.clone().map(|folder| Arc::new(Catalog::of(folder)));
        // For its errors: a folder whose catalog can't be read is not one without.
        catalog.as_ref().map(|catalog| catalog.read()).transpose()?;
        Ok(Self::of(PUBLIC, folder, catalog, shared))
    }

    /// The tables of another folder, opened as these are.
    pub(crate) fn beside(&self, folder: &Path, plan_view: PlanView) -> Result<Self, SqlError> {
        let shared = Shared::new(self.shared.options.clone(), Arc::clone(&self.shared.stores));
        if let Some(tables) = self.shared.path_tables.get() {
            shared.complete(Arc::clone(tables), plan_view);
        }
        Self::new(Some(folder), Arc::new(shared))
    }

    /// Makes a file or a folder a table of this name, whose rows are read as they are when a statement begins.
    pub(crate) fn name_path(&self, name: String, path: &Path) -> Result<()> {
        let entry = if path.is_dir() && Table::is_table(path) {
            Entry::Store(path.to_path_buf())
        } else if path.is_dir() && TableFolder::new(path).has_files().map_err(from_format)? {
            Entry::Folder(path.to_path_buf())
        } else if path.extension().is_some_and(|extension| extension == "plinth") {
            Entry::Plinth(vec![path.to_path_buf()])
        } else {
            Entry::Other(path.to_path_buf())
        };
        lock(&self.named).insert(name, entry);
        Ok(())
    }

    /// Another schema of the same catalog.
    pub(crate) fn schema(&self, name: &str) -> Option<Self> {
        let folder = self.folder.as_ref()?.join(name);
        Some(Self::of(name, Some(folder), self.catalog.clone(), Arc::clone(&self.shared)))
    }

    fn of(schema: &str, folder: Option<PathBuf>, catalog: Option<Arc<Catalog>>, shared: Arc<Shared>) -> Self {
        let (registered, named, open) = (Mutex::default(), Mutex::default(), Mutex::default());
        Self { schema: schema.to_owned(), folder, catalog, shared, registered, named, open }
    }

    /// What the folder keeps beside its tables.
    pub(crate) fn catalog(&self) -> Option<&Arc<Catalog>> {
        self.catalog.as_ref()
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        &self.schema
    }

    /// The folder new tables go to.
    pub(crate) fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// What a name stands for among the files: exactly, else ignoring case if one alone fits.
    pub(crate) fn find(&self, name: &str) -> Result<Option<Entry>> {
        if let Some(entry) = self.find_exactly(name)? {
            return Ok(Some(entry));
        }
        let mut entries = self.entries()?;
        if let Some(entry) = entries.remove(name) {
            return Ok(Some(entry));
        }
        let mut fitting = entries.into_iter().filter(|(stem, _)| stem.eq_ignore_ascii_case(name));
        match (fitting.next(), fitting.next()) {
            (Some((_, entry)), None) => Ok(Some(entry)),
            (Some((a, _)), Some((b, _))) => {
                exec_err!("table {name:?} may be {a:?} or {b:?}: write the name in double quotes")
            }
            _ => Ok(None),
        }
    }

    /// The same of this very name, without a look at all that the folder has. A name that is more than a file's finds nothing, nor does
    /// any on systems that tell names apart by more than their bytes.
    fn find_exactly(&self, name: &str) -> Result<Option<Entry>> {
        let (Some(folder), Some(catalog)) = (&self.folder, &self.catalog) else { return Ok(None) };
        let is_of_file = Path::new(name).file_name().is_some_and(|file| file == name);
        if cfg!(any(target_os = "macos", windows)) || !is_of_file || name.starts_with('.') {
            return Ok(None);
        }
        let files = ["plinth"].into_iter().chain(OTHER_EXTENSIONS).map(|extension| format!("{name}.{extension}"));
        let paths = [name.to_owned()].into_iter().chain(files).map(|file| folder.join(file));
        let mut paths: Vec<PathBuf> = paths.filter(|path| path.symlink_metadata().is_ok()).collect();
        paths.sort();
        Ok(self.entries_at(paths, catalog, Some(name))?.remove(name))
    }

    /// Whether what the session alone knows does not count: the text of a view means what is kept.
    fn is_hidden(&self) -> bool {
        self.folder.is_some() && views::is_planning()
    }

    /// Whether a statement registered this name.
    pub(crate) fn is_registered(&self, name: &str) -> bool {
        lock(&self.registered).contains_key(name)
    }

    /// An error if a name is that of files: SQL does not delete them.
    pub(crate) fn refuse_drop(&self, name: &str) -> Result<()> {
        let paths = match self.find(name)? {
            Some(Entry::Plinth(paths) | Entry::Ambiguous(paths)) => paths,
            Some(Entry::Folder(path) | Entry::Other(path)) => vec![path],
            Some(Entry::View(_)) => return exec_err!("DROP TABLE {name}: is a view: DROP VIEW {name}"),
            Some(Entry::Store(_)) | None => return Ok(()),
        };
        let first = paths.first().map(|p| p.display().to_string()).unwrap_or_default();
        let more = if paths.len() > 1 { format!(" and {} more", paths.len() - 1) } else { String::new() };
        exec_err!("DROP TABLE {name}: would delete {first}{more}, which SQL does not do; delete it yourself")
    }

    /// The folders that are writable tables.
    pub(crate) fn stores(&self) -> Result<Vec<PathBuf>> {
        let folders = self.entries()?.into_values();
        Ok(folders.filter_map(|entry| if let Entry::Store(folder) = entry { Some(folder) } else { None }).collect())
    }

    /// All that the folder has, by name.
    pub(crate) fn entries(&self) -> Result<BTreeMap<String, Entry>> {
        match (&self.folder, &self.catalog) {
            (Some(folder), Some(catalog)) => self.entries_at(list(folder)?, catalog, None),
            _ => Ok(lock(&self.named).clone()),
        }
    }

    /// What some paths of the folder are, and the views and registered names, by name: all of these, or the one of a name.
    fn entries_at(
        &self,
        paths: Vec<PathBuf>,
        catalog: &Catalog,
        only: Option<&str>,
    ) -> Result<BTreeMap<String, Entry>> {
        let contents = catalog.read()?;
        let mut entries = BTreeMap::new();
        let mut others: Vec<(String, PathBuf)> = Vec::new();
        for path in paths {
            let Some(stem) = path.file_stem().and_then(|s| s.to_str()).map(str::to_owned) else { continue };
            let extension = path.extension().and_then(|e| e.to_str()).unwrap_or_default();
            if path.is_dir() {
                // The name of a folder has no extension to leave out.
                let name = path.file_name().and_then(|n| n.to_str()).unwrap_or(&stem).to_owned();
                // Of a schema, the folder is no table.
                if self.schema == PUBLIC && contents.schemas.contains(&name) {
                    continue;
                }
                if Table::is_table(&path) {
                    add(&mut entries, name, &path, Entry::Store(path.clone()));
                } else if TableFolder::new(&path).has_files().map_err(from_format)? {
                    add(&mut entries, name, &path, Entry::Folder(path.clone()));
                }
            } else if extension == "plinth" {
                add(&mut entries, stem, &path, Entry::Plinth(vec![path.clone()]));
            } else if OTHER_EXTENSIONS.contains(&extension) {
                others.push((stem, path));
            }
        }
        // A Plinth table goes before other files of its name.
        let taken: Vec<String> = entries.keys().cloned().collect();
        for (stem, path) in others {
            if taken.binary_search(&stem).is_err() {
                add(&mut entries, stem, &path, Entry::Other(path.clone()));
            }
        }
        let asked = |name: &&String| only.is_none_or(|only| only == name.as_str());
        for name in contents.views_of(&self.schema).filter(asked) {
            if let Some((name, view)) = contents.view(&self.schema, name) {
                add(&mut entries, name.clone(), &catalog.folder().join(NAME), Entry::View(view.clone()));
            }
        }
        if !self.is_hidden() {
            let named = lock(&self.named);
            entries.extend(
                named.iter().filter(|(name, _)| asked(name)).map(|(name, entry)| (name.clone(), entry.clone())),
            );
        }
        Ok(entries)
    }

    async fn open(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        let registered = lock(&self.registered).get(name).map(Arc::clone);
        match registered {
            Some(table) if !self.is_hidden() => return session_views::opened(table).await.map(Some),
            Some(_) if self.find(name)?.is_none() => {
                return exec_err!(
                    "{name} is known to this session alone, a view is kept: CREATE TEMP VIEW makes one for the session"
                );
            }
            _ => {}
        }
        let before = lock(&self.open).get(name).cloned();
        let unchanged = |table: &Arc<PlinthTable>, folder: Option<&Path>, file: Option<&Path>| {
            table.folder() == folder
                && (folder.is_some() || table.files().map(|(path, _)| path).eq(file))
                && table.is_current().unwrap_or(false)
        };
        let table = match self.find(name)? {
            None => return Ok(None),
            Some(Entry::Ambiguous(paths)) => {
                let paths: Vec<_> = paths.iter().map(|p| format!("'{}'", p.display())).collect();
                return exec_err!("table {name:?} may be any of {}: name the file instead", paths.join(", "));
            }
            Some(Entry::Other(path)) => {
                let Some(tables) = self.shared.path_tables.get() else { return Ok(None) };
                return tables.try_new(&path.display().to_string()).await;
            }
            Some(Entry::Store(folder)) => {
                return Ok(Some(Arc::new(StoreTable::open(&self.shared.stores, &folder)?)));
            }
            Some(Entry::View(view)) => {
                let Some(plan) = self.shared.plan_view.get() else { return Ok(None) };
                let shown = if self.schema == PUBLIC { name.to_owned() } else { format!("{}.{name}", self.schema) };
                let planned = plan(shown.clone(), view).await;
                return Ok(Some(planned.map_err(|error| views::unreadable(&shown, error))?));
            }
            Some(Entry::Folder(folder)) => match before {
                Some(table) if unchanged(&table, Some(&folder), None) => table,
                before => engine::open_folder(folder, before.as_deref(), &self.shared.options)?,
            },
            Some(Entry::Plinth(files)) => match before {
                Some(table) if unchanged(&table, None, files.first().map(PathBuf::as_path)) => table,
                _ => engine::open(files, &self.shared.options)?,
            },
        };
        lock(&self.open).insert(name.to_owned(), Arc::clone(&table));
        Ok(Some(table))
    }
}

/// The file of a new table. A name that leads elsewhere, or that a listing would hide, has none.
pub(crate) fn file_of(folder: &Path, name: &str) -> Option<PathBuf> {
    let plain = !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\\', '\0']);
    plain.then(|| folder.join(format!("{name}.plinth")))
}

/// An error if a path is not that of a folder, which says what it is.
///
/// # Errors
/// If it is something else, is not there, or can't be looked at.
pub fn expect_folder(path: &Path) -> Result<(), SqlError> {
    match path.metadata() {
        Ok(metadata) if metadata.is_dir() => Ok(()),
        Ok(metadata) => {
            let kind = kind_of(metadata.file_type()).unwrap_or("a file");
            Err(SqlError::new(format!("{}: is {kind}, not a folder", path.display())))
        }
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            Err(SqlError::new(format!("{}: no such folder", path.display())))
        }
        Err(e) => Err(SqlError::new(format!("{}: cannot be opened: {e}", path.display()))),
    }
}

fn list(folder: &Path) -> Result<Vec<PathBuf>> {
    let failed = |e: std::io::Error| DataFusionError::Execution(format!("{}: can't list: {e}", folder.display()));
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.file_name().and_then(|n| n.to_str()).is_some_and(|name| !name.starts_with('.')) {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

fn add(entries: &mut BTreeMap<String, Entry>, name: String, path: &Path, entry: Entry) {
    let entry = match entries.remove(&name) {
        None => entry,
        Some(known) => {
            let mut paths = match known {
                Entry::Plinth(paths) | Entry::Ambiguous(paths) => paths,
                Entry::Other(first) | Entry::Folder(first) | Entry::Store(first) => vec![first],
                // Added last, once each.
                Entry::View(_) => Vec::new(),
            };
            paths.push(path.to_path_buf());
            Entry::Ambiguous(paths)
        }
    };
    entries.insert(name, entry);
}

impl SchemaProvider for Database {
    fn table_names(&self) -> Vec<String> {
        let mut names: Vec<String> = lock(&self.registered).keys().cloned().collect();
        names.extend(self.entries().unwrap_or_default().into_keys());
        names.sort();
        names.dedup();
        names
    }

    // `async_trait`'s signature, written out: the future holds no `Expr` for the compiler to prove `Send` of.
    fn table<'a: 'c, 'b: 'c, 'c>(&'a self, name: &'b str) -> BoxFuture<'c, Result<Option<Arc<dyn TableProvider>>>> {
        Box::pin(self.open(name))
    }

    fn table_type<'a: 'c, 'b: 'c, 'c>(&'a self, name: &'b str) -> BoxFuture<'c, Result<Option<TableType>>> {
        let registered = lock(&self.registered).get(name).map(|table| table.table_type());
        let result = match registered {
            Some(table_type) => Ok(Some(table_type)),
            None => self.find(name).map(|entry| {
                entry.map(|entry| if matches!(entry, Entry::View(_)) { TableType::View } else { TableType::Base })
            }),
        };
        Box::pin(std::future::ready(result))
    }

    fn register_table(&self, name: String, table: Arc<dyn TableProvider>) -> Result<Option<Arc<dyn TableProvider>>> {
        Ok(lock(&self.registered).insert(name, table))
    }

    fn deregister_table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        if let Some(table) = lock(&self.registered).remove(name) {
            return Ok(Some(table));
        }
        self.refuse_drop(name)?;
        Ok(None)
    }

    fn table_exist(&self, name: &str) -> bool {
        self.is_registered(name) || self.find(name).is_ok_and(|entry| entry.is_some())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    /// A database of a folder with files and folders of these names, and views of these.
    fn database(folder: &Path, files: &[&str], folders: &[&str], views: &[&str]) -> Database {
        files.iter().for_each(|name| std::fs::write(folder.join(name), "x\n1\n").unwrap());
        for name in folders {
            std::fs::create_dir(folder.join(name)).unwrap();
            std::fs::write(folder.join(name).join("part.plinth"), "").unwrap();
        }
        let stores = Arc::new(Stores::new(plinth_rowstore::TableOptions::default()));
        let database = Database::new(Some(folder), Arc::new(Shared::new(FileOptions::default(), stores))).unwrap();
        let view = |sql: &str| View { search: PUBLIC.to_owned(), sql: sql.to_owned() };
        let catalog = database.catalog().unwrap();
        let add = |name: &&str| ((PUBLIC.to_owned(), (*name).to_owned()), view("SELECT 1"));
        let change = |contents: &mut crate::catalog::Contents| {
            contents.views.extend(views.iter().map(add));
            Ok(())
        };
        catalog.change(change).unwrap();
        database
    }

    #[test]
    fn a_name_alone_is_what_it_is_among_all() {
        let dir = tempfile::tempdir().unwrap();
        let files = ["a.csv", "a.parquet", "b.plinth", "b.json", "C.csv", "x.y.csv", ".hidden.csv", "e.txt", "d.csv"];
        let database = database(dir.path(), &files, &["b2", "d", "f.csv", "g"], &["v", "a2", "e", "g"]);
        database.name_path("n".to_owned(), &dir.path().join("C.csv")).unwrap();
        database.name_path("d".to_owned(), &dir.path().join("a.csv")).unwrap();
        let all = database.entries().unwrap();
        let others = ["a.csv", "b.plinth", "c", "f", ".hidden", "", ".", "..", "../a", "g/part", "none", "V", "x"];
        let names = all.keys().map(String::as_str).chain(others);
        for name in names {
            assert_eq!(database.find_exactly(name).unwrap().as_ref(), all.get(name), "{name:?}");
        }
        assert_eq!(
            all.keys().collect::<Vec<_>>(),
            ["C", "a", "a2", "b", "b2", "d", "e", "f.csv", "g", "n", "v", "x.y"]
        );
        assert!(matches!(database.find("c").unwrap(), Some(Entry::Other(_))));
        assert!(matches!(database.find("a").unwrap(), Some(Entry::Ambiguous(paths)) if paths.len() == 2));
        assert!(matches!(database.find("g").unwrap(), Some(Entry::Ambiguous(_))));
    }
}
