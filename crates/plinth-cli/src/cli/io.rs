//! How blocks of Plinth files are read.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use plinth_io::{IoMode, IoOptions};
use plinth_probe::{DeviceProfile, PROFILE_NAME, ProfileError};

use crate::units::parse_bytes;

/// Read path of Plinth files.
#[derive(Args, Debug)]
pub(crate) struct IoArgs {
    /// Read path of blocks of Plinth files
    #[arg(long, value_name = "HOW", default_value = "auto")]
    io: IoHow,
    /// Device profile written by `plinth probe` [default: DIR/plinth-device.toml of --db, if there is one]
    #[arg(long, value_name = "FILE")]
    device: Option<PathBuf>,
    /// Parts to leave out, to measure their effect
    #[arg(long, hide = true, value_delimiter = ',')]
    io_without: Vec<IoPart>,
    /// Bytes of one request
    #[arg(long, hide = true, value_parser = parse_bytes)]
    io_request: Option<u64>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum IoHow {
    /// From the page cache what it has; the rest past it if that is more than half of the memory
    Auto,
    /// Past the page cache by io_uring
    Uring,
    /// Past the page cache by threads
    Direct,
    /// Through the page cache
    Cached,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum IoPart {
    /// Memory that is used again
    Reuse,
    /// Memory that is registered with the ring
    Registration,
    /// Memory in huge pages
    HugePages,
}

impl IoArgs {
    /// For files in `folder`, if they are all there.
    ///
    /// # Errors
    /// If the profile of the device that was asked for can't be read.
    pub(crate) fn options(&self, folder: Option<&Path>) -> Result<IoOptions, ProfileError> {
        let mut default = IoOptions::default();
        if let Some(device) = self.device(folder)? {
            default = default.suited_to(&device.knee());
        }
        let with = |part| !self.io_without.contains(&part);
        Ok(IoOptions {
            mode: match self.io {
                IoHow::Auto => IoMode::Auto,
                IoHow::Uring => IoMode::Uring,
                IoHow::Direct => IoMode::Direct,
                IoHow::Cached => IoMode::Cached,
            },
            fresh_buffers: !with(IoPart::Reuse),
            registered: with(IoPart::Registration),
            huge_pages: with(IoPart::HugePages),
            request_bytes: self.io_request.and_then(|n| usize::try_from(n).ok()).unwrap_or(default.request_bytes),
            ..default
        })
    }

    /// The profile of the device.
    ///
    /// # Errors
    /// If its profile was asked for and can't be read.
    pub(crate) fn device(&self, folder: Option<&Path>) -> Result<Option<DeviceProfile>, ProfileError> {
        match &self.device {
            Some(path) => DeviceProfile::read(path).map(Some),
            None => Ok(folder.and_then(device_of)),
        }
    }
}

/// The profile of the device of a folder, if a probe left one there.
pub(crate) fn device_of(folder: &Path) -> Option<DeviceProfile> {
    let path = folder.join(PROFILE_NAME);
    // A profile that was not asked for is no reason to fail where it can't be read.
    path.exists().then(|| DeviceProfile::read(path).inspect_err(|e| log::warn!("{e}")).ok()).flatten()
}
