//! Expressions over columns that may be codes.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, Schema, SchemaRef};
use datafusion_common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion_common::{DataFusionError, Result};
use datafusion_physical_expr::expressions::Column;
use datafusion_physical_expr_common::physical_expr::{PhysicalExpr, is_volatile};
use plinth_core::sync::lock;
use plinth_exec::ExecError;
use plinth_exec::memo::Memo;
use plinth_exec::vector::{Coded, Vector};
use plinth_io::MemoryBudget;

use crate::decimals::Arithmetic;
use crate::error::from_exec;

/// Results are kept once there were as many rows as one of so many of a dictionary's values: a place for each of these has its cost.
const FEW: usize = 16;

/// Nanoseconds a row, about what it takes to look a kept result up.
const SLOW: u128 = 20;

/// An expression: a column is passed on as it is, all else is evaluated by the engine on values.
#[derive(Clone, Debug)]
pub(crate) enum Evaluated {
    /// A column.
    Column(usize),
    /// Anything else.
    Computed {
        /// The expression, over the columns that it mentions.
        expr: Arc<dyn PhysicalExpr>,
        /// These, among all.
        columns: Vec<usize>,
        /// Theirs.
        schema: SchemaRef,
        /// Its results' type, if one column tells them: then each code has one result.
        of_one: Option<DataType>,
        /// The same as arithmetic of decimals, if it is that.
        arithmetic: Option<Arithmetic>,
        /// Whether nothing of the columns is kept in the results: these are of fixed width.
        is_fixed: bool,
    },
}

impl Evaluated {
    /// An expression over columns of a schema.
    pub(crate) fn new(expr: &Arc<dyn PhysicalExpr>, schema: &Schema) -> Result<Self> {
        if let Some(column) = expr.downcast_ref::<Column>() {
            return Ok(Self::Column(column.index()));
        }
        let mut columns: Vec<usize> = Vec::new();
        let renumber = |node: Arc<dyn PhysicalExpr>| {
            let Some(column) = node.downcast_ref::<Column>() else { return Ok(Transformed::no(node)) };
            let at = columns.iter().position(|known| *known == column.index()).unwrap_or_else(|| {
                columns.push(column.index());
                columns.len() - 1
            });
            Ok(Transformed::yes(Arc::new(Column::new(column.name(), at)) as Arc<dyn PhysicalExpr>))
        };
        let expr = Arc::clone(expr).transform_down(renumber).data()?;
        let schema = Arc::new(schema.project(&columns)?);
        let of_one = columns.len() == 1 && !is_volatile(&expr);
        let data_type = expr.data_type(&schema)?;
        let is_fixed = data_type.is_primitive() || data_type == DataType::Boolean;
        let of_one = of_one.then_some(data_type);
        let arithmetic = Arithmetic::of(&expr, &schema)?;
        Ok(Self::Computed { expr, columns, schema, of_one, arithmetic, is_fixed })
    }

    /// The expression's values for some rows.
    pub(crate) fn evaluate(&self, vectors: &[Vector], rows: usize, memos: &Memos) -> Result<Vector> {
        let vector = |column: usize| {
            vectors
                .get(column)
                .ok_or_else(|| DataFusionError::Internal(format!("there is no column {column} to evaluate")))
        };
        match self {
            Self::Column(column) => vector(*column).cloned(),
            Self::Computed { expr, columns, schema, of_one, arithmetic, is_fixed } => {
                let values = |arrays: Vec<ArrayRef>, rows: usize| {
                    let options = RecordBatchOptions::new().with_row_count(Some(rows));
                    let batch = RecordBatch::try_new_with_options(Arc::clone(schema), arrays, &options)?;
                    expr.evaluate(&batch)?.into_array(rows)
                };
                let codes = match (of_one, columns.as_slice()) {
                    (Some(result), [column]) => match vector(*column)? {
                        Vector::Codes { ids, nulls, dictionary } => Some((result, ids, nulls.as_ref(), dictionary)),
                        Vector::Array(_) | Vector::Narrow(_) => None,
                    },
                    _ => None,
                };
                if let Some((_, ids, nulls, dictionary)) = codes
                    && let Some(memo) = memos.of(expr, dictionary)
                {
                    let function = |array: ArrayRef| {
                        let rows = array.len();
                        values(vec![array], rows).map_err(ExecError::source)
                    };
                    if let Some(found) = memo.apply(ids, nulls, function).map_err(from_exec)? {
                        return Ok(found);
                    }
                }
                let array = |&column: &usize| {
                    let vector = vector(column)?;
                    if *is_fixed { vector.lent() } else { vector.array() }.map_err(from_exec)
                };
                if let Some(arithmetic) = arithmetic {
                    let vectors = columns.iter().map(|&column| vector(column)).collect::<Result<Vec<_>>>()?;
                    if let Some(found) = arithmetic.evaluate(&vectors, rows) {
                        return Ok(found);
                    }
                }
                let arrays = columns.iter().map(array).collect::<Result<Vec<ArrayRef>>>()?;
                let begun = Instant::now();
                let found = values(arrays, rows)?;
                if let Some((result, _, _, dictionary)) = codes {
                    memos.took(expr, result, dictionary, rows, begun.elapsed());
                }
                Ok(Vector::Array(found))
            }
        }
    }
}

/// Results of expressions of one column for the values of dictionaries, for all threads of a run.
pub(crate) struct Memos {
    budget: Arc<MemoryBudget>,
    /// None once memory is short.
    kept: Mutex<Option<ByDictionary>>,
}

/// By expression and identity of the dictionary.
type ByDictionary = HashMap<(Arc<dyn PhysicalExpr>, usize), Kept>;

/// What is kept of an expression and a dictionary.
enum Kept {
    /// Nothing yet: rows it was computed for, and how long that took.
    Tried(usize, Duration),
    /// Nothing: it takes no longer than to look its results up, or there is no memory.
    Nothing,
    Results(Arc<Memo>),
}

impl fmt::Debug for Memos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memos").finish_non_exhaustive()
    }
}

impl Memos {
    pub(crate) fn new(budget: &Arc<MemoryBudget>) -> Self {
        Self { budget: Arc::clone(budget), kept: Mutex::new(Some(HashMap::new())) }
    }

    /// Forgets all results and keeps no others: memory is short.
    pub(crate) fn give_way(&self) {
        *lock(&self.kept) = None;
    }

    /// Where results for a dictionary's values are kept, if they are.
    fn of(&self, expr: &Arc<dyn PhysicalExpr>, of: &Arc<dyn Coded>) -> Option<Arc<Memo>> {
        match lock(&self.kept).as_ref()?.get(&(Arc::clone(expr), of.identity()))? {
            Kept::Results(memo) => Some(Arc::clone(memo)),
            Kept::Tried(..) | Kept::Nothing => None,
        }
    }

    /// Decides, by how long an expression took for some rows, whether results are kept of those that come.
    fn took(&self, expr: &Arc<dyn PhysicalExpr>, result: &DataType, of: &Arc<dyn Coded>, rows: usize, time: Duration) {
        let mut kept = lock(&self.kept);
        let Some(kept) = kept.as_mut() else { return };
        let known = kept.entry((Arc::clone(expr), of.identity())).or_insert(Kept::Tried(0, Duration::ZERO));
        let Kept::Tried(all, taken) = known else { return };
        (*all, *taken) = (*all + rows, *taken + time);
        if *all == 0 || *all < of.len() / FEW {
            return;
        }
        let is_slow = taken.as_nanos() / *all as u128 >= SLOW;
        let memo = if is_slow { Memo::new(of, result, &self.budget).ok() } else { None };
        *known = memo.map_or(Kept::Nothing, |memo| Kept::Results(Arc::new(memo)));
    }
}
