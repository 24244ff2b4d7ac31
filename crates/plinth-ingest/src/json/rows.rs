//! Records to columns.

use std::ops::Range;

use arrow_array::ArrayRef;
use arrow_array::builder::StringViewBuilder;
use arrow_schema::{ArrowError, Field, Fields, SchemaRef};

use super::Flaw;
use super::alike::Runs;
use super::members::Members;
use super::node::{LEVELS, width};
use super::record::{Fault, Path, Record, Rules, UnknownKeys};
use super::walk::{Kind, Walk};
use super::{EXTRA, VALUE};
use crate::open::Unknown;

/// Values that the lists and maps of one record may hold at least, counted as [`width`] does. A list of empty objects is
/// short as text, however many fields each of them has as a struct.
const RECORD_VALUES: usize = 64 << 20;

/// Collects records.
pub(crate) struct Rows {
    members: Members,
    rules: Rules,
    /// Whether records that are no objects go to the only column.
    bare: bool,
    /// The place of the column for what the other columns lack, and its values.
    extra: Option<(usize, StringViewBuilder)>,
    extra_text: String,
    rows: usize,
    /// Values that the lists and maps of a record may hold. Lists of plain values fit whatever records may be as text.
    most: usize,
    /// Values in the lists and maps of these rows.
    listed: usize,
    unknown: UnknownKeys,
}

impl Rows {
    /// For records of so many bytes. Or the name of the column whose type can't be read from text.
    pub(crate) fn new(schema: &SchemaRef, rules: Rules, record: usize) -> Result<Self, String> {
        // Even nulls of such a type would be too large.
        if let Some(field) = schema.fields().iter().find(|f| width(f.data_type()) > RECORD_VALUES) {
            return Err(field.name().clone());
        }
        let extra = match rules.unknown {
            Unknown::Extra => schema.fields().iter().position(|field| field.name() == EXTRA),
            _ => None,
        };
        let others = schema.fields().iter().enumerate().filter(|(at, _)| extra != Some(*at));
        let fields: Fields = others.map(|(_, field)| std::sync::Arc::clone(field)).collect();
        let bare = matches!(fields.as_ref(), [only] if only.name() == VALUE);
        let members = Members::new(&fields, rules.given, LEVELS)?;
        let extra = extra.map(|at| (at, StringViewBuilder::new()));
        let most = record.max(RECORD_VALUES);
        let (extra_text, unknown) = (String::new(), UnknownKeys::default());
        Ok(Self { members, rules, bare, extra, extra_text, rows: 0, most, listed: 0, unknown })
    }

    /// Rows since the last batch.
    pub(crate) fn len(&self) -> usize {
        self.rows
    }

    /// Values in the lists and maps of the rows since the last batch.
    pub(crate) fn listed(&self) -> usize {
        self.listed
    }

    /// Takes a record. Appends a row unless the record is no object, whether it is sound or not.
    pub(crate) fn push(&mut self, walk: &mut Walk<'_>) -> Result<Option<Fault>, Flaw> {
        let object = walk.kind()? == Kind::Object;
        if !object && !self.bare {
            walk.skip()?;
            return Ok(Some(Fault { column: Vec::new(), why: "not a JSON object".into(), misfit: false }));
        }
        self.rows += 1;
        let mut record = Record::new(self.rules, self.most, &mut self.unknown, &mut self.extra_text);
        let taken = match object {
            true => self.members.push(walk, &mut record, Path::default()),
            false => self.members.push_only(walk, &mut record),
        };
        self.listed += self.most - record.room();
        if let Some((_, extra)) = &mut self.extra {
            match record.extra() {
                "" => extra.append_null(),
                text if extra.try_append_value(text).is_ok() => {}
                _ => {
                    extra.append_null();
                    record.fault("its unknown keys are longer than text may be", false);
                }
            }
        }
        let fault = record.into_fault();
        if taken.is_err() {
            self.members.settle(self.rows);
        }
        taken.map(|_| fault)
    }

    /// Takes records that are spelled as the one that was taken last, where that can be told at a glance: at most `most`. Says how
    /// many, and where the next starts.
    pub(crate) fn push_alike(
        &mut self,
        runs: &mut Runs,
        text: &[u8],
        record: Range<usize>,
        limit: usize,
        most: usize,
    ) -> (usize, usize) {
        if self.extra.is_some() {
            return (0, record.end);
        }
        let taken = runs.take(&mut self.members, text, record, limit, most);
        self.rows += taken.0;
        taken
    }

    /// Per column, whether any record had it.
    pub(crate) fn seen(&self) -> Vec<bool> {
        let mut seen: Vec<bool> = self.members.seen().collect();
        if let Some((at, _)) = &self.extra {
            seen.insert((*at).min(seen.len()), true);
        }
        seen
    }

    /// The columns of the rows since the last batch.
    pub(crate) fn finish(&mut self) -> Result<Vec<ArrayRef>, ArrowError> {
        (self.rows, self.listed) = (0, 0);
        let mut columns = self.members.finish()?.1;
        if let Some((at, extra)) = &mut self.extra {
            columns.insert((*at).min(columns.len()), std::sync::Arc::new(extra.finish()));
        }
        Ok(columns)
    }

    /// The keys that the columns lack, met since this was asked last.
    pub(crate) fn take_unknown(&mut self) -> UnknownKeys {
        std::mem::take(&mut self.unknown)
    }
}

/// The column for keys that the others lack.
pub(crate) fn extra_field() -> Field {
    Field::new(EXTRA, arrow_schema::DataType::Utf8View, true)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{Array, BooleanArray};
    use arrow_schema::{DataType, Schema};

    use super::*;
    use crate::json::walk::Tools;

    #[test]
    fn lists_of_wide_values_are_counted_and_bounded() {
        let wide = DataType::Struct((0..99).map(|at| Field::new(format!("f{at}"), DataType::Int8, true)).collect());
        let list = DataType::List(Arc::new(Field::new_list_field(wide, true)));
        let lists = DataType::List(Arc::new(Field::new_list_field(list, true)));
        let schema = Arc::new(Schema::new(vec![Field::new("a", lists, true)]));
        let mut rows = Rows::new(&schema, Rules { given: true, unknown: Unknown::Error }, 1).unwrap();
        let mut tools = Tools::new(100);
        let mut push = |rows: &mut Rows, most| {
            rows.most = most;
            // Two inner lists, three structs of a hundred values each.
            rows.push(&mut Walk::new(r#"{"a":[[{},{}],[null]]}"#, &mut tools, false)).unwrap()
        };
        assert!(push(&mut rows, 302).is_none());
        assert_eq!(rows.listed(), 302);
        let fault = push(&mut rows, 301).unwrap();
        assert_eq!(fault.column, ["a"]);
        assert!(fault.why.contains("too many values") && !fault.misfit, "{fault:?}");
        assert!(push(&mut rows, 302).is_none());
        let column = rows.finish().unwrap().remove(0);
        assert_eq!((column.len(), rows.len(), rows.listed()), (3, 0, 0));
        let keep = BooleanArray::from(vec![true, false, true]);
        let column = arrow_select::filter::filter(&column, &keep).unwrap();
        assert_eq!(column.slice(0, 1).as_ref(), column.slice(1, 1).as_ref());
    }

    #[test]
    fn rows_that_break_off_anywhere_are_rows_all_the_same() {
        let field = |name: &str, data_type| Field::new(name, data_type, true);
        let inner = DataType::Struct(vec![field("x", DataType::Int64), field("y", DataType::Utf8View)].into());
        let list = |item: DataType| DataType::List(Arc::new(Field::new_list_field(item, true)));
        let pair =
            DataType::Struct(vec![Field::new("key", DataType::Utf8View, false), field("value", inner.clone())].into());
        let map = DataType::Map(Arc::new(Field::new("entries", pair, false)), false);
        let fixed = DataType::FixedSizeList(Arc::new(Field::new_list_field(inner.clone(), true)), 2);
        let fields = vec![
            field("a", list(list(inner.clone()))),
            field("m", list(map)),
            field("f", list(fixed)),
            field("s", inner),
            field("d", DataType::Float64),
        ];
        let schema = Arc::new(Schema::new(fields));
        let good = concat!(
            r#"{"a":[[{"x":1,"y":"p"},{"x":2}],[null,{}],[]],"m":[{"k":{"x":3},"l":null},{}],"f":[[{"x":4},{"y":"q"}],null],"#,
            r#""s":{"y":"r","x":5},"d":1.5}"#
        );
        let mut rows = Rows::new(&schema, Rules { given: true, unknown: Unknown::Error }, 1).unwrap();
        let mut tools = Tools::new(100);
        let mut keep = Vec::new();
        // Without its first bracket it is no row.
        for end in 1..=good.len() {
            keep.push(rows.push(&mut Walk::new(&good[..end], &mut tools, false)).is_ok());
            let odd = format!("{}?", &good[..end]);
            keep.push(rows.push(&mut Walk::new(&odd, &mut tools, false)).is_ok());
        }
        assert_eq!(keep.iter().filter(|keep| **keep).count(), 2);
        let columns = rows.finish().unwrap();
        let keep = BooleanArray::from(keep);
        for column in columns {
            let kept = arrow_select::filter::filter(&column, &keep).unwrap();
            assert_eq!(kept.slice(0, 1).as_ref(), kept.slice(1, 1).as_ref());
            assert_eq!((kept.len(), kept.null_count()), (2, 0));
        }
    }
}
