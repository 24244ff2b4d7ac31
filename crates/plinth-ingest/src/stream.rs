//! From inputs to batches, whichever format their text has: bytes are read and decompressed ([`input`], [`buffer`]), chunks of
//! whole records go to threads that decode ahead ([`feed`], [`ahead`]), and what they decode becomes batches and bad records in
//! the order of the input ([`output`], [`text_source`]).

pub(crate) mod ahead;
pub(crate) mod buffer;
pub(crate) mod fault;
pub(crate) mod feed;
pub(crate) mod input;
pub(crate) mod output;
mod rejects;
pub(crate) mod sample;
pub(crate) mod text_source;
pub(crate) mod unknown;
