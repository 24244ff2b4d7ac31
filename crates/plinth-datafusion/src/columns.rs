//! How one file answers for the columns of its table.

use std::sync::Arc;

use arrow_schema::{DataType, FieldRef, Schema, SchemaRef};
use datafusion_common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion_common::{DataFusionError, Result, ScalarValue};
use datafusion_datasource::TableSchema;
use datafusion_functions::core::getfield::GetFieldFunc;
use datafusion_physical_expr::ScalarFunctionExpr;
use datafusion_physical_expr::expressions::{Column, Literal};
use datafusion_physical_expr_common::physical_expr::PhysicalExpr;
use plinth_encoding::expr::Path;

/// The columns of a table as one of its files has them: stored in the file, or constant in it (missing columns are
/// null, partition columns have one value a file).
#[derive(Clone, Debug)]
pub(crate) struct FileColumns {
    table: SchemaRef,
    /// One entry a column of the table; `None` where the file stores it.
    constants: Arc<[Option<ScalarValue>]>,
}

impl PartialEq for FileColumns {
    /// Whether expressions bind to the two files in the same way.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.table, &other.table) && self.constants == other.constants
    }
}

/// A stored column, or a field inside stored struct columns, that an expression reads.
#[derive(Clone, Debug)]
pub(crate) struct Leaf {
    pub(crate) path: Path,
    /// As the table types it; nullable, because a scan may evaluate functions on a null it made up.
    pub(crate) field: FieldRef,
}

impl FileColumns {
    /// Matches a file's columns to a table's by name.
    pub(crate) fn new(table: &TableSchema, file: &Schema, partition_values: &[ScalarValue]) -> Result<Self> {
        let stored = table.file_schema().fields().len();
        let stores = |i: usize, name: &str| {
            // Most often the file's columns are the table's, in the same order.
            file.fields().get(i).is_some_and(|field| field.name() == name) || file.column_with_name(name).is_some()
        };
        let constants = table.table_schema().fields().iter().enumerate().map(|(i, field)| {
            if i < stored {
                return match stores(i, field.name()) {
                    true => Ok(None),
                    false => ScalarValue::try_from(field.data_type()).map(Some),
                };
            }
            partition_values.get(i - stored).cloned().map(Some).ok_or_else(|| {
                DataFusionError::Internal(format!("column {:?} has no value for this file", field.name()))
            })
        });
        Ok(Self { table: Arc::clone(table.table_schema()), constants: constants.collect::<Result<_>>()? })
    }

    /// What a column is in this file: its constant, or `None` if it is stored.
    fn constant(&self, column: &Column) -> Result<Option<&ScalarValue>> {
        match self.constants.get(column.index()) {
            Some(constant) => Ok(constant.as_ref()),
            None => Err(DataFusionError::Internal(format!(
                "column {}@{} is not one of the table's {}",
                column.name(),
                column.index(),
                self.constants.len()
            ))),
        }
    }

    /// The stored column or struct field that an expression is, if it is one.
    pub(crate) fn leaf(&self, expr: &Arc<dyn PhysicalExpr>) -> Option<Leaf> {
        if let Some(column) = expr.downcast_ref::<Column>() {
            if self.constant(column).ok()?.is_some() {
                return None;
            }
            let field = self.table.fields().get(column.index())?;
            let path = Path::column(field.name());
            return Some(Leaf { path, field: Arc::new(field.as_ref().clone().with_nullable(true)) });
        }
        let (base, names) = field_access(expr)?;
        let mut leaf = self.leaf(base)?;
        for name in names {
            let DataType::Struct(fields) = leaf.field.data_type() else { return None };
            let (_, field) = fields.find(&name)?;
            leaf = Leaf { path: leaf.path.child(name), field: Arc::new(field.as_ref().clone().with_nullable(true)) };
        }
        Some(leaf)
    }

    /// Whether an expression reads nothing that is stored, so it has one value in this file.
    pub(crate) fn is_constant(&self, expr: &Arc<dyn PhysicalExpr>) -> Result<bool> {
        let mut constant = true;
        expr.apply(|node| {
            if let Some(column) = node.downcast_ref::<Column>()
                && self.constant(column)?.is_none()
            {
                constant = false;
                return Ok(TreeNodeRecursion::Stop);
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(constant)
    }

    /// Rewrites expressions of the table's columns into expressions of a batch of leaves.
    ///
    /// No leaf lies inside another: where an expression wants a struct and another one of its fields, both read the
    /// struct.
    pub(crate) fn bind(&self, exprs: &[Arc<dyn PhysicalExpr>]) -> Result<Bound> {
        let mut leaves: Vec<Leaf> = Vec::new();
        for expr in exprs {
            expr.apply(|node| {
                let Some(leaf) = self.leaf(node) else { return Ok(TreeNodeRecursion::Continue) };
                if !leaves.iter().any(|other| other.path == leaf.path) {
                    leaves.push(leaf);
                }
                Ok(TreeNodeRecursion::Jump)
            })?;
        }
        let overlapping: Vec<String> = leaves
            .iter()
            .filter(|leaf| leaves.iter().any(|other| other.path != leaf.path && overlap(&leaf.path, &other.path)))
            .filter_map(|leaf| leaf.path.parts().first().cloned())
            .collect();
        if !overlapping.is_empty() {
            let root = |leaf: &Leaf| leaf.path.parts().first().cloned().unwrap_or_default();
            leaves.retain(|leaf| !overlapping.contains(&root(leaf)));
            for name in overlapping {
                if leaves.iter().any(|leaf| leaf.path == Path::column(name.as_str())) {
                    continue;
                }
                let field = self.table.field_with_name(&name)?.clone().with_nullable(true);
                leaves.push(Leaf { path: Path::column(name), field: Arc::new(field) });
            }
        }
        let exprs = exprs
            .iter()
            .map(|expr| {
                Arc::clone(expr)
                    .transform_down(|node| {
                        if let Some(leaf) = self.leaf(&node) {
                            return Ok(match leaves.iter().position(|known| known.path == leaf.path) {
                                Some(at) => {
                                    let column: Arc<dyn PhysicalExpr> = Arc::new(Column::new(leaf.field.name(), at));
                                    Transformed::new(column, true, TreeNodeRecursion::Jump)
                                }
                                None => Transformed::no(node),
                            });
                        }
                        if let Some(column) = node.downcast_ref::<Column>()
                            && let Some(value) = self.constant(column)?
                        {
                            let literal: Arc<dyn PhysicalExpr> = Arc::new(Literal::new(value.clone()));
                            return Ok(Transformed::new(literal, true, TreeNodeRecursion::Jump));
                        }
                        Ok(Transformed::no(node))
                    })
                    .data()
            })
            .collect::<Result<_>>()?;
        Ok(Bound { leaves, exprs })
    }
}

/// Expressions over a batch whose columns are `leaves`, in that order.
#[derive(Clone, Debug)]
pub(crate) struct Bound {
    pub(crate) leaves: Vec<Leaf>,
    pub(crate) exprs: Vec<Arc<dyn PhysicalExpr>>,
}

impl Bound {
    /// The schema of the batch.
    pub(crate) fn schema(&self) -> Schema {
        Schema::new(self.leaves.iter().map(|leaf| Arc::clone(&leaf.field)).collect::<Vec<_>>())
    }
}

/// `get_field(base, 'a', 'b')` as its base and names.
fn field_access(expr: &Arc<dyn PhysicalExpr>) -> Option<(&Arc<dyn PhysicalExpr>, Vec<String>)> {
    let call = ScalarFunctionExpr::try_downcast_func::<GetFieldFunc>(expr.as_ref())?;
    let (base, names) = call.args().split_first()?;
    let names = names.iter().map(|name| match name.downcast_ref::<Literal>()?.value() {
        ScalarValue::Utf8(Some(name)) | ScalarValue::LargeUtf8(Some(name)) | ScalarValue::Utf8View(Some(name)) => {
            Some(name.clone())
        }
        _ => None,
    });
    Some((base, names.collect::<Option<_>>()?))
}

/// Whether one of the two is the other or a field somewhere inside it.
fn overlap(a: &Path, b: &Path) -> bool {
    let shared = a.parts().len().min(b.parts().len());
    a.parts().get(..shared) == b.parts().get(..shared)
}
