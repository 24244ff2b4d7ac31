//! What CREATE TABLE may say of a table and its columns.
//!
//! The engine reads past much that it does not do. A table is to be what its statement says, so all of that is refused by name.

use datafusion::common::{Result, exec_err};
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    self, ColumnDef, ColumnOption, ColumnPolicy, ConstraintCharacteristics, CreateTableOptions, Expr, Ident,
    IndexColumn, IndexOption, IndexType, NullsDistinctOption, PrimaryKeyConstraint, TableConstraint, UniqueConstraint,
};

use super::given::has_values_within;
use crate::names::normal;

/// Refuses what a table would not have.
///
/// # Errors
/// If a statement makes a table and says something of it that is not done.
pub(crate) fn refuse_options(statement: &Statement) -> Result<()> {
    match statement {
        Statement::Statement(inner) => match inner.as_ref() {
            ast::Statement::CreateTable(create) => {
                let statement = format!("CREATE TABLE {}", create.name);
                if create.table_options != CreateTableOptions::None {
                    return exec_err!("{statement}: {}: is not supported", create.table_options.to_string().trim());
                }
                // The engine would give these the types of the columns.
                if !create.columns.is_empty() && create.query.as_ref().is_some_and(|query| has_values_within(query)) {
                    return exec_err!(
                        "{statement} (columns) AS a query with VALUES within: not supported; CREATE TABLE, then INSERT INTO it"
                    );
                }
                create.columns.iter().try_for_each(|column| check_column(&statement, column))?;
                create.constraints.iter().try_for_each(|constraint| check_constraint(&statement, constraint))
            }
            _ => Ok(()),
        },
        Statement::CreateExternalTable(create) => {
            let statement = format!("CREATE EXTERNAL TABLE {}", create.name);
            create.columns.iter().try_for_each(|column| check_column(&statement, column))?;
            create.constraints.iter().try_for_each(|constraint| check_constraint(&statement, constraint))
        }
        Statement::Explain(explain) => refuse_options(&explain.statement),
        _ => Ok(()),
    }
}

fn check_column(statement: &str, column: &ColumnDef) -> Result<()> {
    let ColumnDef { name, options, data_type, .. } = column;
    if *data_type == ast::DataType::Uuid {
        return exec_err!("{statement}: column {name}: UUID is kept by a table of a folder (--db DIR); write TEXT");
    }
    for option in options {
        let what = match &option.option {
            ColumnOption::Null | ColumnOption::NotNull | ColumnOption::Default(_) => continue,
            ColumnOption::PrimaryKey(key) => {
                check_key(statement, key)?;
                continue;
            }
            ColumnOption::Unique(unique) => {
                check_unique(statement, unique)?;
                continue;
            }
            ColumnOption::Materialized(_) => "MATERIALIZED",
            ColumnOption::Ephemeral(_) => "EPHEMERAL",
            ColumnOption::Alias(_) => "ALIAS",
            ColumnOption::ForeignKey(_) => "REFERENCES",
            ColumnOption::Check(_) => "CHECK (a table of a folder, --db DIR, keeps it)",
            ColumnOption::CharacterSet(_) => "CHARACTER SET",
            ColumnOption::Collation(_) => "COLLATE (text is ordered by its bytes)",
            ColumnOption::Comment(_) => "COMMENT",
            ColumnOption::OnUpdate(_) => "ON UPDATE",
            ColumnOption::Generated { generation_expr: Some(_), .. } => "GENERATED (a view computes columns)",
            ColumnOption::Generated { .. } => {
                "GENERATED AS IDENTITY (CREATE SEQUENCE s and DEFAULT nextval('s') number rows)"
            }
            ColumnOption::Options(_) => "OPTIONS",
            ColumnOption::Identity(_) => "IDENTITY (CREATE SEQUENCE s and DEFAULT nextval('s') number rows)",
            ColumnOption::OnConflict(_) => "ON CONFLICT (INSERT says that)",
            ColumnOption::Policy(ColumnPolicy::MaskingPolicy(_)) => "MASKING POLICY",
            ColumnOption::Policy(ColumnPolicy::ProjectionPolicy(_)) => "PROJECTION POLICY",
            ColumnOption::Tags(_) => "TAG",
            ColumnOption::Srid(_) => "SRID",
            ColumnOption::Invisible => "INVISIBLE",
            ColumnOption::DialectSpecific(tokens) => {
                let words: Vec<String> = tokens.iter().map(ToString::to_string).collect();
                let words = words.join(" ");
                let hint = if words.to_ascii_uppercase().starts_with("AUTO") {
                    " (CREATE SEQUENCE s and DEFAULT nextval('s') number rows)"
                } else {
                    ""
                };
                return exec_err!("{statement}: column {name}: {words}{hint} is not supported");
            }
        };
        return exec_err!("{statement}: column {name}: {what} is not supported");
    }
    Ok(())
}

fn check_constraint(statement: &str, constraint: &TableConstraint) -> Result<()> {
    let what = match constraint {
        TableConstraint::PrimaryKey(key) => return check_key(statement, key),
        TableConstraint::Unique(unique) => return check_unique(statement, unique),
        TableConstraint::ForeignKey(_) => "FOREIGN KEY",
        TableConstraint::Check(_) => "CHECK (a table of a folder, --db DIR, keeps it)",
        TableConstraint::Index(_) => "INDEX (CREATE INDEX makes one)",
        TableConstraint::FulltextOrSpatial(_) => "FULLTEXT and SPATIAL",
        TableConstraint::PrimaryKeyUsingIndex(_) | TableConstraint::UniqueUsingIndex(_) => "USING INDEX",
    };
    exec_err!("{statement}: {what} is not supported")
}

fn check_key(statement: &str, key: &PrimaryKeyConstraint) -> Result<()> {
    let PrimaryKeyConstraint { name: _, index_name, index_type, columns, index_options, characteristics } = key;
    let statement = format!("{statement}: PRIMARY KEY");
    check_index(&statement, index_name.as_ref(), index_type.as_ref(), columns, index_options)?;
    check_characteristics(&statement, characteristics.as_ref())
}

fn check_unique(statement: &str, unique: &UniqueConstraint) -> Result<()> {
    let UniqueConstraint {
        name: _,
        index_name,
        index_type_display: _,
        index_type,
        columns,
        index_options,
        characteristics,
        nulls_distinct,
    } = unique;
    let statement = format!("{statement}: UNIQUE");
    check_index(&statement, index_name.as_ref(), index_type.as_ref(), columns, index_options)?;
    if *nulls_distinct == NullsDistinctOption::NotDistinct {
        return exec_err!("{statement}: NULLS NOT DISTINCT is not supported");
    }
    check_characteristics(&statement, characteristics.as_ref())
}

fn check_index(
    statement: &str,
    name: Option<&Ident>,
    using: Option<&IndexType>,
    columns: &[IndexColumn],
    options: &[IndexOption],
) -> Result<()> {
    if let Some(name) = name {
        return exec_err!("{statement}: the name {name} is not supported (CREATE INDEX takes one)");
    }
    if let Some(using) = using.filter(|using| **using != IndexType::BTree) {
        return exec_err!("{statement}: USING {using} is not supported (BTREE is)");
    }
    for IndexColumn { column, operator_class } in columns {
        let order = &column.options;
        if order.asc == Some(false) || order.nulls_first.is_some() || operator_class.is_some() {
            return exec_err!("{statement}: {column}: an order or operators of a column is not supported");
        }
    }
    match options.first() {
        Some(option) => exec_err!("{statement}: {option} is not supported"),
        None => Ok(()),
    }
}

/// Rows are checked as each statement ends.
fn check_characteristics(statement: &str, characteristics: Option<&ConstraintCharacteristics>) -> Result<()> {
    match characteristics {
        Some(asked) => exec_err!("{statement}: {asked} is not supported (each statement is checked as it ends)"),
        None => Ok(()),
    }
}

/// Takes `CLUSTER BY a, b` out of a CREATE TABLE, which DataFusion does not know: the columns.
pub(crate) fn take_cluster(statement: &mut Statement) -> Result<Vec<String>> {
    let Statement::Statement(statement) = statement else { return Ok(Vec::new()) };
    let ast::Statement::CreateTable(create) = statement.as_mut() else { return Ok(Vec::new()) };
    let Some(columns) = create.cluster_by.take() else { return Ok(Vec::new()) };
    let (ast::WrappedCollection::NoWrapping(columns) | ast::WrappedCollection::Parentheses(columns)) = columns;
    let mut names = Vec::new();
    let mut waiting: Vec<Expr> = columns.into_iter().rev().collect();
    while let Some(column) = waiting.pop() {
        match column {
            Expr::Identifier(name) => names.push(normal(&name)),
            Expr::Nested(inner) => waiting.push(*inner),
            Expr::Tuple(inner) => waiting.extend(inner.into_iter().rev()),
            other => return exec_err!("CREATE TABLE {}: CLUSTER BY {other}: is no column", create.name),
        }
    }
    Ok(names)
}

/// Takes TEMP out of a CREATE TABLE, which DataFusion refuses: whether it was there.
pub(crate) fn take_temporary(statement: &mut Statement) -> bool {
    let Statement::Statement(statement) = statement else { return false };
    let ast::Statement::CreateTable(create) = statement.as_mut() else { return false };
    std::mem::take(&mut create.temporary)
}
