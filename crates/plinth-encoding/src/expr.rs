//! The predicates a scan evaluates: boolean logic over comparisons we run on encoded data, and opaque deterministic
//! functions of columns, which over a dictionary run once per distinct value.
//!
//! Engines translate their own expressions into these; nothing here knows an engine. Comparisons follow SQL: a null
//! operand makes the answer unknown. Floats compare in IEEE 754's total order, as Arrow's kernels do.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray};

use crate::key_set::KeySet;
use crate::pattern::Pattern;

/// A column, or a field inside struct columns, by name from the outside in.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Path(Arc<[String]>);

impl Path {
    /// A top-level column.
    pub fn column(name: impl Into<String>) -> Self {
        Self(Arc::from([name.into()]))
    }

    /// A path from its parts, outermost first.
    pub fn new(parts: impl IntoIterator<Item = String>) -> Self {
        Self(parts.into_iter().collect())
    }

    /// The names, outermost first.
    pub fn parts(&self) -> &[String] {
        &self.0
    }

    /// This path with one more field name.
    #[must_use]
    pub fn child(&self, name: impl Into<String>) -> Self {
        Self(self.0.iter().cloned().chain([name.into()]).collect())
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("."))
    }
}

impl From<&str> for Path {
    fn from(name: &str) -> Self {
        Self::column(name)
    }
}

/// A constant to compare with, in the physical terms of the column it is compared with.
#[derive(Clone, Debug, PartialEq)]
pub enum Scalar {
    /// For booleans.
    Bool(bool),
    /// For integers, dates, times, timestamps, durations (in the column's own unit) and decimals (unscaled, at the
    /// column's own scale).
    Int(i128),
    /// For floats of any width; a float column's values convert to `f64` without loss.
    Float(f64),
    /// For text, binaries and fixed-size binaries.
    Bytes(Arc<[u8]>),
}

/// A comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum CompareOp {
    Eq,
    NotEq,
    Lt,
    LtEq,
    Gt,
    GtEq,
}

/// A predicate over the columns of a file.
#[derive(Clone, Debug)]
pub enum Expr {
    /// True, false or unknown for every row.
    Literal(Option<bool>),
    /// A column against a constant.
    Compare {
        /// The left side.
        column: Path,
        /// The comparison.
        op: CompareOp,
        /// The right side.
        value: Scalar,
    },
    /// A column against a list of constants, none of them null (`x IN (1, NULL)` is `x = 1 OR NULL`).
    In {
        /// The left side.
        column: Path,
        /// The right side.
        values: Vec<Scalar>,
    },
    /// A column of integers of at most 64 bits against the keys of a join's other side. Of others it may be true, too: it has no negation.
    Keys {
        /// The left side.
        column: Path,
        /// The right side.
        keys: Arc<KeySet>,
    },
    /// Whether the column is null; never unknown.
    IsNull(Path),
    /// The negation; unknown stays unknown.
    Not(Box<Expr>),
    /// True if all are, false if any is false.
    And(Vec<Expr>),
    /// True if any is, false if all are false.
    Or(Vec<Expr>),
    /// Anything else.
    Function(Function),
}

/// A deterministic boolean function of some columns.
#[derive(Clone, Debug)]
pub struct Function {
    /// Its arguments, in the order `evaluate` receives them.
    pub columns: Vec<Path>,
    /// What it computes.
    pub function: Arc<dyn ColumnFunction>,
}

impl Function {
    /// Its truth value for each of `rows` rows.
    ///
    /// # Errors
    /// If it fails for a row, or answers more or fewer.
    pub fn call(&self, columns: &[ArrayRef], rows: usize) -> Result<BooleanArray, String> {
        let answers = self.function.evaluate(columns)?;
        if answers.len() == rows {
            Ok(answers)
        } else {
            Err(format!("{} answered {} rows of {rows}", self.function.name(), answers.len()))
        }
    }

    /// Its answer for `null`, an array of one null.
    ///
    /// # Errors
    /// If it fails for it.
    pub fn of_null(&self, null: ArrayRef) -> Result<Option<bool>, String> {
        let answer = self.call(&[null], 1)?;
        Ok(answer.is_valid(0).then(|| answer.value(0)))
    }
}

/// A deterministic function from the values of columns to a truth value for each row.
///
/// It must treat each row on its own: the scan calls it with the rows of a block, or with the distinct values of a
/// dictionary followed by one null, and relies on equal arguments giving equal answers.
pub trait ColumnFunction: fmt::Debug + Any + Send + Sync {
    /// How `EXPLAIN` shows it.
    fn name(&self) -> String;

    /// The truth value of each row. `columns` are arrays of equal length, typed as the scan emits them. An error
    /// means that at least one row fails; the scan narrows it down and raises it only if a surviving row fails.
    fn evaluate(&self, columns: &[ArrayRef]) -> Result<BooleanArray, String>;

    /// The pattern, if it is a function of one column that is true for the values of text which are of it, false for others and
    /// unknown for null, or the other way round, which the boolean says: blocks of text are then asked as they are encoded. Values of
    /// dictionaries it is asked about itself.
    fn pattern(&self) -> Option<(Pattern, bool)> {
        None
    }

    /// Whether it is known to answer as another function does: the scans of one query then share what was computed over
    /// a dictionary. (`other as &dyn Any` can be downcast.)
    fn same_as(&self, _other: &dyn ColumnFunction) -> bool {
        false
    }
}

impl Expr {
    /// That a column of text or binaries begins with these bytes.
    pub fn starts_with(column: &Path, prefix: &[u8]) -> Self {
        let compare =
            |op, value: &[u8]| Self::Compare { column: column.clone(), op, value: Scalar::Bytes(Arc::from(value)) };
        let from = compare(CompareOp::GtEq, prefix);
        // What is greater than all that begin so: its last byte that can grow, grown.
        let Some(last) = prefix.iter().rposition(|&byte| byte != u8::MAX) else { return from };
        let mut end = prefix[..=last].to_vec();
        end[last] += 1;
        Self::And(vec![from, compare(CompareOp::Lt, &end)])
    }

    /// The columns it mentions, each once, in order of first mention.
    pub fn columns(&self) -> Vec<Path> {
        let mut found = Vec::new();
        self.visit_columns(&mut |path| {
            if !found.contains(path) {
                found.push(path.clone());
            }
        });
        found
    }

    fn visit_columns(&self, visit: &mut impl FnMut(&Path)) {
        match self {
            Self::Literal(_) => {}
            Self::Compare { column, .. }
            | Self::In { column, .. }
            | Self::Keys { column, .. }
            | Self::IsNull(column) => visit(column),
            Self::Not(inner) => inner.visit_columns(visit),
            Self::And(parts) | Self::Or(parts) => parts.iter().for_each(|part| part.visit_columns(visit)),
            Self::Function(function) => function.columns.iter().for_each(visit),
        }
    }
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let joined = |parts: &[Expr], word: &str| parts.iter().map(|p| format!("({p})")).collect::<Vec<_>>().join(word);
        match self {
            Self::Literal(None) => f.write_str("NULL"),
            Self::Literal(Some(value)) => write!(f, "{value}"),
            Self::Compare { column, op, value } => write!(f, "{column} {op} {value}"),
            Self::In { column, values } => {
                write!(f, "{column} IN (")?;
                for (i, value) in values.iter().take(5).enumerate() {
                    write!(f, "{}{value}", if i > 0 { ", " } else { "" })?;
                }
                if values.len() > 5 {
                    write!(f, ", and {} more", values.len() - 5)?;
                }
                f.write_str(")")
            }
            Self::Keys { column, keys } => {
                let (least, greatest) = keys.bounds();
                write!(f, "{column} IN (keys from {least} to {greatest})")
            }
            Self::IsNull(column) => write!(f, "{column} IS NULL"),
            Self::Not(inner) => write!(f, "NOT ({inner})"),
            Self::And(parts) => f.write_str(&joined(parts, " AND ")),
            Self::Or(parts) => f.write_str(&joined(parts, " OR ")),
            Self::Function(function) => f.write_str(&function.function.name()),
        }
    }
}

impl fmt::Display for CompareOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Eq => "=",
            Self::NotEq => "<>",
            Self::Lt => "<",
            Self::LtEq => "<=",
            Self::Gt => ">",
            Self::GtEq => ">=",
        })
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => write!(f, "{value}"),
            Self::Int(value) => write!(f, "{value}"),
            Self::Float(value) => write!(f, "{value}"),
            Self::Bytes(value) => write!(f, "'{}'", String::from_utf8_lossy(value)),
        }
    }
}

impl From<i64> for Scalar {
    fn from(value: i64) -> Self {
        Self::Int(value.into())
    }
}

impl From<f64> for Scalar {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}

impl From<bool> for Scalar {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<&str> for Scalar {
    fn from(value: &str) -> Self {
        Self::Bytes(value.as_bytes().into())
    }
}

/// Starts a predicate on a column: `col("CounterID").eq(62)`.
pub fn col(name: &str) -> ColumnExpr {
    ColumnExpr(Path::column(name))
}

/// A column waiting for its comparison; see [`col`].
#[derive(Clone, Debug)]
pub struct ColumnExpr(Path);

impl ColumnExpr {
    /// A field of this struct column.
    #[must_use]
    pub fn field(self, name: &str) -> Self {
        Self(self.0.child(name))
    }

    fn compare(self, op: CompareOp, value: impl Into<Scalar>) -> Expr {
        Expr::Compare { column: self.0, op, value: value.into() }
    }

    /// `column = value`
    pub fn eq(self, value: impl Into<Scalar>) -> Expr {
        self.compare(CompareOp::Eq, value)
    }

    /// `column <> value`
    pub fn not_eq(self, value: impl Into<Scalar>) -> Expr {
        self.compare(CompareOp::NotEq, value)
    }

    /// `column < value`
    pub fn lt(self, value: impl Into<Scalar>) -> Expr {
        self.compare(CompareOp::Lt, value)
    }

    /// `column <= value`
    pub fn lt_eq(self, value: impl Into<Scalar>) -> Expr {
        self.compare(CompareOp::LtEq, value)
    }

    /// `column > value`
    pub fn gt(self, value: impl Into<Scalar>) -> Expr {
        self.compare(CompareOp::Gt, value)
    }

    /// `column >= value`
    pub fn gt_eq(self, value: impl Into<Scalar>) -> Expr {
        self.compare(CompareOp::GtEq, value)
    }

    /// `column IN (values)`
    pub fn is_in(self, values: impl IntoIterator<Item = Scalar>) -> Expr {
        Expr::In { column: self.0, values: values.into_iter().collect() }
    }

    /// `column IS NULL`
    pub fn is_null(self) -> Expr {
        Expr::IsNull(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_prefix_is_tight() {
        let column = Path::from("x");
        let end = |prefix: &[u8]| match Expr::starts_with(&column, prefix) {
            Expr::And(both) => match both.last() {
                Some(Expr::Compare { op: CompareOp::Lt, value: Scalar::Bytes(end), .. }) => Some(end.to_vec()),
                other => panic!("{other:?}"),
            },
            _ => None,
        };
        assert_eq!(end(b"abc"), Some(b"abd".to_vec()));
        assert_eq!(end(&[1, 255, 255]), Some(vec![2]));
        assert_eq!(end(&[255]), None);
        assert_eq!(end(b""), None);
    }
}
