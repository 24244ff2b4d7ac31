//! An io_uring that moves extents: one thread's, its queue filled in batches and every completion checked.
//!
//! A [`Transfer`] owns its file and its memory, and the ring owns the transfer until the kernel is done with it. So nothing
//! the kernel still writes to can be freed, whatever the caller does.
//!
//! Two steps come from "io_uring for High-Performance DBMSs" (Jasny et al., PVLDB 19): completions are only processed when
//! this thread asks for them, and memory is registered once instead of being pinned for every read.
#![allow(unsafe_code)]

use std::collections::VecDeque;
use std::fmt;
use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use io_uring::{IoUring, opcode, squeue, types};

use crate::slab::{Extent, PAGE, Slab};

/// Submissions a ring has room for.
const ENTRIES: u32 = 256;

/// Buffers that can be registered at once.
const SLOTS: u16 = 1024;

/// How often a piece that the kernel was too busy for is tried again.
const TRIES: u32 = 1000;

/// How long the kernel gets before it is asked again when it was too busy.
const PAUSE: Duration = Duration::from_millis(1);

/// Completions handled before the room they made is filled again: the more, the longer the device may idle meanwhile; the
/// fewer, the more often the kernel is called.
const AT_ONCE: usize = 4;

/// `IORING_ENTER_GETEVENTS`.
const GETEVENTS: u32 = 1;

/// Tells the completion of the alarm from those of pieces.
const ALARM: u64 = u64::MAX;

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the file.
    Read,
    /// To the file.
    Write,
}

/// Bytes of a file to move to or from an extent.
#[derive(Debug)]
pub struct Transfer<T> {
    /// The file. If it was opened for direct access, offset and length must be multiples of what the device asks for.
    pub file: Arc<File>,
    /// Where in the file.
    pub offset: u64,
    /// The memory.
    pub extent: Extent,
    /// How many bytes, at most the extent's.
    pub len: usize,
    /// Which way.
    pub direction: Direction,
    /// The caller's.
    pub token: T,
}

/// What the kernel grants a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features {
    /// Completions wait for the owner to ask (`SINGLE_ISSUER`, `DEFER_TASKRUN`).
    pub deferred: bool,
    /// One bad submission does not stop those behind it (`SUBMIT_ALL`).
    pub submit_all: bool,
    /// There is a table for buffers. Whether memory may be pinned for it is known when a slab is registered.
    pub buffer_table: bool,
}

/// A ring and what it is doing.
///
/// To be used by the thread that created it; the kernel refuses others where `deferred`.
pub struct Ring<T> {
    uring: IoUring,
    features: Features,
    /// Bytes of one request; longer transfers are several, at the same time.
    request_bytes: usize,
    transfers: Vec<Option<Active<T>>>,
    vacant: Vec<usize>,
    /// Pieces the kernel has not been given yet.
    waiting: VecDeque<Piece>,
    /// Pieces the kernel has.
    pieces: Vec<Option<Piece>>,
    vacant_pieces: Vec<usize>,
    in_flight: usize,
    /// How often in a row the kernel was too busy.
    refused: u32,
    /// Registered slabs by slot.
    slots: Vec<Option<Arc<Slab>>>,
    alarm: Option<(OwnedFd, bool)>,
}

/// A transfer with pieces under way.
struct Active<T> {
    transfer: Transfer<T>,
    pieces: usize,
    /// Where the file ends, counted from the transfer's start, as far as is known.
    end: usize,
    error: Option<Error>,
}

/// A part of a transfer.
#[derive(Clone, Copy, Debug)]
struct Piece {
    transfer: usize,
    at: usize,
    len: usize,
    tries: u32,
}

/// Builds the best ring that the kernel grants.
fn build() -> Result<(IoUring, bool, bool)> {
    let ladder = [(true, true), (false, true), (false, false)];
    let mut refused = None;
    for (deferred, submit_all) in ladder {
        let mut builder = IoUring::builder();
        builder.dontfork();
        if deferred {
            builder.setup_single_issuer().setup_defer_taskrun();
        }
        if submit_all {
            builder.setup_submit_all();
        }
        match builder.build(ENTRIES) {
            Ok(uring) => return Ok((uring, deferred, submit_all)),
            // Only what an older kernel does not know is worth another try.
            Err(e) if e.kind() == ErrorKind::InvalidInput => refused = Some(e),
            Err(e) => return Err(e),
        }
    }
    Err(refused.unwrap_or_else(|| ErrorKind::Unsupported.into()))
}

impl<T> Ring<T> {
    /// Sets up a ring for the calling thread, with the most the kernel grants.
    ///
    /// # Errors
    /// If there are no rings here, they are forbidden, or there is no memory for one.
    pub fn new(request_bytes: usize) -> Result<Self> {
        let (uring, deferred, submit_all) = build()?;
        let buffer_table = uring.submitter().register_buffers_sparse(SLOTS.into()).is_ok();
        let features = Features { deferred, submit_all, buffer_table };
        Ok(Self {
            uring,
            features,
            request_bytes: request_bytes.max(PAGE),
            transfers: Vec::new(),
            vacant: Vec::new(),
            waiting: VecDeque::new(),
            pieces: Vec::new(),
            vacant_pieces: Vec::new(),
            in_flight: 0,
            refused: 0,
            slots: Vec::new(),
            alarm: None,
        })
    }

    /// What the kernel granted.
    pub fn features(&self) -> Features {
        self.features
    }

    /// Transfers that are not done.
    pub fn transfers(&self) -> usize {
        self.transfers.len() - self.vacant.len()
    }

    /// Requests given to the kernel or waiting for it.
    pub fn requests(&self) -> usize {
        self.in_flight + self.waiting.len()
    }

    /// Registers a slab's memory, so that it is not pinned for each read. Returns whether it is.
    ///
    /// # Errors
    /// If the kernel refuses, for instance because the user may pin no more memory.
    pub fn register(&mut self, slab: &Arc<Slab>) -> Result<bool> {
        if !self.features.buffer_table {
            return Ok(false);
        }
        if self.slot_of(slab).is_some() {
            return Ok(true);
        }
        let slot = self.slots.iter().position(Option::is_none).unwrap_or(self.slots.len());
        let Ok(index) = u16::try_from(slot) else { return Ok(false) };
        if index >= SLOTS || slab.slot().is_some() {
            return Ok(false);
        }
        self.update_slot(index, slab.start().cast(), slab.byte_len())?;
        slab.set_slot(Some(index));
        if slot == self.slots.len() {
            self.slots.push(None);
        }
        self.slots[slot] = Some(Arc::clone(slab));
        Ok(true)
    }

    /// Forgets a slab that has no transfers any more, before its memory may be returned.
    ///
    /// # Errors
    /// If the kernel refuses. The slab then stays registered, and its memory mapped, as long as the ring lives.
    pub fn unregister(&mut self, slab: &Arc<Slab>) -> Result<()> {
        let Some(slot) = self.slot_of(slab) else { return Ok(()) };
        self.update_slot(slot, std::ptr::null_mut(), 0)?;
        slab.set_slot(None);
        self.slots[usize::from(slot)] = None;
        Ok(())
    }

    fn update_slot(&self, slot: u16, start: *mut libc::c_void, len: usize) -> Result<()> {
        let memory = [libc::iovec { iov_base: start, iov_len: len }];
        // SAFETY: the memory is a slab's that `slots` keeps for as long as it is registered, or none.
        unsafe { self.uring.submitter().register_buffers_update(slot.into(), &memory, None) }
    }

    fn slot_of(&self, slab: &Arc<Slab>) -> Option<u16> {
        let slot = slab.slot()?;
        let known = self.slots.get(usize::from(slot))?.as_ref()?;
        Arc::ptr_eq(known, slab).then_some(slot)
    }

    /// Lets [`Ring::turn`] return when `event` becomes readable.
    pub fn set_alarm(&mut self, event: OwnedFd) {
        self.alarm = Some((event, false));
    }

    /// Queues a transfer. The kernel hears of it at the next [`Ring::turn`].
    pub fn start(&mut self, mut transfer: Transfer<T>) {
        transfer.len = transfer.len.min(transfer.extent.len());
        let len = transfer.len;
        let slot = self.vacant.pop().unwrap_or_else(|| {
            self.transfers.push(None);
            self.transfers.len() - 1
        });
        // A transfer of nothing is one piece all the same: it completes like any other.
        let pieces = len.div_ceil(self.request_bytes).max(1);
        self.transfers[slot] = Some(Active { transfer, pieces, end: len, error: None });
        for i in 0..pieces {
            let at = i * self.request_bytes;
            self.waiting.push_back(Piece { transfer: slot, at, len: self.request_bytes.min(len - at), tries: 0 });
        }
    }

    /// Gives the kernel what waits and collects some of what is done, after waiting for something to be done (or for the
    /// alarm) if `wait`. `done` gets each transfer with the bytes that were moved: fewer than asked for only at the file's end.
    ///
    /// # Errors
    /// If the ring itself fails; it is of no use then. Errors of transfers go to `done`.
    pub fn turn(&mut self, wait: bool, mut done: impl FnMut(Transfer<T>, Result<usize>)) -> Result<()> {
        self.fill();
        self.arm();
        // What is done already needs no call.
        if !self.uring.submission().is_empty() || self.uring.completion().is_empty() {
            self.enter(wait && (self.in_flight > 0 || self.alarm.is_some()))?;
        }
        for _ in 0..AT_ONCE {
            let Some(entry) = self.uring.completion().next() else { break };
            let (data, result) = (entry.user_data(), entry.result());
            if data == ALARM {
                self.silence();
            } else if let Some(piece) = self.take_piece(data) {
                self.complete(piece, result, &mut done);
            }
        }
        Ok(())
    }

    /// Calls the kernel, which may be too busy to take anything; then what it completed makes room, and the rest goes in
    /// with the next call.
    fn enter(&mut self, wait: bool) -> Result<()> {
        loop {
            let error = match self.uring.submit_and_wait(usize::from(wait)) {
                Ok(_) => {
                    self.refused = 0;
                    return Ok(());
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(e) => e,
            };
            if !matches!(error.raw_os_error(), Some(libc::EBUSY | libc::EAGAIN)) || self.refused == TRIES {
                return Err(error);
            }
            self.refused += 1;
            // A call that is refused collects nothing either. One that brings nothing new does.
            // SAFETY: it only moves completions.
            let _ = unsafe { self.uring.submitter().enter::<libc::sigset_t>(0, 0, GETEVENTS, None) };
            if !self.uring.completion().is_empty() {
                return Ok(());
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// What a completion is of.
    fn take_piece(&mut self, data: u64) -> Option<Piece> {
        let index = usize::try_from(data).ok()?;
        let piece = self.pieces.get_mut(index)?.take()?;
        self.vacant_pieces.push(index);
        self.in_flight -= 1;
        Some(piece)
    }

    /// Moves waiting pieces into the submission queue, as many as fit.
    fn fill(&mut self) {
        while self.in_flight < ENTRIES as usize - 1 {
            let Some(piece) = self.waiting.pop_front() else { return };
            let Some(entry) = self.entry(piece) else { continue };
            let index = self.vacant_pieces.pop().unwrap_or_else(|| {
                self.pieces.push(None);
                self.pieces.len() - 1
            });
            let entry = entry.user_data(index as u64);
            // SAFETY: the memory and the file belong to the transfer, which stays in `transfers` until this piece is
            // complete; the ring waits for that even when it is dropped.
            if unsafe { self.uring.submission().push(&entry) }.is_err() {
                self.vacant_pieces.push(index);
                self.waiting.push_front(piece);
                return;
            }
            self.pieces[index] = Some(piece);
            self.in_flight += 1;
        }
    }

    fn entry(&mut self, piece: Piece) -> Option<squeue::Entry> {
        let slot = {
            let active = self.transfers[piece.transfer].as_ref()?;
            self.slot_of(active.transfer.extent.slab())
        };
        let transfer = &mut self.transfers[piece.transfer].as_mut()?.transfer;
        let file = types::Fd(transfer.file.as_raw_fd());
        let offset = transfer.offset + piece.at as u64;
        // A request is far below 4 GiB.
        let len = u32::try_from(piece.len).unwrap_or(u32::MAX);
        let at = transfer.extent[piece.at..].as_mut_ptr();
        Some(match (transfer.direction, slot) {
            (Direction::Read, Some(slot)) => opcode::ReadFixed::new(file, at, len, slot).offset(offset).build(),
            (Direction::Read, None) => opcode::Read::new(file, at, len).offset(offset).build(),
            (Direction::Write, Some(slot)) => opcode::WriteFixed::new(file, at, len, slot).offset(offset).build(),
            (Direction::Write, None) => opcode::Write::new(file, at, len).offset(offset).build(),
        })
    }

    fn complete(&mut self, piece: Piece, result: i32, done: &mut impl FnMut(Transfer<T>, Result<usize>)) {
        let Some(active) = &mut self.transfers[piece.transfer] else { return };
        let again = match usize::try_from(result) {
            Ok(0) if piece.len > 0 && active.transfer.direction == Direction::Write => {
                active.error = Some(ErrorKind::WriteZero.into());
                None
            }
            Ok(n) if n < piece.len => {
                // A direct read goes on where a page starts. One that does not get further has met the file's end.
                let transfer = &active.transfer;
                let past = (transfer.offset + (piece.at + n) as u64) % PAGE as u64;
                let aligned = transfer.offset % PAGE as u64 == 0 && transfer.direction == Direction::Read;
                let moved = if aligned { n.saturating_sub(usize::try_from(past).unwrap_or(n)) } else { n };
                if moved == 0 {
                    active.end = active.end.min(piece.at + n);
                    None
                } else {
                    Some(Piece { at: piece.at + moved, len: piece.len - moved, tries: 0, ..piece })
                }
            }
            Ok(_) => None,
            Err(_) => match result.checked_neg().unwrap_or(libc::EIO) {
                libc::EAGAIN | libc::EINTR if piece.tries < TRIES => Some(Piece { tries: piece.tries + 1, ..piece }),
                code => {
                    active.error = Some(Error::from_raw_os_error(code));
                    None
                }
            },
        };
        if let Some(piece) = again.filter(|_| active.error.is_none()) {
            self.waiting.push_back(piece);
            return;
        }
        active.pieces -= 1;
        if active.pieces == 0
            && let Some(Active { transfer, end, error, .. }) = self.transfers[piece.transfer].take()
        {
            self.vacant.push(piece.transfer);
            done(transfer, error.map_or(Ok(end), Err));
        }
    }

    /// Asks to be told of the alarm, unless it was asked already.
    fn arm(&mut self) {
        if let Some((event, armed)) = &mut self.alarm
            && !*armed
        {
            let entry = opcode::PollAdd::new(types::Fd(event.as_raw_fd()), libc::POLLIN as u32).build();
            // SAFETY: a poll touches no memory, and the descriptor lives as long as the ring.
            *armed = unsafe { self.uring.submission().push(&entry.user_data(ALARM)) }.is_ok();
        }
    }

    fn silence(&mut self) {
        if let Some((event, armed)) = &mut self.alarm {
            *armed = false;
            let mut count = [0; 8];
            let _ = rustix::io::read(&*event, &mut count);
        }
    }

    /// Gives up what is not done: whose it was.
    pub fn give_up(&mut self) -> Vec<T> {
        self.drain();
        // What is still in the queue (the alarm may be) the kernel never heard of.
        let unsent = self.uring.submission().len().saturating_sub(usize::from(self.alarm.is_some()));
        let done_with = self.in_flight <= unsent;
        let given_up = std::mem::take(&mut self.transfers).into_iter().flatten().map(|active| {
            let Transfer { extent, token, .. } = active.transfer;
            if !done_with {
                // The ring failed with reads under way. What the kernel may still write to is never used again.
                std::mem::forget(extent);
            }
            token
        });
        let given_up = given_up.collect();
        (self.in_flight, self.pieces) = (0, Vec::new());
        (self.vacant, self.vacant_pieces) = (Vec::new(), Vec::new());
        given_up
    }

    /// Waits until the kernel is done with all memory.
    fn drain(&mut self) {
        self.waiting.clear();
        while self.in_flight > 0 && self.enter(true).is_ok() {
            let completed: Vec<u64> = self.uring.completion().map(|entry| entry.user_data()).collect();
            for data in completed {
                let _ = self.take_piece(data);
            }
        }
    }
}

impl<T> Drop for Ring<T> {
    fn drop(&mut self) {
        drop(self.give_up());
        for slab in self.slots.iter().flatten() {
            slab.set_slot(None);
        }
    }
}

impl<T> fmt::Debug for Ring<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ring")
            .field("features", &self.features)
            .field("requests", &self.requests())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use plinth_core::random::Random;

    use super::*;

    /// Answers pieces in the kernel's place: in any order, cut short, busy, interrupted.
    #[test]
    fn whatever_the_kernel_answers_transfers_end_with_what_the_file_has() {
        let mut ring = match Ring::new(3 * PAGE) {
            Ok(ring) => ring,
            Err(e) => return eprintln!("skipped: no io_uring here ({e})"),
        };
        let file = Arc::new(File::open("/dev/null").unwrap());
        let slab = Slab::new(1, false).unwrap();
        let mut random = Random(7);
        let mut below = move |n: usize| random.index(n);
        let byte = |at: usize| u8::try_from((at ^ at >> 8) & 0xff).unwrap();
        for round in 0..500 {
            let file_len = below(40 * PAGE);
            // Direct reads start where a page does; others anywhere, and so do writes.
            let start = if round % 2 == 0 { below(20) * PAGE } else { 1 + below(20 * PAGE) };
            let len = below(20 * PAGE);
            let fails = (below(8) == 0).then(|| below(12));
            let extent = slab.take(len).unwrap();
            let (file, offset) = (Arc::clone(&file), start as u64);
            ring.start(Transfer { file, offset, extent, len, direction: Direction::Read, token: round });
            let (mut ended, mut steps) = (None, 0);
            while let Some(piece) = ring.waiting.pop_front() {
                steps += 1;
                assert!(steps < 10_000, "it goes on for ever");
                let at = start + piece.at;
                let there = file_len.saturating_sub(at).min(piece.len);
                let moved = if below(3) == 0 { there.min(1 + below(there)) } else { there };
                let result = match below(10) {
                    _ if fails == Some(steps) => -libc::EIO,
                    0 => -libc::EAGAIN,
                    1 => -libc::EINTR,
                    // Within a page only the file's end cuts a direct read short.
                    _ if start % PAGE == 0 && moved < there => i32::try_from(moved / PAGE * PAGE).unwrap(),
                    _ => i32::try_from(moved).unwrap(),
                };
                if start % PAGE == 0 && result == 0 && there > 0 {
                    ring.waiting.push_back(piece);
                    continue;
                }
                if let Ok(moved) = usize::try_from(result) {
                    let active = ring.transfers[piece.transfer].as_mut().unwrap();
                    for i in 0..moved {
                        active.transfer.extent[piece.at + i] = byte(at + i);
                    }
                }
                ring.complete(piece, result, &mut |transfer, result| ended = Some((transfer, result)));
            }
            let (transfer, result) = ended.expect("it ends once no piece waits");
            assert_eq!((transfer.token, ring.transfers(), ring.requests()), (round, 0, 0));
            match result {
                Ok(end) => {
                    assert_eq!(end, len.min(file_len.saturating_sub(start)), "round {round}");
                    assert!(transfer.extent[..end].iter().enumerate().all(|(i, &b)| b == byte(start + i)));
                }
                Err(e) => assert!(fails.is_some() && e.raw_os_error() == Some(libc::EIO)),
            }
        }
        assert_eq!(slab.used(), 0);
    }

    #[test]
    fn a_ring_that_is_given_up_says_whose_transfers_it_had() {
        let mut ring = match Ring::new(PAGE) {
            Ok(ring) => ring,
            Err(e) => return eprintln!("skipped: no io_uring here ({e})"),
        };
        let file = Arc::new(File::open(std::env::current_exe().unwrap()).unwrap());
        let slab = Slab::new(1, false).unwrap();
        for token in 0..20 {
            let (file, extent) = (Arc::clone(&file), slab.take(4 * PAGE).unwrap());
            ring.start(Transfer { file, offset: 0, extent, len: 4 * PAGE, direction: Direction::Read, token });
        }
        ring.fill();
        ring.uring.submit().unwrap();
        assert_eq!(ring.give_up(), (0..20).collect::<Vec<_>>());
        assert_eq!((slab.used(), ring.requests(), ring.transfers()), (0, 0, 0));
    }
}
