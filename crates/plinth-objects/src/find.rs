//! What a URL names: one object, those below a prefix, those of a pattern.

use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use glob::{MatchOptions, Pattern};
use object_store::path::Path as Location;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};
use plinth_io::{Identity, Object, Result};
use tokio::time::timeout;

use crate::connected::Connected;
use crate::drive::ObjectKey;
use crate::ends::{self, Ends};
use crate::error::{failed, late, refused};
use crate::url::{ObjectUrl, Scheme};

/// As local patterns: hidden names must be asked for, and `*` stays within a folder.
const MATCHING: MatchOptions =
    MatchOptions { case_sensitive: true, require_literal_separator: true, require_literal_leading_dot: true };

/// The objects of a URL, in the order of their names.
pub(crate) async fn find(store: &Connected, url: &ObjectUrl, ends: &Ends, deadline: Duration) -> Result<Vec<Object>> {
    let name = url.to_string();
    let (action, found) = match url.is_several() {
        false => ("open", timeout(deadline, one(store, url, ends)).await),
        true if url.scheme == Scheme::Http => {
            let what = "a web server does not tell which files it has; name each of them";
            return Err(refused(&name, what.to_owned()));
        }
        true => ("list", timeout(deadline, several(store, url)).await),
    };
    found.map_err(|_| late(&name, action, deadline.as_secs_f64()))?
}

async fn one(store: &Connected, url: &ObjectUrl, ends: &Ends) -> Result<Vec<Object>> {
    let location = url.location()?;
    if ends.wants(url)
        && !store.drive.as_ref().is_some_and(|drive| drive.has_end(&url.to_string()))
        && let Some((meta, end)) = ends::read(&store.client, &location).await
    {
        store.counters.came(end.len());
        let object = object(url, meta);
        if let (Some(drive), Some(key)) = (store.drive.clone(), ObjectKey::of(&object)) {
            let (start, end) = (object.identity.len - end.len() as u64, end.clone());
            drop(tokio::task::spawn_blocking(move || drive.put(&key, start, &end)));
        }
        ends.keep(&object, end);
        return Ok(vec![object]);
    }
    let meta = store.client.head(&location).await.map_err(|e| failed(&url.to_string(), "open", &e))?;
    Ok(vec![object(url, meta)])
}

async fn several(store: &Connected, url: &ObjectUrl) -> Result<Vec<Object>> {
    let name = url.to_string();
    let (prefix, pattern) = split(&url.key);
    let prefix = if prefix.is_empty() { None } else { Some(url.location_of(prefix)?) };
    let compiled =
        pattern.map(|pattern| Pattern::new(pattern).map_err(|e| refused(&name, e.to_string()))).transpose()?;
    let listed: Vec<ObjectMeta> = match pattern {
        // What lies deeper may be much.
        Some(pattern) if !pattern.contains('/') && !pattern.contains("**") => {
            let listed = store.client.list_with_delimiter(prefix.as_ref()).await;
            listed.map_err(|e| failed(&name, "list", &e))?.objects
        }
        _ => store.client.list(prefix.as_ref()).boxed().try_collect().await.map_err(|e| failed(&name, "list", &e))?,
    };
    let within = |location: &Location| match &prefix {
        None => Some(location.as_ref().to_owned()),
        Some(prefix) => location.as_ref().strip_prefix(prefix.as_ref())?.strip_prefix('/').map(str::to_owned),
    };
    let wanted = |meta: &ObjectMeta| {
        // Folders are marked by objects without bytes.
        let mark = meta.size == 0 && meta.location.extension().is_none();
        within(&meta.location).is_some_and(|rest| match &compiled {
            Some(pattern) => pattern.matches_with(&rest, MATCHING),
            None => !mark && rest.split('/').all(|part| !part.is_empty() && !part.starts_with(['.', '_'])),
        })
    };
    let mut found: Vec<Object> = listed.into_iter().filter(wanted).map(|meta| object(url, meta)).collect();
    found.sort_by(|a, b| a.url.cmp(&b.url));
    Ok(found)
}

/// A key's folders before the first wildcard, and the pattern behind them.
fn split(key: &str) -> (&str, Option<&str>) {
    match key.find(['*', '?', '[']) {
        None => (key.trim_end_matches('/'), None),
        Some(wildcard) => {
            let (before, _) = key.split_at(wildcard);
            match before.rfind('/') {
                Some(slash) => (&key[..slash], Some(&key[slash + 1..])),
                None => ("", Some(key)),
            }
        }
    }
}

/// An entity tag as it stands in headers. Lists of Azure leave its quotes out.
pub(crate) fn entity_tag(tag: &str) -> String {
    if tag.starts_with('"') || tag.starts_with("W/") { tag.to_owned() } else { format!("\"{tag}\"") }
}

/// What a store says of an object.
fn object(url: &ObjectUrl, meta: ObjectMeta) -> Object {
    let tag = meta.e_tag.as_deref().map(entity_tag);
    let identity = Identity::of_object(meta.size, meta.last_modified.into(), tag.as_deref());
    Object { url: url.with(&meta.location), identity, tag }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_listed_from_its_last_plain_folder() {
        assert_eq!(split("a/b/"), ("a/b", None));
        assert_eq!(split(""), ("", None));
        assert_eq!(split("a/b*/c.csv"), ("a", Some("b*/c.csv")));
        assert_eq!(split("*.csv"), ("", Some("*.csv")));
        assert_eq!(split("ä/b/ö[12]"), ("ä/b", Some("ö[12]")));
    }
}
