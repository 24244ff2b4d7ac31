//! The tables of the catalog that are the same for every session: types, and those of what Plinth has none of, which are empty.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, Schema};
use datafusion::error::Result;
use pgwire::api::Type;

use super::tables::{Columns, oid_field, texts_type};

/// The last number of a type that PostgreSQL has by itself and clients may ask for.
pub(super) const LAST_TYPE: u32 = 5000;

/// Tables without rows and their columns: `o` is a number of an object, `n` a number, `s` a short one, `b` a truth value, `l` a list of
/// numbers, `a` a list of texts, `t` text.
const EMPTY: [(&str, &str); 34] = [
    ("pg_aggregate", "aggfnoid:o aggkind:t aggnumdirectargs:s aggtransfn:o aggfinalfn:o"),
    ("pg_attrdef", "oid:o adrelid:o adnum:s adbin:t"),
    ("pg_auth_members", "oid:o roleid:o member:o grantor:o admin_option:b inherit_option:b set_option:b"),
    ("pg_cast", "oid:o castsource:o casttarget:o castfunc:o castcontext:t castmethod:t"),
    (
        "pg_collation",
        "oid:o collname:t collnamespace:o collowner:o collprovider:t collisdeterministic:b collencoding:n collcollate:t collctype:t colliculocale:t collversion:t",
    ),
    ("pg_default_acl", "oid:o defaclrole:o defaclnamespace:o defaclobjtype:t defaclacl:a"),
    ("pg_depend", "classid:o objid:o objsubid:n refclassid:o refobjid:o refobjsubid:n deptype:t"),
    ("pg_description", "objoid:o classoid:o objsubid:n description:t"),
    ("pg_enum", "oid:o enumtypid:o enumsortorder:n enumlabel:t"),
    ("pg_event_trigger", "oid:o evtname:t evtevent:t evtowner:o evtfoid:o evtenabled:t evttags:t"),
    (
        "pg_extension",
        "oid:o extname:t extowner:o extnamespace:o extrelocatable:b extversion:t extconfig:t extcondition:a",
    ),
    ("pg_foreign_data_wrapper", "oid:o fdwname:t fdwowner:o fdwhandler:o fdwvalidator:o fdwacl:a fdwoptions:a"),
    ("pg_foreign_server", "oid:o srvname:t srvowner:o srvfdw:o srvtype:t srvversion:t srvacl:a srvoptions:a"),
    ("pg_foreign_table", "ftrelid:o ftserver:o ftoptions:a"),
    ("pg_inherits", "inhrelid:o inhparent:o inhseqno:n inhdetachpending:b"),
    (
        "pg_language",
        "oid:o lanname:t lanowner:o lanispl:b lanpltrusted:b lanplcallfoid:o laninline:o lanvalidator:o lanacl:a",
    ),
    ("pg_matviews", "schemaname:t matviewname:t matviewowner:t tablespace:t hasindexes:b ispopulated:b definition:t"),
    (
        "pg_opclass",
        "oid:o opcmethod:o opcname:t opcnamespace:o opcowner:o opcfamily:o opcintype:o opcdefault:b opckeytype:o",
    ),
    (
        "pg_operator",
        "oid:o oprname:t oprnamespace:o oprowner:o oprkind:t oprcanmerge:b oprcanhash:b oprleft:o oprright:o oprresult:o oprcom:o oprnegate:o oprcode:t oprrest:t oprjoin:t",
    ),
    (
        "pg_partitioned_table",
        "partrelid:o partstrat:t partnatts:s partdefid:o partattrs:l partclass:l partcollation:l partexprs:t",
    ),
    ("pg_policy", "oid:o polname:t polrelid:o polcmd:t polpermissive:b polroles:l polqual:t polwithcheck:t"),
    (
        "pg_proc",
        "oid:o proname:t pronamespace:o proowner:o prolang:o procost:n prorows:n provariadic:o prosupport:t prokind:t prosecdef:b proleakproof:b proisstrict:b proretset:b provolatile:t proparallel:t pronargs:s pronargdefaults:s prorettype:o proargtypes:l proallargtypes:l proargmodes:a proargnames:a proargdefaults:t protrftypes:l prosrc:t probin:t prosqlbody:t proconfig:a proacl:a",
    ),
    (
        "pg_publication",
        "oid:o pubname:t pubowner:o puballtables:b pubinsert:b pubupdate:b pubdelete:b pubtruncate:b pubviaroot:b",
    ),
    ("pg_publication_namespace", "oid:o pnpubid:o pnnspid:o"),
    ("pg_publication_rel", "oid:o prpubid:o prrelid:o prqual:t prattrs:l"),
    ("pg_range", "rngtypid:o rngsubtype:o rngmultitypid:o rngcollation:o rngsubopc:o rngcanonical:t rngsubdiff:t"),
    ("pg_rewrite", "oid:o rulename:t ev_class:o ev_type:t ev_enabled:t is_instead:b ev_qual:t ev_action:t"),
    ("pg_sequence", "seqrelid:o seqtypid:o seqstart:n seqincrement:n seqmax:n seqmin:n seqcache:n seqcycle:b"),
    (
        "pg_sequences",
        "schemaname:t sequencename:t sequenceowner:t data_type:t start_value:n min_value:n max_value:n increment_by:n cycle:b cache_size:n last_value:n",
    ),
    ("pg_shdescription", "objoid:o classoid:o description:t"),
    ("pg_stat_user_tables", "relid:o schemaname:t relname:t seq_scan:n idx_scan:n n_live_tup:n n_dead_tup:n"),
    (
        "pg_statistic_ext",
        "oid:o stxrelid:o stxname:t stxnamespace:o stxowner:o stxstattarget:n stxkeys:l stxkind:a stxexprs:t",
    ),
    ("pg_tablespace", "oid:o spcname:t spcowner:o spcacl:a spcoptions:a"),
    (
        "pg_trigger",
        "oid:o tgrelid:o tgparentid:o tgname:t tgfoid:o tgtype:s tgenabled:t tgisinternal:b tgconstrrelid:o tgconstrindid:o tgconstraint:o tgdeferrable:b tginitdeferred:b tgnargs:s tgattr:l tgargs:t tgqual:t tgoldtable:t tgnewtable:t",
    ),
];

/// Whether there is a table of this name.
pub(super) fn is_table(name: &str) -> bool {
    matches!(name, "pg_type" | "pg_am" | "pg_settings") || EMPTY.iter().any(|(known, _)| *known == name)
}

/// The rows of a table, if it is one of these.
pub(super) fn table(name: &str, settings: &[(&str, &str)]) -> Result<Option<RecordBatch>> {
    match name {
        "pg_type" => types().rows().map(Some),
        "pg_am" => methods().rows().map(Some),
        "pg_settings" => named_settings(settings).rows().map(Some),
        _ => Ok(EMPTY.iter().find(|(known, _)| *known == name).map(|(_, columns)| empty(columns))),
    }
}

fn empty(columns: &str) -> RecordBatch {
    let field = |column: &str| {
        let (name, kind) = column.split_once(':').unwrap_or((column, "t"));
        match kind {
            "o" => oid_field(name),
            "n" => Field::new(name, DataType::Int32, true),
            "s" => Field::new(name, DataType::Int16, true),
            "b" => Field::new(name, DataType::Boolean, true),
            "l" => Field::new(name, DataType::List(Arc::new(Field::new("item", DataType::Int32, true))), true),
            "a" => Field::new(name, texts_type(), true),
            _ => Field::new(name, DataType::Utf8, true),
        }
    };
    RecordBatch::new_empty(Arc::new(Schema::new(columns.split(' ').map(field).collect::<Vec<_>>())))
}

fn methods() -> Columns {
    Columns::of(2)
        .oids("oid", [2, 403])
        .texts("amname", [Some("heap"), Some("btree")])
        .texts("amhandler", [Some("heap_tableam_handler"), Some("bthandler")])
        .texts("amtype", [Some("t"), Some("i")])
}

fn named_settings(settings: &[(&str, &str)]) -> Columns {
    Columns::of(settings.len())
        .texts("name", settings.iter().map(|(name, _)| Some(name)))
        .texts("setting", settings.iter().map(|(_, value)| Some(value)))
        .all_text("unit", None)
        .all_text("category", Some("Plinth"))
        .all_text("short_desc", None)
        .all_text("extra_desc", None)
        .all_text("context", Some("internal"))
        .all_text("vartype", Some("string"))
        .all_text("source", Some("default"))
        .all_text("min_val", None)
        .all_text("max_val", None)
        .all_text("enumvals", None)
        .texts("boot_val", settings.iter().map(|(_, value)| Some(value)))
        .texts("reset_val", settings.iter().map(|(_, value)| Some(value)))
        .all_text("sourcefile", None)
        .all_int("sourceline", 0)
        .all_flag("pending_restart", false)
}

/// The category of a type.
fn category(of: &Type) -> &'static str {
    match *of {
        Type::BOOL => "B",
        Type::INT2 | Type::INT4 | Type::INT8 | Type::FLOAT4 | Type::FLOAT8 | Type::NUMERIC | Type::OID => "N",
        Type::TEXT | Type::VARCHAR | Type::BPCHAR | Type::NAME => "S",
        Type::DATE | Type::TIME | Type::TIMETZ | Type::TIMESTAMP | Type::TIMESTAMPTZ => "D",
        Type::INTERVAL => "T",
        _ if of.name().starts_with('_') => "A",
        _ => "U",
    }
}

/// The types that PostgreSQL has by itself.
fn types() -> Columns {
    let all: Vec<Type> = (1..LAST_TYPE).filter_map(Type::from_oid).collect();
    let number = |of: u32| i32::try_from(of).unwrap_or_default();
    let named = |name: &str| all.iter().find(|of| of.name() == name).map_or(0, |of| number(of.oid()));
    let item = |of: &Type| of.name().strip_prefix('_').map_or(0, named);
    let array = |of: &Type| named(&format!("_{}", of.name()));
    let function = |of: &Type, does: &str| match item(of) {
        0 => Some(format!("{}{does}", of.name())),
        _ => Some(format!("array_{does}")),
    };
    let bytes = |of: &Type| super::tables::width(of).0;
    Columns::of(all.len())
        .oids("oid", all.iter().map(|of| number(of.oid())))
        .texts("typname", all.iter().map(|of| Some(of.name())))
        .all_oid("typnamespace", 11)
        .all_oid("typowner", 10)
        .shorts("typlen", all.iter().map(bytes))
        .flags("typbyval", all.iter().map(|of| (0..=8).contains(&bytes(of))))
        .texts("typtype", all.iter().map(|of| Some(if of.name().ends_with("range") { "r" } else { "b" })))
        .texts("typcategory", all.iter().map(|of| Some(category(of))))
        .all_flag("typispreferred", false)
        .all_flag("typisdefined", true)
        .all_text("typdelim", Some(","))
        .all_oid("typrelid", 0)
        .texts("typsubscript", all.iter().map(|of| Some(if item(of) == 0 { "-" } else { "array_subscript_handler" })))
        .oids("typelem", all.iter().map(item))
        .oids("typarray", all.iter().map(array))
        .texts("typinput", all.iter().map(|of| function(of, "in")))
        .texts("typoutput", all.iter().map(|of| function(of, "out")))
        .texts("typreceive", all.iter().map(|of| function(of, "recv")))
        .texts("typsend", all.iter().map(|of| function(of, "send")))
        .all_text("typmodin", Some("-"))
        .all_text("typmodout", Some("-"))
        .all_text("typanalyze", Some("-"))
        .texts("typalign", all.iter().map(|of| Some(super::tables::width(of).1)))
        .texts("typstorage", all.iter().map(|of| Some(if bytes(of) < 0 { "x" } else { "p" })))
        .all_flag("typnotnull", false)
        .all_oid("typbasetype", 0)
        .all_int("typtypmod", -1)
        .all_int("typndims", 0)
        .all_oid("typcollation", 0)
        .all_text("typdefaultbin", None)
        .all_text("typdefault", None)
        .no_texts("typacl")
}
