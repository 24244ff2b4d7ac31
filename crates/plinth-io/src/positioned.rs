//! Reads and writes of files of the operating system, at positions.

use std::fs::File;
#[cfg(unix)]
use std::os::unix::fs::FileExt;
#[cfg(windows)]
use std::os::windows::fs::FileExt;

use arrow_buffer::{Buffer, MutableBuffer};

use crate::slab::PAGE;

/// Buffers keep the file's alignment modulo this, so what is aligned in the file is aligned in memory.
const ALIGNMENT: u64 = 64;

#[cfg(unix)]
fn read_some(file: &File, buffer: &mut [u8], offset: u64) -> std::io::Result<usize> {
    file.read_at(buffer, offset)
}

#[cfg(windows)]
fn read_some(file: &File, buffer: &mut [u8], offset: u64) -> std::io::Result<usize> {
    file.seek_read(buffer, offset)
}

#[cfg(unix)]
fn write_some(file: &File, bytes: &[u8], offset: u64) -> std::io::Result<usize> {
    file.write_at(bytes, offset)
}

#[cfg(windows)]
fn write_some(file: &File, bytes: &[u8], offset: u64) -> std::io::Result<usize> {
    file.seek_write(bytes, offset)
}

/// Reads until `buffer` is full or the file ends: how many bytes that were.
pub(crate) fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> std::io::Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        match read_some(file, &mut buffer[done..], offset + done as u64) {
            Ok(0) => break,
            Ok(n) => done += n,
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            // A direct read that was cut short goes on at an offset that may not be one for direct reads; at the end of
            // the file that is no matter.
            Err(e) if e.kind() == std::io::ErrorKind::InvalidInput && done % PAGE != 0 => break,
            Err(e) => return Err(e),
        }
    }
    Ok(done)
}

/// Reads just as many bytes as `buffer` has.
///
/// # Errors
/// If the device fails or the file ends before.
pub fn read_exact_at(file: &File, buffer: &mut [u8], offset: u64) -> std::io::Result<()> {
    let read = read_at(file, buffer, offset)?;
    if read == buffer.len() { Ok(()) } else { Err(std::io::ErrorKind::UnexpectedEof.into()) }
}

/// Writes all of `bytes`.
///
/// # Errors
/// If the device fails or is full.
pub fn write_all_at(file: &File, bytes: &[u8], offset: u64) -> std::io::Result<()> {
    let mut done = 0;
    while done < bytes.len() {
        match write_some(file, &bytes[done..], offset + done as u64) {
            Ok(0) => return Err(std::io::ErrorKind::WriteZero.into()),
            Ok(n) => done += n,
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// Reads into memory of its own whose address is congruent to the offset modulo 64.
pub(crate) fn read_aligned(file: &File, offset: u64, len: usize) -> std::io::Result<Buffer> {
    let lead = usize::try_from(offset % ALIGNMENT).unwrap_or(0);
    let mut buffer = MutableBuffer::from_len_zeroed(lead + len);
    read_exact_at(file, &mut buffer.as_slice_mut()[lead..], offset)?;
    Ok(Buffer::from(buffer).slice(lead))
}
