//! What there is: schemas, tables, views, indexes, and the numbers by which the catalog names them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

use arrow_schema::SchemaRef;
use datafusion::catalog::{CatalogProvider, CatalogProviderList};
use datafusion::datasource::TableType;
use datafusion::sql::sqlparser::ast;
use plinth_core::sync::lock;
use plinth_sql::{Statement, key_and_indexes, parse, plinth_files, written};

use super::SCHEMA;
use crate::encode::plain_schema;
use crate::engine;
use crate::users::{Role, User};

/// Numbers below are PostgreSQL's own.
const FIRST_NUMBER: i32 = 16_384;

/// The schema that tables are in unless something else is said.
const PUBLIC: &str = "public";

/// Schemas that have a number in every database of PostgreSQL.
const SCHEMAS: [(&str, i32); 3] = [(SCHEMA, 11), (PUBLIC, 2200), ("information_schema", 13_000)];

/// The number of the user that a session has.
pub(super) const USER: i32 = 10;

/// The numbers of objects by their names, the same for all sessions and as long as the program runs: pools of connections ask one session for
/// a number, and another for what has it. Names that are gone keep theirs.
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    known: Mutex<HashMap<String, i32>>,
}

impl Numbers {
    fn of(&self, name: String) -> i32 {
        let mut known = lock(&self.known);
        let next = i32::try_from(known.len()).ok().and_then(|count| count.checked_add(FIRST_NUMBER));
        *known.entry(name).or_insert(next.unwrap_or(i32::MAX))
    }
}

/// An index of a table; its key is one, too.
#[derive(Clone, Debug)]
pub(super) struct Index {
    pub(super) number: i32,
    /// The number of the constraint that it keeps, of a key.
    pub(super) constraint: Option<i32>,
    pub(super) name: String,
    pub(super) is_unique: bool,
    /// The places of its columns in the table, the first of which is 1.
    pub(super) columns: Vec<i16>,
    pub(super) definition: String,
}

/// A table or a view.
#[derive(Clone, Debug)]
pub(super) struct Relation {
    pub(super) number: i32,
    pub(super) schema: String,
    pub(super) schema_number: i32,
    pub(super) name: String,
    pub(super) columns: SchemaRef,
    /// The query of a view.
    pub(super) view: Option<String>,
    /// How many rows it has, -1 if that is not known.
    pub(super) rows: f64,
    /// The size of its files.
    pub(super) bytes: i64,
    pub(super) indexes: Vec<Index>,
}

impl Relation {
    pub(super) fn key(&self) -> Option<&Index> {
        self.indexes.iter().find(|index| index.constraint.is_some())
    }

    /// The names of an index's columns.
    pub(super) fn columns_of(&self, index: &Index) -> Vec<String> {
        let fields = self.columns.fields();
        let place = |place: &i16| usize::try_from(*place).ok().and_then(|place| fields.get(place.checked_sub(1)?));
        index.columns.iter().filter_map(place).map(|field| field.name().clone()).collect()
    }
}

/// What is told of an object by its number.
#[derive(Clone, Debug, Default)]
pub(super) struct Told {
    pub(super) name: String,
    /// The statement that would make it, or the query of a view.
    pub(super) definition: Option<String>,
    /// The columns of an index.
    pub(super) columns: Vec<String>,
    /// Whether its name alone leads to it.
    pub(super) is_visible: bool,
    /// The size of its files.
    pub(super) bytes: i64,
}

/// What a session has.
#[derive(Debug)]
pub(super) struct Relations {
    /// The catalogs of the session, one of which holds this.
    catalogs: Weak<dyn CatalogProviderList>,
    numbers: Arc<Numbers>,
    pub(super) user: String,
    pub(super) may_write: bool,
    /// What was told last.
    told: Mutex<HashMap<i32, Told>>,
}

impl Relations {
    pub(super) fn new(catalogs: Weak<dyn CatalogProviderList>, numbers: Arc<Numbers>, user: &User) -> Self {
        let may_write = user.role() == Role::Write;
        Self { catalogs, numbers, user: user.name().to_owned(), may_write, told: Mutex::default() }
    }

    fn catalog(&self) -> Option<Arc<dyn CatalogProvider>> {
        self.catalogs.upgrade()?.catalog(engine::CATALOG)
    }

    /// The schemas and their numbers.
    pub(super) fn schemas(&self) -> Vec<(String, i32)> {
        let names = self.catalog().map(|catalog| catalog.schema_names()).unwrap_or_default();
        let names = names.into_iter().filter(|name| name != engine::SCHEMA);
        let mut schemas: Vec<_> = names.map(|name| (name.clone(), self.schema_number(&name))).collect();
        if !schemas.iter().any(|(name, _)| name == "information_schema") {
            schemas.push(("information_schema".to_owned(), self.schema_number("information_schema")));
        }
        schemas.sort();
        schemas
    }

    fn schema_number(&self, name: &str) -> i32 {
        let fixed = SCHEMAS.iter().find(|(known, _)| *known == name);
        fixed.map_or_else(|| self.numbers.of(format!("schema {name}")), |(_, number)| *number)
    }

    fn number(&self, schema: &str, name: &str) -> i32 {
        self.numbers.of(format!("relation {}.{}", written(schema), written(name)))
    }

    /// The number of the database.
    pub(super) fn database(&self) -> i32 {
        self.numbers.of("database".to_owned())
    }

    /// The tables and views, and their keys and indexes.
    pub(super) async fn all(&self) -> Vec<Relation> {
        let mut found = Vec::new();
        let Some(catalog) = self.catalog() else { return found };
        for (schema, schema_number) in self.schemas() {
            let Some(provider) = catalog.schema(&schema) else { continue };
            if schema == SCHEMA || schema == "information_schema" {
                continue;
            }
            for name in provider.table_names() {
                // One that can't be read now is no reason to tell nothing of the others.
                let Ok(Some(table)) = provider.table(&name).await else { continue };
                let is_view = table.table_type() == TableType::View;
                let (key, indexes) = key_and_indexes(&table).unwrap_or_default();
                let (rows, bytes) =
                    plinth_files(&table).map_or((-1.0, 0), |(_, rows, bytes)| (approximate(rows), bytes));
                let mut relation = Relation {
                    rows,
                    bytes: i64::try_from(bytes).unwrap_or(i64::MAX),
                    number: self.number(&schema, &name),
                    schema_number,
                    columns: plain_schema(&table.schema()),
                    view: is_view.then(|| query_of(table.get_table_definition().unwrap_or_default())),
                    indexes: Vec::new(),
                    schema: schema.clone(),
                    name,
                };
                if !key.is_empty() {
                    let index = self.index(&relation, format!("{}_pkey", relation.name), &key, true, true);
                    relation.indexes.push(index);
                }
                for (name, columns, is_unique) in indexes {
                    let index = self.index(&relation, name, &columns, is_unique, false);
                    relation.indexes.push(index);
                }
                found.push(relation);
            }
        }
        found.sort_by(|one, other| (&one.schema, &one.name).cmp(&(&other.schema, &other.name)));
        self.tell(&found);
        found
    }

    fn index(&self, of: &Relation, name: String, columns: &[String], is_unique: bool, is_key: bool) -> Index {
        let constraint = format!("constraint {}.{} of {}", written(&of.schema), written(&name), written(&of.name));
        let place = |column: &String| of.columns.index_of(column).ok().and_then(|at| i16::try_from(at + 1).ok());
        let list = columns.iter().map(|column| written(column)).collect::<Vec<_>>().join(", ");
        let unique = if is_unique { "UNIQUE " } else { "" };
        let (index, table) = (written(&name), format!("{}.{}", written(&of.schema), written(&of.name)));
        Index {
            number: self.number(&of.schema, &name),
            constraint: is_key.then(|| self.numbers.of(constraint)),
            definition: format!("CREATE {unique}INDEX {index} ON {table} USING btree ({list})"),
            columns: columns.iter().filter_map(place).collect(),
            name,
            is_unique,
        }
    }

    /// Keeps what functions are asked for by a number: they are called for rows of tables that were made just before.
    fn tell(&self, relations: &[Relation]) {
        let mut told = HashMap::new();
        for relation in relations {
            let is_visible = relation.schema == PUBLIC;
            let place = if is_visible { String::new() } else { format!("{}.", written(&relation.schema)) };
            let of = |name: &str, definition, columns| Told {
                name: format!("{place}{}", written(name)),
                definition,
                columns,
                is_visible,
                bytes: 0,
            };
            let table = of(&relation.name, relation.view.clone(), Vec::new());
            told.insert(relation.number, Told { bytes: relation.bytes, ..table });
            for index in &relation.indexes {
                let columns = relation.columns_of(index);
                if let Some(constraint) = index.constraint {
                    let list = columns.iter().map(|column| written(column)).collect::<Vec<_>>().join(", ");
                    told.insert(constraint, of(&index.name, Some(format!("PRIMARY KEY ({list})")), Vec::new()));
                }
                told.insert(index.number, of(&index.name, Some(index.definition.clone()), columns));
            }
        }
        *lock(&self.told) = told;
    }

    /// What was told of a number.
    pub(super) fn told(&self, number: i32) -> Option<Told> {
        lock(&self.told).get(&number).cloned()
    }

    /// The number of a table or a view by its name, as statements write it. Without a schema the catalog's own come first.
    pub(super) fn named(&self, schema: Option<&str>, name: &str) -> Option<i32> {
        if schema.is_none_or(|schema| schema == SCHEMA) && super::is_table(name) {
            return Some(self.number(SCHEMA, name));
        }
        let schema = schema.unwrap_or(PUBLIC);
        let provider = self.catalog()?.schema(schema)?;
        let is_table = provider.table_names().iter().any(|known| known == name);
        // An index has its number since it was told of.
        let number = self.number(schema, name);
        (is_table || lock(&self.told).contains_key(&number)).then_some(number)
    }
}

/// The query of the statement that made a view.
fn query_of(definition: &str) -> String {
    let parsed = parse(definition).ok().and_then(|mut statements| statements.pop());
    match parsed {
        Some(Statement::Statement(made)) => match *made {
            ast::Statement::CreateView(view) => view.query.to_string(),
            other => other.to_string(),
        },
        _ => definition.to_owned(),
    }
}

/// A count as an estimate of rows is told.
fn approximate(rows: u64) -> f64 {
    // Past 2^32 the last digits do not matter.
    let high = u32::try_from(rows >> 32).unwrap_or(u32::MAX);
    let low = u32::try_from(rows & u64::from(u32::MAX)).unwrap_or(u32::MAX);
    f64::from(high) * 4_294_967_296.0 + f64::from(low)
}
