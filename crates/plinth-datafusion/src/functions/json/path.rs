//! Places in a JSON document, which is known to be one.

use datafusion_common::{Result, exec_err};

/// A step towards a value.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Key(String),
    /// From the end if negative.
    Index(i64),
}

/// The place of a value: `$.a[0].b`, `/a/0/b`, or the key `a`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Path(Vec<Step>);

impl Path {
    /// An element of an array.
    pub(super) fn index(at: i64) -> Self {
        Self(vec![Step::Index(at)])
    }

    pub(super) fn parse(text: &str) -> Result<Self> {
        if let Some(pointer) = text.strip_prefix('/') {
            let step = |part: &str| {
                let key = part.replace("~1", "/").replace("~0", "~");
                key.parse().map_or(Step::Key(key), Step::Index)
            };
            return Ok(Self(pointer.split('/').map(step).collect()));
        }
        let Some(mut rest) = text.strip_prefix('$') else { return Ok(Self(vec![Step::Key(text.to_owned())])) };
        let mut steps = Vec::new();
        while !rest.is_empty() {
            if let Some(key) = rest.strip_prefix('.') {
                let (key, behind) = match key.strip_prefix('"') {
                    Some(quoted) => match quoted.split_once('"') {
                        Some((key, behind)) => (key, behind),
                        None => return exec_err!("JSON path {text:?}: a quote is missing"),
                    },
                    None => key.split_at(key.find(['.', '[']).unwrap_or(key.len())),
                };
                if key.is_empty() || key == "*" {
                    return exec_err!("JSON path {text:?}: a key is expected behind each dot; * is not supported");
                }
                steps.push(Step::Key(key.to_owned()));
                rest = behind;
            } else if let Some((index, behind)) = rest.strip_prefix('[').and_then(|index| index.split_once(']')) {
                let number = index.strip_prefix("#").unwrap_or(index);
                match number.parse() {
                    Ok(at) => steps.push(Step::Index(at)),
                    Err(_) => return exec_err!("JSON path {text:?}: a number is expected in [{index}]"),
                }
                rest = behind;
            } else {
                return exec_err!("JSON path {text:?}: is no path, such as $.a[0].b");
            }
        }
        Ok(Self(steps))
    }

    /// The text of the value at this place.
    pub(super) fn find<'a>(&self, document: &'a str) -> Option<&'a str> {
        let mut value = document.trim();
        for step in &self.0 {
            value = match step {
                Step::Key(key) if value.starts_with('{') => members(value).find(|(its, _)| its == key)?.1,
                Step::Index(at) if value.starts_with('[') => {
                    let at = match usize::try_from(*at) {
                        Ok(at) => at,
                        Err(_) => {
                            let from_end = usize::try_from(at.unsigned_abs()).ok()?;
                            elements(value).count().checked_sub(from_end)?
                        }
                    };
                    elements(value).nth(at)?
                }
                // A pointer's number may be a key.
                Step::Index(at) if value.starts_with('{') => {
                    let key = at.to_string();
                    members(value).find(|(its, _)| *its == key)?.1
                }
                _ => return None,
            };
        }
        Some(value)
    }
}

/// The length of the value that a text begins with.
fn length(text: &str) -> usize {
    let bytes = text.as_bytes();
    match bytes.first() {
        Some(b'"') => string_length(bytes),
        Some(b'{' | b'[') => {
            let (mut at, mut depth) = (0, 0_usize);
            while let Some(byte) = bytes.get(at) {
                match byte {
                    b'"' => {
                        at += string_length(bytes.get(at..).unwrap_or_default());
                        continue;
                    }
                    b'{' | b'[' => depth += 1,
                    b'}' | b']' => {
                        depth -= 1;
                        if depth == 0 {
                            return at + 1;
                        }
                    }
                    _ => {}
                }
                at += 1;
            }
            bytes.len()
        }
        _ => text.find([',', '}', ']', ' ', '\t', '\n', '\r', ':']).unwrap_or(bytes.len()),
    }
}

/// The length of a string with its quotes.
fn string_length(bytes: &[u8]) -> usize {
    let mut at = 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// The elements of an array.
pub(super) fn elements(array: &str) -> impl Iterator<Item = &str> {
    let mut rest = array.get(1..).unwrap_or_default().trim_start();
    std::iter::from_fn(move || {
        rest = rest.strip_prefix(',').unwrap_or(rest).trim_start();
        if rest.is_empty() || rest.starts_with(']') {
            return None;
        }
        let (value, behind) = rest.split_at(length(rest));
        rest = behind.trim_start();
        Some(value)
    })
}

/// The members of an object.
pub(super) fn members(object: &str) -> impl Iterator<Item = (String, &str)> {
    let mut rest = object.get(1..).unwrap_or_default().trim_start();
    std::iter::from_fn(move || {
        rest = rest.strip_prefix(',').unwrap_or(rest).trim_start();
        if !rest.starts_with('"') {
            return None;
        }
        let (key, behind) = rest.split_at(length(rest));
        let value = behind.trim_start().strip_prefix(':')?.trim_start();
        let (value, behind) = value.split_at(length(value));
        rest = behind.trim_start();
        Some((serde_json::from_str(key).ok()?, value))
    })
}

/// A value without the blanks between its signs.
pub(super) fn without_blanks(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    let mut rest = value;
    while let Some(first) = rest.chars().next() {
        if first == '"' {
            let (text, behind) = rest.split_at(string_length(rest.as_bytes()));
            out.push_str(text);
            rest = behind;
        } else {
            if !first.is_ascii_whitespace() {
                out.push(first);
            }
            rest = rest.get(first.len_utf8()..).unwrap_or_default();
        }
    }
    out
}
