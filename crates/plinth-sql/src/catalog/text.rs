//! The text of a catalog: FORMAT.md 17.

use std::fmt::Write;

use plinth_core::wire::checksum;

use super::{Contents, View};

/// The first line, up to the version.
const MAGIC: &str = "plinth-catalog\t";

/// The version that is written, and the only one that is read.
const VERSION: u64 = 1;

/// What begins the last line.
const SEAL: &str = "checksum\t";

/// The text of a catalog.
pub(super) fn write(contents: &Contents) -> String {
    let mut out = format!("{MAGIC}{VERSION}\n");
    for schema in &contents.schemas {
        line(&mut out, ["schema", schema]);
    }
    for ((schema, name), View { search, sql }) in &contents.views {
        line(&mut out, ["view", schema, name, search, sql]);
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
        "the file is damaged; restore it, or remove it: schemas and views are lost then, tables are not";
    let damaged = || DAMAGED.to_owned();
    let text = std::str::from_utf8(bytes).map_err(|_| damaged())?;
    let (first, _) = text.split_once('\n').ok_or_else(damaged)?;
    let version = first.strip_prefix(MAGIC).ok_or("is no catalog of Plinth's; move it elsewhere")?;
    let version: u64 = version.parse().map_err(|_| damaged())?;
    if version != VERSION {
        return Err(format!("a catalog of version {version} (this Plinth reads {VERSION}); update Plinth"));
    }
    let at = text.rfind(SEAL).filter(|at| text[..*at].ends_with('\n')).ok_or_else(damaged)?;
    let (body, seal) = text.split_at(at);
    if seal != format!("{SEAL}{:016x}\n", checksum(body.as_bytes())) {
        return Err(damaged());
    }
    let mut contents = Contents::default();
    for line in body.lines().skip(1) {
        let fields = line.split('\t').map(field).collect::<Option<Vec<_>>>().ok_or_else(damaged)?;
        let mut fields = fields.into_iter();
        let mut next = || fields.next();
        let known = match (next().as_deref(), next(), next(), next(), next(), next()) {
            (Some("schema"), Some(name), None, ..) => contents.schemas.insert(name),
            (Some("view"), Some(schema), Some(name), Some(search), Some(sql), None) => {
                contents.views.insert((schema, name), View { search, sql }).is_none()
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
