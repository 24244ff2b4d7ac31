//! Writers of one table in a store, in random order, that are killed and whose answers are lost.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::PathBuf;
use std::sync::{Condvar, Mutex};

use plinth_io::{Identity, Io, IoError, MemorySource, Source};

use super::*;

type IoResult<T> = plinth_io::Result<T>;

/// What happens to a call of a store.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// The writer is gone before it is sent.
    Killed,
    /// It is done, and its answer is lost with the writer.
    Unanswered,
    /// It is done, its answer is lost, and what was sent once more met what it had done itself.
    Repeated,
}

/// The store, and whose turn it is.
#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    turn: Condvar,
}

#[derive(Debug, Default)]
struct State {
    objects: BTreeMap<String, (Vec<u8>, u64)>,
    versions: u64,
    random: Option<Random>,
    waiting: Vec<bool>,
    ended: Vec<bool>,
    next: Option<usize>,
}

use plinth_core::random::Random;

impl State {
    /// Draws who is next once all who are left wait.
    fn draw(&mut self) {
        let ready: Vec<usize> = (0..self.waiting.len()).filter(|&i| self.waiting[i]).collect();
        let all = (0..self.waiting.len()).all(|i| self.waiting[i] || self.ended[i]);
        if self.next.is_none() && all && !ready.is_empty() {
            self.next = self.random.as_mut().map(|random| ready[random.index(ready.len())]);
        }
    }
}

/// The store as one writer has it.
#[derive(Debug)]
struct Store {
    shared: Arc<Shared>,
    writer: usize,
    /// Of a hundred calls so many go wrong.
    faults: u64,
    random: Mutex<Random>,
    dead: Mutex<bool>,
}

fn gone(url: &str) -> IoError {
    IoError::os(url, "reach", std::io::ErrorKind::NotConnected.into())
}

impl Store {
    /// Does something in this writer's turn.
    fn step<T>(&self, url: &str, repeated: Option<T>, work: impl FnOnce(&mut State) -> IoResult<T>) -> IoResult<T> {
        let mut state = self.shared.state.lock().unwrap();
        state.waiting[self.writer] = true;
        state.draw();
        self.shared.turn.notify_all();
        while state.next != Some(self.writer) {
            state = self.shared.turn.wait(state).unwrap();
        }
        (state.next, state.waiting[self.writer]) = (None, false);
        let fault = {
            let mut random = self.random.lock().unwrap();
            let faults = [Fault::Killed, Fault::Unanswered, Fault::Repeated];
            random.chance(self.faults).then(|| faults[random.index(3)])
        };
        if *self.dead.lock().unwrap() {
            return Err(gone(url));
        }
        if fault == Some(Fault::Killed) {
            *self.dead.lock().unwrap() = true;
            return Err(gone(url));
        }
        let done = work(&mut state)?;
        match (fault, repeated) {
            (Some(Fault::Unanswered), _) => {
                *self.dead.lock().unwrap() = true;
                Err(gone(url))
            }
            (Some(Fault::Repeated), Some(repeated)) => Ok(repeated),
            _ => Ok(done),
        }
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock().unwrap();
        state.ended[self.writer] = true;
        state.draw();
        self.shared.turn.notify_all();
    }
}

fn object(url: &str, bytes: &[u8], version: u64) -> Object {
    let tag = version.to_string();
    let identity = Identity::of_object(bytes.len() as u64, SystemTime::now(), Some(&tag));
    Object { url: url.to_owned(), identity, tag: Some(tag) }
}

fn named(version: u64) -> Version {
    Version { tag: Some(version.to_string()), generation: None }
}

impl Objects for Store {
    fn find(&self, url: &str) -> IoResult<Vec<Object>> {
        self.step(url, None, |state| {
            let visible = |name: &str| !name.starts_with('.');
            let is_in = |key: &String| {
                if url.ends_with('/') { key.strip_prefix(url).is_some_and(visible) } else { key == url }
            };
            let found = state.objects.iter().filter(|(key, _)| is_in(key));
            Ok(found.map(|(key, (bytes, version))| object(key, bytes, *version)).collect())
        })
    }

    fn open(&self, object: &Object, _: &Io) -> IoResult<Arc<dyn Source>> {
        let bytes = self.get(&object.url, u64::MAX)?.ok_or_else(|| gone(&object.url))?.0;
        Ok(Arc::new(MemorySource::new(object.url.clone(), &bytes)))
    }

    fn stream(&self, object: &Object) -> IoResult<Box<dyn Read + Send>> {
        Err(gone(&object.url))
    }

    fn upload(&self, file: &Path, url: &str, _: bool) -> IoResult<()> {
        let bytes = std::fs::read(file).unwrap();
        self.step(url, None, |state| {
            state.versions += 1;
            assert!(state.objects.insert(url.to_owned(), (bytes, state.versions)).is_none(), "{url} was there");
            Ok(())
        })
    }

    fn get(&self, url: &str, _: u64) -> IoResult<Option<(Vec<u8>, Version)>> {
        self.step(url, None, |state| {
            Ok(state.objects.get(url).map(|(bytes, version)| (bytes.clone(), named(*version))))
        })
    }

    fn put_if(&self, url: &str, bytes: Vec<u8>, instead_of: Option<&Version>) -> IoResult<Option<Version>> {
        self.step(url, Some(None), |state| {
            let there = state.objects.get(url).map(|(_, version)| named(*version));
            if there.as_ref() != instead_of {
                return Ok(None);
            }
            state.versions += 1;
            state.objects.insert(url.to_owned(), (bytes, state.versions));
            Ok(Some(named(state.versions)))
        })
    }

    fn remove(&self, url: &str) -> IoResult<()> {
        self.step(url, None, |state| {
            state.objects.remove(url);
            Ok(())
        })
    }
}

const URL: &str = "s3://bucket/table/";

/// The rows of a table: the lines of its objects.
fn rows(folder: &FarFolder) -> Vec<String> {
    let mut rows = Vec::new();
    for listed in folder.list().unwrap() {
        let url = listed.path.to_str().unwrap();
        let (bytes, _) = folder.stores.get(url, u64::MAX).unwrap().unwrap_or_else(|| panic!("{url} is not there"));
        rows.extend(String::from_utf8(bytes).unwrap().lines().map(str::to_owned));
    }
    rows
}

/// What a writer does: adds rows, and puts one file in the place of all. The rows that it was told are in the table.
fn write(folder: &FarFolder, writer: usize, scratch: &Path, random: &mut Random) -> Vec<String> {
    let mut acknowledged = Vec::new();
    let file = scratch.join(writer.to_string());
    if random.chance(20) && compact(folder, &file).is_err() {
        return acknowledged;
    }
    for number in 0..1 + random.below(3) {
        let row = format!("{writer}.{number}");
        std::fs::write(&file, format!("{row}\n")).unwrap();
        let Ok(sent) = folder.send(&file) else { return acknowledged };
        let added = folder.commit(|manifest| {
            if !manifest.has(&sent.name) {
                manifest.files.push(sent.clone());
            }
            Ok(())
        });
        match added {
            Ok(()) => acknowledged.push(row),
            Err(_) => return acknowledged,
        }
        if random.chance(40) && compact(folder, &file).is_err() {
            return acknowledged;
        }
    }
    acknowledged
}

fn compact(folder: &FarFolder, file: &Path) -> Result<()> {
    let run = folder.list()?;
    if run.is_empty() {
        return Ok(());
    }
    let mut all = Vec::new();
    for listed in &run {
        let url = listed.path.to_str().unwrap();
        all.extend(folder.stores.get(url, u64::MAX)?.ok_or_else(|| gone(url))?.0);
    }
    std::fs::write(file, all).unwrap();
    let sent = folder.send(file)?;
    let names: Vec<String> = run.iter().map(|listed| listed.name().to_str().unwrap().to_owned()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut refused = false;
    let replaced = folder.commit(|manifest| {
        if manifest.has(&sent.name) {
            return Ok(());
        }
        refused = !manifest.replace(&names, sent.clone(), 0);
        if refused { Err(FormatError::internal("changed meanwhile")) } else { Ok(()) }
    });
    match replaced {
        // Others were first: nothing is lost.
        Err(_) if refused => {
            folder.take_back(&sent);
            Ok(())
        }
        replaced => replaced.and_then(|()| folder.clean(SystemTime::now())),
    }
}

#[test]
fn ten_thousand_schedules_of_two_writers_lose_and_double_no_row() {
    let scratch = tempfile::tempdir().unwrap();
    let from = std::env::var("PLINTH_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0);
    let (mut told, mut conflicts, mut failed) = (0, 0, 0);
    for seed in from..from + 10_000 {
        let shared = Arc::new(Shared::default());
        let mut random = Random(seed);
        {
            let mut state = shared.state.lock().unwrap();
            state.random = Some(Random(random.next_u64()));
            (state.waiting, state.ended) = (vec![false; 2], vec![false; 2]);
            // A table that was there before it had a manifest.
            if random.chance(30) {
                state.objects.insert(format!("{URL}june.plinth"), (b"june\n".to_vec(), 1));
                state.versions = 1;
            }
        }
        let faults = [0, 0, 5, 20][random.index(4)];
        let store = |writer: usize, faults: u64, seed: u64| Store {
            shared: Arc::clone(&shared),
            writer,
            faults,
            random: Mutex::new(Random(seed)),
            dead: Mutex::default(),
        };
        let seeds = [random.next_u64(), random.next_u64()];
        let acknowledged: Vec<Vec<String>> = std::thread::scope(|scope| {
            let writers: Vec<_> = seeds.iter().enumerate().map(|(writer, &seed)| (writer, seed)).collect();
            let writers: Vec<_> = writers
                .into_iter()
                .map(|(writer, seed)| {
                    let stores: Arc<dyn Objects> = Arc::new(store(writer, faults, seed));
                    let scratch = scratch.path();
                    scope.spawn(move || {
                        let folder = FarFolder { url: URL.to_owned(), stores };
                        write(&folder, writer, scratch, &mut Random(seed ^ 1))
                    })
                })
                .collect();
            writers.into_iter().map(|writer| writer.join().unwrap()).collect()
        });
        {
            let mut state = shared.state.lock().unwrap();
            (state.waiting, state.ended) = (vec![false], vec![false]);
            conflicts += usize::from(state.versions > 12);
        }
        let folder = FarFolder { url: URL.to_owned(), stores: Arc::new(store(0, 0, 0)) };
        let there = rows(&folder);
        let mut once = there.clone();
        once.sort();
        once.dedup();
        assert_eq!(once.len(), there.len(), "seed {seed}: {there:?}");
        for (writer, rows) in acknowledged.iter().enumerate() {
            let own = format!("{writer}.");
            let theirs: Vec<&String> = there.iter().filter(|row| row.starts_with(&own)).collect();
            // In their order; of what was not answered one more may be there.
            assert!(
                theirs.len() <= rows.len() + 1 && theirs.iter().zip(rows).all(|(a, b)| *a == b),
                "seed {seed}: {there:?} {rows:?}"
            );
            assert!(theirs.len() >= rows.len(), "seed {seed}: {there:?} {rows:?}");
            told += rows.len();
        }
        let june = shared.state.lock().unwrap().objects.values().any(|(bytes, _)| bytes.starts_with(b"june"));
        assert_eq!(june, there.iter().any(|row| row == "june"), "seed {seed}: {there:?}");
        // Files go at once here, so that one who compacts by an old manifest may find one gone.
        failed += usize::from(faults == 0 && acknowledged.iter().any(Vec::is_empty));
    }
    assert!(told > 10_000 && conflicts > 100 && failed < 100, "{told} {conflicts} {failed}");
}

#[test]
fn what_no_reader_needs_goes_and_what_is_read_stays() {
    let shared = Arc::new(Shared::default());
    {
        let mut state = shared.state.lock().unwrap();
        (state.waiting, state.ended, state.random) = (vec![false], vec![false], Some(Random(1)));
    }
    let store = Store {
        shared: Arc::clone(&shared),
        writer: 0,
        faults: 0,
        random: Mutex::new(Random(1)),
        dead: Mutex::default(),
    };
    let folder = FarFolder { url: URL.to_owned(), stores: Arc::new(store) };
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("x");
    std::fs::write(&file, "row\n").unwrap();
    let sent: Vec<Entry> = (0..3).map(|_| folder.send(&file).unwrap()).collect();
    let (kept, replaced, abandoned) = (&sent[0], &sent[1], &sent[2]);
    let now = SystemTime::now();
    folder
        .commit(|manifest| {
            manifest.files.push(kept.clone());
            manifest.gone.push((second(now), replaced.name.clone()));
            Ok(())
        })
        .unwrap();
    let there = || {
        let state = shared.state.lock().unwrap();
        let names = |entry: &&Entry| state.objects.contains_key(&format!("{URL}{}", entry.name));
        sent.iter().filter(names).cloned().collect::<Vec<_>>()
    };
    folder.clean(now + READ_ON / 2).unwrap();
    assert_eq!(there(), sent);
    folder.clean(now + READ_ON + Duration::from_secs(2)).unwrap();
    assert_eq!(there(), [kept.clone(), abandoned.clone()]);
    assert!(folder.manifest().unwrap().unwrap().0.gone.is_empty());
    folder.clean(now + ABANDONED + Duration::from_secs(2)).unwrap();
    assert_eq!(there(), std::slice::from_ref(kept));

    let url = PathBuf::from(format!("{URL}{}", manifest::NAME));
    shared.state.lock().unwrap().objects.insert(url.to_str().unwrap().to_owned(), (b"something".to_vec(), 99));
    let error = folder.list().unwrap_err().to_string();
    assert!(error.contains("not the manifest of a table") && error.contains(".plinth-manifest"), "{error}");
}
