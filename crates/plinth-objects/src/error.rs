//! What a store's answers mean, as errors of files.

use std::io::{Error, ErrorKind};

use plinth_io::IoError;

/// A URL that can't be used, and why.
pub(crate) fn refused(url: &str, what: String) -> IoError {
    IoError::os(url, "open", Error::new(ErrorKind::InvalidInput, what))
}

/// What a store said when it was asked to do something with an object.
pub(crate) fn failed(url: &str, action: &str, error: &object_store::Error) -> IoError {
    use object_store::Error::{NotFound, Precondition};
    let (kind, what) = match error {
        NotFound { .. } => (ErrorKind::NotFound, "there is no such object".to_owned()),
        Precondition { .. } => (ErrorKind::Other, REPLACED.to_owned()),
        error if is_denied(error) => {
            let what = "the store refuses these credentials, or there are none (see CREATE SECRET, AWS_ACCESS_KEY_ID, AWS_PROFILE)";
            (ErrorKind::PermissionDenied, format!("{what}: {}", reason(error)))
        }
        other => (ErrorKind::Other, reason(other)),
    };
    IoError::os(url, action, Error::new(kind, what))
}

/// Whether a store refuses the keys that it was asked with: of lists, and of keys that have expired, that is told by the answer alone.
pub(crate) fn is_denied(error: &object_store::Error) -> bool {
    use object_store::Error::{Generic, PermissionDenied, Unauthenticated};
    match error {
        PermissionDenied { .. } | Unauthenticated { .. } => true,
        Generic { .. } => {
            let reason = reason(error);
            ["403 Forbidden", "401 Unauthorized", "ExpiredToken"].iter().any(|said| reason.contains(said))
        }
        _ => false,
    }
}

/// What is said of an object whose bytes are not those that were listed.
pub(crate) const REPLACED: &str = "it was replaced while it was read; try again";

/// No answer within a time.
pub(crate) fn late(url: &str, action: &str, seconds: f64) -> IoError {
    let what = format!("the store did not answer within {seconds:.0} s");
    IoError::os(url, action, Error::new(ErrorKind::TimedOut, what))
}

/// The last of the causes, which says most, on one line and not longer than a line may be.
pub(crate) fn reason(error: &dyn std::error::Error) -> String {
    const MOST: usize = 300;
    let mut all = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let text = inner.to_string();
        // Most messages repeat those below.
        if !all.contains(&text) {
            all = format!("{all}: {text}");
        }
        cause = inner.source();
    }
    let line = all.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}...", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

/// Whether the same request may be answered if it is sent again.
pub(crate) fn is_passing(error: &object_store::Error) -> bool {
    matches!(error, object_store::Error::Generic { .. } | object_store::Error::JoinError { .. })
}
