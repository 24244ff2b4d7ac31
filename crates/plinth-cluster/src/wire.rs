//! What of a plan travels in messages of our own.

use datafusion_proto::protobuf::{FileScanExecConf, PhysicalExprNode};

/// A node of a plan that the engine's messages do not know.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Node {
    #[prost(oneof = "Kind", tags = "1, 2")]
    pub(crate) kind: Option<Kind>,
}

/// Which node.
#[derive(Clone, PartialEq, prost::Oneof)]
pub(crate) enum Kind {
    #[prost(message, boxed, tag = "1")]
    Scan(Box<Scan>),
    /// A plan that was not optimised, of which the node's input is the root.
    #[prost(message, tag = "2")]
    Whole(Whole),
}

/// See [`Kind::Whole`].
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Whole {}

/// A scan of Plinth files.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Scan {
    /// The columns of the table and what is known of the rows; nothing else of it is set.
    #[prost(message, optional, tag = "1")]
    pub(crate) base: Option<FileScanExecConf>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) projection: Vec<Output>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) owned: Vec<PhysicalExprNode>,
    /// The name of a mode of pushing filters down.
    #[prost(string, tag = "4")]
    pub(crate) pushdown: String,
    #[prost(uint64, optional, tag = "5")]
    pub(crate) batch_size: Option<u64>,
    #[prost(uint64, optional, tag = "6")]
    pub(crate) limit: Option<u64>,
    #[prost(message, repeated, tag = "7")]
    pub(crate) files: Vec<File>,
    #[prost(message, repeated, tag = "8")]
    pub(crate) groups: Vec<Group>,
}

/// A column that comes out of a scan.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Output {
    #[prost(message, optional, tag = "1")]
    pub(crate) expr: Option<PhysicalExprNode>,
    #[prost(string, tag = "2")]
    pub(crate) alias: String,
}

/// A file, and what tells it from another that has its name.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct File {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(uint64, tag = "2")]
    pub(crate) len: u64,
    #[prost(fixed64, tag = "3")]
    pub(crate) fingerprint: u64,
}

/// What a partition reads.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Group {
    #[prost(message, repeated, tag = "1")]
    pub(crate) pieces: Vec<Piece>,
}

/// The row groups of a file that start in a range of its bytes; all without one.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Piece {
    #[prost(uint32, tag = "1")]
    pub(crate) file: u32,
    #[prost(int64, optional, tag = "2")]
    pub(crate) start: Option<i64>,
    #[prost(int64, optional, tag = "3")]
    pub(crate) end: Option<i64>,
}
