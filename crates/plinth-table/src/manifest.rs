//! The manifest of a table in an object store, where no name can be changed and no folder be locked.
//!
//! It is one object of lines: what it is, the files of the table in the order of their rows, the files that count no more, and
//! the xxh3-64 of the lines before. It is put in the place of the one that was read, on the condition that this is still there:
//! of two writers one reads the other's and tries again. So all appends and replacements happen one after the other, each at
//! once and for everybody, and a reader sees one moment by one request.

use plinth_format::{FormatError, Result};
use plinth_io::{Identity, Object};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::listed::Listed;
use crate::names;
use crate::sealed::{sealed, unsealed};

/// Its name.
pub(crate) const NAME: &str = ".plinth-manifest";

/// Bytes it may have: the names of more files than a table is made for.
pub(crate) const LONGEST: u64 = 256 << 20;

const HEADING: &str = "plinth manifest 1";

/// A file of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Below the table's folder.
    pub(crate) name: String,
    pub(crate) len: u64,
    /// Which version of it, where its name does not say that it is the only one.
    pub(crate) tag: Option<String>,
}

/// The files of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Manifest {
    /// In the order of their rows.
    pub(crate) files: Vec<Entry>,
    /// Files that were replaced, with the second of the Unix epoch when that was: who reads an older manifest may still read them.
    pub(crate) gone: Vec<(u64, String)>,
}

impl Entry {
    /// An object below a folder, whose URL ends in `/`.
    pub(crate) fn of(folder: &str, object: &Object) -> Result<Self> {
        let name = object.url.strip_prefix(folder).filter(|name| can_name(name)).ok_or_else(|| {
            FormatError::InvalidArgument(format!("{}: can't be a file of a table by this name", object.url))
        })?;
        // A table can be copied with its manifest, though copies have other tags.
        let tag = object.tag.clone().filter(|_| !is_given(name));
        Ok(Self { name: name.to_owned(), len: object.identity.len, tag })
    }

    /// As a listing tells of it.
    pub(crate) fn listed(&self, folder: &str) -> Listed {
        // Of a name that is given once there is one version; when that was written does not matter.
        let once = Duration::from_secs(u64::from(is_given(&self.name)));
        let identity = Identity::of_object(self.len, SystemTime::UNIX_EPOCH + once, self.tag.as_deref());
        let url = format!("{folder}{}", self.name);
        Listed { path: PathBuf::from(&url), identity, object: Some(Object { url, identity, tag: self.tag.clone() }) }
    }
}

impl Manifest {
    /// Reads what [`Manifest::text`] wrote; None if it is something else, or damaged.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut lines = unsealed(text)?.split('\n');
        if lines.next()? != HEADING {
            return None;
        }
        let mut manifest = Self::default();
        for line in lines {
            let mut fields = line.split('\t');
            match (fields.next()?, fields.next()?, fields.next()?, fields.next(), fields.next()) {
                ("file", len, tag, Some(name), None) => {
                    let tag = Some(tag.to_owned()).filter(|tag| !tag.is_empty());
                    manifest.files.push(Entry { name: name.to_owned(), len: len.parse().ok()?, tag });
                }
                ("gone", second, name, None, None) => manifest.gone.push((second.parse().ok()?, name.to_owned())),
                _ => return None,
            }
        }
        let names = manifest.files.iter().map(|file| &file.name).chain(manifest.gone.iter().map(|(_, name)| name));
        let mut seen = std::collections::HashSet::new();
        names.into_iter().all(|name| can_name(name) && seen.insert(name)).then_some(manifest)
    }

    /// Its lines.
    pub(crate) fn text(&self) -> String {
        let mut text = format!("{HEADING}\n");
        for Entry { name, len, tag } in &self.files {
            text.push_str(&format!("file\t{len}\t{}\t{name}\n", tag.as_deref().unwrap_or_default()));
        }
        for (second, name) in &self.gone {
            text.push_str(&format!("gone\t{second}\t{name}\n"));
        }
        sealed(text)
    }

    /// Whether a file is one of the table's.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.files.iter().any(|file| file.name == name)
    }

    /// A name for the next file that no other writer gives, and that people find in the order of the rows.
    pub(crate) fn next_name(&self, random: u32) -> String {
        let number = self.files.iter().filter_map(|file| number_of(&file.name)).max().unwrap_or(0);
        format!("{:06}-{random:08x}.{}", number.saturating_add(1), crate::EXTENSION)
    }

    /// Puts a file in the place of neighbours. False, and nothing is changed, if these are not there one after the other.
    pub(crate) fn replace(&mut self, names: &[&str], by: Entry, now: u64) -> bool {
        let Some(first) = names.first() else { return false };
        let Some(at) = self.files.iter().position(|file| file.name == *first) else { return false };
        let end = at + names.len();
        let here = self.files.get(at..end).unwrap_or_default();
        if here.len() != names.len() || !here.iter().zip(names).all(|(file, name)| file.name == *name) {
            return false;
        }
        self.gone.extend(self.files.splice(at..end, [by]).map(|file| (now, file.name)));
        true
    }
}

/// The number that a name of [`Manifest::next_name`] begins with.
pub(crate) fn number_of(name: &str) -> Option<u64> {
    let (number, random) = name.strip_suffix(".plinth")?.split_once('-')?;
    let is_ours = number.len() >= 6 && random.len() == 8 && random.bytes().all(|byte| byte.is_ascii_hexdigit());
    number.parse().ok().filter(|_| is_ours)
}

/// Whether Plinth has given a name, which it does once.
pub(crate) fn is_given(name: &str) -> bool {
    number_of(name).is_some()
}

/// Seconds of the Unix epoch.
pub(crate) fn second(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs()
}

/// Whether a name can stand in a manifest: that of a visible file below the folder, in one field.
fn can_name(name: &str) -> bool {
    let plain = |part: &str| !part.is_empty() && part != "." && part != "..";
    let last = Path::new(name).file_name().unwrap_or(OsStr::new(""));
    names::is_visible(last) && name.split('/').all(plain) && !name.contains(|c: char| c.is_control() || c == '\\')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, len: u64, tag: Option<&str>) -> Entry {
        Entry { name: name.to_owned(), len, tag: tag.map(str::to_owned) }
    }

    #[test]
    fn a_manifest_is_read_as_written_and_nothing_else_is() {
        let manifest = Manifest {
            files: vec![entry("000001-0123abcd.plinth", 12, Some("\"e 1\"")), entry("deep/ä ö.plinth", 0, None)],
            gone: vec![(77, "x.plinth".to_owned())],
        };
        let text = manifest.text();
        assert_eq!(Manifest::parse(&text), Some(manifest));
        assert_eq!(Manifest::parse(&Manifest::default().text()), Some(Manifest::default()));
        for cut in 0..text.len() {
            assert_eq!(text.get(..cut).and_then(Manifest::parse), None);
        }
        for at in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 1;
            assert_eq!(String::from_utf8(bytes).ok().as_deref().and_then(Manifest::parse), None);
        }
        for line in [
            "file\t1\t\t../a.plinth",
            "file\t1\t\t/a.plinth",
            "file\t1\t\ta.parquet",
            "file\t1\t\t.a.plinth",
            "file\tx\t\ta.plinth",
            "file\t1\t\ta.plinth\tb",
            "file\t1\t\ta.plinth\nfile\t1\t\ta.plinth",
            "gone\t1\t\ta.plinth",
            "what\t1\ta.plinth",
            "",
        ] {
            let lines = format!("{HEADING}\n{line}\n");
            assert_eq!(Manifest::parse(&sealed(lines.clone())), None, "{line:?}");
        }
    }

    #[test]
    fn names_count_on_and_neighbours_are_replaced_where_they_stand() {
        let mut manifest = Manifest::default();
        assert_eq!(manifest.next_name(0xabc), "000001-00000abc.plinth");
        for (number, random) in [(1, 7), (2, 8), (3, 9)] {
            let name = manifest.next_name(random);
            assert_eq!(number_of(&name), Some(number));
            manifest.files.push(entry(&name, 1, None));
        }
        manifest.files.push(entry("june.plinth", 1, None));
        let names: Vec<String> = manifest.files.iter().map(|file| file.name.clone()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let before = manifest.clone();
        for wrong in [&[][..], &[names[0], names[2]], &[names[3], names[0]], &["none.plinth"]] {
            assert!(!manifest.replace(wrong, entry("new.plinth", 2, None), 5));
        }
        assert_eq!(manifest, before);
        assert!(manifest.replace(&names[1..3], entry("new.plinth", 2, None), 5));
        let after: Vec<&str> = manifest.files.iter().map(|file| file.name.as_str()).collect();
        assert_eq!(after, [names[0], "new.plinth", "june.plinth"]);
        assert_eq!(manifest.gone, [(5, names[1].to_owned()), (5, names[2].to_owned())]);
    }
}
