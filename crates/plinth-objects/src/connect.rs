//! From a URL, a secret and the environment to the client of a store.

use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey, resolve_bucket_region};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::http::HttpBuilder;
use object_store::{BackoffConfig, ClientOptions, HeaderMap, HeaderValue, ObjectStore, RetryConfig};
use plinth_io::Result;

use crate::counters::{Counters, Counting};
use crate::error::{failed, refused};
use crate::pace::Limits;
use crate::profiles::Profile;
use crate::renewed::{KeysOfFiles, Renewed};
use crate::secrets::Secret;
use crate::url::{ObjectUrl, Scheme};

/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(5);

/// What a store is reached with.
pub(crate) struct Way<'a> {
    pub(crate) url: &'a ObjectUrl,
    pub(crate) secret: Option<&'a Secret>,
    pub(crate) limits: Limits,
    pub(crate) counters: &'a Arc<Counters>,
}

impl Way<'_> {
    /// The store's client.
    ///
    /// # Errors
    /// If credentials are incomplete, or the region of a bucket can't be found out.
    pub(crate) async fn connect(&self) -> Result<Arc<dyn ObjectStore>> {
        match self.url.scheme {
            Scheme::S3 => self.s3().await,
            Scheme::Gcs => self.gcs(),
            Scheme::Azure => self.azure(),
            Scheme::Http => self.http(),
        }
    }

    fn failed(&self, error: &object_store::Error) -> plinth_io::IoError {
        failed(&self.url.base, "reach", error)
    }

    fn setting(&self, name: &str) -> Option<&str> {
        self.secret.and_then(|secret| secret.get(name))
    }

    fn is(&self, name: &str) -> bool {
        self.secret.is_some_and(|secret| secret.is(name))
    }

    /// Requests have no limit of their own: what waits for them has (see `fetch.rs`).
    fn client(&self, plain: bool) -> ClientOptions {
        ClientOptions::new().with_timeout_disabled().with_connect_timeout(CONNECT).with_allow_http(plain)
    }

    fn retry(&self) -> RetryConfig {
        let backoff = BackoffConfig {
            init_backoff: Duration::from_millis(100),
            max_backoff: Duration::from_secs(5),
            ..BackoffConfig::default()
        };
        RetryConfig { backoff, max_retries: self.limits.tries, retry_timeout: self.limits.deadline }
    }

    fn counting(&self) -> Counting {
        Counting(Arc::clone(self.counters))
    }

    async fn s3(&self) -> Result<Arc<dyn ObjectStore>> {
        use AmazonS3ConfigKey::{
            AccessKeyId, DefaultRegion, Endpoint, Region, S3Endpoint, SecretAccessKey, SkipSignature, Token,
        };
        let own = self.setting("key_id").is_some() || self.is("anonymous");
        // A secret with keys stands for itself; without, it adds to what the environment says.
        let mut builder = if own { AmazonS3Builder::new() } else { AmazonS3Builder::from_env() };
        for (name, key) in [
            ("key_id", AccessKeyId),
            ("secret", SecretAccessKey),
            ("session_token", Token),
            ("region", Region),
            ("requester_pays", AmazonS3ConfigKey::RequestPayer),
            ("anonymous", SkipSignature),
        ] {
            if let Some(value) = self.setting(name) {
                builder = builder.with_config(key, value);
            }
        }
        if own && !self.is("anonymous") && self.setting("secret").is_none() {
            return Err(refused(&self.url.base, "its secret has a KEY_ID and no SECRET".to_owned()));
        }
        if own && self.setting("profile").is_some() {
            let what = "its secret has keys, or is anonymous, and a PROFILE: one of them".to_owned();
            return Err(refused(&self.url.base, what));
        }
        if let Some(endpoint) = self.endpoint()? {
            // The environment's name for S3 alone would go before the other.
            builder = builder.with_config(S3Endpoint, &endpoint).with_endpoint(endpoint);
        }
        let mut keys = None;
        if builder.get_config_value(&AccessKeyId).is_none() && !own {
            (builder, keys) = self.of_profile(builder)?;
        }
        let has = |builder: &AmazonS3Builder, key| builder.get_config_value(&key).is_some();
        let endpoint = builder.get_config_value(&S3Endpoint).or_else(|| builder.get_config_value(&Endpoint));
        if endpoint.is_none() && !has(&builder, Region) && !has(&builder, DefaultRegion) {
            let region = resolve_bucket_region(&self.url.host, &self.client(false)).await;
            builder = builder.with_region(region.map_err(|e| self.failed(&e))?);
        }
        let plain = endpoint.as_deref().is_some_and(|endpoint| endpoint.starts_with("http://"));
        let by_host = match self.setting("url_style") {
            Some(style) => style == "vhost",
            None => endpoint.is_none() && !self.url.host.contains('.'),
        };
        builder = builder.with_virtual_hosted_style_request(by_host);
        let store = builder
            .with_bucket_name(&self.url.host)
            .with_client_options(self.client(plain))
            .with_retry(self.retry())
            .with_http_connector(self.counting())
            .build()
            .map_err(|e| self.failed(&e))?;
        Ok(match keys {
            Some(keys) => Arc::new(Renewed { inner: store, keys }),
            None => Arc::new(store),
        })
    }

    /// The endpoint that the secret says, with its scheme, and its bucket where requests name that by host.
    fn endpoint(&self) -> Result<Option<String>> {
        let (endpoint, ssl) = (self.setting("endpoint"), self.setting("use_ssl"));
        let (scheme, host) = match (endpoint.map(|endpoint| (endpoint, endpoint.split_once("://"))), ssl) {
            (None, None) => return Ok(None),
            (Some((_, Some((scheme, host)))), None) => (scheme, host),
            (Some((host, None)), ssl) => (if ssl == Some("false") { "http" } else { "https" }, host),
            (None | Some((_, Some(_))), Some(_)) => {
                let what = "USE_SSL of its secret is of an ENDPOINT without a scheme".to_owned();
                return Err(refused(&self.url.base, what));
            }
        };
        let bucket =
            if self.setting("url_style") == Some("vhost") { format!("{}.", self.url.host) } else { String::new() };
        Ok(Some(format!("{scheme}://{bucket}{host}")))
    }

    /// Without keys in the environment: those of the files, a role of the machine, or none at all.
    fn of_profile(&self, mut builder: AmazonS3Builder) -> Result<(AmazonS3Builder, Option<Arc<KeysOfFiles>>)> {
        let named = self.setting("profile");
        let profile = Profile::load(&self.url.base, named)?;
        for (name, key) in [("region", AmazonS3ConfigKey::Region), ("endpoint_url", AmazonS3ConfigKey::Endpoint)] {
            if let Some(value) = profile.get(name)
                && builder.get_config_value(&key).is_none()
            {
                builder = builder.with_config(key, value);
            }
        }
        let roles = [
            "AWS_WEB_IDENTITY_TOKEN_FILE",
            "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
            "AWS_CONTAINER_CREDENTIALS_FULL_URI",
        ];
        let role = roles.iter().any(|name| std::env::var_os(name).is_some()) || is_ec2();
        if let Some(keys) = KeysOfFiles::of(&self.url.base, named, &profile).map(Arc::new) {
            return Ok((builder.with_credentials(Arc::clone(&keys) as _), Some(keys)));
        }
        if profile.get("aws_access_key_id").is_some() {
            let what = "its profile has an aws_access_key_id and no aws_secret_access_key".to_owned();
            return Err(refused(&self.url.base, what));
        }
        Ok((if role { builder } else { builder.with_skip_signature(true) }, None))
    }

    fn gcs(&self) -> Result<Arc<dyn ObjectStore>> {
        let mut builder = GoogleCloudStorageBuilder::from_env();
        for (name, key) in [
            ("service_account_key", GoogleConfigKey::ServiceAccountKey),
            ("service_account_path", GoogleConfigKey::ServiceAccount),
            ("endpoint", GoogleConfigKey::BaseUrl),
            ("anonymous", GoogleConfigKey::SkipSignature),
        ] {
            if let Some(value) = self.setting(name) {
                builder = builder.with_config(key, value);
            }
        }
        let known = [
            GoogleConfigKey::ServiceAccountKey,
            GoogleConfigKey::ServiceAccount,
            GoogleConfigKey::ApplicationCredentials,
        ];
        if known.iter().all(|key| builder.get_config_value(key).is_none()) && !has_google_login() {
            builder = builder.with_skip_signature(true);
        }
        let plain = builder.get_config_value(&GoogleConfigKey::BaseUrl).is_some_and(|url| url.starts_with("http://"));
        let store = builder
            .with_bucket_name(&self.url.host)
            .with_client_options(self.client(plain))
            .with_retry(self.retry())
            .with_http_connector(self.counting())
            .build();
        Ok(Arc::new(store.map_err(|e| self.failed(&e))?))
    }

    fn azure(&self) -> Result<Arc<dyn ObjectStore>> {
        let mut builder = MicrosoftAzureBuilder::from_env().with_url(&self.url.base);
        for (name, key) in [
            ("account_name", AzureConfigKey::AccountName),
            ("account_key", AzureConfigKey::AccessKey),
            ("sas_token", AzureConfigKey::SasKey),
            ("client_id", AzureConfigKey::ClientId),
            ("client_secret", AzureConfigKey::ClientSecret),
            ("tenant_id", AzureConfigKey::AuthorityId),
            ("endpoint", AzureConfigKey::Endpoint),
            ("use_emulator", AzureConfigKey::UseEmulator),
            ("anonymous", AzureConfigKey::SkipSignature),
        ] {
            if let Some(value) = self.setting(name) {
                builder = builder.with_config(key, value);
            }
        }
        let endpoint = builder.get_config_value(&AzureConfigKey::Endpoint);
        let plain = self.is("use_emulator") || endpoint.is_some_and(|url| url.starts_with("http://"));
        let store = builder
            .with_client_options(self.client(plain))
            .with_retry(self.retry())
            .with_http_connector(self.counting())
            .build();
        Ok(Arc::new(store.map_err(|e| self.failed(&e))?))
    }

    fn http(&self) -> Result<Arc<dyn ObjectStore>> {
        let mut client = self.client(true);
        if let Some(token) = self.setting("bearer_token") {
            let mut value = HeaderValue::from_str(&format!("Bearer {token}"))
                .map_err(|_| refused(&self.url.base, "the bearer_token of its secret can't be one".to_owned()))?;
            value.set_sensitive(true);
            let mut headers = HeaderMap::new();
            headers.insert("authorization", value);
            client = client.with_default_headers(headers);
        }
        let store = HttpBuilder::new()
            .with_url(&self.url.base)
            .with_client_options(client)
            .with_retry(self.retry())
            .with_http_connector(self.counting())
            .build();
        Ok(Arc::new(store.map_err(|e| self.failed(&e))?))
    }
}

/// Whether the machine may ask Amazon's service for its role: elsewhere that would wait for an address that is not there.
fn is_ec2() -> bool {
    ["/sys/class/dmi/id/sys_vendor", "/sys/hypervisor/uuid"].iter().any(|file| {
        std::fs::read_to_string(file).is_ok_and(|text| text.contains("Amazon EC2") || text.starts_with("ec2"))
    })
}

/// Whether `gcloud` has left credentials, or the machine is Google's.
fn has_google_login() -> bool {
    let home = std::env::var_os("HOME").map(std::path::PathBuf::from);
    let left = home.is_some_and(|home| home.join(".config/gcloud/application_default_credentials.json").is_file());
    let vendor = std::fs::read_to_string("/sys/class/dmi/id/sys_vendor");
    left || std::env::var_os("GOOGLE_APPLICATION_CREDENTIALS").is_some()
        || vendor.is_ok_and(|text| text.contains("Google"))
}
