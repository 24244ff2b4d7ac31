//! Opening files, and nothing else that has a path.
//!
//! A pipe keeps who opens it waiting for its other end, a device may never come to an end, and both may do something when
//! they are opened. So what is no regular file is refused by what it is, without waiting for it.

use std::fs::{File, FileType, OpenOptions};
use std::io::{ErrorKind, Read};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::error::{IoError, Result};

/// How long a pipe may be without a reader, which may be started a moment later.
const PATIENCE: Duration = Duration::from_secs(5);

/// Opens a regular file for reading.
///
/// # Errors
/// If it is missing, unreadable, or anything else than a regular file.
pub fn open(path: impl AsRef<Path>) -> Result<File> {
    open_with(path, "open", File::options().read(true))
}

/// Opens a regular file as the options say; `action` is what an error says could not be done.
///
/// # Errors
/// As [`open`].
pub fn open_with(path: impl AsRef<Path>, action: &str, options: &mut OpenOptions) -> Result<File> {
    let path = path.as_ref();
    check(path)?;
    let failed = |e| IoError::os(path, action, e);
    // Something else may have taken the name since it was looked at.
    let file = without_waiting(options, 0).open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(|e| IoError::os(path, "read its size", e))?;
    regular(path, metadata.file_type())?;
    wait_from_now_on(&file).map_err(failed)?;
    Ok(file)
}

/// An error if there is something at the path that is no regular file.
///
/// # Errors
/// That one.
pub fn check(path: impl AsRef<Path>) -> Result<()> {
    let path = path.as_ref();
    // What can't be looked at can't be opened either, which says why.
    path.metadata().map_or(Ok(()), |metadata| regular(path, metadata.file_type()))
}

/// The text of a regular file that is no longer than `most` bytes.
///
/// # Errors
/// If it can't be read, is too long, or holds something else than UTF-8.
pub fn read_text(path: impl AsRef<Path>, most: u64) -> Result<String> {
    text_of(open(&path)?, path, most)
}

/// All that can be read from something with a name, which is text no longer than `most` bytes. A byte order mark at its beginning,
/// which some editors leave, is no part of it.
///
/// # Errors
/// As [`read_text`].
pub fn text_of(from: impl Read, name: impl AsRef<Path>, most: u64) -> Result<String> {
    let failed = |e| IoError::os(&name, "read", e);
    let mut bytes = Vec::new();
    from.take(most.saturating_add(1)).read_to_end(&mut bytes).map_err(failed)?;
    let invalid = |what: String| failed(std::io::Error::new(ErrorKind::InvalidData, what));
    if bytes.len() as u64 > most {
        return Err(invalid(format!("it is too long: at most {most} bytes are read of such a file")));
    }
    let wrong = |e: std::string::FromUtf8Error| e.utf8_error().valid_up_to();
    let text =
        String::from_utf8(bytes).map_err(|e| invalid(format!("it is no text: byte {} is not UTF-8", wrong(e))))?;
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

/// Opens something for writing that is there and need not be a file: a device, a pipe, a descriptor of this process.
///
/// # Errors
/// If it can't be opened, or is a pipe without a reader within a few seconds.
pub fn open_sink(path: impl AsRef<Path>) -> Result<File> {
    let path = path.as_ref();
    let failed = |e| IoError::os(path, "open", e);
    let started = Instant::now();
    loop {
        match without_waiting(File::options().write(true), 0).open(path) {
            Ok(file) => {
                wait_from_now_on(&file).map_err(failed)?;
                return Ok(file);
            }
            Err(e) if !lacks_reader(path, &e) => return Err(failed(e)),
            Err(_) if started.elapsed() < PATIENCE => std::thread::sleep(Duration::from_millis(10)),
            Err(_) => return Err(failed(std::io::Error::other("it is a pipe without a reader"))),
        }
    }
}

fn regular(path: &Path, kind: FileType) -> Result<()> {
    match kind_of(kind) {
        Some(kind) => Err(IoError::NotAFile { path: path.display().to_string(), kind }),
        None => Ok(()),
    }
}

/// What something is that is no regular file.
pub fn kind_of(kind: FileType) -> Option<&'static str> {
    if kind.is_file() {
        return None;
    }
    if kind.is_dir() {
        return Some("a folder");
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        if kind.is_fifo() {
            return Some("a pipe");
        }
        if kind.is_socket() {
            return Some("a socket");
        }
        if kind.is_char_device() || kind.is_block_device() {
            return Some("a device");
        }
    }
    Some("something else")
}

/// Options by which opening waits for nothing, with some more flags of the system's.
#[cfg(unix)]
pub(crate) fn without_waiting(options: &mut OpenOptions, flags: i32) -> &mut OpenOptions {
    use std::os::unix::fs::OpenOptionsExt;
    let here = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
    options.custom_flags(i32::try_from(here.bits()).unwrap_or(0) | flags)
}

#[cfg(not(unix))]
pub(crate) fn without_waiting(options: &mut OpenOptions, _flags: i32) -> &mut OpenOptions {
    options
}

/// Takes back that nothing is waited for: a ring takes it for a wish of every read.
#[cfg(unix)]
pub(crate) fn wait_from_now_on(file: &File) -> std::io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(file)?;
    Ok(rustix::fs::fcntl_setfl(file, flags.difference(rustix::fs::OFlags::NONBLOCK))?)
}

#[cfg(not(unix))]
pub(crate) fn wait_from_now_on(_file: &File) -> std::io::Result<()> {
    Ok(())
}

/// Whether an error says that a pipe has no reader.
#[cfg(unix)]
fn lacks_reader(path: &Path, error: &std::io::Error) -> bool {
    use std::os::unix::fs::FileTypeExt;
    let absent = error.raw_os_error() == Some(rustix::io::Errno::NXIO.raw_os_error());
    absent && path.metadata().is_ok_and(|metadata| metadata.file_type().is_fifo())
}

#[cfg(not(unix))]
fn lacks_reader(_path: &Path, _error: &std::io::Error) -> bool {
    false
}

#[cfg(all(test, unix))]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::io::Write;
    use std::sync::mpsc;

    use super::*;

    fn pipe(path: &Path) {
        let made = std::process::Command::new("mkfifo").arg(path).status().unwrap();
        assert!(made.success());
    }

    /// What work gives that must not wait for anything.
    fn soon<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
        let (done, result) = mpsc::channel();
        std::thread::spawn(move || done.send(work()));
        result.recv_timeout(Duration::from_secs(60)).expect("it waits for ever")
    }

    #[test]
    fn what_is_no_file_is_told_by_what_it_is() {
        let dir = tempfile::tempdir().unwrap();
        pipe(&dir.path().join("pipe"));
        std::os::unix::fs::symlink(dir.path().join("pipe"), dir.path().join("link")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(dir.path().join("socket")).unwrap();
        for (name, kind) in [
            ("pipe", "a pipe"),
            ("link", "a pipe"),
            ("socket", "a socket"),
            ("", "a folder"),
            ("/dev/zero", "a device"),
        ] {
            let path = dir.path().join(name);
            let expected = format!("{}: is {kind}, not a file", path.display());
            let opened = soon(move || [open(&path).map(drop), read_text(&path, 9).map(drop), check(&path)]);
            for result in opened {
                assert_eq!(result.unwrap_err().to_string(), expected);
            }
        }
        assert!(open(dir.path().join("none")).unwrap_err().is_not_found() && check(dir.path().join("none")).is_ok());
    }

    #[test]
    fn a_file_is_read_and_waited_for_as_ever() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        std::fs::write(&path, "é\0ab").unwrap();
        let file = open(&path).unwrap();
        assert!(!rustix::fs::fcntl_getfl(&file).unwrap().contains(rustix::fs::OFlags::NONBLOCK));
        assert_eq!(read_text(&path, 5).unwrap(), "é\0ab");
        assert!(
            read_text(&path, 4).unwrap_err().to_string().ends_with("too long: at most 4 bytes are read of such a file")
        );
        std::fs::write(&path, "\u{feff}SELECT '\u{feff}'").unwrap();
        assert_eq!(read_text(&path, 99).unwrap(), "SELECT '\u{feff}'");
        std::fs::write(&path, b"ab\xff").unwrap();
        assert!(read_text(&path, 5).unwrap_err().to_string().ends_with("it is no text: byte 2 is not UTF-8"));
        // What never ends is not read to its end.
        let endless = text_of(std::io::repeat(b'x'), "endless", 1_000).unwrap_err().to_string();
        assert!(endless.starts_with("endless: cannot read: it is too long"), "{endless}");
    }

    #[test]
    fn a_pipe_is_written_to_once_it_has_a_reader() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pipe");
        pipe(&path);
        let alone = path.clone();
        let error = soon(move || open_sink(alone)).unwrap_err().to_string();
        assert!(error.ends_with("pipe: cannot open: it is a pipe without a reader"), "{error}");
        let reader = path.clone();
        let read = std::thread::spawn(move || std::fs::read_to_string(reader).unwrap());
        open_sink(&path).unwrap().write_all(b"rows").unwrap();
        assert_eq!(read.join().unwrap(), "rows");
        open_sink("/dev/null").unwrap().write_all(b"rows").unwrap();
    }
}
