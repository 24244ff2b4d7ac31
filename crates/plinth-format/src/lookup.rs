//! Questions to one column: which of its values match, how many rows hold them, and which.
//!
//! ```no_run
//! # fn main() -> plinth_format::Result<()> {
//! let file = plinth_format::File::open("hits.plinth")?;
//! let urls = file.column("URL")?.dictionary()?;
//! let matches = urls.prefix("http://example.")?;
//! println!("{} values in {} rows", matches.codes().len(), matches.count()?);
//! for row in matches.rows()? {
//!     println!("{}", row?);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! The dictionaries turn the question into sets of codes. What rows hold them is read from postings, if the column has some,
//! or the codes of all rows are tested as they are packed, whichever costs less ([`Access`]). Rows whose values are in no
//! dictionary, because it did not pay any more, are looked through by a scan.

mod rows;

use std::any::Any;
use std::fmt;
use std::ops::{Bound, Range, RangeBounds};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray};
use arrow_buffer::BooleanBuffer;
use arrow_row::{RowConverter, SortField};
use arrow_schema::DataType;
use plinth_encoding::dictionary::{Dictionary as Values, keys};
use plinth_encoding::expr::{ColumnFunction, CompareOp, Expr, Function, Path, Scalar};
use plinth_encoding::postings::{Codes, Postings};
use plinth_encoding::{Column as ColumnValues, EncodingError, Physical, ValueSet};

pub use crate::access::Access;
use crate::answers::answers;
use crate::assemble::leaf;
use crate::error::{FormatError, Result};
use crate::file::File;
use crate::scan::ScanBuilder;
use crate::scan::postings::{cost, pays, scan_cost};
use crate::scan::source::ColumnCodes;
use crate::types::Node;
pub use rows::Rows;

/// Runs of codes whose rows are counted by postings without a look at what a scan would cost: two groups each.
const FEW_RUNS: usize = 4;

/// Bytes of lists that are read without a look at what a scan would cost.
const SMALL: u64 = 64 << 10;

/// A column or struct field of a file, to be asked; see [`File::column`].
#[derive(Clone, Debug)]
pub struct Column {
    file: File,
    path: Path,
    node: Node,
}

/// A column's postings, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexReport {
    /// Rows in its lists: all but those that are null.
    pub rows: u64,
    /// Bytes of the lists and their directory.
    pub bytes: u64,
}

/// A column's distinct values, to be asked. Cheap to clone and to share between threads.
#[derive(Clone, Debug)]
pub struct Dictionary(Arc<Asked>);

#[derive(Debug)]
struct Asked {
    column: Column,
    /// One after the other in the file: at least one.
    dictionaries: Vec<Listed>,
    /// Row groups whose values are in none of these.
    elsewhere: Vec<Range<usize>>,
    access: Access,
}

/// One of a column's dictionaries.
#[derive(Clone, Debug)]
struct Listed {
    values: Arc<Values>,
    postings: Option<Arc<Postings>>,
}

/// The values that match a question, and the rows that hold them.
#[derive(Clone, Debug)]
pub struct Matches {
    of: Arc<Asked>,
    question: Question,
    codes: ColumnCodes,
}

#[derive(Clone, Debug)]
enum Question {
    Equals(Scalar),
    Prefix(Arc<[u8]>),
    Range(Bound<Scalar>, Bound<Scalar>),
    Function(Function),
}

impl File {
    /// A column or struct field, to be asked.
    ///
    /// # Errors
    /// If there is none.
    pub fn column(&self, path: impl Into<Path>) -> Result<Column> {
        let path = path.into();
        let node = self.0.node(&path)?.0.clone();
        Ok(Column { file: self.clone(), path, node })
    }
}

impl Column {
    /// What a scan emits it as.
    pub fn data_type(&self) -> DataType {
        self.node.arrow_type()
    }

    /// Its postings, if it has some.
    ///
    /// # Errors
    /// If they can't be read or are damaged.
    pub fn index(&self) -> Result<Option<IndexReport>> {
        let bytes = self.file.0.stream_meta(self.node.stream)?.postings_bytes();
        let (file, stream) = (&self.file.0, self.node.stream);
        let mut rows = None;
        for dictionary in 0..file.stream_meta(stream)?.dictionaries.len() {
            let postings = file.postings(stream, dictionary)?;
            rows = postings.map(|postings| rows.unwrap_or(0) + postings.rows()).or(rows);
        }
        Ok(rows.map(|rows| IndexReport { rows, bytes }))
    }

    /// Its distinct values.
    ///
    /// # Errors
    /// If it has no dictionary, or that can't be read or is damaged.
    pub fn dictionary(&self) -> Result<Dictionary> {
        let dictionaries = self.listed()?;
        if dictionaries.is_empty() {
            let why = match self.file.0.stream_meta(self.node.stream)?.note.as_str() {
                "" => "its values did not call for one",
                note => note,
            };
            let what = format!(
                "{}: column {} has no dictionary ({why}); ask for its rows with SQL, or import it again with an index on the column",
                self.file.name(),
                self.path
            );
            return Err(FormatError::InvalidArgument(what));
        }
        let chunks = &self.file.0.stream_meta(self.node.stream)?.chunks;
        let mut elsewhere: Vec<Range<usize>> = Vec::new();
        for group in (0..chunks.len()).filter(|&group| chunks[group].dictionary.is_none()) {
            match elsewhere.last_mut() {
                Some(last) if last.end == group => last.end += 1,
                _ => elsewhere.push(group..group + 1),
            }
        }
        Ok(Dictionary(Arc::new(Asked { column: self.clone(), dictionaries, elsewhere, access: Access::Auto })))
    }

    /// Its dictionaries, opened.
    fn listed(&self) -> Result<Vec<Listed>> {
        let (file, stream) = (&self.file.0, self.node.stream);
        let open = |at| {
            let (values, postings) = (Arc::clone(file.dictionary(stream, at)?), file.postings(stream, at)?.cloned());
            Ok(Listed { values, postings })
        };
        (0..file.stream_meta(stream)?.dictionaries.len()).map(open).collect()
    }
}

impl Dictionary {
    /// How to find rows (default: what costs less).
    #[must_use]
    pub fn access(self, access: Access) -> Self {
        let Asked { column, dictionaries, elsewhere, .. } = &*self.0;
        let (column, dictionaries, elsewhere) = (column.clone(), dictionaries.clone(), elsewhere.clone());
        Self(Arc::new(Asked { column, dictionaries, elsewhere, access }))
    }

    /// Values in it: of a column whose first dictionary was full, those of all of its dictionaries, of which several may have
    /// the same.
    pub fn len(&self) -> usize {
        self.0.dictionaries.iter().map(|listed| listed.values.len()).sum()
    }

    /// Whether it has no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value that equals this one, in the physical terms of the column.
    ///
    /// # Errors
    /// If the value is not of the column's kind, or the dictionary can't be read or is damaged.
    pub fn equals(&self, value: impl Into<Scalar>) -> Result<Matches> {
        let value = value.into();
        let physical = self.0.column.node.physical();
        let codes = match keys::from_scalar(physical, &value) {
            Some(key) => self.0.codes(|values| {
                let found = values.find(&key)?;
                Ok(found.map_or_else(Codes::default, |code| Codes::run(code..code + 1)))
            })?,
            // No value of the type, or not even of its kind.
            None => self.0.test(CompareOp::Eq, &value).map(|_| ColumnCodes::default())?,
        };
        Ok(self.matching(Question::Equals(value), codes))
    }

    /// The values that begin with these bytes.
    ///
    /// # Errors
    /// If the column holds neither text nor binaries, or the dictionary can't be read or is damaged.
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Result<Matches> {
        self.0.must_hold_bytes("has no prefixes")?;
        let prefix = prefix.as_ref();
        let codes = self.0.codes(|values| values.prefix(prefix).map(Codes::run))?;
        Ok(self.matching(Question::Prefix(prefix.into()), codes))
    }

    /// The values in a range, in the physical terms of the column.
    ///
    /// # Errors
    /// As [`Dictionary::equals`].
    pub fn range(&self, range: impl RangeBounds<Scalar>) -> Result<Matches> {
        let (from, to) = (range.start_bound().cloned(), range.end_bound().cloned());
        let mut codes = self.0.codes(|values| Ok(Codes::run(0..end(values))))?;
        for (op, value) in bounds(&from, &to) {
            let test = self.0.test(op, value)?;
            codes = codes.and(&self.0.codes(|values| Ok(Codes::of(&values.translate(&test)?, end(values))))?);
        }
        Ok(self.matching(Question::Range(from, to), codes))
    }

    /// The values that a function of their bytes holds for. Each is asked once.
    ///
    /// # Errors
    /// If the column holds neither text nor binaries, or the dictionary can't be read or is damaged.
    pub fn matches(&self, holds: impl Fn(&[u8]) -> bool + Send + Sync + 'static) -> Result<Matches> {
        self.0.must_hold_bytes("can't be matched")?;
        let function = Function { columns: vec![self.0.column.path.clone()], function: Arc::new(Holds(holds)) };
        self.function(function)
    }

    /// The values that a function of this column holds for.
    ///
    /// # Errors
    /// If it fails on one of the values, or the dictionary can't be read or is damaged.
    pub fn function(&self, function: Function) -> Result<Matches> {
        let codes = self.0.codes(|values| {
            let mask = answers(&self.0.column.node, values, &function)?.map_err(EncodingError::Function)?;
            Ok(Codes::of(&ValueSet::of_codes(mask.is_true), end(values)))
        })?;
        Ok(self.matching(Question::Function(function), codes))
    }

    fn matching(&self, question: Question, codes: ColumnCodes) -> Matches {
        Matches { of: Arc::clone(&self.0), question, codes }
    }
}

/// The comparisons that make up a range.
fn bounds<'a>(from: &'a Bound<Scalar>, to: &'a Bound<Scalar>) -> impl Iterator<Item = (CompareOp, &'a Scalar)> {
    let from = match from {
        Bound::Included(value) => Some((CompareOp::GtEq, value)),
        Bound::Excluded(value) => Some((CompareOp::Gt, value)),
        Bound::Unbounded => None,
    };
    let to = match to {
        Bound::Included(value) => Some((CompareOp::LtEq, value)),
        Bound::Excluded(value) => Some((CompareOp::Lt, value)),
        Bound::Unbounded => None,
    };
    from.into_iter().chain(to)
}

/// How many values a dictionary has.
fn end(values: &Values) -> u32 {
    u32::try_from(values.len()).unwrap_or(u32::MAX)
}

impl Asked {
    fn fail(&self, error: EncodingError) -> FormatError {
        FormatError::at(self.column.file.name(), format!("column {}: dictionary", self.column.path), error)
    }

    fn test(&self, op: CompareOp, value: &Scalar) -> Result<ValueSet> {
        ValueSet::compare(self.column.node.physical(), op, value)
            .map_err(|e| FormatError::InvalidArgument(format!("column {}: {e}", self.column.path)))
    }

    /// The codes that each dictionary has for a question.
    fn codes(&self, ask: impl Fn(&Values) -> plinth_encoding::Result<Codes>) -> Result<ColumnCodes> {
        let codes = self.dictionaries.iter().map(|listed| ask(&listed.values).map_err(|e| self.fail(e)));
        Ok(ColumnCodes(codes.collect::<Result<_>>()?))
    }

    /// The postings of those dictionaries that have some of the codes; `None` if one has none.
    fn listed<'a>(&'a self, codes: &'a ColumnCodes) -> Option<Vec<(&'a Postings, &'a Codes)>> {
        let asked =
            self.dictionaries.iter().zip(&codes.0).map(|(listed, codes)| Some((&**listed.postings.as_ref()?, codes)));
        let listed: Option<Vec<_>> = asked.collect();
        listed.map(|mut listed| {
            listed.retain(|(_, codes)| !codes.is_empty());
            listed
        })
    }

    fn must_hold_bytes(&self, what: &str) -> Result<()> {
        match self.column.node.physical() {
            Physical::Bytes { .. } | Physical::Fixed { .. } => Ok(()),
            _ => {
                let name = self.column.node.type_name();
                Err(FormatError::InvalidArgument(format!("column {}: a {name} {what}", self.column.path)))
            }
        }
    }
}

impl Matches {
    /// The codes of the values that match, in each of the dictionaries.
    pub fn codes(&self) -> &ColumnCodes {
        &self.codes
    }

    /// The values that match, in order: those of the dictionaries, and those of rows that have none.
    ///
    /// # Errors
    /// If the file can't be read or is damaged.
    pub fn values(&self) -> Result<ArrayRef> {
        let Asked { column, dictionaries, elsewhere, .. } = &*self.of;
        let gather = |(listed, codes): (&Listed, &Codes)| {
            let codes: Vec<u32> = codes.iter().collect();
            let values = listed.values.gather(&codes)?;
            leaf(&column.node, ColumnValues { len: codes.len(), values, nulls: None })
        };
        let known = dictionaries.iter().zip(&self.codes.0).map(|asked| gather(asked).map_err(|e| self.of.fail(e)));
        let known = known.collect::<Result<Vec<_>>>()?;
        if let ([only], true) = (known.as_slice(), elsewhere.is_empty()) {
            return Ok(Arc::clone(only));
        }
        let converter = RowConverter::new(vec![SortField::new(column.data_type())]).map_err(|e| arrow(&e))?;
        let mut distinct = std::collections::BTreeSet::new();
        let mut add = |values: ArrayRef| -> Result<()> {
            let rows = converter.convert_columns(&[values]).map_err(|e| arrow(&e))?;
            distinct.extend(rows.iter().map(|row| row.owned()));
            Ok(())
        };
        known.into_iter().try_for_each(&mut add)?;
        for groups in elsewhere {
            for batch in self.scan().project(vec![column.path.clone()]).row_groups(groups.clone()).build()? {
                add(Arc::clone(batch?.column(0)))?;
            }
        }
        let columns = converter.convert_rows(distinct.iter().map(|row| row.row())).map_err(|e| arrow(&e))?;
        columns.into_iter().next().ok_or_else(|| FormatError::InvalidArgument("no values".into()))
    }

    /// How many values match: those of the dictionaries, and those of rows that have none.
    ///
    /// # Errors
    /// As [`Matches::values`].
    pub fn distinct(&self) -> Result<u64> {
        let only = self.of.elsewhere.is_empty() && self.of.dictionaries.len() == 1;
        if only { Ok(self.codes.len()) } else { Ok(self.values()?.len() as u64) }
    }

    /// How many rows hold one of the values.
    ///
    /// # Errors
    /// If the file can't be read or is damaged, or postings are asked for where there are none.
    pub fn count(&self) -> Result<u64> {
        let (access, listed) = (self.of.access, self.of.listed(&self.codes));
        // The directory knows how many rows adjacent codes have.
        let runs = self.codes.0.iter().map(|codes| codes.runs().len()).sum::<usize>();
        let known = access == Access::Auto && listed.is_some() && runs <= FEW_RUNS;
        let by = if known { Access::Postings } else { self.choose()? };
        let (Access::Postings, Some(listed)) = (by, listed) else { return self.count_in(0..usize::MAX) };
        let mut count = 0;
        for (postings, codes) in listed {
            count += postings.count(codes).map_err(|e| self.of.fail(e))?;
        }
        for groups in &self.of.elsewhere {
            count += self.count_in(groups.clone())?;
        }
        Ok(count)
    }

    fn count_in(&self, groups: Range<usize>) -> Result<u64> {
        let all = self.of.column.file.row_groups().len();
        let mut scan = self.scan().project(Vec::new()).row_groups(groups.start..groups.end.min(all)).build()?;
        let mut count = 0;
        while let Some(chunk) = scan.next_chunk()? {
            count += chunk.rows as u64;
        }
        Ok(count)
    }

    /// The numbers of the rows that hold one of the values, from 0, in order.
    ///
    /// # Errors
    /// If the file can't be read or is damaged, or postings are asked for where there are none.
    pub fn rows(&self) -> Result<Rows> {
        rows::of(self)
    }

    /// How rows are found: by postings or by a scan.
    ///
    /// # Errors
    /// If postings are asked for where there are none.
    pub fn choose(&self) -> Result<Access> {
        let Asked { column, access, .. } = &*self.of;
        match (access, self.of.listed(&self.codes)) {
            (Access::Postings, None) => {
                let (file, path) = (column.file.name(), &column.path);
                let what =
                    format!("{file}: column {path} has no postings; import it again with an index on the column");
                Err(FormatError::InvalidArgument(what))
            }
            (Access::Scan, _) | (_, None) => Ok(Access::Scan),
            (Access::Postings, Some(_)) => Ok(Access::Postings),
            (Access::Auto, Some(listed)) => {
                let cost = cost(&listed);
                // Whatever a scan costs, so little costs less.
                if cost.bytes <= SMALL {
                    return Ok(Access::Postings);
                }
                let scan = scan_cost(&column.file.0, column.node.stream, 0..column.file.row_groups().len())?;
                Ok(if pays(&cost, scan) { Access::Postings } else { Access::Scan })
            }
        }
    }

    /// The question as a predicate, for scans.
    pub fn predicate(&self) -> Expr {
        let path = &self.of.column.path;
        let compare =
            |(op, value): (CompareOp, &Scalar)| Expr::Compare { column: path.clone(), op, value: value.clone() };
        match &self.question {
            Question::Equals(value) => compare((CompareOp::Eq, value)),
            Question::Prefix(prefix) => Expr::starts_with(path, prefix),
            Question::Range(Bound::Unbounded, Bound::Unbounded) => Expr::Not(Box::new(Expr::IsNull(path.clone()))),
            Question::Range(from, to) => Expr::And(bounds(from, to).map(compare).collect()),
            Question::Function(function) => Expr::Function(function.clone()),
        }
    }

    /// A scan of the rows, which tests them.
    fn scan(&self) -> ScanBuilder {
        self.of.column.file.scan().filter(self.predicate()).access(Access::Scan)
    }
}

/// A function of bytes as one of arrays. Null matches nothing.
struct Holds<F>(F);

impl<F> fmt::Debug for Holds<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Holds")
    }
}

impl<F: Fn(&[u8]) -> bool + Any + Send + Sync> ColumnFunction for Holds<F> {
    fn name(&self) -> String {
        "matches".to_owned()
    }

    fn evaluate(&self, columns: &[ArrayRef]) -> Result<BooleanArray, String> {
        let [array] = columns else { return Err("one column is expected".to_owned()) };
        let holds = &self.0;
        let answers: BooleanBuffer = match array.data_type() {
            DataType::Utf8View => {
                array.as_string_view().iter().map(|v| v.is_some_and(|v| holds(v.as_bytes()))).collect()
            }
            DataType::BinaryView => array.as_binary_view().iter().map(|v| v.is_some_and(holds)).collect(),
            DataType::FixedSizeBinary(_) => array.as_fixed_size_binary().iter().map(|v| v.is_some_and(holds)).collect(),
            other => return Err(format!("{other} has no bytes to match")),
        };
        Ok(BooleanArray::new(answers, None))
    }
}

/// An error of Arrow's about values it made itself.
fn arrow(error: &arrow_schema::ArrowError) -> FormatError {
    FormatError::InvalidArgument(error.to_string())
}
