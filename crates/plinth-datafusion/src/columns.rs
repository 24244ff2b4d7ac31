//! How one file answers for the columns of its table.

use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion_common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion_common::{DataFusionError, Result, ScalarValue};
use datafusion_datasource::TableSchema;
use datafusion_functions::core::getfield::GetFieldFunc;
use datafusion_physical_expr::ScalarFunctionExpr;
use datafusion_physical_expr::expressions::{Column, Literal};
use datafusion_physical_expr_common::physical_expr::PhysicalExpr;
use plinth_encoding::expr::Path;
use plinth_table::can_widen;

/// The columns of a table as one of its files has them: stored in the file, perhaps in a narrower type, or constant in it
/// (missing columns are null, partition columns have one value a file).
#[derive(Clone, Debug)]
pub(crate) struct FileColumns {
    table: SchemaRef,
    /// One entry a column of the table.
    columns: Arc<[FileColumn]>,
}

/// A column of the table in one file.
#[derive(Clone, Debug, PartialEq)]
enum FileColumn {
    /// Stored in the table's type.
    Stored,
    /// Stored in a type whose values are all of the table's, too.
    Narrower(DataType),
    /// Has this value in every row.
    Constant(ScalarValue),
}

impl PartialEq for FileColumns {
    /// Whether expressions bind to the two files in the same way.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.table, &other.table) && self.columns == other.columns
    }
}

/// A stored column, or a field inside stored struct columns, that an expression reads.
#[derive(Clone, Debug)]
pub(crate) struct Leaf {
    pub(crate) path: Path,
    /// As the table types it; nullable, because a scan may evaluate functions on a null it made up.
    pub(crate) field: FieldRef,
    /// The type it has in the file.
    pub(crate) stored: DataType,
}

/// What a column or a field of one is in a file.
enum Found {
    Stored(Leaf),
    /// A field of this type that the file's struct lacks: null.
    Missing(DataType),
}

impl FileColumns {
    /// Matches a file's columns to a table's by name.
    pub(crate) fn new(table: &TableSchema, file: &Schema, partition_values: &[ScalarValue]) -> Result<Self> {
        let stored = table.file_schema().fields().len();
        let find = |i: usize, name: &str| {
            // Most often the file's columns are the table's, in the same order.
            let here = file.fields().get(i).filter(|field| field.name() == name);
            here.map(AsRef::as_ref).or_else(|| file.column_with_name(name).map(|(_, field)| field))
        };
        let columns = table.table_schema().fields().iter().enumerate().map(|(i, field)| {
            if i >= stored {
                return partition_values.get(i - stored).cloned().map(FileColumn::Constant).ok_or_else(|| {
                    DataFusionError::Internal(format!("column {:?} has no value for this file", field.name()))
                });
            }
            match find(i, field.name()).map(Field::data_type) {
                Some(here) if here == field.data_type() => Ok(FileColumn::Stored),
                None | Some(DataType::Null) => ScalarValue::try_from(field.data_type()).map(FileColumn::Constant),
                Some(here) if can_widen(here, field.data_type()) => Ok(FileColumn::Narrower(here.clone())),
                Some(here) => Err(DataFusionError::Plan(format!(
                    "column {:?} is {here} in a file, and not all of those are a {}, which the table says it is",
                    field.name(),
                    field.data_type(),
                ))),
            }
        });
        Ok(Self { table: Arc::clone(table.table_schema()), columns: columns.collect::<Result<_>>()? })
    }

    /// What a column is in this file.
    fn column(&self, column: &Column) -> Result<&FileColumn> {
        self.columns.get(column.index()).ok_or_else(|| {
            DataFusionError::Internal(format!(
                "column {}@{} is not one of the table's {}",
                column.name(),
                column.index(),
                self.columns.len()
            ))
        })
    }

    /// The value a column has in every row of this file; `None` if it is stored.
    fn constant(&self, column: &Column) -> Result<Option<&ScalarValue>> {
        Ok(match self.column(column)? {
            FileColumn::Constant(value) => Some(value),
            FileColumn::Stored | FileColumn::Narrower(_) => None,
        })
    }

    /// The stored column or struct field that an expression is, if it is one.
    pub(crate) fn leaf(&self, expr: &Arc<dyn PhysicalExpr>) -> Option<Leaf> {
        match self.find(expr)? {
            Found::Stored(leaf) => Some(leaf),
            Found::Missing(_) => None,
        }
    }

    /// The null that an expression is, if it is a struct field that the file lacks.
    fn missing(&self, expr: &Arc<dyn PhysicalExpr>) -> Result<Option<ScalarValue>> {
        match self.find(expr) {
            Some(Found::Missing(data_type)) => ScalarValue::try_from(&data_type).map(Some),
            _ => Ok(None),
        }
    }

    fn find(&self, expr: &Arc<dyn PhysicalExpr>) -> Option<Found> {
        if let Some(column) = expr.downcast_ref::<Column>() {
            return self.whole(column.index()).map(Found::Stored);
        }
        let (base, names) = field_access(expr)?;
        let mut found = self.find(base)?;
        for name in names {
            let data_type = match &found {
                Found::Stored(leaf) => leaf.field.data_type(),
                Found::Missing(data_type) => data_type,
            };
            let DataType::Struct(fields) = data_type else { return None };
            let field = Arc::clone(fields.find(&name)?.1);
            let here = match &found {
                Found::Stored(Leaf { stored: DataType::Struct(fields), .. }) => {
                    fields.find(&name).map(|(_, field)| field.data_type().clone())
                }
                _ => None,
            };
            found = match (found, here) {
                (Found::Stored(leaf), Some(stored)) if !stored.is_null() => {
                    let field = Arc::new(field.as_ref().clone().with_nullable(true));
                    Found::Stored(Leaf { path: leaf.path.child(name), field, stored })
                }
                _ => Found::Missing(field.data_type().clone()),
            };
        }
        Some(found)
    }

    /// A column of the table that the file stores.
    pub(crate) fn whole(&self, index: usize) -> Option<Leaf> {
        let field = self.table.fields().get(index)?;
        let stored = match self.columns.get(index)? {
            FileColumn::Stored => field.data_type().clone(),
            FileColumn::Narrower(stored) => stored.clone(),
            FileColumn::Constant(_) => return None,
        };
        let nullable = Arc::new(field.as_ref().clone().with_nullable(true));
        Some(Leaf { path: Path::column(field.name()), field: nullable, stored })
    }

    /// Whether an expression reads nothing that is stored, so it has one value in this file.
    pub(crate) fn is_constant(&self, expr: &Arc<dyn PhysicalExpr>) -> Result<bool> {
        let mut constant = true;
        expr.apply(|node| {
            if self.missing(node)?.is_some() {
                return Ok(TreeNodeRecursion::Jump);
            }
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
                let leaf = match self.find(node) {
                    Some(Found::Stored(leaf)) => leaf,
                    Some(Found::Missing(_)) => return Ok(TreeNodeRecursion::Jump),
                    None => return Ok(TreeNodeRecursion::Continue),
                };
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
                leaves.extend(self.whole(self.table.index_of(&name)?));
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
                        if let Some(null) = self.missing(&node)? {
                            let literal: Arc<dyn PhysicalExpr> = Arc::new(Literal::new(null));
                            return Ok(Transformed::new(literal, true, TreeNodeRecursion::Jump));
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
