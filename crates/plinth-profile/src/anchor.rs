//! What can be told apart: the stages of the read and write paths, and their parts.

use std::fmt;

macro_rules! stages {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $moves:ident, $sleeps:ident;)*) => {
        /// A step on the way of a query or an import.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Stage {
            $($(#[$doc])* $name,)*
        }

        impl Stage {
            /// Every stage, in the order of the paths.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// What people call it.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }

            /// What its bytes are, for the roofline.
            pub fn moves(self) -> Moves {
                match self {
                    $(Self::$name => Moves::$moves,)*
                }
            }

            /// Whether a thread sleeps in it.
            pub fn sleeps(self) -> Sleeps {
                match self {
                    $(Self::$name => Sleeps::$sleeps,)*
                }
            }
        }
    };
}

/// What the bytes of a stage are bytes of: which limit of the machine they go against.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Moves {
    /// They are shown, and go against no limit.
    Nothing,
    /// Read from a device.
    FromDevice,
    /// Written to a device.
    ToDevice,
    /// Copied from the page cache or another cache of stored bytes.
    FromPageCache,
    /// Read or written in memory, once each.
    Memory,
    /// Checksummed.
    Checksum,
    /// Values, as large as they are decoded.
    Decoded,
}

/// Whether threads sleep in a stage: what a thread had of processor time is shared out in this order, to those that sleep only where
/// some is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Sleeps {
    /// It computes.
    Never,
    /// It asks the kernel, which may have it wait.
    Sometimes,
    /// It is there to wait for storage.
    Mostly,
    /// It waits for other threads.
    Always,
    /// Its thread is there to wait in the stead of others, who count what they wait: of its time only the processor's counts.
    Apart,
}

stages! {
    /// Parsing and planning a statement.
    Plan = "plan", Nothing, Never;
    /// Opening files.
    Open = "open", Nothing, Never;
    /// Reading what files say of themselves.
    Metadata = "metadata", Nothing, Never;
    /// Running a scan: what is in none of its other stages.
    Scan = "scan", Nothing, Never;
    /// Finding out what need not be read.
    Prune = "prune", Nothing, Never;
    /// Finding rows through dictionaries and postings.
    Lookup = "lookup", Memory, Never;
    /// Handing reads to the kernel; its bytes are those asked of the device.
    Submit = "submit", FromDevice, Sometimes;
    /// Taking resident blocks from a cache.
    PageCache = "page cache", FromPageCache, Never;
    /// What the threads of the I/O engine do.
    Drive = "drive reads", Nothing, Apart;
    /// Waiting for storage. It has no bytes: those were counted when they were asked for.
    Wait = "wait", Nothing, Mostly;
    /// Waiting for other threads, whose work is their own scopes'.
    Join = "wait for threads", Nothing, Always;
    /// Verifying checksums.
    Checksum = "checksum", Checksum, Never;
    /// Decoding blocks, by encoding; its rows are values, its bytes those of the values.
    Decode = "decode", Decoded, Never;
    /// Evaluating conjuncts, by conjunct; its rows are those that were asked.
    Filter = "filter", Memory, Never;
    /// Bringing selected values together.
    Gather = "gather", Memory, Never;
    /// An operator of a query engine; its rows and bytes are those it gave, whether it made them or passed them on.
    Operator = "operator", Nothing, Never;
    /// Showing or writing results.
    Output = "output", Memory, Never;
    /// Reading foreign files.
    Read = "read", FromDevice, Sometimes;
    /// Decompressing them.
    Decompress = "decompress", Memory, Never;
    /// Cutting text where records end, checking that it is text, and finding fields; its bytes are those of the text.
    Structure = "structure", Memory, Never;
    /// Parsing values into columns, in one walk over the text; its bytes are those of the text.
    Parse = "parse", Memory, Never;
    /// Making batches of columns.
    Build = "build", Memory, Never;
    /// Looking up and adding dictionary values.
    Intern = "intern", Memory, Never;
    /// Sorting rows or dictionaries.
    Sort = "sort", Memory, Never;
    /// Encoding blocks, by encoding.
    Encode = "encode", Memory, Never;
    /// Writing files.
    Write = "write", ToDevice, Sometimes;
    /// Making written bytes durable.
    Sync = "sync", Nothing, Mostly;
    /// Processor time that no scope covered. It is computed, not recorded.
    Other = "other", Nothing, Never;
    /// Time in which threads had nothing to do. It is computed, not recorded.
    Idle = "idle", Nothing, Never;
}

impl Stage {
    /// A part of the stage by name, such as an encoding.
    pub const fn of(self, name: &'static str) -> Anchor {
        Anchor { stage: self, part: Part::Name(name) }
    }

    /// A part of the stage by number, such as a conjunct; [`Profiler::label`](crate::Profiler::label) says what it is.
    pub const fn nth(self, index: u32) -> Anchor {
        Anchor { stage: self, part: Part::Index(index) }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What a scope is charged to: a stage, or a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Anchor {
    /// The stage.
    pub stage: Stage,
    /// Which part of it.
    pub part: Part,
}

impl Anchor {
    /// The same by address. Names are static, so what is the same almost always is so by address, too; where it is not, a path stands
    /// twice among what a thread recorded, until that is merged.
    #[inline]
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.stage == other.stage
            && match (self.part, other.part) {
                (Part::Name(one), Part::Name(other)) => std::ptr::eq(one, other),
                (one, other) => one == other,
            }
    }
}

/// A part of a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// The stage has no parts, or all of them are meant.
    Whole,
    /// By name.
    Name(&'static str),
    /// By number.
    Index(u32),
}

impl From<Stage> for Anchor {
    fn from(stage: Stage) -> Self {
        Self { stage, part: Part::Whole }
    }
}

impl fmt::Display for Anchor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.part {
            Part::Whole => write!(f, "{}", self.stage),
            Part::Name(name) => write!(f, "{} {name}", self.stage),
            Part::Index(index) => write!(f, "{} {index}", self.stage),
        }
    }
}
