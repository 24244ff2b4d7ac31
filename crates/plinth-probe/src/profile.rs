//! What a probe found, in a small file that readers consult.
//!
//! The file is TOML: tables of integers, texts and lists of texts, which is all that is read here. Unknown keys are
//! passed over, so that later versions may add some.

use std::fmt::Write as _;
use std::path::Path;

use plinth_io::{AtomicFile, DeviceKnee, IoError, regular};

/// What the file is called unless told otherwise.
pub const PROFILE_NAME: &str = "plinth-device.toml";

const VERSION: u64 = 1;
/// What is larger is no profile.
const LONGEST: u64 = 1 << 20;

/// How far figures are to be trusted: A is a quiet device of its own, D measured something else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Grade {
    A,
    B,
    C,
    #[default]
    D,
}

impl std::fmt::Display for Grade {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Debug::fmt(self, f)
    }
}

/// How fast the device under a folder is. Speeds are in bytes a second, latencies in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceProfile {
    /// Seconds since 1970.
    pub measured_at: u64,
    /// Who measured.
    pub engine: String,
    /// The device, by name and model.
    pub device: String,
    /// The kind of file system on it.
    pub file_system: String,
    /// What the machine calls itself, if it is a virtual one: then the figures are not those of an SSD.
    pub virtual_machine: Option<String>,
    /// How far to trust all this.
    pub grade: Grade,
    /// Why no further.
    pub reasons: Vec<String>,
    /// The most that reads reached.
    pub read_bandwidth: u64,
    /// The most random 4 KiB reads a second.
    pub read_iops: u64,
    /// Median latency of random 4 KiB reads, one at a time.
    pub read_latency: u64,
    /// The most that writes reached.
    pub write_bandwidth: u64,
    /// The most random 4 KiB writes a second, if they were measured.
    pub write_iops: Option<u64>,
    /// Bytes a request at the knee: of the cheapest cell that reaches 90 % of what random reads can.
    pub request_bytes: u64,
    /// Requests in flight at the knee.
    pub depth: u64,
    /// The depth at which the p99 latency of 4 KiB reads has doubled, if it does.
    pub p99_doubles_at: Option<u64>,
    /// The cheapest way to make a write durable.
    pub sync_method: String,
    /// What it takes for 4 KiB.
    pub sync_latency: u64,
    /// One thread reading memory.
    pub memory_read: u64,
    /// One thread copying memory.
    pub memory_copy: u64,
    /// One thread reading a resident file.
    pub page_cache: u64,
    /// One thread checksumming.
    pub checksum: u64,
    /// One thread decoding, by encoding: bytes of values a second.
    pub decode: Vec<(String, u64)>,
}

/// Why a profile can't be read.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ProfileError {
    /// The file can't be read.
    #[error(transparent)]
    Io(#[from] IoError),
    /// It says something that makes no sense.
    #[error("{path}: line {line}: {what}; run plinth probe again")]
    Line {
        /// The file.
        path: String,
        /// Which line, from 1 on.
        line: usize,
        /// What is wrong with it.
        what: String,
    },
}

impl DeviceProfile {
    /// Reads what [`DeviceProfile::write`] wrote, possibly edited.
    ///
    /// # Errors
    /// If the file can't be read, or a line is no TOML of the kind that is written, or a value is missing.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, ProfileError> {
        let path = path.as_ref();
        let text = regular::read_text(path, LONGEST)?;
        Self::parse(&text).map_err(|(line, what)| ProfileError::Line { path: path.display().to_string(), line, what })
    }

    /// Writes it, in the place of one that is there; readers see the old or the new one.
    ///
    /// # Errors
    /// If the folder can't be written to.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<(), IoError> {
        let mut file = AtomicFile::create(path, true)?;
        file.write_all(self.to_toml().as_bytes())?;
        file.commit().map(drop)
    }

    /// What readers take from it: requests as at the knee, if the grade allows to trust that.
    pub fn knee(&self) -> DeviceKnee {
        DeviceKnee { request_bytes: self.request_bytes, depth: self.depth, trusted: self.grade <= Grade::B }
    }

    /// The text of the file.
    pub fn to_toml(&self) -> String {
        let mut out = String::from(
            "# How fast the device of this folder is: written by plinth probe, read by plinth.\n\
             # Bytes a second, nanoseconds. Trust it as far as the grade says.\n",
        );
        // Writing to a String can't fail.
        let mut number = |table: &str, values: &[(&str, Option<u64>)]| {
            if !table.is_empty() {
                let _ = writeln!(out, "\n[{table}]");
            }
            for (key, value) in values {
                if let Some(value) = value {
                    let _ = writeln!(out, "{key} = {value}");
                }
            }
        };
        number("", &[("version", Some(VERSION)), ("measured_at", Some(self.measured_at))]);
        number(
            "read",
            &[
                ("bandwidth", Some(self.read_bandwidth)),
                ("iops", Some(self.read_iops)),
                ("latency", Some(self.read_latency)),
            ],
        );
        number("write", &[("bandwidth", Some(self.write_bandwidth)), ("iops", self.write_iops)]);
        number(
            "knee",
            &[
                ("request_bytes", Some(self.request_bytes)),
                ("depth", Some(self.depth)),
                ("p99_doubles_at", self.p99_doubles_at),
            ],
        );
        number(
            "memory",
            &[
                ("read", Some(self.memory_read)),
                ("copy", Some(self.memory_copy)),
                ("page_cache", Some(self.page_cache)),
                ("checksum", Some(self.checksum)),
            ],
        );
        let decode: Vec<_> = self.decode.iter().map(|(name, speed)| (name.as_str(), Some(*speed))).collect();
        number("decode", &decode);
        number("sync", &[("latency", Some(self.sync_latency))]);
        let _ = writeln!(out, "method = {}", quoted(&self.sync_method));
        let _ = writeln!(out, "\n[device]\nname = {}", quoted(&self.device));
        let _ = writeln!(out, "file_system = {}\nengine = {}", quoted(&self.file_system), quoted(&self.engine));
        if let Some(machine) = &self.virtual_machine {
            let _ = writeln!(out, "virtual_machine = {}", quoted(machine));
        }
        let reasons: Vec<_> = self.reasons.iter().map(|reason| quoted(reason)).collect();
        let _ = writeln!(out, "\n[trust]\ngrade = \"{}\"\nreasons = [{}]", self.grade, reasons.join(", "));
        out
    }

    fn parse(text: &str) -> Result<Self, (usize, String)> {
        let document = Document::parse(text)?;
        let version = document.number("", "version")?;
        if version != VERSION {
            return Err((
                document.line_of("", "version"),
                format!("version {version} is not known, only {VERSION} is"),
            ));
        }
        let grade = match document.text("trust", "grade")?.as_str() {
            "A" => Grade::A,
            "B" => Grade::B,
            "C" => Grade::C,
            "D" => Grade::D,
            other => {
                return Err((document.line_of("trust", "grade"), format!("grade {other:?} is none of A, B, C, D")));
            }
        };
        let positive = |table: &str, key: &str| match document.number(table, key)? {
            0 => Err((document.line_of(table, key), format!("{key} is zero"))),
            value => Ok(value),
        };
        let decode = document.entries.iter().filter(|entry| entry.table == "decode");
        let decode = decode.map(|entry| match entry.value {
            Value::Number(speed) => Ok((entry.key.clone(), speed)),
            _ => Err((entry.line, format!("{} is no number", entry.key))),
        });
        Ok(Self {
            measured_at: document.number("", "measured_at")?,
            engine: document.text("device", "engine")?,
            device: document.text("device", "name")?,
            file_system: document.text("device", "file_system")?,
            virtual_machine: document.if_there("device", "virtual_machine", Document::text)?,
            grade,
            reasons: document.list("trust", "reasons")?,
            read_bandwidth: positive("read", "bandwidth")?,
            read_iops: document.number("read", "iops")?,
            read_latency: document.number("read", "latency")?,
            write_bandwidth: document.number("write", "bandwidth")?,
            write_iops: document.if_there("write", "iops", Document::number)?,
            request_bytes: positive("knee", "request_bytes")?,
            depth: positive("knee", "depth")?,
            p99_doubles_at: document.if_there("knee", "p99_doubles_at", Document::number)?,
            sync_method: document.text("sync", "method")?,
            sync_latency: document.number("sync", "latency")?,
            memory_read: document.number("memory", "read")?,
            memory_copy: document.number("memory", "copy")?,
            page_cache: document.number("memory", "page_cache")?,
            checksum: document.number("memory", "checksum")?,
            decode: decode.collect::<Result<_, _>>()?,
        })
    }
}

/// A text in TOML's double quotes.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[derive(Clone, Debug, PartialEq)]
enum Value {
    Number(u64),
    Text(String),
    List(Vec<String>),
}

#[derive(Debug)]
struct Entry {
    table: String,
    key: String,
    value: Value,
    line: usize,
}

/// The lines of a file, in order.
#[derive(Debug)]
struct Document {
    entries: Vec<Entry>,
    lines: usize,
}

type Found<T> = Result<T, (usize, String)>;

impl Document {
    fn parse(text: &str) -> Found<Self> {
        let mut document = Self { entries: Vec::new(), lines: text.lines().count().max(1) };
        let mut table = String::new();
        for (at, line) in text.lines().enumerate() {
            let (line, number) = (line.trim(), at + 1);
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if let Some(name) = line.strip_prefix('[') {
                let name = name.split('#').next().unwrap_or_default().trim_end().strip_suffix(']');
                table = name.map(str::trim).ok_or((number, "a table's name lacks its ]".to_owned()))?.to_owned();
                continue;
            }
            let (key, value) = line.split_once('=').ok_or((number, "key = value is expected".to_owned()))?;
            let key = key.trim().trim_matches('"').to_owned();
            if document.find(&table, &key).is_some() {
                return Err((number, format!("{key} is given twice")));
            }
            let value = parse_value(value).map_err(|what| (number, format!("{key}: {what}")))?;
            document.entries.push(Entry { table: table.clone(), key, value, line: number });
        }
        Ok(document)
    }

    fn find(&self, table: &str, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.table == table && entry.key == key)
    }

    fn line_of(&self, table: &str, key: &str) -> usize {
        self.find(table, key).map_or(self.lines, |entry| entry.line)
    }

    fn get<T>(&self, table: &str, key: &str, kind: &str, take: impl FnOnce(&Value) -> Option<T>) -> Found<T> {
        let Some(entry) = self.find(table, key) else {
            // The line that ends the table it should be in.
            let last = self.entries.iter().rfind(|entry| entry.table == table).map_or(self.lines, |entry| entry.line);
            let place = if table.is_empty() { String::new() } else { format!(" in [{table}]") };
            return Err((last, format!("{key}{place} is missing")));
        };
        take(&entry.value).ok_or((entry.line, format!("{key} is no {kind}")))
    }

    fn number(&self, table: &str, key: &str) -> Found<u64> {
        self.get(table, key, "number", |value| if let Value::Number(number) = value { Some(*number) } else { None })
    }

    fn text(&self, table: &str, key: &str) -> Found<String> {
        self.get(table, key, "text", |value| if let Value::Text(text) = value { Some(text.clone()) } else { None })
    }

    fn list(&self, table: &str, key: &str) -> Found<Vec<String>> {
        self.get(table, key, "list", |value| if let Value::List(list) = value { Some(list.clone()) } else { None })
    }

    fn if_there<T>(&self, table: &str, key: &str, get: fn(&Self, &str, &str) -> Found<T>) -> Found<Option<T>> {
        self.find(table, key).map(|_| get(self, table, key)).transpose()
    }
}

fn parse_value(text: &str) -> Result<Value, String> {
    let text = text.trim_start();
    let (value, rest) = if text.starts_with('"') {
        let (text, rest) = parse_text(text)?;
        (Value::Text(text), rest)
    } else if let Some(mut rest) = text.strip_prefix('[') {
        let mut list = Vec::new();
        loop {
            rest = rest.trim_start();
            if let Some(rest) = rest.strip_prefix(']') {
                break (Value::List(list), rest);
            }
            let (text, after) = parse_text(rest)?;
            list.push(text);
            let after = after.trim_start();
            rest = after.strip_prefix(',').unwrap_or(after);
            if !after.starts_with([',', ']']) {
                return Err("a list's , or ] is expected".to_owned());
            }
        }
    } else {
        let (digits, rest) = text.split_at(text.find(|c: char| !c.is_ascii_digit() && c != '_').unwrap_or(text.len()));
        let number = digits.replace('_', "").parse();
        (Value::Number(number.map_err(|_| format!("{:?} is neither number nor text nor list", text.trim_end()))?), rest)
    };
    let rest = rest.trim();
    if rest.is_empty() || rest.starts_with('#') { Ok(value) } else { Err(format!("{rest:?} follows the value")) }
}

/// A text in double quotes, and what follows it.
fn parse_text(text: &str) -> Result<(String, &str), String> {
    let inner = text.strip_prefix('"').ok_or("a text in \"\" is expected")?;
    let mut out = String::new();
    let mut chars = inner.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Ok((out, &inner[at + 1..])),
            '\\' => match chars.next() {
                Some((_, c @ ('"' | '\\'))) => out.push(c),
                _ => return Err("only \\\" and \\\\ are known after \\".to_owned()),
            },
            c => out.push(c),
        }
    }
    Err("a text lacks its closing \"".to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use plinth_io::IoOptions;

    fn sample() -> DeviceProfile {
        DeviceProfile {
            measured_at: 1_700_000_000,
            engine: "fio 3.33 io_uring".into(),
            device: "vda \"x\\y\" # no comment".into(),
            file_system: "ext4".into(),
            virtual_machine: Some("a machine".into()),
            grade: Grade::C,
            reasons: vec!["one, two]".into(), "a \"cache\" answers".into()],
            read_bandwidth: 1_900_000_000,
            read_iops: 61_000,
            read_latency: 83_000,
            write_bandwidth: u64::MAX,
            write_iops: Some(0),
            request_bytes: 524_288,
            depth: 4,
            p99_doubles_at: None,
            sync_method: "fdatasync".into(),
            sync_latency: 189_000,
            memory_read: 1,
            memory_copy: 2,
            page_cache: 3,
            checksum: 4,
            decode: vec![("bit-packed".into(), 9_000_000_000), ("fsst".into(), 2)],
        }
    }

    #[test]
    fn what_is_written_is_read_and_edits_are_understood() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(PROFILE_NAME);
        let profile = sample();
        profile.write(&path).unwrap();
        profile.write(&path).unwrap();
        assert_eq!(DeviceProfile::read(&path).unwrap(), profile);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
        let edited = profile.to_toml().replace("depth = 4", "depth=1_6 # more\nnew = \"key\"") + "[later]\nx = [ ]\n";
        assert_eq!(DeviceProfile::parse(&edited).unwrap(), DeviceProfile { depth: 16, ..profile });
    }

    #[test]
    fn errors_name_file_and_line() {
        let good = sample().to_toml();
        let line = |part: &str| good.lines().position(|line| line.starts_with(part)).unwrap() + 1;
        for (from, to, at, part) in [
            ("version = 1", "version = 2", line("version"), "version 2 is not known"),
            ("depth = 4", "depth = 4 4", line("depth"), "depth: \"4\" follows the value"),
            ("depth = 4", "depth = 0", line("depth"), "depth is zero"),
            ("depth = 4", "depth = -4", line("depth"), "depth: \"-4\" is neither"),
            ("depth = 4", "depth", line("depth"), "key = value is expected"),
            ("depth = 4", "depth = 99999999999999999999", line("depth"), "is neither"),
            ("depth = 4", "", line("request_bytes"), "depth in [knee] is missing"),
            ("depth = 4", "depth = 4\ndepth = 4", line("depth") + 1, "depth is given twice"),
            ("[trust]", "[trust", line("[trust]"), "lacks its ]"),
            ("grade = \"C\"", "grade = \"E\"", line("grade"), "none of A, B, C, D"),
            ("grade = \"C\"", "grade = 7", line("grade"), "grade is no text"),
            ("\"fdatasync\"", "\"fdatasync", line("method"), "closing"),
            ("\"ext4\"", "\"e\\n\"", line("file_system"), "only"),
            ("[\"one", "[\"one\" x, \"", line("reasons"), ", or ]"),
            ("fsst = 2", "fsst = \"fast\"", line("fsst"), "fsst is no number"),
        ] {
            let (found, what) = DeviceProfile::parse(&good.replacen(from, to, 1)).unwrap_err();
            assert!(what.contains(part) && found == at, "{from} to {to}: line {found}, not {at}: {what}");
        }
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("p.toml");
        assert!(DeviceProfile::read(&path).unwrap_err().to_string().contains("p.toml: cannot open: "));
        std::fs::write(&path, "version = 1\nx\n").unwrap();
        let message = DeviceProfile::read(&path).unwrap_err().to_string();
        assert!(message.ends_with("p.toml: line 2: key = value is expected; run plinth probe again"), "{message}");
        std::fs::write(&path, [0xff, 0xfe]).unwrap();
        assert!(DeviceProfile::read(&path).is_err());
        std::fs::File::create(&path).unwrap().set_len(1 << 40).unwrap();
        assert!(DeviceProfile::read(&path).unwrap_err().to_string().contains("too long"));
    }

    proptest! {
        #[test]
        fn any_text_is_an_error_or_a_profile(text in "(\\PC|[\n=\\[\\]\"\\\\ 0-9])*") {
            let _ = DeviceProfile::parse(&text);
            if let Ok(document) = Document::parse(&text) {
                prop_assert!(document.entries.len() <= document.lines);
            }
        }

        #[test]
        fn any_words_survive(device in "\\PC*", reasons in prop::collection::vec("\\PC*", 0..4), speed: u64) {
            let profile = DeviceProfile { device, reasons, read_bandwidth: speed.max(1), ..sample() };
            prop_assert_eq!(DeviceProfile::parse(&profile.to_toml()).unwrap(), profile);
        }
    }

    #[test]
    fn readers_follow_a_device_that_was_measured_and_no_other() {
        let default = IoOptions::default();
        let device = |grade| DeviceProfile { request_bytes: 1 << 20, depth: 24, grade, ..DeviceProfile::default() };
        let suited = default.clone().suited_to(&device(Grade::B).knee());
        assert_eq!((suited.request_bytes, suited.depth), (1 << 20, 48));
        let suited = default.clone().suited_to(&device(Grade::C).knee());
        assert_eq!((suited.request_bytes, suited.depth), (default.request_bytes, default.depth));
        // A profile is a file that people may edit.
        let wild = DeviceProfile { request_bytes: u64::MAX, depth: u64::MAX, ..device(Grade::A) };
        let suited = default.clone().suited_to(&wild.knee());
        assert_eq!((suited.request_bytes, suited.depth), (2 << 20, 256));
        let suited = default.suited_to(&DeviceProfile { request_bytes: 1, depth: 1, ..device(Grade::A) }.knee());
        assert_eq!((suited.request_bytes, suited.depth), (64 << 10, 8));
    }
}
