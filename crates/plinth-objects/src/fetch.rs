//! Ranges of an object from the local drive, or by as few requests as are worth it, until all have come or one can't.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use futures::future::{Either, join_all, select};
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};
use object_store::{GetOptions, GetRange, GetResult, ObjectStore};
use plinth_core::random::Random;
use plinth_io::{Extent, IoError, Reply, Result};
use tokio::time::{sleep, timeout};

use crate::error::{REPLACED, failed, is_passing, late};
use crate::find::entity_tag;
use crate::target::Target;

/// How often it is looked whether an answer is still waited for.
const LOOK: Duration = Duration::from_millis(20);

/// Requests without a byte before a read fails, when the store accepts them.
const EMPTY: usize = 3;

/// A range that is wanted, its memory, and where the answer goes.
pub(crate) struct Part {
    range: Range<u64>,
    /// Bytes of the memory before the range's.
    lead: usize,
    memory: Extent,
    filled: usize,
    reply: Reply,
}

impl Part {
    pub(crate) fn new(range: Range<u64>, lead: usize, memory: Extent, reply: Reply) -> Self {
        Self { range, lead, memory, filled: 0, reply }
    }

    pub(crate) fn len(&self) -> usize {
        usize::try_from(self.range.end - self.range.start).unwrap_or(usize::MAX)
    }

    /// Its bytes, to be filled.
    fn bytes(&mut self) -> &mut [u8] {
        let end = self.lead + self.len();
        self.memory.get_mut(self.lead..end).unwrap_or_default()
    }

    fn answer(self) {
        let (lead, len) = (self.lead, self.len());
        // A read that was cancelled has not all of its bytes.
        let bytes = if self.is_full() { self.memory.into_buffer(lead, len) } else { None };
        self.reply.send(bytes.ok_or(IoError::Abandoned));
    }

    /// Takes of the bytes that came for `at..` what is its own.
    fn take(&mut self, at: u64, came: &[u8]) {
        let next = self.range.start + self.filled as u64;
        let Some(skip) = next.checked_sub(at).and_then(|skip| usize::try_from(skip).ok()) else { return };
        let Some(own) = came.get(skip..) else { return };
        let filled = self.filled;
        let Some(left) = self.bytes().get_mut(filled..) else { return };
        let count = own.len().min(left.len());
        if let (Some(to), Some(from)) = (left.get_mut(..count), own.get(..count)) {
            to.copy_from_slice(from);
        }
        self.filled += count;
    }

    fn is_full(&self) -> bool {
        self.filled >= self.len()
    }
}

/// Parts that one request brings, in the order of their bytes.
struct Run {
    range: Range<u64>,
    parts: Vec<Part>,
}

impl Run {
    /// Whether none of its parts is waited for any more.
    fn is_cancelled(&self) -> bool {
        self.parts.iter().all(|part| part.reply.is_cancelled())
    }
}

/// Brings all parts.
pub(crate) async fn all(file: Arc<Target>, parts: Vec<Part>) {
    let parts = match &file.store.drive {
        Some(drive) if file.key.is_some() => {
            let (drive, from) = (Arc::clone(drive), Arc::clone(&file));
            // What a thread held when it died is answered by its replies, as given up.
            tokio::task::spawn_blocking(move || from_drive(&drive, &from, parts)).await.unwrap_or_default()
        }
        _ => parts,
    };
    let runs = runs(parts, file.store.pace.gap(), file.store.limits.request_bytes);
    join_all(runs.into_iter().map(|run| bring(&file, run))).await;
}

/// Answers what the local drive has; the rest.
fn from_drive(drive: &crate::drive::DriveCache, file: &Target, parts: Vec<Part>) -> Vec<Part> {
    let Some(key) = &file.key else { return parts };
    let mut missing = Vec::new();
    for mut part in parts {
        let start = part.range.start;
        if drive.get(key, start, part.bytes()) {
            part.filled = part.len();
            file.store.counters.spared(part.len() as u64);
            part.answer();
        } else {
            missing.push(part);
        }
    }
    missing
}

/// Parts that lie close to each other, together.
fn runs(mut parts: Vec<Part>, gap: u64, most: u64) -> Vec<Run> {
    parts.sort_by_key(|part| part.range.start);
    let mut runs: Vec<Run> = Vec::new();
    for part in parts {
        match runs.last_mut() {
            Some(run)
                if part.range.start <= run.range.end.saturating_add(gap)
                    && part.range.end.max(run.range.end) - run.range.start <= most =>
            {
                run.range.end = run.range.end.max(part.range.end);
                run.parts.push(part);
            }
            _ => runs.push(Run { range: part.range.clone(), parts: vec![part] }),
        }
    }
    runs
}

/// Brings the parts of a run: by one request, and by more where one breaks off.
async fn bring(file: &Arc<Target>, mut run: Run) {
    let action = format!("read {} bytes at {}", run.range.end - run.range.start, run.range.start);
    match receive(file, &mut run, &action).await {
        Ok(()) => keep(file, run).await,
        Err(error) => run.parts.into_iter().for_each(|part| part.reply.send(Err(error.clone()))),
    }
}

/// Offers what came to the local drive, and answers.
async fn keep(file: &Arc<Target>, run: Run) {
    let Some((drive, key)) = file.store.drive.as_ref().zip(file.key.as_ref()) else {
        run.parts.into_iter().for_each(Part::answer);
        return;
    };
    let mut offered = Vec::new();
    for mut part in run.parts {
        let start = part.range.start;
        if part.is_full() && drive.admits(key, start, part.len()) {
            offered.push((start, Bytes::copy_from_slice(part.bytes())));
        }
        part.answer();
    }
    if !offered.is_empty() {
        let (drive, key) = (Arc::clone(drive), key.clone());
        drop(tokio::task::spawn_blocking(move || {
            offered.iter().for_each(|(start, bytes)| drive.put(&key, *start, bytes));
        }));
    }
}

async fn receive(file: &Target, run: &mut Run, action: &str) -> Result<()> {
    let began = Instant::now();
    let Ok(_turn) = file.store.gate.acquire().await else { return Err(IoError::Abandoned) };
    if run.is_cancelled() {
        return Ok(());
    }
    let mut at = run.range.start;
    let mut empty = 0;
    loop {
        let left = left(file, run, at, began);
        let too_late = || late(&file.name, action, began.elapsed().as_secs_f64());
        let before = at;
        let tried = wanted(run, timeout(left, ask(file, at..run.range.end))).await;
        let broke = match tried {
            None => return Ok(()),
            Some(Err(_)) => return Err(too_late()),
            Some(Ok(Err(error))) if is_passing(&error) && at > run.range.start => Some(error),
            Some(Ok(Err(error))) => return Err(failed(&file.name, action, &error)),
            Some(Ok(Ok(body))) => stream(file, run, &mut at, began, body).await.map_err(|replaced| match replaced {
                Broken::Replaced => failed(&file.name, action, &precondition(&file.name)),
                Broken::Unasked(range) => {
                    let what = format!("the store sent other bytes than it was asked for ({range:?})");
                    IoError::os(&*file.name, action, std::io::Error::other(what))
                }
            })?,
        };
        if at >= run.range.end || run.parts.iter().all(|part| part.is_full() || part.reply.is_cancelled()) {
            return Ok(());
        }
        empty = if at > before { 0 } else { empty + 1 };
        if empty >= EMPTY || self::left(file, run, at, began).is_zero() {
            let error = broke.map(|error| failed(&file.name, action, &error));
            return Err(error.unwrap_or_else(too_late));
        }
        file.store.counters.resumed();
        sleep(Duration::from_millis(50 + Random(at ^ u64::from(began.elapsed().subsec_nanos())).below(150))).await;
    }
}

/// The time that a run has from now on, when it has come up to `at`.
fn left(file: &Target, run: &Run, at: u64, began: Instant) -> Duration {
    file.store.limits.allowed(at - run.range.start).saturating_sub(began.elapsed())
}

fn precondition(name: &str) -> object_store::Error {
    object_store::Error::Precondition { path: name.to_owned(), source: REPLACED.into() }
}

/// Awaits something as long as the parts of a run are wanted; `None` once none is.
async fn wanted<T>(run: &Run, future: impl Future<Output = T>) -> Option<T> {
    let mut future = std::pin::pin!(future);
    loop {
        match timeout(LOOK, &mut future).await {
            Ok(done) => return Some(done),
            Err(_) if run.is_cancelled() => return None,
            Err(_) => {}
        }
    }
}

/// Whether an object was changed last in the second that it was when it was found; where one of both is not told, it may have been.
fn is_of_time(found: Option<SystemTime>, came: SystemTime) -> bool {
    let seconds =
        |time: SystemTime| time.duration_since(UNIX_EPOCH).ok().map(|since| since.as_secs()).filter(|s| *s > 0);
    found.and_then(seconds).zip(seconds(came)).is_none_or(|(found, came)| found == came)
}

/// Why a body is not what was asked for.
enum Broken {
    Replaced,
    Unasked(Range<u64>),
}

/// Fills the parts with what comes, as far as it comes. What broke it off, if that is known.
async fn stream(
    file: &Target,
    run: &mut Run,
    at: &mut u64,
    asked: Instant,
    got: GetResult,
) -> std::result::Result<Option<object_store::Error>, Broken> {
    let is_same = match (file.tag.as_deref(), got.meta.e_tag.as_deref()) {
        (Some(wanted), Some(came)) => entity_tag(wanted) == entity_tag(came),
        // A file that was found by other means than the store's word has no date of the store's.
        (None, Some(_)) => true,
        (_, None) => is_of_time(file.modified, got.meta.last_modified.into()),
    };
    if !is_same {
        return Err(Broken::Replaced);
    }
    if got.range.start != *at || got.range.end > run.range.end {
        return Err(Broken::Unasked(got.range));
    }
    let mut body: BoxStream<'static, object_store::Result<Bytes>> = got.into_stream();
    let (began, first) = (Instant::now(), *at);
    loop {
        let patience = file.store.limits.stall.min(left(file, run, *at, asked));
        let next = match timeout(patience, body.next()).await {
            Ok(Some(Ok(bytes))) => bytes,
            Ok(Some(Err(error))) => return Ok(Some(error)),
            Ok(None) | Err(_) => break,
        };
        file.store.counters.came(next.len());
        run.parts.iter_mut().for_each(|part| part.take(*at, &next));
        *at = at.saturating_add(next.len() as u64).min(run.range.end);
        if run.is_cancelled() {
            break;
        }
    }
    file.store.pace.streamed(*at - first, began.elapsed());
    Ok(None)
}

/// Sends a request; a second one if the first is late, and takes the one that is answered first.
async fn ask(file: &Target, range: Range<u64>) -> object_store::Result<GetResult> {
    let (pace, percentile) = (&file.store.pace, file.store.limits.percentile);
    let send = || {
        let options = GetOptions {
            if_match: file.tag.clone(),
            range: Some(GetRange::Bounded(range.clone())),
            ..GetOptions::default()
        };
        let began = Instant::now();
        async move {
            let answer = file.store.client.get_opts(&file.location, options).await;
            if answer.is_ok() {
                pace.answered(began.elapsed());
            }
            answer
        }
        .boxed()
    };
    let first = send();
    let Some(late) = pace.late_after(percentile) else { return first.await };
    match select(first, sleep(late).boxed()).await {
        Either::Left((answer, _)) => answer,
        Either::Right(((), first)) if pace.may_hedge(percentile) => {
            file.store.counters.hedged();
            match select(first, send()).await {
                // Of two requests one may fail.
                Either::Left((Err(error), other)) | Either::Right((Err(error), other)) if is_passing(&error) => {
                    other.await
                }
                Either::Left((answer, _)) | Either::Right((answer, _)) => answer,
            }
        }
        Either::Right(((), first)) => first.await,
    }
}

#[cfg(test)]
mod tests;
