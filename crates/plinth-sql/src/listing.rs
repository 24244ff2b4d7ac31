//! Parquet in object stores: folders and patterns as tables.
//!
//! The engine takes a URL letter by letter, so that a pattern would be the name of one object.

use std::sync::Arc;

use datafusion::catalog::{TableProvider, UrlTableFactory};
use datafusion::common::{DataFusionError, Result, TableReference};
use datafusion::datasource::dynamic_file::DynamicListTableFactory;
use datafusion::datasource::listing::{ListingTable, ListingTableConfig, ListingTableConfigExt, ListingTableUrl};
use datafusion::execution::session_state::SessionState;
use futures::future::BoxFuture;
use glob::Pattern;
use plinth_io::objects::{is_pattern, is_url};
use plinth_objects::ObjectUrl;
use url::Url;

/// The engine's factory, and what it lacks.
#[derive(Debug)]
pub(crate) struct Listings(Arc<DynamicListTableFactory>);

impl Listings {
    pub(crate) fn new(factory: Arc<DynamicListTableFactory>) -> Self {
        Self(factory)
    }

    fn state(&self) -> Result<SessionState> {
        let session = self.0.session_store().get_session().upgrade();
        let state = session.and_then(|session| session.read().as_any().downcast_ref::<SessionState>().cloned());
        state.ok_or_else(|| DataFusionError::Internal("the session has ended".to_owned()))
    }

    async fn open(&self, name: &str) -> Result<Arc<dyn TableProvider>> {
        let state = self.state()?;
        let config = ListingTableConfig::new(listed(name)?).infer(&state).await?;
        Ok(Arc::new(ListingTable::try_new(config)?))
    }
}

/// A URL as the engine lists it: the folders before the first wildcard, and the pattern behind them.
fn listed(name: &str) -> Result<ListingTableUrl> {
    let external = |e: Box<dyn std::error::Error + Send + Sync>| DataFusionError::External(e);
    let url = ObjectUrl::parse(name).map_err(|e| external(Box::new(e)))?;
    let (folder, pattern) = match url.key.find(['*', '?', '[']).filter(|_| is_pattern(&url.key)) {
        Some(wildcard) => {
            let slash = url.key.get(..wildcard).and_then(|before| before.rfind('/')).map_or(0, |at| at + 1);
            let (folder, pattern) = url.key.split_at(slash);
            (folder, Some(Pattern::new(pattern).map_err(|e| external(Box::new(e)))?))
        }
        None => (url.key.as_str(), None),
    };
    // Keys are taken letter by letter, and URLs are not.
    let folder = folder.replace('%', "%25").replace('?', "%3F").replace('#', "%23");
    let store = TableReference::bare(url.base.to_string());
    let url = Url::parse(&format!("{}/{folder}", url.base)).map_err(|e| external(Box::new(e)))?;
    // What was listed is known by its folder, which may be that of another store, too.
    Ok(ListingTableUrl::try_new(url, pattern)?.with_table_ref(store))
}

impl UrlTableFactory for Listings {
    // `async_trait`'s signature, written out.
    fn try_new<'a: 'c, 'b: 'c, 'c>(&'a self, url: &'b str) -> BoxFuture<'c, Result<Option<Arc<dyn TableProvider>>>> {
        Box::pin(async move {
            match is_url(url) {
                true => self.open(url).await.map(Some),
                false => self.0.try_new(url).await,
            }
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn keys_are_taken_letter_by_letter() {
        let url = listed("s3://b/a %20/x y.parquet").unwrap();
        assert_eq!(url.prefix().as_ref(), "a %20/x y.parquet");
        let url = listed("s3://b/a/b*/*.parquet").unwrap();
        assert_eq!((url.prefix().as_ref(), url.get_glob().as_ref().map(Pattern::as_str)), ("a", Some("b*/*.parquet")));
        assert!(listed("s3://b/[").is_err());
    }
}
