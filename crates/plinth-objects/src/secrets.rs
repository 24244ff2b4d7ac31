//! Credentials and endpoints that a session was given: `CREATE SECRET`.
//!
//! Values leave this crate in requests only: nothing here prints them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use plinth_core::sync::lock;

use crate::url::{ObjectUrl, Scheme};

/// What a secret is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// S3, and what speaks as it does.
    S3,
    /// Google Cloud Storage.
    Gcs,
    /// Azure Blob Storage.
    Azure,
    /// Web servers.
    Http,
}

/// The settings of a kind, as statements spell them.
const S3: &[&str] = &[
    "anonymous",
    "endpoint",
    "key_id",
    "profile",
    "region",
    "requester_pays",
    "secret",
    "session_token",
    "url_style",
    "use_ssl",
];
const GCS: &[&str] = &["anonymous", "endpoint", "service_account_key", "service_account_path"];
const AZURE: &[&str] = &[
    "account_key",
    "account_name",
    "anonymous",
    "client_id",
    "client_secret",
    "endpoint",
    "sas_token",
    "tenant_id",
    "use_emulator",
];
const HTTP: &[&str] = &["bearer_token"];

/// Settings that may be shown.
const PLAIN: &[&str] = &[
    "account_name",
    "anonymous",
    "endpoint",
    "profile",
    "region",
    "requester_pays",
    "service_account_path",
    "url_style",
    "use_emulator",
    "use_ssl",
];

impl Kind {
    /// By its name in statements.
    pub fn of_name(name: &str) -> Option<Self> {
        match name.to_ascii_lowercase().as_str() {
            "s3" | "r2" => Some(Self::S3),
            "gcs" | "gs" => Some(Self::Gcs),
            "azure" | "az" => Some(Self::Azure),
            "http" | "https" => Some(Self::Http),
            _ => None,
        }
    }

    /// Its name in statements.
    pub fn name(self) -> &'static str {
        match self {
            Self::S3 => "s3",
            Self::Gcs => "gcs",
            Self::Azure => "azure",
            Self::Http => "http",
        }
    }

    /// What can be set.
    pub fn settings(self) -> &'static [&'static str] {
        match self {
            Self::S3 => S3,
            Self::Gcs => GCS,
            Self::Azure => AZURE,
            Self::Http => HTTP,
        }
    }

    fn is_of(self, scheme: Scheme) -> bool {
        matches!(
            (self, scheme),
            (Self::S3, Scheme::S3)
                | (Self::Gcs, Scheme::Gcs)
                | (Self::Azure, Scheme::Azure)
                | (Self::Http, Scheme::Http)
        )
    }
}

/// A named set of credentials.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub kind: Kind,
    /// The bucket, container or host that it is for; all without.
    pub host: Option<String>,
    values: BTreeMap<String, String>,
}

impl Secret {
    /// A secret without values.
    pub fn new(name: impl Into<String>, kind: Kind) -> Self {
        Self { name: name.into(), kind, host: None, values: BTreeMap::new() }
    }

    /// Sets something.
    ///
    /// # Errors
    /// If its kind has no such setting, or the value can't be one; a sentence that does not repeat the value.
    pub fn set(&mut self, setting: &str, value: &str) -> Result<(), String> {
        let setting = setting.to_ascii_lowercase();
        let kind = self.kind.name();
        if !self.kind.settings().contains(&setting.as_str()) {
            let known = self.kind.settings().join(", ");
            return Err(format!("secrets of type {kind} have no setting {setting}; they have {known}, and scope"));
        }
        let value = match setting.as_str() {
            "anonymous" | "requester_pays" | "use_ssl" | "use_emulator" => match value.to_ascii_lowercase().as_str() {
                "true" | "1" => "true".to_owned(),
                "false" | "0" => "false".to_owned(),
                _ => return Err(format!("setting {setting} of a secret is true or false")),
            },
            "url_style" => match value.to_ascii_lowercase().as_str() {
                style @ ("path" | "vhost") => style.to_owned(),
                _ => return Err("setting url_style of a secret is 'path' or 'vhost'".to_owned()),
            },
            _ => value.to_owned(),
        };
        if self.values.insert(setting.clone(), value).is_some() {
            return Err(format!("setting {setting} stands twice"));
        }
        Ok(())
    }

    /// Says for which bucket it is: `s3://bucket`.
    ///
    /// # Errors
    /// If that is no URL of its kind, or of more than a bucket.
    pub fn scope(&mut self, scope: &str) -> Result<(), String> {
        // `s3://` is all buckets.
        if scope.strip_suffix("://").and_then(Kind::of_name) == Some(self.kind) {
            return Ok(());
        }
        let url = ObjectUrl::parse(scope).map_err(|e| e.to_string())?;
        if !self.kind.is_of(url.scheme) {
            return Err(format!("{scope}: not of type {}", self.kind.name()));
        }
        if !url.key.is_empty() {
            let base = url.base;
            return Err(format!("{scope}: a secret is for whole buckets: {base}"));
        }
        self.host = Some(url.host);
        Ok(())
    }

    /// The value of a setting.
    pub(crate) fn get(&self, setting: &str) -> Option<&str> {
        self.values.get(setting).map(String::as_str)
    }

    /// Whether a setting is true.
    pub(crate) fn is(&self, setting: &str) -> bool {
        self.get(setting) == Some("true")
    }

    /// Names of what is set, with the values that may be seen: `key_id=***, region=eu-west-1`.
    pub fn shown(&self) -> String {
        let show = |(name, value): (&String, &String)| match PLAIN.contains(&name.as_str()) {
            true => format!("{name}={value}"),
            false => format!("{name}=***"),
        };
        self.values.iter().map(show).collect::<Vec<_>>().join(", ")
    }

    /// Where it applies, as a URL.
    pub fn shown_scope(&self) -> String {
        format!("{}://{}", self.kind.name(), self.host.as_deref().unwrap_or_default())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secret").field("name", &self.name).field("kind", &self.kind).finish_non_exhaustive()
    }
}

/// The secrets of a session.
#[derive(Debug, Default)]
pub struct Secrets(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    all: Vec<Arc<Secret>>,
    /// Grows with each change.
    version: u64,
}

impl Secrets {
    /// Adds a secret; false if there is one of the name and it is not to be replaced.
    pub fn add(&self, secret: Secret, replace: bool) -> bool {
        let mut known = lock(&self.0);
        if let Some(at) = known.all.iter().position(|other| other.name == secret.name) {
            if !replace {
                return false;
            }
            known.all.remove(at);
        }
        known.all.push(Arc::new(secret));
        known.version += 1;
        true
    }

    /// Forgets a secret; false if there is none of the name.
    pub fn remove(&self, name: &str) -> bool {
        let mut known = lock(&self.0);
        let before = known.all.len();
        known.all.retain(|secret| secret.name != name);
        known.version += u64::from(known.all.len() < before);
        known.all.len() < before
    }

    /// All, in the order of their names.
    pub fn all(&self) -> Vec<Arc<Secret>> {
        let mut all = lock(&self.0).all.clone();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    /// Which one a URL is asked with, and a number that changes with the secrets: one for its bucket goes before one for all,
    /// the last that was made before those before it.
    pub(crate) fn of(&self, url: &ObjectUrl) -> (Option<Arc<Secret>>, u64) {
        let known = lock(&self.0);
        let of_kind = || known.all.iter().rev().filter(|secret| secret.kind.is_of(url.scheme));
        let own = of_kind().find(|secret| secret.host.as_deref() == Some(&*url.host));
        let secret = own.or_else(|| of_kind().find(|secret| secret.host.is_none()));
        (secret.cloned(), known.version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(name: &str, scope: &str) -> Secret {
        let mut secret = Secret::new(name, Kind::S3);
        secret.scope(scope).unwrap();
        secret.set("KEY_ID", "hush").unwrap();
        secret.set("region", "eu-west-1").unwrap();
        secret
    }

    #[test]
    fn the_secret_of_a_bucket_goes_before_that_of_all() {
        let secrets = Secrets::default();
        assert!(secrets.add(secret("all", "s3://"), false));
        assert!(secrets.add(secret("one", "s3://b"), false));
        assert!(!secrets.add(secret("one", "s3://c"), false));
        let of = |url: &str| secrets.of(&ObjectUrl::parse(url).unwrap()).0.map(|secret| secret.name.clone());
        assert_eq!(of("s3://b/x").as_deref(), Some("one"));
        assert_eq!(of("s3://c/x").as_deref(), Some("all"));
        assert_eq!(of("gs://b/x"), None);
        assert!(secrets.remove("all") && !secrets.remove("all"));
        assert_eq!(of("s3://c/x"), None);
    }

    #[test]
    fn values_are_not_shown() {
        let secret = secret("s", "s3://b");
        assert_eq!(secret.shown(), "key_id=***, region=eu-west-1");
        assert!(!format!("{secret:?}").contains("hush"));
        let mut other = secret;
        for (setting, value) in [("nosuch", "hush"), ("use_ssl", "hush"), ("url_style", "hush"), ("key_id", "hush")] {
            let error = other.set(setting, value).unwrap_err();
            assert!(error.contains(setting) && !error.contains("hush"), "{error}");
        }
        assert!(other.scope("s3://b/x").unwrap_err().contains("whole buckets"));
        assert!(other.scope("gs://b").is_err());
    }
}
