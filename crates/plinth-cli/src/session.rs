//! Sessions of this program: its threads, memory and signals.

use plinth_format::Access;
use plinth_io::IoOptions;
use plinth_sql::{Grants, ObjectStoresOptions, OpenTables, SessionOptions};

use crate::error::Result;
use crate::{interrupt, machine};

/// A session without a folder, in which files are read as usual.
pub(crate) fn options(memory: u64, threads: usize) -> SessionOptions {
    SessionOptions {
        db: None,
        memory,
        threads,
        io: IoOptions::default(),
        access: Access::Auto,
        objects: ObjectStoresOptions::of_user(),
        tables: OpenTables::default(),
        interrupt: interrupt::handle(),
        grants: Grants::default(),
        share: None,
        allocated: Some(machine::allocated),
        spread: None,
    }
}

/// Runs asynchronous work on this many threads, until it is done or the user interrupts.
pub(crate) fn block_on<T>(threads: usize, work: impl Future<Output = Result<T>>) -> Result<T> {
    plinth_sql::block_on(threads, &interrupt::handle(), work)
}
