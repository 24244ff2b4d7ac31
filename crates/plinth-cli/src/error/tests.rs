//! Failures as lines, and a corpus of statements that fail.

mod corpus;

use super::*;

#[test]
fn a_closed_pipe_is_told_from_a_failure() {
    let pipe = std::io::Error::from(std::io::ErrorKind::BrokenPipe);
    assert!(matches!(Failure::from(ArrowError::IoError("x".into(), pipe)), Failure::BrokenPipe));
}

#[test]
fn a_place_is_no_folder_of_the_machine_that_built_this() {
    assert_eq!(place_of("/home/me/.cargo/registry/src/index-1/parquet-59/src/x.rs"), "parquet-59/src/x.rs");
    assert_eq!(place_of("crates/plinth/src/main.rs"), "crates/plinth/src/main.rs");
}
