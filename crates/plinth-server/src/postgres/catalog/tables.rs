//! The tables of the catalog whose rows are the session's. Columns that say nothing of Plinth's tables have the value that PostgreSQL has
//! for tables without that.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::types::Int16Type;
use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, Int16Array, Int32Array, ListArray, RecordBatch, RecordBatchOptions,
    StringArray, new_null_array,
};
use arrow_pg::datatypes::PG_OID_ALIAS_KEY;
use arrow_schema::{DataType, Field, FieldRef, Schema};
use datafusion::error::Result;
use pgwire::api::Type;
use pgwire::api::portal::Format;

use super::relations::{Index, Relation, Relations, USER};
use crate::engine::CATALOG;
use crate::postgres::answers;

const NAMES: [&str; 11] = [
    "pg_namespace",
    "pg_class",
    "pg_attribute",
    "pg_index",
    "pg_constraint",
    "pg_database",
    "pg_roles",
    "pg_user",
    "pg_tables",
    "pg_views",
    "pg_indexes",
];

/// Whether there is a table of this name.
pub(super) fn is_table(name: &str) -> bool {
    NAMES.contains(&name)
}

/// The number of the access method that indexes have, `btree`, and of that of tables, `heap`.
const BTREE: i32 = 403;
const HEAP: i32 = 2;
/// The encoding UTF-8.
const UTF8: i32 = 6;

/// The rows of a table, if it is one of these.
pub(super) async fn table(name: &str, relations: &Relations) -> Result<Option<RecordBatch>> {
    let columns = match name {
        "pg_namespace" => schemas(relations),
        "pg_database" => databases(relations),
        "pg_roles" => roles(relations),
        "pg_user" => users(relations),
        _ if !NAMES.contains(&name) => return Ok(None),
        _ => {
            let all = relations.all().await;
            match name {
                "pg_class" => classes(&all),
                "pg_attribute" => attributes(&all),
                "pg_index" => indexes(&all),
                "pg_constraint" => constraints(&all),
                "pg_tables" => named_tables(&all, &relations.user),
                "pg_views" => named_views(&all, &relations.user),
                _ => named_indexes(&all),
            }
        }
    };
    columns.rows().map(Some)
}

/// A column of numbers of objects.
pub(super) fn oid_field(name: &str) -> Field {
    let kind = HashMap::from([(PG_OID_ALIAS_KEY.to_owned(), "oid".to_owned())]);
    Field::new(name, DataType::Int32, true).with_metadata(kind)
}

/// The type of lists of texts.
pub(super) fn texts_type() -> DataType {
    DataType::List(Arc::new(Field::new("item", DataType::Utf8, true)))
}

/// A table while its columns are added.
pub(super) struct Columns {
    rows: usize,
    fields: Vec<Field>,
    arrays: Vec<ArrayRef>,
}

impl Columns {
    pub(super) fn of(rows: usize) -> Self {
        Self { rows, fields: Vec::new(), arrays: Vec::new() }
    }

    fn add(mut self, field: Field, array: ArrayRef) -> Self {
        self.fields.push(field);
        self.arrays.push(array);
        self
    }

    /// Numbers of objects.
    pub(super) fn oids(self, name: &str, values: impl IntoIterator<Item = i32>) -> Self {
        self.add(oid_field(name), Arc::new(values.into_iter().map(Some).collect::<Int32Array>()))
    }

    pub(super) fn all_oid(self, name: &str, value: i32) -> Self {
        let values = std::iter::repeat_n(value, self.rows);
        self.oids(name, values)
    }

    pub(super) fn shorts(self, name: &str, values: impl IntoIterator<Item = i16>) -> Self {
        let array = values.into_iter().map(Some).collect::<Int16Array>();
        self.add(Field::new(name, DataType::Int16, true), Arc::new(array))
    }

    pub(super) fn all_short(self, name: &str, value: i16) -> Self {
        let values = std::iter::repeat_n(value, self.rows);
        self.shorts(name, values)
    }

    pub(super) fn ints(self, name: &str, values: impl IntoIterator<Item = i32>) -> Self {
        let array = values.into_iter().map(Some).collect::<Int32Array>();
        self.add(Field::new(name, DataType::Int32, true), Arc::new(array))
    }

    pub(super) fn all_int(self, name: &str, value: i32) -> Self {
        let values = std::iter::repeat_n(value, self.rows);
        self.ints(name, values)
    }

    fn floats(self, name: &str, values: impl IntoIterator<Item = f64>) -> Self {
        let array = values.into_iter().map(Some).collect::<Float64Array>();
        self.add(Field::new(name, DataType::Float64, true), Arc::new(array))
    }

    pub(super) fn flags(self, name: &str, values: impl IntoIterator<Item = bool>) -> Self {
        let array = values.into_iter().map(Some).collect::<BooleanArray>();
        self.add(Field::new(name, DataType::Boolean, true), Arc::new(array))
    }

    pub(super) fn all_flag(self, name: &str, value: bool) -> Self {
        let values = std::iter::repeat_n(value, self.rows);
        self.flags(name, values)
    }

    pub(super) fn texts<T: AsRef<str>>(self, name: &str, values: impl IntoIterator<Item = Option<T>>) -> Self {
        self.add(Field::new(name, DataType::Utf8, true), Arc::new(values.into_iter().collect::<StringArray>()))
    }

    pub(super) fn all_text(self, name: &str, value: Option<&str>) -> Self {
        let values = std::iter::repeat_n(value, self.rows);
        self.texts(name, values)
    }

    fn lists<'a>(self, name: &str, values: impl IntoIterator<Item = Option<&'a [i16]>>) -> Self {
        let lists = values.into_iter().map(|list| list.map(|list| list.iter().copied().map(Some).collect::<Vec<_>>()));
        let array = ListArray::from_iter_primitive::<Int16Type, _, _>(lists);
        let item = Field::new("item", DataType::Int16, true);
        self.add(Field::new(name, DataType::List(Arc::new(item)), true), Arc::new(array))
    }

    /// Lists of texts, of which there are none: the rights that were granted.
    pub(super) fn no_texts(self, name: &str) -> Self {
        let field = Field::new(name, texts_type(), true);
        let nulls = new_null_array(field.data_type(), self.rows);
        self.add(field, nulls)
    }

    pub(super) fn rows(self) -> Result<RecordBatch> {
        let options = RecordBatchOptions::new().with_row_count(Some(self.rows));
        let schema = Arc::new(Schema::new(self.fields));
        Ok(RecordBatch::try_new_with_options(schema, self.arrays, &options)?)
    }
}

fn schemas(relations: &Relations) -> Columns {
    let schemas = relations.schemas();
    Columns::of(schemas.len())
        .oids("oid", schemas.iter().map(|(_, number)| *number))
        .texts("nspname", schemas.iter().map(|(name, _)| Some(name)))
        .all_oid("nspowner", USER)
        .no_texts("nspacl")
}

fn databases(relations: &Relations) -> Columns {
    Columns::of(1)
        .oids("oid", [relations.database()])
        .all_text("datname", Some(CATALOG))
        .all_oid("datdba", USER)
        .all_int("encoding", UTF8)
        .all_text("datlocprovider", Some("c"))
        .all_flag("datistemplate", false)
        .all_flag("datallowconn", true)
        .all_int("datconnlimit", -1)
        .all_int("datfrozenxid", 0)
        .all_int("datminmxid", 0)
        .all_oid("dattablespace", 1663)
        .all_text("datcollate", Some("C"))
        .all_text("datctype", Some("C"))
        .all_text("daticulocale", None)
        .all_text("datcollversion", None)
        .no_texts("datacl")
}

fn roles(relations: &Relations) -> Columns {
    Columns::of(1)
        .oids("oid", [USER])
        .all_text("rolname", Some(&relations.user))
        .all_flag("rolsuper", false)
        .all_flag("rolinherit", true)
        .all_flag("rolcreaterole", false)
        .all_flag("rolcreatedb", false)
        .all_flag("rolcanlogin", true)
        .all_flag("rolreplication", false)
        .all_int("rolconnlimit", -1)
        .all_text("rolpassword", Some("********"))
        .all_text("rolvaliduntil", None)
        .all_flag("rolbypassrls", false)
        .no_texts("rolconfig")
}

fn users(relations: &Relations) -> Columns {
    Columns::of(1)
        .all_text("usename", Some(&relations.user))
        .oids("usesysid", [USER])
        .all_flag("usecreatedb", false)
        .all_flag("usesuper", false)
        .all_flag("userepl", false)
        .all_flag("usebypassrls", false)
        .all_text("passwd", Some("********"))
        .all_text("valuntil", None)
        .no_texts("useconfig")
}

/// Every index, and the relation that it is of.
fn with_indexes(all: &[Relation]) -> impl Iterator<Item = (&Relation, &Index)> {
    all.iter().flat_map(|relation| relation.indexes.iter().map(move |index| (relation, index)))
}

/// A relation or one of its indexes.
struct Class<'a> {
    relation: &'a Relation,
    index: Option<&'a Index>,
}

impl Class<'_> {
    fn number(&self) -> i32 {
        self.index.map_or(self.relation.number, |index| index.number)
    }

    fn kind(&self) -> &'static str {
        match self.index {
            Some(_) => "i",
            None if self.relation.view.is_some() => "v",
            None => "r",
        }
    }

    /// The columns and their places, the first of which is 1.
    fn fields(&self) -> Vec<&FieldRef> {
        let fields = self.relation.columns.fields();
        match self.index {
            None => fields.iter().collect(),
            Some(index) => {
                let at = |place: &i16| usize::try_from(*place - 1).ok().and_then(|at| fields.get(at));
                index.columns.iter().filter_map(at).collect()
            }
        }
    }
}

fn all_classes(all: &[Relation]) -> Vec<Class<'_>> {
    let tables = all.iter().map(|relation| Class { relation, index: None });
    tables.chain(with_indexes(all).map(|(relation, index)| Class { relation, index: Some(index) })).collect()
}

fn classes(all: &[Relation]) -> Columns {
    let classes = all_classes(all);
    Columns::of(classes.len())
        .oids("oid", classes.iter().map(Class::number))
        .texts(
            "relname",
            classes.iter().map(|class| Some(class.index.map_or(&class.relation.name, |index| &index.name))),
        )
        .oids("relnamespace", classes.iter().map(|class| class.relation.schema_number))
        .all_oid("reltype", 0)
        .all_oid("reloftype", 0)
        .all_oid("relowner", USER)
        .oids(
            "relam",
            classes.iter().map(|class| match class.kind() {
                "i" => BTREE,
                "r" => HEAP,
                _ => 0,
            }),
        )
        .all_oid("relfilenode", 0)
        .all_oid("reltablespace", 0)
        .all_int("relpages", 0)
        .floats("reltuples", classes.iter().map(|class| class.relation.rows))
        .all_int("relallvisible", 0)
        .all_oid("reltoastrelid", 0)
        .flags("relhasindex", classes.iter().map(|class| class.index.is_none() && !class.relation.indexes.is_empty()))
        .all_flag("relisshared", false)
        .all_text("relpersistence", Some("p"))
        .texts("relkind", classes.iter().map(|class| Some(class.kind())))
        .shorts("relnatts", classes.iter().map(|class| i16::try_from(class.fields().len()).unwrap_or(i16::MAX)))
        .all_short("relchecks", 0)
        .all_flag("relhasrules", false)
        .all_flag("relhastriggers", false)
        .all_flag("relhassubclass", false)
        .all_flag("relrowsecurity", false)
        .all_flag("relforcerowsecurity", false)
        .all_flag("relispopulated", true)
        .texts("relreplident", classes.iter().map(|class| Some(if class.kind() == "r" { "d" } else { "n" })))
        .all_flag("relispartition", false)
        .all_oid("relrewrite", 0)
        .all_int("relfrozenxid", 0)
        .all_int("relminmxid", 0)
        .no_texts("relacl")
        .no_texts("reloptions")
        .all_text("relpartbound", None)
}

/// How PostgreSQL has a type: its number, its modifier, how many bytes a value takes (-1 if that differs) and how it is aligned.
fn shape(field: &FieldRef) -> (i32, i32, i16, &'static str) {
    let alone = Schema::new(vec![Arc::clone(field)]);
    let told = answers::columns(&alone, &Format::UnifiedText).ok();
    let of = told.and_then(|told| told.first().map(|field| field.datatype().clone())).unwrap_or(Type::TEXT);
    let number = i32::try_from(of.oid()).unwrap_or_default();
    let modifier = match field.data_type() {
        DataType::Decimal128(digits, places) => (i32::from(*digits) << 16 | i32::from(*places)) + 4,
        _ => -1,
    };
    let (bytes, alignment) = width(&of);
    (number, modifier, bytes, alignment)
}

/// How many bytes a value of a type takes (-1 if that differs), and how it is aligned.
pub(super) fn width(of: &Type) -> (i16, &'static str) {
    match *of {
        Type::BOOL | Type::CHAR => (1, "c"),
        Type::INT2 => (2, "s"),
        Type::INT4 | Type::FLOAT4 | Type::DATE | Type::OID => (4, "i"),
        Type::INT8 | Type::FLOAT8 | Type::TIME | Type::TIMESTAMP | Type::TIMESTAMPTZ => (8, "d"),
        Type::INTERVAL | Type::UUID => (16, "d"),
        _ => (-1, "i"),
    }
}

fn attributes(all: &[Relation]) -> Columns {
    let classes = all_classes(all);
    let mut rows = Vec::new();
    for class in &classes {
        for (field, place) in class.fields().into_iter().zip(1_i16..) {
            rows.push((class, field, place, shape(field)));
        }
    }
    let is_key = |class: &Class, field: &FieldRef| {
        let place = class.relation.columns.index_of(field.name()).ok().and_then(|at| i16::try_from(at + 1).ok());
        class.relation.key().is_some_and(|key| place.is_some_and(|place| key.columns.contains(&place)))
    };
    let needs =
        |(class, field): (&Class, &FieldRef)| class.index.is_none() && (!field.is_nullable() || is_key(class, field));
    Columns::of(rows.len())
        .oids("attrelid", rows.iter().map(|row| row.0.number()))
        .texts("attname", rows.iter().map(|row| Some(row.1.name())))
        .oids("atttypid", rows.iter().map(|row| row.3.0))
        .all_int("attstattarget", -1)
        .shorts("attlen", rows.iter().map(|row| row.3.2))
        .shorts("attnum", rows.iter().map(|row| row.2))
        .ints("attndims", rows.iter().map(|row| i32::from(matches!(row.1.data_type(), DataType::List(_)))))
        .all_int("attcacheoff", -1)
        .ints("atttypmod", rows.iter().map(|row| row.3.1))
        .flags("attbyval", rows.iter().map(|row| (0..=8).contains(&row.3.2)))
        .texts("attalign", rows.iter().map(|row| Some(row.3.3)))
        .texts("attstorage", rows.iter().map(|row| Some(if row.3.2 < 0 { "x" } else { "p" })))
        .all_text("attcompression", Some(""))
        .flags("attnotnull", rows.iter().map(|row| needs((row.0, row.1))))
        .all_flag("atthasdef", false)
        .all_flag("atthasmissing", false)
        .all_text("attidentity", Some(""))
        .all_text("attgenerated", Some(""))
        .all_flag("attisdropped", false)
        .all_flag("attislocal", true)
        .all_int("attinhcount", 0)
        .all_oid("attcollation", 0)
        .no_texts("attacl")
        .no_texts("attoptions")
        .no_texts("attfdwoptions")
        .all_text("attmissingval", None)
}

fn indexes(all: &[Relation]) -> Columns {
    let rows: Vec<_> = with_indexes(all).collect();
    let count = |index: &Index| i16::try_from(index.columns.len()).unwrap_or(i16::MAX);
    let zeros: Vec<Vec<i16>> = rows.iter().map(|(_, index)| vec![0; index.columns.len()]).collect();
    let none = || zeros.iter().map(|list| Some(list.as_slice()));
    Columns::of(rows.len())
        .oids("indexrelid", rows.iter().map(|(_, index)| index.number))
        .oids("indrelid", rows.iter().map(|(relation, _)| relation.number))
        .shorts("indnatts", rows.iter().map(|(_, index)| count(index)))
        .shorts("indnkeyatts", rows.iter().map(|(_, index)| count(index)))
        .flags("indisunique", rows.iter().map(|(_, index)| index.is_unique))
        .all_flag("indnullsnotdistinct", false)
        .flags("indisprimary", rows.iter().map(|(_, index)| index.constraint.is_some()))
        .all_flag("indisexclusion", false)
        .all_flag("indimmediate", true)
        .all_flag("indisclustered", false)
        .all_flag("indisvalid", true)
        .all_flag("indcheckxmin", false)
        .all_flag("indisready", true)
        .all_flag("indislive", true)
        .all_flag("indisreplident", false)
        .lists("indkey", rows.iter().map(|(_, index)| Some(index.columns.as_slice())))
        .lists("indcollation", none())
        .lists("indclass", none())
        .lists("indoption", none())
        .all_text("indexprs", None)
        .all_text("indpred", None)
}

fn constraints(all: &[Relation]) -> Columns {
    let keys = with_indexes(all).filter_map(|(relation, index)| Some((relation, index, index.constraint?)));
    let rows: Vec<_> = keys.collect();
    Columns::of(rows.len())
        .oids("oid", rows.iter().map(|row| row.2))
        .texts("conname", rows.iter().map(|row| Some(&row.1.name)))
        .oids("connamespace", rows.iter().map(|row| row.0.schema_number))
        .all_text("contype", Some("p"))
        .all_flag("condeferrable", false)
        .all_flag("condeferred", false)
        .all_flag("convalidated", true)
        .oids("conrelid", rows.iter().map(|row| row.0.number))
        .all_oid("contypid", 0)
        .oids("conindid", rows.iter().map(|row| row.1.number))
        .all_oid("conparentid", 0)
        .all_oid("confrelid", 0)
        .all_text("confupdtype", Some(" "))
        .all_text("confdeltype", Some(" "))
        .all_text("confmatchtype", Some(" "))
        .all_flag("conislocal", true)
        .all_int("coninhcount", 0)
        .all_flag("connoinherit", true)
        .lists("conkey", rows.iter().map(|row| Some(row.1.columns.as_slice())))
        .lists("confkey", rows.iter().map(|_| None))
        .lists("conpfeqop", rows.iter().map(|_| None))
        .lists("conppeqop", rows.iter().map(|_| None))
        .lists("conffeqop", rows.iter().map(|_| None))
        .lists("confdelsetcols", rows.iter().map(|_| None))
        .lists("conexclop", rows.iter().map(|_| None))
        .all_text("conbin", None)
}

fn named_tables(all: &[Relation], user: &str) -> Columns {
    let rows: Vec<_> = all.iter().filter(|relation| relation.view.is_none()).collect();
    Columns::of(rows.len())
        .texts("schemaname", rows.iter().map(|relation| Some(&relation.schema)))
        .texts("tablename", rows.iter().map(|relation| Some(&relation.name)))
        .all_text("tableowner", Some(user))
        .all_text("tablespace", None)
        .flags("hasindexes", rows.iter().map(|relation| !relation.indexes.is_empty()))
        .all_flag("hasrules", false)
        .all_flag("hastriggers", false)
        .all_flag("rowsecurity", false)
}

fn named_views(all: &[Relation], user: &str) -> Columns {
    let rows: Vec<_> = all.iter().filter(|relation| relation.view.is_some()).collect();
    Columns::of(rows.len())
        .texts("schemaname", rows.iter().map(|relation| Some(&relation.schema)))
        .texts("viewname", rows.iter().map(|relation| Some(&relation.name)))
        .all_text("viewowner", Some(user))
        .texts("definition", rows.iter().map(|relation| relation.view.as_ref()))
}

fn named_indexes(all: &[Relation]) -> Columns {
    let rows: Vec<_> = with_indexes(all).collect();
    Columns::of(rows.len())
        .texts("schemaname", rows.iter().map(|(relation, _)| Some(&relation.schema)))
        .texts("tablename", rows.iter().map(|(relation, _)| Some(&relation.name)))
        .texts("indexname", rows.iter().map(|(_, index)| Some(&index.name)))
        .all_text("tablespace", None)
        .texts("indexdef", rows.iter().map(|(_, index)| Some(&index.definition)))
}
