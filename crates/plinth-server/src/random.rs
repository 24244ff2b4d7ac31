//! Names that can't be guessed.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

use crate::failure::ServerError;

/// Bytes of a handle: as many as a guess has no chance against.
const BYTES: usize = 32;

/// A hash of what is secret.
pub(crate) type Digest = [u8; 32];

/// Bytes from the system's generator.
///
/// # Errors
/// If the system has none.
pub(crate) fn bytes() -> Result<[u8; BYTES], ServerError> {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes).map_err(|e| ServerError::new(format!("no random numbers: {e}")))?;
    Ok(bytes)
}

/// The same as text that any header can hold.
///
/// # Errors
/// As [`bytes`].
pub(crate) fn text() -> Result<String, ServerError> {
    Ok(BASE64_URL_SAFE_NO_PAD.encode(bytes()?))
}

/// The hash of a secret.
pub(crate) fn digest(secret: &[u8]) -> Digest {
    Sha256::digest(secret).into()
}

/// Bytes as letters.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
