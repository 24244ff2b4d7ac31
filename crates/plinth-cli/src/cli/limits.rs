//! What a command may use of the machine.

use clap::Args;

use super::values::parse_threads;
use crate::machine;
use crate::units::parse_bytes;

#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct ThreadArgs {
    /// Threads [default: all cores]
    #[arg(long, value_name = "N", value_parser = parse_threads)]
    threads: Option<usize>,
}

impl ThreadArgs {
    pub(crate) fn threads(self) -> usize {
        self.threads.unwrap_or_else(machine::threads)
    }
}

#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct LimitArgs {
    #[command(flatten)]
    threads: ThreadArgs,
    /// Memory limit, such as 512MB or 2GiB [default: a quarter of the machine's]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    memory: Option<u64>,
}

impl LimitArgs {
    pub(crate) fn threads(self) -> usize {
        self.threads.threads()
    }

    /// In bytes.
    pub(crate) fn memory(self) -> u64 {
        self.memory.unwrap_or_else(machine::default_memory)
    }

    /// The memory, where that was said.
    pub(crate) fn given_memory(self) -> Option<u64> {
        self.memory
    }
}
