//! What a schema of JSON is inferred from.

use arrow_schema::Fields;
use std::path::Path;

use super::flaw::Flaw;
use super::record::VALUE;
use super::tokenizer::{Kind, Tokenizer};
use crate::error::{IngestError, Result};
use crate::stream::sample;
use crate::values::infer::{NESTED, Objects, Seen, check_width};

/// What records hold.
#[derive(Clone, Debug, Default)]
pub(super) struct Samples {
    objects: Objects,
    /// Records that are no objects.
    others: Option<Seen>,
    /// Whether there was an array of rows, be it empty.
    array: bool,
    /// What was wrong with the first record that could not be read.
    broken: Option<IngestError>,
}

impl Samples {
    /// Takes a record.
    pub(super) fn json(&mut self, tokens: &mut Tokenizer<'_>) -> Result<(), Flaw> {
        match tokens.kind()? {
            Kind::Object => object(&mut self.objects, tokens, NESTED),
            _ => seen(self.others.get_or_insert_default(), tokens, NESTED),
        }
    }

    /// Takes note of an array of rows.
    pub(super) fn array(&mut self) {
        self.array = true;
    }

    /// Takes note of a record that can't be read.
    pub(super) fn broken(&mut self, error: impl FnOnce() -> IngestError) {
        self.broken.get_or_insert_with(error);
    }

    /// Bytes of memory it takes, about.
    pub(super) fn memory(&self) -> usize {
        self.objects.memory()
    }
}

impl sample::Samples for Samples {
    fn unite(&mut self, other: Self) {
        self.objects.unite(other.objects);
        if let Some(others) = other.others {
            self.others.get_or_insert_default().unite(others);
        }
        self.array |= other.array;
        self.broken = self.broken.take().or(other.broken);
    }

    fn check(&self, path: &Path) -> Result<()> {
        check_width(path, &self.objects)
    }

    /// Those of objects, or one for records that are none or have no members, and for no records in an array. Where there are
    /// none, what was wrong with the first record, if anything was.
    fn fields(self) -> Result<Fields> {
        let keyless = self.objects.any() || (self.array && self.broken.is_none());
        let fields = match self.others {
            Some(others) if self.objects.is_empty() => others.fields(VALUE),
            None if self.objects.is_empty() && keyless => Seen::default().fields(VALUE),
            _ => self.objects.fields(),
        };
        match self.broken {
            Some(error) if fields.is_empty() => Err(error),
            _ => Ok(fields),
        }
    }
}

fn seen(to: &mut Seen, tokens: &mut Tokenizer<'_>, levels: usize) -> Result<(), Flaw> {
    match tokens.kind()? {
        Kind::Null => drop(tokens.word()?),
        Kind::Bool => {
            tokens.word()?;
            to.boolean();
        }
        Kind::Number => to.number(tokens.number()?),
        Kind::String => to.text(tokens.string()?),
        kind => {
            // Values on deeper levels are text whatever they are.
            let Some(levels) = levels.checked_sub(1) else {
                to.deep(kind == Kind::Array);
                return tokens.skip();
            };
            if kind == Kind::Object {
                return object(to.object(), tokens, levels);
            }
            let items = to.list();
            let mut more = tokens.open(b']')?;
            while more {
                seen(items, tokens, levels)?;
                more = tokens.more(b']')?;
            }
        }
    }
    Ok(())
}

fn object(to: &mut Objects, tokens: &mut Tokenizer<'_>, levels: usize) -> Result<(), Flaw> {
    let (mut expected, mut members) = (0, 0);
    let mut more = tokens.open(b'}')?;
    while more {
        let at = to.find(tokens.key()?, expected);
        to.grow(at, |to| seen(to, tokens, levels))?;
        (expected, members) = (at.map_or(0, |at| at + 1), members + 1);
        more = tokens.more(b'}')?;
    }
    to.count(members);
    Ok(())
}

#[cfg(test)]
mod tests;
