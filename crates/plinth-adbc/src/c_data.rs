//! The C data interface of Arrow: schemas, arrays and streams across a boundary of C, without a copy of their buffers.
//!
//! The structures and what they mean are <https://arrow.apache.org/docs/format/CDataInterface.html>. Arrow's own crate has them behind
//! a feature that would change how every crate of the engine is built.
#![allow(unsafe_code)]

mod array;
mod schema;
mod stream;

use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;

pub use stream::{Kept, Next, Reader, export, export_with, kept_by};

/// What went wrong at the boundary.
pub type Result<T, E = String> = std::result::Result<T, E>;

/// `struct ArrowSchema`.
#[repr(C)]
#[derive(Debug)]
pub struct CSchema {
    format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    n_children: i64,
    children: *mut *mut CSchema,
    dictionary: *mut CSchema,
    release: Option<unsafe extern "C" fn(*mut CSchema)>,
    private_data: *mut c_void,
}

/// `struct ArrowArray`.
#[repr(C)]
#[derive(Debug)]
pub struct CArray {
    length: i64,
    null_count: i64,
    offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: *mut *const c_void,
    children: *mut *mut CArray,
    dictionary: *mut CArray,
    release: Option<unsafe extern "C" fn(*mut CArray)>,
    private_data: *mut c_void,
}

/// `struct ArrowArrayStream`.
#[repr(C)]
#[derive(Debug)]
pub struct CStream {
    get_schema: Option<unsafe extern "C" fn(*mut CStream, *mut CSchema) -> c_int>,
    get_next: Option<unsafe extern "C" fn(*mut CStream, *mut CArray) -> c_int>,
    get_last_error: Option<unsafe extern "C" fn(*mut CStream) -> *const c_char>,
    release: Option<unsafe extern "C" fn(*mut CStream)>,
    private_data: *mut c_void,
}

/// What is taken from a producer is released when it is dropped, and what is produced is moved to its consumer.
macro_rules! owned {
    ($name:ident { $($field:ident: $empty:expr),* $(,)? }) => {
        impl $name {
            /// One that is released already: a place to be filled.
            pub fn empty() -> Self {
                Self { $($field: $empty,)* release: None, private_data: null_mut() }
            }

            /// Whether there is nothing in it.
            pub fn is_released(&self) -> bool {
                self.release.is_none()
            }
        }

        impl Drop for $name {
            fn drop(&mut self) {
                if let Some(release) = self.release {
                    // SAFETY: what is not released has a callback for that, which is called once: it takes itself away.
                    unsafe { release(self) };
                }
            }
        }

        // SAFETY: the interface lets consumers move structures between threads; each is used by one at a time.
        unsafe impl Send for $name {}
    };
}

owned!(CSchema {
    format: null_mut(),
    name: null_mut(),
    metadata: null_mut(),
    flags: 0,
    n_children: 0,
    children: null_mut(),
    dictionary: null_mut(),
});
owned!(CArray {
    length: 0,
    null_count: 0,
    offset: 0,
    n_buffers: 0,
    n_children: 0,
    buffers: null_mut(),
    children: null_mut(),
    dictionary: null_mut(),
});
owned!(CStream { get_schema: None, get_next: None, get_last_error: None });

// SAFETY: a structure that buffers borrow from is only read, until the last of them releases it.
unsafe impl Sync for CArray {}

/// A count of the interface, which has signs where there are none.
fn count(of: i64, what: &str) -> Result<usize> {
    usize::try_from(of).map_err(|_| format!("the producer says {what} {of}"))
}

/// The structures that an array of pointers leads to.
///
/// # Safety
/// `pointers` is null or leads to `len` pointers, each null or to a structure, that live as long as the result is used.
unsafe fn all_of<'a, T>(pointers: *mut *mut T, len: i64, what: &str) -> Result<Vec<&'a T>> {
    let len = count(len, what)?;
    if len > 0 && pointers.is_null() {
        return Err(format!("the producer says {what} {len} and has none"));
    }
    // SAFETY: as the caller promises.
    let found = (0..len).map(|at| unsafe { pointers.add(at).read_unaligned().as_ref() });
    found.map(|one| one.ok_or_else(|| format!("the producer has {what} that are null"))).collect()
}
