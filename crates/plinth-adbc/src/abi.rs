//! The structures of `adbc.h`, as C lays them out.

use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;

use crate::c_data::{CArray, CSchema, CStream};

/// What a function returns: one of [`status`].
pub(crate) type Status = u8;

/// Status codes.
pub(crate) mod status {
    pub(crate) const OK: u8 = 0;
    pub(crate) const NOT_IMPLEMENTED: u8 = 2;
    pub(crate) const NOT_FOUND: u8 = 3;
    pub(crate) const ALREADY_EXISTS: u8 = 4;
    pub(crate) const INVALID_ARGUMENT: u8 = 5;
    pub(crate) const INVALID_STATE: u8 = 6;
    pub(crate) const INVALID_DATA: u8 = 7;
    pub(crate) const INTEGRITY: u8 = 8;
    pub(crate) const INTERNAL: u8 = 9;
    pub(crate) const IO: u8 = 10;
    pub(crate) const CANCELLED: u8 = 11;
    pub(crate) const UNAUTHORIZED: u8 = 14;
}

/// The revisions of the interface.
pub(crate) const VERSION_1_0_0: c_int = 1_000_000;
pub(crate) const VERSION_1_1_0: c_int = 1_001_000;

/// The vendor code of errors that have the fields of revision 1.1.0.
pub(crate) const HAS_PRIVATE_DATA: i32 = i32::MIN;

/// `struct AdbcError`. Its last two fields are there if `vendor_code` is [`HAS_PRIVATE_DATA`].
#[repr(C)]
#[derive(Debug)]
pub struct AdbcError {
    pub(crate) message: *mut c_char,
    pub(crate) vendor_code: i32,
    pub(crate) sqlstate: [c_char; 5],
    pub(crate) release: Option<unsafe extern "C" fn(*mut AdbcError)>,
    pub(crate) private_data: *mut c_void,
    pub(crate) private_driver: *mut c_void,
}

impl AdbcError {
    /// An error to be filled in, with the fields of revision 1.1.0.
    pub(crate) fn empty() -> Self {
        Self {
            message: null_mut(),
            vendor_code: HAS_PRIVATE_DATA,
            sqlstate: [0; 5],
            release: None,
            private_data: null_mut(),
            private_driver: null_mut(),
        }
    }
}

/// `struct AdbcErrorDetail`.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Detail {
    pub(crate) key: *const c_char,
    pub(crate) value: *const u8,
    pub(crate) value_length: usize,
}

/// `struct AdbcDatabase`, `struct AdbcConnection` and `struct AdbcStatement`, which are laid out alike.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Handle {
    pub(crate) private_data: *mut c_void,
    pub(crate) private_driver: *mut c_void,
}

type Error = *mut AdbcError;
type Plain = Option<unsafe extern "C" fn(*mut Handle, Error) -> Status>;
type SetText = Option<unsafe extern "C" fn(*mut Handle, *const c_char, *const c_char, Error) -> Status>;
type SetBytes = Option<unsafe extern "C" fn(*mut Handle, *const c_char, *const u8, usize, Error) -> Status>;
type SetDouble = Option<unsafe extern "C" fn(*mut Handle, *const c_char, f64, Error) -> Status>;
type SetInt = Option<unsafe extern "C" fn(*mut Handle, *const c_char, i64, Error) -> Status>;
type GetText = Option<unsafe extern "C" fn(*mut Handle, *const c_char, *mut c_char, *mut usize, Error) -> Status>;
type GetBytes = Option<unsafe extern "C" fn(*mut Handle, *const c_char, *mut u8, *mut usize, Error) -> Status>;
type GetDouble = Option<unsafe extern "C" fn(*mut Handle, *const c_char, *mut f64, Error) -> Status>;
type GetInt = Option<unsafe extern "C" fn(*mut Handle, *const c_char, *mut i64, Error) -> Status>;
type ToStream = Option<unsafe extern "C" fn(*mut Handle, *mut CStream, Error) -> Status>;
type ToSchema = Option<unsafe extern "C" fn(*mut Handle, *mut CSchema, Error) -> Status>;
type WithBytes = Option<unsafe extern "C" fn(*mut Handle, *const u8, usize, Error) -> Status>;
type WithText = Option<unsafe extern "C" fn(*mut Handle, *const c_char, Error) -> Status>;
type GetInfo = Option<unsafe extern "C" fn(*mut Handle, *const u32, usize, *mut CStream, Error) -> Status>;
type Partitions = Option<unsafe extern "C" fn(*mut Handle, *mut CSchema, *mut c_void, *mut i64, Error) -> Status>;
type GetObjects = Option<
    unsafe extern "C" fn(
        *mut Handle,
        c_int,
        *const c_char,
        *const c_char,
        *const c_char,
        *mut *const c_char,
        *const c_char,
        *mut CStream,
        Error,
    ) -> Status,
>;
type TableSchema = Option<
    unsafe extern "C" fn(*mut Handle, *const c_char, *const c_char, *const c_char, *mut CSchema, Error) -> Status,
>;
type Statistics = Option<
    unsafe extern "C" fn(
        *mut Handle,
        *const c_char,
        *const c_char,
        *const c_char,
        c_char,
        *mut CStream,
        Error,
    ) -> Status,
>;

/// `struct AdbcDriver`: what a driver can do. Revision 1.0.0 ends before `error_get_detail_count`.
#[repr(C)]
#[derive(Debug)]
pub struct AdbcDriver {
    pub(crate) private_data: *mut c_void,
    pub(crate) private_manager: *mut c_void,
    pub(crate) release: Option<unsafe extern "C" fn(*mut AdbcDriver, Error) -> Status>,
    pub(crate) database_init: Plain,
    pub(crate) database_new: Plain,
    pub(crate) database_set_option: SetText,
    pub(crate) database_release: Plain,
    pub(crate) connection_commit: Plain,
    pub(crate) connection_get_info: GetInfo,
    pub(crate) connection_get_objects: GetObjects,
    pub(crate) connection_get_table_schema: TableSchema,
    pub(crate) connection_get_table_types: ToStream,
    pub(crate) connection_init: Option<unsafe extern "C" fn(*mut Handle, *mut Handle, Error) -> Status>,
    pub(crate) connection_new: Plain,
    pub(crate) connection_set_option: SetText,
    pub(crate) connection_read_partition:
        Option<unsafe extern "C" fn(*mut Handle, *const u8, usize, *mut CStream, Error) -> Status>,
    pub(crate) connection_release: Plain,
    pub(crate) connection_rollback: Plain,
    pub(crate) statement_bind: Option<unsafe extern "C" fn(*mut Handle, *mut CArray, *mut CSchema, Error) -> Status>,
    pub(crate) statement_bind_stream: ToStream,
    pub(crate) statement_execute_query:
        Option<unsafe extern "C" fn(*mut Handle, *mut CStream, *mut i64, Error) -> Status>,
    pub(crate) statement_execute_partitions: Partitions,
    pub(crate) statement_get_parameter_schema: ToSchema,
    pub(crate) statement_new: Option<unsafe extern "C" fn(*mut Handle, *mut Handle, Error) -> Status>,
    pub(crate) statement_prepare: Plain,
    pub(crate) statement_release: Plain,
    pub(crate) statement_set_option: SetText,
    pub(crate) statement_set_sql_query: WithText,
    pub(crate) statement_set_substrait_plan: WithBytes,
    pub(crate) error_get_detail_count: Option<unsafe extern "C" fn(*const AdbcError) -> c_int>,
    pub(crate) error_get_detail: Option<unsafe extern "C" fn(*const AdbcError, c_int) -> Detail>,
    pub(crate) error_from_array_stream: Option<unsafe extern "C" fn(*mut CStream, *mut Status) -> *const AdbcError>,
    pub(crate) database_get_option: GetText,
    pub(crate) database_get_option_bytes: GetBytes,
    pub(crate) database_get_option_double: GetDouble,
    pub(crate) database_get_option_int: GetInt,
    pub(crate) database_set_option_bytes: SetBytes,
    pub(crate) database_set_option_double: SetDouble,
    pub(crate) database_set_option_int: SetInt,
    pub(crate) connection_cancel: Plain,
    pub(crate) connection_get_option: GetText,
    pub(crate) connection_get_option_bytes: GetBytes,
    pub(crate) connection_get_option_double: GetDouble,
    pub(crate) connection_get_option_int: GetInt,
    pub(crate) connection_get_statistics: Statistics,
    pub(crate) connection_get_statistic_names: ToStream,
    pub(crate) connection_set_option_bytes: SetBytes,
    pub(crate) connection_set_option_double: SetDouble,
    pub(crate) connection_set_option_int: SetInt,
    pub(crate) statement_cancel: Plain,
    pub(crate) statement_execute_schema: ToSchema,
    pub(crate) statement_get_option: GetText,
    pub(crate) statement_get_option_bytes: GetBytes,
    pub(crate) statement_get_option_double: GetDouble,
    pub(crate) statement_get_option_int: GetInt,
    pub(crate) statement_set_option_bytes: SetBytes,
    pub(crate) statement_set_option_double: SetDouble,
    pub(crate) statement_set_option_int: SetInt,
}
