//! Tables by path, and what is said about paths that are none.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use datafusion::catalog::{DynamicFileCatalog, Session, TableProvider, UrlTableFactory};
use datafusion::common::Result;
use datafusion::datasource::MemTable;
use datafusion::prelude::SessionContext;
use futures::future::BoxFuture;
use plinth_datafusion::{CurrentSession, PathTables, PlinthTable};

use crate::data::{batch, options, rows, schema, session, write};

/// Stands for DataFusion's own factory: notes what it is asked for, and has an empty table for all of it.
#[derive(Debug, Default)]
struct Others(Mutex<Vec<String>>);

impl UrlTableFactory for Others {
    fn try_new<'a: 'c, 'b: 'c, 'c>(&'a self, url: &'b str) -> BoxFuture<'c, Result<Option<Arc<dyn TableProvider>>>> {
        self.0.lock().unwrap().push(url.to_owned());
        let table = MemTable::try_new(schema(), vec![vec![]]);
        Box::pin(std::future::ready(table.map(|table| Some(Arc::new(table) as Arc<dyn TableProvider>))))
    }
}

struct Current(SessionContext);

impl std::fmt::Debug for Current {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Current")
    }
}

impl CurrentSession for Current {
    fn current(&self) -> Result<Arc<dyn Session>> {
        Ok(Arc::new(self.0.state()))
    }
}

fn with_paths() -> (SessionContext, Arc<Others>) {
    let ctx = session(2);
    let others = Arc::new(Others::default());
    let factory = Arc::new(PathTables::new(Arc::clone(&others) as _, Arc::new(Current(ctx.clone()))));
    let catalogs = Arc::clone(ctx.state().catalog_list());
    ctx.register_catalog_list(Arc::new(DynamicFileCatalog::new(catalogs, factory)));
    (ctx, others)
}

fn files(dir: &Path, names: &[&str]) -> Vec<PathBuf> {
    let make = |(i, name): (usize, &&str)| {
        let path = dir.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        if name.ends_with(".plinth") {
            write(&path, &[batch(1, i as u64 * 10, 10)], options(1_024));
        } else {
            std::fs::write(&path, "x").unwrap();
        }
        path
    };
    names.iter().enumerate().map(make).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_folders_and_patterns_are_tables() {
    let dir = tempfile::tempdir().unwrap();
    files(
        dir.path(),
        &[
            "a.plinth",
            "b c.plinth",
            "ü.plinth",
            "sub/x.plinth",
            "sub/y.plinth",
            "sub/README",
            "sub/.hidden.plinth",
            "x[1].plinth",
        ],
    );
    let (ctx, others) = with_paths();
    let dir = dir.path().display().to_string();
    for (path, expected) in [
        ("a.plinth", 10),
        ("b c.plinth", 10),
        ("ü.plinth", 10),
        ("sub", 20),
        ("sub/", 20),
        ("sub/*.plinth", 20),
        ("*.plinth", 40),
        ("[ab]*.plinth", 20),
        ("s?b/x.plinth", 10),
        ("x[1].plinth", 10),
    ] {
        let counted =
            rows(&ctx, &format!("SELECT count(*) FROM '{dir}/{path}'")).await.unwrap_or_else(|e| panic!("{path}: {e}"));
        assert_eq!(counted, [format!("|{expected}|")], "{path}");
    }
    let encoded = dir.replace(' ', "%20");
    assert_eq!(rows(&ctx, &format!("SELECT count(*) FROM 'file://{encoded}/b%20c.plinth'")).await.unwrap(), ["|10|"]);
    assert!(others.0.lock().unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_foreign_file_goes_to_the_other_factory() {
    let dir = tempfile::tempdir().unwrap();
    files(dir.path(), &["parts/p=1/a.plinth", "parts/p=2/a.plinth"]);
    let (ctx, others) = with_paths();
    let dir = dir.path().display();
    let paths = [format!("{dir}/parts/"), format!("{dir}/parts/*"), "memory://bucket/a.parquet".to_owned()];
    for path in &paths {
        rows(&ctx, &format!("SELECT count(*) FROM '{path}'")).await.unwrap_or_else(|e| panic!("{path}: {e}"));
    }
    let mut asked = others.0.lock().unwrap().clone();
    asked.dedup();
    assert_eq!(asked, paths);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn text_is_read_here() {
    let dir = tempfile::tempdir().unwrap();
    let (ctx, others) = with_paths();
    let write = |path: &str, text: &str| {
        std::fs::create_dir_all(dir.path().join(path).parent().unwrap()).unwrap();
        std::fs::write(dir.path().join(path), text).unwrap();
    };
    write("a.csv", "n,t\n1,x\n2,\"y,z\"\n");
    write("a.tsv", "n\tt\n3\tx\n");
    write("a.json", "{\"n\":4,\"t\":\"x\"}\n{\"n\":5}\n");
    write("many/a.ndjson", "{\"n\":6}\n");
    write("many/b.jsonl", "{\"n\":7}\n{\"n\":8}\n");
    write("beside/a.csv", "n\n9\n");
    write("beside/README.md", "x");
    write("beside/deep/er/b.csv", "t,n\nx,10\n");
    write("beside/.hidden/c.csv", "n\n1000\n");
    let dir = dir.path().display();
    for (path, expected) in [
        ("a.csv", "|2|3|"),
        ("a.tsv", "|1|3|"),
        ("a.json", "|2|9|"),
        ("many", "|3|21|"),
        ("many/*", "|3|21|"),
        ("beside", "|2|19|"),
    ] {
        let found = rows(&ctx, &format!("SELECT count(*), sum(n) FROM '{dir}/{path}'")).await;
        assert_eq!(found.unwrap_or_else(|e| panic!("{path}: {e}")), [expected], "{path}");
    }
    write("broken.json", "x");
    let error = rows(&ctx, &format!("SELECT * FROM '{dir}/broken.json'")).await.unwrap_err().to_string();
    assert!(error.contains("broken.json: no columns found: line 1 (byte 0): broken JSON"), "{error}");
    assert!(others.0.lock().unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_table_is_said_clearly() {
    let dir = tempfile::tempdir().unwrap();
    files(
        dir.path(),
        &[
            "a.txt",
            "noext/file",
            "mixed/a.plinth",
            "mixed/b.csv",
            "bad.plinth.d/x",
            "b.csv.xz",
            "two/a.csv",
            "two/b/c.json",
            "far/a.csv",
            "far/b/c.plinth",
            "some/a.csv",
            "some/b.md",
        ],
    );
    std::fs::write(dir.path().join("broken.plinth"), "this is no Plinth file").unwrap();
    std::fs::create_dir(dir.path().join("empty")).unwrap();
    let (ctx, _) = with_paths();
    let dir = dir.path().display();
    for (path, expected) in [
        ("none.plinth", "no such file"),
        ("none.parquet", "no such file"),
        ("no/dir/", "no such file"),
        ("*.none", "no file matches"),
        ("a.txt", "unknown extension .txt"),
        ("a.txt", ".plinth, .parquet, .parq, .pq, .csv, .tsv, .ndjson, .jsonl, .json"),
        ("b.csv.xz", "unknown extension .xz"),
        ("two", "two/b/c.json is ndjson"),
        ("far", "b/c.plinth"),
        ("noext/file", "no extension"),
        ("mixed", "b.csv"),
        ("mixed/*", "of one format"),
        ("empty", "no file in this folder"),
        ("broken.plinth", "broken.plinth"),
    ] {
        let error = rows(&ctx, &format!("SELECT * FROM '{dir}/{path}'")).await.expect_err(path).to_string();
        assert!(error.contains(expected) && error.contains(path.trim_end_matches('/')), "{path}: {error}");
    }
    let error = rows(&ctx, "SELECT * FROM 's3://bucket/x.plinth'").await.unwrap_err().to_string();
    assert!(error.contains("s3://"), "{error}");
    // A plain name is the catalog's business.
    let error = rows(&ctx, "SELECT * FROM nosuch").await.unwrap_err().to_string();
    assert!(error.contains("nosuch") && error.contains("not found"), "{error}");
}

#[tokio::test]
async fn tables_that_cannot_be_opened() {
    let dir = tempfile::tempdir().unwrap();
    let paths = files(dir.path(), &["a.plinth", "b.plinth"]);
    assert!(PlinthTable::open(vec![]).unwrap_err().to_string().contains("at least one"));
    let missing = dir.path().join("missing.plinth");
    let error = PlinthTable::open(vec![paths[0].clone(), missing]).unwrap_err().to_string();
    assert!(error.contains("missing.plinth"), "{error}");

    // The same column as another type.
    let other = batch(1, 0, 5).project(&[0, 5]).unwrap();
    let renamed = datafusion::arrow::datatypes::Schema::new(vec![
        other.schema().field(0).clone(),
        other.schema().field(1).clone().with_name("i"),
    ]);
    let other = datafusion::arrow::array::RecordBatch::try_new(Arc::new(renamed), other.columns().to_vec()).unwrap();
    write(&dir.path().join("other.plinth"), &[other], options(1_024));
    let error = PlinthTable::open(vec![paths[0].clone(), dir.path().join("other.plinth")]).unwrap_err().to_string();
    for part in ["\"i\"", "Int32", "Utf8View", "a.plinth", "other.plinth"] {
        assert!(error.contains(part), "{part}: {error}");
    }
}
