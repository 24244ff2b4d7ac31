//! What DuckDB looks for at the end of an extension: for which version, which platform and by which interface it was made.
//!
//! The layout is that of DuckDB's `extension_load.cpp`: eight fields of 32 bytes, the last of them first, and room for a signature of
//! 256 bytes, which extensions have that DuckDB's makers distribute.

/// The version of DuckDB that the interface belongs to, which is not a stable one.
const DUCKDB: &str = "v2.0.0";

/// The C interface of version 2.
const INTERFACE: &str = "C_STRUCT_UNSTABLE";

/// What DuckDB calls this platform.
///
/// # Errors
/// If DuckDB has no name for it.
pub(crate) fn platform() -> Result<&'static str, String> {
    match (std::env::consts::OS, std::env::consts::ARCH) {
        ("linux", "x86_64") => Ok("linux_amd64"),
        ("linux", "aarch64") => Ok("linux_arm64"),
        ("macos", "x86_64") => Ok("osx_amd64"),
        ("macos", "aarch64") => Ok("osx_arm64"),
        ("windows", "x86_64") => Ok("windows_amd64"),
        (system, processor) => Err(format!("DuckDB has no platform for {system} on {processor}")),
    }
}

/// An extension: a shared library and its footer.
pub(crate) fn sign_off(mut library: Vec<u8>, platform: &str, version: &str) -> Vec<u8> {
    for field in ["", "", "", INTERFACE, version, DUCKDB, platform, "4"] {
        let mut bytes = field.as_bytes().to_vec();
        bytes.resize(32, 0);
        library.extend(bytes);
    }
    library.extend([0; 256]);
    library
}
