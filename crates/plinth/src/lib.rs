//! The command line program and the library facade.
