//! Failures, and how C is told of them.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_int};
use std::ptr::{null, null_mut};

use datafusion::error::DataFusionError;
use plinth_sql::{ErrorKind, SqlError};

use crate::abi::{AdbcError, Detail, HAS_PRIVATE_DATA, Status, status};

/// Why a call failed.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) status: Status,
    /// SQLSTATE, as far as its classes say the same.
    sqlstate: &'static [u8; 5],
    /// The kind of the error as a word, a detail of revision 1.1.0.
    kind: &'static CStr,
    pub(crate) message: String,
}

pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

impl Failure {
    fn new(status: Status, sqlstate: &'static [u8; 5], kind: &'static CStr, message: String) -> Self {
        Self { status, sqlstate, kind, message }
    }

    /// The call's argument is wrong.
    pub(crate) fn argument(message: impl Into<String>) -> Self {
        Self::new(status::INVALID_ARGUMENT, b"22023", c"argument", message.into())
    }

    /// The call comes too early, or too late.
    pub(crate) fn state(message: impl Into<String>) -> Self {
        Self::new(status::INVALID_STATE, b"55000", c"state", message.into())
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(status::NOT_FOUND, b"42P01", c"missing", message.into())
    }

    pub(crate) fn already_exists(message: impl Into<String>) -> Self {
        Self::new(status::ALREADY_EXISTS, b"42P07", c"there", message.into())
    }

    pub(crate) fn not_implemented(message: impl Into<String>) -> Self {
        Self::new(status::NOT_IMPLEMENTED, b"0A000", c"not supported", message.into())
    }

    /// A value can't be handed over.
    pub(crate) fn data(message: impl Into<String>) -> Self {
        Self::new(status::INVALID_DATA, b"22000", c"data", message.into())
    }

    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(status::INTERNAL, b"XX000", c"internal", message.into())
    }

    pub(crate) fn cancelled() -> Self {
        Self::new(status::CANCELLED, b"57014", c"interrupted", "interrupted".to_owned())
    }

    /// The same, of something with a name.
    pub(crate) fn named(mut self, name: &impl std::fmt::Display) -> Self {
        self.message = format!("{name}: {}", self.message);
        self
    }

    /// A failure of rows that were on their way: what is wrong is then a value, not the statement.
    pub(crate) fn of_rows(error: DataFusionError) -> Self {
        match SqlError::from(error) {
            SqlError::Message(ErrorKind::Execution, message) => Self::data(message),
            other => other.into(),
        }
    }
}

impl From<SqlError> for Failure {
    fn from(error: SqlError) -> Self {
        let (kind, message) = match error {
            SqlError::Interrupted => return Self::cancelled(),
            SqlError::Message(kind, message) => (kind, message),
        };
        match kind {
            ErrorKind::Statement | ErrorKind::Execution => {
                Self::new(status::INVALID_ARGUMENT, b"42000", c"statement", message)
            }
            ErrorKind::Data => Self::data(message),
            ErrorKind::Constraint => Self::new(status::INTEGRITY, b"23505", c"constraint", message),
            ErrorKind::NotSupported => Self::not_implemented(message),
            ErrorKind::Denied => Self::new(status::UNAUTHORIZED, b"42501", c"denied", message),
            ErrorKind::Operation => Self::new(status::IO, b"58000", c"operation", message),
            ErrorKind::Internal => Self::internal(message),
        }
    }
}

impl From<DataFusionError> for Failure {
    fn from(error: DataFusionError) -> Self {
        SqlError::from(error).into()
    }
}

/// A text of C's; what can't be in one is spelled out.
fn c_text(text: &str) -> CString {
    CString::new(text.replace('\0', "\\0")).unwrap_or_default()
}

/// Tells a caller why its call failed.
///
/// # Safety
/// `error` is null, or leads to an error of the caller as `adbc.h` has it.
pub(crate) unsafe fn tell(error: *mut AdbcError, failure: &Failure) {
    // SAFETY: as the caller promises.
    let Some(error) = (unsafe { error.cast::<ErrorHead>().as_mut() }) else { return };
    if let Some(release) = error.release {
        // SAFETY: an error that was not released has a function for that.
        unsafe { release(std::ptr::from_mut(error).cast()) };
    }
    error.message = c_text(&failure.message).into_raw();
    error.sqlstate = failure.sqlstate.map(|letter| c_char::from_ne_bytes([letter]));
    error.release = Some(release);
    if error.vendor_code == HAS_PRIVATE_DATA {
        // SAFETY: the code says that the fields of revision 1.1.0 are there.
        let error = unsafe { &mut *std::ptr::from_mut(error).cast::<AdbcError>() };
        error.private_data = failure.kind.as_ptr().cast_mut().cast();
    }
}

/// The fields that an error has in each revision.
#[repr(C)]
struct ErrorHead {
    message: *mut c_char,
    vendor_code: i32,
    sqlstate: [c_char; 5],
    release: Option<unsafe extern "C" fn(*mut AdbcError)>,
}

/// Releases an error that [`tell`] has filled in.
unsafe extern "C" fn release(error: *mut AdbcError) {
    // SAFETY: the caller hands in an error of ours that is not released.
    let head = unsafe { &mut *error.cast::<ErrorHead>() };
    if !head.message.is_null() {
        // SAFETY: it was made of such a text.
        drop(unsafe { CString::from_raw(head.message) });
    }
    (head.message, head.release, head.sqlstate) = (null_mut(), None, [0; 5]);
    if head.vendor_code == HAS_PRIVATE_DATA {
        // SAFETY: the code says that this field is there.
        unsafe { (*error).private_data = null_mut() };
    }
}

/// The kind of an error of ours, if it has one.
unsafe fn kind_of<'a>(error: *const AdbcError) -> Option<&'a CStr> {
    // SAFETY: an error as `adbc.h` has it, or null.
    let head = unsafe { error.cast::<ErrorHead>().as_ref() }?;
    let ours = head.release.is_some_and(|of| std::ptr::fn_addr_eq(of, release as unsafe extern "C" fn(*mut AdbcError)));
    if !ours || head.vendor_code != HAS_PRIVATE_DATA {
        return None;
    }
    // SAFETY: the code says that this field is there, and `tell` has written it.
    let kind = unsafe { (*error).private_data };
    // SAFETY: a constant of this library.
    (!kind.is_null()).then(|| unsafe { CStr::from_ptr(kind.cast()) })
}

/// How many details an error has.
pub(crate) unsafe extern "C" fn detail_count(error: *const AdbcError) -> c_int {
    // SAFETY: as the interface has it.
    c_int::from(unsafe { kind_of(error) }.is_some())
}

/// A detail of an error: the first is its kind.
pub(crate) unsafe extern "C" fn detail(error: *const AdbcError, index: c_int) -> Detail {
    // SAFETY: as the interface has it.
    match unsafe { kind_of(error) }.filter(|_| index == 0) {
        Some(kind) => {
            Detail { key: c"plinth.kind".as_ptr(), value: kind.as_ptr().cast(), value_length: kind.to_bytes().len() }
        }
        None => Detail { key: null(), value: null(), value_length: 0 },
    }
}

/// The error that ended a stream, for callers that ask for more than its text.
#[derive(Debug)]
pub(crate) struct Told {
    error: AdbcError,
    status: Status,
}

// SAFETY: what it points to is its own, or constant.
unsafe impl Send for Told {}
// SAFETY: it is only read.
unsafe impl Sync for Told {}

impl Told {
    pub(crate) fn new(failure: &Failure) -> Self {
        let mut error = AdbcError::empty();
        // SAFETY: an error to be filled in.
        unsafe { tell(&raw mut error, failure) };
        Self { error, status: failure.status }
    }

    /// Where it is, as long as this is kept, and the status of a call that would have failed with it.
    pub(crate) fn look(&self) -> (*const AdbcError, Status) {
        (&raw const self.error, self.status)
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        if let Some(release) = self.error.release {
            // SAFETY: it was not released.
            unsafe { release(&raw mut self.error) };
        }
    }
}
