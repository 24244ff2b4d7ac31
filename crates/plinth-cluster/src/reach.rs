//! What plans of others may have a worker read.

use std::path::{Path, PathBuf};

use datafusion::common::{Result, exec_err};
use plinth_sql::Grants;

use crate::error::ClusterError;

/// What a worker reads for others: files below one folder, and objects below some URLs. By default nothing.
#[derive(Clone, Debug)]
pub struct Reach {
    files: Grants,
    objects: Vec<String>,
}

impl Default for Reach {
    fn default() -> Self {
        Self { files: Grants::tables_alone(), objects: Vec::new() }
    }
}

impl Reach {
    /// Files below a folder (without `..`, and without links that lead out), and objects whose URLs begin with one of some.
    ///
    /// # Errors
    /// If there is no such folder, or something is no URL of objects.
    pub fn new(root: Option<&Path>, objects: &[String]) -> std::result::Result<Self, ClusterError> {
        let files = match root {
            Some(root) => Grants::files_below(root)
                .map_err(|e| ClusterError::new(format!("{}: is no folder to read files in: {e}", root.display())))?,
            None => Grants::tables_alone(),
        };
        let objects = objects.iter().map(|url| prefix(url)).collect::<std::result::Result<_, _>>()?;
        Ok(Self { files, objects })
    }

    /// Whether a file may be read: by its absolute path, or its URL.
    ///
    /// # Errors
    /// If not.
    pub(crate) fn check(&self, name: &str) -> Result<()> {
        let path = PathBuf::from(name);
        if plinth_io::objects::is_url(&path) {
            let strange =
                name.contains(['?', '#', '%', '\\']) || name.split('/').any(|part| part == ".." || part == ".");
            if strange || !self.objects.iter().any(|granted| name.starts_with(granted.as_str())) {
                return exec_err!("{name}: this worker reads no such objects: --objects says below which URLs it does");
            }
            return Ok(());
        }
        if !path.is_absolute() {
            return exec_err!("{name}: is no absolute path");
        }
        match self.files.may_read(&path) {
            Ok(()) => Ok(()),
            Err(_) => exec_err!("{name}: this worker reads no such file: --root says below which folder it does"),
        }
    }
}

/// A URL that ends where a name begins.
fn prefix(url: &str) -> std::result::Result<String, ClusterError> {
    if !plinth_io::objects::is_url(Path::new(url)) || url.contains(['?', '#', '%', '*', '[']) || url.contains("/..") {
        return Err(ClusterError::new(format!(
            "{url}: is no URL below which objects are, such as s3://bucket/folder/"
        )));
    }
    Ok(if url.ends_with('/') { url.to_owned() } else { format!("{url}/") })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_read_that_was_not_granted() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let (inside, outside) = (root.join("in"), root.join("out"));
        std::fs::create_dir_all(&inside).unwrap();
        std::fs::create_dir_all(&outside).unwrap();
        std::fs::write(inside.join("a.plinth"), "a").unwrap();
        std::fs::write(outside.join("b.plinth"), "b").unwrap();
        let name = |path: PathBuf| path.to_str().unwrap().to_owned();
        let none = Reach::default();
        assert!(none.check(&name(inside.join("a.plinth"))).is_err());
        let reach = Reach::new(Some(&inside), &["s3://lake/sales".to_owned()]).unwrap();
        for granted in [name(inside.join("a.plinth")), "s3://lake/sales/2024/x.plinth".to_owned()] {
            reach.check(&granted).unwrap();
        }
        for refused in [
            name(outside.join("b.plinth")),
            name(inside.join("../out/b.plinth")),
            "a.plinth".to_owned(),
            "s3://lake/salesmen/x.plinth".to_owned(),
            "s3://lake/sales/../secret/x.plinth".to_owned(),
            "s3://lake/sales/%2e%2e/secret/x.plinth".to_owned(),
            "http://lake/sales/x.plinth".to_owned(),
        ] {
            assert!(reach.check(&refused).is_err(), "{refused}");
        }
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(&outside, inside.join("link")).unwrap();
            assert!(reach.check(&name(inside.join("link/b.plinth"))).is_err());
        }
        assert!(Reach::new(Some(&root.join("nowhere")), &[]).is_err());
        assert!(Reach::new(None, &["/etc".to_owned()]).is_err());
    }
}
