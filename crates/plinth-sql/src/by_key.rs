//! A row by its key, past the planner: `SELECT a, b FROM t WHERE id = 5` of a writable table whose key is `id`, or that has an index of
//! `id`, where few rows have the value.
//!
//! Planning takes many times as long as finding the rows. A statement that is anything more, or whose values are not plainly those of the
//! key's types, is planned as ever.

use std::path::Path;
use std::sync::{Arc, LazyLock};

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::datasource::TableProvider;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::sql::parser::Statement;
use datafusion::sql::planner::object_name_to_table_reference;
use datafusion::sql::sqlparser::ast::{
    self, BinaryOperator, CastKind, Expr, Ident, ObjectName, Query, Select, SelectItem, SetExpr, TableFactor,
    TableWithJoins, Value, ValueWithSpan,
};
use plinth_datafusion::StoreTable;
use plinth_profile::Profiler;
use plinth_rowstore::Table;

use crate::database::file_of;
use crate::names::normal;
use crate::params::fitting;
use crate::{Params, Session, depth};

/// The least of such statements, which others are compared with: a clause that it does not have is none of theirs.
static LEAST: LazyLock<Option<Least>> = LazyLock::new(|| {
    let Statement::Statement(statement) = depth::parse("SELECT a FROM t WHERE a = 1").ok()?.pop()? else { return None };
    let ast::Statement::Query(query) = *statement else { return None };
    let SetExpr::Select(select) = query.body.as_ref() else { return None };
    let factor = select.from.first()?.relation.clone();
    Some(Least { select: select.as_ref().clone(), factor, query: *query })
});

/// So many rows are read with all of their columns; beyond, a plan that reads those that are asked for is as good.
const FEW: usize = 32;

struct Least {
    query: Query,
    select: Select,
    factor: TableFactor,
}

/// A statement that asks for the rows with some values.
struct Asked<'a> {
    table: &'a ObjectName,
    /// What columns are qualified with.
    name: Ident,
    items: &'a [SelectItem],
    /// Columns and what each is equal to.
    values: Vec<(&'a Ident, Given<'a>)>,
}

/// A value, and the type that a statement gives it, as EXECUTE does of a statement whose PREPARE names types.
struct Given<'a> {
    value: &'a Value,
    cast: Option<DataType>,
}

impl Session {
    /// The rows of a statement that asks for those with some values, of the table's key or of an index; `None` if it is to be planned.
    pub(crate) async fn row_by_key(
        &self,
        statement: &Statement,
        params: &Params,
    ) -> Result<Option<SendableRecordBatchStream>> {
        // What is recorded are the operators of a plan.
        match Asked::of(statement).filter(|_| !Profiler::current().is_recording()) {
            Some(asked) => self.row_of(&asked, params, |folder| Table::is_table(folder)).await,
            None => Ok(None),
        }
    }

    /// The same of a statement that has just come, EXECUTE too, if the table is open: to find the rows takes less than to hand the statement
    /// to another thread. `None` as well where something is wrong, which is told when it is planned.
    pub(crate) async fn row_at_once(
        &self,
        statement: &Statement,
        params: &Params,
    ) -> Option<SendableRecordBatchStream> {
        let execution = self.execution(statement);
        let apart = execution.as_ref().and_then(|execution| execution.apart());
        let (statement, params) = match (&execution, &apart) {
            (Some(_), Some((query, values))) => (query, values),
            (Some(_), None) => return None,
            (None, _) => (statement, params),
        };
        let asked = Asked::of(statement)?;
        self.kept.grants.statement(statement).ok()?;
        self.stores.begin_statement();
        self.row_of(&asked, params, |folder| self.stores.has_open(folder)).await.ok()?
    }

    /// The rows that are asked for of a table, if it is in a folder that may be opened.
    async fn row_of(
        &self,
        asked: &Asked<'_>,
        params: &Params,
        may_be_opened: impl Fn(&Path) -> bool,
    ) -> Result<Option<SendableRecordBatchStream>> {
        let reference = object_name_to_table_reference(asked.table.clone(), true)?;
        // Any other is opened by the planner alone: files, for which that takes time.
        let folder = self.file_tables(&reference)?.and_then(|database| file_of(database.folder()?, reference.table()));
        if !folder.is_some_and(|file| may_be_opened(&file.with_extension(""))) {
            return Ok(None);
        }
        let Ok(table) = self.context.table_provider(reference).await else { return Ok(None) };
        let Some(table) = (table.as_ref() as &dyn std::any::Any).downcast_ref::<StoreTable>() else { return Ok(None) };
        let Some((columns, schema)) = asked.columns(&table.schema()) else { return Ok(None) };
        let Some(values) = asked.values(table, params)? else { return Ok(None) };
        let Some(found) = table.few(&values, FEW)? else { return Ok(None) };
        let found = RecordBatch::try_new(Arc::clone(&schema), found.project(&columns)?.columns().to_vec())?;
        let rows = futures::stream::iter((found.num_rows() > 0).then_some(Ok(found)));
        Ok(Some(Box::pin(RecordBatchStreamAdapter::new(schema, rows))))
    }
}

impl<'a> Asked<'a> {
    fn of(statement: &'a Statement) -> Option<Self> {
        let least = LEAST.as_ref()?;
        let Statement::Statement(statement) = statement else { return None };
        let ast::Statement::Query(query) = statement.as_ref() else { return None };
        let SetExpr::Select(select) = query.body.as_ref() else { return None };
        let [TableWithJoins { relation, joins }] = select.from.as_slice() else { return None };
        let TableFactor::Table { name, alias, .. } = relation else { return None };
        if !joins.is_empty() || alias.as_ref().is_some_and(|alias| !alias.columns.is_empty() || alias.at.is_some()) {
            return None;
        }
        let mut values = Vec::new();
        equalities(select.selection.as_ref()?, &mut values)?;
        // All that was not looked at is as it is in the least of them.
        let others = |query: &Query| Query { body: least.query.body.clone(), ..query.clone() };
        let rest = Select {
            projection: least.select.projection.clone(),
            from: least.select.from.clone(),
            selection: least.select.selection.clone(),
            ..select.as_ref().clone()
        };
        let mut factor = relation.clone();
        if let (TableFactor::Table { name, alias, .. }, TableFactor::Table { name: least, .. }) =
            (&mut factor, &least.factor)
        {
            *alias = None;
            name.clone_from(least);
        }
        if others(query) != least.query || rest != least.select || factor != least.factor {
            return None;
        }
        let name = match alias {
            Some(alias) => alias.name.clone(),
            None => name.0.last()?.as_ident()?.clone(),
        };
        let TableFactor::Table { name: table, .. } = relation else { return None };
        Some(Self { table, name, items: &select.projection, values })
    }

    /// The values of a table's columns, as a batch of one row.
    fn values(&self, table: &StoreTable, params: &Params) -> Result<Option<RecordBatch>> {
        let schema = table.schema();
        let (mut fields, mut arrays) = (Vec::<Field>::new(), Vec::new());
        for (column, value) in &self.values {
            let Ok(field) = schema.field_with_name(&normal(column)) else { return Ok(None) };
            let data_type = field.data_type();
            let Some(value) = value.plain(data_type, params).filter(|value| !value.is_null()) else { return Ok(None) };
            if fields.iter().any(|other| other.name() == field.name()) {
                return Ok(None);
            }
            fields.push(Field::new(field.name(), data_type.clone(), false));
            arrays.push(value.to_array()?);
        }
        Ok(Some(RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)?))
    }

    /// The columns that are shown, by their numbers, and what they are called.
    fn columns(&self, schema: &SchemaRef) -> Option<(Vec<usize>, SchemaRef)> {
        let (mut columns, mut fields) = (Vec::new(), Vec::<Field>::new());
        for item in self.items {
            let (expr, alias) = match item {
                SelectItem::Wildcard(options) if *options == ast::WildcardAdditionalOptions::default() => {
                    columns.extend(0..schema.fields().len());
                    fields.extend(schema.fields().iter().map(|field| field.as_ref().clone()));
                    continue;
                }
                SelectItem::UnnamedExpr(expr) => (expr, None),
                SelectItem::ExprWithAlias { expr, alias } => (expr, Some(alias)),
                _ => return None,
            };
            let column = schema.index_of(&normal(self.column(expr)?)).ok()?;
            let field = schema.fields().get(column)?.as_ref().clone();
            columns.push(column);
            fields.push(alias.map_or(field.clone(), |alias| field.with_name(normal(alias))));
        }
        // Columns of one name get others, or none at all.
        let unlike = |(at, field): (usize, &Field)| fields.iter().take(at).all(|other| other.name() != field.name());
        fields.iter().enumerate().all(unlike).then(|| (columns, Arc::new(Schema::new(fields.clone()))))
    }

    /// The column that an expression is.
    fn column<'e>(&self, expr: &'e Expr) -> Option<&'e Ident> {
        match expr {
            Expr::Identifier(name) => Some(name),
            Expr::CompoundIdentifier(names) => match names.as_slice() {
                [table, name] if normal(table) == normal(&self.name) => Some(name),
                _ => None,
            },
            _ => None,
        }
    }
}

impl<'a> Given<'a> {
    fn of(expr: &'a Expr) -> Option<Self> {
        match bare(expr) {
            Expr::Value(ValueWithSpan { value, .. }) => Some(Self { value, cast: None }),
            Expr::Cast {
                kind: CastKind::Cast | CastKind::DoubleColon,
                expr,
                data_type,
                array: false,
                format: None,
            } => match bare(expr) {
                Expr::Value(ValueWithSpan { value, .. }) => Some(Self { value, cast: Some(plain_type(data_type)?) }),
                _ => None,
            },
            _ => None,
        }
    }

    /// The value as one of a column's type, if it plainly is one.
    fn plain(&self, column: &DataType, params: &Params) -> Option<ScalarValue> {
        let data_type = self.cast.as_ref().unwrap_or(column);
        let value = match self.value {
            Value::Placeholder(place) => params.plain(place, data_type),
            value => literal(value, data_type),
        }?;
        let alike = data_type == column
            || (data_type.is_integer() && column.is_integer())
            || (data_type.is_string() && column.is_string());
        alike.then(|| fitting(&value, column)).flatten()
    }
}

/// A type of whole numbers or texts that a value is cast to.
fn plain_type(written: &ast::DataType) -> Option<DataType> {
    Some(match written {
        ast::DataType::TinyInt(None) => DataType::Int8,
        ast::DataType::SmallInt(None) | ast::DataType::Int2(None) => DataType::Int16,
        ast::DataType::Int(None) | ast::DataType::Integer(None) | ast::DataType::Int4(None) => DataType::Int32,
        ast::DataType::BigInt(None) | ast::DataType::Int8(None) => DataType::Int64,
        ast::DataType::Text | ast::DataType::Varchar(None) | ast::DataType::String(None) => DataType::Utf8View,
        _ => return None,
    })
}

/// The columns that a condition has equal to values, if it says nothing else.
fn equalities<'a>(condition: &'a Expr, values: &mut Vec<(&'a Ident, Given<'a>)>) -> Option<()> {
    match condition {
        Expr::Nested(inner) => equalities(inner, values),
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
            equalities(left, values)?;
            equalities(right, values)
        }
        Expr::BinaryOp { left, op: BinaryOperator::Eq, right } => match bare(left) {
            Expr::Identifier(name) => {
                values.push((name, Given::of(right)?));
                Some(())
            }
            _ => None,
        },
        _ => None,
    }
}

/// An expression without its parentheses.
fn bare(expr: &Expr) -> &Expr {
    match expr {
        Expr::Nested(inner) => bare(inner),
        other => other,
    }
}

/// A value that is written out, as one of a type of which it plainly is.
fn literal(value: &Value, data_type: &DataType) -> Option<ScalarValue> {
    match value {
        Value::Number(digits, false) if data_type.is_integer() => {
            digits.bytes().all(|digit| digit.is_ascii_digit()).then_some(())?;
            ScalarValue::try_from_string(digits.clone(), data_type).ok()
        }
        Value::SingleQuotedString(text) if data_type.is_string() => {
            ScalarValue::try_from_string(text.clone(), data_type).ok()
        }
        _ => None,
    }
}
