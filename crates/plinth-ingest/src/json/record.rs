//! What is to be remembered while a record is taken.

use std::borrow::Cow;

use super::flaw::Flaw;
use super::tokenizer::Tokenizer;
use crate::options::Unknown;
use crate::stream::fault::Fault;
use crate::stream::unknown::UnknownKeys;
use crate::values::json_string::json_string;

/// The column of rows that are no objects.
pub(super) const VALUE: &str = "value";

/// The column for keys that the others lack.
pub(super) const EXTRA: &str = "_extra";

/// How values are taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// Whether the types were given; else they were inferred.
    pub(crate) given: bool,
    /// Whether a record that is no object is the value of the one column.
    pub(crate) bare: bool,
    /// What becomes of keys that the types lack.
    pub(crate) unknown: Unknown,
}

/// Where a value is: the keys that lead to it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Path<'a>(Option<(&'a Path<'a>, &'a str)>);

impl<'a> Path<'a> {
    pub(super) fn then(&'a self, name: &'a str) -> Self {
        Self(Some((self, name)))
    }

    /// The keys with dots between.
    fn spelled(self) -> String {
        match self.0 {
            None => String::new(),
            Some((Path(None), name)) => name.to_owned(),
            Some((before, name)) => before.spelled() + "." + name,
        }
    }
}

/// A record on its way into the columns.
pub(super) struct Record<'a> {
    pub(super) rules: Rules,
    /// Values its lists and maps may still hold.
    room: usize,
    /// What was wrong first.
    fault: Option<Fault>,
    unknown: &'a mut UnknownKeys,
    /// The members that the types lack, as JSON without its closing brace.
    extra: &'a mut String,
}

impl<'a> Record<'a> {
    pub(super) fn new(rules: Rules, room: usize, unknown: &'a mut UnknownKeys, extra: &'a mut String) -> Self {
        extra.clear();
        Self { rules, room, fault: None, unknown, extra }
    }

    pub(super) fn room(&self) -> usize {
        self.room
    }

    pub(super) fn into_fault(self) -> Option<Fault> {
        self.fault
    }

    /// Notes what is wrong, and says whether it is the first.
    pub(super) fn fault(&mut self, why: impl Into<Cow<'static, str>>, misfit: bool) -> bool {
        let first = self.fault.is_none();
        if first {
            self.fault = Some(Fault { column: Vec::new(), why: why.into(), misfit });
        }
        first
    }

    pub(super) fn misfit(&mut self, why: impl Into<Cow<'static, str>>) -> bool {
        self.fault(why, true)
    }

    /// Says where the fault is.
    #[cold]
    pub(super) fn within(&mut self, name: &str) {
        if let Some(fault) = &mut self.fault {
            fault.column.insert(0, name.to_owned());
        }
    }

    /// Takes so much of the room, if there is so much.
    pub(super) fn take_room(&mut self, width: usize) -> bool {
        let left = self.room.checked_sub(width);
        self.room = left.unwrap_or(self.room);
        left.is_some()
    }

    pub(super) fn no_room(&mut self) -> bool {
        let why = "its lists hold too many values; give a schema with fewer fields, or with text in their place";
        self.fault(why, false)
    }

    /// Takes the value of a key that the types lack.
    pub(super) fn unknown(&mut self, name: String, tokens: &mut Tokenizer<'_>, path: Path<'_>) -> Result<bool, Flaw> {
        match self.rules.unknown {
            Unknown::Error => {
                tokens.skip()?;
                let why = match self.rules.given {
                    true => "not in the schema; add it, or leave such columns out with --ignore-extra",
                    false => "not seen before",
                };
                let first = self.misfit(why);
                if first {
                    self.within(&name);
                }
                return Ok(first);
            }
            Unknown::Report => {
                tokens.skip()?;
                self.unknown.add(path.then(&name).spelled(), 1);
            }
            Unknown::Extra => {
                let raw = tokens.raw()?;
                let mut member = vec![if self.extra.is_empty() { b'{' } else { b',' }];
                json_string(&mut member, &path.then(&name).spelled());
                self.extra.push_str(&String::from_utf8_lossy(&member));
                self.extra.push(':');
                self.extra.push_str(raw);
            }
        }
        Ok(false)
    }

    /// The members that the types lack, as a JSON object; empty if there are none.
    pub(super) fn extra(&mut self) -> &str {
        if !self.extra.is_empty() {
            self.extra.push('}');
        }
        self.extra
    }
}
