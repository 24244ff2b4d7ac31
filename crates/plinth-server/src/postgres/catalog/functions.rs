//! The functions that questions to the catalog call.

use std::collections::HashMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow_array::builder::{Int32Builder, ListBuilder, StructBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, BooleanArray, Int32Array, Int64Array, StringArray};
use arrow_cast::cast;
use arrow_schema::{DataType, Field, FieldRef, Fields};
use datafusion::common::{ScalarValue, exec_err, internal_datafusion_err};
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature, Volatility,
};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;
use pgwire::api::Type;
use plinth_sql::written;

use super::relations::{Relations, Told};
use super::{fixed, forms};
use crate::engine::CATALOG;
use crate::postgres::answers::{VECTOR, VERSION};

/// Functions that say the same of everything, where there is nothing of what they ask: comments, rules, defaults of columns, triggers, sizes of
/// tables that are no files.
const NOTHING: [&str; 15] = [
    "col_description",
    "obj_description",
    "shobj_description",
    "pg_get_expr",
    "pg_get_function_arguments",
    "pg_get_function_identity_arguments",
    "pg_get_function_result",
    "pg_get_functiondef",
    "pg_get_partition_constraintdef",
    "pg_get_partkeydef",
    "pg_get_ruledef",
    "pg_get_serial_sequence",
    "pg_get_statisticsobjdef_columns",
    "pg_get_triggerdef",
    "pg_tablespace_location",
];

/// A list of short numbers as PostgreSQL's vectors of them are written: with a space between two.
pub(super) const VECTOR_OUT: &str = "int2vectorout";

/// What is asked of rights: all users may read, and some may write.
const RIGHTS: [&str; 8] = [
    "has_any_column_privilege",
    "has_column_privilege",
    "has_database_privilege",
    "has_function_privilege",
    "has_schema_privilege",
    "has_sequence_privilege",
    "has_table_privilege",
    "has_tablespace_privilege",
];

/// Rights that readers have.
const OF_READERS: [&str; 5] = ["SELECT", "USAGE", "CONNECT", "EXECUTE", "TEMPORARY"];

const ALWAYS: [&str; 4] = ["pg_collation_is_visible", "pg_has_role", "pg_function_is_visible", "pg_type_is_visible"];

const NEVER: [&str; 3] = ["pg_is_in_recovery", "pg_is_other_temp_schema", "pg_relation_is_publishable"];

/// The settings that are told.
pub(super) const SETTINGS: [(&str, &str); 13] = [
    ("search_path", "public"),
    ("server_version", VERSION),
    ("server_version_num", "160000"),
    ("server_encoding", "UTF8"),
    ("client_encoding", "UTF8"),
    ("standard_conforming_strings", "on"),
    ("datestyle", "ISO, MDY"),
    ("intervalstyle", "postgres"),
    ("default_table_access_method", "heap"),
    ("default_tablespace", ""),
    ("max_index_keys", "32"),
    ("max_identifier_length", "63"),
    ("transaction_isolation", "repeatable read"),
];

type Answer = dyn Fn(&[ArrayRef], usize) -> Result<ArrayRef> + Send + Sync;

/// A function by its name.
struct Named {
    name: &'static str,
    returns: DataType,
    signature: Signature,
    /// Whether its texts are told as those of vectors.
    gives_vectors: bool,
    answer: Box<Answer>,
}

impl fmt::Debug for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for Named {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Named {}

impl Hash for Named {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl ScalarUDFImpl for Named {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.returns.clone())
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let field = Field::new(self.name, self.returns.clone(), true);
        Ok(Arc::new(match self.gives_vectors {
            true => field.with_metadata(HashMap::from([(VECTOR.to_owned(), String::new())])),
            false => field,
        }))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let alike = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if alike { 1 } else { args.number_rows };
        let arrays = args.args.iter().map(|arg| arg.to_array(rows)).collect::<Result<Vec<_>>>()?;
        let answer = (self.answer)(&arrays, rows)?;
        // It is the same for all rows where its arguments are.
        match alike {
            true => Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&answer, 0)?)),
            false => Ok(ColumnarValue::Array(answer)),
        }
    }
}

fn named(
    name: &'static str,
    returns: DataType,
    answer: impl Fn(&[ArrayRef], usize) -> Result<ArrayRef> + Send + Sync + 'static,
) -> ScalarUDF {
    let any = TypeSignature::OneOf(vec![TypeSignature::Nullary, TypeSignature::VariadicAny]);
    let signature = Signature::new(any, Volatility::Stable);
    ScalarUDF::from(Named { name, returns, signature, gives_vectors: name == VECTOR_OUT, answer: Box::new(answer) })
}

/// A function whose answer is one value.
fn constant(name: &'static str, value: ScalarValue) -> ScalarUDF {
    named(name, value.data_type(), move |_, rows| value.to_array_of_size(rows))
}

/// An argument as numbers; what is none is NULL.
fn numbers(args: &[ArrayRef], at: usize) -> Result<Option<Int32Array>> {
    let Some(arg) = args.get(at) else { return Ok(None) };
    Ok(Some(cast(arg, &DataType::Int32)?.as_primitive::<Int32Type>().clone()))
}

fn texts(args: &[ArrayRef], at: usize) -> Result<Option<StringArray>> {
    let Some(arg) = args.get(at) else { return Ok(None) };
    Ok(Some(cast(arg, &DataType::Utf8)?.as_string::<i32>().clone()))
}

/// A function of an object's number, and of a second number where there is one.
fn of_number<T>(
    name: &'static str,
    returns: DataType,
    relations: &Arc<Relations>,
    answer: impl Fn(Option<Told>, Option<i32>) -> Option<T> + Send + Sync + 'static,
) -> ScalarUDF
where
    ArrayRef: FromValues<T>,
{
    let relations = Arc::clone(relations);
    named(name, returns, move |args, _| {
        let Some(of) = numbers(args, 0)? else { return exec_err!("{name} needs the number of an object") };
        let second = numbers(args, 1)?;
        let second = |at: usize| second.as_ref().filter(|second| second.is_valid(at)).map(|second| second.value(at));
        let values = of.iter().enumerate().map(|(at, of)| answer(relations.told(of?), second(at)));
        Ok(ArrayRef::from_values(values))
    })
}

/// What an array is made of.
trait FromValues<T> {
    fn from_values(values: impl Iterator<Item = Option<T>>) -> Self;
}

impl FromValues<String> for ArrayRef {
    fn from_values(values: impl Iterator<Item = Option<String>>) -> Self {
        Arc::new(values.collect::<StringArray>())
    }
}

impl FromValues<bool> for ArrayRef {
    fn from_values(values: impl Iterator<Item = Option<bool>>) -> Self {
        Arc::new(values.collect::<BooleanArray>())
    }
}

impl FromValues<i64> for ArrayRef {
    fn from_values(values: impl Iterator<Item = Option<i64>>) -> Self {
        Arc::new(values.collect::<Int64Array>())
    }
}

/// All of them.
pub(super) fn all(relations: &Arc<Relations>) -> Vec<ScalarUDF> {
    let text = |text: &str| ScalarValue::Utf8(Some(text.to_owned()));
    let mut all = vec![
        constant("version", text(&format!("PostgreSQL {VERSION}"))),
        constant("current_database", text(CATALOG)),
        constant("current_schema", text("public")),
        constant("current_user", text(&relations.user)),
        constant("session_user", text(&relations.user)),
        constant("pg_get_userbyid", text(&relations.user)),
        constant("pg_encoding_to_char", text("UTF8")),
        constant("pg_my_temp_schema", ScalarValue::Int32(Some(0))),
        constant("pg_stat_get_numscans", ScalarValue::Int64(Some(0))),
    ];
    all.extend(NOTHING.map(|name| constant(name, ScalarValue::Utf8(None))));
    all.extend(ALWAYS.map(|name| constant(name, ScalarValue::Boolean(Some(true)))));
    all.extend(NEVER.map(|name| constant(name, ScalarValue::Boolean(Some(false)))));
    let may_write = relations.may_write;
    all.extend(RIGHTS.map(|name| named(name, DataType::Boolean, move |args, rows| rights(args, rows, may_write))));
    all.extend(of_objects(relations));
    all.extend([
        named("current_schemas", list(DataType::Utf8), schemas),
        named("current_setting", DataType::Utf8, setting),
        named("format_type", DataType::Utf8, type_names),
        named("quote_ident", DataType::Utf8, |args, _| {
            let names = texts(args, 0)?.ok_or_else(|| internal_datafusion_err!("quote_ident without a name"))?;
            Ok(Arc::new(names.iter().map(|name| name.map(written)).collect::<StringArray>()))
        }),
        named("pg_size_pretty", DataType::Utf8, |args, _| {
            let Some(of) = args.first() else { return exec_err!("pg_size_pretty needs a number of bytes") };
            let of = cast(of, &DataType::Int64)?;
            let sizes = of.as_primitive::<Int64Type>().iter().map(|bytes| bytes.map(forms::size));
            Ok(Arc::new(sizes.collect::<StringArray>()))
        }),
        named(VECTOR_OUT, DataType::Utf8, forms::vectors),
        named("json_build_object", DataType::Utf8, forms::objects),
        named("array_lower", DataType::Int32, |args, _| bounds(args, |_| 1)),
        named("array_upper", DataType::Int32, |args, _| bounds(args, |count| count)),
        named("generate_subscripts", list(DataType::Int32), subscripts),
        named("_pg_expandarray", expanded_type(), expanded),
    ]);
    all
}

/// Those that are asked for a number, or give the number of a name.
fn of_objects(relations: &Arc<Relations>) -> Vec<ScalarUDF> {
    let visible = |told: Option<Told>, _| Some(told.is_none_or(|told| told.is_visible));
    let bytes = |told: Option<Told>, _| told.map(|told| told.bytes);
    let definition = |told: Option<Told>, column: Option<i32>| {
        let told = told?;
        // The columns of an index by their places.
        match column.and_then(|column| usize::try_from(column).ok()).and_then(|column| column.checked_sub(1)) {
            Some(at) => told.columns.get(at).map(|name| written(name)),
            None => told.definition,
        }
    };
    let name = |told: Option<Told>, _| told.map(|told| told.name);
    let names = Arc::clone(relations);
    let mut all = vec![
        of_number("pg_table_is_visible", DataType::Boolean, relations, visible),
        of_number("pg_relation_size", DataType::Int64, relations, bytes),
        of_number("pg_table_size", DataType::Int64, relations, bytes),
        of_number("pg_total_relation_size", DataType::Int64, relations, bytes),
        of_number("pg_indexes_size", DataType::Int64, relations, |told, _| told.map(|_| 0_i64)),
        of_number("pg_get_indexdef", DataType::Utf8, relations, definition),
        of_number("pg_get_constraintdef", DataType::Utf8, relations, |told, _| told?.definition),
        of_number("pg_get_viewdef", DataType::Utf8, relations, |told, _| told?.definition),
        of_number("regclassout", DataType::Utf8, relations, name),
        named("regnamespaceout", DataType::Utf8, move |args, _| {
            let of = numbers(args, 0)?.ok_or_else(|| internal_datafusion_err!("regnamespaceout without a number"))?;
            let known = names.schemas();
            let name = |of: i32| known.iter().find(|(_, number)| *number == of).map(|(name, _)| name.as_str());
            Ok(Arc::new(of.iter().map(|of| name(of?)).collect::<StringArray>()))
        }),
    ];
    // What a cast calls fails where there is no such object, and what is called by its name gives NULL.
    for (called, kind) in [("to_regclass", None), ("regclassin", Some("table"))] {
        let relations = Arc::clone(relations);
        all.push(by_name(called, kind, move |name| number_of(&relations, name)));
    }
    for (called, kind) in [("to_regnamespace", None), ("regnamespacein", Some("schema"))] {
        let relations = Arc::clone(relations);
        all.push(by_name(called, kind, move |name| number_of_schema(&relations, name)));
    }
    for (called, kind) in [("to_regtype", None), ("regtypein", Some("type"))] {
        all.push(by_name(called, kind, number_of_type));
    }
    all
}

/// A function that gives the number of a name. If there is none, it fails where a kind is told, and is NULL otherwise.
fn by_name(
    called: &'static str,
    kind: Option<&'static str>,
    number: impl Fn(&str) -> Option<i32> + Send + Sync + 'static,
) -> ScalarUDF {
    named(called, DataType::Int32, move |args, _| {
        let Some(names) = texts(args, 0)? else { return exec_err!("{called} needs a name") };
        let number = |name: Option<&str>| match (name, kind) {
            (None, _) => Ok(None),
            (Some(name), None) => Ok(number(name)),
            (Some(name), Some(kind)) => match number(name) {
                None => exec_err!("no {kind} {name:?}"),
                found => Ok(found),
            },
        };
        Ok(Arc::new(names.iter().map(number).collect::<Result<Int32Array>>()?))
    })
}

/// The number of a schema by its name, or by its number.
fn number_of_schema(relations: &Relations, name: &str) -> Option<i32> {
    if let Ok(number) = name.parse() {
        return Some(number);
    }
    relations.schemas().into_iter().find(|(known, _)| known == name).map(|(_, number)| number)
}

/// The number of a type by one of its names, or by its number.
fn number_of_type(name: &str) -> Option<i32> {
    if let Ok(number) = name.parse() {
        return Some(number);
    }
    let name = name.strip_prefix("pg_catalog.").unwrap_or(name).to_lowercase();
    let mut all = (1..fixed::LAST_TYPE).filter_map(Type::from_oid);
    let found =
        all.find(|of| of.name() == name || i32::try_from(of.oid()).is_ok_and(|oid| type_name(oid, None) == name))?;
    i32::try_from(found.oid()).ok()
}

/// The number of a relation by its name as statements write it, or by its number.
fn number_of(relations: &Relations, name: &str) -> Option<i32> {
    if let Ok(number) = name.parse() {
        return Some(number);
    }
    let parts =
        Parser::new(&PostgreSqlDialect {}).try_with_sql(name).and_then(|mut parser| parser.parse_object_name(false));
    let parts: Vec<String> = parts.ok()?.0.iter().filter_map(|part| part.as_ident()).map(in_case).collect();
    match parts.as_slice() {
        [name] => relations.named(None, name),
        [.., schema, name] => relations.named(Some(schema), name),
        [] => None,
    }
}

fn in_case(ident: &datafusion::sql::sqlparser::ast::Ident) -> String {
    if ident.quote_style.is_some() { ident.value.clone() } else { ident.value.to_lowercase() }
}

fn list(of: DataType) -> DataType {
    DataType::List(Arc::new(Field::new("item", of, true)))
}

/// The schemas in which names are looked for, and those that go without saying if that is asked.
fn schemas(args: &[ArrayRef], _: usize) -> Result<ArrayRef> {
    let Some(more) = args.first() else { return exec_err!("current_schemas needs true or false") };
    let more = cast(more, &DataType::Boolean)?;
    let mut lists = ListBuilder::new(arrow_array::builder::StringBuilder::new());
    for more in more.as_boolean() {
        if more == Some(true) {
            lists.values().append_value("pg_catalog");
        }
        lists.values().append_value("public");
        lists.append(true);
    }
    Ok(Arc::new(lists.finish()))
}

/// Whether the user has the rights that the last argument names, with commas between them.
fn rights(args: &[ArrayRef], rows: usize, may_write: bool) -> Result<ArrayRef> {
    let asked = texts(args, args.len().saturating_sub(1))?;
    let reads = |asked: &str| asked.split(',').any(|right| OF_READERS.contains(&right.trim().to_uppercase().as_str()));
    let asked = |at: usize| asked.as_ref().filter(|asked| asked.is_valid(at)).map(|asked| asked.value(at));
    let has = |at: usize| asked(at).map(|asked| may_write || reads(asked));
    Ok(Arc::new((0..rows).map(has).collect::<BooleanArray>()))
}

/// A setting by its name; one that there is not is an error, or NULL where that is asked for.
fn setting(args: &[ArrayRef], _: usize) -> Result<ArrayRef> {
    let Some(names) = texts(args, 0)? else { return exec_err!("current_setting needs the name of a setting") };
    let lenient = args.get(1).map(|lenient| cast(lenient, &DataType::Boolean)).transpose()?;
    let is_lenient = |at: usize| lenient.as_ref().is_some_and(|lenient| lenient.as_boolean().value(at));
    let value = |(at, name): (usize, Option<&str>)| {
        let Some(name) = name else { return Ok(None) };
        let known = SETTINGS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        match known {
            None if !is_lenient(at) => exec_err!("{name}: there is no such setting here"),
            known => Ok(known.map(|(_, value)| *value)),
        }
    };
    Ok(Arc::new(names.iter().enumerate().map(value).collect::<Result<StringArray>>()?))
}

fn type_names(args: &[ArrayRef], _: usize) -> Result<ArrayRef> {
    let Some(of) = numbers(args, 0)? else { return exec_err!("format_type needs the number of a type") };
    let modifiers = numbers(args, 1)?;
    let modifier = |at: usize| modifiers.as_ref().filter(|all| all.is_valid(at)).map(|all| all.value(at));
    let names = of.iter().enumerate().map(|(at, of)| of.map(|of| type_name(of, modifier(at))));
    Ok(Arc::new(names.collect::<StringArray>()))
}

/// The name of a type by its number, as SQL has it.
fn type_name(number: i32, modifier: Option<i32>) -> String {
    let Some(known) = u32::try_from(number).ok().and_then(Type::from_oid) else { return "???".to_owned() };
    let (name, many) = match known.name().strip_prefix('_') {
        Some(item) => (item, "[]"),
        None => (known.name(), ""),
    };
    let name = match name {
        "bool" => "boolean",
        "int2" => "smallint",
        "int4" => "integer",
        "int8" => "bigint",
        "float4" => "real",
        "float8" => "double precision",
        "bpchar" => "character",
        "varchar" => "character varying",
        "time" => "time without time zone",
        "timestamp" => "timestamp without time zone",
        "timestamptz" => "timestamp with time zone",
        "char" => "\"char\"",
        "numeric" => match modifier.and_then(|modifier| modifier.checked_sub(4)).filter(|packed| *packed >= 0) {
            Some(packed) => return format!("numeric({},{}){many}", packed >> 16, packed & 0xffff),
            None => "numeric",
        },
        other => other,
    };
    format!("{name}{many}")
}

/// How many values each list has.
fn lengths(args: &[ArrayRef]) -> Result<Vec<Option<i32>>> {
    let Some(lists) = args.first() else { return exec_err!("a function of lists needs one") };
    match lists.data_type() {
        DataType::List(_) => {
            let lists = lists.as_list::<i32>();
            let length = |at: usize| lists.is_valid(at).then(|| lists.value_length(at));
            Ok((0..lists.len()).map(length).collect())
        }
        DataType::Null => Ok(vec![None; lists.len()]),
        other => exec_err!("a list was expected, and {other} was found"),
    }
}

fn bounds(args: &[ArrayRef], bound: impl Fn(i32) -> i32) -> Result<ArrayRef> {
    let lengths = lengths(args)?.into_iter();
    Ok(Arc::new(lengths.map(|count| count.filter(|count| *count > 0).map(&bound)).collect::<Int32Array>()))
}

/// The places of each list's values, the first of which is 1.
fn subscripts(args: &[ArrayRef], _: usize) -> Result<ArrayRef> {
    let mut lists = ListBuilder::new(Int32Builder::new());
    for length in lengths(args)? {
        for place in 1..=length.unwrap_or_default() {
            lists.values().append_value(place);
        }
        lists.append(length.is_some());
    }
    Ok(Arc::new(lists.finish()))
}

fn pair() -> Fields {
    vec![Field::new("x", DataType::Int32, true), Field::new("n", DataType::Int32, true)].into()
}

fn expanded_type() -> DataType {
    list(DataType::Struct(pair()))
}

/// The values of each list of numbers (`x`) with their places (`n`).
fn expanded(args: &[ArrayRef], _: usize) -> Result<ArrayRef> {
    let lengths = lengths(args)?;
    let places = StructBuilder::new(pair(), vec![Box::new(Int32Builder::new()), Box::new(Int32Builder::new())]);
    let mut lists = ListBuilder::new(places).with_field(Field::new("item", DataType::Struct(pair()), true));
    for (at, length) in lengths.into_iter().enumerate() {
        if let Some(values) = length.and_then(|_| args.first()).map(|lists| lists.as_list::<i32>().value(at)) {
            let values = cast(&values, &DataType::Int32)?;
            for (value, place) in values.as_primitive::<Int32Type>().iter().zip(1..) {
                let row = lists.values();
                for (column, value) in [(0, value), (1, Some(place))] {
                    let column = row.field_builder::<Int32Builder>(column);
                    column
                        .ok_or_else(|| internal_datafusion_err!("a pair of numbers has another type"))?
                        .append_option(value);
                }
                row.append(true);
            }
        }
        lists.append(length.is_some());
    }
    Ok(Arc::new(lists.finish()))
}
