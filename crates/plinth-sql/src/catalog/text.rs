//! The text of a catalog: FORMAT.md 17.

use std::fmt::Write;

use plinth_core::wire::checksum;

use super::{Contents, Sequence, View};

/// The first line, up to the version.
const MAGIC: &str = "plinth-catalog\t";

/// The version that is written if there are sequences, which version 1 does not know, and the newest that is read.
const VERSION: u64 = 2;

/// What begins the last line.
const SEAL: &str = "checksum\t";

/// The text of a catalog.
pub(super) fn write(contents: &Contents) -> String {
    let version = if contents.sequences.is_empty() { 1 } else { VERSION };
    let mut out = format!("{MAGIC}{version}\n");
    for schema in &contents.schemas {
        line(&mut out, ["schema", schema]);
    }
    for ((schema, name), View { search, sql }) in &contents.views {
        line(&mut out, ["view", schema, name, search, sql]);
    }
    for ((schema, name), sequence) in &contents.sequences {
        let [next, step, least, most, cycles] = sequence.fields();
        line(&mut out, ["sequence", schema, name, &next, &step, &least, &most, &cycles]);
    }
    // Writing to a text does not fail.
    let _ = writeln!(out, "{SEAL}{:016x}", checksum(out.as_bytes()));
    out
}

fn line<const N: usize>(out: &mut String, fields: [&str; N]) {
    for (i, field) in fields.into_iter().enumerate() {
        if i > 0 {
            out.push('\t');
        }
        for letter in field.chars() {
            match letter {
                '\\' => out.push_str("\\\\"),
                '\t' => out.push_str("\\t"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                other => out.push(other),
            }
        }
    }
    out.push('\n');
}

/// What a text says, or what is wrong with it.
pub(super) fn parse(bytes: &[u8]) -> Result<Contents, String> {
    const DAMAGED: &str =
        "the file is damaged; restore it, or remove it: schemas, views and sequences are lost then, tables are not";
    let damaged = || DAMAGED.to_owned();
    let text = std::str::from_utf8(bytes).map_err(|_| damaged())?;
    let (first, _) = text.split_once('\n').ok_or_else(damaged)?;
    let version = first.strip_prefix(MAGIC).ok_or("is no catalog of Plinth's; move it elsewhere")?;
    let version: u64 = version.parse().map_err(|_| damaged())?;
    if !(1..=VERSION).contains(&version) {
        return Err(format!("a catalog of version {version} (this Plinth reads up to {VERSION}); update Plinth"));
    }
    let at = text.rfind(SEAL).filter(|at| text[..*at].ends_with('\n')).ok_or_else(damaged)?;
    let (body, seal) = text.split_at(at);
    if seal != format!("{SEAL}{:016x}\n", checksum(body.as_bytes())) {
        return Err(damaged());
    }
    let mut contents = Contents::default();
    for line in body.lines().skip(1) {
        let fields = line.split('\t').map(field).collect::<Option<Vec<_>>>().ok_or_else(damaged)?;
        let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
        let owned = |schema: &str, name: &str| (schema.to_owned(), name.to_owned());
        let known = match fields.as_slice() {
            ["schema", name] => contents.schemas.insert((*name).to_owned()),
            ["view", schema, name, search, sql] => {
                let view = View { search: (*search).to_owned(), sql: (*sql).to_owned() };
                contents.views.insert(owned(schema, name), view).is_none()
            }
            ["sequence", schema, name, state @ ..] if version > 1 => {
                let sequence = Sequence::parse(state).ok_or_else(damaged)?;
                contents.sequences.insert(owned(schema, name), sequence).is_none()
            }
            _ => false,
        };
        if !known {
            return Err(damaged());
        }
    }
    Ok(contents)
}

/// A field as it was before it was written.
fn field(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        out.push(match letter {
            '\\' => match letters.next()? {
                '\\' => '\\',
                't' => '\t',
                'n' => '\n',
                'r' => '\r',
                _ => return None,
            },
            other => other,
        });
    }
    Some(out)
}
