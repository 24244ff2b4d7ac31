//! A folder of this machine for a file that will be sent to a store.

use std::fs::DirBuilder;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::{Path, PathBuf};

use plinth_format::Result;
use plinth_io::IoError;

/// A folder where the system keeps scratch files, its owner's alone. It goes, with what is in it, when this is dropped.
#[derive(Debug)]
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// Makes one.
    pub(crate) fn make() -> Result<Self> {
        let path = std::env::temp_dir().join(format!("plinth-upload-{:08x}{:08x}", random(), random()));
        let mut builder = DirBuilder::new();
        // One that is there already is another's: that is an error.
        builder.recursive(false);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&path).map_err(|e| IoError::os(&path, "create", e))?;
        Ok(Self(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What can't be removed is the system's to remove.
        drop(std::fs::remove_dir_all(&self.0));
    }
}

/// A number that other programs do not draw at the same time.
pub(crate) fn random() -> u32 {
    // The standard library's hashers have keys from the system's random numbers, others for each.
    u32::try_from(RandomState::new().build_hasher().finish() >> 32).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scratch_folder_is_new_and_goes_with_what_is_in_it() {
        let (one, two) = (Scratch::make().unwrap(), Scratch::make().unwrap());
        assert_ne!(one.path(), two.path());
        std::fs::write(one.path().join("x"), "y").unwrap();
        let path = one.path().to_path_buf();
        drop(one);
        assert!(!path.exists() && two.path().is_dir());
    }
}
