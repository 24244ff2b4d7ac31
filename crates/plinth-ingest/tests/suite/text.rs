//! Text files.
