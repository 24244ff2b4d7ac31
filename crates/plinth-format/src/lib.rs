//! The Plinth file: writer, reader, scan.
