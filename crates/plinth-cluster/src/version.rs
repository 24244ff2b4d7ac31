//! What must be the same in all processes of a cluster.

/// The version of this program, of the messages between its processes, and of the engine whose plans they carry.
pub const VERSION: &str = concat!("plinth ", env!("CARGO_PKG_VERSION"), ", messages 1, datafusion 55.2");
