//! Reads of files of the operating system, at positions.

use std::fs::File;

use arrow_buffer::{Buffer, MutableBuffer};

use crate::slab::PAGE;

/// Buffers keep the file's alignment modulo this, so what is aligned in the file is aligned in memory.
const ALIGNMENT: u64 = 64;

/// Reads until `buffer` is full or the file ends: how many bytes that were.
pub(crate) fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> std::io::Result<usize> {
    #[cfg(unix)]
    use std::os::unix::fs::FileExt;
    #[cfg(windows)]
    use std::os::windows::fs::FileExt;

    let mut done = 0;
    while done < buffer.len() {
        #[cfg(unix)]
        let read = file.read_at(&mut buffer[done..], offset + done as u64);
        #[cfg(windows)]
        let read = file.seek_read(&mut buffer[done..], offset + done as u64);
        match read {
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
pub(crate) fn read_exact_at(file: &File, buffer: &mut [u8], offset: u64) -> std::io::Result<()> {
    let read = read_at(file, buffer, offset)?;
    if read == buffer.len() { Ok(()) } else { Err(std::io::ErrorKind::UnexpectedEof.into()) }
}

/// Reads into memory of its own whose address is congruent to the offset modulo 64.
pub(crate) fn read_aligned(file: &File, offset: u64, len: usize) -> std::io::Result<Buffer> {
    let lead = usize::try_from(offset % ALIGNMENT).unwrap_or(0);
    let mut buffer = MutableBuffer::from_len_zeroed(lead + len);
    read_exact_at(file, &mut buffer.as_slice_mut()[lead..], offset)?;
    Ok(Buffer::from(buffer).slice(lead))
}
