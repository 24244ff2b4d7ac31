//! Objects whose keys are fields.
//!
//! After each key the one is expected that followed it last time, and compared as it is usually spelled; only where it is
//! another is the name looked up. (The idea of predicting where keys are is that of Mison: Li et al., VLDB 2017.)

use std::collections::HashMap;

use arrow_array::ArrayRef;
use arrow_schema::{ArrowError, Fields};

use super::flaw::Flaw;
use super::node::Node;
use super::record::{Path, Record};
use super::tokenizer::{Spelled, Tokenizer};

/// The named parts of a struct, or the columns of a record.
pub(super) struct Members {
    fields: Fields,
    members: Vec<Member>,
    by_name: HashMap<String, usize, foldhash::fast::RandomState>,
    /// The member that came first last time.
    first: usize,
    /// Objects begun, nulls included, ever and up to the last batch.
    objects: u64,
    before: u64,
    /// Whether an object had no members at all.
    empty: bool,
}

struct Member {
    node: Node,
    spelled: Spelled,
    /// The member that followed last time.
    next: usize,
    /// The last object, counted from one, that had it.
    seen: u64,
}

impl Members {
    /// Or the name of the field whose type can't be read from text.
    pub(super) fn new(fields: &Fields, given: bool, levels: usize) -> Result<Self, String> {
        let member = |(at, field): (usize, &arrow_schema::FieldRef)| {
            let node = Node::new(field, given, levels).ok_or_else(|| field.name().clone())?;
            Ok(Member { node, spelled: Spelled::new(field.name()), next: (at + 1) % fields.len(), seen: 0 })
        };
        let members = fields.iter().enumerate().map(member).collect::<Result<_, String>>()?;
        let by_name = fields.iter().enumerate().map(|(at, field)| (field.name().clone(), at)).collect();
        Ok(Self { fields: fields.clone(), members, by_name, first: 0, objects: 0, before: 0, empty: false })
    }

    /// Takes an object, and says whether the record's first misfit is in it.
    pub(super) fn push(
        &mut self,
        tokens: &mut Tokenizer<'_>,
        record: &mut Record<'_>,
        path: Path<'_>,
    ) -> Result<bool, Flaw> {
        self.objects += 1;
        let (mut misfit, mut taken) = (false, 0);
        // Where to say which member came.
        let mut before = None;
        let mut guess = self.first;
        let mut more = tokens.open(b'}')?;
        self.empty |= !more;
        while more {
            let expected = self.members.get(guess).is_some_and(|member| tokens.expected_key(&member.spelled));
            let at = if expected { guess } else { self.look_up(tokens, record, path, before, &mut misfit)? };
            if let (Some(member), Some(field)) = (self.members.get_mut(at), self.fields.get(at)) {
                (before, guess) = (Some(at), member.next);
                if member.seen == self.objects {
                    tokens.skip()?;
                    if record.fault("the key occurs twice", false) {
                        record.within(field.name());
                        misfit = true;
                    }
                } else {
                    member.seen = self.objects;
                    taken += 1;
                    if member.node.push(tokens, record, path.then(field.name()))? {
                        record.within(field.name());
                        misfit = true;
                    }
                }
            }
            more = tokens.more(b'}')?;
        }
        if taken < self.members.len() {
            misfit |= self.push_missing(record);
        }
        Ok(misfit)
    }

    /// The member of the next key, which is not the expected one; of a key that there is no member of, takes the value.
    #[inline(never)]
    fn look_up(
        &mut self,
        tokens: &mut Tokenizer<'_>,
        record: &mut Record<'_>,
        path: Path<'_>,
        before: Option<usize>,
        misfit: &mut bool,
    ) -> Result<usize, Flaw> {
        let key = tokens.key()?;
        let Some(at) = self.by_name.get(key).copied() else {
            let name = key.to_owned();
            *misfit |= record.unknown(name, tokens, path)?;
            return Ok(usize::MAX);
        };
        match before {
            None => self.first = at,
            Some(before) => {
                if let Some(member) = self.members.get_mut(before) {
                    member.next = at;
                }
            }
        }
        Ok(at)
    }

    /// Nulls for the members that the last object lacks.
    pub(super) fn push_missing(&mut self, record: &mut Record<'_>) -> bool {
        let mut misfit = false;
        for (member, field) in self.members.iter_mut().zip(&self.fields) {
            if member.seen != self.objects && member.node.push_null(record, "missing") {
                record.within(field.name());
                misfit = true;
            }
        }
        misfit
    }

    /// A value for the only member, which is no object's; begins an object for it.
    pub(super) fn push_only(&mut self, tokens: &mut Tokenizer<'_>, record: &mut Record<'_>) -> Result<bool, Flaw> {
        self.objects += 1;
        let (Some(member), Some(field)) = (self.members.first_mut(), self.fields.first()) else {
            return Err(tokens.flaw("internal error: there is no column for the value"));
        };
        member.seen = self.objects;
        let misfit = member.node.push(tokens, record, Path::default().then(field.name()))?;
        if misfit {
            record.within(field.name());
        }
        Ok(misfit)
    }

    pub(super) fn count(&self) -> usize {
        self.members.len()
    }

    /// Which member a key is.
    pub(super) fn place(&self, key: &str) -> Option<usize> {
        self.by_name.get(key).copied()
    }

    /// The values of all members, if they all are doubles. After as many were appended to each, [`Self::appended`] is due.
    pub(super) fn doubles(&mut self) -> Option<Vec<&mut Vec<f64>>> {
        self.members.iter_mut().map(|member| member.node.doubles()).collect()
    }

    /// So many objects were begun that had all members.
    pub(super) fn appended(&mut self, count: usize) {
        self.objects += count as u64;
        for member in &mut self.members {
            member.seen = self.objects;
            member.node.appended(count);
        }
    }

    pub(super) fn pad(&mut self) {
        self.objects += 1;
        self.members.iter_mut().for_each(|member| member.node.pad());
    }

    /// Has all members have `len` values.
    pub(super) fn settle(&mut self, len: usize) {
        self.members.iter_mut().for_each(|member| member.node.settle(len));
        self.objects = self.objects.max(self.before + len as u64);
    }

    /// Objects begun since the last batch.
    pub(super) fn len(&self) -> usize {
        usize::try_from(self.objects - self.before).unwrap_or(usize::MAX)
    }

    /// Whether there was any object.
    pub(super) fn any(&self) -> bool {
        self.objects > 0
    }

    /// Whether any object had no members at all.
    pub(super) fn any_empty(&self) -> bool {
        self.empty
    }

    /// Per member, whether any object had it.
    pub(super) fn seen(&self) -> impl Iterator<Item = bool> {
        self.members.iter().map(|member| member.seen > 0)
    }

    pub(super) fn finish(&mut self) -> Result<(&Fields, Vec<ArrayRef>), ArrowError> {
        self.before = self.objects;
        let columns = self.members.iter_mut().map(|member| member.node.finish()).collect::<Result<_, _>>()?;
        Ok((&self.fields, columns))
    }
}
