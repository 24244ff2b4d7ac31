//! Sessions of this program: its threads, memory and signals.

use plinth_format::Access;
use plinth_io::IoOptions;
use plinth_sql::SessionOptions;

use crate::error::Result;
use crate::{interrupt, machine};

/// A session without a folder, in which files are read as usual.
pub(crate) fn options(memory: Option<u64>, threads: Option<usize>) -> SessionOptions {
    SessionOptions {
        db: None,
        memory: memory.unwrap_or_else(machine::default_memory),
        threads: threads.unwrap_or_else(machine::threads),
        io: IoOptions::default(),
        access: Access::Auto,
        interrupt: interrupt::handle(),
        allocated: machine::ALLOCATED,
    }
}

/// Runs asynchronous work on this many threads, until it is done or the user interrupts.
pub(crate) fn block_on<T>(threads: usize, work: impl Future<Output = Result<T>>) -> Result<T> {
    plinth_sql::block_on(threads, &interrupt::handle(), work)
}
