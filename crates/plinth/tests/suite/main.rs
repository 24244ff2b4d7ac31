//! What holds for the project as a whole, and for the library as its users see it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod dependencies;
mod examples;
mod guide;
mod house;
