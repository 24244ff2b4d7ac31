//! The server, asked by a client of Flight SQL and by one of HTTP.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod catalog;
mod harness;
mod hostile;
mod ingest;
mod limits;
mod pages;
mod postgres;
mod queries;
mod security;
mod sessions;
mod tools;
mod transactions;
mod transport;
