//! The operating system at its worst: system calls that are refused or fail, a device with a hole, forks.
//!
//! `strace` injects what can't be had otherwise, into this binary run again for one test. Where a tool or a right is missing,
//! tests say that they are skipped.
#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};

use plinth_core::random::Random;
use plinth_io::sim::settled;
use plinth_io::{Io, IoMode, IoOptions, LocalFile, MemoryBudget, Priority, Request, Source};

use crate::engine::{MODES, at, file, io, read};

/// Prints each warning, for the parent process.
struct Printed;

impl log::Log for Printed {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        println!("warning: {}", record.args());
    }

    fn flush(&self) {}
}

/// Reads a file in some mode and prints how that went. Run by others, in a process that is interfered with.
#[test]
fn reader() {
    let (Ok(path), Ok(mode)) = (std::env::var("PLINTH_TEST_FILE"), std::env::var("PLINTH_TEST_MODE")) else { return };
    log::set_logger(&Printed).unwrap();
    log::set_max_level(log::LevelFilter::Warn);
    let io = io(MODES.into_iter().find(|known| format!("{known:?}") == mode).unwrap());
    let source = LocalFile::open_with(&path, &io).unwrap();
    let len = source.byte_len();
    let bytes = crate::engine::contents(usize::try_from(len).unwrap());
    let mut random = Random(3);
    for _ in 0..40 {
        let ranges: Vec<_> = (0..4)
            .map(|_| {
                let start = random.below(len);
                start..(start + random.below(200_000)).min(len)
            })
            .collect();
        match read(&source, &ranges) {
            Ok(buffers) => {
                let right = ranges.iter().zip(&buffers).all(|(range, buffer)| buffer.as_slice() == at(&bytes, range));
                println!("answer: {}", if right { "right" } else { "wrong" });
            }
            Err(e) => println!("answer: {e}"),
        }
    }
    for _ in 0..2000 {
        if io.counters().extent_bytes == 0 {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    println!("held: {}", io.counters().extent_bytes);
}

/// What a reader said.
struct Said {
    answers: Vec<String>,
    warnings: Vec<String>,
    all: String,
}

impl Said {
    /// All answers are right, every buffer came back, and there is one warning, if any, that says this.
    fn is_right(&self, warning: Option<&str>) {
        assert!(self.answers.len() == 40 && self.answers.iter().all(|answer| answer == "right"), "{}", self.all);
        assert!(self.all.contains("held: 0"), "{}", self.all);
        assert_eq!(self.warnings.len(), usize::from(warning.is_some()), "{}", self.all);
        assert!(warning.is_none_or(|words| self.warnings[0].contains(words)), "{}", self.all);
    }
}

fn run(mut command: Command, path: &Path, mode: IoMode) -> Said {
    let command = command.env("PLINTH_TEST_FILE", path).env("PLINTH_TEST_MODE", format!("{mode:?}"));
    let output = command.output().unwrap();
    let all = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        // What strace itself has to say.
        String::from_utf8_lossy(&output.stderr)
    );
    let lines = |head: &str| all.lines().filter_map(|line| line.split_once(head)).map(|(_, l)| l.to_owned()).collect();
    Said { answers: lines("answer: "), warnings: lines("warning: "), all }
}

fn this_binary(mut command: Command) -> Command {
    command.arg(std::env::current_exe().unwrap());
    command.args(["--exact", "faults::reader", "--nocapture", "--test-threads", "1"]);
    command
}

/// Reads while system calls are interfered with: reads only of this file, for the loader reads others.
fn injected(path: &Path, mode: IoMode, what: &[&str]) -> Said {
    // A read that never ends is ended, and its answers are missing.
    let mut command = Command::new("timeout");
    command.args(["120", "strace", "-f", "-qq", "-o", "/dev/null"]);
    for what in what {
        command.arg("-e").arg(format!("inject={what}"));
        if !what.starts_with("io_uring") {
            command.arg("-P").arg(path);
        }
    }
    run(this_binary(command), path, mode)
}

fn can_inject() -> bool {
    let works = Command::new("strace").args(["-qq", "-o", "/dev/null", "true"]).status().is_ok_and(|s| s.success());
    let (_dir, path, _) = a_file();
    let rings = works && run(this_binary(Command::new("env")), &path, IoMode::Uring).warnings.is_empty();
    if !rings {
        eprintln!("skipped: no strace, or no io_uring to interfere with");
    }
    rings
}

fn a_file() -> (tempfile::TempDir, PathBuf, Vec<u8>) {
    let dir = tempfile::tempdir().unwrap();
    let (path, bytes) = file(dir.path(), 1_000_001);
    (dir, path, bytes)
}

#[test]
fn rings_that_are_refused_or_fail_change_no_answer() {
    if !can_inject() {
        return;
    }
    let (_dir, path, _) = a_file();
    for (what, warning) in [
        ("io_uring_setup:error=EPERM", Some("kernel.io_uring_disabled")),
        ("io_uring_setup:error=ENOSYS", Some("seccomp")),
        ("io_uring_setup:error=ENOMEM", Some("ulimit -l")),
        // The whole table of buffers, then a buffer.
        ("io_uring_register:error=ENOMEM:when=1", None),
        ("io_uring_register:error=ENOMEM:when=2+", Some("may be pinned")),
        ("io_uring_enter:error=EINTR:when=1+2", None),
        ("io_uring_enter:error=EBUSY:when=1+3", None),
        ("io_uring_enter:error=EAGAIN:when=2+3", None),
        ("io_uring_enter:error=EPERM", Some("reading on without it")),
        ("io_uring_enter:error=EAGAIN", Some("reading on without it")),
    ] {
        injected(&path, IoMode::Uring, &[what]).is_right(warning);
    }
    // What the kernel may still write to is not used again, so not all comes back.
    let said = injected(&path, IoMode::Uring, &["io_uring_enter:error=EIO:when=9+"]);
    assert!(said.answers.len() == 40 && said.answers.iter().all(|answer| answer == "right"), "{}", said.all);
    assert_eq!(said.warnings.len(), 1, "{}", said.all);
}

#[test]
fn reads_that_are_refused_are_done_another_way() {
    if !can_inject() {
        return;
    }
    let (_dir, path, _) = a_file();
    // The second time it is opened is for direct reads.
    for mode in [IoMode::Uring, IoMode::Direct] {
        let said = injected(&path, mode, &["openat:error=EINVAL:when=2+"]);
        said.is_right(Some("no direct reads"));
    }
    for mode in [IoMode::Auto, IoMode::Cached] {
        injected(&path, mode, &["preadv2:error=EOPNOTSUPP"]).is_right(None);
        injected(&path, mode, &["preadv2:error=EAGAIN"]).is_right(None);
    }
    // Interrupted, misaligned, or brings nothing the first time.
    for what in ["pread64:error=EINTR:when=1+2", "pread64:error=EINVAL:when=1+2", "pread64:retval=0:when=1+2"] {
        injected(&path, IoMode::Direct, &[what]).is_right(None);
    }
}

#[test]
fn reads_that_fail_say_where() {
    if !can_inject() {
        return;
    }
    let (_dir, path, _) = a_file();
    for (mode, what) in [
        (IoMode::Direct, &["pread64:error=EIO"][..]),
        (IoMode::Direct, &["pread64:error=ENODEV:when=2+3"]),
        (IoMode::Direct, &["pread64:retval=0"]),
        (IoMode::Cached, &["preadv2:error=EAGAIN", "pread64:error=EIO"]),
    ] {
        let said = injected(&path, mode, what);
        let name = path.display().to_string();
        let failed = said.answers.iter().filter(|answer| {
            answer.contains(&name)
                && (answer.contains(" bytes at ") && answer.contains("os error") || answer.contains("cut short"))
        });
        let (failed, right) = (failed.count(), said.answers.iter().filter(|answer| *answer == "right").count());
        assert!(failed > 0 && failed + right == 40, "{what:?}: {}", said.all);
        assert!(said.all.contains("held: 0") && said.warnings.is_empty(), "{what:?}: {}", said.all);
    }
}

#[test]
fn a_user_who_may_pin_no_memory_gets_the_same_answers() {
    use std::os::unix::fs::PermissionsExt;
    let (dir, path, _) = a_file();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "prlimit", "--memlock=65536"]);
    let said = run(this_binary(command), &path, IoMode::Uring);
    if said.answers.is_empty() {
        return eprintln!("skipped: can't run as another user ({})", said.all.trim());
    }
    said.is_right(said.warnings.first().map(|_| "ulimit -l unlimited"));
}

#[test]
fn a_device_with_a_hole_is_an_error_that_says_where() {
    /// Undoes what was set up, last first.
    struct Undo(Vec<Command>);
    impl Drop for Undo {
        fn drop(&mut self) {
            while let Some(mut command) = self.0.pop() {
                let _ = command.output();
            }
        }
    }
    let said = |program: &str, args: &[&str]| {
        let output = Command::new(program).args(args).output().ok().filter(|output| output.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let dir = tempfile::tempdir().unwrap();
    let (image, mount) = (dir.path().join("image"), dir.path().join("mnt"));
    std::fs::create_dir(&mount).unwrap();
    std::fs::File::create(&image).unwrap().set_len(64 << 20).unwrap();
    let (image, mount) = (image.display().to_string(), mount.display().to_string());
    let mut undo = Undo(Vec::new());
    let set_up = (|| {
        said("mkfs.ext4", &["-q", "-O", "^has_journal", &image])?;
        let device = said("losetup", &["--find", "--show", &image])?;
        let mut detach = Command::new("losetup");
        detach.args(["-d", &device]);
        undo.0.push(detach);
        said("mount", &[&device, &mount])?;
        let mut unmount = Command::new("umount");
        unmount.arg(&mount);
        undo.0.push(unmount);
        Some(device)
    })();
    let Some(device) = set_up else { return eprintln!("skipped: no loop device can be set up here") };
    let (path, bytes) = file(Path::new(&mount), 40 << 20);
    said("umount", &[&mount]).unwrap();
    std::fs::File::options().write(true).open(&image).unwrap().set_len(24 << 20).unwrap();
    said("mount", &["-o", "ro", &device, &mount]).unwrap();
    for mode in MODES {
        let io = io(mode);
        let source = LocalFile::open_with(&path, &io).unwrap();
        let first = [0..1_000_000];
        assert!(read(&source, &first).unwrap()[0].as_slice() == at(&bytes, &first[0]), "{mode:?}");
        let error = read(&source, &[0..10, 38 << 20..39 << 20]).unwrap_err().to_string();
        assert!(error.contains(&path.display().to_string()) && error.contains("1048576 bytes at 39845888"), "{error}");
        assert!(read(&source, &first).is_ok(), "{mode:?}: what is there can be read afterwards");
        drop(source);
        settled(&io);
    }
}

/// Forks amid reads: a child reads by its parent's handle, and neither disturbs the other.
#[test]
#[allow(unsafe_code)]
fn forked() {
    let Ok(path) = std::env::var("PLINTH_TEST_FORK") else {
        // In a process of its own, so that no other test's threads are forked from.
        let (_dir, path, _) = a_file();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "faults::forked", "--nocapture"]).env("PLINTH_TEST_FORK", &path);
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains("children: 0"), "{said}");
        return;
    };
    let mut statuses = 0;
    for mode in MODES {
        let io = io(mode);
        let source = Arc::new(LocalFile::open_with(&path, &io).unwrap());
        let bytes = Arc::new(crate::engine::contents(1_000_001));
        let right = move |source: &LocalFile, bytes: &[u8], random: &mut Random| {
            let start = random.below(900_000);
            let range = [start..start + random.below(100_000)];
            read(source, &range).is_ok_and(|buffers| buffers[0].as_slice() == at(bytes, &range[0]))
        };
        let ended = Arc::new(AtomicUsize::new(0));
        let reading = {
            let (source, bytes, ended) = (Arc::clone(&source), Arc::clone(&bytes), Arc::clone(&ended));
            std::thread::spawn(move || {
                let mut random = Random(1);
                while ended.load(Ordering::Relaxed) == 0 {
                    assert!(right(&source, &bytes, &mut random), "the parent reads on");
                }
            })
        };
        for seed in 0..10 {
            // An engine that only this thread has, and what was read by it.
            let own = self::io(mode);
            let own_source = LocalFile::open_with(&path, &own).unwrap();
            let buffer = read(&own_source, &[0..10]).unwrap().remove(0);
            // SAFETY: the child only reads, and ends without running what its parent would.
            let child = unsafe { libc::fork() };
            if child == 0 {
                // SAFETY: a limit for the child: should it hang, the signal ends it.
                unsafe { libc::alarm(20) };
                let mut random = Random(seed);
                let mut fine = (0..20).all(|_| right(&source, &bytes, &mut random));
                fine &= own.cache().is_none();
                // The child has not got the slabs, but may have something else there when it drops them.
                let (flags, access) = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, libc::PROT_READ | libc::PROT_WRITE);
                // SAFETY: a new mapping, where the system has room for it.
                let at = unsafe { libc::mmap(buffer.as_ptr().cast_mut().cast(), 4096, access, flags, -1, 0) };
                fine &= at.cast_const().cast() == buffer.as_ptr();
                drop((buffer, own_source, own));
                // SAFETY: mapped above. If it is no more, this child ends here.
                fine &= unsafe { at.cast::<u8>().read_volatile() } == 0;
                // SAFETY: it ends here.
                unsafe { libc::_exit(if fine { 0 } else { 1 }) };
            }
            let mut status = 0;
            // SAFETY: waits for the child just made.
            assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
            statuses |= status;
        }
        ended.store(1, Ordering::Relaxed);
        reading.join().unwrap();
        drop(source);
        settled(&io);
    }
    println!("children: {statuses}");
}

/// Keeps an engine until it is woken: the engine's own thread may be the last to have it.
struct Last(#[allow(dead_code, reason = "kept")] (Io, LocalFile), Arc<AtomicUsize>);

impl Wake for Last {
    fn wake(self: Arc<Self>) {
        let woken = Arc::clone(&self.1);
        // Whatever happens as this goes is not the engine's to hide.
        let fine = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(self))).is_ok();
        woken.fetch_add(usize::from(fine), Ordering::Relaxed);
    }
}

#[test]
fn engines_end_amid_reads_even_on_their_own_threads() {
    let (_dir, path, bytes) = a_file();
    for seed in 0..60 {
        for mode in [IoMode::Uring, IoMode::Direct] {
            let mut random = Random(seed);
            let budget = MemoryBudget::new(64 << 20);
            let options = IoOptions { mode, request_bytes: 16 << 10, depth: 3, ..IoOptions::default() };
            let io = Io::new(&budget, options);
            let woken = Arc::new(AtomicUsize::new(0));
            let (mut readings, mut pending) = (Vec::new(), 0);
            for _ in 0..random.below(12) {
                let source = LocalFile::open_with(&path, &io).unwrap();
                let start = random.below(900_000);
                let range = start..start + random.below(100_000);
                let ranges = [range.clone(), 0..10];
                let request = Request { ranges: &ranges, priority: Priority::Now, query_bytes: u64::MAX };
                let reading = source.start(&request).unwrap().unwrap();
                let waker = Waker::from(Arc::new(Last((io.clone(), source), Arc::clone(&woken))));
                if random.below(2) == 0 {
                    pending += usize::from(reading.poll(&waker).is_pending());
                    readings.push((reading, range));
                }
            }
            // Wakers hold the engine now, if any are left.
            drop(io);
            for (reading, range) in readings {
                if random.below(3) == 0 {
                    reading.until_done();
                }
                let buffers = reading.wait().unwrap();
                assert!(buffers[0].as_slice() == at(&bytes, &range));
            }
            for _ in 0..5_000 {
                if woken.load(Ordering::Relaxed) == pending && Arc::strong_count(&budget) == 1 {
                    break;
                }
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            assert_eq!((woken.load(Ordering::Relaxed), budget.used()), (pending, 0), "{mode:?} {seed}");
            assert_eq!(Arc::strong_count(&budget), 1, "{mode:?} {seed}");
        }
    }
}
