//! What the machine can do.

use crate::limits::Origin;

/// The most that can be moved a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ceiling {
    /// Bytes a second.
    pub per_second: f64,
    /// Whether each thread can move as much; a device is shared by all.
    pub by_thread: bool,
    /// Who measured it.
    pub origin: Origin,
}

impl Ceiling {
    /// What a probe found all threads together can move.
    pub const fn shared(per_second: f64) -> Self {
        Self { per_second, by_thread: false, origin: Origin::Probe }
    }

    /// What a probe found one thread can move.
    pub const fn by_thread(per_second: f64) -> Self {
        Self { per_second, by_thread: true, origin: Origin::Probe }
    }

    pub(crate) fn by_threads(self, threads: f64) -> f64 {
        if self.by_thread { self.per_second * threads } else { self.per_second }
    }
}

/// What a machine and one of its devices can do, as far as it was measured.
///
/// A program that has a probe's profile of the device fills it from there; one that has not can [`measure`](Ceilings::measure)
/// memory and decoding, and goes without the device.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ceilings {
    /// Reading from the device.
    pub device_read: Option<Ceiling>,
    /// Writing to it.
    pub device_write: Option<Ceiling>,
    /// Copying from the page cache.
    pub page_cache: Option<Ceiling>,
    /// Reading memory.
    pub memory: Option<Ceiling>,
    /// Checksumming.
    pub checksum: Option<Ceiling>,
    /// Bytes of values a second, by encoding, as in `Stage::Decode.of(encoding)`. An empty name stands for all that are not
    /// listed.
    pub decode: Vec<(String, Ceiling)>,
    /// Where this comes from and how far to trust it, for people.
    pub note: Option<String>,
}

impl Ceilings {
    /// The ceiling of decoding an encoding.
    pub fn decode(&self, encoding: &str) -> Option<Ceiling> {
        let named = |wanted: &str| self.decode.iter().find(|(name, _)| name == wanted).map(|(_, ceiling)| *ceiling);
        named(encoding).or_else(|| named(""))
    }

    /// These, and where there are none, those of another.
    #[must_use]
    pub fn or(self, other: &Self) -> Self {
        let mut decode = self.decode;
        for (name, ceiling) in &other.decode {
            if !decode.iter().any(|(known, _)| known == name) {
                decode.push((name.clone(), *ceiling));
            }
        }
        Self {
            device_read: self.device_read.or(other.device_read),
            device_write: self.device_write.or(other.device_write),
            page_cache: self.page_cache.or(other.page_cache),
            memory: self.memory.or(other.memory),
            checksum: self.checksum.or(other.checksum),
            decode,
            note: self.note.or_else(|| other.note.clone()),
        }
    }
}
