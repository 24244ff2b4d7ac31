//! What each call from C needs: a guard against panics, handles, texts, places for results, and options.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;

use crate::abi::{AdbcError, Handle, Status, status};
use crate::error::{Failure, Result, tell};
use crate::options::{Options, Value};

pub(crate) type Error = *mut AdbcError;

/// Does a call; nothing unwinds into C.
pub(crate) unsafe fn call(error: Error, work: impl FnOnce() -> Result<()>) -> Status {
    let done = catch_unwind(AssertUnwindSafe(work));
    let done = done.unwrap_or_else(|_| Err(Failure::internal("the call was given up: see above")));
    match done {
        Ok(()) => status::OK,
        Err(failure) => {
            // SAFETY: the caller's error, as the interface has it.
            unsafe { tell(error, &failure) };
            failure.status
        }
    }
}

/// What a handle leads to.
///
/// # Safety
/// `handle` is null, or leads to a handle of type `T` that is not released meanwhile.
pub(crate) unsafe fn of<'a, T>(handle: *mut Handle) -> Result<&'a T> {
    // SAFETY: as the caller promises.
    let found = unsafe { handle.as_ref().and_then(|handle| handle.private_data.cast::<T>().as_ref()) };
    found.ok_or_else(|| Failure::state("the handle is not made, or released already"))
}

/// A text of the caller's; none if it is null.
///
/// # Safety
/// `at` is null, or leads to a text that ends with a zero.
pub(crate) unsafe fn text(at: *const c_char, what: &str) -> Result<Option<String>> {
    if at.is_null() {
        return Ok(None);
    }
    // SAFETY: as the caller promises.
    let found = unsafe { CStr::from_ptr(at) }.to_str();
    found.map(|found| Some(found.to_owned())).map_err(|_| Failure::argument(format!("{what} is no UTF-8")))
}

/// The same, of one that must be there.
///
/// # Safety
/// As [`text`].
pub(crate) unsafe fn needed(at: *const c_char, what: &str) -> Result<String> {
    // SAFETY: as the caller promises.
    unsafe { text(at, what) }?.ok_or_else(|| Failure::argument(format!("{what} is missing")))
}

/// Puts a value where the caller wants it.
///
/// # Safety
/// `out` is null, or a place for a value that is none yet.
pub(crate) unsafe fn put<T>(out: *mut T, value: T) -> Result<()> {
    if out.is_null() {
        return Err(Failure::argument("there is no place for the result"));
    }
    // SAFETY: as the caller promises.
    unsafe { out.write(value) };
    Ok(())
}

pub(crate) unsafe fn new<T>(handle: *mut Handle, value: T) -> Result<()> {
    // SAFETY: a handle of the caller's.
    let handle = unsafe { handle.as_mut() }.ok_or_else(|| Failure::argument("there is no handle"))?;
    if !handle.private_data.is_null() {
        return Err(Failure::state("the handle is in use: release it before"));
    }
    handle.private_data = Box::into_raw(Box::new(value)).cast();
    Ok(())
}

pub(crate) unsafe extern "C" fn release<T>(handle: *mut Handle, error: Error) -> Status {
    let work = || {
        // SAFETY: a handle of the caller's, that no other call uses.
        let handle = unsafe { handle.as_mut() }.filter(|handle| !handle.private_data.is_null());
        let handle = handle.ok_or_else(|| Failure::state("the handle is not made, or released already"))?;
        let data = std::mem::replace(&mut handle.private_data, null_mut());
        // SAFETY: it was made of such a box.
        drop(unsafe { Box::from_raw(data.cast::<T>()) });
        Ok(())
    };
    // SAFETY: the caller's error.
    unsafe { call(error, work) }
}

pub(crate) unsafe extern "C" fn make<T: Default>(handle: *mut Handle, error: Error) -> Status {
    // SAFETY: what the interface asks of callers.
    unsafe { call(error, || new(handle, T::default())) }
}

/// A call of something with options.
macro_rules! setter {
    ($name:ident($($argument:ident: $type:ty),*) $value:expr) => {
        pub(crate) unsafe extern "C" fn $name<T: Options>(handle: *mut Handle, key: *const c_char, $($argument: $type,)* error: Error) -> Status {
            // SAFETY: what the interface asks of callers.
            unsafe { call(error, || of::<T>(handle)?.set(&needed(key, "the name of the option")?, &$value)) }
        }
    };
}

setter!(set_text(value: *const c_char) Value::Text(text(value, "the option")?.unwrap_or_default()));
setter!(set_bytes(value: *const u8, length: usize) Value::Bytes(bytes(value, length).to_vec()));
setter!(set_int(value: i64) Value::Int(value));
setter!(set_double(value: f64) Value::Double(value));

/// # Safety
/// `at` is null, or leads to so many bytes.
pub(crate) unsafe fn bytes<'a, T>(at: *const T, length: usize) -> &'a [T] {
    // SAFETY: as the caller promises.
    if at.is_null() || length == 0 { &[] } else { unsafe { std::slice::from_raw_parts(at, length) } }
}

/// Copies a value to the caller's place if there is room, and says how long it is.
///
/// # Safety
/// `length` is null, or leads to the number of bytes that `out` has room for.
unsafe fn copied(value: &[u8], out: *mut u8, length: *mut usize) -> Result<()> {
    // SAFETY: as the caller promises.
    let room = unsafe { length.as_mut() }.ok_or_else(|| Failure::argument("there is no place for the length"))?;
    if !out.is_null() && *room >= value.len() {
        // SAFETY: there is room for so many.
        unsafe { out.copy_from_nonoverlapping(value.as_ptr(), value.len()) };
    }
    *room = value.len();
    Ok(())
}

pub(crate) unsafe extern "C" fn get_text<T: Options>(
    handle: *mut Handle,
    key: *const c_char,
    out: *mut c_char,
    length: *mut usize,
    error: Error,
) -> Status {
    let work = || {
        // SAFETY: what the interface asks of callers.
        unsafe {
            let key = needed(key, "the name of the option")?;
            let mut value = of::<T>(handle)?.get(&key)?.text(&key)?.into_bytes();
            value.push(0);
            copied(&value, out.cast(), length)
        }
    };
    // SAFETY: the caller's error.
    unsafe { call(error, work) }
}

pub(crate) unsafe extern "C" fn get_bytes<T: Options>(
    handle: *mut Handle,
    key: *const c_char,
    out: *mut u8,
    length: *mut usize,
    error: Error,
) -> Status {
    let work = || {
        // SAFETY: what the interface asks of callers.
        unsafe {
            let key = needed(key, "the name of the option")?;
            match of::<T>(handle)?.get(&key)? {
                Value::Bytes(value) => copied(&value, out, length),
                other => copied(other.text(&key)?.as_bytes(), out, length),
            }
        }
    };
    // SAFETY: the caller's error.
    unsafe { call(error, work) }
}

macro_rules! number_getter {
    ($name:ident: $type:ty) => {
        pub(crate) unsafe extern "C" fn $name<T: Options>(
            handle: *mut Handle,
            key: *const c_char,
            out: *mut $type,
            error: Error,
        ) -> Status {
            let work = || {
                // SAFETY: what the interface asks of callers.
                unsafe {
                    let key = needed(key, "the name of the option")?;
                    let value = of::<T>(handle)?.get(&key)?.text(&key)?;
                    let number =
                        value.parse().map_err(|_| Failure::not_found(format!("{key} is {value:?}, no number")))?;
                    put(out, number)
                }
            };
            // SAFETY: the caller's error.
            unsafe { call(error, work) }
        }
    };
}

number_getter!(get_int: i64);
number_getter!(get_double: f64);
