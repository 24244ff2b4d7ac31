//! URLs of objects: `s3://bucket/folder/name`.

use std::fmt;

use object_store::path::Path as Location;
use plinth_io::Result;

use crate::error::refused;

/// Whose protocol a URL speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// `s3://bucket/key`: S3, and what speaks as it does.
    S3,
    /// `gs://bucket/key`: Google Cloud Storage.
    Gcs,
    /// `az://container/key` and `abfss://container@account.dfs.core.windows.net/key`: Azure Blob Storage.
    Azure,
    /// `http://host/path` and `https://host/path`: a web server that answers ranges.
    Http,
}

/// A URL, taken apart. Keys are taken letter by letter: `%20` in a URL of S3 is `%20` in the key, as other programs have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectUrl {
    /// The protocol.
    pub scheme: Scheme,
    /// What stands before the path, as it was written: `s3://bucket`.
    pub base: String,
    /// The bucket, container or host.
    pub host: String,
    /// What follows, without its first `/`; it may be a prefix or a pattern.
    pub key: String,
}

impl ObjectUrl {
    /// Takes a URL apart.
    ///
    /// # Errors
    /// If its scheme is not one of those of [`Scheme`], or it names no bucket, or has a query.
    pub fn parse(url: &str) -> Result<Self> {
        let known = "s3://bucket/key, gs://bucket/key, az://container/key, https://host/path";
        let (scheme, rest) =
            url.split_once("://").ok_or_else(|| refused(url, format!("no URL of an object: {known}")))?;
        let named = scheme.to_ascii_lowercase();
        let scheme = match named.as_str() {
            "s3" | "s3a" | "s3n" => Scheme::S3,
            "gs" | "gcs" => Scheme::Gcs,
            "az" | "azure" | "abfs" | "abfss" => Scheme::Azure,
            "http" | "https" => Scheme::Http,
            _ => return Err(refused(url, format!("unknown scheme {named}://; known are {known}"))),
        };
        let (host, key) = rest.split_once('/').unwrap_or((rest, ""));
        if host.is_empty() {
            return Err(refused(url, format!("names no bucket: {known}")));
        }
        if host.contains(['*', '?', '[', '#']) {
            return Err(refused(url, "the name of a bucket or host can't be a pattern".to_owned()));
        }
        if scheme == Scheme::Http && key.contains(['?', '#']) {
            // It would not reach the server, and may be a signature that is not to be shown.
            let what = "URLs with a query (?...) can't be read; download the file, or name its bucket (s3://...)";
            return Err(refused(&format!("{named}://{host}/..."), what.to_owned()));
        }
        if scheme == Scheme::Http && host.contains('@') {
            let what = "a password in a URL would be shown wherever the URL is; CREATE SECRET (TYPE http, BEARER_TOKEN '...') instead";
            return Err(refused(&format!("{named}://..."), what.to_owned()));
        }
        Ok(Self { scheme, base: format!("{named}://{host}"), host: host.to_owned(), key: key.to_owned() })
    }

    /// Whether it names several objects.
    pub fn is_several(&self) -> bool {
        self.key.is_empty() || self.key.ends_with('/') || plinth_io::objects::is_pattern(&self.key)
    }

    /// Where the object is in its store.
    ///
    /// # Errors
    /// If no store could have it: empty parts (`a//b`), `.` or `..`.
    pub fn location(&self) -> Result<Location> {
        self.location_of(&self.key)
    }

    /// Where another key of the same store is.
    ///
    /// # Errors
    /// As [`ObjectUrl::location`].
    pub fn location_of(&self, key: &str) -> Result<Location> {
        let parsed = match self.scheme {
            // Paths of the web are encoded already.
            Scheme::Http => Location::from_url_path(key),
            _ => Location::parse(key),
        };
        parsed.map_err(|e| refused(&self.to_string(), format!("its path can't be that of an object: {e}")))
    }

    /// The URL of an object of the same store.
    pub fn with(&self, location: &Location) -> String {
        format!("{}/{location}", self.base)
    }
}

impl fmt::Display for ObjectUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.base, self.key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_taken_apart() {
        let url = ObjectUrl::parse("S3://my-bucket/a b/%20/x.plinth").unwrap();
        assert_eq!(
            (url.scheme, url.base.as_str(), url.key.as_str()),
            (Scheme::S3, "s3://my-bucket", "a b/%20/x.plinth")
        );
        let location = url.location().unwrap();
        assert_eq!(location.as_ref(), "a b/%20/x.plinth");
        assert_eq!(url.with(&location), url.to_string());
        assert!(!url.is_several());
        for several in ["s3://b", "s3://b/", "gs://b/x/", "az://c/*.csv", "s3://b/a/**/x"] {
            assert!(ObjectUrl::parse(several).unwrap().is_several(), "{several}");
        }
    }

    #[test]
    fn what_is_no_url_of_an_object_is_refused_by_name() {
        for (url, expected) in [
            ("x.plinth", "no URL"),
            ("ftp://h/x", "unknown scheme ftp"),
            ("s3:///x", "names no bucket"),
            ("s3://*/x", "can't be a pattern"),
        ] {
            let error = ObjectUrl::parse(url).unwrap_err().to_string();
            assert!(error.contains(expected) && error.contains(url), "{error}");
        }
        assert!(ObjectUrl::parse("s3://b/a//b").unwrap().location().is_err());
        assert!(ObjectUrl::parse("s3://b/../b").unwrap().location().is_err());
    }

    #[test]
    fn what_may_be_secret_in_a_url_is_not_repeated() {
        for url in ["https://h/x.csv?X-Amz-Signature=hush", "https://user:hush@h/x.csv"] {
            let error = ObjectUrl::parse(url).unwrap_err().to_string();
            assert!(!error.contains("hush"), "{error}");
        }
    }
}
