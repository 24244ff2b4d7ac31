//! The functions of the interface, which C calls.
//!
//! Each takes a database, a connection or a statement that leads to one of ours, and tells what went wrong in the caller's error.
#![allow(unsafe_code)]

use std::ffi::{c_char, c_int, c_void};
use std::mem::offset_of;
use std::ptr::{null, null_mut};

use plinth_core::sync::lock;

use crate::abi::{AdbcDriver, AdbcError, Handle, Status, VERSION_1_0_0, VERSION_1_1_0};
use crate::bound::Bound;
use crate::c_data::{CArray, CSchema, CStream, Reader, kept_by};
use crate::connection::Connection;
use crate::database::Database;
use crate::error::{Failure, Result, detail, detail_count};
use crate::guard::{
    Error, bytes, call, get_bytes, get_double, get_int, get_text, make, needed, new, of, put, release, set_bytes,
    set_double, set_int, set_text, text,
};
use crate::objects::{Depth, Wanted, objects};
use crate::run::LastError;
use crate::statement::Statement;
use crate::{connection, info};

unsafe extern "C" fn database_init(handle: *mut Handle, error: Error) -> Status {
    // SAFETY: what the interface asks of callers.
    unsafe { call(error, || of::<Database>(handle)?.init()) }
}

unsafe extern "C" fn connection_init(handle: *mut Handle, database: *mut Handle, error: Error) -> Status {
    // SAFETY: what the interface asks of callers.
    unsafe { call(error, || of::<Connection>(handle)?.init(of(database)?)) }
}

unsafe extern "C" fn commit(handle: *mut Handle, error: Error) -> Status {
    // SAFETY: what the interface asks of callers.
    unsafe { call(error, || of::<Connection>(handle)?.link()?.end_manual("COMMIT")) }
}

unsafe extern "C" fn rollback(handle: *mut Handle, error: Error) -> Status {
    // SAFETY: what the interface asks of callers.
    unsafe { call(error, || of::<Connection>(handle)?.link()?.end_manual("ROLLBACK")) }
}

unsafe extern "C" fn connection_cancel(handle: *mut Handle, error: Error) -> Status {
    let work = || {
        // SAFETY: what the interface asks of callers.
        unsafe { of::<Connection>(handle) }?.link()?.cancel();
        Ok(())
    };
    // SAFETY: the caller's error.
    unsafe { call(error, work) }
}

unsafe extern "C" fn get_info(
    handle: *mut Handle,
    codes: *const u32,
    length: usize,
    out: *mut CStream,
    error: Error,
) -> Status {
    let work = || {
        // SAFETY: what the interface asks of callers.
        unsafe {
            of::<Connection>(handle)?.link()?;
            let codes = (!codes.is_null()).then(|| bytes(codes, length));
            put(out, info::info(codes)?.export())
        }
    };
    // SAFETY: the caller's error.
    unsafe { call(error, work) }
}

unsafe extern "C" fn get_table_types(handle: *mut Handle, out: *mut CStream, error: Error) -> Status {
    let work = || {
        // SAFETY: what the interface asks of callers.
        unsafe {
            of::<Connection>(handle)?.link()?;
            put(out, info::table_types()?.export())
        }
    };
    // SAFETY: the caller's error.
    unsafe { call(error, work) }
}

unsafe extern "C" fn get_statistic_names(handle: *mut Handle, out: *mut CStream, error: Error) -> Status {
    let work = || {
        // SAFETY: what the interface asks of callers.
        unsafe {
            of::<Connection>(handle)?.link()?;
            put(out, info::statistic_names().export())
        }
    };
    // SAFETY: the caller's error.
    unsafe { call(error, work) }
}

unsafe extern "C" fn get_statistics(
    _: *mut Handle,
    _: *const c_char,
    _: *const c_char,
    _: *const c_char,
    _: c_char,
    _: *mut CStream,
    error: Error,
) -> Status {
    // SAFETY: the caller's error.
    unsafe { call(error, || Err(Failure::not_implemented("statistics of tables: ask for them in SQL"))) }
}

#[allow(clippy::too_many_arguments, reason = "the interface has them")]
unsafe extern "C" fn get_objects(
    handle: *mut Handle,
    depth: c_int,
    catalog: *const c_char,
    db_schema: *const c_char,
    table: *const c_char,
    types: *mut *const c_char,
    column: *const c_char,
    out: *mut CStream,
    error: Error,
) -> Status {
    let work = || {
        let depth = match depth {
            0 => Depth::Columns,
            1 => Depth::Catalogs,
            2 => Depth::Schemas,
            3 => Depth::Tables,
            other => return Err(Failure::argument(format!("there is no depth {other}; give one of 0 to 3"))),
        };
        // SAFETY: what the interface asks of callers.
        unsafe {
            let wanted = Wanted {
                depth,
                catalog: text(catalog, "the catalog")?,
                db_schema: text(db_schema, "the schema")?,
                table: text(table, "the table")?,
                types: all_texts(types)?,
                column: text(column, "the column")?,
            };
            put(out, objects(of::<Connection>(handle)?.link()?, &wanted)?.export())
        }
    };
    // SAFETY: the caller's error.
    unsafe { call(error, work) }
}

/// Texts up to one that is null; none if there is no list.
///
/// # Safety
/// `at` is null, or leads to such texts.
unsafe fn all_texts(at: *mut *const c_char) -> Result<Option<Vec<String>>> {
    if at.is_null() {
        return Ok(None);
    }
    let mut found = Vec::new();
    // SAFETY: as the caller promises: what is not null is followed by another.
    while let Some(one) = unsafe { text(at.add(found.len()).read(), "a type of tables") }? {
        found.push(one);
    }
    Ok(Some(found))
}

unsafe extern "C" fn get_table_schema(
    handle: *mut Handle,
    catalog: *const c_char,
    db_schema: *const c_char,
    table: *const c_char,
    out: *mut CSchema,
    error: Error,
) -> Status {
    let work = || {
        // SAFETY: what the interface asks of callers.
        unsafe {
            let link = of::<Connection>(handle)?.link()?;
            let known = [(catalog, connection::CATALOG), (db_schema, connection::DB_SCHEMA)];
            for (given, there) in known {
                if let Some(other) = text(given, "the schema")?.filter(|given| !given.is_empty() && given != there) {
                    return Err(Failure::not_found(format!("there is no {other:?}; all tables are in {there:?}")));
                }
            }
            let schema = link.schema_of(&needed(table, "the table")?)?;
            put(out, CSchema::of_schema(&schema).map_err(Failure::data)?)
        }
    };
    // SAFETY: the caller's error.
    unsafe { call(error, work) }
}

unsafe extern "C" fn statement_new(connection: *mut Handle, handle: *mut Handle, error: Error) -> Status {
    let work = || {
        // SAFETY: what the interface asks of callers.
        unsafe {
            let link = of::<Connection>(connection)?.link()?;
            new(handle, Statement::new(std::sync::Arc::clone(link)))
        }
    };
    // SAFETY: the caller's error.
    unsafe { call(error, work) }
}

unsafe extern "C" fn set_sql_query(handle: *mut Handle, query: *const c_char, error: Error) -> Status {
    let work = || {
        // SAFETY: what the interface asks of callers.
        unsafe { of::<Statement>(handle)?.set_text(needed(query, "the statement")?) };
        Ok(())
    };
    // SAFETY: the caller's error.
    unsafe { call(error, work) }
}

unsafe extern "C" fn prepare(handle: *mut Handle, error: Error) -> Status {
    // SAFETY: what the interface asks of callers.
    unsafe { call(error, || of::<Statement>(handle)?.prepare()) }
}

unsafe extern "C" fn statement_cancel(handle: *mut Handle, error: Error) -> Status {
    let work = || {
        // SAFETY: what the interface asks of callers.
        unsafe { of::<Statement>(handle) }?.cancel();
        Ok(())
    };
    // SAFETY: the caller's error.
    unsafe { call(error, work) }
}

unsafe extern "C" fn bind(handle: *mut Handle, values: *mut CArray, schema: *mut CSchema, error: Error) -> Status {
    let work = || {
        let missing = || Failure::argument("there are no values");
        // SAFETY: what the interface asks of callers: both are moved to the driver.
        unsafe {
            let statement = of::<Statement>(handle)?;
            if values.is_null() || schema.is_null() {
                return Err(missing());
            }
            let values = values.replace(CArray::empty());
            let schema = schema.replace(CSchema::empty());
            if values.is_released() {
                return Err(missing());
            }
            let schema = std::sync::Arc::new(schema.to_schema().map_err(Failure::argument)?);
            let rows = values.into_batch(&schema).map_err(Failure::argument)?;
            statement.bind(Bound::Rows(rows));
        }
        Ok(())
    };
    // SAFETY: the caller's error.
    unsafe { call(error, work) }
}

unsafe extern "C" fn bind_stream(handle: *mut Handle, stream: *mut CStream, error: Error) -> Status {
    let work = || {
        // SAFETY: what the interface asks of callers: the stream is moved to the driver.
        unsafe {
            let statement = of::<Statement>(handle)?;
            if stream.is_null() {
                return Err(Failure::argument("there is no stream"));
            }
            let reader = Reader::new(stream.replace(CStream::empty())).map_err(Failure::argument)?;
            statement.bind(Bound::Stream(reader));
        }
        Ok(())
    };
    // SAFETY: the caller's error.
    unsafe { call(error, work) }
}

unsafe extern "C" fn execute_query(handle: *mut Handle, out: *mut CStream, rows: *mut i64, error: Error) -> Status {
    let work = || {
        // SAFETY: what the interface asks of callers.
        let mut answer = unsafe { of::<Statement>(handle) }?.execute()?;
        let changed = answer.changed.and_then(|changed| i64::try_from(changed).ok());
        if out.is_null() {
            while (answer.next)()?.is_some() {}
        } else {
            // SAFETY: a place for a stream.
            unsafe { put(out, answer.export())? };
        }
        if !rows.is_null() {
            // SAFETY: a place for a number.
            unsafe { rows.write(changed.unwrap_or(-1)) };
        }
        Ok(())
    };
    // SAFETY: the caller's error.
    unsafe { call(error, work) }
}

unsafe extern "C" fn execute_schema(handle: *mut Handle, out: *mut CSchema, error: Error) -> Status {
    let work = || {
        // SAFETY: what the interface asks of callers.
        unsafe {
            let schema = of::<Statement>(handle)?.schema()?;
            put(out, CSchema::of_schema(&schema).map_err(Failure::data)?)
        }
    };
    // SAFETY: the caller's error.
    unsafe { call(error, work) }
}

unsafe extern "C" fn get_parameter_schema(handle: *mut Handle, out: *mut CSchema, error: Error) -> Status {
    let work = || {
        // SAFETY: what the interface asks of callers.
        unsafe {
            let schema = of::<Statement>(handle)?.parameters()?;
            put(out, CSchema::of_schema(&schema).map_err(Failure::data)?)
        }
    };
    // SAFETY: the caller's error.
    unsafe { call(error, work) }
}

const PARTITIONS: &str = "a query is not divided into partitions for other processes: execute it";

unsafe extern "C" fn execute_partitions(
    _: *mut Handle,
    _: *mut CSchema,
    _: *mut c_void,
    _: *mut i64,
    error: Error,
) -> Status {
    // SAFETY: the caller's error.
    unsafe { call(error, || Err(Failure::not_implemented(PARTITIONS))) }
}

unsafe extern "C" fn read_partition(_: *mut Handle, _: *const u8, _: usize, _: *mut CStream, error: Error) -> Status {
    // SAFETY: the caller's error.
    unsafe { call(error, || Err(Failure::not_implemented(PARTITIONS))) }
}

unsafe extern "C" fn set_substrait(_: *mut Handle, _: *const u8, _: usize, error: Error) -> Status {
    // SAFETY: the caller's error.
    unsafe { call(error, || Err(Failure::not_implemented("plans of Substrait: give the statement as SQL"))) }
}

unsafe extern "C" fn error_of_stream(stream: *mut CStream, out: *mut Status) -> *const AdbcError {
    // SAFETY: what the interface asks of callers.
    let Some(last) = (unsafe { kept_by::<std::sync::Arc<LastError>>(stream) }) else { return null() };
    let last = lock(&last.0);
    let Some(told) = last.as_ref() else { return null() };
    let (error, code) = told.look();
    if !out.is_null() {
        // SAFETY: a place for a code.
        unsafe { out.write(code) };
    }
    error
}

unsafe extern "C" fn release_driver(driver: *mut AdbcDriver, error: Error) -> Status {
    let work = || {
        // SAFETY: the caller's driver.
        let driver = unsafe { driver.as_mut() }.filter(|driver| driver.release.is_some());
        driver.ok_or_else(|| Failure::state("the driver is released already"))?.release = None;
        Ok(())
    };
    // SAFETY: the caller's error.
    unsafe { call(error, work) }
}

const DRIVER: AdbcDriver = AdbcDriver {
    private_data: null_mut(),
    private_manager: null_mut(),
    release: Some(release_driver),
    database_init: Some(database_init),
    database_new: Some(make::<Database>),
    database_set_option: Some(set_text::<Database>),
    database_release: Some(release::<Database>),
    connection_commit: Some(commit),
    connection_get_info: Some(get_info),
    connection_get_objects: Some(get_objects),
    connection_get_table_schema: Some(get_table_schema),
    connection_get_table_types: Some(get_table_types),
    connection_init: Some(connection_init),
    connection_new: Some(make::<Connection>),
    connection_set_option: Some(set_text::<Connection>),
    connection_read_partition: Some(read_partition),
    connection_release: Some(release::<Connection>),
    connection_rollback: Some(rollback),
    statement_bind: Some(bind),
    statement_bind_stream: Some(bind_stream),
    statement_execute_query: Some(execute_query),
    statement_execute_partitions: Some(execute_partitions),
    statement_get_parameter_schema: Some(get_parameter_schema),
    statement_new: Some(statement_new),
    statement_prepare: Some(prepare),
    statement_release: Some(release::<Statement>),
    statement_set_option: Some(set_text::<Statement>),
    statement_set_sql_query: Some(set_sql_query),
    statement_set_substrait_plan: Some(set_substrait),
    error_get_detail_count: Some(detail_count),
    error_get_detail: Some(detail),
    error_from_array_stream: Some(error_of_stream),
    database_get_option: Some(get_text::<Database>),
    database_get_option_bytes: Some(get_bytes::<Database>),
    database_get_option_double: Some(get_double::<Database>),
    database_get_option_int: Some(get_int::<Database>),
    database_set_option_bytes: Some(set_bytes::<Database>),
    database_set_option_double: Some(set_double::<Database>),
    database_set_option_int: Some(set_int::<Database>),
    connection_cancel: Some(connection_cancel),
    connection_get_option: Some(get_text::<Connection>),
    connection_get_option_bytes: Some(get_bytes::<Connection>),
    connection_get_option_double: Some(get_double::<Connection>),
    connection_get_option_int: Some(get_int::<Connection>),
    connection_get_statistics: Some(get_statistics),
    connection_get_statistic_names: Some(get_statistic_names),
    connection_set_option_bytes: Some(set_bytes::<Connection>),
    connection_set_option_double: Some(set_double::<Connection>),
    connection_set_option_int: Some(set_int::<Connection>),
    statement_cancel: Some(statement_cancel),
    statement_execute_schema: Some(execute_schema),
    statement_get_option: Some(get_text::<Statement>),
    statement_get_option_bytes: Some(get_bytes::<Statement>),
    statement_get_option_double: Some(get_double::<Statement>),
    statement_get_option_int: Some(get_int::<Statement>),
    statement_set_option_bytes: Some(set_bytes::<Statement>),
    statement_set_option_double: Some(set_double::<Statement>),
    statement_set_option_int: Some(set_int::<Statement>),
};

/// Fills in a driver: the function by which driver managers find this one.
///
/// # Safety
/// `driver` leads to a place for an `AdbcDriver` of the revision `version`, `error` is null or leads to an `AdbcError`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn AdbcDriverInit(version: c_int, driver: *mut c_void, error: *mut AdbcError) -> u8 {
    let work = || {
        let size = match version {
            VERSION_1_0_0 => offset_of!(AdbcDriver, error_get_detail_count),
            VERSION_1_1_0 => size_of::<AdbcDriver>(),
            other => {
                let what =
                    format!("revision {other} of ADBC is not known; there are {VERSION_1_0_0} and {VERSION_1_1_0}");
                return Err(Failure::not_implemented(what));
            }
        };
        if driver.is_null() {
            return Err(Failure::argument("there is no place for the driver"));
        }
        let ours = DRIVER;
        let filled = (&raw const ours).cast::<u8>();
        // SAFETY: the caller has room for a driver of this revision, of which a later one is the continuation.
        unsafe { driver.cast::<u8>().copy_from_nonoverlapping(filled, size) };
        Ok(())
    };
    // SAFETY: the caller's error.
    unsafe { call(error, work) }
}

/// The same, by the name that driver managers derive from the library's.
///
/// # Safety
/// As [`AdbcDriverInit`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PlinthDriverInit(version: c_int, driver: *mut c_void, error: *mut AdbcError) -> u8 {
    // SAFETY: as the caller promises.
    unsafe { AdbcDriverInit(version, driver, error) }
}
