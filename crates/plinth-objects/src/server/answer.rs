//! What the server answers.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use super::http::{Answer, Request};
use super::{State, Stored};

/// Names in one answer to a list, at most.
const NAMES: usize = 1000;

fn plain(status: u16, body: impl Into<Vec<u8>>) -> Answer {
    Answer { status, headers: Vec::new(), body: body.into() }
}

fn error(status: u16, code: &str) -> Answer {
    plain(status, format!("<Error><Code>{code}</Code><Message>{code}</Message></Error>"))
}

pub(super) fn answer(request: &Request, state: &mut State) -> Answer {
    if let Some(key) = &state.key {
        let signed =
            request.headers.get("authorization").is_some_and(|header| header.contains(&format!("Credential={key}/")));
        if !signed {
            return error(403, "InvalidAccessKeyId");
        }
    }
    let is_bucket = !request.path.trim_end_matches('/').contains('/');
    match request.method.as_str() {
        "GET" if is_bucket => list(request, state),
        "GET" | "HEAD" => get(request, state),
        "PUT" if request.query.contains_key("uploadId") => {
            let part = request.query.get("partNumber").and_then(|number| number.parse().ok()).unwrap_or(0);
            let Some(upload) = request.query.get("uploadId").and_then(|id| state.uploads.get_mut(id)) else {
                return error(404, "NoSuchUpload");
            };
            upload.insert(part, request.body.clone());
            Answer { status: 200, headers: vec![("ETag", format!("\"part{part}\""))], body: Vec::new() }
        }
        "PUT" => put(request, state, request.body.clone()),
        "POST" if request.query.contains_key("uploads") => {
            state.versions += 1;
            let id = format!("upload{}", state.versions);
            state.uploads.insert(id.clone(), BTreeMap::new());
            plain(
                200,
                format!("<InitiateMultipartUploadResult><UploadId>{id}</UploadId></InitiateMultipartUploadResult>"),
            )
        }
        "POST" => {
            let upload = request.query.get("uploadId").and_then(|id| state.uploads.remove(id));
            let Some(parts) = upload else { return error(404, "NoSuchUpload") };
            let stored = put(request, state, parts.into_values().flatten().collect());
            if stored.status != 200 {
                return stored;
            }
            let tag = stored.headers.into_iter().next().map(|(_, tag)| tag).unwrap_or_default();
            plain(200, format!("<CompleteMultipartUploadResult><ETag>{tag}</ETag></CompleteMultipartUploadResult>"))
        }
        "DELETE" => {
            match request.query.get("uploadId") {
                Some(id) => drop(state.uploads.remove(id)),
                None => drop(state.objects.remove(&request.path)),
            }
            plain(204, "")
        }
        _ => error(405, "MethodNotAllowed"),
    }
}

fn put(request: &Request, state: &mut State, body: Vec<u8>) -> Answer {
    let there = state.objects.get(&request.path).map(|stored| stored.tag.clone());
    let header = |name: &str| request.headers.get(name);
    let refused = (header("if-none-match").is_some() && there.is_some())
        || header("if-match").is_some_and(|wanted| there.as_ref() != Some(wanted));
    if refused {
        return error(412, "PreconditionFailed");
    }
    state.versions += 1;
    let tag = format!("\"v{}\"", state.versions);
    let len = body.len() as u64;
    let stored = Stored { bytes: BTreeMap::from([(0, Arc::from(body))]), len, tag: tag.clone() };
    state.objects.insert(request.path.clone(), stored);
    Answer { status: 200, headers: vec![("ETag", tag)], body: Vec::new() }
}

fn get(request: &Request, state: &State) -> Answer {
    let Some(stored) = state.objects.get(&request.path) else { return error(404, "NoSuchKey") };
    if request.headers.get("if-match").is_some_and(|wanted| *wanted != stored.tag) {
        return error(412, "PreconditionFailed");
    }
    let mut headers = vec![
        ("ETag", stored.tag.clone()),
        ("Last-Modified", "Wed, 21 Oct 2015 07:28:00 GMT".to_owned()),
        ("Accept-Ranges", "bytes".to_owned()),
    ];
    let range = request.headers.get("range").and_then(|range| range.strip_prefix("bytes=")?.split_once('-'));
    let asked: Option<Range<u64>> = range.and_then(|(from, to)| {
        Some(match (from.parse::<u64>().ok(), to.parse::<u64>().ok()) {
            (Some(from), Some(to)) => from..to.saturating_add(1).min(stored.len),
            (Some(from), None) => from..stored.len,
            (None, Some(last)) => stored.len.saturating_sub(last)..stored.len,
            (None, None) => return None,
        })
    });
    if request.method == "HEAD" {
        headers.push(("Content-Length", stored.len.to_string()));
        return Answer { status: 200, headers, body: Vec::new() };
    }
    match asked {
        Some(range) if range.start >= range.end => error(416, "InvalidRange"),
        Some(range) => {
            headers.push(("Content-Range", format!("bytes {}-{}/{}", range.start, range.end - 1, stored.len)));
            Answer { status: 206, headers, body: stored.part(range) }
        }
        None => Answer { status: 200, headers, body: stored.part(0..stored.len) },
    }
}

/// A list of names, of the second kind that S3 knows.
fn list(request: &Request, state: &State) -> Answer {
    let query = |name: &str| request.query.get(name).map(String::as_str).unwrap_or_default();
    let bucket = format!("{}/", request.path.trim_end_matches('/'));
    let (prefix, delimiter, after) = (query("prefix"), query("delimiter"), query("continuation-token"));
    let (mut contents, mut folders, mut last) = (String::new(), BTreeSet::new(), None);
    let mut more = false;
    for (name, stored) in &state.objects {
        let Some(key) = name.strip_prefix(&bucket).filter(|key| key.starts_with(prefix) && *key > after) else {
            continue;
        };
        let rest = key.strip_prefix(prefix).unwrap_or(key);
        if !delimiter.is_empty()
            && let Some(at) = rest.find(delimiter)
        {
            folders.insert(format!("{prefix}{}", rest.get(..=at).unwrap_or_default()));
            continue;
        }
        if contents.matches("<Key>").count() == NAMES {
            more = true;
            break;
        }
        contents.push_str(&format!(
            "<Contents><Key>{}</Key><Size>{}</Size><LastModified>2015-10-21T07:28:00.000Z</LastModified><ETag>{}</ETag></Contents>",
            escaped(key), stored.len, escaped(&stored.tag)
        ));
        last = Some(key.to_owned());
    }
    let folders: String = folders
        .iter()
        .map(|folder| format!("<CommonPrefixes><Prefix>{}</Prefix></CommonPrefixes>", escaped(folder)))
        .collect();
    let next = match last.filter(|_| more) {
        Some(last) => format!("<NextContinuationToken>{}</NextContinuationToken>", escaped(&last)),
        None => String::new(),
    };
    plain(
        200,
        format!("<ListBucketResult>{contents}{folders}<IsTruncated>{more}</IsTruncated>{next}</ListBucketResult>"),
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
